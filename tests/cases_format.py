"""The text files under `tests/cases/dialect`: templates, and what real llama.cpp makes of them.

A file is a sequence of blocks; what stands before the first is a remark for people.

    === name
    template
    ---
    expected output

Where the engine fails, the expected part is the message, the node type and the byte offset (of the source as the lexer
counts it, see `scanner.oracle.as_lexed`), the last two where the engine gives them:

    error: Cannot perform operation on null values
    at: BinaryExpression 5

and `error (lexer): …` or `error (parser): …` with `at: 5` for a template that does not parse.

A template or an output is written as it is if no white space stands at its ends, it is not empty, and nothing in it
could be taken for a part of this format. Any other is one line, `json: ` and a JSON string: `json: "a\\n"`. Bytes that
are not UTF-8 are lone surrogates there (Python's `surrogateescape`); in outputs the engine's own server has replaced
them with U+FFFD, so an implementation's bytes are to be decoded with `errors="replace"` before they are compared.

The values were made with the request `REQUEST`; few cases use its variables.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "cases" / "dialect"

REQUEST: Mapping[str, object] = {"messages": [{"role": "user", "content": "hi"}]}
"""The body of the request. Its variables are `messages`, `bos_token` (`<s>`), `eos_token` (`</s>`),
`add_generation_prompt` (true), `enable_thinking`, `datetime` and `date_string`."""

_ERROR = re.compile(
    r"error(?: \((?P<kind>lexer|parser)\))?: (?P<message>[^\n]*)"
    r"(?:\nat:(?: (?P<node>[A-Za-z]+))? (?P<offset>\d+))?"
)


@dataclass(frozen=True, slots=True)
class CaseError:
    """An error as expected. `kind`: None for an error of a run, else `lexer` or `parser`."""

    message: str
    kind: str | None = None
    node: str | None = None
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One template and what it gives: `output` or `error`; neither when nobody asked the engine yet."""

    name: str
    template: str
    output: str | None = None
    error: CaseError | None = None

    @property
    def source(self) -> bytes:
        """The template's bytes."""
        return self.template.encode(errors="surrogateescape")


@dataclass(frozen=True, slots=True)
class CaseFile:
    """A whole file: its remark and its cases."""

    remark: str
    cases: tuple[Case, ...]


def load(path: Path) -> list[Case]:
    """The cases of one file. Raises ValueError on a block that is not of the format, or a name used twice."""
    cases = list(parse(path.read_text(encoding="utf-8")).cases)
    if len({case.name for case in cases}) < len(cases):
        raise ValueError(f"{path.name}: a case name stands twice")
    return cases


def parse(text: str) -> CaseFile:
    """Read the text of a file. Raises ValueError on a block that is not of the format."""
    remark, *blocks = re.split(r"^=== ", text, flags=re.MULTILINE)
    return CaseFile(remark.strip(), tuple(_parse_block(block) for block in blocks))


def dump(file: CaseFile) -> str:
    """The text of a file; `parse` reads it back."""
    blocks = [file.remark, *(f"=== {case.name}\n{_text(case.template)}\n---\n{_expected(case)}" for case in file.cases)]
    return "\n\n".join(block.strip("\n") for block in blocks if block) + "\n"


def _parse_block(block: str) -> Case:
    name, newline, rest = block.partition("\n")
    template, bar, expected = rest.partition("\n---\n")
    if not newline or not bar:
        raise ValueError(f"case {name!r}: a template, a line '---' and an expected part are needed")
    output, error = _parse_expected(expected.strip("\n"))
    return Case(name, _parse_text(template), output, error)


def _parse_expected(text: str) -> tuple[str | None, CaseError | None]:
    if not text:
        return None, None
    found = _ERROR.fullmatch(text)
    if not found:
        return _parse_text(text), None
    offset = None if found["offset"] is None else int(found["offset"])
    return None, CaseError(_parse_text(found["message"]), found["kind"], found["node"], offset)


def _parse_text(text: str) -> str:
    return str(json.loads(text.removeprefix("json: "))) if text.startswith("json: ") else text


def _expected(case: Case) -> str:
    return "" if case.output is None and case.error is None else "\n".join(_expected_lines(case))


def _expected_lines(case: Case) -> Iterator[str]:
    error = case.error
    if error is None:
        yield _text(case.output or "")
        return
    kind = f" ({error.kind})" if error.kind else ""
    message = _as_json(error.message) if "\n" in error.message else _text(error.message)
    yield f"error{kind}: {message}"
    if error.offset is not None:
        yield " ".join(["at:", *([error.node] if error.node else []), str(error.offset)])


def _text(text: str) -> str:
    return text if _is_plain(text) else _as_json(text)


def _as_json(text: str) -> str:
    # Letters stay readable, all that an editor might change or hide is escaped.
    whole = json.dumps(text, ensure_ascii=False)
    return "json: " + re.sub(r"[^ -~¡-\u1fff\u3000-\ud7ff]", lambda found: json.dumps(found[0])[1:-1], whole)


def _is_plain(text: str) -> bool:
    looks_like_format = re.search(r"^(=== |---$|json: |error(?: \(\w+\))?: )", text, re.MULTILINE)
    unseen = re.search(r"[^\n -~¡-\u1fff\u3000-\ud7ff]", text)
    return text != "" and text == text.strip() and not looks_like_format and not unseen
