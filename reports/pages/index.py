"""The first page: how many, how good, what is wrong, what changed."""

from __future__ import annotations

from dataclasses import dataclass

from reports.marks import Flags, legend_of
from reports.overview import AllNotes, Overview
from reports.pages.changes import ChangeList, change_list
from reports.pages.combinations import combination_groups
from reports.pages.distribution import Distribution, distribution_of
from reports.pages.effort_matrix import EffortMatrix, effort_matrix
from reports.pages.flag_builds import FlagBuilds, flag_builds
from reports.pages.outliers import OutlierList, outlier_list
from reports.pages.rows import FailureGroup, failure_groups, template_rows
from reports.pages.summary import Summary, summary_of

OUTLIERS_SHOWN = 12
CHANGES_SHOWN = 8
COMBINATIONS_SHOWN = 12
FAILURES_SHOWN = 8
"""How many of each the index shows before it leads to the whole list: the failures of each outcome, that is."""


@dataclass(frozen=True, slots=True)
class CombinationRow:
    """One set of flags, and how many templates and files have it; `page` and `path` are of an example."""

    flags: Flags
    templates: int
    files: int
    page: str
    path: str


@dataclass(frozen=True, slots=True)
class CombinationList:
    """The commonest of `total` sets of flags."""

    total: int
    rows: tuple[CombinationRow, ...]


@dataclass(frozen=True, slots=True)
class IndexPage:
    """The first page: how many, how good, what is wrong, what changed. Its lists are short, the whole ones stand on
    pages of their own."""

    summary: Summary
    distribution: Distribution
    outliers: OutlierList
    efforts: EffortMatrix
    builds: FlagBuilds
    changes: ChangeList
    combinations: CombinationList
    failures: tuple[FailureGroup, ...]
    legend: tuple[Flags, ...]


def index_page(overview: Overview, notes: AllNotes) -> IndexPage:
    """The index of a report."""
    combinations = _combinations(overview, notes)
    return IndexPage(
        summary=summary_of(overview),
        distribution=distribution_of(overview),
        outliers=outlier_list(overview, OUTLIERS_SHOWN),
        efforts=effort_matrix(overview, notes),
        builds=flag_builds(overview),
        changes=change_list(overview, CHANGES_SHOWN),
        combinations=combinations,
        failures=failure_groups(overview, limit=FAILURES_SHOWN),
        legend=legend_of(row.flags for row in combinations.rows),
    )


def _combinations(overview: Overview, notes: AllNotes) -> CombinationList:
    groups = combination_groups(overview, template_rows(overview, notes))
    rows = [
        CombinationRow(group.flags, len(group.templates), group.files, group.templates[0].page, group.templates[0].path)
        for group in groups[:COMBINATIONS_SHOWN]
    ]
    return CombinationList(len(groups), tuple(rows))
