"""The list of what changed since the scan before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from reports.overview import Overview
from reports.pages.rows import page_if

SHORT = 8
"""How many digits of a SHA-256 stand for a template."""


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """What became of one variant of a file since the scan before. `old` and `new` begin the SHA-256 of its templates;
    a template that no file holds any more has no page."""

    change: str
    path: str
    variant: str
    old: str | None
    new: str | None
    old_page: str | None
    new_page: str | None


@dataclass(frozen=True, slots=True)
class ChangesPage:
    """The changes between a finished scan and the one before, and how many there are of each kind."""

    root: str
    counts: Mapping[str, int]
    rows: tuple[ChangeRow, ...]


def changes_page(overview: Overview) -> ChangesPage:
    """The list of changes."""
    known = {template.sha256 for template in overview.templates}
    rows = tuple(
        ChangeRow(
            change=change.change,
            path=overview.shown(change.path),
            variant=change.variant,
            old=change.old_sha256[:SHORT] if change.old_sha256 else None,
            new=change.new_sha256[:SHORT] if change.new_sha256 else None,
            old_page=page_if(change.old_sha256, known),
            new_page=page_if(change.new_sha256, known),
        )
        for change in overview.changes
    )
    return ChangesPage(overview.root, dict(sorted(Counter(row.change for row in rows).items())), rows)
