"""The list of what changed since the scan before."""

from __future__ import annotations

from dataclasses import dataclass

from reports.overview import Overview
from reports.pages.rows import page_if


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """What became of one variant of a file since the scan before."""

    change: str
    path: str
    variant: str
    old_page: str | None
    new_page: str | None


@dataclass(frozen=True, slots=True)
class ChangesPage:
    """The changes between the two newest finished scans."""

    root: str
    rows: tuple[ChangeRow, ...]


def changes_page(overview: Overview) -> ChangesPage:
    """The list of changes."""
    known = {template.sha256 for template in overview.templates}
    rows = tuple(
        ChangeRow(
            change=change.change,
            path=overview.shown(change.path),
            variant=change.variant,
            old_page=page_if(change.old_sha256, known),
            new_page=page_if(change.new_sha256, known),
        )
        for change in overview.changes
    )
    return ChangesPage(overview.root, rows)
