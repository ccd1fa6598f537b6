"""The tests: `x is NAME` (`dialect.md` section 7). Argument 0 is what is tested."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from scanner.dialect.builtins.arguments import expect_count, expect_integer, expect_string
from scanner.dialect.builtins.ordering import comparable, less, same
from scanner.dialect.context import Run
from scanner.dialect.errors import LimitFault, NotImplementedFault
from scanner.dialect.operators import contains
from scanner.dialect.values import (
    Array,
    Boolean,
    Float,
    Function,
    Integer,
    Null,
    Object,
    String,
    Undefined,
    Value,
)
from scanner.dialect.walks import text_of

Check: TypeAlias = Callable[[Run, list[Value]], bool]
"""A test: the run and its arguments, what is tested first. Raises `RunFault`."""

SMALL_INTEGERS = range(-5, 257)
"""Integers that `sameas` compares by value."""


def is_a(*types: type[Value]) -> Check:
    """Whether the value is of one of these types."""

    def check(run: Run, arguments: list[Value]) -> bool:
        expect_count("", arguments, 1)
        return isinstance(arguments[0], types)

    return check


def defined(run: Run, arguments: list[Value]) -> bool:
    expect_count("", arguments, 1)
    return not isinstance(arguments[0], Undefined)


def is_boolean(wanted: bool) -> Check:
    """`true`, `false`"""

    def check(run: Run, arguments: list[Value]) -> bool:
        expect_count("", arguments, 1)
        value = arguments[0]
        return isinstance(value, Boolean) and value.value is wanted

    return check


def parity(rest: int) -> Check:
    """`odd`, `even`"""

    def check(run: Run, arguments: list[Value]) -> bool:
        expect_count("", arguments, 1)
        return expect_integer("", arguments[0]).value % 2 == rest

    return check


def divisible(run: Run, arguments: list[Value]) -> bool:
    """`divisibleby`; a divisor of 0 takes the whole llama.cpp process down."""
    expect_count("", arguments, 2)
    number = expect_integer("", arguments[0]).value
    divisor = expect_integer("", arguments[1]).value
    if divisor == 0:
        raise LimitFault("divisibleby 0 stops llama.cpp itself (division by zero)")
    return number % divisor == 0


def lower(run: Run, arguments: list[Value]) -> bool:
    expect_count("", arguments, 1)
    text = text_of(run, expect_string("", arguments[0]))
    return text.lower() == text


def upper(run: Run, arguments: list[Value]) -> bool:
    expect_count("", arguments, 1)
    text = text_of(run, expect_string("", arguments[0]))
    return text.upper() == text


def comparison(holds: Callable[[Run, Value, Value], bool]) -> Check:
    """`eq`, `ne`, `lt`, …: false for values that do not compare."""

    def check(run: Run, arguments: list[Value]) -> bool:
        expect_count("", arguments, 2, 2)
        left, right = arguments
        return comparable(left, right) and holds(run, left, right)

    return check


def is_in(run: Run, arguments: list[Value]) -> bool:
    """`in`"""
    expect_count("", arguments, 2)
    return contains(run, arguments[0], arguments[1])


def same_value(run: Run, arguments: list[Value]) -> bool:
    """`sameas`: the very same value, but for the few that Python keeps one of."""
    expect_count("", arguments, 2)
    left, right = arguments[0], arguments[1]
    if isinstance(left, Null):
        return isinstance(right, Null)
    if isinstance(left, Boolean):
        return isinstance(right, Boolean) and left.value == right.value
    if isinstance(left, Integer) and left.value in SMALL_INTEGERS:
        return isinstance(right, Integer) and left.value == right.value
    return left is right and not isinstance(left, Function)


def is_test(run: Run, arguments: list[Value]) -> bool:
    """`test`: whether there is a test of that name."""
    expect_count("", arguments, 1)
    return expect_string("", arguments[0]).text().decode("utf-8", "replace") in TESTS


def not_implemented(message: str) -> Check:
    """A test that llama.cpp has by name only."""

    def check(run: Run, arguments: list[Value]) -> bool:
        raise NotImplementedFault(message)

    return check


_EQUAL = comparison(same)
_NOT_EQUAL = comparison(lambda run, left, right: not same(run, left, right))
_LESS = comparison(less)
_GREATER = comparison(lambda run, left, right: less(run, right, left))

TESTS: dict[str, Check] = {
    "boolean": is_a(Boolean),
    "callable": is_a(Function),
    "defined": defined,
    "divisibleby": divisible,
    "eq": _EQUAL,
    "equalto": _EQUAL,
    "escaped": not_implemented("escaped test not implemented"),
    "even": parity(0),
    "false": is_boolean(False),
    "filter": not_implemented("filter test not implemented"),
    "float": is_a(Float),
    "ge": comparison(lambda run, left, right: less(run, right, left) or same(run, left, right)),
    "greaterthan": _GREATER,
    "gt": _GREATER,
    "in": is_in,
    "integer": is_a(Integer),
    "iterable": is_a(Object, Array, String, Undefined),
    "lessthan": _LESS,
    "lower": lower,
    "lt": _LESS,
    "mapping": is_a(Object),
    "ne": _NOT_EQUAL,
    "none": is_a(Null),
    "number": is_a(Integer, Float),
    "odd": parity(1),
    "sameas": same_value,
    "sequence": is_a(Object, Array, String, Undefined),
    "string": is_a(String),
    "test": is_test,
    "true": is_boolean(True),
    "undefined": is_a(Undefined),
    "upper": upper,
}
