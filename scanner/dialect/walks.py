"""What has to look inside values: text forms, keys, equality.

A few lines of template can build a value that is endless (a list that holds itself) or exponential (pairs of pairs that
share their halves). So every walk has a depth limit and pays a step for each value it meets.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from scanner.dialect.errors import LimitFault, RunFault
from scanner.dialect.strings import json_string
from scanner.dialect.values import (
    Array,
    Boolean,
    Float,
    Function,
    Integer,
    Key,
    Null,
    Object,
    String,
    Tuple,
    Undefined,
    Value,
    from_key,
)

NESTING = 200
"""How deep values may nest when they are walked."""


LONG_TEXT = 4096
"""Bytes of text beyond which each look at it is paid for."""


class Work(Protocol):
    """Whoever pays for a walk: a run."""

    def charge(self, steps: int) -> None:
        """Pay; raises `LimitFault` when the budget is used up."""


def children(value: Value) -> Iterator[Value]:
    """The values directly inside an array or object."""
    if isinstance(value, Array):
        yield from value.items
    elif isinstance(value, Object):
        yield from value.entries.values()


def check_nesting(depth: int) -> None:
    """Refuse to walk values that nest without end."""
    if depth > NESTING:
        raise LimitFault(f"values nested deeper than {NESTING} levels")


def text_of(work: Work, value: Value) -> bytes:
    """Any value as a string (section 4). Raises `RunFault` for what has no text."""
    if isinstance(value, Array | Object):
        return shown(work, value)
    if isinstance(value, String) and value.size > LONG_TEXT:
        work.charge(value.size >> 8)
    return value.text()


def shown(work: Work, value: Value, depth: int = 0) -> bytes:
    """A value as it stands inside the text of an array or object: `[1, 'a']`."""
    check_nesting(depth)
    work.charge(1)
    if isinstance(value, String):
        text = value.text()
        return json_string(text) if b"'" in text else b"'" + text + b"'"
    if isinstance(value, Array):
        inside = b", ".join([shown(work, item, depth + 1) for item in value.items])
        work.charge(len(inside) >> 8)
        if value.TYPE == "Tuple":
            return b"(" + inside + (b",)" if len(value.items) == 1 else b")")
        return b"[" + inside + b"]"
    if isinstance(value, Object):
        entries = [
            shown(work, from_key(key)) + b": " + shown(work, item, depth + 1) for key, item in value.entries.items()
        ]
        inside = b", ".join(entries)
        work.charge(len(inside) >> 8)
        return b"{" + inside + b"}"
    if isinstance(value, Undefined):
        return value.type_name.encode()
    if isinstance(value, Function):
        return f"Function<{value.name}>()".encode()
    return value.text()


def key_of(work: Work, value: Value) -> Key:
    """A value as a key of an object. Raises `RunFault` for what is not hashable."""
    if not isinstance(value, Tuple):
        if isinstance(value, String) and value.size > LONG_TEXT:
            work.charge(value.size >> 8)
        return value.key()
    if not is_fixed(work, value):
        raise RunFault("Object key of unhashable type: Tuple")
    return tuple([key_of(work, item) for item in value.items])


def is_fixed(work: Work, value: Value, depth: int = 0) -> bool:
    """Hashable and immutable: what arrays must hold to be comparable."""
    if not isinstance(value, Tuple):
        return isinstance(value, String | Integer | Float | Boolean | Null)
    check_nesting(depth)
    work.charge(len(value.items) + 1)
    return all(is_fixed(work, item, depth + 1) for item in value.items)


def equal(work: Work, left: Value, right: Value) -> bool:
    """`==`: by value across numbers and booleans, else within one type (section 4)."""
    if isinstance(left, String):
        return isinstance(right, String) and _same_text(work, left, right)
    if isinstance(left, Integer | Float | Boolean):
        return isinstance(right, Integer | Float | Boolean) and left.value == right.value
    if left.TYPE != right.TYPE:
        return False
    if isinstance(left, Array) and isinstance(right, Array):
        return len(left.items) == len(right.items) and _all_equal(work, left.items, right.items)
    if isinstance(left, Object) and isinstance(right, Object):
        same_keys = list(left.entries) == list(right.entries)
        return same_keys and _all_equal(work, list(left.entries.values()), list(right.entries.values()))
    return isinstance(left, Null | Undefined | Function)


def _same_text(work: Work, left: String, right: String) -> bool:
    if left.size != right.size:
        return False
    if left.size > LONG_TEXT:
        work.charge(left.size >> 8)
    return left.parts == right.parts or left.text() == right.text()


def _all_equal(work: Work, left: list[Value], right: list[Value]) -> bool:
    """Whether all pairs are equal, and fixed: what may change never counts as equal inside something."""
    work.charge(len(left))
    for one, other in zip(left, right, strict=True):
        if not (is_fixed(work, one) and is_fixed(work, other) and equal(work, one, other)):
            return False
    return True
