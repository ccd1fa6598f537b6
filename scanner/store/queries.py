"""All reading of the database: records for the command line and the reports, named queries, and SQL by hand.

Every function takes an engine whose schema is current (`migrate.ensure_current`), reads in one short transaction and
raises DatabaseError when the database fails.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine, Select, case, func, or_, select, true

from scanner.errors import DatabaseError, UsageError
from scanner.results import (
    CAPABILITIES,
    Capabilities,
    ChatTemplate,
    FileResult,
    Finding,
    FlagDifference,
    ModelFile,
    ModelMetadata,
    Outcome,
    ParseError,
    Part,
    PassedOver,
    ProbeRun,
    Read,
    RunError,
    Severity,
    SourceKind,
    SpecialToken,
    StartCheck,
    TemplateResult,
    Verdict,
    Verification,
)
from scanner.store.models import (
    AnalysisRow,
    AppearanceRow,
    FindingRow,
    ModelFileRow,
    ProbeRunRow,
    ReadRow,
    ScanRow,
    TemplateRow,
    VerificationRow,
    changes,
    flag_distribution,
    latest_files,
    outliers,
)
from scanner.store.session import connection_scope, database_name, one_line, sqlite_file, translated

QUERY_SECONDS = 60.0
"""How long a named query may take."""

_PAGE = 500
_CANDIDATES_SHOWN = 5
_FLAGS = tuple(f"supports_{name}" for name in CAPABILITIES)


@dataclass(frozen=True, slots=True)
class ScanRecord:
    """One scan; `finished_at` is None until it ended. Times are in UTC."""

    id: int
    started_at: datetime
    finished_at: datetime | None
    status: str
    sources: tuple[str, ...]
    capscan_version: str
    profile: str
    files_seen: int
    files_unchanged: int
    passed_over: tuple[PassedOver, ...]


@dataclass(frozen=True, slots=True)
class ClaimCount:
    """How many templates, and files with such a template, claim a capability, of how many that have a verdict."""

    profile: str
    capability: str
    templates_claiming: int
    templates_analysed: int
    files_claiming: int
    files_analysed: int


@dataclass(frozen=True, slots=True)
class ScanSummary:
    """What one scan saw. A file whose variants fared differently counts under each of its outcomes. `new_templates`
    were in no scan before; `claims` are of this scan's files and profile, in the order of CAPABILITIES."""

    scan: ScanRecord
    files_by_outcome: Mapping[Outcome, int]
    variants: Mapping[str, int]
    templates: int
    new_templates: int
    claims: tuple[ClaimCount, ...]


@dataclass(frozen=True, slots=True)
class LatestFile:
    """One variant of one model file, as the newest finished scan that saw the file recorded it. `capabilities` is None
    without a verdict; `variant` is '' and `sha256` None for a file without templates."""

    path: str
    variant: str
    sha256: str | None
    outcome: Outcome
    reason: str | None
    offset: int | None
    expected: str | None
    kind: SourceKind
    size: int
    architecture: str | None
    file_type: str | None
    quantized_by: str | None
    profile: str
    scan_id: int
    capabilities: Capabilities | None


@dataclass(frozen=True, slots=True)
class TemplateSummary:
    """One template of the latest files under one profile. `files` hold it, `path` is the first of them; `server_starts`
    is None where that was not examined."""

    sha256: str
    size: int
    profile: str
    outcome: Outcome
    reason: str | None
    handler: str | None
    server_starts: bool | None
    files: int
    path: str
    capabilities: Capabilities | None
    errors: int
    warnings: int
    notes: int


@dataclass(frozen=True, slots=True)
class Analysis:
    """One analysis as it was made. `observed` maps every capability to its verdict, None where there is none."""

    result: TemplateResult
    observed: Mapping[str, bool | None]
    capscan_version: str
    analysis_version: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Appearance:
    """A template in a file, in the newest scan in which the file holds it."""

    path: str
    variant: str
    origin: str | None
    scan_id: int


@dataclass(frozen=True, slots=True)
class StoredVerification:
    """What the real llama.cpp said of a template, when, and which Capscan asked."""

    verification: Verification
    capscan_version: str
    verified_at: datetime


@dataclass(frozen=True, slots=True)
class TemplateDetail:
    """Everything known of one template: its newest analysis under every profile, the files that hold or held it, and
    what the real llama.cpp said of it."""

    sha256: str
    source: bytes
    analyses: tuple[Analysis, ...]
    appearances: tuple[Appearance, ...]
    verifications: tuple[StoredVerification, ...] = ()


@dataclass(frozen=True, slots=True)
class FileDetail:
    """One model file as it was when last opened, its variants with their verdicts (empty before the first finished
    scan), and what was found of the file as a whole in the newest scan that saw it. `starts` says of its templates, by
    SHA-256, whether llama-server starts with them; those not examined are left out."""

    result: FileResult
    first_seen_scan: int | None
    last_seen_scan: int | None
    variants: tuple[LatestFile, ...]
    findings: tuple[Finding, ...]
    starts: Mapping[str, StartCheck] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HeldVariant:
    """One variant of a model file, and what its analysis came to."""

    variant: str
    outcome: Outcome
    capabilities: Capabilities | None


@dataclass(frozen=True, slots=True)
class HeldFile:
    """A model file as a scan saw it; `outcome` is that of its extraction."""

    path: str
    outcome: Outcome
    variants: tuple[HeldVariant, ...]


