"""All reading of the database: records for the command line and the reports, named queries, and SQL by hand.

Every function takes an engine whose schema is current (`migrate.ensure_current`), reads in one short transaction and
raises DatabaseError when the database fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, Engine, Select, case, func, null, or_, select, true

from scanner.errors import UsageError
from scanner.results import (
    CAPABILITIES,
    Agreement,
    Behaviour,
    Capabilities,
    ChatTemplate,
    Effort,
    EffortOutcome,
    FileResult,
    Finding,
    FlagDifference,
    ModelFile,
    ModelMetadata,
    Observation,
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
    StandardRender,
    StartCheck,
    TemplateResult,
    Verdict,
    Verification,
)
from scanner.store.by_hand import Rows as Rows
from scanner.store.by_hand import run_sql as run_sql
from scanner.store.models import (
    AnalysisRow,
    AppearanceRow,
    BehaviourRow,
    EffortRow,
    FindingRow,
    ModelFileRow,
    ObservationRow,
    ProbeRunRow,
    ReadRow,
    RenderRow,
    ScanRow,
    TemplateRow,
    VerificationRow,
    changes,
    flag_distribution,
    latest_files,
    outliers,
)
from scanner.store.named import NAMED as NAMED
from scanner.store.records import Analysis as Analysis
from scanner.store.records import Appearance as Appearance
from scanner.store.records import Change as Change
from scanner.store.records import ClaimCount as ClaimCount
from scanner.store.records import Combination as Combination
from scanner.store.records import Disagreement as Disagreement
from scanner.store.records import EffortCount as EffortCount
from scanner.store.records import Failure as Failure
from scanner.store.records import FileDetail as FileDetail
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
from scanner.store.session import connection_scope

PARTLY_EXAMINED = "partly-examined"
"""The rule about templates of which not all could be examined."""
QUERY_SECONDS = 60.0
"""How long a named query may take."""

_PAGE = 500
_CANDIDATES_SHOWN = 5
_FLAGS = tuple(f"supports_{name}" for name in CAPABILITIES)
_OBSERVED = tuple(f"observed_{name}" for name in CAPABILITIES)


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
            partly_examined=_partly_examined(connection, held, scan.profile),
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
    """What the latest files claim and really have, by profile and in the order of CAPABILITIES."""
    with connection_scope(engine) as connection:
        rows = [ClaimCount(**row) for row in connection.execute(select(flag_distribution)).mappings()]
    return tuple(sorted(rows, key=lambda row: (row.profile, CAPABILITIES.index(row.capability))))


def templates(engine: Engine) -> tuple[TemplateSummary, ...]:
    """The templates of the latest files, by example path and SHA-256, then profile."""
    held = _held_now()
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
    """The outliers, worst first: errors before warnings before rare flags, then those in more files, then those with
    more errors and warnings. With a scan: only templates that it saw."""
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
    return tuple(sorted(rows, key=_badness))


def disagreement_list(engine: Engine, scan_id: int | None = None) -> tuple[Disagreement, ...]:
    """Where claims and observations disagree in the templates of the latest files, by capability, those in more files
    first. With a scan: in what it saw, under its profile."""
    held = _held_now() if scan_id is None else _held_in(scan_id)
    statement = (
        select(
            AnalysisRow.profile,
            TemplateRow.sha256,
            held.c.path,
            held.c.files,
            ObservationRow.capability,
            ObservationRow.agreement,
            ObservationRow.reason,
            ObservationRow.error_line.label("line"),
        )
        .join(AnalysisRow, AnalysisRow.id == ObservationRow.analysis_id)
        .join(TemplateRow, TemplateRow.id == AnalysisRow.template_id)
        .join(held, held.c.template_id == AnalysisRow.template_id)
        .where(ObservationRow.agreement != Agreement.AGREES.value, AnalysisRow.id.in_(_newest_analyses()))
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


def effort_counts(engine: Engine) -> tuple[EffortCount, ...]:
    """What each reasoning effort does over the templates of the latest files, by profile; unset first."""
    _columns_of, rows = run_named(engine, "efforts")
    return tuple(EffortCount(*row) for row in rows)  # type: ignore[arg-type]  # typed by the query


def not_examined(engine: Engine, scan_id: int, limit: int) -> tuple[Failure, ...]:
    """The first `limit` files, or variants, that a scan saw and could not examine, worst first: those that hold
    something that should be a template before those that do not."""
    worst = case(
        (AppearanceRow.outcome == Outcome.NOT_PARSEABLE.value, 0),
        (AppearanceRow.outcome == Outcome.LIMIT_EXCEEDED.value, 1),
        (AppearanceRow.outcome == Outcome.UNREADABLE.value, 2),
        else_=3,
    )
    statement = (
        select(
            ModelFileRow.path,
            AppearanceRow.variant,
            AppearanceRow.outcome,
            AppearanceRow.reason,
            AppearanceRow.byte_offset.label("offset"),
        )
        .join(ModelFileRow, ModelFileRow.id == AppearanceRow.model_file_id)
        .where(
            AppearanceRow.scan_id == scan_id,
            AppearanceRow.outcome.not_in((Outcome.ANALYSED.value, Outcome.NO_TEMPLATE.value)),
        )
        .order_by(worst, ModelFileRow.path, AppearanceRow.position)
        .limit(limit)
    )
    with connection_scope(engine) as connection:
        return tuple(
            Failure(**{**row, "outcome": Outcome(row["outcome"])}) for row in connection.execute(statement).mappings()
        )


def findings_of_scan(engine: Engine, scan_id: int) -> tuple[HeldFinding, ...]:
    """Every finding, under the scan's profile, in every file that it saw."""
    profile = select(ScanRow.profile).where(ScanRow.id == scan_id).scalar_subquery()
    of_templates = (
        select(FindingRow.severity, FindingRow.rule, ModelFileRow.path, TemplateRow.sha256)
        .join(AnalysisRow, AnalysisRow.id == FindingRow.analysis_id)
        .join(AppearanceRow, AppearanceRow.template_id == AnalysisRow.template_id)
        .join(ModelFileRow, ModelFileRow.id == AppearanceRow.model_file_id)
        .join(TemplateRow, TemplateRow.id == AnalysisRow.template_id)
        .where(AppearanceRow.scan_id == scan_id, AnalysisRow.profile == profile)
        .where(AnalysisRow.id.in_(_newest_analyses()))
    )
    of_files = (
        select(FindingRow.severity, FindingRow.rule, ModelFileRow.path, null().label("sha256"))
        .join(ModelFileRow, ModelFileRow.id == FindingRow.model_file_id)
        .where(FindingRow.scan_id == scan_id)
    )
    with connection_scope(engine) as connection:
        found = {
            HeldFinding(row.rule, Severity(row.severity), row.path, row.sha256)
            for statement in (of_templates, of_files)
            for row in connection.execute(statement)
        }
    return tuple(sorted(found, key=lambda held: (held.path, held.sha256 or "", held.severity, held.rule)))


