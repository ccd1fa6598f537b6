"""All reading of the database: records for the command line and the reports, named queries, and SQL by hand.

Every function takes an engine whose schema is current (`migrate.ensure_current`), reads in one short transaction and
raises DatabaseError when the database fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Engine, Select, bindparam, func, select, true

from scanner.errors import UsageError
from scanner.results import (
    GO,
    GO_TEMPLATE,
    JINJA,
    Agreement,
    Behaviour,
    ChatTemplate,
    Effort,
    EffortOutcome,
    FileResult,
    Finding,
    FlagDifference,
    ModelFile,
    ModelMetadata,
    ModelName,
    Observation,
    Outcome,
    ParseError,
    Part,
    ProbeRun,
    Read,
    RunError,
    Severity,
    SourceKind,
    SpecialToken,
    StandardRender,
    StartCheck,
    TemplateResult,
    Verdict,
    Verification,
)
from scanner.store.by_hand import Rows as Rows
from scanner.store.by_hand import run_sql as run_sql
from scanner.store.collection import claim_counts as claim_counts
from scanner.store.collection import combinations as combinations
from scanner.store.collection import failures as failures
from scanner.store.collection import file_findings as file_findings
from scanner.store.collection import files as files
from scanner.store.collection import files_of
from scanner.store.collection import templates as templates
from scanner.store.models import (
    AnalysisRow,
    AppearanceRow,
    BehaviourRow,
    EffortRow,
    FindingRow,
    ModelFileRow,
    ModelNameRow,
    ObservationRow,
    ProbeRunRow,
    ReadRow,
    RenderRow,
    TemplateRow,
    VerificationRow,
    latest_files,
)
from scanner.store.named import NAMED as NAMED
from scanner.store.named import find as find
from scanner.store.outliers import disagreement_list as disagreement_list
from scanner.store.outliers import misleads as misleads
from scanner.store.outliers import outlier_list as outlier_list
from scanner.store.records import Analysis as Analysis
from scanner.store.records import Appearance as Appearance
from scanner.store.records import Change as Change
from scanner.store.records import ClaimCount as ClaimCount
from scanner.store.records import Combination as Combination
from scanner.store.records import Disagreement as Disagreement
from scanner.store.records import Failure as Failure
from scanner.store.records import FileDetail as FileDetail
from scanner.store.records import FileFinding as FileFinding
from scanner.store.records import HeldFile as HeldFile
from scanner.store.records import HeldFinding as HeldFinding
from scanner.store.records import HeldVariant as HeldVariant
from scanner.store.records import LatestFile as LatestFile
from scanner.store.records import Outlier as Outlier
from scanner.store.records import ScanRecord as ScanRecord
from scanner.store.records import ScanSummary as ScanSummary
from scanner.store.records import StoredVerification as StoredVerification
from scanner.store.records import TemplateDetail as TemplateDetail
from scanner.store.records import TemplateSummary as TemplateSummary
from scanner.store.rows import capabilities_of, columns_of, newest_analyses, observed_of
from scanner.store.scans import INCOMPLETE_SPLIT as INCOMPLETE_SPLIT
from scanner.store.scans import PARTLY_EXAMINED as PARTLY_EXAMINED
from scanner.store.scans import change_list as change_list
from scanner.store.scans import changes_of_scan as changes_of_scan
from scanner.store.scans import findings_of_scan as findings_of_scan
from scanner.store.scans import first_names as first_names
from scanner.store.scans import held_in_scan as held_in_scan
from scanner.store.scans import new_templates as new_templates
from scanner.store.scans import newest_finished as newest_finished
from scanner.store.scans import not_examined as not_examined
from scanner.store.scans import scan_before as scan_before
from scanner.store.scans import scan_summary as scan_summary
from scanner.store.scans import scans as scans
from scanner.store.session import connection_scope

QUERY_SECONDS = 60.0
"""How long a named query may take."""

_CANDIDATES_SHOWN = 5
_AT_ONCE = 500
"""Parameters of a query; databases allow only so many."""


def template_detail(engine: Engine, sha256: str, scan_id: int | None = None) -> TemplateDetail:
    """Everything of the template whose SHA-256 begins with `sha256`; with a scan, no appearance after it. Raises
    UsageError when there is no such template, or several."""
    with connection_scope(engine) as connection:
        row = _find_template(connection, sha256)
        return TemplateDetail(
            sha256=row.sha256,
            source=row.source,
            analyses=_analyses(connection, row.id, row.sha256),
            appearances=_appearances(connection, row.id, scan_id),
            verifications=_verifications(connection, VerificationRow.template_id == row.id),
            kind=row.kind,
        )


def analysis(engine: Engine, number: int) -> Analysis | None:
    """The analysis of this number, which need not be the newest of its template; None where there is none."""
    statement = (
        select(TemplateRow.sha256, *columns_of(AnalysisRow))
        .join(TemplateRow, TemplateRow.id == AnalysisRow.template_id)
        .where(AnalysisRow.id == number)
    )
    with connection_scope(engine) as connection:
        row = connection.execute(statement).first()
        return None if row is None else _analysis(connection, row, row.sha256)


def verifications(engine: Engine) -> tuple[StoredVerification, ...]:
    """What the real llama.cpp said of every template it was asked about, by SHA-256."""
    with connection_scope(engine) as connection:
        return _verifications(connection, true())


def template_sources(engine: Engine) -> Iterator[tuple[str, bytes]]:
    """The SHA-256 and bytes of every Jinja template that a file holds now, by SHA-256."""
    held = select(latest_files.c.template_id).where(latest_files.c.template_id.is_not(None))
    statement = (
        select(TemplateRow.sha256, TemplateRow.source)
        .where(TemplateRow.id.in_(held), TemplateRow.kind == JINJA)
        .order_by(TemplateRow.sha256)
    )
    with connection_scope(engine) as connection:
        rows = connection.execute(statement).all()
    for row in rows:
        yield row.sha256, row.source


def sources_of(engine: Engine, sha256s: Iterable[str]) -> dict[str, bytes]:
    """The bytes of these templates by their SHA-256, sorted; those that the database does not hold are left out."""
    wanted = sorted(set(sha256s))
    found: dict[str, bytes] = {}
    with connection_scope(engine) as connection:
        for start in range(0, len(wanted), _AT_ONCE):
            page = TemplateRow.sha256.in_(wanted[start : start + _AT_ONCE])
            rows = connection.execute(select(TemplateRow.sha256, TemplateRow.source).where(page))
            found |= {row.sha256: row.source for row in rows}
    return dict(sorted(found.items()))


def file_detail(engine: Engine, name: str) -> FileDetail:
    """Everything of the model file with this path, or else this name in a store, or else this last part of a path.
    Raises UsageError for none or several."""
    with connection_scope(engine) as connection:
        row = _find_file(connection, name)
        latest = select(latest_files).where(latest_files.c.model_file_id == row.id).order_by(latest_files.c.variant)
        found = (
            select(*columns_of(FindingRow))
            .where(FindingRow.model_file_id == row.id, FindingRow.scan_id == row.last_seen_scan_id)
            .order_by(FindingRow.position)
        )
        return FileDetail(
            result=_file_result(connection, row),
            first_seen_scan=row.first_seen_scan_id,
            last_seen_scan=row.last_seen_scan_id,
            variants=tuple(files_of(connection.execute(latest))),
            findings=tuple(_finding(finding) for finding in connection.execute(found)),
            starts=_starts(connection, row),
        )


def run_named(
    engine: Engine, name: str, given: Mapping[str, str] | None = None, *, seconds: float = QUERY_SECONDS
) -> Rows:
    """Runs one of NAMED; `given` are values of its parameters. Raises UsageError for another name, and for a parameter
    or value that makes no sense."""
    query = find(name)
    return run_sql(engine, query.sql, seconds=seconds, values=query.bound(given or {}))


def _find_template(connection: Connection, prefix: str) -> Any:
    wanted = prefix.lower()
    if not wanted or not set(wanted) <= set("0123456789abcdef"):
        raise UsageError(f"{prefix!r} is not the beginning of a SHA-256")
    statement = (
        select(TemplateRow.id, TemplateRow.sha256, TemplateRow.source, TemplateRow.kind)
        .where(TemplateRow.sha256.startswith(wanted))
        .order_by(TemplateRow.sha256)
        .limit(_CANDIDATES_SHOWN)
    )
    found = connection.execute(statement).all()
    return _only(found, f"template {prefix}", [row.sha256 for row in found])


def _find_file(connection: Connection, name: str) -> Any:
    statement = select(*columns_of(ModelFileRow))
    exact = connection.execute(statement.where(ModelFileRow.path == name)).first()
    if exact is not None:
        return exact
    called = _called(connection, name)
    if called:
        return _only(called, f"model file called {name}", [row.path for row in called[:_CANDIDATES_SHOWN]])
    ending = ModelFileRow.path.endswith(f"/{name}", autoescape=True)
    # LIKE may ignore case, so what it finds is compared again.
    found = [
        row
        for row in connection.execute(statement.where(ending).order_by(ModelFileRow.path))
        if row.path.endswith(name)
    ]
    return _only(found, f"model file {name}", [row.path for row in found[:_CANDIDATES_SHOWN]])


def _called(connection: Connection, name: str) -> Sequence[Any]:
    """The model files that a store calls so, as the newest scans have it; `MODEL` is also `MODEL:latest`."""
    wanted = [name] if ":" in name.rsplit("/", 1)[-1] else [name, f"{name}:latest"]
    named = (
        select(ModelNameRow.model_file_id)
        .join(ModelFileRow, ModelFileRow.id == ModelNameRow.model_file_id)
        .where(ModelNameRow.name.in_(wanted), ModelNameRow.scan_id == ModelFileRow.last_seen_scan_id)
    )
    statement = select(*columns_of(ModelFileRow)).where(ModelFileRow.id.in_(named)).order_by(ModelFileRow.path)
    return connection.execute(statement).all()


def _only(found: Sequence[Any], what: str, candidates: Sequence[str]) -> Any:
    if not found:
        raise UsageError(f"there is no {what} in the database")
    if len(found) > 1:
        raise UsageError(f"{what} may be any of {', '.join(candidates)}, …: say more of it")
    return found[0]


def _analyses(connection: Connection, template: int, sha256: str) -> tuple[Analysis, ...]:
    statement = (
        select(*columns_of(AnalysisRow))
        .where(AnalysisRow.template_id == template, AnalysisRow.id.in_(newest_analyses()))
        .order_by(AnalysisRow.profile)
    )
    return tuple(_analysis(connection, row, sha256) for row in connection.execute(statement).all())


def _analysis(connection: Connection, row: Any, sha256: str) -> Analysis:
    return Analysis(
        result=replace(
            _analysed(row, sha256),
            probes=_probes(connection, row.id),
            findings=tuple(_finding(one) for one in _parts_of(connection, FindingRow, row.id)),
            observations=tuple(_observation(one) for one in _parts_of(connection, ObservationRow, row.id)),
            efforts=tuple(_effort(one) for one in _parts_of(connection, EffortRow, row.id)),
            behaviours=tuple(
                Behaviour(one.key, one.outcome, one.detail, one.evidence, one.line)
                for one in _parts_of(connection, BehaviourRow, row.id)
            ),
            renders=tuple(
                StandardRender(one.engine, one.scenario, one.output, one.error, _inputs(one))
                for one in _parts_of(connection, RenderRow, row.id)
            ),
        ),
        observed=observed_of(row),
        capscan_version=row.capscan_version,
        analysis_version=row.analysis_version,
        created_at=row.created_at,
    )


def _analysed(row: Any, sha256: str) -> TemplateResult:
    """The result without what has tables of its own."""
    return TemplateResult(
        sha256=sha256,
        profile=row.profile,
        outcome=Outcome(row.outcome),
        parse_error=_parse_error(row),
        capabilities=capabilities_of(row),
        handler=row.handler,
        patches=tuple(row.patches),
        reason=row.reason,
        start=_start(row),
        free_text_effort=row.free_text_effort,
        duration=row.duration,
        lines=row.lines,
    )


def _parts_of(connection: Connection, table: Any, analysis: int) -> Sequence[Any]:
    """The rows of one of an analysis's tables, in their order."""
    return connection.execute(_PARTS[table], {"analysis": analysis}).all()


