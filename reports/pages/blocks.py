"""Single blocks of the index, longer than there, for mails, dashboards and chats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from reports.overview import Overview
from reports.pages.changes import ChangeList, change_list
from reports.pages.distribution import Distribution, distribution_of
from reports.pages.outliers import OutlierList, outlier_list
from reports.pages.summary import ScanHeader, Summary, scan_header, summary_of


@dataclass(frozen=True, slots=True)
class SummaryBlock:
    """The collection in numbers."""

    scan: ScanHeader
    summary: Summary
    distribution: Distribution


@dataclass(frozen=True, slots=True)
class OutliersBlock:
    """The outliers, worst first."""

    scan: ScanHeader
    root: str
    outliers: OutlierList


@dataclass(frozen=True, slots=True)
class ChangesBlock:
    """What changed since the scan before."""

    scan: ScanHeader
    root: str
    changes: ChangeList


Block = SummaryBlock | OutliersBlock | ChangesBlock


def summary_block(overview: Overview, limit: int) -> SummaryBlock:  # noqa: ARG001 - as the others
    """The collection in numbers; they are few, so there is no limit."""
    return SummaryBlock(scan_header(overview), summary_of(overview), distribution_of(overview))


def outliers_block(overview: Overview, limit: int) -> OutliersBlock:
    """The first `limit` outliers."""
    return OutliersBlock(scan_header(overview), overview.root, outlier_list(overview, limit))


def changes_block(overview: Overview, limit: int) -> ChangesBlock:
    """The first `limit` changes."""
    return ChangesBlock(scan_header(overview), overview.root, change_list(overview, limit))


BLOCKS: Mapping[str, Callable[[Overview, int], Block]] = {
    "outliers": outliers_block,
    "changes": changes_block,
    "summary": summary_block,
}
"""The blocks by their name, which is that of the block in the template of the index too."""
