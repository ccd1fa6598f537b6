"""Values (`dialect.md` section 4). Shared by reference, so each is an object with an identity of its own.

What a value *is* lives here: truth, type name, and for what holds no other values its text and its use as a key. What
has to look inside arrays and objects is in `walks`, what is done to values in `operators` and `builtins`; which values
were read is kept by `trace`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from scanner.dialect.errors import RunFault
from scanner.dialect.strings import Piece, Pieces, from_request, text_of

if TYPE_CHECKING:
    from scanner.dialect.context import Run, Scope

Key: TypeAlias = "int | float | bool | bytes | tuple[Key, ...] | None"
"""A hashable value as Python's own: equal here exactly when the values are equal (`1`, `1.0` and `true` are)."""


class Value:
    """Anything a template can handle."""

    __slots__ = ()
    TYPE: ClassVar[str] = "Value"

    @property
    def type_name(self) -> str:
        """The type as error messages name it."""
        return self.TYPE

    def truth(self) -> bool:
        """The value as a condition. Raises `RunFault` for what has no truth."""
        raise RunFault(f"{self.type_name} is not a bool value")

    def text(self) -> bytes:
        """The value as a string. Raises `RunFault` for what has no text."""
        raise RunFault(f"{self.type_name} is not a string value")

    def key(self) -> Key:
        """The value as a key of an object. Raises `RunFault` for what is not hashable."""
        raise RunFault(f"Object key of unhashable type: {self.type_name}")


class Integer(Value):
    __slots__ = ("value",)
    TYPE = "Integer"

    def __init__(self, value: int) -> None:
        self.value = value

    def truth(self) -> bool:
        return self.value != 0

    def text(self) -> bytes:
        return b"%d" % self.value

    def key(self) -> Key:
        return self.value


class Float(Value):
    __slots__ = ("value",)
    TYPE = "Float"

    def __init__(self, value: float) -> None:
        self.value = value

    def truth(self) -> bool:
        return self.value != 0

    def text(self) -> bytes:
        if not math.isfinite(self.value):
            sign = "-" if math.copysign(1.0, self.value) < 0 else ""
            return f"{sign}{abs(self.value)}".encode()
        digits = f"{self.value:.6f}".rstrip("0")
        return (digits + "0" if digits.endswith(".") else digits).encode()

    def key(self) -> Key:
        return self.value


class Boolean(Value):
    __slots__ = ("value",)
    TYPE = "Boolean"

    def __init__(self, value: bool) -> None:
        self.value = value

    def truth(self) -> bool:
        return self.value

    def text(self) -> bytes:
        return b"True" if self.value else b"False"

    def key(self) -> Key:
        return self.value


class String(Value):
    """Text in pieces, none of them empty. `size` is its length in bytes."""

    __slots__ = ("parts", "size")
    TYPE = "String"

    def __init__(self, parts: Pieces, size: int) -> None:
        self.parts = parts
        self.size = size

    def truth(self) -> bool:
        return self.size != 0

    def text(self) -> bytes:
        return text_of(self.parts)

    def key(self) -> Key:
        return text_of(self.parts)

    @property
    def is_input(self) -> bool:
        """Whether all of it came from the request."""
        return from_request(self.parts)


class Array(Value):
    __slots__ = ("items",)
    TYPE = "Array"

    def __init__(self, items: list[Value]) -> None:
        self.items = items

    def truth(self) -> bool:
        return bool(self.items)


class Tuple(Array):
    """An immutable array."""

    __slots__ = ()
    TYPE = "Tuple"


class Object(Value):
    """Keys to values, in the order of insertion."""

    __slots__ = ("entries",)
    TYPE = "Object"

    def __init__(self, entries: dict[Key, Value]) -> None:
        self.entries = entries

    def truth(self) -> bool:
        return bool(self.entries)


class Loop(Object):
    """The variable `loop`: an object without methods, its entries made only when somebody looks."""

    __slots__ = ("index", "items", "made")

    def __init__(self, items: list[Value], index: int) -> None:
        self.items = items
        self.index = index
        self.made: dict[Key, Value] | None = None

    @property
    def entries(self) -> dict[Key, Value]:  # type: ignore[override]  # a slot in the parent, made on demand here
        if self.made is None:
            self.made = self._make()
        return self.made

    def _make(self) -> dict[Key, Value]:
        index, length = self.index, len(self.items)
        previous = self.items[index - 1] if index > 0 else Undefined("previtem")
        following = self.items[index + 1] if index + 1 < length else Undefined("nextitem")
        return {
            b"index": Integer(index + 1),
            b"index0": Integer(index),
            b"revindex": Integer(length - index),
            b"revindex0": Integer(length - index - 1),
            b"first": Boolean(index == 0),
            b"last": Boolean(index == length - 1),
            b"length": Integer(length),
            b"previtem": previous,
            b"nextitem": following,
        }


