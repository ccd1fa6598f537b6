"""What a scan saw and how Capscan judged it then, for comparing two scans.

A template has an analysis for each profile and each version of Capscan. What counts for a scan is the newest that there
was when it ended, under its profile: queries about the present take the newest of all.

Every function takes an engine whose schema is current and raises DatabaseError when the database fails.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine, func, select

from scanner.errors import UsageError
from scanner.results import Capabilities, EffortOutcome, Finding, Outcome, Severity
from scanner.store.models import (
    AnalysisRow,
    AppearanceRow,
    BehaviourRow,
    EffortRow,
    FindingRow,
    ModelFileRow,
    ScanRow,
    TemplateRow,
)
from scanner.store.records import ScanRecord, Verdicts
from scanner.store.rows import capabilities_of, columns_of, observed_of, scan_of, verdict_columns
from scanner.store.session import connection_scope

_AT_ONCE = 500
"""Parameters of a query; databases allow only so many."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """One variant of one model file in a scan; for a file without templates, one with the variant '' and no `sha256`.
    `outcome` is the template's where there is one, else the file's. `fingerprint` is the file's (`ModelFile`), None
    where the scan did not record it."""

    path: str
    variant: str
    sha256: str | None
    outcome: Outcome
    reason: str | None
    fingerprint: str | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """What one analysis, by its `number`, says of a template, as far as two can be compared. `claims` is None without
    a verdict. `behaviours` and `efforts` map keys and words (None: unset) to outcomes; they and `observed` are empty
    where what is really true was not examined."""

    number: int
    sha256: str
    profile: str
    capscan_version: str
    analysis_version: int
    outcome: Outcome
    reason: str | None
    handler: str | None
    server_starts: bool | None
    claims: Capabilities | None
    observed: Verdicts
    behaviours: Mapping[str, str]
    efforts: Mapping[str | None, str]
    free_text_effort: str | None
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that a scan saw, by path. `analyses`: of every template that is stored, by SHA-256, the number of the
    analysis that counted when the scan ended. `file_findings`: those about a file as a whole, by path."""

    scan: ScanRecord
    sightings: tuple[Sighting, ...]
    analyses: Mapping[str, int]
    file_findings: Mapping[str, tuple[Finding, ...]]


def snapshot(engine: Engine, scan_id: int) -> Snapshot:
    """What the scan of this number saw. Raises UsageError when there is none."""
    with connection_scope(engine) as connection:
        scan = _scan(connection, scan_id)
        return Snapshot(
            scan=scan,
            sightings=tuple(_sightings(connection, scan.id)),
            analyses=_analyses(connection, scan),
            file_findings=_file_findings(connection, scan.id),
        )


def judgements(engine: Engine, numbers: Iterable[int]) -> dict[int, Judgement]:
    """The analyses of these numbers; those that do not exist are left out."""
    wanted = sorted(set(numbers))
    found: dict[int, Judgement] = {}
    with connection_scope(engine) as connection:
        for start in range(0, len(wanted), _AT_ONCE):
            found |= {one.number: one for one in _judgements(connection, wanted[start : start + _AT_ONCE])}
    return found


def _scan(connection: Connection, scan_id: int) -> ScanRecord:
    row = connection.execute(select(*columns_of(ScanRow)).where(ScanRow.id == scan_id)).first()
    if row is None:
        raise UsageError(f"there is no scan {scan_id}: capscan query scans lists them")
    return scan_of(row)


def _sightings(connection: Connection, scan: int) -> Iterator[Sighting]:
    statement = (
        select(
            ModelFileRow.path,
            AppearanceRow.variant,
            TemplateRow.sha256,
            AppearanceRow.outcome,
            AppearanceRow.reason,
            AppearanceRow.fingerprint,
        )
        .join(ModelFileRow, ModelFileRow.id == AppearanceRow.model_file_id)
        .outerjoin(TemplateRow, TemplateRow.id == AppearanceRow.template_id)
        .where(AppearanceRow.scan_id == scan)
        .order_by(ModelFileRow.path, AppearanceRow.position)
    )
    for path, variant, sha256, outcome, reason, fingerprint in connection.execute(statement):
        yield Sighting(path, variant, sha256, Outcome(outcome), reason, fingerprint)


