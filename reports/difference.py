"""Two texts side by side: which lines are equal, which are on one side only, and which characters of a line differ.

Texts may be hostile (megabytes, one endless line, a hundred thousand lines alike). So all searching is paid from one
budget: when it runs out the marks get coarser, up to whole lines, but what they say stays true.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from itertools import accumulate, zip_longest
from typing import NamedTuple

EFFORT = 1_000_000
"""How much `compare_texts` may search, in pairs of items looked at: less than a second's worth."""

_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
_SHORTEST_FOLD = 3

# Looking at every two equal items finds the best matches. Where there are more such pairs than few, items that occur
# once are matched first; where none does, and there are more pairs than most, nothing is matched.
_FEW_PAIRS = 10_000
_MOST_PAIRS = 100_000
# What else costs, in pairs: to begin a search, to mark the characters of two lines, to see how alike two lines are.
_SEARCH_COST = 50
_LINES_COST = 300
_LIKENESS_COST = 10
_CHARACTERS_OF_COST_1 = 8

# Of changed lines in a row, each may stand beside each where these are few; they are alike if words of such a share are
# in both.
_MOST_CHOICES = 1_000
_LEAST_ALIKE = 0.4

# Two lines that have less of the shorter one in common are marked whole.
_LEAST_IN_COMMON = 0.3
# Equal characters between two changes are marked with these if they are so few, or a few more but not longer than both.
_TINY = 2
_SMALL = 8
_FARTHEST_SHIFT = 64


class RowKind(StrEnum):
    """How the two sides of a row compare."""

    EQUAL = "equal"
    CHANGED = "changed"
    REMOVED = "removed"
    ADDED = "added"


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a line, never empty; `changed`: the other side does not have it there."""

    text: str
    changed: bool


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a side, its number from 1. The `\\n` that ends it is in no segment; `no_newline`: none ends it."""

    number: int
    segments: tuple[Segment, ...]
    no_newline: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """Two lines beside each other; `left` is None where one was added, `right` where one was removed. Changed lines
    without a changed segment differ in how they end."""

    kind: RowKind
    left: Line | None
    right: Line | None


@dataclass(frozen=True, slots=True)
class Fold:
    """`count` equal lines left out, from the line numbered `left` on the left side and `right` on the right side."""

    left: int
    right: int
    count: int


@dataclass(frozen=True, slots=True)
class Place:
    """A line and a character in it, both from 1; the character after its last is the line's end."""

    line: int
    character: int


@dataclass(frozen=True, slots=True)
class Difference:
    """Two texts side by side. `changed`, `removed` and `added` count the rows of that kind; `first` is the first place
    where the texts differ, the same on both sides, None where they do not."""

    rows: tuple[Row | Fold, ...]
    changed: int = 0
    removed: int = 0
    added: int = 0
    first: Place | None = None

    @property
    def equal(self) -> bool:
        """Whether the texts are the same to the last character."""
        return self.first is None


class _Match(NamedTuple):
    """`size` items (lines, words or characters), from the places `left` and `right`, that are equal."""

    left: int
    right: int
    size: int

    @property
    def left_end(self) -> int:
        return self.left + self.size

    @property
    def right_end(self) -> int:
        return self.right + self.size

    def moved(self, gap: _Gap) -> _Match:
        """The match in the whole, of one that was found in a gap."""
        return _Match(self.left + gap.left.start, self.right + gap.right.start, self.size)


class _Gap(NamedTuple):
    """What lies between two matches, on both sides."""

    left: slice
    right: slice

    def moved(self, gap: _Gap) -> _Gap:
        """The gap in the whole, of one that was found in a gap."""
        left, right = gap.left.start, gap.right.start
        return _Gap(
            slice(left + self.left.start, left + self.left.stop),
            slice(right + self.right.start, right + self.right.stop),
        )


@dataclass(slots=True)
class _Budget:
    remaining: int

    def spend(self, cost: int) -> bool:
        """Whether so much was left. It is spent then."""
        if cost > self.remaining:
            return False
        self.remaining -= cost
        return True