def _parts(table: Any) -> Select[Any]:
    return select(*columns_of(table)).where(table.analysis_id == bindparam("analysis")).order_by(table.position)


# Made once: a report reads these for every template, and to make a statement takes longer than to run it.
_PARTS = {
    table: _parts(table) for table in (ProbeRunRow, FindingRow, ObservationRow, EffortRow, BehaviourRow, RenderRow)
}
_READS = (
    select(*columns_of(ReadRow))
    .join(ProbeRunRow, ProbeRunRow.id == ReadRow.probe_run_id)
    .where(ProbeRunRow.analysis_id == bindparam("analysis"))
    .order_by(ReadRow.probe_run_id, ReadRow.position)
)


def _inputs(row: Any) -> tuple[tuple[int, int], ...] | None:
    return None if row.inputs is None else tuple((first, end) for first, end in row.inputs)


def _observation(row: Any) -> Observation:
    run = None if row.ok is None else _run(row, row.capability, ())
    agreement = None if row.agreement is None else Agreement(row.agreement)
    return Observation(row.capability, row.verdict, row.reason, agreement, run)


def _effort(row: Any) -> Effort:
    return Effort(
        row.word,
        EffortOutcome(row.outcome),
        row.message,
        row.line,
        row.group_number,
        bool(row.prints_word),
        bool(row.equals_unset),
    )


