"""The global functions (`dialect.md` section 7)."""

from __future__ import annotations

import time

from scanner.dialect.builtins.arguments import as_integer, expect_count, expect_integer, expect_string
from scanner.dialect.builtins.json import tojson
from scanner.dialect.context import Run
from scanner.dialect.errors import RaisedFault, RunFault
from scanner.dialect.values import Array, Code, Integer, Key, KeywordArgument, Object, Value, string
from scanner.dialect.walks import key_of

LONGEST_DATE = 99
"""llama.cpp formats dates into a buffer of a hundred bytes."""


def raise_exception(run: Run, arguments: list[Value]) -> Value:
    """`raise_exception(message)`"""
    expect_count("raise_exception", arguments, 1)
    message = expect_string("raise_exception", arguments[0]).text()
    raise RaisedFault("Jinja Exception: " + message.decode("utf-8", "replace"))


def make_object(run: Run, arguments: list[Value]) -> Value:
    """`namespace(…)`, `dict(…)`: from keyword arguments, an object, or an array of pairs."""
    entries: dict[Key, Value] = {}
    for argument in arguments:
        if isinstance(argument, KeywordArgument):
            entries[argument.name.encode()] = argument.value
        elif isinstance(argument, Object):
            run.charge_items(len(argument.entries))
            entries.update(argument.entries)
        elif isinstance(argument, Array):
            run.charge_items(len(argument.items))
            entries.update([_pair(run, item) for item in argument.items])
        else:
            expected = "kwargs, dict and/or iterable of tuples"
            raise RunFault(f"namespace/dict() arguments must be {expected}, not {argument.type_name}")
    return Object(entries)


def _pair(run: Run, item: Value) -> tuple[Key, Value]:
    if not isinstance(item, Array) or len(item.items) != 2:
        raise RunFault(f"namespace/dict() iterable argument must consist of tuples, not {item.type_name}")
    return key_of(run, item.items[0]), item.items[1]


def make_range(run: Run, arguments: list[Value]) -> Value:
    """`range([start, ]stop[, step])`: an array."""
    expect_count("range", arguments, 1, 3)
    numbers = [expect_integer("range", arguments[0]).value, *[as_integer(argument) for argument in arguments[1:]]]
    if len(numbers) == 3 and numbers[2] == 0:
        raise RunFault("range() step argument must not be zero")
    span = range(*numbers)
    # len() itself fails beyond 64 bits, so the ends are looked at first.
    run.charge_items(len(span) if abs(span.stop - span.start) < 2**62 else 2**62)
    return Array([Integer(number) for number in span])


def strftime_now(run: Run, arguments: list[Value]) -> Value:
    """`strftime_now(format)`: the run's clock in local time."""
    expect_count("strftime_now", arguments, 1)
    # As in C, the format ends at a NUL.
    pattern = expect_string("strftime_now", arguments[0]).text().partition(b"\0")[0]
    text = time.strftime(pattern.decode("utf-8", "surrogateescape"), time.localtime(run.now))
    formatted = text.encode("utf-8", "surrogateescape")
    if not 0 < len(formatted) <= LONGEST_DATE:
        raise RunFault("strftime_now: failed to format time")
    return string(formatted)


FUNCTIONS: dict[str, Code] = {
    "dict": make_object,
    "namespace": make_object,
    "raise_exception": raise_exception,
    "range": make_range,
    "strftime_now": strftime_now,
    "tojson": tojson,
}
