"""What does not fit: outliers, and claims that are not what was observed, in the newest state or in one scan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from sqlalchemy import Engine, select

from scanner.results import CAPABILITIES, Agreement, Severity
from scanner.store.held import analyses_of, held, holders_of
from scanner.store.models import AnalysisRow, FindingRow, ObservationRow, ScanRow
from scanner.store.records import Disagreement, Outlier
from scanner.store.rows import FLAGS
from scanner.store.session import connection_scope

MISLEADING = ("overclaims-", "underclaims-", "effort-")
"""Begin the rules about flags that are not true."""

ENOUGH = 50
"""Templates with flags that must be there before one set of flags can be rare among them."""
RARE = 50
"""A set of flags is rare that fewer than one in so many templates have."""


def outlier_list(engine: Engine, scan_id: int | None = None) -> tuple[Outlier, ...]:
    """The outliers as the view of that name knows them, worst first: errors before warnings before rare flags, then
    those whose flags mislead, then those in more files, then those with more errors and warnings.

    With a scan, of the templates that it saw, in the files that it saw: what is rare is so among these. Raises
    DatabaseError.
    """
    serious = (Severity.ERROR.value, Severity.WARNING.value)
    statement = (
        analyses_of(
            holders_of(held(scan_id)),
            AnalysisRow.id,
            *(getattr(AnalysisRow, name) for name in FLAGS),
            FindingRow.severity,
            FindingRow.rule,
            FindingRow.line,
            FindingRow.text,
        )
        .outerjoin(FindingRow, (FindingRow.analysis_id == AnalysisRow.id) & FindingRow.severity.in_(serious))
        # Of the two words, the worse one comes first.
        .order_by(AnalysisRow.id, FindingRow.severity, FindingRow.position)
    )
    with connection_scope(engine) as connection:
        rows = connection.execute(statement).all()
    analyses = [list(found) for _, found in groupby(rows, key=lambda row: row.id)]
    compared = _compared([found[0] for found in analyses])
    outliers = (_outlier(found, compared.get(found[0].id)) for found in analyses)
    return tuple(sorted((one for one in outliers if one is not None), key=_badness))


def misleads(outlier: Outlier) -> bool:
    """Whether an outlier is one for a flag that is not true: that is worse than what no flag speaks of."""
    return (outlier.rule or "").startswith(MISLEADING)


def disagreement_list(engine: Engine, scan_id: int | None = None) -> tuple[Disagreement, ...]:
    """Where claims and observations disagree, by capability, in more files first: in the newest state, or in what a
    scan saw, under its profile. Raises DatabaseError."""
    statement = (
        analyses_of(
            holders_of(held(scan_id)),
            ObservationRow.capability,
            ObservationRow.agreement,
            ObservationRow.reason,
            ObservationRow.error_line.label("line"),
        )
        .join(ObservationRow, ObservationRow.analysis_id == AnalysisRow.id)
        .where(ObservationRow.agreement != Agreement.AGREES.value)
    )
    if scan_id is not None:
        profile = select(ScanRow.profile).where(ScanRow.id == scan_id).scalar_subquery()
        statement = statement.where(AnalysisRow.profile == profile)
    with connection_scope(engine) as connection:
        rows = [
            Disagreement(**{**row, "agreement": Agreement(row["agreement"])})
            for row in connection.execute(statement).mappings()
        ]
    order = {name: place for place, name in enumerate(CAPABILITIES)}
    return tuple(
        sorted(
            rows,
            key=lambda row: (order[row.capability], row.agreement, -row.files, row.path, row.sha256, row.profile),
        )
    )


@dataclass(frozen=True, slots=True)
class _Compared:
    """How many templates have a set of flags, of how many that have any under the profile."""

    alike: int
    templates: int

    @property
    def is_rare(self) -> bool:
        return self.templates >= ENOUGH and self.alike * RARE < self.templates

    @property
    def text(self) -> str:
        said = "no other of {} templates has it" if self.alike == 1 else f"only {self.alike} of {{}} templates have it"
        return f"a rare set of flags: {said.format(self.templates)}"


def _compared(analyses: Sequence[Any]) -> dict[int, _Compared]:
    """Of every analysis that has flags, how its set compares."""
    sets = {row.id: (row.profile, *(getattr(row, name) for name in FLAGS)) for row in analyses}
    flagged = {key: flags for key, flags in sets.items() if any(flag is not None for flag in flags[1:])}
    alike = Counter(flagged.values())
    templates = Counter(flags[0] for flags in flagged.values())
    return {key: _Compared(alike[flags], templates[flags[0]]) for key, flags in flagged.items()}


def _outlier(found: Sequence[Any], compared: _Compared | None) -> Outlier | None:
    """`found`: an analysis beside each of its errors, then of its warnings; beside nothing where it has none. None for
    an analysis that is no outlier."""
    worst = found[0]
    severities = Counter(row.severity for row in found)
    if worst.severity is None and (compared is None or not compared.is_rare):
        return None
    return Outlier(
        profile=worst.profile,
        sha256=worst.sha256,
        path=worst.path,
        files=worst.files,
        severity=Severity(worst.severity or Severity.NOTE),
        errors=severities[Severity.ERROR],
        warnings=severities[Severity.WARNING],
        rule=worst.rule,
        line=worst.line,
        text=compared.text if worst.text is None and compared is not None else worst.text,
        alike=compared.alike if compared else None,
        templates=compared.templates if compared else None,
    )


def _badness(outlier: Outlier) -> tuple[Any, ...]:
    """Sorts outliers, worst first: by severity, then those whose flags mislead, then by files."""
    severities = list(Severity)
    return (
        severities.index(outlier.severity),
        not misleads(outlier),
        -outlier.files,
        -outlier.errors,
        -outlier.warnings,
        outlier.path,
        outlier.sha256,
        outlier.profile,
    )