def compare_texts(left: str, right: str, *, context: int = 3, effort: int = EFFORT) -> Difference:
    """The texts side by side, `context` equal lines shown around each difference and the others folded.

    Lines end at `\\n` only. Less `effort` gives coarser marks for large texts, never wrong ones.
    """
    if left == right:
        return Difference(tuple(_equal_rows(left)))
    budget = _Budget(effort)
    left_lines, right_lines = _lines(left), _lines(right)
    rows: list[Row | Fold] = []
    for gap, match in _gaps(_line_matches(left_lines, right_lines, budget), len(left_lines), len(right_lines)):
        rows += _unequal_rows(left_lines, right_lines, gap, budget)
        is_last = match.left_end == len(left_lines) and match.right_end == len(right_lines)
        rows += _matched_rows(left_lines, match, before=context if rows else 0, after=0 if is_last else context)
    kinds = Counter(row.kind for row in rows if isinstance(row, Row))
    return Difference(
        tuple(rows),
        changed=kinds[RowKind.CHANGED],
        removed=kinds[RowKind.REMOVED],
        added=kinds[RowKind.ADDED],
        first=_place(left, _common_start(left, right)),
    )


def _lines(text: str) -> list[str]:
    """The lines, each with the `\\n` that ends it."""
    *ended, rest = text.split("\n")
    lines = [f"{line}\n" for line in ended]
    return [*lines, rest] if rest else lines


def _place(text: str, offset: int) -> Place:
    return Place(text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))


# Rows.


def _equal_rows(text: str) -> Iterator[Row | Fold]:
    """Most comparisons of a report end here, so the lines of a longer text are only counted."""
    count = text.count("\n") + (1 if text and not text.endswith("\n") else 0)
    if count >= _SHORTEST_FOLD:
        yield Fold(1, 1, count)
    else:
        yield from _matched_rows(_lines(text), _Match(0, 0, count), before=0, after=0)


def _matched_rows(lines: Sequence[str], match: _Match, before: int, after: int) -> Iterator[Row | Fold]:
    """Equal lines, folded but for the first `before` and the last `after`; `lines` are those of the left side."""
    folded = match.size - before - after
    if folded < _SHORTEST_FOLD:
        before, folded = match.size, 0
    yield from (_equal_row(lines, match, offset) for offset in range(before))
    if folded:
        yield Fold(match.left + before + 1, match.right + before + 1, folded)
    yield from (_equal_row(lines, match, offset) for offset in range(before + folded, match.size))


def _equal_row(lines: Sequence[str], match: _Match, offset: int) -> Row:
    left, right = match.left + offset, match.right + offset
    return Row(RowKind.EQUAL, _line(lines[left], left, changed=False), _line(lines[left], right, changed=False))


def _unequal_rows(left: Sequence[str], right: Sequence[str], gap: _Gap, budget: _Budget) -> Iterator[Row]:
    """Lines that are alike beside each other; the lines between these by position."""
    left_done, right_done = gap.left.start, gap.right.start
    for match in _alike_lines(left[gap.left], right[gap.right], budget):
        pair = match.moved(gap)
        yield from _rows_by_position(left, right, range(left_done, pair.left), range(right_done, pair.right), budget)
        yield _changed_row(left, right, pair.left, pair.right, budget)
        left_done, right_done = pair.left_end, pair.right_end
    rest = range(left_done, gap.left.stop), range(right_done, gap.right.stop)
    yield from _rows_by_position(left, right, *rest, budget)


def _rows_by_position(
    left: Sequence[str], right: Sequence[str], left_places: range, right_places: range, budget: _Budget
) -> Iterator[Row]:
    for left_place, right_place in zip_longest(left_places, right_places):
        if left_place is None:
            yield Row(RowKind.ADDED, None, _line(right[right_place], right_place, changed=True))
        elif right_place is None:
            yield Row(RowKind.REMOVED, _line(left[left_place], left_place, changed=True), None)
        else:
            yield _changed_row(left, right, left_place, right_place, budget)


def _changed_row(left: Sequence[str], right: Sequence[str], left_place: int, right_place: int, budget: _Budget) -> Row:
    left_line, right_line = left[left_place], right[right_place]
    matches = _shown_matches(left_line.removesuffix("\n"), right_line.removesuffix("\n"), budget)
    return Row(
        RowKind.CHANGED,
        _marked_line(left_line, left_place, [(match.left, match.left_end) for match in matches]),
        _marked_line(right_line, right_place, [(match.right, match.right_end) for match in matches]),
    )


