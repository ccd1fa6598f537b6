"""Reads the key-values of a GGUF file, and nothing else of it.

The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Versions 2 and 3 have one layout, in either byte
order; version 1 (32-bit lengths) is refused. Values are kept only where the caller wants them; everything else is
stepped over, arrays without being built. Every length is checked against what is left of the file before anything is
read or allocated for it.

The enumerations repeat those of `gguf.constants` (a test holds them equal): importing the package loads numpy, which
costs more time and memory than reading the largest header does.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from itertools import repeat
from operator import itemgetter, length_hint
from typing import Final

from scanner.errors import UnreadableError
from scanner.extract.source import RangeReader

MAGIC: Final = b"GGUF"
SUPPORTED_VERSIONS: Final = (2, 3)

MAX_KEYS: Final = 65_536
"""Key-values in one file; real ones have fewer than a hundred."""
MAX_KEY_BYTES: Final = 65_535
"""Length of a key; the format's own limit."""
MAX_VALUE_BYTES: Final = 16 * 1024 * 1024
"""Length of one string that is kept."""
MAX_KEPT_BYTES: Final = 32 * 1024 * 1024
"""All keys and kept values of one file together."""
MAX_STRINGS: Final = 16 * 1024 * 1024
"""Strings stepped over in the arrays of one file (1.5 s of work); the largest vocabularies have 5 % of it."""
MAX_HEADER_BYTES: Final = 1024 * 1024 * 1024
"""How far into a file its key-values may reach."""

_CHUNK_BYTES: Final = 256 * 1024
_SMALLEST_PAIR: Final = 8 + 4 + 1


class ValueType(IntEnum):
    """GGUF's type tags."""

    UINT8 = 0
    INT8 = 1
    UINT16 = 2
    INT16 = 3
    UINT32 = 4
    INT32 = 5
    FLOAT32 = 6
    BOOL = 7
    STRING = 8
    ARRAY = 9
    UINT64 = 10
    INT64 = 11
    FLOAT64 = 12


_SCALAR_FORMATS: Final[Mapping[int, str]] = {
    ValueType.UINT8: "B",
    ValueType.INT8: "b",
    ValueType.UINT16: "H",
    ValueType.INT16: "h",
    ValueType.UINT32: "I",
    ValueType.INT32: "i",
    ValueType.FLOAT32: "f",
    ValueType.BOOL: "?",
    ValueType.UINT64: "Q",
    ValueType.INT64: "q",
    ValueType.FLOAT64: "d",
}


@dataclass(frozen=True, slots=True)
class ArrayValue:
    """An array, by its place. `marks` are (index, byte offset) of some of its strings, in order: short cuts."""

    item_type: ValueType
    count: int
    offset: int
    marks: tuple[tuple[int, int], ...] = ()


Scalar = int | float | bool | bytes
"""A number, a truth value, or a string as the bytes that stand in the file."""


@dataclass(frozen=True, slots=True)
class Field:
    """One wanted key-value. `offset` is the byte where the tag of its type stands."""

    type: ValueType
    offset: int
    value: Scalar | ArrayValue


@dataclass(frozen=True, slots=True)
class Header:
    """What stands before the tensors. `fields` has the wanted keys, in the order of the file."""

    version: int
    big_endian: bool
    tensor_count: int
    fields: Mapping[str, Field]


