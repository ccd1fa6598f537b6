"""Split GGUF: the files of one model, by their names, are one model.

llama.cpp splits a model into `NAME-00001-of-00003.gguf` and so on, and finds the others from the first by these names
alone (`llama_split_path` and `llama_split_prefix` in https://github.com/ggml-org/llama.cpp/blob/master/src/llama.cpp;
the convention: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md#gguf-naming-convention). Numbers begin at 1
and have five digits. The first shard holds all metadata, and so the template. Whether the files are what their names
say is not looked at here: the extractor holds it against their metadata.
"""

# `os.path` and `os.scandir`: paths are kept as they were given, as in `discover`.
# ruff: noqa: PTH116, PTH118, PTH119, PTH208

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

from scanner.results import ModelFile, ModelName, PassedOver, SourceKind

Found = ModelFile | PassedOver

_NAME: Final = re.compile(r"(?P<prefix>.*)-(?P<number>[0-9]{5})-of-(?P<count>[0-9]{5})\.gguf", re.DOTALL)
_SHOWN: Final = 4
"""Numbers of shards that a text lists."""


@dataclass(frozen=True, slots=True)
class Shard:
    """What the name of a shard says: the model's name, which shard it is (the first is 1), and of how many."""

    prefix: str
    number: int
    count: int

    @property
    def is_extra(self) -> bool:
        """Whether a model of so many shards has no such one."""
        return not 1 <= self.number <= self.count


def shard_of(name: str) -> Shard | None:
    """What a file's name says of it as a shard; None where it is none.

    The only shard of one is none either: llama.cpp loads it as any other file.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    shard = Shard(match["prefix"], int(match["number"]), int(match["count"]))
    return None if shard.count == 0 or (shard.number, shard.count) == (1, 1) else shard


def shards_of(names: Iterable[str]) -> tuple[Shard, ...]:
    """The shards among files of these names."""
    return tuple(shard for shard in map(shard_of, names) if shard is not None)


def missing_shards(shards: Sequence[Shard]) -> str | None:
    """Which shards of a model are missing, in words; None: none."""
    count = shards[0].count
    there = {shard.number for shard in shards if not shard.is_extra}
    missing = count - len(there)
    if missing == 0:
        return None
    shown = [f"{number:05d}" for number in islice((n for n in range(1, count + 1) if n not in there), _SHOWN)]
    more = f" and {missing - _SHOWN:,} more" if missing > _SHOWN else ""
    verb = "is" if missing == 1 else "are"
    return f"{missing:,} of {count:,} shards {verb} missing: {', '.join(shown)}{more}"


def extra_shards(shards: Sequence[Shard]) -> str | None:
    """Which shards a model of so many cannot have, in words; None: none."""
    extra = sorted(shard.number for shard in shards if shard.is_extra)
    if not extra:
        return None
    shown = ", ".join(f"{number:05d}" for number in extra[:_SHOWN])
    more = f" and {len(extra) - _SHOWN:,} more" if len(extra) > _SHOWN else ""
    return f"a shard {shown}{more} of {shards[0].count:,} is there, which llama.cpp does not look at"


def join(found: Iterable[Found]) -> Iterator[Found]:
    """The stream of `discover` with every split model as one model file, where the first of its shards came up.

    Its path is that of the first shard that is there, its size the sum of all, and its fingerprint changes with any of
    them. The shards are those in the folder, whichever of them the stream brings: `capscan scan *.gguf` gives each, a
    cache's second revision only what is new in it. What is remembered: one key for each split model.
    """
    folders = _Folders()
    seen: set[tuple[str, str, int]] = set()
    for item in found:
        if isinstance(item, PassedOver) or item.kind is not SourceKind.GGUF:
            yield item
            continue
        folder, name = os.path.split(item.path)
        shard = shard_of(name)
        if shard is None:
            yield item
        elif (folder, shard.prefix, shard.count) not in seen:
            seen.add((folder, shard.prefix, shard.count))
            yield _whole(item, folder, folders.files_of(folder, shard) or (name,))


def _whole(item: ModelFile, folder: str, names: Sequence[str]) -> ModelFile:
    """The model of these shards, in the order of their numbers; `item` is one of them."""
    known = dict(_statuses(folder, names))
    if not known:
        return replace(item, shards=tuple(names))
    contents, places = hashlib.sha256(), hashlib.sha256()
    for name, status in known.items():
        contents.update(f"{name}\0{status.st_size}\0{status.st_mtime_ns}\n".encode(errors="replace"))
        places.update(f"{status.st_ino}\n".encode())
    size = sum(status.st_size for status in known.values())
    first = next((name for name in known if not _is_extra(name)), next(iter(known)))
    return replace(
        item,
        path=os.path.join(folder, first),
        size=size,
        mtime_ns=max(status.st_mtime_ns for status in known.values()),
        # As of a single file: what a copy changes stands last, by itself.
        fingerprint=f"{size}:{contents.hexdigest()}:{places.hexdigest()}",
        shards=tuple(known),
        names=tuple(_renamed(name, os.path.basename(item.path), first) for name in item.names),
    )


def _renamed(name: ModelName, old: str, new: str) -> ModelName:
    """What a store calls the first shard, where it was another that came up."""
    return replace(name, name=name.name.removesuffix(old) + new) if name.name.endswith(old) else name


def _is_extra(name: str) -> bool:
    shard = shard_of(name)
    return shard is None or shard.is_extra


def _statuses(folder: str, names: Iterable[str]) -> Iterator[tuple[str, os.stat_result]]:
    """The files of these names that are there; a link that leads nowhere is a shard that is missing."""
    for name in names:
        try:
            status = os.stat(os.path.join(folder, name))
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode):
            yield name, status


@dataclass(slots=True)
class _Folders:
    """The shards in the folder that was asked for last: split models that stand in one come one after another."""

    _folder: str | None = None
    _names: Mapping[tuple[str, int], Sequence[str]] = field(default_factory=dict)

    def files_of(self, folder: str, shard: Shard) -> Sequence[str]:
        """The names of the shards of the same model, by their numbers; empty where the folder cannot be listed."""
        if folder != self._folder:
            self._folder, self._names = folder, _shards_in(folder)
        return self._names.get((shard.prefix, shard.count), ())


def _shards_in(folder: str) -> Mapping[tuple[str, int], Sequence[str]]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return {}
    models: dict[tuple[str, int], list[str]] = {}
    for name in names:
        shard = shard_of(name)
        if shard is not None:
            models.setdefault((shard.prefix, shard.count), []).append(name)
    return models
