"""Whatever the bytes: a template parses or is refused with a place, and a run gives a result."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from scanner.dialect import Limits, Template, TemplateSyntaxError
from scanner.dialect.lexer import tokenise
from scanner.dialect.source import Lines, normalise
from scanner.dialect.tokens import Kind

LIMITS = Limits(steps=20_000, output_bytes=50_000, sequence_items=5_000)

WORDS = st.sampled_from(
    [
        *("{{", "}}", "{%", "%}", "{{-", "-}}", "{%-", "-%}", "{#", "#}", "\n", " ", "if", "else", "elif", "endif"),
        *("for", "in", "endfor", "set", "endset", "macro", "endmacro", "call", "endcall", "filter", "endfilter"),
        *("break", "continue", "is", "not", "and", "or", "x", "messages", "loop", "range(3)", "namespace()", "m()"),
        *("1", "-1", "2.5", "'a'", '"b"', "none", "true", "[", "]", "(", ")", "{", "}", ",", ":", ".", "|", "="),
        *("==", "<", "~", "+", "-", "*", "/", "%", "tojson", "length", "join", "upper", "defined", "string", "items"),
    ]
)
SOURCES = st.lists(WORDS, max_size=25).map(" ".join) | st.lists(WORDS, max_size=25).map("".join)
VARIABLES = {"messages": [{"role": "user", "content": "hi"}], "x": [1, "a", None, {"k": [2.5]}]}


def check(source: bytes) -> None:
    try:
        template = Template(source)
    except TemplateSyntaxError as error:
        assert error.line >= 1
        assert error.column >= 1
        return
    result = template.run(VARIABLES, limits=LIMITS)
    assert result.ok is (result.error is None)
    assert b"".join(part.text for part in result.parts) == result.output


@given(SOURCES)
@settings(max_examples=400, deadline=None)
def test_any_arrangement_of_words_is_handled(source: str) -> None:
    check(source.encode())


@given(SOURCES)
@settings(max_examples=300, deadline=None)
def test_any_expression_is_handled(source: str) -> None:
    check(b"{{ " + source.encode() + b" }}")


@given(st.binary(max_size=200))
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_handled(source: bytes) -> None:
    check(source)


@given(st.text(alphabet="ab \n\r\t{}%#", max_size=60))
@settings(max_examples=300, deadline=None)
def test_text_without_tags_is_printed_as_it_is(text: str) -> None:
    source = text.encode()
    if any(sign in source for sign in (b"{{", b"{%", b"{#")):
        return
    assert Template(source).run({}).output == normalise(source)


@given(SOURCES)
@settings(max_examples=200, deadline=None)
def test_tokens_stand_in_order_and_in_the_source(source: str) -> None:
    text = normalise(source.encode())
    try:
        tokens = tokenise(text)
    except Exception as error:
        assert type(error).__name__ == "SyntaxFault"
        return
    assert [token.offset for token in tokens] == sorted(token.offset for token in tokens)
    for token in tokens:
        if token.kind is Kind.NAME:
            assert text[token.offset :].startswith(token.text)


@given(st.binary(max_size=80), st.integers(0, 80))
def test_a_place_counts_lines_and_columns_from_one(text: bytes, offset: int) -> None:
    line, column = Lines(text).place(offset)
    lines = text[:offset].split(b"\n")
    assert (line, column) == (len(lines), len(lines[-1]) + 1)


@given(
    st.recursive(st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8), st.lists, max_leaves=8)
)
@settings(max_examples=200, deadline=None)
def test_tojson_gives_json(data: object) -> None:
    import json

    result = Template("{{ x|tojson }}").run({"x": data})
    assert json.loads(result.output) == data
