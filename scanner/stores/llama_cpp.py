"""The cache of llama.cpp (`llama-server -hf ORG/NAME:QUANTIZATION`).

Layout, as its source has it (https://github.com/ggml-org/llama.cpp/blob/master/common/hf-cache.cpp, and before March
2026 `common/download.cpp` and `common/arg.cpp`; where it is: the description of
https://github.com/ggml-org/llama.cpp/pull/7826):

- Older builds keep all files in one folder, called `ORG_NAME_FILE` with every slash of a file's path made `_`. Beside
  them stand `manifest=ORG=NAME=TAG.json`, with the names of the files that a tag means (`ggufFile.rfilename`,
  `mmprojFile.rfilename`), and for files of still older builds `FILE.json` with the `url` it came from.
- Newer builds use the layout of huggingface_hub's cache, in the same folder as that, or in `$LLAMA_CACHE`.
"""

# `os.path` throughout: its questions never raise, whatever the file system says.
# ruff: noqa: PTH118

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from scanner.results import ModelName, PassedOver
from scanner.stores.huggingface import Place, entries_of, hub
from scanner.stores.places import RecordError, among, first_set, read_object, readable
from scanner.stores.store import Entry, Found, NotFound

SLUG: Final = "llama.cpp"

_MANIFEST: Final = re.compile(r"manifest=([^=/]+)=([^=/]+)=([^=/]+)\.json")
_SUFFIX: Final = ".gguf"
_SPLIT: Final = re.compile(r"-[0-9]{5}-of-[0-9]{5}$")
_TAG: Final = re.compile(r"[-.]([A-Za-z0-9_]+)$")
_MAIN_FILE, _PROJECTOR_FILE = "ggufFile", "mmprojFile"
_FOLDERS: Final = (".cache", "Caches")


class LlamaCpp:
    """The cache of llama.cpp."""

    slug = SLUG

    def found(self, environ: Mapping[str, str], home: Path) -> Found | NotFound:
        """`$LLAMA_CACHE`; without it the folder of older builds, or else the one that newer builds share with
        huggingface_hub."""
        given = first_set(environ, "LLAMA_CACHE")
        if given:
            return among((given,))
        cache = first_set(environ, "XDG_CACHE_HOME") or str(home / ".cache")
        places = (os.path.join(cache, SLUG), str(home / "Library" / "Caches" / SLUG))
        own = among(places)
        return own if isinstance(own, Found) else among((*places, hub(environ, home)))

    def is_root(self, path: str, names: Collection[str]) -> bool:
        """Whether there are manifests of its own, or it is where older builds put it."""
        folder, name = os.path.split(path)
        usual = name == SLUG and os.path.basename(folder) in _FOLDERS  # noqa: PTH119
        return usual or any(_MANIFEST.fullmatch(name) for name in names)

    def entries(self, root: str) -> Iterator[Entry | PassedOver]:
        """The files in the folder itself, and those in huggingface_hub's layout."""
        yield from _own_entries(root)
        yield from entries_of(root, SLUG, _name_of)


def _name_of(place: Place) -> str:
    """What `llama-server` calls a file: repository and quantization, if its name ends with one."""
    stem = _SPLIT.sub("", place.inside.removesuffix(_SUFFIX))
    tag = _TAG.search(stem) if place.inside.endswith(_SUFFIX) else None
    return place.name if tag is None or place.at else f"{place.repository}:{tag[1].upper()}"


@dataclass(slots=True)
class _Manifests:
    """What the manifests of a cache say: the names of files as they stand in the folder, and the repositories."""

    names: dict[str, list[ModelName]] = field(default_factory=dict)
    repositories: set[str] = field(default_factory=set)

    def take(self, path: str, user: str, model: str, tag: str) -> None:
        """Read one manifest. Raises RecordError."""
        repository, tag = readable(f"{user}/{model}"), readable(tag)
        self.repositories.add(repository)
        manifest = read_object(path)
        for key in (_MAIN_FILE, _PROJECTOR_FILE):
            described = manifest.get(key)
            file = described.get("rfilename") if isinstance(described, dict) else None
            if isinstance(file, str):
                name = f"{repository}:{tag}" if key == _MAIN_FILE else f"{repository}/{_valid(file)}"
                self.names.setdefault(_flat(f"{repository}_{file}"), []).append(ModelName(SLUG, name, repository))

    def repository_of(self, file: str) -> str | None:
        """The repository that a file's name begins with, the longest that fits."""
        fitting = [known for known in self.repositories if file.startswith(f"{_flat(known)}_")]
        return max(fitting, key=len, default=None)


def _own_entries(root: str) -> Iterator[Entry | PassedOver]:
    try:
        with os.scandir(root) as listed:
            files = sorted((entry.name for entry in listed if entry.is_file()), key=os.fsencode)
    except OSError:
        return
    manifests = _Manifests()
    for file in files:
        match = _MANIFEST.fullmatch(file)
        if match is None:
            continue
        try:
            manifests.take(os.path.join(root, file), match[1], match[2], match[3])
        except RecordError as error:
            yield PassedOver(readable(os.path.join(root, file)), f"a manifest of llama.cpp's: {error}")
    there = set(files)
    for file in files:
        if file.endswith(_SUFFIX):
            yield Entry(os.path.join(root, file), tuple(_names(root, file, manifests, f"{file}.json" in there)))


def _names(root: str, file: str, manifests: _Manifests, has_metadata: bool) -> list[ModelName]:
    """What a file is called, by what says it best."""
    known = manifests.names.get(file)
    if known:
        return sorted(set(known), key=lambda name: name.name)
    if has_metadata:
        origin = _origin(os.path.join(root, f"{file}.json"))
        if origin is not None:
            return [origin]
    repository = manifests.repository_of(file)
    if repository is not None:
        rest = file.removeprefix(f"{_flat(repository)}_")
        return [ModelName(SLUG, readable(f"{repository}/{rest}"), repository)]
    return [ModelName(SLUG, readable(file))]


def _origin(path: str) -> ModelName | None:
    """The name by the address that a metadata file tells: `…/ORG/NAME/resolve/REVISION/FILE`."""
    try:
        url = read_object(path).get("url")
        parts = [unquote(part) for part in urlsplit(url).path.split("/")] if isinstance(url, str) else []
    except (RecordError, ValueError):
        return None
    if len(parts) < 6 or parts[3] != "resolve":
        return None
    repository = _valid("/".join(parts[1:3]))
    return ModelName(SLUG, f"{repository}/{_valid('/'.join(parts[5:]))}", repository, _valid(parts[4]))


def _valid(text: str) -> str:
    """A text of a JSON file, which may escape half of a surrogate pair: that has no UTF-8."""
    return text.encode("utf-8", errors="replace").decode()


def _flat(name: str) -> str:
    return name.replace("/", "_")


LLAMA_CPP: Final = LlamaCpp()
