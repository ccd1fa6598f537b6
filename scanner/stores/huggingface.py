"""The cache of huggingface_hub, which many tools share.

Layout, as its documentation has it (https://huggingface.co/docs/huggingface_hub/guides/manage-cache, where it is:
https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables): `models--ORG--NAME/` with `refs/`
(files that hold a commit), `snapshots/COMMIT/` (the files, as links into `blobs/`, which may link on to a store that
repositories share) and `blobs/`. Without links, as on Windows, the files stand in `snapshots/` themselves.

A file is called `ORG/NAME/FILE` where the ref `main` points at its revision, as in `hf://` addresses, else
`ORG/NAME@REF/FILE`, or `ORG/NAME@COMMIT/FILE` where no ref does.
"""

# `os.path` throughout: its questions never raise, whatever the file system says.
# ruff: noqa: PTH112, PTH118

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from scanner.results import ModelName, PassedOver
from scanner.stores.places import RecordError, among, first_set, folders_in, read_record, readable, tree
from scanner.stores.store import Entry, Found, NotFound

PREFIXES: Final = {"models--": "", "datasets--": "datasets/", "spaces--": "spaces/"}
"""How the folders of repositories begin, and what stands before their names."""
MAIN: Final = "main"
SHORT: Final = 12
"""How many digits of a commit a name shows."""

_MAX_REF_BYTES: Final = 4096
_COMMIT: Final = re.compile(r"[0-9a-fA-F]{7,64}")


@dataclass(frozen=True, slots=True)
class Place:
    """A file or folder of a snapshot: `inside` is its path there (empty: the whole), `at` names its revision (empty:
    what the ref `main` points at)."""

    repository: str
    at: str
    inside: str

    @property
    def name(self) -> str:
        """What the cache calls it."""
        return "/".join(part for part in (f"{self.repository}{self.at and '@' + self.at}", self.inside) if part)


class HuggingFace:
    """The cache of huggingface_hub."""

    slug = "huggingface"

    def found(self, environ: Mapping[str, str], home: Path) -> Found | NotFound:
        """The first of the variables that is set decides, as for huggingface_hub itself."""
        return among((hub(environ, home),))

    def is_root(self, path: str, names: Collection[str]) -> bool:  # noqa: ARG002 - the interface
        """Whether there are repositories in it."""
        return any(name.startswith(tuple(PREFIXES)) for name in names)

    def entries(self, root: str) -> Iterator[Entry | PassedOver]:
        """Every file and folder of the snapshots; a blob that several link to is one entry with all its names."""
        yield from entries_of(root, self.slug, lambda place: place.name)


def hub(environ: Mapping[str, str], home: Path) -> str:
    """Where huggingface_hub keeps repositories."""
    given = first_set(environ, "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE")
    if given:
        return given
    base = first_set(environ, "HF_HOME")
    cache = first_set(environ, "XDG_CACHE_HOME") or str(home / ".cache")
    return os.path.join(base or os.path.join(cache, "huggingface"), "hub")


def entries_of(root: str, slug: str, name_of: Callable[[Place], str]) -> Iterator[Entry]:
    """The entries of a cache in this layout, for the store `slug`, which calls its files as `name_of` says.

    What is remembered: the names of all files, for two repositories may share a blob.
    """
    known: dict[str, tuple[str, list[ModelName]]] = {}
    for folder in folders_in(root):
        repository = _repository(folder)
        if repository is None:
            continue
        for revision, ways in _revisions(os.path.join(root, folder)):
            snapshot = os.path.join(root, folder, "snapshots", revision)
            for path in (snapshot, *tree(snapshot)):
                inside = "" if path == snapshot else readable(os.path.relpath(path, snapshot)).replace(os.sep, "/")
                known.setdefault(os.path.realpath(path), (path, []))[1].extend(
                    ModelName(slug, name_of(Place(repository, at, inside)), repository, readable(revision))
                    for at in ways
                )
    for path, names in sorted(known.values()):
        yield Entry(path, tuple(sorted(set(names), key=_by_name)))


def _by_name(name: ModelName) -> tuple[bool, str, str]:
    """Sorts names: of the revision that `main` points at first."""
    return "@" in name.name, name.name, name.revision or ""


def _repository(folder: str) -> str | None:
    """The repository whose folder has this name; None where it is none's."""
    for prefix, before in PREFIXES.items():
        if folder.startswith(prefix) and len(folder) > len(prefix):
            return before + readable(folder.removeprefix(prefix)).replace("--", "/")
    return None


def _revisions(repository: str) -> Iterator[tuple[str, list[str]]]:
    """The revisions that are there, and how names tell each: by the refs that point at it (`main`: the empty text),
    else by the commit."""
    refs: dict[str, list[str]] = {}
    for name, commit in _refs(os.path.join(repository, "refs")):
        refs.setdefault(commit, []).append("" if name == MAIN else name)
    for revision in folders_in(os.path.join(repository, "snapshots")):
        yield revision, sorted(refs.get(revision, ())) or [readable(revision)[:SHORT]]


def _refs(folder: str) -> Iterator[tuple[str, str]]:
    """The refs and the commits they point at; what is none is left out: the snapshots are there all the same."""
    for path in tree(folder):
        if os.path.isdir(path):
            continue
        try:
            commit = read_record(path, _MAX_REF_BYTES).decode("utf-8", errors="replace").strip()
        except RecordError:
            continue
        if _COMMIT.fullmatch(commit):
            yield readable(os.path.relpath(path, folder)).replace(os.sep, "/"), commit


HUGGING_FACE: Final = HuggingFace()
