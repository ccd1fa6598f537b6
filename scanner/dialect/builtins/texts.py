"""Methods of String."""

from __future__ import annotations

import re
from collections.abc import Callable

from scanner.dialect import strings
from scanner.dialect.builtins.arguments import (
    as_float,
    as_integer,
    expect_count,
    expect_string,
    named,
)
from scanner.dialect.builtins.common import default, not_implemented, slice_method
from scanner.dialect.builtins.json import tojson
from scanner.dialect.context import Run
from scanner.dialect.errors import NotImplementedFault, RunFault
from scanner.dialect.strings import Pieces
from scanner.dialect.values import (
    Array,
    Code,
    Float,
    Integer,
    String,
    Undefined,
    Value,
    boolean,
    string,
    string_of,
)
from scanner.dialect.walks import text_of

INT32 = range(-(2**31), 2**31)
FLOAT_PREFIX = re.compile(
    rb"[ \t\n\v\f\r]*([+-]?(?:0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)(?:[pP][+-]?[0-9]+)?"
    rb"|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|(?i:inf(?:inity)?|nan)))"
)
LONGEST_NUMBER = 512
"""Digits looked at; a number that long is out of range whatever follows, unless it is all zeros."""
DIGITS = b"0123456789abcdefghijklmnopqrstuvwxyz"


def operand(run: Run, arguments: list[Value]) -> String:
    """Argument 0, which the method table has found to be a String."""
    value = arguments[0]
    assert isinstance(value, String)  # noqa: S101 - holds by the table; for the type checker
    run.charge_text(value.size)
    return value


def by_piece(change: Callable[[Pieces], Pieces]) -> Code:
    """A method that changes each piece on its own."""

    def method(run: Run, arguments: list[Value]) -> Value:
        return string_of(change(operand(run, arguments).parts))

    return method


def title(run: Run, arguments: list[Value]) -> Value:
    """`title`"""
    text = operand(run, arguments)
    run.charge_bytewise(text.size)
    return string_of(strings.title(text.parts))


def stripper(*, left: bool, right: bool) -> Code:
    """`strip`, `lstrip`, `rstrip`: white space, or the bytes of `chars`."""

    def method(run: Run, arguments: list[Value]) -> Value:
        text = operand(run, arguments)
        given = named(arguments, "chars", 1)
        characters = strings.WHITE_SPACE if isinstance(given, Undefined) else text_of(run, given)
        return string_of(strings.strip(text.parts, left=left, right=right, characters=characters))

    return method


def length(run: Run, arguments: list[Value]) -> Value:
    """`length`, in bytes."""
    return Integer(operand(run, arguments).size)


def startswith(run: Run, arguments: list[Value]) -> Value:
    """`startswith(text)`"""
    expect_count("startswith", arguments, 2)
    prefix = text_of(run, expect_string("startswith", arguments[1]))
    return boolean(operand(run, arguments).text().startswith(prefix))


def endswith(run: Run, arguments: list[Value]) -> Value:
    """`endswith(text)`"""
    expect_count("endswith", arguments, 2)
    suffix = text_of(run, expect_string("endswith", arguments[1]))
    return boolean(operand(run, arguments).text().endswith(suffix))


def splitter(*, from_right: bool) -> Code:
    """`split`, `rsplit`: at a separator (a space), at most so many times."""

    def method(run: Run, arguments: list[Value]) -> Value:
        expect_count("rsplit" if from_right else "split", arguments, 1, 3)
        text = operand(run, arguments)
        separator = text_of(run, arguments[1]) if len(arguments) > 1 else b" "
        if not separator:
            raise RunFault("empty separator")
        limit = as_integer(arguments[2]) if len(arguments) > 2 else -1
        whole = text.text()
        run.charge_items(whole.count(separator) + 1)
        found = whole.rsplit(separator, limit) if from_right else whole.split(separator, limit)
        return Array([string(piece, text.is_input) for piece in found])

    return method


def replace(run: Run, arguments: list[Value]) -> Value:
    """`replace(old, new)`, everywhere."""
    expect_count("replace", arguments, 3)
    old = text_of(run, expect_string("replace", arguments[1]))
    new = text_of(run, expect_string("replace", arguments[2]))
    if len(arguments) > 3 and as_integer(arguments[3]) > 0:
        raise NotImplementedFault("String replace with count argument not implemented")
    text = operand(run, arguments)
    whole = text.text()
    run.charge_text(len(whole) + whole.count(old) * len(new))
    return string(whole.replace(old, new), text.is_input)


