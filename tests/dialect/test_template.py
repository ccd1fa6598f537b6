"""The dialect's public face: parts, errors with places, reads."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from scanner.dialect import ErrorKind, RenderedPart, SyntaxKind, Template, TemplateSyntaxError, from_python


def reads(source: str, **variables: object) -> dict[str, tuple[bool, tuple[str, ...], int | None, int | None]]:
    result = Template(source).run(variables)
    return {read.path: (read.used, read.ops, read.line, read.column) for read in result.reads}


def test_output_keeps_apart_what_came_from_the_request() -> None:
    result = Template("<{{ name }}>{{ name|upper }}{{ 'x' ~ name }}").run({"name": "bo"})
    assert result.parts == (
        RenderedPart(b"<", False),
        RenderedPart(b"bo", True),
        RenderedPart(b">", False),
        RenderedPart(b"BO", True),
        RenderedPart(b"x", False),
        RenderedPart(b"bo", True),
    )
    assert result.output == b"<bo>BOxbo"


def test_input_is_not_marked_when_not_asked_for() -> None:
    result = Template("{{ name }}").run({"name": "bo"}, mark_input=False)
    assert result.parts == (RenderedPart(b"bo", False),)


def test_a_filter_that_makes_new_text_loses_the_mark() -> None:
    assert Template("{{ [a]|join }}").run({"a": "x"}).parts == (RenderedPart(b"x", False),)
    assert Template("{{ a|replace('x', 'y') }}").run({"a": "x"}).parts == (RenderedPart(b"y", True),)


def test_a_run_time_error_names_its_node_and_place() -> None:
    result = Template("{# c #}\n{{ 'a'\n  ~ (1 - 'b') }}").run({})
    assert result.error is not None
    assert (result.error.kind, result.error.node, result.error.line, result.error.column) == (
        ErrorKind.RUNTIME,
        "BinaryExpression",
        3,
        8,
    )
    assert result.error.engine_text.startswith("\nError executing BinaryExpression at position ")


def test_the_templates_own_exception_is_told_apart() -> None:
    result = Template("{{ raise_exception('no ' ~ role) }}").run({"role": "critic"})
    assert result.error is not None
    assert (result.error.kind, result.error.message) == (ErrorKind.RAISED, "Jinja Exception: no critic")


@pytest.mark.parametrize(
    ("source", "kind"),
    [("{{ 1 is escaped }}", ErrorKind.NOT_IMPLEMENTED), ("{% break %}", ErrorKind.LOOP_CONTROL)],
)
def test_errors_that_llama_cpp_does_not_wrap_have_no_place(source: str, kind: ErrorKind) -> None:
    error = Template(source).run({}).error
    assert error is not None
    assert (error.kind, error.node, error.offset) == (kind, None, None)


def test_a_syntax_error_has_a_place() -> None:
    with pytest.raises(TemplateSyntaxError) as caught:
        Template("line one\r\n{% if x y %}{% endif %}")
    error = caught.value
    assert (error.kind, error.message) == (SyntaxKind.PARSER, "parser: Parser Error: Expected %} (Got y)")
    assert (error.offset, error.line, error.column) == (17, 2, 9)
    assert error.engine_text.endswith("^")


def test_reads_name_the_first_place_and_all_operations() -> None:
    found = reads(
        "{{ m.role }}\n{% if m.role is string %}{{ m.role|upper }}{% endif %}{{ m['n'] }}", m={"role": "u", "n": 1}
    )
    assert found == {
        "m": (True, ("object_access", "role"), 1, 4),
        "m.role": (True, ("test_is_string", "upper"), 1, 6),
        "m.n": (True, (), 2, 60),
    }


def test_get_leaves_no_mark_on_what_it_gives() -> None:
    assert set(reads("{{ m.get('content') }}", m={"content": "x"})) == {"m"}
    assert set(reads("{% for k, v in m.items() %}{{ k }}{% endfor %}", m={"content": "x"})) == {"m"}


def test_tojson_reads_everything_inside() -> None:
    found = reads("{{ m|tojson }}", m={"a": [1, {"b": "c"}]})
    assert set(found) == {"m", "m.a", "m.a[0]", "m.a[1]", "m.a[1].b"}
    assert all(used for used, *_ in found.values())


def test_paths_start_at_what_was_given_not_at_a_later_name() -> None:
    assert set(reads("{% set x = m[0] %}{{ x.a }}", m=[{"a": 1}])) == {"m", "m[0]", "m[0].a"}


def test_equal_values_are_told_apart() -> None:
    assert "m[1].a" not in reads("{{ m[0].a }}", m=[{"a": 1}, {"a": 1}])


def test_one_value_under_two_names_has_one_mark() -> None:
    effort = from_python("low")
    assert set(reads("{{ strength }}", effort=effort, strength=effort)) == {"effort"}


@pytest.mark.parametrize(
    ("number", "printed"),
    [
        (2**63 - 1, b"9223372036854775807"),
        (2**63, b"-9223372036854775808"),
        (2**64 - 1, b"-1"),
        (2**64, b"18446744073709551616.0"),
        (-(2**63), b"-9223372036854775808"),
        (-(2**63) - 1, b"-9223372036854775808.0"),
    ],
)
def test_large_integers_wrap_or_become_floats_as_the_engine_has_them(number: int, printed: bytes) -> None:
    assert Template("{{ n }}").run({"n": number}).output == printed


def test_statistics_can_be_left_out() -> None:
    assert Template("{{ a }}").run({"a": 1}, statistics=False).reads == ()


def test_a_template_can_be_run_again_and_keeps_nothing() -> None:
    template = Template("{% set _ = l.append(1) %}{{ l|length }}")
    assert [template.run({"l": []}).output for _ in range(2)] == [b"1", b"1"]


@pytest.mark.parametrize("now", [0, 0.0, datetime(1970, 1, 1, tzinfo=UTC)])
def test_the_clock_is_injected(now: float, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    assert Template("{{ strftime_now('%d %b %Y') }}").run({}, now=now).output == b"01 Jan 1970"


def test_text_that_is_not_utf8_passes_through() -> None:
    assert Template(b"\xff{{ a }}").run({"a": b"\xfe"}).output == b"\xff\xfe"


def test_a_variable_of_an_impossible_type_is_refused() -> None:
    with pytest.raises(TypeError, match="object"):
        Template("").run({"a": object()})