def held_in_scan(engine: Engine, scan_id: int, profile: str) -> Iterator[HeldFile]:
    """Every file of a scan that holds templates, or none, with what is known of each of its variants; by path."""
    statement = (
        select(
            ModelFileRow.path,
            ModelFileRow.outcome.label("file_outcome"),
            ModelFileRow.bos_id,
            ModelFileRow.bos_text,
            ModelFileRow.adds_bos,
            AppearanceRow.variant,
            AppearanceRow.template_id,
            BehaviourRow.outcome.label("bos_outcome"),
            BehaviourRow.detail.label("bos_detail"),
            BehaviourRow.evidence.label("bos_evidence"),
            *[getattr(AnalysisRow, name) for name in ("outcome", *_FLAGS)],
        )
        .join(ModelFileRow, ModelFileRow.id == AppearanceRow.model_file_id)
        .outerjoin(
            AnalysisRow,
            (AnalysisRow.template_id == AppearanceRow.template_id)
            & (AnalysisRow.profile == profile)
            & AnalysisRow.id.in_(_newest_analyses()),
        )
        .outerjoin(BehaviourRow, (BehaviourRow.analysis_id == AnalysisRow.id) & (BehaviourRow.key == "bos"))
        .where(AppearanceRow.scan_id == scan_id, ModelFileRow.outcome.in_((Outcome.ANALYSED, Outcome.NO_TEMPLATE)))
        .order_by(ModelFileRow.path, AppearanceRow.position)
    )
    with connection_scope(engine) as connection:
        rows = connection.execute(statement).all()
    for path, held in groupby(rows, key=lambda row: row.path):
        listed = list(held)
        variants = tuple(
            HeldVariant(
                row.variant,
                Outcome(row.outcome or Outcome.SKIPPED),
                _capabilities(row),
                None
                if row.bos_outcome is None
                else Behaviour("bos", row.bos_outcome, row.bos_detail, row.bos_evidence),
            )
            for row in listed
            if row.template_id is not None
        )
        first = listed[0]
        bos = SpecialToken(first.bos_id, first.bos_text, first.adds_bos)
        yield HeldFile(path, Outcome(first.file_outcome), variants, bos)


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


