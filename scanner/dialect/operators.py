"""Operators, in the order in which llama.cpp checks them (`dialect.md` section 6)."""

from __future__ import annotations

import math

from scanner.dialect.context import Run
from scanner.dialect.errors import RunFault
from scanner.dialect.values import (
    Array,
    Boolean,
    Float,
    Integer,
    Null,
    Object,
    String,
    Undefined,
    Value,
    boolean,
    string,
)
from scanner.dialect.walks import equal, key_of, text_of

INT64_MIN = -(2**63)
PIECES_PER_STEP = 64


def to_int64(number: float) -> int:
    """A double as C++ casts it on x86: what does not fit, and what is no number, becomes the smallest integer."""
    if math.isnan(number) or not -(2.0**63) <= number < 2.0**63:
        return INT64_MIN
    return int(number)


def to_double(number: int | float) -> float:
    """A number as the double that llama.cpp calculates with: an integer that no double holds counts as infinite."""
    double = float(number)
    exact = isinstance(number, float) or double == number
    return double if exact else math.copysign(math.inf, double)


def concatenate(run: Run, left: String, right: String) -> String:
    """`left ~ right`, parts kept apart."""
    size = left.size + right.size
    if size > run.limits.output_bytes:
        run.charge_text(size)
    parts = left.parts + right.parts
    run.charge(len(parts) // PIECES_PER_STEP)
    return String(parts, size)


def as_string(run: Run, value: Value) -> String:
    """A value's text as a String; a String itself as it is."""
    return value if isinstance(value, String) else string(text_of(run, value))


def negate(value: Value) -> Value:
    """Unary `-`."""
    return _signed(value, "-", -1)


def affirm(value: Value) -> Value:
    """Unary `+`."""
    return _signed(value, "+", 1)


def _signed(value: Value, sign: str, factor: int) -> Value:
    if isinstance(value, Integer):
        negated = value.value * factor
        return Integer(negated if negated < 2**63 else INT64_MIN)
    if isinstance(value, Float):
        return Float(value.value * factor)
    raise RunFault(f"Unary {sign} operator requires numeric operand")


def apply(run: Run, operator: str, left: Value, right: Value) -> Value:
    """`left operator right` for all operators but `==`, `!=`, `and`, `or`. Raises `RunFault`."""
    if isinstance(left, Undefined) or isinstance(right, Undefined):
        return _with_undefined(operator, left, right)
    member = operator in ("in", "not in")
    if isinstance(left, Null) and member and not isinstance(right, Null):
        return _membership(operator, contains(run, left, right))
    if isinstance(left, Null) or isinstance(right, Null):
        return _with_null(operator, left, right)
    if isinstance(left, Integer | Float) and isinstance(right, Integer | Float):
        return _numbers(operator, left, right)
    if isinstance(right, Array):
        if isinstance(left, Array):
            return _arrays(run, operator, left, right)
        if member:
            return _membership(operator, _holds(run, right, left))
    if operator in ("~", "+") and (isinstance(left, String) or isinstance(right, String)):
        return concatenate(run, as_string(run, left), as_string(run, right))
    if operator == "*":
        if isinstance(left, String) and isinstance(right, Integer):
            return _repeat(run, left, right)
        if isinstance(left, Integer) and isinstance(right, String):
            return _repeat(run, right, left)
    if member and isinstance(left, String) and isinstance(right, String):
        return _substring(run, operator, left, right)
    if isinstance(right, Object):
        found = key_of(run, left) in right.entries
        if member:
            return _membership(operator, found)
    raise RunFault(f'Unknown operator "{operator}" between {left.TYPE} and {right.TYPE}')


def _with_undefined(operator: str, left: Value, right: Value) -> Value:
    if isinstance(right, Undefined) and operator == "in":
        return boolean(False)
    if isinstance(right, Undefined) and operator == "not in":
        return boolean(True)
    if operator in ("+", "~"):
        if isinstance(left, String):
            return String(left.parts, left.size)
        if isinstance(right, String):
            return String(right.parts, right.size)
    raise RunFault(f"Cannot perform operation {operator} on undefined values")


def _with_null(operator: str, left: Value, right: Value) -> Value:
    if operator in ("+", "~"):
        if isinstance(left, String):
            return String(left.parts, left.size)
        if isinstance(right, String):
            return String(right.parts, right.size)
    raise RunFault("Cannot perform operation on null values")


def _numbers(operator: str, left: Integer | Float, right: Integer | Float) -> Value:
    a, b = to_double(left.value), to_double(right.value)
    if operator in _COMPARISONS:
        return boolean(_COMPARISONS[operator](a, b))
    if operator == "/":
        return Float(_divide(a, b))
    if operator == "+":
        result = a + b
    elif operator == "-":
        result = a - b
    elif operator == "*":
        result = a * b
    elif operator == "%":
        result = -math.nan if b == 0 or math.isinf(a) else math.fmod(a, b)
    else:
        raise RunFault(f'Unknown operator "{operator}" between {left.TYPE} and {right.TYPE}')
    if isinstance(left, Integer) and isinstance(right, Integer):
        return Integer(to_int64(result))
    return Float(result)


_COMPARISONS = {"<": float.__lt__, ">": float.__gt__, "<=": float.__le__, ">=": float.__ge__}


def _divide(a: float, b: float) -> float:
    if b != 0:
        return a / b
    if a == 0 or math.isnan(a):
        return -math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _arrays(run: Run, operator: str, left: Array, right: Array) -> Value:
    if operator != "+":
        raise RunFault(f'Unknown operator "{operator}" between {left.TYPE} and {right.TYPE}')
    run.charge_items(len(left.items) + len(right.items))
    return Array(left.items + right.items)


def _membership(operator: str, found: bool) -> Boolean:
    return boolean(found == (operator == "in"))


def _repeat(run: Run, text: String, times: Integer) -> Value:
    count = max(0, times.value)
    run.charge_text(text.size * count)
    return string(text.text() * count, text.is_input)


def _substring(run: Run, operator: str, left: String, right: String) -> Value:
    return _membership(operator, text_of(run, left) in text_of(run, right))


def contains(run: Run, item: Value, holder: Value) -> bool:
    """The test `in`, which the operator asks too when its left side is None. Raises `RunFault`."""
    if isinstance(holder, Undefined):
        return False
    if isinstance(holder, Array):
        return _holds(run, holder, item)
    if isinstance(holder, String):
        if not isinstance(item, String):
            expected = "'in' test expects args[1] as string when args[0] is string"
            raise RunFault(f"{expected}, got args[1] as {item.type_name}")
        return text_of(run, item) in text_of(run, holder)
    if isinstance(holder, Object):
        return key_of(run, item) in holder.entries
    raise RunFault(f"'in' test expects iterable as first argument, got {holder.type_name}")


def _holds(run: Run, array: Array, item: Value) -> bool:
    run.charge(len(array.items))
    return any(equal(run, item, held) for held in array.items)
