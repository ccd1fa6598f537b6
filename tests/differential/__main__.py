"""Put generated input to both engines and print what they disagree about: `python -m tests.differential`.

Modes: `templates` (chat templates, by their flags or the refusal to parse them), `snippets` (small programs, by their
output or error), `renders` (the chat templates again, by their output or error in a conversation). Exit code 1 if any
differs. Needs the extra `oracle`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

from scanner import oracle
from tests.differential import flags, generate, renders
from tests.differential.compare import Comparison, kind
from tests.differential.shrink import shrink

Engine: TypeAlias = Callable[[Iterable[str], int], Iterator[Comparison]]

MODES: dict[str, tuple[generate.Make, Engine]] = {
    "templates": (generate.template, flags.compare),
    "snippets": (generate.snippet, renders.compare),
    "renders": (generate.template, renders.compare),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line. Returns the exit code."""
    options = _options(arguments)
    if reason := oracle.available():
        print(reason, file=sys.stderr)  # noqa: T201 - a command-line program
        return 2
    make, engine = MODES[options.mode]
    started = time.monotonic()
    failures, incomparable = run(generate.cases(make, options.seed, options.count), engine, options.workers)
    seconds = time.monotonic() - started
    report(failures, engine, options)
    print(f"{options.count} {options.mode} of seed {options.seed} in {seconds:.0f} s: {len(failures)} differ")  # noqa: T201
    for reason, number in incomparable.most_common():
        print(f"  {number} not comparable: {reason}")  # noqa: T201 - as above
    return 1 if failures else 0


def run(sources: Iterable[str], engine: Engine, workers: int) -> tuple[list[Comparison], Counter[str]]:
    """The disagreements, and how many could not be compared, by reason."""
    failures: list[Comparison] = []
    incomparable: Counter[str] = Counter()
    for comparison in engine(sources, workers):
        if comparison.incomparable is not None:
            incomparable[comparison.incomparable.partition("\n")[0]] += 1
        elif comparison.differs:
            failures.append(comparison)
    return failures, incomparable


def report(failures: Sequence[Comparison], engine: Engine, options: argparse.Namespace) -> None:
    """Print each kind of disagreement with its number and its first few failures, made small."""
    kinds: dict[str, list[Comparison]] = {}
    for failure in failures:
        kinds.setdefault(kind(failure), []).append(failure)
    for name, members in sorted(kinds.items(), key=lambda item: -len(item[1])):
        print(f"=== {len(members)} times: {name}")  # noqa: T201 - a command-line program
        for failure in members[: options.show]:
            print(described(shrink(failure, partial(_compare_all, engine, options.workers))), "\n")  # noqa: T201


def _compare_all(engine: Engine, workers: int, sources: Sequence[str]) -> list[Comparison]:
    return list(engine(sources, workers))


def described(failure: Comparison) -> str:
    """A failure for people: the template, and both answers."""
    return f"{failure.source}\n  repr:   {failure.source!r}\n  ours:   {failure.ours}\n  theirs: {failure.theirs}"


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="how many cases (default: 1000)")
    parser.add_argument("--seed", type=int, default=0, help="which cases (default: 0)")
    parser.add_argument("--mode", choices=sorted(MODES), default="templates")
    parser.add_argument("--workers", type=int, default=2, help="servers at a time (default: 2)")
    parser.add_argument("--show", type=int, default=2, help="failures to make small, of each kind (default: 2)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
