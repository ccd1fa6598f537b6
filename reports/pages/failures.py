"""The list of what was not examined."""

from __future__ import annotations

from dataclasses import dataclass

from reports.overview import Overview
from reports.pages.rows import FailureGroup, failure_groups


@dataclass(frozen=True, slots=True)
class FailuresPage:
    """Everything that was not examined, by outcome."""

    root: str
    total: int
    groups: tuple[FailureGroup, ...]


def failures_page(overview: Overview) -> FailuresPage:
    """The list of what was not examined."""
    groups = failure_groups(overview, limit=None)
    return FailuresPage(overview.root, sum(group.total for group in groups), groups)
