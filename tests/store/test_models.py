"""How values are stored."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from sqlalchemy import Dialect
from sqlalchemy.dialects.sqlite import dialect as sqlite_dialect

from scanner.store.models import JsonText, LineRanges, SafeText, UtcDateTime
from tests.store import strategies

SQLITE: Dialect = sqlite_dialect()


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("plain é 😀\n", "plain é 😀\n"),
        ("a\0b", "a␛0000b"),
        ("\udcff", "␛DCFF"),
        ("␛0000", "␛241B0000"),
        (None, None),
    ],
)
def test_only_what_a_database_refuses_is_escaped(text: str | None, stored: str | None) -> None:
    assert SafeText().process_bind_param(text, SQLITE) == stored
    assert SafeText().process_result_value(stored, SQLITE) == text


@given(strategies.texts)
def test_any_text_comes_back_and_is_encodable(text: str) -> None:
    stored = SafeText().process_bind_param(text, SQLITE)
    assert stored is not None
    assert "\0" not in stored
    stored.encode()
    assert SafeText().process_result_value(stored, SQLITE) == text


@given(strategies.json_data)
def test_any_json_comes_back_and_is_encodable(data: object) -> None:
    stored = JsonText().process_bind_param(data, SQLITE)
    if stored is not None:
        assert "\0" not in stored
        stored.encode()
    assert JsonText().process_result_value(stored, SQLITE) == data


def test_two_surrogates_do_not_become_one_character() -> None:
    stored = JsonText().process_bind_param(["\ud83d\ude00"], SQLITE)
    assert JsonText().process_result_value(stored, SQLITE) == ["\ud83d\ude00"]


@pytest.mark.parametrize(
    ("lines", "stored"),
    [
        ((), "[]"),
        ((3,), "[[3,3]]"),
        ((1, 2, 3, 4, 5, 8), "[[1,5],[8,8]]"),
        ((1, 3, 4, 6), "[[1,1],[3,4],[6,6]]"),
    ],
)
def test_lines_are_stored_as_ranges(lines: tuple[int, ...], stored: str) -> None:
    assert LineRanges().process_bind_param(lines, SQLITE) == stored
    assert LineRanges().process_result_value(stored, SQLITE) == lines


@given(strategies.lines)
def test_any_lines_come_back(lines: tuple[int, ...]) -> None:
    stored = LineRanges().process_bind_param(lines, SQLITE)
    assert LineRanges().process_result_value(stored, SQLITE) == lines


def test_lines_that_are_not_known_come_back_as_none() -> None:
    assert LineRanges().process_bind_param(None, SQLITE) is None
    assert LineRanges().process_result_value(None, SQLITE) == ()


def test_moments_are_stored_in_utc() -> None:
    moment = datetime(2026, 1, 1, 1, 0, tzinfo=timezone(timedelta(hours=2)))
    stored = UtcDateTime().process_bind_param(moment, SQLITE)
    assert stored == datetime(2025, 12, 31, 23, 0)
    assert UtcDateTime().process_result_value(stored, SQLITE) == moment
    assert UtcDateTime().process_result_value(stored, SQLITE).tzinfo is UTC  # type: ignore[union-attr]  # not None


def test_a_moment_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="zone"):
        UtcDateTime().process_bind_param(datetime(2026, 1, 1), SQLITE)
