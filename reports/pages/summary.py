"""How many, how good, what is wrong, what changed: in numbers, each with the list behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from reports.marks import flags_of
from reports.overview import Overview
from reports.pages.changes import change_list
from reports.pages.chosen import chosen_templates
from reports.pages.outliers import outlier_rows
from reports.pages.rows import claims_wrongly, distinct_files, is_clean, severity_counts
from reports.words import OUTCOME_MEANINGS, slug
from scanner.results import Outcome, PassedOver, Severity
from scanner.store.queries import LatestFile, TemplateSummary


@dataclass(frozen=True, slots=True)
class ScanHeader:
    """The scan that a report is of; `newest` is the newest finished one where that is another."""

    id: int
    newest: int | None
    started_at: datetime
    finished_at: datetime | None
    status: str
    profile: str
    capscan_version: str
    sources: tuple[str, ...]
    files_seen: int
    files_unchanged: int
    new_templates: int
    passed_over: tuple[PassedOver, ...]


@dataclass(frozen=True, slots=True)
class OutcomeCount:
    """How many files had an outcome. `address` leads to the list."""

    outcome: Outcome
    meaning: str
    files: int
    address: str


@dataclass(frozen=True, slots=True)
class Goodness:
    """Of `analysed` templates, how many have neither an error nor a warning (`clean`); of `judged` ones, how many claim
    what is true and nothing else (`right`)."""

    analysed: int
    clean: int
    judged: int
    right: int


@dataclass(frozen=True, slots=True)
class Summary:
    """A collection in numbers. `not_starting` counts the files with which llama-server would not start, `changes` what
    became of templates at their places in files since the scan before; at `flipped` of these flags flipped, at `lost` a
    template can no longer be examined."""

    scan: ScanHeader
    root: str
    files: int
    templates: int
    outcomes: tuple[OutcomeCount, ...]
    good: Goodness
    verified: Mapping[str, int]
    findings: Mapping[Severity, int]
    outliers: int
    not_starting: int
    changes: Mapping[str, int]
    lost: int
    flipped: int


def summary_of(overview: Overview) -> Summary:
    """The numbers of a collection."""
    templates = chosen_templates(overview)
    changes = change_list(overview, 0)
    return Summary(
        scan=scan_header(overview),
        root=overview.root,
        files=distinct_files(overview.files),
        templates=len(templates),
        outcomes=_outcomes(overview.files),
        good=_goodness(templates),
        verified=overview.verified,
        findings=severity_counts(overview),
        outliers=len(outlier_rows(overview)),
        not_starting=sum(not starts for starts in overview.starts.values()),
        changes=changes.counts,
        lost=changes.lost,
        flipped=changes.flipped,
    )


def scan_header(overview: Overview) -> ScanHeader:
    """The scan of a report."""
    scan = overview.scan.scan
    return ScanHeader(
        id=scan.id,
        newest=overview.newest,
        started_at=scan.started_at,
        finished_at=scan.finished_at,
        status=scan.status,
        profile=scan.profile,
        capscan_version=scan.capscan_version,
        sources=scan.sources,
        files_seen=scan.files_seen,
        files_unchanged=scan.files_unchanged,
        new_templates=sum(one.sha256 in overview.new for one in chosen_templates(overview)),
        passed_over=scan.passed_over,
    )


def _outcomes(files: Sequence[LatestFile]) -> tuple[OutcomeCount, ...]:
    """A file whose variants fared differently counts under each of its outcomes."""
    counts = Counter(outcome for _path, outcome in {(file.path, file.outcome) for file in files})
    return tuple(
        OutcomeCount(
            outcome,
            meaning,
            counts[outcome],
            "models.html?outcome=analysed" if outcome is Outcome.ANALYSED else f"failures.html#{slug(outcome)}",
        )
        for outcome, meaning in OUTCOME_MEANINGS.items()
        if counts[outcome]
    )


def _goodness(templates: Sequence[TemplateSummary]) -> Goodness:
    analysed = [one for one in templates if one.outcome is Outcome.ANALYSED]
    judged = [one for one in analysed if any(verdict is not None for verdict in one.observed.values())]
    wrong = [one for one in judged if claims_wrongly(flags_of(one.capabilities, one.observed))]
    return Goodness(
        analysed=len(analysed),
        clean=sum(map(is_clean, analysed)),
        judged=len(judged),
        right=len(judged) - len(wrong),
    )
