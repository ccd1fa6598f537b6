"""What builtins of several types share."""

from __future__ import annotations

from scanner.dialect.builtins.arguments import as_integer, at, expect_count, expect_integer, named
from scanner.dialect.context import Run
from scanner.dialect.errors import NotImplementedFault, RunFault
from scanner.dialect.values import (
    EMPTY,
    Array,
    Boolean,
    Code,
    Integer,
    Null,
    Object,
    String,
    Tuple,
    Undefined,
    Value,
    string,
)
from scanner.dialect.walks import key_of, text_of


def default(run: Run, arguments: list[Value]) -> Value:
    """`default(value[, boolean])`: instead of Undefined and None, or of all that is falsy."""
    expect_count("default", arguments, 2, 3)
    value = arguments[0]
    missing = not value.truth() if named(arguments, "boolean", 2).truth() else isinstance(value, Undefined | Null)
    return arguments[1] if missing else value


def not_implemented(message: str) -> Code:
    """A builtin that llama.cpp has by name only."""

    def refuse(run: Run, arguments: list[Value]) -> Value:
        raise NotImplementedFault(message)

    return refuse


def empty_string(run: Run, arguments: list[Value]) -> Value:
    """`''`, whatever the operand."""
    return EMPTY


def empty_array(run: Run, arguments: list[Value]) -> Value:
    """`[]`, whatever the operand."""
    return Array([])


def zero(run: Run, arguments: list[Value]) -> Value:
    """`0`, whatever the operand."""
    return Integer(0)


def undefined(run: Run, arguments: list[Value]) -> Value:
    """Undefined, whatever the operand."""
    return Undefined()


def as_text(run: Run, arguments: list[Value]) -> Value:
    """The operand's text form."""
    return string(text_of(run, arguments[0]))


def as_text_of_all(run: Run, arguments: list[Value]) -> Value:
    """The text form of an array or object, which reads everything inside it."""
    run.trace.use_all(run, arguments[0], run.place)
    text = text_of(run, arguments[0])
    run.charge_text(len(text))
    return string(text)


def attribute_of(run: Run, item: Value, attribute: Value) -> Value:
    """An item's attribute, as `map`, `join`, `sort` and the selecting filters take it: an index or a key."""
    if isinstance(item, Array):
        index = _index(attribute)
        if index is not None and -len(item.items) <= index < len(item.items):
            return item.items[index]
    elif isinstance(item, Object):
        return item.entries.get(key_of(run, attribute), Undefined())
    return Undefined()


def _index(attribute: Value) -> int | None:
    if isinstance(attribute, Integer | Boolean):
        return int(attribute.value)
    text = attribute.text() if isinstance(attribute, String) else b""
    return int(text) if text.isdigit() and len(text) < 10 else None


def slice_method(run: Run, arguments: list[Value]) -> Value:
    """`slice(start, stop, step)` as a filter or method, where all three are needed."""
    # llama.cpp checks twice, and each check words its own bounds.
    expect_count("slice", arguments, 2)
    expect_count("slice", arguments, 1, 4)
    return slice_of(run, arguments[0], arguments[1], at(arguments, 2), at(arguments, 3))


def slice_of(run: Run, owner: Value, start: Value | None, stop: Value | None, step: Value | None) -> Value:
    """`owner[start:stop:step]` of an array or string; None stands for what is left out."""
    size = owner.size if isinstance(owner, String) else len(owner.items) if isinstance(owner, Array) else 0
    first = None if start is None else expect_integer("slice", start).value
    last = None if stop is None else as_integer(stop)
    stride = 1 if step is None else as_integer(step)
    if stride == 0:
        raise RunFault("slice step cannot be zero")
    chosen = _forwards(size, first, last, stride) if stride > 0 else _backwards(size, first, last, stride)
    if isinstance(owner, String):
        run.charge_bytewise(len(chosen))
        text = text_of(run, owner)
        return string(bytes([text[index] for index in chosen]), owner.is_input)
    items = owner.items if isinstance(owner, Array) else []
    run.charge_items(len(chosen))
    kept = [items[index] for index in chosen]
    return Tuple(kept) if isinstance(owner, Tuple) else Array(kept)


def _forwards(size: int, first: int | None, last: int | None, stride: int) -> range:
    return range(size)[first:last:stride]


def _backwards(size: int, first: int | None, last: int | None, stride: int) -> range:
    """Backwards, llama.cpp takes a stop of -1 for "before the first", and a start before the first for the first."""
    first = size - 1 if first is None else first
    last = -1 if last is None else last
    if first < 0:
        first = max(0, first + size)
    if last < -1:
        last = max(-1, last + size)
    return range(min(first, size - 1), last, stride)
