"""The list of all templates."""

from __future__ import annotations

from dataclasses import dataclass

from reports.marks import Flags, legend_of
from reports.overview import AllNotes, Overview
from reports.pages.chosen import chosen_profiles
from reports.pages.rows import TemplateRow, template_rows


@dataclass(frozen=True, slots=True)
class TemplatesPage:
    """Every template, under the profile of the report's scan, or else the newest one that it was analysed under."""

    root: str
    profiles: tuple[str, ...]
    rows: tuple[TemplateRow, ...]
    legend: tuple[Flags, ...]


def templates_page(overview: Overview, notes: AllNotes) -> TemplatesPage:
    """The list of all templates."""
    chosen = chosen_profiles(overview)
    rows = tuple(row for row in template_rows(overview, notes) if chosen[row.sha256] == row.profile)
    profiles = tuple(sorted({row.profile for row in rows}))
    return TemplatesPage(overview.root, profiles, rows, legend_of(row.flags for row in rows))
