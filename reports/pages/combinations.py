"""The sets of flags that occur, each with its templates."""

from __future__ import annotations

from dataclasses import dataclass

from reports.marks import Flags, flags_of, legend_of
from reports.overview import AllNotes, Overview
from reports.pages.rows import TemplateRow, template_rows


@dataclass(frozen=True, slots=True)
class CombinationGroup:
    """One set of flags, under one profile, with its templates and how many files hold them."""

    profile: str
    flags: Flags
    files: int
    templates: tuple[TemplateRow, ...]


@dataclass(frozen=True, slots=True)
class CombinationsPage:
    """The sets of flags that occur, commonest first, each with its templates."""

    profiles: tuple[str, ...]
    groups: tuple[CombinationGroup, ...]
    legend: tuple[Flags, ...]


def combinations_page(overview: Overview, notes: AllNotes) -> CombinationsPage:
    """The sets of flags with their templates."""
    members: dict[tuple[str, str], list[TemplateRow]] = {}
    for row in template_rows(overview, notes):
        members.setdefault((row.profile, row.flags.claimed), []).append(row)
    groups = tuple(
        CombinationGroup(one.profile, flags, one.files, tuple(members.get((one.profile, flags.key), ())))
        for one in overview.combinations
        for flags in (flags_of(one.flags),)
    )
    shown = [*(group.flags for group in groups), *(row.flags for group in groups for row in group.templates)]
    return CombinationsPage(overview.profiles, groups, legend_of(shown))
