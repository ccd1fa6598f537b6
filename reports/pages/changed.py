"""What changed since the scan before: places whose template is another, and the flags that flipped with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from reports.builds import Flip, flips
from reports.overview import Overview
from reports.pages.compare import compare_id
from reports.pages.rows import page_if
from scanner.results import Capabilities, Outcome
from scanner.store.queries import Change

SHORT = 8
"""How many digits of a SHA-256 stand for a template in a list."""


@dataclass(frozen=True, slots=True)
class ChangedRow:
    """One change, at `places` (a variant of a file each) alike; `path` is the first of them. `old` and `new` begin the
    SHA-256 of the templates, where there is one; `compared` is the name of the page that compares the two. `now` is the
    outcome, where nothing is known of the new template."""

    change: str
    path: str
    variant: str
    places: int
    old: str | None
    new: str | None
    old_page: str | None
    new_page: str | None
    compared: str | None
    flips: tuple[Flip, ...]
    now: Outcome | None


@dataclass(frozen=True, slots=True)
class ChangeList:
    """The changes since the scan `before` (None: no scan to compare with, or nothing changed): at how many places by
    what became of them, and at how many of these flags flipped. `rows` are the first of `total`."""

    before: int | None
    counts: Mapping[str, int]
    flipped: int
    total: int
    rows: tuple[ChangedRow, ...]


def change_list(overview: Overview, limit: int | None = None) -> ChangeList:
    """The first `limit` changes, or all: those that flip flags first, then those at more places."""
    rows = changed_rows(overview)
    return ChangeList(
        before=overview.changes[0].old_scan_id if overview.changes else None,
        counts=dict(sorted(Counter(change.change for change in overview.changes).items())),
        flipped=sum(row.places for row in rows if row.flips),
        total=len(rows),
        rows=rows[:limit],
    )


def changed_rows(overview: Overview) -> tuple[ChangedRow, ...]:
    """The changes, those alike in one row."""
    alike: dict[tuple[object, ...], list[Change]] = {}
    for change in overview.changes:
        alike.setdefault((change.change, change.old_sha256, change.new_sha256, change.new_outcome), []).append(change)
    flags = _flags(overview)
    known = {template.sha256 for template in overview.templates}
    compared = _compared(overview.changes)
    rows = [_row(overview, changes, flags, known, compared) for changes in alike.values()]
    return tuple(sorted(rows, key=_order))


def _compared(changes: Iterable[Change]) -> dict[frozenset[str | None], str]:
    """The pages that compare two templates, one of which took the other's place. If they changed places, there is but
    one page, that of the first change."""
    pages: dict[frozenset[str | None], str] = {}
    for change in changes:
        if change.old_sha256 is not None and change.new_sha256 is not None:
            pair = frozenset((change.old_sha256, change.new_sha256))
            pages.setdefault(pair, compare_id(change.old_sha256, change.new_sha256))
    return pages


def _flags(overview: Overview) -> dict[str, Capabilities | None]:
    """The claims of the templates of both scans, under the profile of the newer one."""
    profile = overview.scan.scan.profile
    return {one.sha256: one.capabilities for one in (*overview.former, *overview.templates) if one.profile == profile}


def _row(
    overview: Overview,
    changes: list[Change],
    flags: Mapping[str, Capabilities | None],
    known: set[str],
    compared: Mapping[frozenset[str | None], str],
) -> ChangedRow:
    first = changes[0]
    return ChangedRow(
        change=first.change,
        path=overview.shown(first.path),
        variant=first.variant,
        places=len(changes),
        old=first.old_sha256[:SHORT] if first.old_sha256 else None,
        new=first.new_sha256[:SHORT] if first.new_sha256 else None,
        old_page=page_if(first.old_sha256, known),
        new_page=page_if(first.new_sha256, known),
        compared=compared.get(frozenset((first.old_sha256, first.new_sha256))),
        flips=flips(flags.get(first.old_sha256 or ""), flags.get(first.new_sha256 or "")),
        now=first.new_outcome if first.new_outcome is not Outcome.ANALYSED else None,
    )


_WORDS = ("replaced", "gone", "appeared")


def _order(row: ChangedRow) -> tuple[object, ...]:
    return (-len(row.flips), _WORDS.index(row.change), -row.places, row.path, row.variant)