def _probes(connection: Connection, analysis: int) -> tuple[ProbeRun, ...]:
    reads: dict[int, list[Read]] = {}
    for row in connection.execute(_READS, {"analysis": analysis}):
        read = Read(row.path, row.used, tuple(row.ops), row.line, row.column)
        reads.setdefault(row.probe_run_id, []).append(read)
    return tuple(
        _run(row, row.name, reads.get(row.id, ()), row.lines) for row in _parts_of(connection, ProbeRunRow, analysis)
    )


def _run(row: Any, name: str, reads: Iterable[Read], lines: tuple[int, ...] = ()) -> ProbeRun:
    return ProbeRun(
        name=name,
        ok=row.ok,
        output=row.output,
        parts=tuple(Part(part["text"], part["is_input"]) for part in row.parts),
        error=_run_error(row),
        reads=tuple(reads),
        variables=row.variables,
        duration=row.duration,
        lines=lines,
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
        select(TemplateRow.sha256, *columns_of(AnalysisRow))
        .join(TemplateRow, TemplateRow.id == AnalysisRow.template_id)
        .where(AnalysisRow.template_id.in_(held), AnalysisRow.server_starts.is_not(None))
        .where(AnalysisRow.id.in_(newest_analyses()))
    )
    checks = {row.sha256: _analysed(row, row.sha256).server_start for row in connection.execute(statement)}
    return {sha256: check for sha256, check in checks.items() if check is not None}


