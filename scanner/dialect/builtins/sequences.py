"""Methods of Array and Tuple."""

from __future__ import annotations

from collections.abc import Callable

from scanner.dialect.builtins.arguments import as_integer, expect_count, expect_string, named
from scanner.dialect.builtins.checks import TESTS
from scanner.dialect.builtins.common import as_text_of_all, attribute_of, default, not_implemented, slice_method
from scanner.dialect.builtins.json import tojson
from scanner.dialect.builtins.ordering import in_order, less
from scanner.dialect.context import Run
from scanner.dialect.errors import NotImplementedFault, RunFault
from scanner.dialect.values import (
    Array,
    Code,
    Float,
    Integer,
    KeywordArgument,
    String,
    Tuple,
    Undefined,
    Value,
    string,
)
from scanner.dialect.walks import text_of


def items_of(run: Run, arguments: list[Value]) -> list[Value]:
    """What argument 0 holds, which the method table has found to be an Array or Tuple."""
    value = arguments[0]
    assert isinstance(value, Array)  # noqa: S101 - holds by the table; for the type checker
    run.charge(len(value.items))
    return value.items


def like(original: Value, items: list[Value]) -> Array:
    """A new sequence of the type of `original`."""
    return Tuple(items) if isinstance(original, Tuple) else Array(items)


def to_list(run: Run, arguments: list[Value]) -> Value:
    """`list`: a copy."""
    return Array(list(items_of(run, arguments)))


def first(run: Run, arguments: list[Value]) -> Value:
    """`first`"""
    items = items_of(run, arguments)
    return items[0] if items else Undefined()


def last(run: Run, arguments: list[Value]) -> Value:
    """`last`"""
    items = items_of(run, arguments)
    return items[-1] if items else Undefined()


def length(run: Run, arguments: list[Value]) -> Value:
    """`length`"""
    return Integer(len(items_of(run, arguments)))


def append(run: Run, arguments: list[Value]) -> Value:
    """`append(value)`: in place; gives the array."""
    expect_count("append", arguments, 2)
    array = _mutable(arguments[0])
    run.charge_items(1)
    if len(array.items) >= run.limits.sequence_items:
        run.charge_items(len(array.items) + 1)
    array.items.append(arguments[1])
    return array


def pop(run: Run, arguments: list[Value]) -> Value:
    """`pop([index])`: in place; gives what was taken out."""
    expect_count("pop", arguments, 1, 2)
    index = as_integer(arguments[1]) if len(arguments) > 1 else -1
    array = _mutable(arguments[0])
    size = len(array.items)
    run.charge(size // 64)
    index = index + size if index < 0 else index
    if not 0 <= index < size:
        raise RunFault(f"Index {index} out of bounds for array of size {size}")
    return array.items.pop(index)


def _mutable(value: Value) -> Array:
    if isinstance(value, Tuple) or not isinstance(value, Array):
        raise RunFault("Attempting to modify immutable type")
    return value


def reverse(run: Run, arguments: list[Value]) -> Value:
    """`reverse`: a new sequence."""
    return like(arguments[0], items_of(run, arguments)[::-1])


def sort(run: Run, arguments: list[Value]) -> Value:
    """`sort([reverse[, case_sensitive[, attribute]]])`: always case-sensitive."""
    expect_count("sort", arguments, 1, 4)
    backwards = named(arguments, "reverse", 1).truth()
    attribute = named(arguments, "attribute", 3)
    ordered = in_order(run, items_of(run, arguments), lambda item: _sort_key(run, item, attribute), reverse=backwards)
    return like(arguments[0], ordered)


def _sort_key(run: Run, item: Value, attribute: Value) -> Value:
    return item if isinstance(attribute, Undefined) else attribute_of(run, item, attribute)


def extreme(*, largest: bool) -> Code:
    """`min`, `max`: the first of equals."""

    def method(run: Run, arguments: list[Value]) -> Value:
        expect_count("max" if largest else "min", arguments, 1, 4)
        attribute = named(arguments, "attribute", 2)
        items = items_of(run, arguments)
        best = items[0] if items else Undefined()
        # The first is compared with itself: for a boolean even that is an error.
        for item in items:
            challenger, holder = _sort_key(run, item, attribute), _sort_key(run, best, attribute)
            if less(run, holder, challenger) if largest else less(run, challenger, holder):
                best = item
        return best

    return method


def join(run: Run, arguments: list[Value]) -> Value:
    """`join([d[, attribute]])`: strings, integers and floats only; the result is template text."""
    expect_count("join", arguments, 1, 3)
    delimiter = named(arguments, "d", 1)
    attribute = named(arguments, "attribute", 2)
    between = b"" if isinstance(delimiter, Undefined) else text_of(run, delimiter)
    texts = []
    for item in items_of(run, arguments):
        value = item if isinstance(attribute, Undefined) else attribute_of(run, item, attribute)
        if not isinstance(value, String | Integer | Float):
            raise RunFault("join() can only join arrays of strings or numerics")
        texts.append(value.text())
    run.charge_text(sum([len(text) for text in texts]) + len(between) * len(texts))
    return string(between.join(texts))


def map_attribute(run: Run, arguments: list[Value]) -> Value:
    """`map(attribute=…[, default=…])`."""
    expect_count("map", arguments, 2)
    if not isinstance(arguments[1], KeywordArgument):
        raise NotImplementedFault("map: filter-mapping not implemented")
    attribute = named(arguments, "attribute", 999)
    fallback = named(arguments, "default", 999)
    found = []
    for item in items_of(run, arguments):
        value = Undefined() if isinstance(attribute, Undefined) else attribute_of(run, item, attribute)
        found.append(fallback if isinstance(value, Undefined) else value)
    return Array(found)


def selector(function: str, *, keep: bool) -> Code:
    """`select`, `reject`, `selectattr`, `rejectattr`, which are one: by an attribute's truth, by a test on the item,
    or by a test on an attribute."""

    def method(run: Run, arguments: list[Value]) -> Value:
        expect_count(function, arguments, 2, 4)
        attribute = expect_string(function, arguments[1])
        holds = _condition(run, arguments, attribute)
        return Array([item for item in items_of(run, arguments) if holds(item) is keep])

    return method


def _condition(run: Run, arguments: list[Value], attribute: String) -> Callable[[Value], bool]:
    if len(arguments) == 2:
        return lambda item: attribute_of(run, item, attribute).truth()
    by_attribute = len(arguments) == 4
    name = text_of(run, arguments[-2]).decode("utf-8", "replace")
    check = TESTS.get(name)
    if check is None:
        raise RunFault(f"selectattr: unknown test '{name}'")
    return lambda item: check(run, [attribute_of(run, item, attribute) if by_attribute else item, arguments[-1]])


ARRAY_METHODS: dict[str, Code] = {
    "append": append,
    "default": default,
    "first": first,
    "join": join,
    "last": last,
    "length": length,
    "list": to_list,
    "map": map_attribute,
    "max": extreme(largest=True),
    "min": extreme(largest=False),
    "pop": pop,
    "reject": selector("reject", keep=False),
    "rejectattr": selector("rejectattr", keep=False),
    "reverse": reverse,
    "select": selector("select", keep=True),
    "selectattr": selector("selectattr", keep=True),
    "slice": slice_method,
    "sort": sort,
    "string": as_text_of_all,
    "tojson": tojson,
    "unique": not_implemented("Array unique builtin not implemented"),
}
