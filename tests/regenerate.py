"""Put all cases to real llama.cpp and write what it says into them: `python -m tests.regenerate [--check]`.

Covers `tests/cases/dialect/*.txt`, `tests/cases/capabilities.json` (the demo templates), the request bodies and JSON
texts of `tests.request_cases`, and the prompts of `tests.prefill_cases` and `tests.prompt_cases`. With `--check`
nothing is written; the exit code is 1 when any expected value differs from the engine's. Needs the extra `oracle`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from scanner import oracle
from scanner.demo import collection
from scanner.oracle import Answer, Question
from tests import cases_format, prefill_cases, prompt_cases, request_cases
from tests.cases_format import Case, CaseError, CaseFile

CAPABILITIES = cases_format.FOLDER.parent / "capabilities.json"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if anything differs")
    parser.add_argument("only", nargs="*", help="case files to do, by name without .txt (default: everything)")
    options = parser.parse_args(arguments)
    if reason := oracle.available():
        print(reason, file=sys.stderr)  # noqa: T201 - a command-line program
        return 2
    names = options.only or sorted(path.stem for path in cases_format.FOLDER.glob("*.txt"))
    made = {path: cases_text(path) for path in (cases_format.FOLDER / f"{name}.txt" for name in names)}
    if not options.only:
        made[CAPABILITIES] = capabilities_text()
        made |= request_cases.regenerated()
        made |= prefill_cases.regenerated()
        made |= prompt_cases.regenerated()
    differing = [path for path, text in made.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in differing:
        print(f"{path.name}: {'differs' if options.check else 'written'}")  # noqa: T201 - a command-line program
        if not options.check:
            path.write_text(made[path], encoding="utf-8")
    return 1 if options.check and differing else 0


def cases_text(path: Path) -> str:
    """The text of a case file with every expected part as the engine has it now."""
    file = cases_format.parse(path.read_text(encoding="utf-8"))
    questions = [Question(case.source, (cases_format.REQUEST,)) for case in file.cases]
    answers = oracle.ask_all(questions)
    return cases_format.dump(CaseFile(file.remark, tuple(map(answered, file.cases, answers))))


def answered(case: Case, answer: Answer) -> Case:
    """The case with the engine's answer. Raises ValueError where the engine died: such a case has no value."""
    if answer.reason is None and answer.replies[0].error is None:
        return replace(case, output=answer.replies[0].prompt, error=None)
    text = answer.reason or answer.replies[0].error or ""
    if text.startswith(("crashed: ", "timed out: ")):
        raise ValueError(f"case {case.name!r}: {text}")
    error = oracle.parse_error(text, case.source)
    kind = None if answer.parsed else error.kind.replace("bare", "parser")
    return replace(case, output=None, error=CaseError(error.message, kind, error.node, error.offset))


def capabilities_text() -> str:
    """What `/props` says of every demo template, as JSON: flags, or why there are none."""
    templates = collection.templates()
    asked = {name: source for name, source in templates.items() if name not in collection.NOT_FOR_THE_ENGINE}
    answers = oracle.ask_all(Question(source) for source in asked.values())
    entries: dict[str, object] = {
        name: {"capabilities": answer.capabilities} if answer.started else {"refused": answer.reason}
        for name, answer in zip(asked, answers, strict=True)
    }
    entries |= {name: {"excluded": reason} for name, reason in collection.NOT_FOR_THE_ENGINE.items()}
    return json.dumps(entries, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.exit(main())