def format_text(run: Run, arguments: list[Value]) -> Value:
    """`format(…)`: each `{}` takes the next argument."""
    pieces = operand(run, arguments).text().split(b"{")
    run.charge_items(len(pieces))
    out = [pieces[0]]
    for position, piece in enumerate(pieces[1:], start=1):
        if not piece.startswith(b"}"):
            raise NotImplementedFault("format() only supports simple '{}' placeholders")
        if position >= len(arguments):
            message = f"Function 'format' expected at least {position + 1} arguments, got {len(arguments)}"
            raise RunFault(message)
        out += [text_of(run, arguments[position]), piece[1:]]
    run.charge_text(sum([len(piece) for piece in out]))
    return string(b"".join(out))


def to_integer(run: Run, arguments: list[Value]) -> Value:
    """`int(default=0, base=10)`: the number that the text starts with, if it fits 32 bits."""
    text = operand(run, arguments).text()
    base = named(arguments, "base", 2)
    number = _integer_prefix(text, 10 if isinstance(base, Undefined) else as_integer(base))
    if number is not None and number in INT32:
        return Integer(number)
    fallback = named(arguments, "default", 1)
    return Integer(0 if isinstance(fallback, Undefined) else as_integer(fallback))


def _integer_prefix(text: bytes, base: int) -> int | None:
    """The number at the start of the text, as C's `strtol` reads it; None where there is none."""
    if base != 0 and not 2 <= base <= 36:
        raise RunFault("int() base must be 0 or between 2 and 36")
    rest = text.lstrip(strings.WHITE_SPACE).lower()
    negative = rest.startswith(b"-")
    rest = rest[1:] if rest[:1] in (b"+", b"-") else rest
    if base in (0, 16) and rest.startswith(b"0x") and rest[2:3] and rest[2:3] in b"0123456789abcdef":
        base, rest = 16, rest[2:]
    elif base == 0:
        base = 8 if rest.startswith(b"0") else 10
    allowed = DIGITS[:base]
    end = 0
    while end < min(len(rest), LONGEST_NUMBER) and rest[end] in allowed:
        end += 1
    if end == 0:
        return None
    digits = rest[:end].lstrip(b"0") or b"0"
    number = int(digits, base) if len(digits) <= 64 else INT32.stop
    return -number if negative else number


def to_float(run: Run, arguments: list[Value]) -> Value:
    """`float(default=0.0)`: the number that the text starts with."""
    found = FLOAT_PREFIX.match(operand(run, arguments).text())
    number = _float_prefix(found[1]) if found else None
    if number is not None:
        return Float(number)
    fallback = named(arguments, "default", 1)
    return Float(0.0 if isinstance(fallback, Undefined) else as_float(fallback))


def _float_prefix(text: bytes) -> float | None:
    """The number as C's `strtod` reads it; None where it is out of range."""
    word = text.decode("ascii").lower()
    if "n" in word:
        return float(word)
    number = float.fromhex(word) if "0x" in word else float(word)
    overflows = number in (float("inf"), float("-inf"))
    underflows = number == 0 and any(digit in "123456789" for digit in word.split("e")[0])
    return None if overflows or underflows else number


def indent(run: Run, arguments: list[Value]) -> Value:
    """`indent(width=4, first=false, blank=false)`; the width may be the text to indent with."""
    expect_count("indent", arguments, 1, 4)
    text = operand(run, arguments)
    width = named(arguments, "width", 1)
    first, blank = named(arguments, "first", 2).truth(), named(arguments, "blank", 3).truth()
    pad = _padding(run, width)
    lines = text.text().split(b"\n") if text.size else []
    run.charge_items(len(lines))
    run.charge_text(text.size + len(lines) * len(pad))
    out = bytearray()
    for line in lines:
        if not out:
            out += pad if first else b""
        else:
            out += b"\n" + (pad if line or blank else b"")
        out += line
    return string(bytes(out), text.is_input)


def _padding(run: Run, width: Value) -> bytes:
    if isinstance(width, String):
        return width.text()
    count = width.value if isinstance(width, Integer) else 4
    if count < 0:
        raise RunFault("basic_string::_M_replace_aux")
    run.charge_text(count)
    return b" " * count


def copy(run: Run, arguments: list[Value]) -> Value:
    """`string`, `safe`: a new value with the same text."""
    text = operand(run, arguments)
    return String(text.parts, text.size)


STRING_METHODS: dict[str, Code] = {
    "capitalize": by_piece(strings.capitalize),
    "default": default,
    "endswith": endswith,
    "float": to_float,
    "format": format_text,
    "indent": indent,
    "int": to_integer,
    "join": not_implemented("String join builtin not implemented"),
    "length": length,
    "lower": by_piece(strings.lower),
    "lstrip": stripper(left=True, right=False),
    "replace": replace,
    "rsplit": splitter(from_right=True),
    "rstrip": stripper(left=False, right=True),
    "safe": copy,
    "slice": slice_method,
    "split": splitter(from_right=False),
    "startswith": startswith,
    "string": copy,
    "strip": stripper(left=True, right=True),
    "title": title,
    "tojson": tojson,
    "upper": by_piece(strings.upper),
}