def _line(line: str, place: int, *, changed: bool) -> Line:
    text = line.removesuffix("\n")
    return Line(place + 1, (Segment(text, changed),) if text else (), no_newline=text == line)


def _marked_line(line: str, place: int, equal: Sequence[tuple[int, int]]) -> Line:
    """A line with all its characters marked but for the spans that are `equal`."""
    if not equal:
        return _line(line, place, changed=True)
    text = line.removesuffix("\n")
    segments: list[Segment] = []
    done = 0
    for start, end in [*equal, (len(text), len(text))]:
        segments += [Segment(text[done:start], True), Segment(text[start:end], False)]
        done = end
    return Line(place + 1, tuple(segment for segment in segments if segment.text), no_newline=text == line)


# Which line stands beside which.


def _line_matches(left: Sequence[str], right: Sequence[str], budget: _Budget) -> list[_Match]:
    """All lines that are shown as equal."""
    matches = _matches(left, right, budget)
    for gap, _ in list(_gaps(matches, len(left), len(right))):
        # Equal lines are left only where the search was given up; few changes leave them at the same position.
        beside = enumerate(zip(left[gap.left], right[gap.right], strict=False))
        matches += [_Match(at, at, 1).moved(gap) for at, (line, other) in beside if line == other]
    return _joined(matches)


