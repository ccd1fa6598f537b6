"""Templates that are alike, family by family, and in which flags they differ."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from reports.families import Family
from reports.marks import Flags, legend_of
from reports.overview import AllNotes, Overview
from reports.pages.compare import compare_id
from reports.pages.rows import TemplateRow, template_rows
from reports.words import LABELS
from scanner.results import CAPABILITIES


@dataclass(frozen=True, slots=True)
class FamilyMember:
    """A template of a family: how much it is like the family's centre, in percent (None: it is the centre), and the
    page that compares the two, if there is one."""

    template: TemplateRow
    similarity: int | None
    compare: str | None


@dataclass(frozen=True, slots=True)
class FamilyGroup:
    """A family, its centre first, then the most alike; `differ` are the capabilities in which not all are the same."""

    members: tuple[FamilyMember, ...]
    differ: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FamiliesPage:
    """The families, largest first."""

    root: str
    templates: int
    groups: tuple[FamilyGroup, ...]
    legend: tuple[Flags, ...]


def families_page(
    overview: Overview, notes: AllNotes, families: Iterable[Family], compared: Collection[str]
) -> FamiliesPage:
    """The families of a report; `compared` are the names of the pages that compare two templates. Templates that are in
    no file any more are left out."""
    rows = {row.sha256: row for row in template_rows(overview, notes)}
    groups = [_group(family, rows, compared) for family in families]
    shown = tuple(group for group in groups if len(group.members) > 1)
    members = [member.template for group in shown for member in group.members]
    return FamiliesPage(overview.root, len(members), shown, legend_of(row.flags for row in members))


def _group(family: Family, rows: dict[str, TemplateRow], compared: Collection[str]) -> FamilyGroup:
    found = [(family.centre, None), *((other.sha256, other.similarity) for other in family.others)]
    members = tuple(
        FamilyMember(rows[sha256], similarity, _page_of(family.centre, sha256, compared))
        for sha256, similarity in found
        if sha256 in rows
    )
    return FamilyGroup(members, _differing([member.template.flags for member in members]))


def _page_of(centre: str, sha256: str, compared: Collection[str]) -> str | None:
    names = (compare_id(centre, sha256), compare_id(sha256, centre))
    return next((name for name in names if name in compared), None)


def _differing(flags: Iterable[Flags]) -> tuple[str, ...]:
    marks = zip(*(one.marks for one in flags), strict=True)
    return tuple(LABELS[name] for name, each in zip(CAPABILITIES, marks, strict=False) if len(set(each)) > 1)
