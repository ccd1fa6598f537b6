"""A template's source as lines, with what the probes read, where they failed and what was found beside it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from scanner.judge.verdicts import DECIDING_PROBES, DECIDING_VALUES
from scanner.results import Finding, ParseError, ProbeRun, Read

# llama.cpp takes each of these for one line end; the marks below keep the carriage returns in sight.
_LINE = re.compile(rb"([^\r\n]*)(\r\n|\r|\n|\Z)")
_TOKEN = re.compile(rb"\w+|'[^'\n]*'|\"[^\"\n]*\"|[\x80-\xff]+|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a line. `paths` are the values of a request read exactly here (none: plain text), `probes` those
    that read them; `used` says that llama.cpp counts one of them as used, `decides` names the capabilities that one of
    these reads decides. `place` is `line:column`."""

    text: str
    place: str = ""
    paths: tuple[str, ...] = ()
    probes: tuple[str, ...] = ()
    used: bool = False
    decides: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LineNote:
    """A remark beside a line: `kind` is a severity, or `failed`; `source` is the rule or the probes behind it, which
    decide the capabilities in `decides` by failing."""

    kind: str
    source: str
    text: str
    decides: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceLine:
    """One line, its number from 1. Bytes that are not UTF-8 are lone surrogates in `text`, as Python decodes them.
    `ran` is the key of its gutter: a digit a probe, 1 where that ran the line; empty where there is nothing to run.
    `under` is the key of the last line up to here that has one: what closes a block is shown like what it holds."""

    number: int
    segments: tuple[Segment, ...]
    notes: tuple[LineNote, ...] = ()
    ran: str = ""
    under: str = ""


@dataclass(slots=True)
class _Reading:
    """What was read at one place, gathered over the probes."""

    paths: dict[str, None]
    probes: dict[str, None]
    decides: dict[str, None]
    used: bool = False


_Readings = dict[int, dict[int, _Reading]]


def source_lines(
    source: bytes,
    runs: Sequence[ProbeRun],
    findings: Iterable[Finding],
    parse_error: ParseError | None,
    ran: Mapping[int, str] | None = None,
) -> tuple[SourceLine, ...]:
    """The lines of a template as llama.cpp counts them; places outside the source are left out. `ran` has the key of a
    line's gutter, where it is known which lines ran."""
    readings = _readings(runs)
    notes = _notes(runs, findings, parse_error)
    keys = ran or {}
    lines = []
    under = ""
    for number, text in enumerate(_split(source), 1):
        key = keys.get(number, "")
        under = key or under
        segments = _segments(number, text, readings.get(number, {}))
        lines.append(SourceLine(number, segments, tuple(notes.get(number, ())), key, under))
    return tuple(lines)


MOST_BYTES = 300_000
"""Of a source that a page shows; published templates have a tenth of it."""


def shortened_source(source: bytes) -> tuple[bytes, int]:
    """The source up to the end of a line within MOST_BYTES, or up to there, and how many bytes are left out."""
    if len(source) <= MOST_BYTES:
        return source, 0
    end = source.rfind(b"\n", 0, MOST_BYTES) + 1 or MOST_BYTES
    return source[:end], len(source) - end


def _split(source: bytes) -> list[bytes]:
    lines = [match[1] + match[2].rstrip(b"\n") for match in _LINE.finditer(source)]
    # The pattern also matches the nothing at the end, which is a line only behind a lone carriage return.
    return lines[:-1] if len(lines) > 1 and not source.endswith(b"\r") else lines


def _readings(runs: Sequence[ProbeRun]) -> _Readings:
    places: _Readings = {}
    for run in runs:
        for read in run.reads:
            if read.line is None or read.column is None:
                continue
            reading = places.setdefault(read.line, {}).setdefault(read.column, _Reading({}, {}, {}))
            reading.paths[read.path] = reading.probes[run.name] = None
            reading.decides |= dict.fromkeys(_decides(run, read))
            reading.used = reading.used or read.used
    return places


def _decides(run: ProbeRun, read: Read) -> list[str]:
    return [
        name for name, probes in DECIDING_PROBES.items() if run.name in probes and DECIDING_VALUES[name] == read.path
    ]


def _segments(number: int, line: bytes, readings: dict[int, _Reading]) -> tuple[Segment, ...]:
    columns = [column for column in sorted(readings) if 1 <= column <= len(line)]
    segments: list[Segment] = []
    done = 0
    for column, following in pairwise([*columns, len(line) + 1]):
        token = _TOKEN.match(line, column - 1)
        end = min(token.end() if token else column, following - 1)
        if column - 1 > done:
            segments.append(Segment(_decoded(line[done : column - 1])))
        reading = readings[column]
        segments.append(
            Segment(
                _decoded(line[column - 1 : end]),
                f"{number}:{column}",
                tuple(reading.paths),
                tuple(reading.probes),
                reading.used,
                tuple(reading.decides),
            )
        )
        done = end
    if done < len(line):
        segments.append(Segment(_decoded(line[done:])))
    return tuple(segments)


def _decoded(piece: bytes) -> str:
    return piece.decode("utf-8", "surrogateescape")


def _notes(
    runs: Sequence[ProbeRun], findings: Iterable[Finding], parse_error: ParseError | None
) -> dict[int, list[LineNote]]:
    notes: dict[int, list[LineNote]] = {}
    failed: dict[tuple[int, str], list[str]] = {}
    for finding in findings:
        if finding.line is not None:
            note = LineNote(finding.severity.value, finding.rule, finding.text)
            notes.setdefault(finding.line, []).append(note)
    if parse_error is not None and parse_error.line is not None:
        failed[parse_error.line, parse_error.message] = [parse_error.kind]
    for run in runs:
        if run.error is not None and run.error.line is not None:
            failed.setdefault((run.error.line, run.error.message), []).append(run.name)
    for (line, message), names in failed.items():
        decides = tuple(name for name, probes in DECIDING_PROBES.items() if set(probes) & set(names))
        notes.setdefault(line, []).append(LineNote("failed", ", ".join(names), message, decides))
    return notes
