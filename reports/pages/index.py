"""The first page: how many, how good, what is wrong, what changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from reports.marks import Flags, flags_of, legend_of
from reports.overview import AllNotes, Overview, page_id
from reports.pages.rows import FailureGroup, TemplateRow, distinct_files, failure_groups, severity_counts, template_rows
from reports.words import CAPABILITY_MEANINGS, LABELS, OUTCOME_MEANINGS, slug
from scanner.results import Outcome, PassedOver, Severity
from scanner.store.queries import ClaimCount, EffortCount, LatestFile, Outlier

SHOWN_ON_INDEX = 10
"""How many failures of each outcome the index shows before it points to the whole list."""


@dataclass(frozen=True, slots=True)
class ScanHeader:
    """The newest scan."""

    id: int
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
class FlagCount:
    """How many claim a capability, how many really have it, and how many claim too much or too little, of how many that
    have a verdict; `judged` is 0 where nothing was observed."""

    capability: str
    label: str
    meaning: str
    templates_claiming: int
    templates_analysed: int
    templates_observed: int
    templates_judged: int
    overclaiming: int
    underclaiming: int
    files_claiming: int
    files_analysed: int
    files_observed: int
    files_judged: int


@dataclass(frozen=True, slots=True)
class ProfileFlags:
    """The flag distribution under one engine profile."""

    profile: str
    flags: tuple[FlagCount, ...]


@dataclass(frozen=True, slots=True)
class CombinationRow:
    """One set of flags and the templates that have it."""

    profile: str
    flags: Flags
    templates: int
    files: int
    path: str


@dataclass(frozen=True, slots=True)
class OutlierRow:
    """A template with an error or a warning, or with a rare set of flags."""

    page: str
    profile: str
    path: str
    variant: str
    files: int
    severity: Severity
    errors: int
    warnings: int
    text: str


@dataclass(frozen=True, slots=True)
class IndexPage:
    """The first page: how many, how good, what is wrong, what changed. `not_starting` counts the files with which
    llama-server would not start."""

    scan: ScanHeader
    root: str
    profiles: tuple[str, ...]
    files: int
    templates_total: int
    verified: Mapping[str, int]
    outcomes: tuple[OutcomeCount, ...]
    findings: Mapping[Severity, int]
    not_starting: int
    changes: Mapping[str, int]
    distribution: tuple[ProfileFlags, ...]
    efforts: tuple[EffortCount, ...]
    combinations: tuple[CombinationRow, ...]
    outliers: tuple[OutlierRow, ...]
    failures: tuple[FailureGroup, ...]
    templates: tuple[TemplateRow, ...]
    legend: tuple[Flags, ...]


def index_page(overview: Overview, notes: AllNotes) -> IndexPage:
    """The index of a report."""
    rows = template_rows(overview, notes)
    combined = tuple(
        CombinationRow(one.profile, flags_of(one.flags), one.templates, one.files, overview.shown(one.path))
        for one in overview.combinations
    )
    return IndexPage(
        scan=_scan_header(overview),
        root=overview.root,
        profiles=overview.profiles,
        files=distinct_files(overview.files),
        templates_total=len({template.sha256 for template in overview.templates}),
        verified=overview.verified,
        outcomes=_outcomes(overview.files),
        findings=severity_counts(overview, notes),
        not_starting=sum(not starts for starts in overview.starts.values()),
        changes=dict(sorted(Counter(change.change for change in overview.changes).items())),
        distribution=_distribution(overview.claim_counts),
        efforts=_efforts_that_differ(overview.efforts),
        combinations=combined,
        outliers=tuple(_outlier(overview, outlier) for outlier in overview.outliers),
        failures=failure_groups(overview, limit=SHOWN_ON_INDEX),
        templates=rows,
        legend=legend_of([*(row.flags for row in rows), *(row.flags for row in combined)]),
    )


def _efforts_that_differ(counts: Sequence[EffortCount]) -> tuple[EffortCount, ...]:
    """None at all where every template is alike for every effort."""
    return tuple(counts) if any(count.raises or count.accepted > count.inert for count in counts) else ()


def _scan_header(overview: Overview) -> ScanHeader:
    scan = overview.scan.scan
    return ScanHeader(
        id=scan.id,
        started_at=scan.started_at,
        finished_at=scan.finished_at,
        status=scan.status,
        profile=scan.profile,
        capscan_version=scan.capscan_version,
        sources=scan.sources,
        files_seen=scan.files_seen,
        files_unchanged=scan.files_unchanged,
        new_templates=overview.scan.new_templates,
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


def _distribution(counts: Sequence[ClaimCount]) -> tuple[ProfileFlags, ...]:
    by_profile: dict[str, list[FlagCount]] = {}
    for count in counts:
        by_profile.setdefault(count.profile, []).append(
            FlagCount(
                capability=count.capability,
                label=LABELS[count.capability],
                meaning=CAPABILITY_MEANINGS[count.capability],
                templates_claiming=count.templates_claiming,
                templates_analysed=count.templates_analysed,
                templates_observed=count.templates_observed,
                templates_judged=count.templates_judged,
                overclaiming=count.templates_overclaiming,
                underclaiming=count.templates_underclaiming,
                files_claiming=count.files_claiming,
                files_analysed=count.files_analysed,
                files_observed=count.files_observed,
                files_judged=count.files_judged,
            )
        )
    return tuple(ProfileFlags(profile, tuple(flags)) for profile, flags in sorted(by_profile.items()))


def _outlier(overview: Overview, outlier: Outlier) -> OutlierRow:
    return OutlierRow(
        page=page_id(outlier.sha256),
        profile=outlier.profile,
        path=overview.shown(outlier.path),
        variant=overview.variant(outlier.sha256, outlier.path),
        files=outlier.files,
        severity=outlier.severity,
        errors=outlier.errors,
        warnings=outlier.warnings,
        text=outlier.text,
    )