class Null(Value):
    __slots__ = ()
    TYPE = "None"

    def truth(self) -> bool:
        return False

    def text(self) -> bytes:
        return b"None"

    def key(self) -> Key:
        return None


class Undefined(Value):
    """What a name or member that is not there gives; `hint` is that name."""

    __slots__ = ("hint",)
    TYPE = "Undefined"

    def __init__(self, hint: str = "") -> None:
        self.hint = hint

    @property
    def type_name(self) -> str:
        return f"Undefined (hint: '{self.hint}')" if self.hint else "Undefined"

    def truth(self) -> bool:
        return False


class Function(Value):
    """Something to call."""

    __slots__ = ("name",)
    TYPE = "Function"

    def __init__(self, name: str) -> None:
        self.name = name

    def invoke(self, run: Run, scope: Scope, arguments: list[Value]) -> Value:
        """Call it from a place where `scope` holds the variables."""
        raise NotImplementedError


Code: TypeAlias = "Callable[[Run, list[Value]], Value]"
"""A builtin: the run, and the arguments (for a method the operand first). Raises `RunFault`."""


class Builtin(Function):
    """A global function, or a method bound to its operand."""

    __slots__ = ("code", "operand")

    def __init__(self, name: str, code: Code, operand: Value | None = None) -> None:
        super().__init__(name)
        self.code = code
        self.operand = operand

    def invoke(self, run: Run, scope: Scope, arguments: list[Value]) -> Value:
        if self.operand is not None:
            arguments = [self.operand, *arguments]
        return self.code(run, arguments)


class KeywordArgument(Value):
    """`name=value` in a call, on its way to the function."""

    __slots__ = ("name", "value")
    TYPE = "KwArg"

    def __init__(self, name: str, value: Value) -> None:
        self.name = name
        self.value = value


TRUE = Boolean(True)
FALSE = Boolean(False)
NULL = Null()
EMPTY = String((), 0)


def boolean(value: bool) -> Boolean:
    """A Boolean nobody gave to the run, so one object serves for all."""
    return TRUE if value else FALSE


def string(text: bytes, is_input: bool = False) -> String:
    """A String of one piece."""
    return String(((text, is_input),), len(text)) if text else EMPTY


def string_of(pieces: Sequence[Piece]) -> String:
    """A String of these pieces, empty ones left out."""
    kept = tuple([piece for piece in pieces if piece[0]])
    return String(kept, sum([len(piece[0]) for piece in kept]))


def from_key(key: Key) -> Value:
    """The value that stands for a key when an object is walked."""
    if isinstance(key, bytes):
        return string(key)
    if isinstance(key, bool):
        return boolean(key)
    if isinstance(key, int):
        return Integer(key)
    if isinstance(key, float):
        return Float(key)
    if key is None:
        return NULL
    return Tuple([from_key(item) for item in key])


def from_python(data: object, *, mark_input: bool = True) -> Value:
    """JSON-like data as a value of its own.

    `str` becomes UTF-8 (lone surrogates stand for the bytes they escape), a dict an Object, a list an Array, a tuple
    a Tuple; a `Value` is taken as it is, so one value can be bound to several names. `mark_input`: strings count as
    coming from the request. Raises `TypeError` for anything else.
    """
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogateescape")
    if isinstance(data, bytes):
        return String(((data, mark_input),), len(data)) if data else String((), 0)
    if isinstance(data, dict):
        return Object({_key(name): from_python(item, mark_input=mark_input) for name, item in data.items()})
    if isinstance(data, list | tuple):
        items = [from_python(item, mark_input=mark_input) for item in data]
        return Tuple(items) if isinstance(data, tuple) else Array(items)
    if data is None:
        return Null()
    if isinstance(data, bool):
        return Boolean(data)
    if isinstance(data, int):
        return _integer(data)
    if isinstance(data, float):
        return Float(data)
    if isinstance(data, Value):
        return data
    raise TypeError(f"a template variable cannot hold {type(data).__name__}")


def _integer(number: int) -> Value:
    """As llama.cpp's JSON library hands numbers on: 64 bits are taken for signed ones, what needs more is a float."""
    if not -(2**63) <= number < 2**64:
        return Float(float(number))
    return Integer(number if number < 2**63 else number - 2**64)


def _key(name: object) -> Key:
    if isinstance(name, str):
        return name.encode("utf-8", "surrogateescape")
    if name is None or isinstance(name, int | float | bytes):
        return name
    raise TypeError(f"a template variable cannot hold a key of type {type(name).__name__}")
