"""Capability marks as SVG paths: filled for yes, hollow for no, half for a disagreement, a dash for not known.

All marks of a row share at most three paths: a page of ten thousand rows opens at once only while a
row is few elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reports.marks import Mark

_STEP = 14
_GAP = 6
_PER_GROUP = 3
_MIDDLE = 8


@dataclass(frozen=True, slots=True)
class Drawing:
    """Path data: what is filled, what is outlined, and the broken ring around a disagreement."""

    filled: str
    outlined: str
    ringed: str


def centre(place: int) -> int:
    """Where the mark at a place, from 0, has its middle: marks stand in groups of three."""
    return _STEP // 2 + _STEP * place + _GAP * (place // _PER_GROUP)


def draw(marks: Sequence[Mark]) -> Drawing:
    """The marks side by side."""
    filled, outlined, ringed = [], [], []
    for place, mark in enumerate(marks):
        x = centre(place)
        if mark is Mark.YES:
            filled.append(_circle(x, 5))
        elif mark is Mark.UNKNOWN:
            outlined.append(f"M{x - 4} {_MIDDLE}h8")
        else:
            outlined.append(_circle(x, 4.5))
        if mark in (Mark.OVER, Mark.UNDER):
            side = 0 if mark is Mark.OVER else 1
            filled.append(f"M{x} {_MIDDLE - 5}a5 5 0 0 {side} 0 10z")
            ringed.append(_circle(x, 6.5))
    return Drawing("".join(filled), "".join(outlined), "".join(ringed))


def _circle(x: int, radius: float) -> str:
    across = 2 * radius
    return (
        f"M{x - radius:g} {_MIDDLE}a{radius:g} {radius:g} 0 1 0 {across:g} 0a{radius:g} {radius:g} 0 1 0-{across:g} 0"
    )


def bars(key: str) -> str:
    """The bars of a gutter (`reports.gutters`): a tall one where a probe ran the line, a dot where it did not."""
    return "".join(
        f"M{6 * place + 1} 3h4v15h-4z" if digit == "1" else f"M{6 * place + 2} 10h2v2h-2z"
        for place, digit in enumerate(key)
    )


_LEAST_SEEN = 1.2
"""Percent of a bar that what is wrong takes at least: one of a thousand templates is to be seen."""


@dataclass(frozen=True, slots=True)
class ShareDrawing:
    """A bar in percent of its length: where what is claimed ends; where what is claimed and not true begins, up to that
    end, and how wide it is; where what is true and not claimed begins, and how wide it is; where what is really true
    would end (None: nothing was observed)."""

    claimed: float
    over: float
    over_width: float
    under: float
    under_width: float
    really: float | None


def draw_shares(
    claiming: int, analysed: int, *, over: int = 0, under: int = 0, observed: int | None = None
) -> ShareDrawing:
    """The bar of so many of `analysed`. The ends are exact, only what is wrong may be drawn wider than it is."""
    claimed = _percent(claiming, analysed)
    over_width = min(max(_percent(over, analysed), _LEAST_SEEN), claimed) if over else 0.0
    under_width = max(_percent(under, analysed), _LEAST_SEEN) if under else 0.0
    return ShareDrawing(
        claimed=claimed,
        over=round(claimed - over_width, 2),
        over_width=over_width,
        under=min(claimed, round(100 - under_width, 2)),
        under_width=under_width,
        really=None if observed is None else _percent(observed, analysed),
    )


def _percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 2) if whole else 0.0