_ANALYSIS_SUMMARY = (
    AnalysisRow.profile,
    AnalysisRow.outcome,
    AnalysisRow.reason,
    AnalysisRow.handler,
    AnalysisRow.server_starts,
    *(getattr(AnalysisRow, name) for name in (*_FLAGS, *_OBSERVED)),
)


def _columns(table: Any) -> Sequence[Any]:
    """All columns of a table: rows of values are lighter than objects that follow their changes."""
    return tuple(table.__table__.columns)


def _counted(condition: Any) -> Any:
    return func.sum(case((condition, 1), else_=0))


def _newest_analyses() -> Select[Any]:
    return select(func.max(AnalysisRow.id)).group_by(AnalysisRow.template_id, AnalysisRow.profile)


def _held_now() -> Any:
    """The templates of the latest files: in how many files, and the first of these."""
    return (
        select(
            latest_files.c.template_id,
            func.min(latest_files.c.path).label("path"),
            func.count(latest_files.c.model_file_id.distinct()).label("files"),
        )
        .where(latest_files.c.template_id.is_not(None))
        .group_by(latest_files.c.template_id)
        .subquery()
    )


def _held_in(scan: int) -> Any:
    """The same of one scan."""
    return (
        select(
            AppearanceRow.template_id,
            func.min(ModelFileRow.path).label("path"),
            func.count(AppearanceRow.model_file_id.distinct()).label("files"),
        )
        .join(ModelFileRow, ModelFileRow.id == AppearanceRow.model_file_id)
        .where(AppearanceRow.template_id.is_not(None), AppearanceRow.scan_id == scan)
        .group_by(AppearanceRow.template_id)
        .subquery()
    )


MISLEADING = ("overclaims-", "underclaims-", "effort-")
"""Begin the rules about flags that are not true."""


def misleads(outlier: Outlier) -> bool:
    """Whether an outlier is one for a flag that is not true: that is worse than what no flag speaks of."""
    return (outlier.rule or "").startswith(MISLEADING)


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


def _partly_examined(connection: Connection, held: Any, profile: str) -> int:
    statement = (
        select(func.count(AnalysisRow.template_id.distinct()))
        .join(FindingRow, FindingRow.analysis_id == AnalysisRow.id)
        .where(FindingRow.rule == PARTLY_EXAMINED, AnalysisRow.profile == profile)
        .where(AnalysisRow.id.in_(_newest_analyses()), AnalysisRow.template_id.in_(select(held.c.template_id)))
    )
    return int(connection.execute(statement).scalar_one())


