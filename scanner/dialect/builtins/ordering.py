"""The order that `sort`, `min`, `max`, `dictsort` and the comparing tests share (`dialect.md` section 7)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key, partial
from typing import TypeVar

from scanner.dialect.errors import RunFault
from scanner.dialect.values import Boolean, Float, Integer, String, Value
from scanner.dialect.walks import Work, text_of

T = TypeVar("T")

SORT_STEPS = 16
"""Steps for each item of a sort: about as many comparisons."""


def less(work: Work, left: Value, right: Value) -> bool:
    """Whether `left` comes before `right`. Numbers and strings do; a number and a string compare as strings; anything
    else never does. Raises `RunFault` for two booleans."""
    if isinstance(left, Integer | Float) and isinstance(right, Integer | Float):
        return left.value < right.value
    if isinstance(left, Boolean) and isinstance(right, Boolean):
        raise RunFault("Unsupported comparison operator for bool type")
    if _ordered(left) and _ordered(right):
        return text_of(work, left) < text_of(work, right)
    return False


def same(work: Work, left: Value, right: Value) -> bool:
    """Whether the two compare as equal, by the same rules; booleans by value."""
    if isinstance(left, Boolean) and isinstance(right, Boolean):
        return left.value == right.value
    if isinstance(left, Integer | Float) and isinstance(right, Integer | Float):
        return left.value == right.value
    return _ordered(left) and _ordered(right) and text_of(work, left) == text_of(work, right)


def comparable(left: Value, right: Value) -> bool:
    """Whether the comparing tests say anything of the two."""
    if isinstance(left, Boolean) and isinstance(right, Boolean):
        return True
    return _ordered(left) and _ordered(right)


def _ordered(value: Value) -> bool:
    return isinstance(value, Integer | Float | String)


def in_order(work: Work, items: list[T], key: Callable[[T], Value], *, reverse: bool) -> list[T]:
    """The items sorted by `key`, equal ones as they came; reversed, the comparison is."""
    work.charge(len(items) * SORT_STEPS)
    keyed = [(key(item), item) for item in items]
    if all(_ordered(found) for found, _ in keyed):
        compare = cmp_to_key(partial(_compare, work, reverse=reverse))
        keyed.sort(key=lambda pair: compare(pair[0]))
    else:
        _insert_in_order(work, keyed, reverse=reverse)
    return [item for _, item in keyed]


def _compare(work: Work, left: Value, right: Value, *, reverse: bool) -> int:
    if reverse:
        left, right = right, left
    return -1 if less(work, left, right) else int(less(work, right, left))


def _insert_in_order(work: Work, keyed: list[tuple[Value, T]], *, reverse: bool) -> None:
    """Sort in place where some keys never compare: then the result depends on the method, and llama.cpp's inserts.

    An item that comes before the very first goes to the front; any other moves left as long as it comes before its
    neighbour.
    """

    def before(a: tuple[Value, T], b: tuple[Value, T]) -> bool:
        return less(work, b[0], a[0]) if reverse else less(work, a[0], b[0])

    for position in range(1, len(keyed)):
        work.charge(position)
        item = keyed.pop(position)
        place = position
        if before(item, keyed[0]):
            place = 0
        else:
            while place > 0 and before(item, keyed[place - 1]):
                place -= 1
        keyed.insert(place, item)
