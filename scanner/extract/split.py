"""Whether the files of a split model are what their names say: `scanner.shards` goes by the names alone.

llama.cpp reads `split.count` of the first file, makes the other names from its own, wants `split.no` of each to be its
place, and `split.tensors.count` of the first to be all their tensors; else it does not load the model
(`llama_model_loader` in https://github.com/ggml-org/llama.cpp/blob/master/src/llama-model-loader.cpp).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from scanner.errors import UnreadableError
from scanner.extract.gguf_header import MAGIC, Header, HeaderReader
from scanner.extract.source import LocalFile
from scanner.results import NOT_LOADED, ModelFile
from scanner.shards import Shard, extra_shards, missing_shards, shard_of

SPLIT_NO: Final = "split.no"
SPLIT_COUNT: Final = "split.count"
SPLIT_TENSORS: Final = "split.tensors.count"
SPLIT_KEYS: Final = frozenset((SPLIT_NO, SPLIT_COUNT, SPLIT_TENSORS))

MAX_SHARDS: Final = 1024
"""Shards of one model that are opened; the largest known models have under a hundred."""

_TEMPLATE: Final = "tokenizer.chat_template"


@dataclass(frozen=True, slots=True)
class _Part:
    """One shard: what its name says, and what its metadata says. `broken`: why that is not known."""

    shard: Shard
    no: int | None = None
    count: int | None = None
    tensors_of_all: int | None = None
    tensors: int = 0
    carries_template: bool = False
    broken: str | None = None

    @property
    def name(self) -> str:
        return f"shard {self.shard.number:05d}"


def is_first(header: Header) -> bool:
    """Whether a file is, by its metadata, the first of several."""
    return (_integer(header, SPLIT_COUNT) or 0) > 1 and not _integer(header, SPLIT_NO)


def split_notes(model_file: ModelFile, header: Header) -> tuple[str, ...]:
    """What is to be said of a split model's files; what keeps llama.cpp from loading it begins with NOT_LOADED.

    In: the model, and the header of the file of its path. Raises nothing for what the other files hold.
    """
    if not model_file.shards:
        return _not_named_so(header) if is_first(header) else ()
    shards = {name: shard for name in model_file.shards if (shard := shard_of(name)) is not None}
    parts = list(_parts(Path(model_file.path), shards, header))
    first = next((part for part in parts if part.shard.number == 1), None)
    alone = first is not None and first.broken is None and (first.count or 0) < 2
    problems = () if alone else tuple(_problems(list(shards.values()), parts, first))
    remarks = _remarks(list(shards.values()), parts, alone=alone)
    return (*(NOT_LOADED + problem for problem in problems), *remarks)


def _not_named_so(header: Header) -> tuple[str, ...]:
    count = _integer(header, SPLIT_COUNT) or 0
    ending = f"-00001-of-{count:05d}.gguf"
    return (f"{NOT_LOADED}it is the first of {count:,} shards, and its name does not end in {ending}",)


def _problems(shards: Sequence[Shard], parts: Sequence[_Part], first: _Part | None) -> Iterator[str]:
    missing = missing_shards(shards)
    if missing is not None:
        yield missing
    if first is not None and first.broken is None and first.count != first.shard.count:
        yield f"{SPLIT_COUNT} of the first shard is {first.count:,}, its name says {first.shard.count:,}"
    own = [part for part in parts if not part.shard.is_extra]
    for part in own:
        if part.broken is not None:
            yield f"{part.name}: {part.broken}"
        elif part.no is None:
            yield f"{part.name} has no {SPLIT_NO}"
        elif part.no != part.shard.number - 1:
            yield f"{part.name} says that it is shard {part.no + 1:05d}"
    total = sum(part.tensors for part in own)
    is_whole = missing is None and len(own) == shards[0].count and all(part.broken is None for part in own)
    if is_whole and first is not None and first.tensors_of_all not in (None, total):
        yield f"{SPLIT_TENSORS} is {first.tensors_of_all:,}, the shards have {total:,}"


def _remarks(shards: Sequence[Shard], parts: Sequence[_Part], *, alone: bool) -> Iterator[str]:
    if alone:
        count = shards[0].count
        yield f"its name says that it is one of {count:,} shards, its metadata does not: llama.cpp loads it alone"
    else:
        extra = extra_shards(shards)
        if extra is not None:
            yield extra
    if len(parts) < len(shards):
        yield f"{len(shards):,} shards, of which {len(parts):,} were opened"
    for part in parts:
        if part.shard.number == 1 or part.broken is not None:
            continue
        if part.carries_template and part.no != 0:
            yield f"{part.name} carries a chat template: llama.cpp reads the first shard's only"
        if part.count not in (None, part.shard.count):
            yield f"{SPLIT_COUNT} of {part.name} is {part.count:,}, its name says {part.shard.count:,}"


def _parts(path: Path, shards: Mapping[str, Shard], header: Header) -> Iterator[_Part]:
    """The first so many shards; of the one at `path` the header is known."""
    for name, shard in list(shards.items())[:MAX_SHARDS]:
        carries = any(key.startswith(_TEMPLATE) for key in header.fields)
        yield _part(shard, header, carries) if name == path.name else _read(path.with_name(name), shard)


def _read(path: Path, shard: Shard) -> _Part:
    carried: list[str] = []

    def wanted(key: str) -> bool:
        if key.startswith(_TEMPLATE):
            carried.append(key)
        return key in SPLIT_KEYS

    try:
        with LocalFile(path) as source:
            if source.read(0, len(MAGIC)) != MAGIC:
                return _Part(shard, broken="not GGUF")
            header = HeaderReader(source, path.name).read(wanted)
    except UnreadableError as error:
        return _Part(shard, broken=str(error).removeprefix(f"{path.name}: "))
    except OSError as error:
        return _Part(shard, broken=f"cannot be read: {error.strerror or error}")
    return _part(shard, header, bool(carried))


def _part(shard: Shard, header: Header, carries_template: bool) -> _Part:
    no, count, total = (_integer(header, key) for key in (SPLIT_NO, SPLIT_COUNT, SPLIT_TENSORS))
    return _Part(shard, no, count, total, header.tensor_count, carries_template)


def _integer(header: Header, key: str) -> int | None:
    field = header.fields.get(key)
    value = None if field is None else field.value
    return value if isinstance(value, int) and not isinstance(value, bool) else None
