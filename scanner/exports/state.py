"""What a scan saw and found, as every export tells it: each template judged as it was when the scan ended."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from sqlalchemy import Engine

from scanner.errors import UsageError
from scanner.results import Finding, Outcome
from scanner.silence import Silences
from scanner.store import history, queries
from scanner.store.history import Judgement, Sighting
from scanner.store.records import ScanRecord

NOT_EXAMINED = (Outcome.UNREADABLE, Outcome.NOT_A_MODEL, Outcome.LIMIT_EXCEEDED)
"""What leaves it unknown what is in a file, or what is to be said of a template."""


@dataclass(frozen=True, slots=True)
class Place:
    """A variant of a model file; `variant` is '' where the file as a whole is meant."""

    path: str
    variant: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """A finding and where it is: of a template in every file that holds it, or of one file as a whole (no `sha256`).
    `places` are where it counts. If it is silenced everywhere, `places` are all of them and `reasons` say why; else
    there are none. `number` tells apart what one rule found of one template, from 0."""

    finding: Finding
    sha256: str | None
    places: tuple[Place, ...]
    number: int = 0
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """What the scan saw. `judged` has the analysis that counted when it ended, by the SHA-256 of the template;
    `file_findings` those about files as a whole, by path; `sources` the bytes of the templates, by SHA-256."""

    scan: ScanRecord
    sightings: tuple[Sighting, ...]
    judged: Mapping[str, Judgement]
    file_findings: Mapping[str, Sequence[Finding]]
    silences: Silences
    sources: Mapping[str, bytes]

    def files(self) -> Iterator[tuple[str, list[Sighting]]]:
        """Every file with its variants, by path."""
        for path, seen in groupby(self.sightings, key=lambda sighting: sighting.path):
            yield path, list(seen)

    def findings_at(self, seen: Sighting) -> tuple[Finding, ...]:
        """What was found of a template where it is, without what is silenced there."""
        judged = self.judged.get(seen.sha256 or "")
        found = () if judged is None else judged.findings
        return tuple(one for one in found if self.reason_for(one, seen.path, seen.sha256) is None)

    def findings_of_file(self, path: str) -> tuple[Finding, ...]:
        """What was found of a file as a whole, without what is silenced."""
        return tuple(one for one in self.file_findings.get(path, ()) if self.reason_for(one, path, None) is None)

    def reason_for(self, finding: Finding, path: str, sha256: str | None) -> str | None:
        """Why a finding is silenced in a file; None where it is not."""
        return self.silences.reason_for(finding.rule, path, sha256)


def read_state(engine: Engine, scan_id: int | None, silences: Silences) -> State:
    """What the scan of this number saw (None: the newest that finished). Raises UsageError when there is none."""
    chosen = queries.newest_finished(engine) if scan_id is None else scan_id
    if chosen is None:
        raise UsageError("there is no finished scan yet")
    seen = history.snapshot(engine, chosen)
    held = {sighting.sha256 for sighting in seen.sightings if sighting.sha256 is not None}
    numbers = {sha256: seen.analyses[sha256] for sha256 in held if sha256 in seen.analyses}
    judged = history.judgements(engine, numbers.values())
    return State(
        scan=seen.scan,
        sightings=seen.sightings,
        judged={sha256: judged[number] for sha256, number in sorted(numbers.items())},
        file_findings=seen.file_findings,
        silences=silences,
        sources=queries.sources_of(engine, held),
    )


def results(state: State) -> Iterator[Result]:
    """Every finding once for each template, in the order of the templates' first places; then those about files."""
    places: defaultdict[str, list[Place]] = defaultdict(list)
    for seen in state.sightings:
        if seen.sha256 is not None:
            places[seen.sha256].append(Place(seen.path, seen.variant))
    for sha256, where in places.items():
        if sha256 in state.judged:
            yield from _results(state, state.judged[sha256].findings, sha256, where)
    for path, findings in sorted(state.file_findings.items()):
        yield from _results(state, findings, None, [Place(path)])


def _results(
    state: State, findings: Sequence[Finding], sha256: str | None, places: Sequence[Place]
) -> Iterator[Result]:
    counts: defaultdict[str, int] = defaultdict(int)
    for finding in findings:
        reasons = [state.reason_for(finding, place.path, sha256) for place in places]
        counting = tuple(place for place, reason in zip(places, reasons, strict=True) if reason is None)
        told = () if counting else tuple(dict.fromkeys(reason for reason in reasons if reason is not None))
        yield Result(finding, sha256, counting or tuple(places), counts[finding.rule], told)
        counts[finding.rule] += 1


def not_examined(state: State) -> Iterator[Sighting]:
    """The files, and variants, that hold something that could not be examined."""
    yield from [seen for seen in state.sightings if seen.outcome in NOT_EXAMINED]