class HeaderReader:
    """Reads one header: `read` once, then `strings` for what its arrays hold.

    Both raise UnreadableError, with the byte offset and what was expected there, for anything that is not as the format
    has it or goes beyond a limit of this module; and OSError where the source does.
    """

    def __init__(self, source: RangeReader, name: str) -> None:
        """`name` stands for the file in messages."""
        self._cursor = _Cursor(source, name)
        self._kept = 0
        self._strings = 0

    def read(self, wanted: Callable[[str], bool]) -> Header:
        """The header with the values of those keys for which `wanted` is true."""
        cursor = self._cursor
        if cursor.take(len(MAGIC), "the GGUF magic") != MAGIC:
            raise cursor.error(0, "the GGUF magic", "something else")
        version = self._version()
        tensor_count = cursor.u64("the number of tensors")
        return Header(version, cursor.big_endian, tensor_count, dict(self._pairs(wanted)))

    def strings(self, array: ArrayValue, start: int, stop: int) -> list[bytes]:
        """The strings `start` to `stop` (excluded, cut at the end) of an array of strings of this header."""
        stop = min(stop, array.count)
        if stop <= start:
            return []
        cursor = self._cursor
        index, cursor.offset = array.marks[bisect_right(array.marks, start, key=itemgetter(0)) - 1]
        cursor.skip_strings(start - index)
        return [self._kept_string("an array's string") for _ in range(start, stop)]

    def wrong_type(self, key: str, field: Field, expected: str) -> UnreadableError:
        """The error for a field of another type than its key has."""
        return self._cursor.error(field.offset, f"{expected} for {key}", describe_type(field))

    def _version(self) -> int:
        cursor = self._cursor
        start = cursor.offset
        version = cursor.u32("the version")
        # A small number in the other byte order has its low half empty; that is how llama.cpp tells the orders apart.
        if version and version & 0xFFFF == 0:
            cursor.use_big_endian()
            version = int.from_bytes(version.to_bytes(4, "little"), "big")
        if version not in SUPPORTED_VERSIONS:
            raise cursor.error(start, "GGUF version 2 or 3", f"version {version}")
        return version

    def _pairs(self, wanted: Callable[[str], bool]) -> Iterator[tuple[str, Field]]:
        cursor = self._cursor
        start = cursor.offset
        count = cursor.u64("the number of key-values")
        if count > cursor.left // _SMALLEST_PAIR:
            raise cursor.error(start, f"at most {cursor.left // _SMALLEST_PAIR} key-values", f"{count}")
        if count > MAX_KEYS:
            raise cursor.limit(start, f"at most {MAX_KEYS} key-values", f"{count}")
        seen: set[str] = set()
        for _ in range(count):
            start = cursor.offset
            key = self._key()
            if key in seen:
                raise cursor.error(start, "a key that did not occur before", f"{key!r} again")
            seen.add(key)
            field = self._field(wanted(key))
            if field is not None:
                yield key, field

    def _key(self) -> str:
        cursor = self._cursor
        start = cursor.offset
        length = cursor.string_length("a key")
        if length == 0:
            raise cursor.error(start, "a key", "an empty one")
        if length > MAX_KEY_BYTES:
            raise cursor.limit(start, f"a key of at most {MAX_KEY_BYTES} bytes", f"{length}")
        self._keep(start, length)
        try:
            return cursor.take(length, "a key").decode("utf-8")
        except UnicodeDecodeError as error:
            raise cursor.error(start + 8 + error.start, "a key in UTF-8", "other bytes") from None

    def _field(self, wanted: bool) -> Field | None:
        cursor = self._cursor
        start = cursor.offset
        kind = self._type(start, "a type of value")
        value = self._value(kind, wanted)
        return None if value is None else Field(kind, start, value)

    def _type(self, start: int, expected: str) -> ValueType:
        number = self._cursor.u32(expected)
        try:
            return ValueType(number)
        except ValueError:
            raise self._cursor.error(start, f"{expected} (0 to {max(ValueType)})", f"{number}") from None

    def _value(self, kind: ValueType, wanted: bool) -> Scalar | ArrayValue | None:
        cursor = self._cursor
        if kind is ValueType.ARRAY:
            array = self._array()
            return array if wanted else None
        if kind is ValueType.STRING:
            if wanted:
                return self._kept_string("a string")
            cursor.skip(cursor.string_length("a string"), "a string")
            return None
        layout = struct.Struct(cursor.order + _SCALAR_FORMATS[kind])
        value: Scalar = layout.unpack(cursor.take(layout.size, f"a value of type {kind.name}"))[0]
        return value if wanted else None

    def _array(self) -> ArrayValue:
        cursor = self._cursor
        start = cursor.offset
        item_type = self._type(start, "a type of array elements")
        if item_type is ValueType.ARRAY:
            raise cursor.error(start, "an array of scalars or strings", "an array of arrays")
        start = cursor.offset
        count = cursor.u64("the length of an array")
        is_text = item_type is ValueType.STRING
        item_size = 8 if is_text else struct.calcsize("<" + _SCALAR_FORMATS[item_type])
        if count > cursor.left // item_size:
            raise cursor.error(start, f"an array of at most {cursor.left // item_size} elements", f"{count}")
        place = cursor.offset
        if not is_text:
            cursor.skip(count * item_size, "an array's numbers")
            return ArrayValue(item_type, count, place)
        self._strings += count
        if self._strings > MAX_STRINGS:
            raise cursor.limit(start, f"at most {MAX_STRINGS} strings in arrays", f"{self._strings}")
        return ArrayValue(item_type, count, place, cursor.skip_strings(count))

    def _kept_string(self, expected: str) -> bytes:
        cursor = self._cursor
        start = cursor.offset
        length = cursor.string_length(expected)
        if length > MAX_VALUE_BYTES:
            raise cursor.limit(start, f"{expected} of at most {MAX_VALUE_BYTES} bytes", f"{length}")
        self._keep(start, length)
        return cursor.take(length, expected)

    def _keep(self, start: int, length: int) -> None:
        self._kept += length
        if self._kept > MAX_KEPT_BYTES:
            raise self._cursor.limit(start, f"at most {MAX_KEPT_BYTES} bytes of keys and values", f"{self._kept}")