def _claims(connection: Connection, held: Any, profile: str) -> tuple[ClaimCount, ...]:
    """Counted here: a hundred distinct counts take the database longer than all else of a scan of unchanged files."""
    analysed = select(AnalysisRow.template_id, *(getattr(AnalysisRow, name) for name in (*_FLAGS, *_OBSERVED))).where(
        AnalysisRow.profile == profile,
        AnalysisRow.id.in_(_newest_analyses()),
        AnalysisRow.template_id.in_(select(held.c.template_id)),
    )
    known = {row.template_id: row for row in connection.execute(analysed)}
    holders: dict[int, list[int]] = {}
    pairs = select(held.c.template_id, held.c.model_file_id).where(held.c.template_id.is_not(None))
    for template, file in connection.execute(pairs):
        holders.setdefault(template, []).append(file)
    return tuple(_claim_count(profile, name, known, holders) for name in CAPABILITIES)


def _claim_count(
    profile: str, capability: str, known: Mapping[int, Any], holders: Mapping[int, Sequence[int]]
) -> ClaimCount:
    templates: dict[str, set[int]] = {word: set() for word in _COUNTED}
    for template, row in known.items():
        pair = (getattr(row, f"supports_{capability}"), getattr(row, f"observed_{capability}"))
        for word, holds in _COUNTED.items():
            if holds(*pair):
                templates[word].add(template)
    counts = {f"templates_{word}": len(found) for word, found in templates.items()}
    for word, found in templates.items():
        counts[f"files_{word}"] = len({file for template in found for file in holders.get(template, ())})
    return ClaimCount(profile=profile, capability=capability, **counts)


_COUNTED: Mapping[str, Callable[[bool | None, bool | None], bool]] = {
    "claiming": lambda claimed, _observed: bool(claimed),
    "analysed": lambda claimed, _observed: claimed is not None,
    "observed": lambda _claimed, observed: bool(observed),
    "judged": lambda _claimed, observed: observed is not None,
    "overclaiming": lambda claimed, observed: claimed is True and observed is False,
    "underclaiming": lambda claimed, observed: claimed is False and observed is True,
}
"""What is counted of a claim beside a verdict, as in the view `flag_distribution`."""


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
            observations=tuple(_observation(one) for one in _parts_of(connection, ObservationRow, row.id)),
            efforts=tuple(_effort(one) for one in _parts_of(connection, EffortRow, row.id)),
            behaviours=tuple(
                Behaviour(one.key, one.outcome, one.detail, one.evidence, one.line)
                for one in _parts_of(connection, BehaviourRow, row.id)
            ),
            renders=tuple(
                StandardRender(one.engine, one.scenario, one.output, one.error)
                for one in _parts_of(connection, RenderRow, row.id)
            ),
        ),
        observed=_observed(row),
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
        capabilities=_capabilities(row),
        handler=row.handler,
        patches=tuple(row.patches),
        reason=row.reason,
        start=_start(row),
        free_text_effort=row.free_text_effort,
        duration=row.duration,
    )


def _parts_of(connection: Connection, table: Any, analysis: int) -> Sequence[Any]:
    """The rows of one of an analysis's tables, in their order."""
    statement = select(*_columns(table)).where(table.analysis_id == analysis).order_by(table.position)
    return connection.execute(statement).all()


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
    return tuple(_run(row, row.name, reads.get(row.id, ())) for row in connection.execute(runs))


def _run(row: Any, name: str, reads: Iterable[Read]) -> ProbeRun:
    return ProbeRun(
        name=name,
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


def _observed(row: Any) -> dict[str, bool | None]:
    return {name: getattr(row, f"observed_{name}") for name in CAPABILITIES}


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
        observed=_observed(row),
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
        observed=_observed(row),
        errors=row.errors,
        warnings=row.warnings,
        notes=row.notes,
    )
