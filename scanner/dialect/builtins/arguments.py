"""How builtins take their arguments (`dialect.md` section 7). The operand of a method is argument 0."""

from __future__ import annotations

import math

from scanner.dialect.errors import RunFault
from scanner.dialect.operators import to_int64
from scanner.dialect.values import Boolean, Float, Integer, KeywordArgument, String, Undefined, Value


def expect_count(function: str, arguments: list[Value], least: int, most: int = 999) -> None:
    """Refuse a call with too few or too many arguments."""
    if not least <= len(arguments) <= most:
        message = f"Function '{function}' expected between {least} and {most} arguments, got {len(arguments)}"
        raise RunFault(message)


def expect_string(function: str, value: Value) -> String:
    """The argument, which must be a String."""
    if not isinstance(value, String):
        raise RunFault(f"Function '{function}' expected value of type String, got {value.type_name}")
    return value


def expect_integer(function: str, value: Value) -> Integer:
    """The argument, which must be an Integer."""
    if not isinstance(value, Integer):
        raise RunFault(f"Function '{function}' expected value of type Integer, got {value.type_name}")
    return value


def as_integer(value: Value) -> int:
    """A number or boolean as an integer; what is infinite or no number is 0 here."""
    if isinstance(value, Integer | Boolean):
        return int(value.value)
    if isinstance(value, Float):
        return to_int64(value.value) if math.isfinite(value.value) else 0
    raise RunFault(f"{value.type_name} is not an int value")


def as_float(value: Value) -> float:
    """A number as a double."""
    if isinstance(value, Integer | Float):
        return float(value.value)
    raise RunFault(f"{value.type_name} is not a float value")


def at(arguments: list[Value], position: int) -> Value:
    """The argument at a position as given, keyword or not; Undefined where there is none."""
    return arguments[position] if position < len(arguments) else Undefined()


def named(arguments: list[Value], name: str, position: int) -> Value:
    """The keyword argument of that name, else the positional one at `position`, else Undefined."""
    for argument in arguments:
        if isinstance(argument, KeywordArgument) and argument.name == name:
            return argument.value
    if position < len(arguments) and not isinstance(arguments[position], KeywordArgument):
        return arguments[position]
    return Undefined()
