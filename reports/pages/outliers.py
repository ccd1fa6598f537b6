"""What does not fit, worst first."""

from __future__ import annotations

from dataclasses import dataclass

from reports.overview import Overview, page_id
from reports.pages.chosen import chosen_profiles, shown_profiles
from scanner.results import Severity
from scanner.store.queries import Outlier


@dataclass(frozen=True, slots=True)
class OutlierRow:
    """A template with an error or a warning, or with a rare set of flags. `rule` (None: its flags are rare), `line` and
    `text` are those of the first of its worst findings."""

    page: str
    profile: str
    path: str
    variant: str
    files: int
    severity: Severity
    errors: int
    warnings: int
    rule: str | None
    line: int | None
    text: str


@dataclass(frozen=True, slots=True)
class OutlierList:
    """The worst of `total` outliers."""

    total: int
    rows: tuple[OutlierRow, ...]


@dataclass(frozen=True, slots=True)
class OutliersPage:
    """All outliers."""

    root: str
    profiles: tuple[str, ...]
    outliers: OutlierList


def outliers_page(overview: Overview) -> OutliersPage:
    """The list of all outliers."""
    return OutliersPage(overview.root, shown_profiles(overview), outlier_list(overview))


def outlier_list(overview: Overview, limit: int | None = None) -> OutlierList:
    """The first `limit` outliers, or all."""
    rows = outlier_rows(overview)
    return OutlierList(len(rows), rows[:limit])


def outlier_rows(overview: Overview) -> tuple[OutlierRow, ...]:
    """The outliers, each template under one profile."""
    profiles = chosen_profiles(overview)
    return tuple(_row(overview, one) for one in overview.outliers if profiles.get(one.sha256) == one.profile)


def _row(overview: Overview, outlier: Outlier) -> OutlierRow:
    return OutlierRow(
        page=page_id(outlier.sha256),
        profile=outlier.profile,
        path=overview.shown(outlier.path),
        variant=overview.variant(outlier.sha256, outlier.path),
        files=outlier.files,
        severity=outlier.severity,
        errors=outlier.errors,
        warnings=outlier.warnings,
        rule=outlier.rule,
        line=outlier.line,
        text=outlier.text,
    )
