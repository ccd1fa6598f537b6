"""Two texts as a unified diff, in bounded time whatever the texts are (`reports.difference` says how)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from reports.difference import Fold, Line, Row, RowKind, compare_texts

NO_NEWLINE = "\\ No newline at end of file"


def unified(old: bytes, new: bytes, names: tuple[str, str], *, limit: int) -> tuple[str, ...]:
    """The lines of a unified diff, without line ends; at most `limit` of them, and then a line that says how many were
    left out. Bytes that are not UTF-8 are shown as `\\xff`. Empty for texts that show alike."""
    difference = compare_texts(_text(old), _text(new))
    if difference.equal:
        return ()
    lines = [f"--- {names[0]}", f"+++ {names[1]}"]
    for folded, rows in groupby(difference.rows, key=lambda row: isinstance(row, Fold)):
        if not folded:
            lines += _hunk([row for row in rows if isinstance(row, Row)])
    if len(lines) > limit:
        return (*lines[:limit], f"… {len(lines) - limit:,} more lines")
    return tuple(lines)


def _text(source: bytes) -> str:
    return source.decode("utf-8", "backslashreplace")


def _hunk(rows: Sequence[Row]) -> Iterator[str]:
    if all(row.kind is RowKind.EQUAL for row in rows):
        return
    old = [row.left for row in rows if row.left is not None]
    new = [row.right for row in rows if row.right is not None]
    yield f"@@ -{_range(old)} +{_range(new)} @@"
    for equal, run in groupby(rows, key=lambda row: row.kind is RowKind.EQUAL):
        together = list(run)
        if equal:
            yield from _lines(" ", [row.left for row in together])
        else:
            yield from _lines("-", [row.left for row in together])
            yield from _lines("+", [row.right for row in together])


def _range(lines: Sequence[Line]) -> str:
    """As `diff -u`: a side without lines begins at 0."""
    return f"{lines[0].number if lines else 0},{len(lines)}"


def _lines(sign: str, lines: Iterable[Line | None]) -> Iterator[str]:
    for line in lines:
        if line is not None:
            yield sign + "".join([segment.text for segment in line.segments])
            if line.no_newline:
                yield NO_NEWLINE