def _analyses(connection: Connection, scan: ScanRecord) -> dict[str, int]:
    """Numbers grow with time, so the newest analysis is the one with the greatest."""
    statement = (
        select(TemplateRow.sha256, func.max(AnalysisRow.id))
        .join(TemplateRow, TemplateRow.id == AnalysisRow.template_id)
        .where(AnalysisRow.profile == scan.profile)
        .group_by(TemplateRow.sha256)
    )
    if scan.finished_at is not None:
        statement = statement.where(AnalysisRow.created_at <= scan.finished_at)
    return {row[0]: row[1] for row in connection.execute(statement)}


def _file_findings(connection: Connection, scan: int) -> dict[str, tuple[Finding, ...]]:
    statement = (
        select(ModelFileRow.path, *columns_of(FindingRow))
        .join(ModelFileRow, ModelFileRow.id == FindingRow.model_file_id)
        .where(FindingRow.scan_id == scan)
        .order_by(ModelFileRow.path, FindingRow.position)
    )
    found: defaultdict[str, list[Finding]] = defaultdict(list)
    for row in connection.execute(statement):
        found[row.path].append(_finding(row))
    return {path: tuple(findings) for path, findings in found.items()}


def _judgements(connection: Connection, numbers: list[int]) -> Iterator[Judgement]:
    behaviours = _parts_of(connection, BehaviourRow, numbers)
    efforts = _parts_of(connection, EffortRow, numbers)
    findings = _parts_of(connection, FindingRow, numbers)
    statement = (
        select(
            AnalysisRow.id,
            TemplateRow.sha256,
            AnalysisRow.profile,
            AnalysisRow.capscan_version,
            AnalysisRow.analysis_version,
            AnalysisRow.outcome,
            AnalysisRow.reason,
            AnalysisRow.handler,
            AnalysisRow.server_starts,
            AnalysisRow.free_text_effort,
            *verdict_columns(),
        )
        .join(TemplateRow, TemplateRow.id == AnalysisRow.template_id)
        .where(AnalysisRow.id.in_(numbers))
    )
    for row in connection.execute(statement):
        observed = observed_of(row)
        yield Judgement(
            number=row.id,
            sha256=row.sha256,
            profile=row.profile,
            capscan_version=row.capscan_version,
            analysis_version=row.analysis_version,
            outcome=Outcome(row.outcome),
            reason=row.reason,
            handler=row.handler,
            server_starts=row.server_starts,
            claims=capabilities_of(row),
            observed=observed if any(verdict is not None for verdict in observed.values()) else {},
            behaviours={one.key: one.outcome for one in behaviours.get(row.id, ())},
            efforts={one.word: _effort(one) for one in efforts.get(row.id, ())},
            free_text_effort=row.free_text_effort,
            findings=tuple(_finding(one) for one in findings.get(row.id, ())),
        )


def _parts_of(connection: Connection, table: Any, analyses: list[int]) -> Mapping[int, list[Any]]:
    """The rows of one of the tables of these analyses, in their order, by the analysis."""
    statement = (
        select(*columns_of(table)).where(table.analysis_id.in_(analyses)).order_by(table.analysis_id, table.position)
    )
    found: defaultdict[int, list[Any]] = defaultdict(list)
    for row in connection.execute(statement):
        found[row.analysis_id].append(row)
    return found


def _effort(row: Any) -> str:
    """What becomes of a word: another output than without any, the same, or an error."""
    if row.outcome == EffortOutcome.ACCEPTED and row.word is not None and row.equals_unset:
        return "accepted, as unset"
    return str(row.outcome)


def _finding(row: Any) -> Finding:
    return Finding(row.rule, Severity(row.severity), row.text, row.evidence, row.line)
