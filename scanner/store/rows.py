"""What the queries share: columns, the newest analyses, and rows turned into records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, case, func, select

from scanner.results import CAPABILITIES, Capabilities, PassedOver
from scanner.store.models import AnalysisRow
from scanner.store.records import ScanRecord, Verdicts

FLAGS = tuple(f"supports_{name}" for name in CAPABILITIES)
"""The columns of the claims, in the order of CAPABILITIES."""
OBSERVED = tuple(f"observed_{name}" for name in CAPABILITIES)
"""The columns of the verdicts on them, in the same order."""


def columns_of(table: Any) -> Sequence[Any]:
    """All columns of a table: rows of values are lighter than objects that follow their changes."""
    return tuple(table.__table__.columns)


def verdict_columns() -> Sequence[Any]:
    """The claims of an analysis and the verdicts on them."""
    return tuple(getattr(AnalysisRow, name) for name in (*FLAGS, *OBSERVED))


def newest_analyses() -> Select[Any]:
    """The numbers of the newest analysis of every template under every profile: numbers grow with time."""
    return select(func.max(AnalysisRow.id)).group_by(AnalysisRow.template_id, AnalysisRow.profile)


def counted(condition: Any) -> Any:
    """In how many rows of a group a condition holds."""
    return func.sum(case((condition, 1), else_=0))


def capabilities_of(row: Any) -> Capabilities | None:
    """The claims in a row; None where there is no verdict."""
    flags = {name: getattr(row, f"supports_{name}") for name in CAPABILITIES}
    if all(flag is None for flag in flags.values()):
        return None
    # An older profile's builds have no flag for the effort.
    effort = flags.pop("reasoning_effort")
    return Capabilities(**{name: bool(flag) for name, flag in flags.items()}, reasoning_effort=effort)


def observed_of(row: Any) -> Verdicts:
    """What was observed of every capability in a row."""
    return {name: getattr(row, f"observed_{name}") for name in CAPABILITIES}


def scan_of(row: Any) -> ScanRecord:
    """A row of scans as a record."""
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
