"""Scans: what each saw, what it could not examine, and what changed from one to another.

Every function takes an engine whose schema is current, reads in one short transaction, and raises DatabaseError when
the database fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, Engine, Executable, FromClause, RowMapping, Select, case, func, null, or_, select
from sqlalchemy.orm import aliased

from scanner.errors import UsageError
from scanner.results import GO_TEMPLATE, Behaviour, Outcome, Severity, SpecialToken
from scanner.store.collection import count_claims
from scanner.store.models import (
    AnalysisRow,
    AppearanceRow,
    BehaviourRow,
    FindingRow,
    ModelFileRow,
    ModelNameRow,
    ScanRow,
    TemplateRow,
)
from scanner.store.records import Change, Failure, HeldFile, HeldFinding, HeldVariant, ScanRecord, ScanSummary
from scanner.store.rows import FLAGS, capabilities_of, columns_of, newest_analyses, scan_of
from scanner.store.session import connection_scope

INCOMPLETE_SPLIT = "incomplete-split"
"""The rule about split models that llama.cpp does not load."""

PARTLY_EXAMINED = "partly-examined"
"""The rule about templates of which not all could be examined."""

FINISHED = "finished"
"""The status of a scan that came to its end."""


def scans(engine: Engine) -> tuple[ScanRecord, ...]:
    """All scans, newest first."""
    statement = select(*columns_of(ScanRow)).order_by(ScanRow.id.desc())
    with connection_scope(engine) as connection:
        return tuple(scan_of(row) for row in connection.execute(statement))


def newest_finished(engine: Engine) -> int | None:
    """The number of the newest finished scan; None when there is none."""
    with connection_scope(engine) as connection:
        return _newest_finished(connection)


def scan_before(engine: Engine, scan_id: int) -> int | None:
    """The number of the scan that a scan is compared with: the newest finished one before it of the same sources, as in
    the view `changes`; None when there is none. Raises UsageError when there is no scan `scan_id`."""
    with connection_scope(engine) as connection:
        return _scan_before(connection, _find_scan(connection, scan_id).id)


def scan_summary(engine: Engine, scan_id: int | None = None) -> ScanSummary:
    """What a scan saw (None: the newest, finished or not). Raises UsageError when there is no such scan."""
    with connection_scope(engine) as connection:
        scan = _find_scan(connection, scan_id)
        all_seen = select(AppearanceRow).where(AppearanceRow.scan_id == scan.id)
        seen = all_seen.where(_is_jinja()).subquery()
        go_templates, go_files = _counts(connection, all_seen.where(~_is_jinja()).subquery())
        return ScanSummary(
            scan=scan,
            files_by_outcome=_files_by_outcome(connection, seen),
            variants=_variants(connection, seen),
            templates=connection.execute(select(func.count(seen.c.template_id.distinct()))).scalar_one(),
            new_templates=len(connection.execute(_new_templates(scan.id)).all()),
            claims=count_claims(connection, seen, scan.profile)[scan.profile],
            partly_examined=_partly_examined(connection, seen, scan.profile),
            go_templates=go_templates,
            go_files=go_files,
            roles=_roles(connection, seen),
            not_loaded=_not_loaded(connection, scan.id),
        )


def first_names(engine: Engine, scan_id: int) -> dict[str, str]:
    """What stores call the files of a scan, by their paths: of each the name to show."""
    statement = (
        select(ModelFileRow.path, ModelNameRow.name)
        .join(ModelFileRow, ModelFileRow.id == ModelNameRow.model_file_id)
        .where(ModelNameRow.scan_id == scan_id, ModelNameRow.position == 0)
    )
    with connection_scope(engine) as connection:
        return {row.path: row.name for row in connection.execute(statement)}


# -- changes -----------------------------------------------------------------------------------------------------------


def change_list(engine: Engine, old_scan: int, new_scan: int) -> tuple[Change, ...]:
    """How the templates that the scan `new_scan` saw differ from those that `old_scan` saw, at each path and variant;
    by path, variant and change.

    A scan that did not finish did not come to every file: what it says nothing of is neither gone nor has it appeared.
    Raises UsageError for a scan that does not exist.
    """
    with connection_scope(engine) as connection:
        return _changes(connection, _find_scan(connection, old_scan), _find_scan(connection, new_scan))


def changes_of_scan(engine: Engine, scan_id: int | None = None) -> tuple[Change, ...]:
    """What a scan changed against the one before it (`scan_before`), if any; None: the newest finished scan, for which
    the view `changes` says the same. Raises UsageError when there is no scan `scan_id`."""
    with connection_scope(engine) as connection:
        chosen = _newest_finished(connection) if scan_id is None else scan_id
        if chosen is None:
            return ()
        scan = _find_scan(connection, chosen)
        before = _scan_before(connection, chosen)
        return () if before is None else _changes(connection, _find_scan(connection, before), scan)


def _newest_finished(connection: Connection) -> int | None:
    return connection.execute(select(func.max(ScanRow.id)).where(ScanRow.status == FINISHED)).scalar()


def _scan_before(connection: Connection, scan_id: int) -> int | None:
    given = aliased(ScanRow)
    sources = select(given.sources).where(given.id == scan_id).scalar_subquery()
    same = (ScanRow.status == FINISHED, ScanRow.id < scan_id, ScanRow.sources == sources)
    return connection.execute(select(func.max(ScanRow.id)).where(*same)).scalar()


def _changes(connection: Connection, old: ScanRecord, new: ScanRecord) -> tuple[Change, ...]:
    came = [
        _change("appeared" if row["old_sha256"] is None else "replaced", row, old, new)
        for row in connection.execute(_differing(("new", new), ("old", old))).mappings()
    ]
    gone = [
        _change("gone", row, old, new)
        for row in connection.execute(_differing(("old", old), ("new", new))).mappings()
        if row["new_sha256"] is None
    ]
    return tuple(sorted((*came, *gone), key=lambda change: (change.path, change.variant, change.change)))


def _differing(here: tuple[str, ScanRecord], there: tuple[str, ScanRecord]) -> Executable:
    """The templates of the scan `here` that the scan `there` did not see at the same path and variant, beside what it
    saw there instead: another template, or a file without any. The words begin the names of their columns."""
    (word, scan), (other_word, other) = here, there
    held, instead = aliased(AppearanceRow), aliased(AppearanceRow)
    template, other_template = aliased(TemplateRow), aliased(TemplateRow)
    statement = (
        select(
            ModelFileRow.path,
            held.variant,
            template.sha256.label(f"{word}_sha256"),
            held.outcome.label(f"{word}_outcome"),
            other_template.sha256.label(f"{other_word}_sha256"),
            instead.outcome.label(f"{other_word}_outcome"),
        )
        .select_from(held)
        .join(ModelFileRow, ModelFileRow.id == held.model_file_id)
        .join(template, template.id == held.template_id)
        .outerjoin(
            instead,
            (instead.scan_id == other.id)
            & (instead.model_file_id == held.model_file_id)
            # A file without templates has one row, without a variant.
            & or_(instead.variant == held.variant, instead.template_id.is_(None)),
        )
        .outerjoin(other_template, other_template.id == instead.template_id)
        .where(held.scan_id == scan.id, or_(instead.template_id.is_(None), instead.template_id != held.template_id))
    )
    if other.status == FINISHED:
        return statement
    came_to = select(AppearanceRow.model_file_id).where(AppearanceRow.scan_id == other.id)
    return statement.where(held.model_file_id.in_(came_to))


def _change(change: str, row: RowMapping, old: ScanRecord, new: ScanRecord) -> Change:
    outcomes = {name: None if row[name] is None else Outcome(row[name]) for name in ("old_outcome", "new_outcome")}
    return Change(**{**row, **outcomes}, change=change, old_scan_id=old.id, new_scan_id=new.id)


# -- what a scan saw ---------------------------------------------------------------------------------------------------


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
            _is_jinja(),
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
        .where(AnalysisRow.id.in_(newest_analyses()))
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
    """Every file of a scan that holds templates, or none, or of which something was noted, with what is known of each
    of its variants; by path."""
    told = (Outcome.ANALYSED, Outcome.NO_TEMPLATE)
    statement = (
        select(
            ModelFileRow.path,
            ModelFileRow.outcome.label("file_outcome"),
            ModelFileRow.notes,
            ModelFileRow.bos_id,
            ModelFileRow.bos_text,
            ModelFileRow.adds_bos,
            AppearanceRow.variant,
            AppearanceRow.template_id,
            BehaviourRow.outcome.label("bos_outcome"),
            BehaviourRow.detail.label("bos_detail"),
            BehaviourRow.evidence.label("bos_evidence"),
            *[getattr(AnalysisRow, name) for name in ("outcome", *FLAGS)],
        )
        .join(ModelFileRow, ModelFileRow.id == AppearanceRow.model_file_id)
        .outerjoin(
            AnalysisRow,
            (AnalysisRow.template_id == AppearanceRow.template_id)
            & (AnalysisRow.profile == profile)
            & AnalysisRow.id.in_(newest_analyses()),
        )
        .outerjoin(BehaviourRow, (BehaviourRow.analysis_id == AnalysisRow.id) & (BehaviourRow.key == "bos"))
        .where(AppearanceRow.scan_id == scan_id, ModelFileRow.outcome.in_(told) | (ModelFileRow.notes != []))
        .where(_is_jinja())
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
                capabilities_of(row),
                None
                if row.bos_outcome is None
                else Behaviour("bos", row.bos_outcome, row.bos_detail, row.bos_evidence),
            )
            for row in listed
            if row.template_id is not None
        )
        first = listed[0]
        bos = SpecialToken(first.bos_id, first.bos_text, first.adds_bos)
        yield HeldFile(path, Outcome(first.file_outcome), variants, bos, tuple(first.notes))


def _find_scan(connection: Connection, scan_id: int | None) -> ScanRecord:
    statement = select(*columns_of(ScanRow)).order_by(ScanRow.id.desc()).limit(1)
    if scan_id is not None:
        statement = statement.where(ScanRow.id == scan_id)
    row = connection.execute(statement).first()
    if row is None:
        raise UsageError("there is no scan yet" if scan_id is None else f"there is no scan {scan_id}")
    return scan_of(row)


def _is_jinja() -> Any:
    """Whether an appearance is not that of a Go template."""
    return func.coalesce(AppearanceRow.reason, "") != GO_TEMPLATE


def _counts(connection: Connection, seen: FromClause) -> tuple[int, int]:
    """How many templates and files there are among appearances."""
    statement = select(func.count(seen.c.template_id.distinct()), func.count(seen.c.model_file_id.distinct()))
    templates, files = connection.execute(statement).one()
    return int(templates), int(files)


def _roles(connection: Connection, seen: FromClause) -> dict[str, int]:
    """How many files there are of each role; models have none."""
    statement = (
        select(ModelFileRow.role, func.count(seen.c.model_file_id.distinct()))
        .join(ModelFileRow, ModelFileRow.id == seen.c.model_file_id)
        .where(ModelFileRow.role.is_not(None))
        .group_by(ModelFileRow.role)
        .order_by(ModelFileRow.role)
    )
    return {str(row[0]): row[1] for row in connection.execute(statement)}


def _not_loaded(connection: Connection, scan_id: int) -> int:
    statement = select(func.count(FindingRow.model_file_id.distinct()))
    found = statement.where(FindingRow.scan_id == scan_id, FindingRow.rule == INCOMPLETE_SPLIT)
    return int(connection.execute(found).scalar_one())


def _files_by_outcome(connection: Connection, seen: FromClause) -> dict[Outcome, int]:
    statement = (
        select(seen.c.outcome, func.count(seen.c.model_file_id.distinct()))
        .group_by(seen.c.outcome)
        .order_by(seen.c.outcome)
    )
    return {Outcome(outcome): count for outcome, count in connection.execute(statement)}


def _variants(connection: Connection, seen: FromClause) -> dict[str, int]:
    statement = (
        select(seen.c.variant, func.count())
        .where(seen.c.template_id.is_not(None))
        .group_by(seen.c.variant)
        .order_by(func.count().desc(), seen.c.variant)
    )
    return {row[0]: row[1] for row in connection.execute(statement)}


def new_templates(engine: Engine, scan_id: int) -> frozenset[str]:
    """The SHA-256 of the templates that `ScanSummary.new_templates` counts."""
    with connection_scope(engine) as connection:
        return frozenset(connection.execute(_new_templates(scan_id)).scalars())


def _new_templates(scan_id: int) -> Select[str]:
    """The templates that no earlier scan saw that came to its end: one that was killed told nobody."""
    told = (AppearanceRow.scan_id == scan_id) | (ScanRow.status == FINISHED)
    return (
        select(TemplateRow.sha256)
        .join(AppearanceRow, AppearanceRow.template_id == TemplateRow.id)
        .join(ScanRow, ScanRow.id == AppearanceRow.scan_id)
        .where(_is_jinja(), told)
        .group_by(TemplateRow.sha256)
        .having(func.min(AppearanceRow.scan_id) == scan_id)
    )


def _partly_examined(connection: Connection, seen: FromClause, profile: str) -> int:
    statement = (
        select(func.count(AnalysisRow.template_id.distinct()))
        .join(FindingRow, FindingRow.analysis_id == AnalysisRow.id)
        .where(FindingRow.rule == PARTLY_EXAMINED, AnalysisRow.profile == profile)
        .where(AnalysisRow.id.in_(newest_analyses()), AnalysisRow.template_id.in_(select(seen.c.template_id)))
    )
    return int(connection.execute(statement).scalar_one())
