"""Methods of Object, None and Undefined."""

from __future__ import annotations

from scanner.dialect.builtins.arguments import expect_count, named
from scanner.dialect.builtins.common import (
    as_text,
    as_text_of_all,
    default,
    empty_array,
    empty_string,
    not_implemented,
    undefined,
    zero,
)
from scanner.dialect.builtins.json import tojson
from scanner.dialect.builtins.ordering import in_order
from scanner.dialect.context import Run
from scanner.dialect.errors import RunFault
from scanner.dialect.values import Array, Code, Integer, Key, Null, Object, String, Tuple, Value, from_key
from scanner.dialect.walks import key_of


def entries_of(run: Run, arguments: list[Value]) -> dict[Key, Value]:
    """What argument 0 holds, which the method table has found to be an Object."""
    value = arguments[0]
    assert isinstance(value, Object)  # noqa: S101 - holds by the table; for the type checker
    run.charge(len(value.entries))
    return value.entries


def get(run: Run, arguments: list[Value]) -> Value:
    """`get(key[, default])`: the default is None."""
    expect_count("get", arguments, 2, 3)
    if not isinstance(arguments[1], String):
        raise RunFault("get: second argument must be a string (key)")
    fallback = arguments[2] if len(arguments) > 2 else Null()
    return entries_of(run, arguments).get(key_of(run, arguments[1]), fallback)


def keys(run: Run, arguments: list[Value]) -> Value:
    """`keys`"""
    return Array([from_key(key) for key in entries_of(run, arguments)])


def values(run: Run, arguments: list[Value]) -> Value:
    """`values`"""
    return Array(list(entries_of(run, arguments).values()))


def items(run: Run, arguments: list[Value]) -> Value:
    """`items`: key and value in tuples."""
    run.charge(4 * len(entries_of(run, arguments)))
    return Array([Tuple([from_key(key), value]) for key, value in entries_of(run, arguments).items()])


def length(run: Run, arguments: list[Value]) -> Value:
    """`length`"""
    return Integer(len(entries_of(run, arguments)))


def dictsort(run: Run, arguments: list[Value]) -> Value:
    """`dictsort(case_sensitive, by, reverse)`: a new object in sorted order."""
    by = named(arguments, "by", 2)
    position = 1 if isinstance(by, String) and by.text() == b"value" else 0
    pairs = [(key, (from_key(key), value)) for key, value in entries_of(run, arguments).items()]
    backwards = named(arguments, "reverse", 3).truth()
    ordered = in_order(run, pairs, lambda pair: pair[1][position], reverse=backwards)
    return Object({key: value for key, (_, value) in ordered})


OBJECT_METHODS: dict[str, Code] = {
    "dictsort": dictsort,
    "get": get,
    "items": items,
    "join": not_implemented("object join not implemented"),
    "keys": keys,
    "length": length,
    "string": as_text_of_all,
    "tojson": tojson,
    "values": values,
}
NULL_METHODS: dict[str, Code] = {
    "default": default,
    "safe": as_text,
    "string": as_text,
    "tojson": tojson,
    **dict.fromkeys(("items", "map", "reject", "rejectattr", "select", "selectattr", "unique"), empty_array),
}
UNDEFINED_METHODS: dict[str, Code] = {
    "default": default,
    **dict.fromkeys(
        ("capitalize", "join", "lower", "replace", "safe", "string", "strip", "title", "truncate", "upper"),
        empty_string,
    ),
    **dict.fromkeys(
        (
            *("items", "list", "map", "reject", "rejectattr", "reverse"),
            *("select", "selectattr", "sort", "unique"),
        ),
        empty_array,
    ),
    **dict.fromkeys(("length", "sum", "wordcount"), zero),
    **dict.fromkeys(("first", "last", "max", "min"), undefined),
}