def _alike_lines(left: Sequence[str], right: Sequence[str], budget: _Budget) -> list[_Match]:
    """Pairs of unequal lines, in order on both sides, that have the most in common in sum. None where there is no
    choice, or where it would take too long."""
    choices = len(left) * len(right)
    if not 1 < choices <= _MOST_CHOICES or not set(left).isdisjoint(right):
        return []
    characters = sum(map(len, [*left, *right]))
    if not budget.spend(_LIKENESS_COST * choices + characters // _CHARACTERS_OF_COST_1):
        return []
    return _best_pairs(_likeness(left, right))


def _best_pairs(likeness: Sequence[Sequence[float]]) -> list[_Match]:
    """The pairs of a row and a column, both ascending, with the largest sum."""
    rows, columns = len(likeness), len(likeness[0])
    best = [[0.0] * (columns + 1) for _ in range(rows + 1)]
    for row in reversed(range(rows)):
        for column in reversed(range(columns)):
            paired = likeness[row][column] + best[row + 1][column + 1]
            best[row][column] = max(paired, best[row + 1][column], best[row][column + 1])
    pairs = []
    row = column = 0
    while row < rows and column < columns:
        if best[row][column] == best[row + 1][column]:
            row += 1
        elif best[row][column] == best[row][column + 1]:
            column += 1
        else:
            pairs.append(_Match(row, column, 1))
            row, column = row + 1, column + 1
    return pairs


def _likeness(left: Sequence[str], right: Sequence[str]) -> list[list[float]]:
    """How much of each two lines is in words that both have, from 0 to 1; 0 where that is little."""
    left_words, right_words = _words(left), _words(right)
    return [[_share(words, length, *other) for other in right_words] for words, length in left_words]


def _words(lines: Iterable[str]) -> list[tuple[set[str], int]]:
    """The words and signs of each line, and the length of them all."""
    words = [{token for token in _TOKEN.findall(line) if not token.isspace()} for line in lines]
    return [(line, sum(map(len, line))) for line in words]


def _share(words: set[str], length: int, others: set[str], other_length: int) -> float:
    share = 2 * sum(map(len, words & others)) / max(length + other_length, 1)
    return share if share >= _LEAST_ALIKE else 0.0


# Which characters of two lines are shown as equal.


def _shown_matches(left: str, right: str, budget: _Budget) -> list[_Match]:
    """The equal characters of two lines as far as they help a reader; none, and both lines are marked whole."""
    if left == right:
        return [_Match(0, 0, len(left))]
    if not budget.spend(_LINES_COST + (len(left) + len(right)) // _CHARACTERS_OF_COST_1):
        return []
    matches = _slid(left, right, _character_matches(left, right, budget))
    matches = _without_islands(matches, len(left), len(right))
    common = sum(_weight(left[match.left : match.left_end]) for match in matches)
    return matches if common >= _LEAST_IN_COMMON * min(_weight(left), _weight(right)) else []


def _weight(text: str) -> int:
    """How many characters are not blank."""
    return len(text) - text.count(" ") - text.count("\t")


def _character_matches(left: str, right: str, budget: _Budget) -> list[_Match]:
    """First by words, so that marks begin and end where words do, then by the characters between these."""
    left_words, right_words = _TOKEN.findall(left), _TOKEN.findall(right)
    left_starts = [0, *accumulate(map(len, left_words))]
    right_starts = [0, *accumulate(map(len, right_words))]
    matches = [
        _Match(
            left_starts[words.left], right_starts[words.right], left_starts[words.left_end] - left_starts[words.left]
        )
        for words in _matches(left_words, right_words, budget)
    ]
    for gap, _ in list(_gaps(matches, len(left), len(right))):
        matches += [match.moved(gap) for match in _matches(left[gap.left], right[gap.right], budget)]
    return _joined(matches)


def _slid(left: str, right: str, matches: Iterable[_Match]) -> list[_Match]:
    """Moves what is on one side only to where a reader would cut: of `<a><b>` for `<b>` it is `<a>`, not `a><`."""
    slid = [_Match(0, 0, 0), *matches, _Match(len(left), len(right), 0)]
    for number in range(1, len(slid)):
        before, after = slid[number - 1], slid[number]
        on_left, on_right = before.left_end < after.left, before.right_end < after.right
        if on_left == on_right:
            continue
        text, start, end = (left, before.left_end, after.left) if on_left else (right, before.right_end, after.right)
        shift = _best_shift(text, start, end, before.size, after.size)
        slid[number - 1] = _Match(before.left, before.right, before.size + shift)
        slid[number] = _Match(after.left + shift, after.right + shift, after.size - shift)
    return [match for match in slid if match.size]


def _best_shift(text: str, start: int, end: int, back: int, forth: int) -> int:
    """How far to move the piece from `start` to `end` within the equal text around it, so that it reads the same."""
    shifts = [0]
    for step in range(1, min(back, _FARTHEST_SHIFT) + 1):
        if text[start - step] != text[end - step]:
            break
        shifts.append(-step)
    for step in range(1, min(forth, _FARTHEST_SHIFT) + 1):
        if text[start + step - 1] != text[end + step - 1]:
            break
        shifts.append(step)
    return max(shifts, key=lambda shift: _cut_quality(text, start + shift) + _cut_quality(text, end + shift))


def _cut_quality(text: str, place: int) -> int:
    """How well a text can be cut before a place."""
    if place in (0, len(text)):
        return 4
    before, after = text[place - 1], text[place]
    if before in "}>)]" and after in "{<([":
        return 3
    if before.isspace() or after.isspace():
        return 2
    return 0 if (before + after).isalnum() else 1


def _without_islands(matches: Sequence[_Match], left_length: int, right_length: int) -> list[_Match]:
    """Leaves out what is too short between two changes to be worth reading."""
    shown: list[_Match] = []
    left_done = right_done = 0
    for number, match in enumerate(matches, 1):
        following = matches[number] if number < len(matches) else _Match(left_length, right_length, 0)
        before = max(match.left - left_done, match.right - right_done)
        after = max(following.left - match.left_end, following.right - match.right_end)
        if before and after and match.size <= max(_TINY, min(_SMALL, before, after)):
            continue
        shown.append(match)
        left_done, right_done = match.left_end, match.right_end
    return shown


# What two sequences have in common, be they of lines, of words or of characters.


def _matches(left: Sequence[str], right: Sequence[str], budget: _Budget) -> list[_Match]:
    """Runs of equal items, in order on both sides. Some are missed where the budget does not reach."""
    found: list[_Match] = []
    gaps = [_Gap(slice(0, len(left)), slice(0, len(right)))]
    while gaps:
        gap = gaps.pop()
        left_part, right_part = left[gap.left], right[gap.right]
        if not left_part or not right_part:
            continue
        matches, complete = _edges(left_part, right_part), False
        if not matches:
            matches, complete = _searched(left_part, right_part, budget)
        found += [match.moved(gap) for match in matches]
        if not complete:
            inner = [inner.moved(gap) for inner, _ in _gaps(matches, len(left_part), len(right_part))]
            # The first is searched next: should the budget run out, the beginning is what is read first.
            gaps += reversed(inner)
    return _joined(found)


def _gaps(matches: Iterable[_Match], left_length: int, right_length: int) -> Iterator[tuple[_Gap, _Match]]:
    """Each match and the gap before it; at last the end, as an empty match."""
    left_done = right_done = 0
    for match in [*matches, _Match(left_length, right_length, 0)]:
        yield _Gap(slice(left_done, match.left), slice(right_done, match.right)), match
        left_done, right_done = match.left_end, match.right_end


def _joined(matches: Iterable[_Match]) -> list[_Match]:
    """In order, those that touch made one."""
    joined: list[_Match] = []
    for match in sorted(matches):
        last = joined[-1] if joined else None
        if last and (last.left_end, last.right_end) == (match.left, match.right):
            joined[-1] = _Match(last.left, last.right, last.size + match.size)
        else:
            joined.append(match)
    return joined


def _edges(left: Sequence[str], right: Sequence[str]) -> list[_Match]:
    """What both begin with and what both end with."""
    start = _common_start(left, right)
    end = _common_end(left[start:], right[start:])
    edges = [_Match(0, 0, start), _Match(len(left) - end, len(right) - end, end)]
    return [edge for edge in edges if edge.size]


def _common_start(left: Sequence[str], right: Sequence[str]) -> int:
    """How many items both begin with. Whole slices are compared, which is much faster than items."""
    if not left or not right or left[0] != right[0]:
        return 0
    equal, unequal = 1, min(len(left), len(right)) + 1
    while unequal - equal > 1:
        middle = (equal + unequal) // 2
        if left[equal:middle] == right[equal:middle]:
            equal = middle
        else:
            unequal = middle
    return equal


def _common_end(left: Sequence[str], right: Sequence[str]) -> int:
    """How many items both end with."""
    return _common_start(left[::-1], right[::-1]) if left and right and left[-1] == right[-1] else 0


def _searched(left: Sequence[str], right: Sequence[str], budget: _Budget) -> tuple[list[_Match], bool]:
    """Matches, and whether that is all: there is nothing to find between them, or it would take too long."""
    if not budget.spend(_SEARCH_COST + len(left) + len(right)) or set(left).isdisjoint(right):
        return [], True
    left_counts, right_counts = Counter(left), Counter(right)
    pairs = sum(count * right_counts[item] for item, count in left_counts.items())
    if pairs > _FEW_PAIRS:
        once = {item for item, count in left_counts.items() if count == 1 == right_counts[item]}
        if once:
            return _anchors(left, right, once), False
    if pairs > _MOST_PAIRS or not budget.spend(pairs):
        return [], True
    blocks = SequenceMatcher(None, left, right, autojunk=False).get_matching_blocks()
    return [_Match(*block) for block in blocks if block.size], True


def _anchors(left: Sequence[str], right: Sequence[str], once: set[str]) -> list[_Match]:
    """The longest row of items that are `once` on either side and stand in the same order there (patience diff), each
    with the equal items behind it."""
    right_places = {item: place for place, item in enumerate(right) if item in once}
    anchors = [(place, right_places[item]) for place, item in enumerate(left) if item in once]
    # For each length of a row the anchor to end it with: of those seen, the one that stands first on the right.
    lasts: list[int] = []
    lasts_right: list[int] = []
    before: list[int] = []
    for number, (_, right_place) in enumerate(anchors):
        length = bisect_left(lasts_right, right_place)
        before.append(lasts[length - 1] if length else -1)
        lasts[length : length + 1] = [number]
        lasts_right[length : length + 1] = [right_place]
    row = []
    number = lasts[-1]
    while number >= 0:
        row.append(anchors[number])
        number = before[number]
    return _grown(left, right, reversed(row))


def _grown(left: Sequence[str], right: Sequence[str], anchors: Iterable[tuple[int, int]]) -> list[_Match]:
    # An anchor has one counterpart, so a match that grows over the next anchor's place does so on both sides.
    grown: list[_Match] = []
    for left_start, right_start in anchors:
        if grown and left_start < grown[-1].left_end:
            continue
        left_end, right_end = left_start + 1, right_start + 1
        while left_end < len(left) and right_end < len(right) and left[left_end] == right[right_end]:
            left_end, right_end = left_end + 1, right_end + 1
        grown.append(_Match(left_start, right_start, left_end - left_start))
    return grown
