"""One conversation as a template rendered it: what was sent, what came back, what was read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from reports.difference import Difference, compare_texts
from reports.words import PROBE_TITLES
from scanner.judge.verdicts import DECIDING_PROBES, Place, place_of
from scanner.results import Part, ProbeRun, RunError

MOST_SHOWN = 40_000
"""Characters of an output that a page shows: a template may print megabytes."""
MOST_ROWS = 2_000
"""Rows of two texts side by side that a page shows."""


@dataclass(frozen=True, slots=True)
class ReadRow:
    """A value of the request that a probe read."""

    path: str
    used: bool
    ops: tuple[str, ...]
    place: Place | None


@dataclass(frozen=True, slots=True)
class RunView:
    """A conversation and what became of it; `cut` characters at the end of the output are not shown."""

    ok: bool
    error: RunError | None
    milliseconds: float
    conversation: Mapping[str, object]
    parts: tuple[Part, ...]
    cut: int
    reads: tuple[ReadRow, ...]


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Two texts beside each other; `cut` rows at the end are not shown."""

    difference: Difference
    cut: int


@dataclass(frozen=True, slots=True)
class ProbeView:
    """One of llama.cpp's probes: what it tries, which capabilities it decides, and its run."""

    name: str
    title: str
    decides: tuple[str, ...]
    run: RunView


def run_view(run: ProbeRun) -> RunView:
    """A run as pages show it."""
    parts, cut = shortened(run.parts or ((Part(run.output, False),) if run.output else ()))
    return RunView(
        ok=run.ok,
        error=run.error,
        milliseconds=round(run.duration * 1000, 2),
        conversation=run.variables,
        parts=parts,
        cut=cut,
        reads=tuple(ReadRow(read.path, read.used, read.ops, place_of(read.line, read.column)) for read in run.reads),
    )


def probe_view(run: ProbeRun) -> ProbeView:
    """A probe as pages show it."""
    decides = tuple(name for name, probes in DECIDING_PROBES.items() if run.name in probes)
    return ProbeView(run.name, PROBE_TITLES.get(run.name, ""), decides, run_view(run))


def side_by_side(left: str, right: str) -> SideBySide:
    """Two texts as pages show them."""
    found = compare_texts(left, right)
    return SideBySide(replace(found, rows=found.rows[:MOST_ROWS]), max(0, len(found.rows) - MOST_ROWS))


def shortened(parts: Iterable[Part]) -> tuple[tuple[Part, ...], int]:
    """The parts up to MOST_SHOWN characters, and how many more there are."""
    given = tuple(part for part in parts if part.text)
    if sum(len(part.text) for part in given) <= MOST_SHOWN:
        return given, 0
    kept, room = [], MOST_SHOWN
    for part in given:
        if room > 0:
            kept.append(Part(part.text[:room], part.is_input))
        room -= len(part.text)
    return tuple(kept), -room
