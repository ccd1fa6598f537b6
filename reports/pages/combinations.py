"""The sets of flags that occur, each with its templates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from reports.builds import oldest_first
from reports.marks import Flags, flags_of, legend_of
from reports.overview import AllNotes, Overview
from reports.pages.chosen import shown_profiles
from reports.pages.rows import TemplateRow, template_rows
from scanner.results import CAPABILITIES


@dataclass(frozen=True, slots=True)
class CombinationGroup:
    """One set of flags, with its templates and how many files hold them. `profile` is the one that these are shown
    under, or all of these, oldest build first."""

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
    groups = combination_groups(overview, template_rows(overview, notes))
    shown = [*(group.flags for group in groups), *(row.flags for group in groups for row in group.templates)]
    return CombinationsPage(shown_profiles(overview), groups, legend_of(shown))


def combination_groups(overview: Overview, rows: Iterable[TemplateRow]) -> tuple[CombinationGroup, ...]:
    """The sets of flags of these templates, those that more templates have first, then those of more files."""
    members: dict[str, list[TemplateRow]] = {}
    for row in rows:
        if row.flags.claimed != _NOTHING:
            members.setdefault(row.flags.claimed, []).append(row)
    groups = [_group(overview.held, key, alike) for key, alike in members.items()]
    return tuple(sorted(groups, key=lambda one: (-len(one.templates), -one.files, one.templates[0].path)))


def _group(held: Mapping[str, Iterable[tuple[str, str]]], key: str, alike: list[TemplateRow]) -> CombinationGroup:
    files = {path for row in alike for path, _variant in held.get(row.sha256, ())}
    profiles = oldest_first(row.profile for row in alike)
    return CombinationGroup(", ".join(profiles), _flags(key), len(files), tuple(alike))


def _flags(claimed: str) -> Flags:
    return flags_of({name: _CLAIMS[letter] for name, letter in zip(CAPABILITIES, claimed, strict=True)})


_CLAIMS = {"y": True, "n": False, "x": None}
_NOTHING = flags_of(None).key
