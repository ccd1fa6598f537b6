"""JSON as llama.cpp's JSON library reads and writes it."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.chat.json_numbers import float_text
from scanner.chat.json_text import MAX_DEPTH, JsonTextError, dump_json, parse_json
from tests.request_cases import JSON_TEXTS, as_bytes, load

CASES = load(JSON_TEXTS)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


def outcome(text: bytes) -> dict[str, str]:
    try:
        return {"dumped": dump_json(parse_json(text))}
    except JsonTextError as error:
        return {"error": error.message}


@pytest.mark.parametrize("case", [pytest.param(case, id=f"{case['text'][:30]!a}-{n}") for n, case in enumerate(CASES)])
def test_a_text_is_read_and_written_as_the_engine_does_it(case: dict[str, Any]) -> None:
    assert {"text": case["text"], **outcome(as_bytes(case["text"]))} == case


@given(VALUES)
def test_what_is_written_is_read_back(value: Any) -> None:
    back = parse_json(dump_json(value))
    # Python's text tells 1 from 1.0 from true, and 0.0 from -0.0.
    assert repr(back) == repr(value)
    assert repr(json.loads(dump_json(value))) == repr(value)


@given(VALUES, st.integers(0, 4))
def test_blanks_do_not_matter(value: Any, indent: int) -> None:
    assert repr(parse_json(dump_json(value, indent=indent))) == repr(value)
    assert repr(parse_json(json.dumps(value, indent=indent))) == repr(value)


@given(VALUES)
def test_what_was_written_is_written_again(value: Any) -> None:
    text = dump_json(value)
    assert dump_json(parse_json(text)) == text
    assert "\n" not in text


@given(st.binary(max_size=40) | st.text(max_size=40) | st.text('[]{}",:0123456789.eE+-truefalsn\\ \n', max_size=30))
def test_reading_raises_nothing_but_its_own_error(text: bytes | str) -> None:
    try:
        value = parse_json(text)
    except JsonTextError as error:
        assert error.message.startswith("[json.exception.")
    else:
        assert repr(parse_json(dump_json(value))) == repr(value)


@given(VALUES, st.integers(0, 60), st.binary(max_size=3))
def test_a_spoilt_text_is_an_error_or_a_value(value: Any, at: int, spoilt: bytes) -> None:
    text = dump_json(value).encode()
    outcome(text[:at] + spoilt + text[at + 1 :])


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_is_written_so_that_it_reads_back(number: float) -> None:
    text = float_text(number)
    assert repr(float(text)) == repr(number)
    assert len(text) <= 24
    assert "." in text or "e" in text


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_null(number: float) -> None:
    assert dump_json([number]) == "[null]"


def test_texts_of_python_may_hold_bytes_that_are_not_utf8() -> None:
    for text in ('"\udcff"', '"\ud800"', b'"\xff"'):
        with pytest.raises(JsonTextError, match="ill-formed UTF-8 byte"):
            parse_json(text)
    assert parse_json('"\udcc3\udca9"') == "é"


def test_nesting_has_a_limit() -> None:
    deep = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert dump_json(parse_json(deep)) == deep
    for text in (f"[{deep}]", "[" * 1_000_000, '{"a":' * 100_000):
        with pytest.raises(JsonTextError, match="a limit of Capscan's own") as caught:
            parse_json(text)
        assert caught.value.ours


def test_writing_has_the_same_limit() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(JsonTextError, match="a limit of Capscan's own"):
        dump_json(endless)


@pytest.mark.parametrize(
    "value",
    ["\ud800", {"\udcff": 1}, {1: 2}, b"x", {1}, 10**400],
    ids=["surrogate", "surrogate in a key", "integer key", "bytes", "set", "long integer"],
)
def test_what_is_no_json_is_not_written(value: object) -> None:
    with pytest.raises(JsonTextError) as caught:
        dump_json([value])
    assert caught.value.ours


def test_a_long_number_takes_no_long_time() -> None:
    with pytest.raises(JsonTextError, match="number overflow"):
        parse_json("9" * 100_000)
    assert parse_json("0." + "1" * 100_000) == pytest.approx(1 / 9)