@dataclass(frozen=True, slots=True)
class Outlier:
    """A template with an error or a warning; `text` is that of its first, worst finding."""

    profile: str
    sha256: str
    path: str
    files: int
    severity: Severity
    errors: int
    warnings: int
    text: str


@dataclass(frozen=True, slots=True)
class Change:
    """A template that `appeared`, is `gone` or was `replaced` between the two newest finished scans."""

    change: str
    path: str
    variant: str
    old_sha256: str | None
    new_sha256: str | None
    old_scan_id: int
    new_scan_id: int


@dataclass(frozen=True, slots=True)
class Combination:
    """One set of flags of the latest files; None where a profile knows no such flag. `path` is the first file."""

    profile: str
    flags: Mapping[str, bool | None]
    templates: int
    files: int
    path: str


class Rows(NamedTuple):
    """The answer of a query: column names, and rows as they come. Text is as stored (`models.SafeText`). Closing
    `rows`, or reading it to its end, lets the database go."""

    columns: tuple[str, ...]
    rows: Iterator[tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class NamedQuery:
    """A query with a name, for `capscan query NAME`: portable SQL without parameters."""

    name: str
    description: str
    sql: str


def scans(engine: Engine) -> tuple[ScanRecord, ...]:
    """All scans, newest first."""
    with connection_scope(engine) as connection:
        return tuple(_scan(row) for row in connection.execute(select(*_columns(ScanRow)).order_by(ScanRow.id.desc())))


def scan_summary(engine: Engine, scan_id: int | None = None) -> ScanSummary:
    """What a scan saw (None: the newest, finished or not). Raises UsageError when there is no such scan."""
    with connection_scope(engine) as connection:
        scan = _find_scan(connection, scan_id)
        held = select(AppearanceRow).where(AppearanceRow.scan_id == scan.id).subquery()
        return ScanSummary(
            scan=scan,
            files_by_outcome=_files_by_outcome(connection, held),
            variants=_variants(connection, held),
            templates=connection.execute(select(func.count(held.c.template_id.distinct()))).scalar_one(),
            new_templates=_new_templates(connection, scan.id),
            claims=_claims(connection, held, scan.profile),
        )


def files(engine: Engine) -> Iterator[LatestFile]:
    """The latest files by path and variant, read in pages: there may be very many."""
    statement = select(latest_files).order_by(latest_files.c.path, latest_files.c.variant)
    paged = {"yield_per": _PAGE}
    with connection_scope(engine) as connection, connection.execute(statement, execution_options=paged) as rows:
        for row in rows:
            yield _latest_file(row)


def failures(engine: Engine) -> tuple[LatestFile, ...]:
    """The latest files, or variants, that are not analysed, by outcome and path."""
    statement = (
        select(latest_files)
        .where(latest_files.c.outcome != Outcome.ANALYSED.value)
        .order_by(latest_files.c.outcome, latest_files.c.path, latest_files.c.variant)
    )
    with connection_scope(engine) as connection:
        return tuple(_latest_file(row) for row in connection.execute(statement))


def claim_counts(engine: Engine) -> tuple[ClaimCount, ...]:
    """The latest files' claims, by profile and in the order of CAPABILITIES."""
    with connection_scope(engine) as connection:
        rows = [ClaimCount(**row) for row in connection.execute(select(flag_distribution)).mappings()]
    return tuple(sorted(rows, key=lambda row: (row.profile, CAPABILITIES.index(row.capability))))


def templates(engine: Engine) -> tuple[TemplateSummary, ...]:
    """The templates of the latest files, by example path and SHA-256, then profile."""
    held = (
        select(
            latest_files.c.template_id,
            func.min(latest_files.c.path).label("path"),
            func.count(latest_files.c.model_file_id.distinct()).label("files"),
        )
        .where(latest_files.c.template_id.is_not(None))
        .group_by(latest_files.c.template_id)
        .subquery()
    )
    counted = (
        select(
            FindingRow.analysis_id,
            *(_counted(FindingRow.severity == severity.value).label(f"{severity.value}s") for severity in Severity),
        )
        .where(FindingRow.analysis_id.is_not(None))
        .group_by(FindingRow.analysis_id)
        .subquery()
    )
    statement = (
        select(TemplateRow.sha256, TemplateRow.size, held.c.path, held.c.files, *_ANALYSIS_SUMMARY)
        .add_columns(
            *(func.coalesce(counted.c[f"{severity.value}s"], 0).label(f"{severity.value}s") for severity in Severity)
        )
        .join(held, held.c.template_id == TemplateRow.id)
        .join(AnalysisRow, AnalysisRow.template_id == TemplateRow.id)
        .outerjoin(counted, counted.c.analysis_id == AnalysisRow.id)
        .where(AnalysisRow.id.in_(_newest_analyses()))
        .order_by(held.c.path, TemplateRow.sha256, AnalysisRow.profile)
    )
    with connection_scope(engine) as connection:
        return tuple(_template_summary(row) for row in connection.execute(statement))


def template_detail(engine: Engine, sha256: str) -> TemplateDetail:
    """Everything of the template whose SHA-256 begins with `sha256`. Raises UsageError for none or several."""
    with connection_scope(engine) as connection:
        row = _find_template(connection, sha256)
        return TemplateDetail(
            sha256=row.sha256,
            source=row.source,
            analyses=_analyses(connection, row.id, row.sha256),
            appearances=_appearances(connection, row.id),
            verifications=_verifications(connection, VerificationRow.template_id == row.id),
        )


def verifications(engine: Engine) -> tuple[StoredVerification, ...]:
    """What the real llama.cpp said of every template it was asked about, by SHA-256."""
    with connection_scope(engine) as connection:
        return _verifications(connection, true())


def template_sources(engine: Engine) -> Iterator[tuple[str, bytes]]:
    """The SHA-256 and bytes of every template that a file holds now, by SHA-256."""
    held = select(latest_files.c.template_id).where(latest_files.c.template_id.is_not(None))
    statement = (
        select(TemplateRow.sha256, TemplateRow.source).where(TemplateRow.id.in_(held)).order_by(TemplateRow.sha256)
    )
    with connection_scope(engine) as connection:
        rows = connection.execute(statement).all()
    for row in rows:
        yield row.sha256, row.source


def file_detail(engine: Engine, name: str) -> FileDetail:
    """Everything of the model file with this path, or else this last part of a path. Raises UsageError for none or
    several."""
    with connection_scope(engine) as connection:
        row = _find_file(connection, name)
        latest = select(latest_files).where(latest_files.c.model_file_id == row.id).order_by(latest_files.c.variant)
        found = (
            select(*_columns(FindingRow))
            .where(FindingRow.model_file_id == row.id, FindingRow.scan_id == row.last_seen_scan_id)
            .order_by(FindingRow.position)
        )
        return FileDetail(
            result=_file_result(connection, row),
            first_seen_scan=row.first_seen_scan_id,
            last_seen_scan=row.last_seen_scan_id,
            variants=tuple(_latest_file(variant) for variant in connection.execute(latest)),
            findings=tuple(_finding(finding) for finding in connection.execute(found)),
            starts=_starts(connection, row),
        )


def outlier_list(engine: Engine, scan_id: int | None = None) -> tuple[Outlier, ...]:
    """The outliers, worst first: errors before warnings, then those in more files. With a scan: only templates that it
    saw."""
    statement = select(outliers)
    if scan_id is not None:
        seen = (
            select(TemplateRow.sha256)
            .join(AppearanceRow, AppearanceRow.template_id == TemplateRow.id)
            .where(AppearanceRow.scan_id == scan_id)
        )
        statement = statement.where(outliers.c.sha256.in_(seen))
    with connection_scope(engine) as connection:
        rows = [
            Outlier(**{**row, "severity": Severity(row["severity"])})
            for row in connection.execute(statement).mappings()
        ]
    return tuple(sorted(rows, key=lambda row: (row.errors == 0, -row.files, row.path, row.sha256, row.profile)))


def findings_of_scan(engine: Engine, scan_id: int) -> tuple[tuple[Severity, str], ...]:
    """Severity and rule of every finding, under the scan's profile, of the files and templates that it saw."""
    templates_seen = select(AppearanceRow.template_id).where(AppearanceRow.scan_id == scan_id)
    profile = select(ScanRow.profile).where(ScanRow.id == scan_id).scalar_subquery()
    analysed = select(AnalysisRow.id).where(
        AnalysisRow.template_id.in_(templates_seen),
        AnalysisRow.profile == profile,
        AnalysisRow.id.in_(_newest_analyses()),
    )
    statement = (
        select(FindingRow.severity, FindingRow.rule)
        .where(or_(FindingRow.analysis_id.in_(analysed), FindingRow.scan_id == scan_id))
        .distinct()
        .order_by(FindingRow.severity, FindingRow.rule)
    )
    with connection_scope(engine) as connection:
        return tuple((Severity(row.severity), row.rule) for row in connection.execute(statement))


def held_in_scan(engine: Engine, scan_id: int, profile: str) -> Iterator[HeldFile]:
    """Every file of a scan that holds templates, or none, with what is known of each of its variants; by path."""
    statement = (
        select(
            ModelFileRow.path,
            ModelFileRow.outcome.label("file_outcome"),
            AppearanceRow.variant,
            AppearanceRow.template_id,
            *[getattr(AnalysisRow, name) for name in ("outcome", *_FLAGS)],
        )
        .join(ModelFileRow, ModelFileRow.id == AppearanceRow.model_file_id)
        .outerjoin(
            AnalysisRow,
            (AnalysisRow.template_id == AppearanceRow.template_id)
            & (AnalysisRow.profile == profile)
            & AnalysisRow.id.in_(_newest_analyses()),
        )
        .where(AppearanceRow.scan_id == scan_id, ModelFileRow.outcome.in_((Outcome.ANALYSED, Outcome.NO_TEMPLATE)))
        .order_by(ModelFileRow.path, AppearanceRow.position)
    )
    with connection_scope(engine) as connection:
        rows = connection.execute(statement).all()
    for path, held in groupby(rows, key=lambda row: row.path):
        listed = list(held)
        variants = tuple(
            HeldVariant(row.variant, Outcome(row.outcome or Outcome.SKIPPED), _capabilities(row))
            for row in listed
            if row.template_id is not None
        )
        yield HeldFile(path, Outcome(listed[0].file_outcome), variants)


def change_list(engine: Engine) -> tuple[Change, ...]:
    """What changed between the two newest finished scans, by path and variant."""
    statement = select(changes).order_by(changes.c.path, changes.c.variant, changes.c.change)
    with connection_scope(engine) as connection:
        return tuple(Change(**row) for row in connection.execute(statement).mappings())


def combinations(engine: Engine) -> tuple[Combination, ...]:
    """The sets of flags of the latest files, commonest first."""
    flags = [latest_files.c[name] for name in _FLAGS]
    statement = (
        select(
            latest_files.c.profile,
            *flags,
            func.count(latest_files.c.template_id.distinct()).label("templates"),
            func.count(latest_files.c.model_file_id.distinct()).label("files"),
            func.min(latest_files.c.path).label("path"),
        )
        .where(or_(*(flag.is_not(None) for flag in flags)))
        .group_by(latest_files.c.profile, *flags)
    )
    with connection_scope(engine) as connection:
        rows = [
            Combination(
                row.profile,
                {name: getattr(row, f"supports_{name}") for name in CAPABILITIES},
                row.templates,
                row.files,
                row.path,
            )
            for row in connection.execute(statement)
        ]
    return tuple(sorted(rows, key=lambda row: (-row.templates, -row.files, row.path, row.profile)))


def run_named(engine: Engine, name: str, *, seconds: float = QUERY_SECONDS) -> Rows:
    """Runs one of NAMED. Raises UsageError for another name."""
    query = NAMED.get(name)
    if query is None:
        raise UsageError(f"there is no query {name!r}: choose one of {', '.join(sorted(NAMED))}")
    return run_sql(engine, query.sql, seconds=seconds)


def run_sql(engine: Engine, sql: str, *, seconds: float) -> Rows:
    """Runs one statement of a person's own, which the database itself keeps from writing, for at most `seconds`.

    The time is what the database works; what the caller does between rows does not count. Raises UsageError, here or
    while rows are read, with the database's message: wrong SQL, a statement that would write, time is up.
    """
    if engine.dialect.name == "sqlite":
        stream = _sqlite_rows(engine, sql, seconds)
    elif engine.dialect.name == "postgresql":
        stream = _postgresql_rows(engine, sql, seconds)
    else:
        raise UsageError(f"queries are offered on SQLite and PostgreSQL, not on {engine.dialect.name}")
    return Rows(columns=tuple(str(name) for name in next(stream)), rows=stream)


def _named(*entries: tuple[str, str, str]) -> Mapping[str, NamedQuery]:
    return {name: NamedQuery(name, description, " ".join(sql.split())) for name, description, sql in entries}


NAMED: Mapping[str, NamedQuery] = _named(
    (
        "files",
        "Every variant of every model file, with what llama.cpp claims of it",
        f"SELECT path, variant, outcome, reason, architecture, file_type, quantized_by, sha256, {', '.join(_FLAGS)} "  # noqa: S608 - constants
        "FROM latest_files ORDER BY path, variant",
    ),
    (
        "templates",
        "Every template, how many files hold it, and what llama.cpp claims of it",
        f"""SELECT sha256, profile, outcome, COUNT(DISTINCT model_file_id) AS files, MIN(path) AS path,
        {", ".join(_FLAGS)}
        FROM latest_files WHERE sha256 IS NOT NULL
        GROUP BY sha256, profile, outcome, {", ".join(_FLAGS)} ORDER BY files DESC, sha256, profile""",  # noqa: S608 - constants
    ),
    (
        "flags",
        "How many templates and files claim each capability, of how many analysed",
        """SELECT profile, capability, templates_claiming, templates_analysed, files_claiming, files_analysed
        FROM flag_distribution ORDER BY profile, templates_claiming DESC, capability""",
    ),
    (
        "failures",
        "Everything that is not analysed, and why",
        """SELECT outcome, path, variant, reason, byte_offset, expected, sha256
        FROM latest_files WHERE outcome <> 'analysed' ORDER BY outcome, path, variant""",
    ),
    (
        "outliers",
        "Templates with an error or a warning, worst first",
        """SELECT severity, sha256, path, files, errors, warnings, text, profile
        FROM outliers ORDER BY CASE severity WHEN 'error' THEN 0 ELSE 1 END, files DESC, path, sha256, profile""",
    ),
    (
        "not-starting",
        "Templates that keep llama-server from starting, how many files hold them, and how many it affects",
        # As `scanner.chat.selection`: without a default, a tool_use template that parses takes its place.
        """SELECT held.sha256, MIN(held.path) AS path, COUNT(DISTINCT held.model_file_id) AS files,
        COUNT(DISTINCT served.model_file_id) AS affected,
        COALESCE(analyses.start_error_line, analyses.parse_error_line) AS line,
        COALESCE(analyses.start_error_message, analyses.parse_error_message) AS reason
        FROM analyses
        JOIN latest_files AS held ON held.template_id = analyses.template_id AND held.profile = analyses.profile
        LEFT JOIN (SELECT model_file_id, MIN(variant) AS variant FROM latest_files
                   WHERE (variant = 'default' AND outcome <> 'no template')
                      OR (variant = 'tool_use' AND outcome <> 'not parseable')
                   GROUP BY model_file_id) AS served
          ON served.model_file_id = held.model_file_id AND served.variant = held.variant
        WHERE analyses.id IN (SELECT MAX(id) FROM analyses GROUP BY template_id, profile)
          AND NOT analyses.server_starts
        GROUP BY held.sha256, analyses.id, analyses.start_error_line, analyses.parse_error_line,
                 analyses.start_error_message, analyses.parse_error_message
        ORDER BY affected DESC, files DESC, path, held.sha256""",
    ),
    (
        "findings",
        "Every finding of the latest files: of their templates, and of the files as a whole",
        """SELECT findings.severity, findings.rule, held.path, held.sha256, findings.line, findings.text,
        findings.evidence
        FROM findings
        JOIN analyses ON analyses.id = findings.analysis_id
        JOIN (SELECT template_id, sha256, profile, MIN(path) AS path FROM latest_files
              WHERE template_id IS NOT NULL GROUP BY template_id, sha256, profile) AS held
          ON held.template_id = analyses.template_id AND held.profile = analyses.profile
        WHERE analyses.id IN (SELECT MAX(id) FROM analyses GROUP BY template_id, profile)
        UNION ALL
        SELECT findings.severity, findings.rule, held.path, NULL, findings.line, findings.text, findings.evidence
        FROM findings
        JOIN (SELECT DISTINCT model_file_id, scan_id, path FROM latest_files) AS held
          ON held.model_file_id = findings.model_file_id AND held.scan_id = findings.scan_id
        ORDER BY 1, 2, 3, 4, 5, 6""",
    ),
    (
        "combinations",
        "The sets of flags that occur, commonest first",
        f"""SELECT COUNT(DISTINCT template_id) AS templates, COUNT(DISTINCT model_file_id) AS files,
        MIN(path) AS path, profile, {", ".join(_FLAGS)}
        FROM latest_files WHERE {" OR ".join(f"{name} IS NOT NULL" for name in _FLAGS)}
        GROUP BY profile, {", ".join(_FLAGS)} ORDER BY templates DESC, files DESC, path, profile""",  # noqa: S608 - constants
    ),
    (
        "builds",
        "Templates whose flags depend on the llama.cpp build (scan with --profile all), one row for each profile",
        f"""SELECT sha256, profile, MIN(path) AS path, {", ".join(_FLAGS)}
        FROM (SELECT held.sha256, analyses.profile, held.path, {", ".join(f"analyses.{name}" for name in _FLAGS)}
              FROM analyses
              JOIN (SELECT template_id, sha256, MIN(path) AS path FROM latest_files
                    WHERE template_id IS NOT NULL GROUP BY template_id, sha256) AS held
                ON held.template_id = analyses.template_id
              WHERE analyses.id IN (SELECT MAX(id) FROM analyses GROUP BY template_id, profile)
                AND analyses.template_id IN (
                    SELECT template_id FROM analyses
                    WHERE id IN (SELECT MAX(id) FROM analyses GROUP BY template_id, profile)
                    GROUP BY template_id
                    HAVING {" OR ".join(f"COUNT(DISTINCT {name}) > 1" for name in _FLAGS)})) AS told
        GROUP BY sha256, profile, {", ".join(_FLAGS)} ORDER BY path, sha256, profile DESC""",  # noqa: S608 - constants
    ),
    (
        "changes",
        "Templates that appeared, are gone or were replaced between the two newest finished scans",
        "SELECT change, path, variant, old_sha256, new_sha256 FROM changes ORDER BY path, variant, change",
    ),
    (
        "scans",
        "All scans, newest first",
        """SELECT id, started_at, finished_at, status, files_seen, files_unchanged, capscan_version, profile, sources
        FROM scans ORDER BY id DESC""",
    ),
)
"""The queries that `capscan query` knows by name."""


_ANALYSIS_SUMMARY = (
    AnalysisRow.profile,
    AnalysisRow.outcome,
    AnalysisRow.reason,
    AnalysisRow.handler,
    AnalysisRow.server_starts,
    *(getattr(AnalysisRow, name) for name in _FLAGS),
)


def _columns(table: Any) -> Sequence[Any]:
    """All columns of a table: rows of values are lighter than objects that follow their changes."""
    return tuple(table.__table__.columns)


def _counted(condition: Any) -> Any:
    return func.sum(case((condition, 1), else_=0))


def _newest_analyses() -> Select[Any]:
    return select(func.max(AnalysisRow.id)).group_by(AnalysisRow.template_id, AnalysisRow.profile)


def _find_scan(connection: Connection, scan_id: int | None) -> ScanRecord:
    statement = select(*_columns(ScanRow)).order_by(ScanRow.id.desc()).limit(1)
    if scan_id is not None:
        statement = statement.where(ScanRow.id == scan_id)
    row = connection.execute(statement).first()
    if row is None:
        raise UsageError("there is no scan yet" if scan_id is None else f"there is no scan {scan_id}")
    return _scan(row)


def _files_by_outcome(connection: Connection, held: Any) -> dict[Outcome, int]:
    statement = (
        select(held.c.outcome, func.count(held.c.model_file_id.distinct()))
        .group_by(held.c.outcome)
        .order_by(held.c.outcome)
    )
    return {Outcome(outcome): count for outcome, count in connection.execute(statement)}


def _variants(connection: Connection, held: Any) -> dict[str, int]:
    statement = (
        select(held.c.variant, func.count())
        .where(held.c.template_id.is_not(None))
        .group_by(held.c.variant)
        .order_by(func.count().desc(), held.c.variant)
    )
    return {row[0]: row[1] for row in connection.execute(statement)}


def _new_templates(connection: Connection, scan: int) -> int:
    """How many templates no earlier scan saw."""
    new = (
        select(AppearanceRow.template_id)
        .where(AppearanceRow.template_id.is_not(None))
        .group_by(AppearanceRow.template_id)
        .having(func.min(AppearanceRow.scan_id) == scan)
    )
    return connection.execute(select(func.count()).select_from(new.subquery())).scalar_one()


def _claims(connection: Connection, held: Any, profile: str) -> tuple[ClaimCount, ...]:
    counts = []
    for name in CAPABILITIES:
        flag = getattr(AnalysisRow, f"supports_{name}")
        for condition in (flag.is_(True), flag.is_not(None)):
            counts.append(func.count(case((condition, held.c.template_id)).distinct()))
            counts.append(func.count(case((condition, held.c.model_file_id)).distinct()))
    statement = (
        select(*counts)
        .select_from(held)
        .join(AnalysisRow, AnalysisRow.template_id == held.c.template_id)
        .where(AnalysisRow.profile == profile, AnalysisRow.id.in_(_newest_analyses()))
    )
    row = connection.execute(statement).one()
    return tuple(
        ClaimCount(
            profile,
            name,
            templates_claiming=row[4 * place],
            files_claiming=row[4 * place + 1],
            templates_analysed=row[4 * place + 2],
            files_analysed=row[4 * place + 3],
        )
        for place, name in enumerate(CAPABILITIES)
    )


def _find_template(connection: Connection, prefix: str) -> Any:
    wanted = prefix.lower()
    if not wanted or not set(wanted) <= set("0123456789abcdef"):
        raise UsageError(f"{prefix!r} is not the beginning of a SHA-256")
    statement = (
        select(TemplateRow.id, TemplateRow.sha256, TemplateRow.source)
        .where(TemplateRow.sha256.startswith(wanted))
        .order_by(TemplateRow.sha256)
        .limit(_CANDIDATES_SHOWN)
    )
    found = connection.execute(statement).all()
    return _only(found, f"template {prefix}", [row.sha256 for row in found])


def _find_file(connection: Connection, name: str) -> Any:
    statement = select(*_columns(ModelFileRow))
    exact = connection.execute(statement.where(ModelFileRow.path == name)).first()
    if exact is not None:
        return exact
    ending = ModelFileRow.path.endswith(f"/{name}", autoescape=True)
    # LIKE may ignore case, so what it finds is compared again.
    found = [
        row
        for row in connection.execute(statement.where(ending).order_by(ModelFileRow.path))
        if row.path.endswith(name)
    ]
    return _only(found, f"model file {name}", [row.path for row in found[:_CANDIDATES_SHOWN]])


def _only(found: Sequence[Any], what: str, candidates: Sequence[str]) -> Any:
    if not found:
        raise UsageError(f"there is no {what} in the database")
    if len(found) > 1:
        raise UsageError(f"{what} may be any of {', '.join(candidates)}, …: say more of it")
    return found[0]


def _analyses(connection: Connection, template: int, sha256: str) -> tuple[Analysis, ...]:
    statement = (
        select(*_columns(AnalysisRow))
        .where(AnalysisRow.template_id == template, AnalysisRow.id.in_(_newest_analyses()))
        .order_by(AnalysisRow.profile)
    )
    return tuple(_analysis(connection, row, sha256) for row in connection.execute(statement).all())


def _analysis(connection: Connection, row: Any, sha256: str) -> Analysis:
    found = select(*_columns(FindingRow)).where(FindingRow.analysis_id == row.id).order_by(FindingRow.position)
    return Analysis(
        result=replace(
            _analysed(row, sha256),
            probes=_probes(connection, row.id),
            findings=tuple(_finding(finding) for finding in connection.execute(found)),
        ),
        observed={name: getattr(row, f"observed_{name}") for name in CAPABILITIES},
        capscan_version=row.capscan_version,
        analysis_version=row.analysis_version,
        created_at=row.created_at,
    )


def _analysed(row: Any, sha256: str) -> TemplateResult:
    """The result without its probes and findings, which have tables of their own."""
    return TemplateResult(
        sha256=sha256,
        profile=row.profile,
        outcome=Outcome(row.outcome),
        parse_error=_parse_error(row),
        capabilities=_capabilities(row),
        handler=row.handler,
        patches=tuple(row.patches),
        reason=row.reason,
        start=_start(row),
        duration=row.duration,
    )


def _probes(connection: Connection, analysis: int) -> tuple[ProbeRun, ...]:
    runs = select(*_columns(ProbeRunRow)).where(ProbeRunRow.analysis_id == analysis).order_by(ProbeRunRow.position)
    statement = (
        select(*_columns(ReadRow))
        .join(ProbeRunRow, ProbeRunRow.id == ReadRow.probe_run_id)
        .where(ProbeRunRow.analysis_id == analysis)
        .order_by(ReadRow.probe_run_id, ReadRow.position)
    )
    reads: dict[int, list[Read]] = {}
    for row in connection.execute(statement):
        read = Read(row.path, row.used, tuple(row.ops), row.line, row.column)
        reads.setdefault(row.probe_run_id, []).append(read)
    return tuple(_probe(row, reads.get(row.id, ())) for row in connection.execute(runs))


def _probe(row: Any, reads: Iterable[Read]) -> ProbeRun:
    return ProbeRun(
        name=row.name,
        ok=row.ok,
        output=row.output,
        parts=tuple(Part(part["text"], part["is_input"]) for part in row.parts),
        error=_run_error(row),
        reads=tuple(reads),
        variables=row.variables,
        duration=row.duration,
    )


def _run_error(row: Any) -> RunError | None:
    if row.error_kind is None:
        return None
    return RunError(
        row.error_kind, row.error_message, row.error_node, row.error_offset, row.error_line, row.error_column
    )


def _parse_error(row: Any) -> ParseError | None:
    if row.parse_error_kind is None:
        return None
    return ParseError(
        row.parse_error_kind,
        row.parse_error_message,
        row.parse_error_line,
        row.parse_error_column,
        row.parse_error_offset,
    )


def _start(row: Any) -> StartCheck | None:
    """None also for a template that does not parse: `TemplateResult.server_start` knows of that."""
    error = _start_error(row)
    if row.server_starts is None or (error is None and not row.server_starts):
        return None
    return StartCheck(row.server_starts, row.thinks_by_default, row.start_conversation, error, row.start_log)


def _start_error(row: Any) -> RunError | None:
    if row.start_error_kind is None:
        return None
    return RunError(
        row.start_error_kind,
        row.start_error_message,
        row.start_error_node,
        row.start_error_offset,
        row.start_error_line,
        row.start_error_column,
    )


def _starts(connection: Connection, file: Any) -> dict[str, StartCheck]:
    """Of the templates that a model file holds, by SHA-256, those whose start was examined under some profile."""
    held = select(AppearanceRow.template_id).where(
        AppearanceRow.model_file_id == file.id, AppearanceRow.scan_id == file.last_seen_scan_id
    )
    statement = (
        select(TemplateRow.sha256, *_columns(AnalysisRow))
        .join(TemplateRow, TemplateRow.id == AnalysisRow.template_id)
        .where(AnalysisRow.template_id.in_(held), AnalysisRow.server_starts.is_not(None))
        .where(AnalysisRow.id.in_(_newest_analyses()))
    )
    checks = {row.sha256: _analysed(row, row.sha256).server_start for row in connection.execute(statement)}
    return {sha256: check for sha256, check in checks.items() if check is not None}


def _verifications(connection: Connection, condition: Any) -> tuple[StoredVerification, ...]:
    statement = (
        select(TemplateRow.sha256, *_columns(VerificationRow))
        .join(TemplateRow, TemplateRow.id == VerificationRow.template_id)
        .where(condition)
        .order_by(TemplateRow.sha256, VerificationRow.profile)
    )
    return tuple(
        StoredVerification(
            Verification(
                row.sha256,
                row.profile,
                Verdict(row.verdict),
                row.reason,
                tuple(FlagDifference(**difference) for difference in row.differences),
            ),
            row.capscan_version,
            row.verified_at,
        )
        for row in connection.execute(statement)
    )


def _finding(row: Any) -> Finding:
    return Finding(row.rule, Severity(row.severity), row.text, row.evidence, row.line)


def _capabilities(row: Any) -> Capabilities | None:
    flags = {name: getattr(row, f"supports_{name}") for name in CAPABILITIES}
    if all(flag is None for flag in flags.values()):
        return None
    # An older profile's builds have no flag for the effort.
    effort = flags.pop("reasoning_effort")
    return Capabilities(**{name: bool(flag) for name, flag in flags.items()}, reasoning_effort=effort)


def _appearances(connection: Connection, template: int) -> tuple[Appearance, ...]:
    newest = func.max(AppearanceRow.scan_id)
    statement = (
        select(ModelFileRow.path, AppearanceRow.variant, func.max(AppearanceRow.origin), newest)
        .join(ModelFileRow, ModelFileRow.id == AppearanceRow.model_file_id)
        .where(AppearanceRow.template_id == template)
        .group_by(ModelFileRow.path, AppearanceRow.variant)
        .order_by(ModelFileRow.path, AppearanceRow.variant)
    )
    return tuple(Appearance(*row) for row in connection.execute(statement))


def _file_result(connection: Connection, row: Any) -> FileResult:
    held = (
        select(AppearanceRow.variant, AppearanceRow.origin, TemplateRow.source)
        .join(TemplateRow, TemplateRow.id == AppearanceRow.template_id)
        .where(AppearanceRow.model_file_id == row.id, AppearanceRow.scan_id == row.last_seen_scan_id)
        .order_by(AppearanceRow.position)
    )
    return FileResult(
        file=ModelFile(row.path, row.source, SourceKind(row.kind), row.size, row.mtime_ns, row.fingerprint),
        outcome=Outcome(row.outcome),
        templates=tuple(
            ChatTemplate(template.variant, template.source, template.origin) for template in connection.execute(held)
        ),
        metadata=_metadata(row),
        reason=row.reason,
        offset=row.byte_offset,
        expected=row.expected,
        notes=tuple(row.notes),
    )


def _metadata(row: Any) -> ModelMetadata:
    return ModelMetadata(
        architecture=row.architecture,
        name=row.name,
        basename=row.basename,
        size_label=row.size_label,
        file_type=row.file_type,
        quantized_by=row.quantized_by,
        license=row.license,
        repo_url=row.repo_url,
        tokenizer_pre=row.tokenizer_pre,
        block_count=row.block_count,
        split_no=row.split_no,
        split_count=row.split_count,
        bos=SpecialToken(row.bos_id, row.bos_text, row.adds_bos),
        eos=SpecialToken(row.eos_id, row.eos_text, row.adds_eos),
    )


def _scan(row: Any) -> ScanRecord:
    return ScanRecord(
        id=row.id,
        started_at=row.started_at,
        finished_at=row.finished_at,
        status=row.status,
        sources=tuple(row.sources),
        capscan_version=row.capscan_version,
        profile=row.profile,
        files_seen=row.files_seen,
        files_unchanged=row.files_unchanged,
        passed_over=tuple(PassedOver(passed["path"], passed["reason"]) for passed in row.passed_over),
    )


def _latest_file(row: Any) -> LatestFile:
    return LatestFile(
        path=row.path,
        variant=row.variant,
        sha256=row.sha256,
        outcome=Outcome(row.outcome),
        reason=row.reason,
        offset=row.byte_offset,
        expected=row.expected,
        kind=SourceKind(row.kind),
        size=row.size,
        architecture=row.architecture,
        file_type=row.file_type,
        quantized_by=row.quantized_by,
        profile=row.profile,
        scan_id=row.scan_id,
        capabilities=_capabilities(row),
    )


def _template_summary(row: Any) -> TemplateSummary:
    return TemplateSummary(
        sha256=row.sha256,
        size=row.size,
        profile=row.profile,
        outcome=Outcome(row.outcome),
        reason=row.reason,
        handler=row.handler,
        server_starts=row.server_starts,
        files=row.files,
        path=row.path,
        capabilities=_capabilities(row),
        errors=row.errors,
        warnings=row.warnings,
        notes=row.notes,
    )


class _TimeLimit:
    """Time that the database may work; it stops counting while nobody waits for it."""

    def __init__(self, seconds: float) -> None:
        self._left = seconds
        self._started: float | None = None

    @contextmanager
    def counting(self) -> Iterator[None]:
        self._started = time.monotonic()
        try:
            yield
        finally:
            self._left -= time.monotonic() - self._started
            self._started = None

    def is_over(self) -> bool:
        running = 0.0 if self._started is None else time.monotonic() - self._started
        return running >= self._left


_READING_ACTIONS = frozenset(
    (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
)
_READING_PRAGMAS = frozenset(
    ("table_info", "table_xinfo", "table_list", "index_list", "index_info", "foreign_key_list")
)
_STEPS_BETWEEN_CHECKS = 10_000


def _authorize(action: int, first: str | None, *_rest: str | None) -> int:
    """Allows what reads this one database. ATTACH would open other files, and a pragma could lift `query_only`."""
    reads = action in _READING_ACTIONS or (action == sqlite3.SQLITE_PRAGMA and first in _READING_PRAGMAS)
    return sqlite3.SQLITE_OK if reads else sqlite3.SQLITE_DENY


def _open_read_only(engine: Engine, is_over: Callable[[], bool]) -> sqlite3.Connection:
    file = sqlite_file(engine)
    if file is None:
        raise UsageError("queries need a database that is a file, not one in memory")
    try:
        connection = sqlite3.connect(f"{Path(file).absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
    except sqlite3.Error as error:
        raise DatabaseError(f"{database_name(engine)}: {one_line(error)}") from error
    connection.text_factory = lambda data: str(data, "utf-8", "replace")
    connection.execute("PRAGMA query_only = ON")
    connection.set_authorizer(_authorize)
    connection.set_progress_handler(is_over, _STEPS_BETWEEN_CHECKS)
    return connection


def _sqlite_rows(engine: Engine, sql: str, seconds: float) -> Iterator[tuple[object, ...]]:
    """First the names of the columns, then the rows."""
    limit = _TimeLimit(seconds)
    connection = _open_read_only(engine, limit.is_over)
    try:
        with _sqlite_refusals(limit, seconds), limit.counting():
            cursor = connection.execute(sql)
        yield _column_names(cursor)
        while True:
            with _sqlite_refusals(limit, seconds), limit.counting():
                rows = cursor.fetchmany(_PAGE)
            if not rows:
                return
            yield from rows
    finally:
        connection.close()


@contextmanager
def _sqlite_refusals(limit: _TimeLimit, seconds: float) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
        # ValueError: the SQL holds what no SQL can, such as a lone surrogate.
        if limit.is_over():
            raise UsageError(f"the query was stopped after {seconds:g} s") from error
        raise UsageError(f"the query was refused: {one_line(error)}") from error


def _postgresql_rows(engine: Engine, sql: str, seconds: float) -> Iterator[tuple[object, ...]]:
    """First the names of the columns, then the rows."""
    # Never committed: what a statement set for the session must not outlive it.
    reading = engine.execution_options(postgresql_readonly=True)
    with translated(engine), reading.connect() as connection:
        milliseconds = max(1, int(seconds * 1000))
        connection.execute(select(func.set_config("statement_timeout", str(milliseconds), True)))
        driver: Any = connection.connection.driver_connection
        with driver.cursor() as cursor:
            try:
                # As a prepared statement it can be but one: a second, after COMMIT, would be free to write.
                cursor.execute(sql, prepare=True)
            except (engine.dialect.loaded_dbapi.Error, ValueError) as error:
                raise UsageError(f"the query was refused: {one_line(error)}") from error
            yield _column_names(cursor)
            yield from cursor


def _column_names(cursor: Any) -> tuple[str, ...]:
    if cursor.description is None:
        raise UsageError("the query gives no table: it must be one SELECT")
    return tuple(str(column[0]) for column in cursor.description)
