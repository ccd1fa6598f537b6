"""What changed since the scan before: places whose template is another, and the flags that flipped with it.

The index shows the first of them, those alike in one row; their page shows every place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reports.builds import Flip, flips
from reports.overview import Overview, preferred
from reports.pages.compare import compare_id
from reports.pages.rows import page_if
from scanner.results import Capabilities, Outcome
from scanner.store.queries import Change

SHORT = 8
"""How many digits of a SHA-256 stand for a template in a list."""

Flags = Mapping[str, Mapping[str, Capabilities]]
"""What templates claim, by SHA-256 and profile."""


@dataclass(frozen=True, slots=True)
class ChangedRow:
    """One change, at `places` (a variant of a file each) alike; `path` is the first of them. `old` and `new` begin the
    SHA-256 of the templates, where there is one; one that no file holds any more has no page. `compared` is the name of
    the page that compares the two. `was` and `now` are the outcomes before and now, where the file was seen but its
    template not examined. `comparable`: the flags of both are known under one build, so that no flip means none."""

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
    comparable: bool
    was: Outcome | None
    now: Outcome | None

    @property
    def lost(self) -> bool:
        """Whether the template before was examined and what is there now cannot be: the worst that can happen."""
        return self.old is not None and self.was is None and self.now in _LOST


@dataclass(frozen=True, slots=True)
class ChangeList:
    """The changes since the scan `before` (None: no scan to compare with, or nothing changed): at how many places by
    what became of them, at how many of these a template can no longer be examined (`lost`), and at how many flags
    flipped. `rows` are the first of `total`."""

    before: int | None
    counts: Mapping[str, int]
    lost: int
    flipped: int
    total: int
    rows: tuple[ChangedRow, ...]


@dataclass(frozen=True, slots=True)
class ChangesPage:
    """All changes, a row for each place."""

    root: str
    changes: ChangeList


def changes_page(overview: Overview) -> ChangesPage:
    """The list of changes."""
    return ChangesPage(overview.root, _listed(overview, _rows(overview, [[one] for one in overview.changes])))


def change_list(overview: Overview, limit: int | None = None) -> ChangeList:
    """The first `limit` changes, or all, those alike in one row: first what can no longer be examined, then those that
    flip flags, then those at more places."""
    alike: dict[tuple[object, ...], list[Change]] = {}
    for one in overview.changes:
        outcomes = (one.old_outcome, one.new_outcome)
        alike.setdefault((one.change, one.old_sha256, one.new_sha256, *outcomes), []).append(one)
    return _listed(overview, _rows(overview, alike.values()), limit)


def _listed(overview: Overview, rows: tuple[ChangedRow, ...], limit: int | None = None) -> ChangeList:
    return ChangeList(
        before=overview.changes[0].old_scan_id if overview.changes else None,
        counts=dict(sorted(Counter(change.change for change in overview.changes).items())),
        lost=sum(row.places for row in rows if row.lost),
        flipped=sum(row.places for row in rows if row.flips),
        total=len(rows),
        rows=rows[:limit],
    )


def _rows(overview: Overview, changes: Iterable[Sequence[Change]]) -> tuple[ChangedRow, ...]:
    """A row for each of these groups of changes alike."""
    flags = _flags(overview)
    known = overview.sha256s
    compared = _compared(overview.changes)
    rows = [_row(overview, alike, flags, known, compared) for alike in changes]
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


def _flags(overview: Overview) -> Flags:
    """The claims of the templates of both scans, by SHA-256 and profile."""
    flags: dict[str, dict[str, Capabilities]] = {}
    for one in (*overview.former, *overview.templates):
        if one.capabilities is not None:
            flags.setdefault(one.sha256, {})[one.profile] = one.capabilities
    return flags


def _both(flags: Flags, change: Change, wanted: str) -> tuple[Capabilities, Capabilities] | None:
    """The claims of the two templates of a change under one profile: what differs is not the build."""
    old, new = flags.get(change.old_sha256 or "", {}), flags.get(change.new_sha256 or "", {})
    shared = old.keys() & new.keys()
    if not shared:
        return None
    profile = preferred(shared, wanted)
    return old[profile], new[profile]


def _row(
    overview: Overview,
    changes: Sequence[Change],
    flags: Flags,
    known: frozenset[str],
    compared: Mapping[frozenset[str | None], str],
) -> ChangedRow:
    first = changes[0]
    both = _both(flags, first, overview.scan.scan.profile)
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
        flips=flips(*both) if both is not None else (),
        comparable=both is not None,
        was=first.old_outcome if first.old_outcome is not Outcome.ANALYSED else None,
        now=first.new_outcome if first.new_outcome is not Outcome.ANALYSED else None,
    )


_WORDS = ("replaced", "gone", "appeared")
_LOST = (Outcome.NOT_PARSEABLE, Outcome.LIMIT_EXCEEDED, Outcome.UNREADABLE)


def _order(row: ChangedRow) -> tuple[object, ...]:
    return (not row.lost, -len(row.flips), _WORDS.index(row.change), -row.places, row.path, row.variant)
