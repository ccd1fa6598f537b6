"""What every store of models offers: where it is, and what it calls its files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from scanner.results import ModelName, PassedOver


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or a directory of a store, and what the store calls it. `layers`: files with Go templates that belong to
    it, those of the first name first."""

    path: str
    names: tuple[ModelName, ...]
    layers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """A store that is here, in these folders."""

    roots: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NotFound:
    """A store that is not here: where it was looked for, in this order, and why that is none."""

    looked: tuple[str, ...]
    reason: str


class Store(Protocol):
    """A tool's way to keep models. What is said of its layout comes from the tool's documentation or source, which each
    module names."""

    @property
    def slug(self) -> str:
        """The store's name on the command line and in the database."""
        ...

    def found(self, environ: Mapping[str, str], home: Path) -> Found | NotFound:
        """Where the store is for someone with this environment and home. Never raises for what it finds."""
        ...

    def is_root(self, path: str, names: Collection[str]) -> bool:
        """Whether a folder is such a store, by its path and what it holds (not all `names` have to be given)."""
        ...

    def entries(self, root: str) -> Iterator[Entry | PassedOver]:
        """What the store in `root` names, whether it is a model or not; and what is wrong with its records.

        Files that are missing or cannot be opened are not told here: whoever opens them will tell. Never raises for
        what it finds; everything it reads has a limit.
        """
        ...


@dataclass(frozen=True, slots=True)
class StoreSource:
    """A store in a folder as something to scan; as text `ollama:/home/x/.ollama/models`, as a scan records it."""

    store: str
    root: str

    def __str__(self) -> str:
        return f"{self.store}:{self.root}"
