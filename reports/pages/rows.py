"""Rows that several pages show, and how they are made of what the database holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from reports.marks import Flags, Mark, flags_of
from reports.overview import AllNotes, Overview, page_id
from reports.pages.chosen import chosen_templates
from reports.words import OUTCOME_MEANINGS, slug
from scanner.results import Finding, Outcome, Severity
from scanner.store.queries import LatestFile, TemplateSummary


@dataclass(frozen=True, slots=True)
class TemplateRow:
    """One template, under the profile that it is shown under. `path` is its first file; `worst` its worst finding."""

    page: str
    sha256: str
    profile: str
    path: str
    variant: str
    files: int
    size: int
    outcome: Outcome
    handler: str | None
    flags: Flags
    errors: int
    warnings: int
    notes: int
    worst: Finding | None

    @property
    def wrong(self) -> bool:
        """Whether a claim is not what is true."""
        return claims_wrongly(self.flags)

    @property
    def clean(self) -> bool:
        """Whether it was examined and has neither an error nor a warning."""
        return is_clean(self)


@dataclass(frozen=True, slots=True)
class FailureRow:
    """A file, or one of its variants, that was not examined, and why."""

    path: str
    variant: str
    page: str | None
    reason: str | None
    offset: int | None
    expected: str | None
    place: str | None = None
    """Its path, where `path` is the name that a store has for it."""


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """What failed alike. `rows` may be fewer than `total`."""

    outcome: Outcome
    meaning: str
    anchor: str
    total: int
    rows: tuple[FailureRow, ...]


def template_rows(overview: Overview, notes: AllNotes) -> tuple[TemplateRow, ...]:
    """The templates as lists show them, each once, by their first file."""
    return tuple(_template_row(overview, template, notes) for template in chosen_templates(overview))


def _template_row(overview: Overview, template: TemplateSummary, notes: AllNotes) -> TemplateRow:
    noted = notes.get((template.sha256, template.profile))
    findings = worst_first(noted.findings) if noted is not None else ()
    return TemplateRow(
        page=page_id(template.sha256),
        sha256=template.sha256,
        profile=template.profile,
        path=overview.shown(template.path),
        variant=overview.variant(template.sha256, template.path),
        files=template.files,
        size=template.size,
        outcome=template.outcome,
        handler=template.handler,
        flags=flags_of(template.capabilities, template.observed),
        errors=template.errors,
        warnings=template.warnings,
        notes=template.notes,
        worst=findings[0] if findings else None,
    )


def failure_groups(overview: Overview, *, limit: int | None) -> tuple[FailureGroup, ...]:
    known = overview.sha256s
    failed: dict[Outcome, list[FailureRow]] = {}
    for file in overview.files:
        if file.outcome is not Outcome.ANALYSED:
            failed.setdefault(file.outcome, []).append(
                FailureRow(
                    path=overview.shown(file.path),
                    variant=file.variant,
                    page=page_if(file.sha256, known),
                    reason=file.reason,
                    offset=file.offset,
                    expected=file.expected,
                    place=overview.place(file.path),
                )
            )
    return tuple(
        FailureGroup(outcome, meaning, slug(outcome), len(failed[outcome]), tuple(failed[outcome][:limit]))
        for outcome, meaning in OUTCOME_MEANINGS.items()
        if outcome in failed
    )


def page_if(sha256: str | None, known: frozenset[str]) -> str | None:
    return page_id(sha256) if sha256 in known and sha256 is not None else None


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    order = list(Severity)
    return tuple(sorted(findings, key=lambda finding: order.index(finding.severity)))


def distinct_files(files: Iterable[LatestFile]) -> int:
    return len({file.path for file in files})


def claims_wrongly(flags: Flags) -> bool:
    return not {Mark.OVER, Mark.UNDER}.isdisjoint(flags.marks)


def is_clean(template: TemplateRow | TemplateSummary) -> bool:
    return template.outcome is Outcome.ANALYSED and not template.errors and not template.warnings


def severity_counts(overview: Overview) -> dict[Severity, int]:
    """What the page of all findings lists."""
    counts = Counter(found.severity for found in overview.file_findings)
    for one in chosen_templates(overview):
        counts += Counter({Severity.ERROR: one.errors, Severity.WARNING: one.warnings, Severity.NOTE: one.notes})
    return {severity: counts[severity] for severity in Severity}
