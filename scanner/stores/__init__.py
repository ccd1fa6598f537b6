"""Stores of models: where tools keep what they download, and what they call it. One module for each tool."""

# ruff: noqa: PTH112, PTH118

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Final

from scanner.stores.huggingface import HUGGING_FACE, PREFIXES
from scanner.stores.llama_cpp import LLAMA_CPP
from scanner.stores.lm_studio import LM_STUDIO
from scanner.stores.ollama import BLOBS, MANIFESTS, OLLAMA
from scanner.stores.store import Entry as Entry
from scanner.stores.store import Found as Found
from scanner.stores.store import NotFound as NotFound
from scanner.stores.store import Store as Store
from scanner.stores.store import StoreSource as StoreSource

STORES: Final[Mapping[str, Store]] = {store.slug: store for store in (OLLAMA, HUGGING_FACE, LLAMA_CPP, LM_STUDIO)}
"""All stores by their names, in the order in which they are looked for."""

_TELLING: Final = (BLOBS, *MANIFESTS)
"""Names of folders that tell a store from its outside."""


def store_at(path: str, names: Collection[str]) -> StoreSource | None:
    """The store that a folder is, by its path and the `names` in it; None where it is none."""
    return next((StoreSource(store.slug, path) for store in STORES.values() if store.is_root(path, names)), None)


def store_above(path: str) -> StoreSource | None:
    """The store that a path lies in, the nearest; only as far as that can be told without listing folders."""
    folder, name = os.path.split(path)
    while name:
        there = [telling for telling in _TELLING if os.path.isdir(os.path.join(folder, telling))]
        if name.startswith(tuple(PREFIXES)):
            there.append(name)
        found = store_at(folder, there)
        if found is not None:
            return found
        folder, name = os.path.split(folder)
    return None
