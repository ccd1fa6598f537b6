"""A failure made small: pieces are taken out as long as the two engines still disagree."""

from __future__ import annotations

from collections.abc import Sequence

from tests.differential.compare import Compare, Comparison, kind
from tests.differential.mutate import tokens

QUESTIONS = 400
"""How many shorter sources are put to the engines at most, for one failure."""
AT_ONCE = 40


def shrink(failure: Comparison, compare: Compare, *, questions: int = QUESTIONS) -> Comparison:
    """The smallest disagreement of the same kind found by leaving out tokens of `failure`'s source, larger pieces
    first."""
    best = failure
    wanted = kind(failure)
    size = max(1, len(tokens(best.source)) // 2)
    while questions > 0:
        candidates = _without_pieces(tokens(best.source), size)[:questions]
        questions -= len(candidates)
        shorter = _first_that_differs(candidates, compare, wanted)
        if shorter is not None:
            best = shorter
            size = min(size, max(1, len(tokens(best.source)) // 2))
        elif size == 1:
            break
        else:
            size //= 2
    return best


def _without_pieces(pieces: Sequence[str], size: int) -> list[str]:
    """The source without each run of `size` tokens."""
    texts = ["".join([*pieces[:start], *pieces[start + size :]]) for start in range(0, len(pieces), size)]
    return [text for text in texts if text]


def _first_that_differs(candidates: Sequence[str], compare: Compare, wanted: str) -> Comparison | None:
    """The first that the engines disagree about in the wanted way."""
    for start in range(0, len(candidates), AT_ONCE):
        for comparison in compare(candidates[start : start + AT_ONCE]):
            if comparison.differs and kind(comparison) == wanted:
                return comparison
    return None
