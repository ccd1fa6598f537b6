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
