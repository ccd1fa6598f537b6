"""GGUF files for tests: proper ones through the `gguf` package, and raw bytes for everything that package refuses."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy
from gguf import GGUFEndian, GGUFWriter

TOKENS = ("<unk>", "<s>", "</s>", "Hello")

UINT8, INT8, UINT16, INT16, UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY, UINT64, INT64, FLOAT64 = range(13)
_FORMATS = {UINT8: "B", INT8: "b", UINT16: "H", INT16: "h", UINT32: "I", INT32: "i", FLOAT32: "f"} | {
    BOOL: "?",
    UINT64: "Q",
    INT64: "q",
    FLOAT64: "d",
}


def write_gguf(
    path: Path,
    template: str | None = None,
    *,
    variants: Mapping[str, str] | None = None,
    architecture: str = "llama",
    tokens: Sequence[str] = TOKENS,
    strings: Mapping[str, str] | None = None,
    numbers: Mapping[str, int] | None = None,
    big_endian: bool = False,
    with_tensor: bool = True,
) -> Path:
    """Write a small model: `template` is the default, `variants` the named ones (listed as the converter lists them),
    `strings` and `numbers` (uint32) are further keys. BOS is token 1 and added, EOS is token 2 and not added."""
    writer = GGUFWriter(path, architecture, endianess=GGUFEndian.BIG if big_endian else GGUFEndian.LITTLE)
    choices = [{"name": name, "template": text} for name, text in (variants or {}).items()]
    if template is not None and not choices:
        writer.add_chat_template(template)
    elif choices:
        default = [] if template is None else [{"name": "default", "template": template}]
        writer.add_chat_template(default + choices)
    if tokens:
        writer.add_token_list(list(tokens))
        writer.add_bos_token_id(1)
        writer.add_eos_token_id(2)
        writer.add_add_bos_token(True)
        writer.add_add_eos_token(False)
    for key, text in (strings or {}).items():
        writer.add_string(key, text)
    for key, number in (numbers or {}).items():
        writer.add_uint32(key, number)
    if with_tensor:
        writer.add_tensor("token_embd.weight", numpy.zeros((2, 4), dtype=numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_split(folder: Path, stem: str, template: str, *, tensors: int = 3, small_first: bool = False) -> list[Path]:
    """Write a model as GGUFWriter splits it, a tensor to a shard; `small_first`: the first has metadata only. Out: its
    files, in order."""
    writer = GGUFWriter(folder / f"{stem}.gguf", "llama", split_max_tensors=1, small_first_shard=small_first)
    writer.add_type("model")
    writer.add_name(stem)
    writer.add_chat_template(template)
    writer.add_token_list(list(TOKENS))
    for number in range(tensors):
        writer.add_tensor(f"blk.{number}.attn_q.weight", numpy.zeros((2, 4), dtype=numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return sorted(folder.glob(f"{stem}-*-of-*.gguf"))


@dataclass
class RawGguf:
    """Key-values as bytes, one after the other, right or wrong. `pairs` may be changed before `to_bytes`."""

    version: int = 3
    order: str = "<"
    magic: bytes = b"GGUF"
    tensor_count: int = 0
    pair_count: int | None = None
    pairs: list[bytes] = field(default_factory=list)

    def add(self, key: str | bytes, kind: int, value: object) -> Self:
        """A key with a scalar or a string (text or bytes)."""
        self.pairs.append(self.text(key) + self.pack("I", kind) + self.value(kind, value))
        return self

    def add_array(self, key: str | bytes, kind: int, values: Sequence[object], *, count: int | None = None) -> Self:
        """A key with an array; `count` is what it says of its length, if not the truth."""
        head = self.text(key) + self.pack("IIQ", ARRAY, kind, len(values) if count is None else count)
        self.pairs.append(head + b"".join(self.value(kind, value) for value in values))
        return self

    def add_raw(self, key: str | bytes, kind: int, data: bytes) -> Self:
        """A key, the tag of a type, and any bytes."""
        self.pairs.append(self.text(key) + self.pack("I", kind) + data)
        return self

    def to_bytes(self) -> bytes:
        count = len(self.pairs) if self.pair_count is None else self.pair_count
        return self.magic + self.pack("IQQ", self.version, self.tensor_count, count) + b"".join(self.pairs)

    def write(self, path: Path) -> Path:
        path.write_bytes(self.to_bytes())
        return path

    def pack(self, layout: str, *values: object) -> bytes:
        return struct.pack(self.order + layout, *values)

    def text(self, text: str | bytes) -> bytes:
        data = text.encode() if isinstance(text, str) else text
        return self.pack("Q", len(data)) + data

    def value(self, kind: int, value: object) -> bytes:
        if kind == STRING:
            assert isinstance(value, str | bytes)
            return self.text(value)
        return self.pack(_FORMATS[kind], value)
