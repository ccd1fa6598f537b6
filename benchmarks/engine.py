"""Times the engine: lexing, parsing, compiling and all claimed probes of a set of templates, side by side.

`python -m benchmarks.engine [FOLDER]`: the templates of a folder (default: the corpus of the shared data where it is,
else the demo's). One core, the best of several rounds, milliseconds a template.
The real engine takes 2.3 ms for lexing, parsing and probing (measured natively, `dialect.md` section 11).
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from scanner.demo.collection import NOT_FOR_THE_ENGINE, templates
from scanner.dialect import DEFAULT_LIMITS, Template, TemplateSyntaxError, interpreter
from scanner.dialect.lexer import tokenise
from scanner.dialect.parser import parse
from scanner.dialect.source import normalise
from scanner.pipeline import analyse_template
from scanner.pool import calm_collector
from scanner.probe.capabilities import probe
from scanner.probe.profiles import CURRENT

ROUNDS = 15


def sources(folder: Path | None) -> list[bytes]:
    """The templates that parse, in name order."""
    shared = Path(os.environ.get("CAPSCAN_SHARED", Path(__file__).resolve().parents[2] / "shared"))
    chosen = folder or shared / "corpus" / "templates"
    if chosen.is_dir():
        found = [path.read_bytes() for path in sorted(chosen.glob("*.jinja"))]
    else:
        found = [text for name, text in templates().items() if name not in NOT_FOR_THE_ENGINE]
    return [source for source in found if parses(source)]


def parses(source: bytes) -> bool:
    """Whether llama.cpp would accept it."""
    try:
        Template(source)
    except TemplateSyntaxError:
        return False
    return True


def best(count: int, work: Callable[[], object]) -> float:
    """Milliseconds for each of `count` templates, in the best round."""
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times) / count * 1000


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    options = parser.parse_args(arguments)
    calm_collector()
    texts = sources(options.folder)
    count = len(texts)
    normal = [normalise(text) for text in texts]
    tokens = [tokenise(text) for text in normal]
    trees = [parse(list(stream), DEFAULT_LIMITS) for stream in tokens]
    parsed = [Template(text) for text in texts]
    stages: dict[str, Callable[[], object]] = {
        "lex": lambda: [tokenise(text) for text in normal],
        "parse": lambda: [parse(stream, DEFAULT_LIMITS) for stream in tokens],
        "compile": lambda: [interpreter.compile_body(tree) for tree in trees],
        "probe": lambda: [probe(template, CURRENT, now=0) for template in parsed],
        "all of these": lambda: [probe(Template(text), CURRENT, now=0) for text in texts],
        "whole analysis": lambda: [analyse_template(text, now=0) for text in texts],
    }
    out = sys.stdout
    out.write(f"{count} templates, {sum(map(len, texts)) / count:,.0f} bytes on average\n")
    for name, work in stages.items():
        out.write(f"{name:15} {best(count, work):6.2f} ms\n")


if __name__ == "__main__":
    main()