def describe_type(field: Field) -> str:
    """A field's type for a person: `UINT32`, `array of STRING`."""
    if isinstance(field.value, ArrayValue):
        return f"array of {field.value.item_type.name}"
    return field.type.name


class _Cursor:
    """A place in a source that moves forward, over buffered chunks; every move is checked against what is left."""

    def __init__(self, source: RangeReader, name: str) -> None:
        self._source = source
        self._name = name
        self._chunk = b""
        self._chunk_start = 0
        self.offset = 0
        self.order = "<"
        self._length = struct.Struct("<Q")

    @property
    def left(self) -> int:
        """Bytes from here to the end of the source."""
        return self._source.size - self.offset

    @property
    def big_endian(self) -> bool:
        return self.order == ">"

    def use_big_endian(self) -> None:
        self.order = ">"
        self._length = struct.Struct(">Q")

    def error(self, offset: int, expected: str, found: str) -> UnreadableError:
        message = f"{self._name}: at byte {offset}: expected {expected}, found {found}"
        return UnreadableError(message, offset=offset, expected=expected)

    def limit(self, offset: int, expected: str, found: str) -> UnreadableError:
        message = f"{self._name}: at byte {offset}: limit: {expected} are read, found {found}"
        return UnreadableError(message, offset=offset, expected=expected)

    def take(self, length: int, expected: str) -> bytes:
        """The next `length` bytes."""
        self._check(length, expected)
        start = self.offset
        self.offset += length
        if length > _CHUNK_BYTES:
            data = self._source.read(start, length)
        else:
            position = self._load(start, length)
            data = self._chunk[position : position + length]
        if len(data) < length:
            raise self.error(start, expected, "the end of the file, which became shorter while it was read")
        return data

    def skip(self, length: int, expected: str) -> None:
        self._check(length, expected)
        self.offset += length

    def u32(self, expected: str) -> int:
        return int(struct.unpack(self.order + "I", self.take(4, expected))[0])

    def u64(self, expected: str) -> int:
        return int(self._length.unpack(self.take(8, expected))[0])

    def string_length(self, expected: str) -> int:
        """The length before a string, known to fit into what is left."""
        start = self.offset
        length = self.u64(f"the length of {expected}")
        if length > self.left:
            raise self.error(start, f"{expected} of at most {self.left} bytes", f"a length of {length}")
        return length

    def skip_strings(self, count: int) -> tuple[tuple[int, int], ...]:
        """Step over `count` strings; returns (index, offset) of the first in each chunk."""
        marks: list[tuple[int, int]] = []
        done = 0
        while done < count:
            marks.append((done, self.offset))
            self._check(8, "the length of an array's string")
            done += self._skip_strings_in_chunk(count - done)
        return tuple(marks)

    def _skip_strings_in_chunk(self, count: int) -> int:
        # This loop runs once for every token and merge of a vocabulary: it does nothing but add. A length that leads
        # out of the chunk ends it, and only then is the place compared with the end of the source.
        position = self._load(self.offset, 8)
        chunk = self._chunk
        unpack = self._length.unpack_from
        length = 0
        steps = repeat(None, count)
        try:
            for _ in steps:
                (length,) = unpack(chunk, position)
                position += length + 8
            done = count
        except (struct.error, OverflowError):
            done = count - length_hint(steps) - 1
        if done == 0:
            raise self.error(self.offset, "the length of an array's string", "the end of the file")
        self.offset = self._chunk_start + position
        if self.left < 0:
            start = self.offset - length - 8
            room = self._source.size - start - 8
            raise self.error(start, f"an array's string of at most {room} bytes", f"a length of {length}")
        return done

    def _check(self, length: int, expected: str) -> None:
        if length > self.left:
            raise self.error(self.offset, expected, f"the end of the file, {length - self.left} bytes too early")
        if self.offset + length > MAX_HEADER_BYTES:
            raise self.limit(self.offset, f"key-values within the first {MAX_HEADER_BYTES} bytes", "more")

    def _load(self, start: int, length: int) -> int:
        """Have `length` bytes from `start` in the chunk, if the source has them; returns where in the chunk."""
        position = start - self._chunk_start
        if position < 0 or position + length > len(self._chunk):
            self._chunk = self._source.read(start, min(_CHUNK_BYTES, self._source.size - start))
            self._chunk_start = start
            position = 0
        return position
