"""The ledger in `scanner/dialect/README.md`: every line says what both engines give, and is held to it here.

A line is a row of a Markdown table, `| id | template | llama.cpp | Jinja2 | remark |`. Template and results are code
spans, in which a backslash before a bar is Markdown's, and any other an escape as in JSON. A result is the output,
*nothing* for an empty one, or *error* and the message of llama.cpp, the class of Jinja2.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import pytest
from jinja2.sandbox import ImmutableSandboxedEnvironment

import scanner.dialect
from scanner import oracle
from scanner.dialect import Template, TemplateSyntaxError
from tests.cases_format import REQUEST, Case
from tests.dialect.test_cases import VARIABLES, without_cpp_types
from tests.differential import engine
from tests.regenerate import answered

LEDGER = Path(scanner.dialect.__file__).with_name("README.md")
ROW = re.compile(r"^\| (?!id )(?P<id>[a-z0-9-]+) \| (?P<cells>.*) \|$", re.MULTILINE)
LEAST = 40


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the ledger, its results as they stand there."""

    id: str
    template: str
    ours: str
    jinja2: str


def lines() -> Iterator[Line]:
    for row in ROW.finditer(LEDGER.read_text(encoding="utf-8")):
        template, ours, theirs, _remark = re.split(r" (?<!\\)\| ", row["cells"])
        yield Line(row["id"], decoded(template), ours, theirs)


def decoded(cell: str) -> str:
    text = re.sub(r"^`+ ?| ?`+$", "", cell).replace("\\|", "|").replace('"', '\\"')
    return str(json.loads(f'"{text}"'))


def shown(output: str) -> str:
    """An output as a cell."""
    if not output:
        return "*nothing*"
    text = json.dumps(output, ensure_ascii=False)[1:-1].replace('\\"', '"').replace("|", "\\|")
    return f"`{text}`"


def failed(message: str) -> str:
    """An error as a cell."""
    return f"*error* {shown(message)}"


def ours(source: str) -> str:
    try:
        result = Template(source).run(VARIABLES)
    except TemplateSyntaxError as error:
        return failed(error.message.removeprefix("lexer: ").removeprefix("parser: "))
    return shown(result.output.decode("utf-8", "replace")) if result.error is None else failed(result.error.message)


def by_jinja2(source: str) -> str:
    try:
        return shown(environment().from_string(source).render(VARIABLES))
    except (jinja2.TemplateError, TypeError, ValueError, AttributeError, ZeroDivisionError) as error:
        return failed(type(error).__name__)


def environment() -> ImmutableSandboxedEnvironment:
    """Python Jinja2 as transformers sets it up for chat templates."""
    made = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    made.filters["tojson"] = to_json
    made.globals["raise_exception"] = raise_exception
    return made


def to_json(value: object, ensure_ascii: bool = False, **options: Any) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, **options)


def raise_exception(message: str) -> str:
    raise jinja2.TemplateError(message)


@pytest.mark.parametrize("line", [pytest.param(line, id=line.id) for line in lines()])
def test_both_engines_give_what_the_line_says(line: Line) -> None:
    assert (ours(line.template), by_jinja2(line.template)) == (line.ours, line.jinja2)
    assert line.ours != line.jinja2, "the ledger is about differences"


def test_every_row_is_read_and_none_stands_twice() -> None:
    text = LEDGER.read_text(encoding="utf-8")
    rows = [row for row in re.findall(r"^\|.*", text, re.MULTILINE) if not re.match(r"\|(---| id )", row)]
    ids = [line.id for line in lines()]
    assert len(ids) == len(rows) >= LEAST
    assert len(set(ids)) == len(ids)


@pytest.mark.skipif(bool(oracle.available()), reason=oracle.available() or "")
def test_the_real_engine_gives_what_the_lines_say() -> None:
    ledger = list(lines())
    questions = [oracle.Question(line.template.encode(), (REQUEST,)) for line in ledger]
    for line, answer in zip(ledger, engine.ask_all(questions, workers=2, timeout=30), strict=True):
        case = answered(Case(line.id, line.template), answer)
        theirs = shown(case.output or "") if case.error is None else failed(case.error.message)
        assert without_cpp_types(theirs) == without_cpp_types(line.ours)
