"""What goes wrong in a template comes back as a value: its kind, its message, and the template's line."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from scanner.reference import ErrorKind, ReferenceError, ReferenceSyntaxError, ReferenceTemplate  # noqa: A004
from tests.reference.cases import CASES, VARIABLES, Case

SYNTAX, RAISED, RUNTIME, LIMIT = ErrorKind.SYNTAX, ErrorKind.RAISED, ErrorKind.RUNTIME, ErrorKind.LIMIT


@pytest.fixture(autouse=True)
def usual_depth() -> Iterator[None]:
    """Python's own limit of nesting, which the tests of our engine raise."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)
    yield
    sys.setrecursionlimit(limit)


def failure(source: bytes | str) -> ReferenceError:
    """How a template fails, when it is compiled or when it is rendered."""
    try:
        result = ReferenceTemplate(source).render(VARIABLES)
    except ReferenceSyntaxError as error:
        return ReferenceError(error.kind, error.message, error.line)
    assert result.error is not None and not result.ok and result.output == ""
    return result.error


@pytest.mark.parametrize(
    ("source", "kind", "message", "line"),
    [
        pytest.param("a\n{% if %}", SYNTAX, "Expected an expression, got 'end of statement block'", 2, id="syntax"),
        pytest.param("\n\n{{ 1", SYNTAX, "unexpected end of template", 3, id="end of template"),
        pytest.param("{% for x in y %}\n\n", SYNTAX, "Unexpected end of template", 1, id="a block without an end"),
        pytest.param("\n{{ 1 | nothing }}", SYNTAX, "No filter named 'nothing'.", 2, id="unknown filter"),
        pytest.param(b"a\n\xc3(", SYNTAX, "not UTF-8: invalid continuation byte at byte 2", 2, id="not UTF-8"),
        pytest.param("{{ " + "9" * 5000 + " }}", SYNTAX, "ValueError: Exceeds the limit", None, id="a long number"),
        pytest.param(
            "{% for a in b %}{% generation %}{% break %}{% endgeneration %}{% endfor %}",
            *(SYNTAX, "SyntaxError: 'break' outside loop", None),
            id="what Python cannot compile",
        ),
        pytest.param("{{ " + "(" * 9999 + "1" + ")" * 9999 + " }}", LIMIT, "nested too deep", None, id="deep"),
        pytest.param("a\n\n{{ raise_exception('no ' ~ 1) }}", RAISED, "no 1", 3, id="raised"),
        pytest.param("a\n{{ raise_exception(none) }}", RAISED, "None", 2, id="raised without a text"),
        pytest.param("\n{{ nothing.a }}", RUNTIME, "'nothing' is undefined", 2, id="undefined"),
        pytest.param("\n{{ data.c.d }}", RUNTIME, "'dict object' has no attribute 'c'", 2, id="undefined inside"),
        pytest.param("\n\n{{ 1 + 'a' }}", RUNTIME, "TypeError: unsupported operand", 3, id="of Python"),
        pytest.param("\n{{ tags.append(1) }}", RUNTIME, "access to attribute 'append'", 2, id="of the sandbox"),
        pytest.param("{{ range(10 ** 6) }}", RUNTIME, "OverflowError: Range too big", 1, id="long range"),
        pytest.param("\n{{ strftime_now('\udc80') }}", RUNTIME, "UnicodeEncodeError", 2, id="not a format"),
        pytest.param(
            "{% macro m() %}\n{{ raise_exception('in m') }}\n{% endmacro %}\n\n{{ m() }}",
            *(RAISED, "in m", 2),
            id="in a macro",
        ),
        pytest.param(
            "{% macro m() %}\n{{ caller() }}\n{% endmacro %}\n{% call m() %}\n{{ raise_exception('in') }}{% endcall %}",
            *(RAISED, "in", 5),
            id="in a call",
        ),
        pytest.param(
            "{% for t in tags %}\n{{ t }}\n{% generation %}\n{{ 1 // 0 }}{% endgeneration %}{% endfor %}",
            *(RUNTIME, "ZeroDivisionError: integer division or modulo by zero", 4),
            id="in a generation block",
        ),
        pytest.param("{% macro m() %}\n{{ m() }}\n{% endmacro %}{{ m() }}", LIMIT, "nested too deep", 2, id="endless"),
        pytest.param(
            "{% for i in range(18) %}\n{{ 'x' * 1024 ** 2 }}{% endfor %}",
            *(LIMIT, "printed more than 16 MiB", None),
            id="long",
        ),
        pytest.param("{{ 'é' * (9 * 1024 ** 2) }}", LIMIT, "printed more than 16 MiB", None, id="long in bytes"),
    ],
)
def test_a_failure(source: bytes | str, kind: ErrorKind, message: str, line: int | None) -> None:
    error = failure(source)
    assert (error.kind, error.message[: len(message)], error.line) == (kind, message, line)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES if case.output is None])
def test_a_case_fails(case: Case) -> None:
    assert failure(case.template).kind is not LIMIT


def test_a_long_message_is_cut() -> None:
    message = failure("{{ raise_exception('x' * 100000) }}").message
    assert message == "x" * 4096 + "…"


def test_a_message_that_cannot_be_written() -> None:
    source = """
        {%- set box = namespace(inside=[]) -%}
        {%- for i in range(5000) %}{% set box.inside = [box.inside] %}{% endfor -%}
        {{ raise_exception(box.inside) }}"""
    assert failure(source).message == "an error without a text"


def test_the_largest_output() -> None:
    result = ReferenceTemplate("{{ 'é' * (8 * 1024 ** 2) }}").render({})
    assert result.ok and len(result.output.encode()) == 16 * 1024**2


def test_a_template_is_used_again_after_a_failure() -> None:
    template = ReferenceTemplate("{{ raise_exception('no') if bad else 'yes' }}")
    assert [template.render({"bad": bad}).ok for bad in (False, True, False)] == [True, False, True]
