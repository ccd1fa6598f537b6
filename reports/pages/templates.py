"""The list of all templates."""

from __future__ import annotations

from dataclasses import dataclass

from reports.marks import Flags, legend_of
from reports.overview import AllNotes, Overview
from reports.pages.chosen import shown_profiles
from reports.pages.rows import TemplateRow, template_rows


@dataclass(frozen=True, slots=True)
class TemplatesPage:
    """Every template, under the profile of the report's scan, or else the newest one that it was analysed under. `new`
    are the pages of those that no scan before saw: rows would change with every scan, and all that show them."""

    root: str
    profiles: tuple[str, ...]
    rows: tuple[TemplateRow, ...]
    new: tuple[str, ...]
    legend: tuple[Flags, ...]


def templates_page(overview: Overview, notes: AllNotes) -> TemplatesPage:
    """The list of all templates."""
    rows = template_rows(overview, notes)
    new = tuple(row.page for row in rows if row.sha256 in overview.new)
    return TemplatesPage(overview.root, shown_profiles(overview), rows, new, legend_of(row.flags for row in rows))
