"""The header reader against `gguf.GGUFReader`, and against files that nobody should have made."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gguf import GGUF_MAGIC, GGUFReader, GGUFValueType
from hypothesis import given, settings
from hypothesis import strategies as st

from scanner.errors import UnreadableError
from scanner.extract import gguf_header
from scanner.extract.gguf_header import ArrayValue, HeaderReader, ValueType
from tests import gguf_builder as build
from tests.gguf_builder import RawGguf, write_gguf
from tests.shared_data import shared_path


class Memory:
    """Bytes as a source, that records how much was asked of it."""

    def __init__(self, data: bytes, size: int | None = None) -> None:
        self._data = data
        self.size = len(data) if size is None else size
        self.largest = 0

    def read(self, offset: int, length: int) -> bytes:
        self.largest = max(self.largest, length)
        return self._data[offset : offset + length]


def everything(_key: str) -> bool:
    return True


def read(data: bytes) -> dict[str, Any]:
    """All keys with plain values; arrays of strings as lists, other arrays as (type, count)."""
    reader = HeaderReader(Memory(data), "made.gguf")
    return {key: plain(reader, field.value) for key, field in reader.read(everything).fields.items()}


def plain(reader: HeaderReader, value: object) -> object:
    if not isinstance(value, ArrayValue):
        return value
    if value.item_type is ValueType.STRING:
        return reader.strings(value, 0, value.count)
    return value.item_type.name, value.count


def read_with_gguf(path: Path) -> dict[str, Any]:
    """The same through the package of llama.cpp."""
    reader = GGUFReader(path)
    return {key: plain_with_gguf(field) for key, field in reader.fields.items() if not key.startswith("GGUF.")}


def plain_with_gguf(field: Any) -> object:
    kind, last = field.types[0], field.types[-1]
    if kind == GGUFValueType.ARRAY:
        if last == GGUFValueType.STRING:
            return [bytes(field.parts[index]) for index in field.data]
        return last.name, len(field.data)
    return bytes(field.parts[-1]) if kind == GGUFValueType.STRING else field.contents()


def failure(data: bytes) -> UnreadableError:
    with pytest.raises(UnreadableError) as caught:
        read(data)
    assert str(caught.value).startswith("made.gguf: at byte ")
    return caught.value


scalars = st.one_of(
    st.tuples(st.just(build.UINT8), st.integers(0, 2**8 - 1)),
    st.tuples(st.just(build.INT16), st.integers(-(2**15), 2**15 - 1)),
    st.tuples(st.just(build.UINT32), st.integers(0, 2**32 - 1)),
    st.tuples(st.just(build.INT64), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.just(build.UINT64), st.integers(0, 2**64 - 1)),
    st.tuples(st.just(build.FLOAT32), st.floats(width=32, allow_nan=False)),
    st.tuples(st.just(build.FLOAT64), st.floats(allow_nan=False)),
    st.tuples(st.just(build.BOOL), st.booleans()),
    st.tuples(st.just(build.STRING), st.binary(max_size=300)),
)
arrays = st.one_of(
    st.tuples(st.just(build.STRING), st.lists(st.binary(max_size=20), min_size=1, max_size=20)),
    st.tuples(st.just(build.INT32), st.lists(st.integers(-5, 5), min_size=1, max_size=20)),
    st.tuples(st.just(build.BOOL), st.lists(st.booleans(), min_size=1, max_size=20)),
)
keys = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


@st.composite
def files(draw: st.DrawFn) -> RawGguf:
    raw = RawGguf(version=draw(st.sampled_from([2, 3])), order=draw(st.sampled_from("<>")))
    for key, (is_array, (kind, value)) in draw(
        st.dictionaries(
            keys,
            st.one_of(st.tuples(st.just(False), scalars), st.tuples(st.just(True), arrays)),
            max_size=8,
        )
    ).items():
        if is_array:
            raw.add_array(key, kind, value)
        else:
            raw.add(key, kind, value)
    return raw


@settings(max_examples=60, deadline=None)
@given(files())
def test_any_key_values_read_as_the_gguf_package_reads_them(
    tmp_path_factory: pytest.TempPathFactory, raw: RawGguf
) -> None:
    path = raw.write(tmp_path_factory.getbasetemp() / "round-trip.gguf")
    assert read(path.read_bytes()) == read_with_gguf(path)


@pytest.mark.parametrize("big_endian", [False, True])
def test_a_file_of_the_gguf_writer_reads_as_the_package_reads_it(tmp_path: Path, big_endian: bool) -> None:
    path = write_gguf(tmp_path / "m.gguf", "{{ x }}", variants={"tool_use": "t"}, big_endian=big_endian)
    assert read(path.read_bytes()) == read_with_gguf(path)
    header = HeaderReader(Memory(path.read_bytes()), "m").read(everything)
    assert (header.version, header.big_endian, header.tensor_count) == (3, big_endian, 1)


@settings(max_examples=150, deadline=None)
@given(files(), st.data())
def test_a_cut_file_is_unreadable_and_nothing_else(raw: RawGguf, data: st.DataObject) -> None:
    whole = raw.to_bytes()
    cut = data.draw(st.integers(0, len(whole) - 1))
    error = failure(whole[:cut])
    assert error.offset is not None and error.offset <= cut
    assert error.expected


@settings(max_examples=300, deadline=None)
@given(files(), st.data())
def test_a_changed_byte_never_raises_anything_else(raw: RawGguf, data: st.DataObject) -> None:
    changed = bytearray(raw.to_bytes())
    place = data.draw(st.integers(0, len(changed) - 1))
    changed[place] = data.draw(st.integers(0, 255))
    source = Memory(bytes(changed))
    try:
        HeaderReader(source, "m").read(everything)
    except UnreadableError as error:
        assert error.expected
    assert source.largest <= len(changed)


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_after_the_magic_never_raise_anything_else(rest: bytes) -> None:
    try:
        read(b"GGUF\x03\0\0\0" + rest)
    except UnreadableError as error:
        assert error.expected


@pytest.mark.parametrize(("version", "order"), [(0, "<"), (1, "<"), (1, ">"), (4, "<"), (0x7FFFFFFF, "<")])
def test_other_versions_are_refused_by_name(version: int, order: str) -> None:
    error = failure(RawGguf(version=version, order=order).to_bytes())
    assert error.offset == 4
    assert error.expected == "GGUF version 2 or 3"
    assert str(error).endswith(f"found version {version}")


def pair(raw: RawGguf) -> RawGguf:
    """The key every malformed file begins with, so that offsets are not trivial: 24 to 37 hold `a` = 7."""
    return raw.add("a", build.UINT8, 7)


def no_magic() -> bytes:
    return RawGguf(magic=b"GGML").to_bytes()


def too_many_pairs() -> bytes:
    return RawGguf(pair_count=2**60).to_bytes()


def missing_pair() -> bytes:
    raw = pair(RawGguf(pair_count=2))
    raw.pairs.append(bytes(11))
    return raw.to_bytes()


def duplicate_key() -> bytes:
    return pair(pair(RawGguf())).to_bytes()


def empty_key() -> bytes:
    return pair(RawGguf()).add("", build.UINT8, 7).to_bytes()


def key_not_utf8() -> bytes:
    return pair(RawGguf()).add(b"ab\xff", build.UINT8, 7).to_bytes()


def absurd_key() -> bytes:
    raw = pair(RawGguf())
    raw.pairs.append(struct.pack("<Q", 2**63) + bytes(20))
    return raw.to_bytes()


def unknown_type() -> bytes:
    return pair(RawGguf()).add_raw("b", 13, b"\0").to_bytes()


def absurd_string() -> bytes:
    return pair(RawGguf()).add_raw("b", build.STRING, struct.pack("<Q", 2**64 - 1) + b"xyz").to_bytes()


def nested_array() -> bytes:
    return pair(RawGguf()).add_raw("b", build.ARRAY, struct.pack("<IQ", build.ARRAY, 1) + bytes(20)).to_bytes()


def unknown_array_type() -> bytes:
    return pair(RawGguf()).add_raw("b", build.ARRAY, struct.pack("<IQ", 99, 1) + bytes(20)).to_bytes()


def absurd_array() -> bytes:
    return pair(RawGguf()).add_array("b", build.INT64, [1], count=2**62).to_bytes()


def absurd_string_array() -> bytes:
    return pair(RawGguf()).add_array("b", build.STRING, ["x"], count=2**40).to_bytes()


def absurd_string_in_array() -> bytes:
    raw = pair(RawGguf())
    return raw.add_raw("b", build.ARRAY, struct.pack("<IQQ", build.STRING, 1, 2**63)).to_bytes()


def absurd_string_amid_array() -> bytes:
    raw = pair(RawGguf())
    return raw.add_raw("b", build.ARRAY, struct.pack("<IQQQ", build.STRING, 2, 2**63, 0)).to_bytes()


@pytest.mark.parametrize(
    ("make", "offset", "expected"),
    [
        (no_magic, 0, "the GGUF magic"),
        (too_many_pairs, 16, "at most 0 key-values"),
        (missing_pair, 16, "at most 1 key-values"),
        (duplicate_key, 38, "a key that did not occur before"),
        (empty_key, 38, "a key"),
        (key_not_utf8, 48, "a key in UTF-8"),
        (absurd_key, 38, "a key of at most 20 bytes"),
        (unknown_type, 47, "a type of value (0 to 12)"),
        (absurd_string, 51, "a string of at most 3 bytes"),
        (nested_array, 51, "an array of scalars or strings"),
        (unknown_array_type, 51, "a type of array elements (0 to 12)"),
        (absurd_array, 55, "an array of at most 1 elements"),
        (absurd_string_array, 55, "an array of at most 1 elements"),
        (absurd_string_in_array, 63, "an array's string of at most 0 bytes"),
        (absurd_string_amid_array, 63, "an array's string of at most 8 bytes"),
    ],
)
def test_malformed_files_are_refused_at_the_byte_that_is_wrong(
    make: Callable[[], bytes], offset: int, expected: str
) -> None:
    error = failure(make())
    assert (error.offset, error.expected) == (offset, expected)


def test_a_file_that_becomes_shorter_while_it_is_read_is_unreadable() -> None:
    whole = RawGguf().add("a", build.STRING, "x" * 40).to_bytes()
    for cut in range(len(whole)):
        with pytest.raises(UnreadableError):
            HeaderReader(Memory(whole[:cut], size=len(whole)), "m").read(everything)
    words = RawGguf().add_array("a", build.STRING, ["x"] * 3).to_bytes()
    with pytest.raises(UnreadableError):
        HeaderReader(Memory(words[:-15], size=len(words)), "m").read(everything)


@pytest.mark.parametrize(
    ("limit", "value", "raw"),
    [
        ("MAX_KEYS", 1, RawGguf().add("a", build.BOOL, True).add("b", build.BOOL, True)),
        ("MAX_KEY_BYTES", 3, RawGguf().add("long", build.BOOL, True)),
        ("MAX_VALUE_BYTES", 3, RawGguf().add("a", build.STRING, "long")),
        ("MAX_KEPT_BYTES", 7, RawGguf().add("a", build.STRING, "long").add("b", build.STRING, "er")),
        ("MAX_STRINGS", 3, RawGguf().add_array("a", build.STRING, ["x"] * 2).add_array("b", build.STRING, ["x"] * 2)),
        ("MAX_HEADER_BYTES", 50, RawGguf().add("a", build.STRING, "x" * 40)),
        ("MAX_HEADER_BYTES", 64, RawGguf().add_array("a", build.STRING, ["x"] * 40).add("b", build.BOOL, True)),
    ],
)
def test_limits_are_named_as_such(monkeypatch: pytest.MonkeyPatch, limit: str, value: int, raw: RawGguf) -> None:
    read(raw.to_bytes())
    monkeypatch.setattr(gguf_header, limit, value)
    assert ": limit: " in str(failure(raw.to_bytes()))


def test_strings_are_found_by_their_index_over_many_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gguf_header, "_CHUNK_BYTES", 64)
    words = [f"{index:x}" * (index % 9) for index in range(500)]
    data = RawGguf().add_array("a", build.STRING, words).add("b", build.UINT8, 9).to_bytes()
    reader = HeaderReader(Memory(data), "m")
    fields = reader.read(everything).fields
    array = fields["a"].value
    assert isinstance(array, ArrayValue)
    assert fields["b"].value == 9
    for index in (0, 1, 77, 250, 498, 499):
        assert reader.strings(array, index, index + 1) == [words[index].encode()]
    assert reader.strings(array, 490, 10_000) == [word.encode() for word in words[490:]]
    assert reader.strings(array, 500, 501) == []


def test_strings_longer_than_a_chunk_are_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gguf_header, "_CHUNK_BYTES", 64)
    words = ["x" * 1000, "", "y" * 63, "z" * 64, "w" * 65]
    data = RawGguf().add_array("a", build.STRING, words).add("b", build.STRING, "v" * 999).to_bytes()
    assert read(data) == {"a": [word.encode() for word in words], "b": b"v" * 999}


def test_values_that_nobody_wants_are_not_kept() -> None:
    data = RawGguf().add("a", build.STRING, "x").add_array("b", build.INT8, [1]).add("c", build.BOOL, True).to_bytes()
    assert HeaderReader(Memory(data), "m").read(lambda _key: False).fields == {}
    assert list(HeaderReader(Memory(data), "m").read(lambda key: key == "c").fields) == ["c"]


def test_the_tensor_data_is_never_read(tmp_path: Path) -> None:
    data = write_gguf(tmp_path / "m.gguf", "{{ x }}").read_bytes()
    end = data.index(b"token_embd.weight") - 8
    with pytest.raises(AssertionError):
        HeaderReader(Bounded(data, end - 1), "m").read(everything)
    assert "tokenizer.chat_template" in HeaderReader(Bounded(data, end), "m").read(everything).fields


class Bounded(Memory):
    """A source of great size that has nothing to give beyond one place."""

    def __init__(self, data: bytes, end: int) -> None:
        super().__init__(data, size=2**40)
        self._end = end

    def read(self, offset: int, length: int) -> bytes:
        data = super().read(offset, length)[: max(self._end - offset, 0)]
        assert data, "nothing may be read here"
        return data


def test_types_and_magic_are_those_of_the_gguf_package() -> None:
    assert {kind.name: int(kind) for kind in ValueType} == {kind.name: int(kind) for kind in GGUFValueType}
    assert int.from_bytes(gguf_header.MAGIC, "little") == GGUF_MAGIC


@pytest.mark.parametrize("name", ["ggml-vocab-llama-spm.gguf", "ggml-vocab-phi-3.gguf"])
def test_real_vocabularies_read_as_the_gguf_package_reads_them(name: str) -> None:
    path = shared_path("corpus", "gguf", name)
    assert read(path.read_bytes()) == read_with_gguf(path)