def _verifications(connection: Connection, condition: Any) -> tuple[StoredVerification, ...]:
    statement = (
        select(TemplateRow.sha256, *columns_of(VerificationRow))
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


def _appearances(connection: Connection, template: int, until: int | None) -> tuple[Appearance, ...]:
    newest = func.max(AppearanceRow.scan_id)
    told = true() if until is None else AppearanceRow.scan_id <= until
    statement = (
        select(ModelFileRow.path, AppearanceRow.variant, func.max(AppearanceRow.origin), newest)
        .join(ModelFileRow, ModelFileRow.id == AppearanceRow.model_file_id)
        .where(AppearanceRow.template_id == template, told)
        .group_by(ModelFileRow.path, AppearanceRow.variant)
        .order_by(ModelFileRow.path, AppearanceRow.variant)
    )
    return tuple(Appearance(*row) for row in connection.execute(statement))


def _file_result(connection: Connection, row: Any) -> FileResult:
    held = (
        select(AppearanceRow.variant, AppearanceRow.origin, AppearanceRow.reason, TemplateRow.source)
        .join(TemplateRow, TemplateRow.id == AppearanceRow.template_id)
        .where(AppearanceRow.model_file_id == row.id, AppearanceRow.scan_id == row.last_seen_scan_id)
        .order_by(AppearanceRow.position)
    )
    return FileResult(
        file=ModelFile(
            row.path,
            row.source,
            SourceKind(row.kind),
            row.size,
            row.mtime_ns,
            row.fingerprint,
            names=_names(connection, row),
        ),
        outcome=Outcome(row.outcome),
        templates=tuple(
            ChatTemplate(
                template.variant, template.source, template.origin, GO if template.reason == GO_TEMPLATE else JINJA
            )
            for template in connection.execute(held)
        ),
        metadata=_metadata(row),
        reason=row.reason,
        offset=row.byte_offset,
        expected=row.expected,
        notes=tuple(row.notes),
    )


def _names(connection: Connection, file: Any) -> tuple[ModelName, ...]:
    statement = (
        select(ModelNameRow.store, ModelNameRow.name, ModelNameRow.repository, ModelNameRow.revision)
        .where(ModelNameRow.model_file_id == file.id, ModelNameRow.scan_id == file.last_seen_scan_id)
        .order_by(ModelNameRow.position)
    )
    return tuple(ModelName(*row) for row in connection.execute(statement))


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
        role=row.role,
    )
