"""What is held and what is counted over it: the newest state of all files, or what one scan saw.

Every function that takes a `scan_id` answers, with None, for the newest state: each file as the newest finished scan
that saw it recorded it (the view `latest_files`). With the number of a scan it answers for what that scan saw, whatever
became of it: its appearances with their outcomes and reasons, and nothing for a number that no scan has. Model files
are described, and templates judged, as they are known today: neither is kept for every scan.

Every function takes an engine whose schema is current, reads in one short transaction, and raises DatabaseError when
the database fails.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain, groupby
from typing import Any

from sqlalchemy import Connection, Engine, FromClause, func, or_, select, tuple_

from scanner.results import CAPABILITIES, Capabilities, Outcome, Severity, SourceKind
from scanner.store.held import analyses_of, held, holders_of
from scanner.store.models import AnalysisRow, FindingRow, ModelFileRow, TemplateRow
from scanner.store.records import (
    ClaimCount,
    Combination,
    FileFinding,
    LatestFile,
    TemplateSummary,
    Verdicts,
)
from scanner.store.rows import FLAGS, capabilities_of, counted, newest_analyses, observed_of, verdict_columns
from scanner.store.session import connection_scope

_PAGE = 500


# -- files -------------------------------------------------------------------------------------------------------------


def files(engine: Engine, scan_id: int | None = None) -> Iterator[LatestFile]:
    """The variants of the files, by path and variant, read in pages: there may be very many."""
    source = held(scan_id)
    statement = select(source).order_by(source.c.path, source.c.variant)
    paged = {"yield_per": _PAGE}
    with connection_scope(engine) as connection, connection.execute(statement, execution_options=paged) as rows:
        yield from files_of(rows)


def failures(engine: Engine, scan_id: int | None = None) -> tuple[LatestFile, ...]:
    """The files, or variants, that are not analysed, by outcome and path."""
    source = held(scan_id)
    statement = (
        select(source)
        .where(source.c.outcome != Outcome.ANALYSED.value)
        .order_by(source.c.outcome, source.c.path, source.c.variant)
    )
    with connection_scope(engine) as connection:
        return tuple(files_of(connection.execute(statement)))


def files_of(rows: Iterable[Any]) -> Iterator[LatestFile]:
    """Rows of what is held as records. Many files share a template, so its verdicts are put together only once."""
    known: dict[tuple[int | None, str], tuple[Capabilities | None, Verdicts]] = {}
    for row in rows:
        key = (row.template_id, row.profile)
        if key not in known:
            known[key] = (capabilities_of(row), observed_of(row))
        yield _file_of(row, *known[key])


def _file_of(row: Any, capabilities: Capabilities | None, observed: Verdicts) -> LatestFile:
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
        capabilities=capabilities,
        observed=observed,
        name=row.name,
        repository=row.repository,
        role=row.role,
    )


def file_findings(engine: Engine, scan_id: int | None = None) -> tuple[FileFinding, ...]:
    """What was found of the files as a whole, by severity, rule and path."""
    source = held(scan_id)
    statement = (
        select(ModelFileRow.path, FindingRow.severity, FindingRow.rule, FindingRow.text, FindingRow.evidence)
        .join(ModelFileRow, ModelFileRow.id == FindingRow.model_file_id)
        .where(
            tuple_(FindingRow.model_file_id, FindingRow.scan_id).in_(select(source.c.model_file_id, source.c.scan_id))
        )
        .order_by(FindingRow.severity, FindingRow.rule, ModelFileRow.path, FindingRow.position)
    )
    with connection_scope(engine) as connection:
        return tuple(
            FileFinding(row.path, Severity(row.severity), row.rule, row.text, row.evidence)
            for row in connection.execute(statement)
        )


# -- templates ---------------------------------------------------------------------------------------------------------


def templates(engine: Engine, scan_id: int | None = None) -> tuple[TemplateSummary, ...]:
    """The templates that are held, by example path and SHA-256, then profile."""
    holders = holders_of(held(scan_id))
    found = (
        select(
            FindingRow.analysis_id,
            *(counted(FindingRow.severity == severity.value).label(f"{severity.value}s") for severity in Severity),
        )
        .where(FindingRow.analysis_id.is_not(None))
        .group_by(FindingRow.analysis_id)
        .subquery()
    )
    statement = (
        analyses_of(
            holders,
            TemplateRow.size,
            AnalysisRow.outcome,
            AnalysisRow.reason,
            AnalysisRow.handler,
            AnalysisRow.server_starts,
            *verdict_columns(),
            *(func.coalesce(found.c[f"{severity.value}s"], 0).label(f"{severity.value}s") for severity in Severity),
        )
        .outerjoin(found, found.c.analysis_id == AnalysisRow.id)
        .order_by(holders.c.path, TemplateRow.sha256, AnalysisRow.profile)
    )
    with connection_scope(engine) as connection:
        return tuple(_template_summary(row) for row in connection.execute(statement))


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
        capabilities=capabilities_of(row),
        observed=observed_of(row),
        errors=row.errors,
        warnings=row.warnings,
        notes=row.notes,
    )


# -- counts ------------------------------------------------------------------------------------------------------------


def claim_counts(engine: Engine, scan_id: int | None = None) -> tuple[ClaimCount, ...]:
    """What is claimed and what is really true, by profile and in the order of CAPABILITIES: for the newest state as
    the view `flag_distribution` counts it."""
    with connection_scope(engine) as connection:
        return tuple(chain.from_iterable(count_claims(connection, held(scan_id)).values()))


def count_claims(
    connection: Connection, source: FromClause, profile: str | None = None
) -> dict[str, tuple[ClaimCount, ...]]:
    """The counts for each profile that a template of `source` (with its columns `template_id` and `model_file_id`) was
    analysed under, sorted; with a `profile` for that one, whether or not there is any analysis.

    Counted here: a hundred distinct counts take the database longer than all else of a scan of unchanged files.
    """
    statement = (
        select(AnalysisRow.profile, AnalysisRow.template_id, *verdict_columns())
        .where(AnalysisRow.id.in_(newest_analyses()), AnalysisRow.template_id.in_(select(source.c.template_id)))
        .order_by(AnalysisRow.profile)
    )
    if profile is not None:
        statement = statement.where(AnalysisRow.profile == profile)
    rows = connection.execute(statement).all()
    analysed = {name: list(found) for name, found in groupby(rows, key=lambda row: str(row.profile))}
    holdings = _holdings(connection, source)
    wanted = sorted(analysed) if profile is None else [profile]
    return {name: _claims_under(name, analysed.get(name, []), holdings) for name in wanted}


def _holdings(connection: Connection, source: FromClause) -> Counter[frozenset[int]]:
    """How many files hold just these templates, for every set of them that some file holds."""
    of_files: dict[int, set[int]] = {}
    pairs = select(source.c.model_file_id, source.c.template_id).where(source.c.template_id.is_not(None))
    for file, template in connection.execute(pairs):
        of_files.setdefault(file, set()).add(template)
    return Counter(map(frozenset, of_files.values()))


def _claims_under(
    profile: str, analysed: Collection[Any], holdings: Mapping[frozenset[int], int]
) -> tuple[ClaimCount, ...]:
    return tuple(
        ClaimCount(profile=profile, capability=name, **_claim_counts(name, analysed, holdings)) for name in CAPABILITIES
    )


def _claim_counts(capability: str, analysed: Collection[Any], holdings: Mapping[frozenset[int], int]) -> dict[str, int]:
    claim, verdict = f"supports_{capability}", f"observed_{capability}"
    pairs = {row.template_id: (getattr(row, claim), getattr(row, verdict)) for row in analysed}
    counts = {}
    for word, holds in _COUNTED.items():
        found = {template for template, pair in pairs.items() if holds(*pair)}
        counts[f"templates_{word}"] = len(found)
        counts[f"files_{word}"] = sum(count for together, count in holdings.items() if not found.isdisjoint(together))
    return counts


_COUNTED: Mapping[str, Callable[[bool | None, bool | None], bool]] = {
    "claiming": lambda claimed, _observed: bool(claimed),
    "analysed": lambda claimed, _observed: claimed is not None,
    "observed": lambda _claimed, observed: bool(observed),
    "judged": lambda _claimed, observed: observed is not None,
    "overclaiming": lambda claimed, observed: claimed is True and observed is False,
    "underclaiming": lambda claimed, observed: claimed is False and observed is True,
}
"""What is counted of a claim beside a verdict, as in the view `flag_distribution`."""


def combinations(engine: Engine, scan_id: int | None = None) -> tuple[Combination, ...]:
    """The sets of flags that occur, commonest first; of each file under the profile of the scan that saw it."""
    source = held(scan_id)
    flags = [source.c[name] for name in FLAGS]
    statement = (
        select(
            source.c.profile,
            *flags,
            func.count(source.c.template_id.distinct()).label("templates"),
            func.count(source.c.model_file_id.distinct()).label("files"),
            func.min(source.c.path).label("path"),
        )
        .where(or_(*(flag.is_not(None) for flag in flags)))
        .group_by(source.c.profile, *flags)
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
