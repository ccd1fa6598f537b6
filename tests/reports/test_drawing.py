"""Bars are exact where they end, and show what is wrong however little of it there is."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reports.drawing import ShareDrawing, draw_shares


@pytest.mark.parametrize(
    ("drawn", "expected"),
    [
        (draw_shares(50, 100), ShareDrawing(50, 50, 0, 50, 0, None)),
        (draw_shares(50, 100, over=10, observed=40), ShareDrawing(50, 40, 10, 50, 0, 40)),
        (draw_shares(50, 100, under=20, observed=70), ShareDrawing(50, 50, 0, 50, 20, 70)),
        (draw_shares(50, 100, over=10, under=20, observed=60), ShareDrawing(50, 40, 10, 50, 20, 60)),
        # One of a thousand is drawn wider than it is.
        (draw_shares(500, 1000, over=1, under=1, observed=500), ShareDrawing(50, 48.8, 1.2, 50, 1.2, 50)),
        (draw_shares(1, 1000, over=1, observed=0), ShareDrawing(0.1, 0, 0.1, 0.1, 0, 0)),
        (draw_shares(999, 1000, under=1, observed=1000), ShareDrawing(99.9, 99.9, 0, 98.8, 1.2, 100)),
        (draw_shares(0, 0), ShareDrawing(0, 0, 0, 0, 0, None)),
    ],
)
def test_bars(drawn: ShareDrawing, expected: ShareDrawing) -> None:
    assert drawn == expected


@settings(deadline=None)
@given(*[st.integers(0, 10_000)] * 4)
def test_nothing_leaves_the_bar(agreeing: int, over: int, under: int, neither: int) -> None:
    whole = agreeing + over + under + neither
    drawn = draw_shares(agreeing + over, whole, over=over, under=under, observed=agreeing + under)
    assert 0 <= drawn.over <= drawn.over + drawn.over_width <= 100.01
    assert 0 <= drawn.under <= drawn.under + drawn.under_width <= 100.01
    assert bool(over) == bool(drawn.over_width)
    assert bool(under) == bool(drawn.under_width)
