"""Removing old scans, and then what no scan knows any more.

Whoever prunes holds the lock of the database (`scanner.store.lock`): a scan that is under way has templates that no
appearance names yet.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from sqlalchemy import Connection, Engine, delete, func, select
from sqlalchemy.orm import aliased

from scanner.store.models import AnalysisRow, AppearanceRow, Base, ModelFileRow, ScanRow, TemplateRow
from scanner.store.rows import newest_analyses
from scanner.store.scans import FINISHED
from scanner.store.session import connection_scope, for_writing, sqlite_file, translated

KEPT_AT_LEAST = 2
"""Finished scans of the same sources that stay whatever their age: what `changes` compares, the newest and the one
before."""

_AT_ONCE = 500
"""Numbers that go into one statement."""


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was removed: the numbers of the scans, and how many model files, templates and analyses."""

    scans: tuple[int, ...]
    files: int
    templates: int
    analyses: int


class _TakenBack(Exception):  # noqa: N818 - no error: it ends a transaction that must not last
    pass


def prune(engine: Engine, *, older_than: datetime, keep: int = KEPT_AT_LEAST, dry_run: bool = False) -> Pruned:
    """Removes the scans that began before `older_than`, with what they saw, in one transaction.

    Kept, whatever their age, of each set of sources: the newest `keep` finished scans (two at least), and every scan
    after the newest finished one, which the next scan builds on; and the last scan to see a file that a kept scan of
    other sources saw. Then go: model files that no remaining scan saw, templates that none saw with all that is known
    of them, and analyses that a newer one stands for where no remaining scan is of their version of Capscan.

    `dry_run`: the same counts, and nothing removed. Raises DatabaseError.
    """
    pruned = Pruned((), 0, 0, 0)
    try:
        with connection_scope(for_writing(engine)) as connection:
            pruned = _prune(connection, older_than, max(keep, KEPT_AT_LEAST))
            if dry_run:
                raise _TakenBack
    except _TakenBack:
        pass
    return pruned


def vacuum(engine: Engine) -> None:
    """Gives the room that was freed back to the disk. SQLite writes the file anew, and needs as much room again while
    it does; PostgreSQL frees the room for new rows. Raises DatabaseError, also when a reader is in the way."""
    if sqlite_file(engine) is not None:
        with translated(engine):
            raw = engine.raw_connection()
            try:
                cursor = raw.cursor()
                cursor.execute("VACUUM")
                cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            finally:
                raw.close()
    elif engine.dialect.name == "postgresql":
        tables = ", ".join(table.name for table in Base.metadata.sorted_tables)
        with translated(engine), engine.connect() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT").exec_driver_sql(f"VACUUM (ANALYZE) {tables}")


def _prune(connection: Connection, older_than: datetime, keep: int) -> Pruned:
    scans = _superfluous(connection, older_than, keep)
    for some in _chunks(scans):
        connection.execute(delete(ScanRow).where(ScanRow.id.in_(some)))
    if not scans:
        return Pruned((), 0, 0, 0)
    files = _delete(connection, ModelFileRow, ~_appears(AppearanceRow.model_file_id == ModelFileRow.id))
    before = _count(connection, AnalysisRow)
    templates = _delete(connection, TemplateRow, ~_appears(AppearanceRow.template_id == TemplateRow.id))
    _delete(connection, AnalysisRow, AnalysisRow.id.not_in(newest_analyses()), ~_is_of_a_scan())
    return Pruned(scans, files, templates, before - _count(connection, AnalysisRow))


def _superfluous(connection: Connection, older_than: datetime, keep: int) -> tuple[int, ...]:
    by_sources: dict[str, list[Any]] = defaultdict(list)
    listed = select(ScanRow.id, ScanRow.started_at, ScanRow.status, ScanRow.sources).order_by(ScanRow.id.desc())
    for scan in connection.execute(listed):
        by_sources[repr(scan.sources)].append(scan)
    removable = {scan for alike in by_sources.values() for scan in _removable(alike, older_than, keep)}
    while needed := _last_to_see(connection, removable):
        removable -= needed
    return tuple(sorted(removable))


def _last_to_see(connection: Connection, scans: Collection[int]) -> set[int]:
    """Those of the scans that were the last to see a file which other scans saw too, by other sources: without them the
    file would be taken for what it was before."""
    seen_by_others = _appears(
        (AppearanceRow.model_file_id == ModelFileRow.id) & AppearanceRow.scan_id.not_in(sorted(scans))
    )
    found: set[int] = set()
    for some in _chunks(sorted(scans)):
        last = select(ModelFileRow.last_seen_scan_id).distinct()
        rows = connection.execute(last.where(ModelFileRow.last_seen_scan_id.in_(some), seen_by_others))
        found |= {row[0] for row in rows if row[0] is not None}
    return found


def _removable(alike: Sequence[Any], older_than: datetime, keep: int) -> Iterator[int]:
    """Of the scans of the same sources, newest first."""
    finished = 0
    for scan in alike:
        is_needed = finished < keep if scan.status == FINISHED else finished == 0
        finished += scan.status == FINISHED
        if not is_needed and scan.started_at < older_than:
            yield scan.id


def _appears(condition: Any) -> Any:
    return select(AppearanceRow.scan_id).where(condition).exists()


def _is_of_a_scan() -> Any:
    """Whether a scan of the analysis's version of Capscan saw its template: what that scan says goes back to it."""
    scan, seen = aliased(ScanRow), aliased(AppearanceRow)
    return (
        select(scan.id)
        .join(seen, seen.scan_id == scan.id)
        .where(seen.template_id == AnalysisRow.template_id, scan.capscan_version == AnalysisRow.capscan_version)
        .exists()
    )


def _delete(connection: Connection, table: Any, *conditions: Any) -> int:
    return connection.execute(delete(table).where(*conditions)).rowcount


def _count(connection: Connection, table: Any) -> int:
    return connection.execute(select(func.count()).select_from(table)).scalar_one()


def _chunks(numbers: Iterable[int]) -> Iterator[list[int]]:
    left = iter(numbers)
    while some := list(islice(left, _AT_ONCE)):
        yield some
