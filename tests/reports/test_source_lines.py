"""Places in a source: byte columns, llama.cpp's line ends, marks that meet."""

from __future__ import annotations

import pytest

from reports.source_lines import LineNote, Segment, shortened_source, source_lines
from scanner.results import ParseError, ProbeRun, Read, RunError, Severity
from tests.store.examples import finding


def run_with(*reads: Read, error: RunError | None = None) -> ProbeRun:
    return ProbeRun("system_role", error is None, "", reads=reads, error=error)


def texts(source: bytes, *reads: Read) -> list[list[tuple[str, bool]]]:
    lines = source_lines(source, [run_with(*reads)], (), None)
    return [[(piece.text, bool(piece.paths)) for piece in line.segments] for line in lines]


def at(column: int, line: int = 1) -> Read:
    return Read("x", used=True, ops=(), line=line, column=column)


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        (b"", [""]),
        (b"a", ["a"]),
        (b"a\n", ["a"]),
        (b"a\n\n", ["a", ""]),
        (b"a\r\nb\rc", ["a\r", "b\r", "c"]),
        (b"\n", [""]),
        (b"a\r", ["a\r", ""]),
        (b"a\r\n", ["a\r"]),
    ],
)
def test_lines_are_those_that_llama_cpp_counts(source: bytes, lines: list[str]) -> None:
    found = source_lines(source, (), (), None)
    assert ["".join(piece.text for piece in line.segments) for line in found] == lines
    assert [line.number for line in found] == list(range(1, len(lines) + 1))


def test_columns_count_bytes() -> None:
    assert texts("é{{ name }}".encode(), at(6)) == [[("é{{ ", False), ("name", True), (" }}", False)]]


def test_a_quoted_key_is_marked_whole_and_a_neighbour_ends_it() -> None:
    assert texts(b"m['role'].x", at(3), at(1)) == [[("m", True), ("[", False), ("'role'", True), ("].x", False)]]
    assert texts(b"abcdef", at(1), at(3)) == [[("ab", True), ("cdef", True)]]


def test_places_outside_the_source_are_left_out() -> None:
    assert texts(b"ab", at(0), at(3), at(1, line=9)) == [[("ab", False)]]


def test_bytes_that_are_no_text_stay_in_sight() -> None:
    assert texts(b"\xff", at(1)) == [[("\udcff", True)]]


def test_a_place_tells_what_was_read_there_and_by_which_probes() -> None:
    looked_at = Read("y", used=False, ops=("length",), line=1, column=1)
    (line,) = source_lines(b"ab", [run_with(at(1), looked_at)], (), None)
    assert line.segments == (Segment("ab", "1:1", ("x", "y"), ("system_role",), True),)


def test_notes_stand_beside_their_line() -> None:
    error = RunError("raised", "no", "CallExpression", 1, 1, 2)
    found = finding(Severity.ERROR, "bad")
    first, _, third = source_lines(b"a\nb\nc", [run_with(error=error)] * 2, [found], ParseError("parser", "odd", 3, 1))
    assert first.notes == (LineNote("failed", "system_role, system_role", "no", ("system_role",)),)
    assert third.notes == (LineNote("error", "some-rule", "bad"), LineNote("failed", "parser", "odd"))


def test_what_closes_a_block_is_shown_like_what_it_holds() -> None:
    lines = source_lines(b"{% if x %}\na\n{% endif %}\nb", (), (), None, {1: "1", 2: "0", 4: "1"})
    assert [(line.ran, line.under) for line in lines] == [("1", "1"), ("0", "0"), ("", "0"), ("1", "1")]


def test_a_source_of_megabytes_is_cut_at_the_end_of_a_line() -> None:
    assert shortened_source(b"a\n" * 10) == (b"a\n" * 10, 0)
    assert shortened_source(b"a\n" * 200_000) == (b"a\n" * 150_000, 100_000)
    assert shortened_source(b"a" * 300_001) == (b"a" * 300_000, 1)
