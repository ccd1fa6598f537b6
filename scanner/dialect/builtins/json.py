"""`tojson` (`dialect.md` section 7)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scanner.dialect.builtins.arguments import expect_count, named
from scanner.dialect.context import Run
from scanner.dialect.errors import NotImplementedFault
from scanner.dialect.strings import json_string
from scanner.dialect.values import (
    Array,
    Boolean,
    Float,
    Integer,
    Object,
    String,
    Value,
    from_key,
    string,
)
from scanner.dialect.walks import check_nesting, text_of


@dataclass(frozen=True, slots=True)
class Style:
    """How JSON is laid out; `indent` None is one line."""

    ensure_ascii: bool
    indent: int | None
    item_separator: bytes
    key_separator: bytes


def tojson(run: Run, arguments: list[Value]) -> Value:
    """`tojson(ensure_ascii=, indent=, separators=, sort_keys=)`: reads everything inside its operand."""
    expect_count("tojson", arguments, 1, 5)
    if named(arguments, "sort_keys", 4).truth():
        raise NotImplementedFault("tojson sort_keys=true not implemented")
    run.trace.use_all(run, arguments[0], run.place)
    out: list[bytes] = []
    Writer(run, _style(run, arguments), out).write(arguments[0], 0)
    run.charge_text(sum([len(piece) for piece in out]))
    return string(b"".join(out))


def _style(run: Run, arguments: list[Value]) -> Style:
    indent = named(arguments, "indent", 2)
    width = indent.value if isinstance(indent, Integer) and indent.value >= 0 else None
    separators = named(arguments, "separators", 3)
    given = [text_of(run, item) for item in separators.items] if isinstance(separators, Array) else []
    return Style(
        ensure_ascii=named(arguments, "ensure_ascii", 1).truth(),
        indent=width,
        item_separator=given[0] if given else b", " if width is None else b",",
        key_separator=given[1] if len(given) > 1 else b": ",
    )


class Writer:
    """Appends the JSON text of values to a list of pieces."""

    def __init__(self, run: Run, style: Style, out: list[bytes]) -> None:
        self.run = run
        self.style = style
        self.out = out

    def write(self, value: Value, depth: int) -> None:
        """Write a value that stands `depth` levels deep."""
        self.run.charge(1)
        if isinstance(value, String):
            self.run.charge_bytewise(value.size)
            self.out.append(self.text(value.text()))
        elif isinstance(value, Boolean):
            self.out.append(b"true" if value.value else b"false")
        elif isinstance(value, Integer):
            self.out.append(value.text())
        elif isinstance(value, Float):
            self.out.append(float_text(value.value))
        elif isinstance(value, Array):
            check_nesting(depth)
            self.container(b"[", b"]", [(b"", item) for item in value.items], depth)
        elif isinstance(value, Object):
            check_nesting(depth)
            entries = [
                (self.text(text_of(self.run, from_key(key))) + self.style.key_separator, item)
                for key, item in value.entries.items()
            ]
            self.container(b"{", b"}", entries, depth)
        else:
            self.out.append(b"null")

    def container(self, opening: bytes, closing: bytes, entries: list[tuple[bytes, Value]], depth: int) -> None:
        self.out.append(opening)
        for index, (label, item) in enumerate(entries):
            if index:
                self.out.append(self.style.item_separator)
            self.new_line(depth + 1)
            self.out.append(label)
            self.write(item, depth + 1)
        if entries:
            self.new_line(depth)
        self.out.append(closing)

    def new_line(self, depth: int) -> None:
        if self.style.indent is not None:
            width = self.style.indent * depth
            self.run.charge_text(width)
            self.out.append(b"\n" + b" " * width)

    def text(self, value: bytes) -> bytes:
        quoted = json_string(value)
        if not self.style.ensure_ascii or quoted.isascii():
            return quoted
        utf16 = quoted.decode("utf-8", "replace").encode("utf-16-be", "surrogatepass")
        units = [int.from_bytes(utf16[at : at + 2], "big") for at in range(0, len(utf16), 2)]
        return b"".join([b"%c" % unit if unit < 0x80 else b"\\u%04x" % unit for unit in units])


def float_text(number: float) -> bytes:
    """A double as a C++ stream prints it: six digits, an exponent where that is shorter."""
    if math.isnan(number):
        return b"-nan" if math.copysign(1.0, number) < 0 else b"nan"
    return b"%g" % number
