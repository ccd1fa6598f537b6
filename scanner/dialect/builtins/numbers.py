"""Methods of Integer, Float and Boolean."""

from __future__ import annotations

from scanner.dialect.builtins.arguments import expect_count
from scanner.dialect.builtins.common import as_text, default
from scanner.dialect.builtins.json import tojson
from scanner.dialect.context import Run
from scanner.dialect.operators import INT64_MIN, to_int64
from scanner.dialect.values import Boolean, Code, Float, Integer, Value


def absolute(run: Run, arguments: list[Value]) -> Value:
    """`abs`"""
    number = arguments[0]
    if isinstance(number, Integer):
        return Integer(number.value if number.value == INT64_MIN else abs(number.value))
    return Float(abs(_number(number)))


def to_integer(run: Run, arguments: list[Value]) -> Value:
    """`int`: towards zero."""
    number = arguments[0]
    return Integer(number.value if isinstance(number, Integer) else to_int64(_number(number)))


def to_float(run: Run, arguments: list[Value]) -> Value:
    """`float`"""
    return Float(_number(arguments[0]))


def _number(value: Value) -> float:
    return float(value.value) if isinstance(value, Integer | Float | Boolean) else 0.0


def as_json(name: str) -> Code:
    """`safe`, `string`: the JSON text, under a name of its own in errors."""

    def method(run: Run, arguments: list[Value]) -> Value:
        expect_count(name, arguments, 1, 5)
        return tojson(run, arguments)

    return method


NUMBER_METHODS: dict[str, Code] = {
    "abs": absolute,
    "default": default,
    "float": to_float,
    "int": to_integer,
    "safe": as_json("safe"),
    "string": as_json("string"),
    "tojson": tojson,
}
BOOLEAN_METHODS: dict[str, Code] = {
    "default": default,
    "float": to_float,
    "int": to_integer,
    "safe": as_text,
    "string": as_text,
    "tojson": tojson,
}
