"""LM Studio: folders by publisher and model.

Layout, as its documentation has it (https://lmstudio.ai/docs/app/advanced/import-model): `models/PUBLISHER/MODEL/FILE`,
with the names of Hugging Face's repositories. Its folder is what `~/.lmstudio-home-pointer` holds, else
`~/.cache/lm-studio` of older versions, else `~/.lmstudio`, as its own command line looks for it (`findLMStudioHome` in
https://github.com/lmstudio-ai/lms); a pointer is also what https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/553
tells people to write who move it.
"""

# `os.path` throughout: its questions never raise, whatever the file system says.
# ruff: noqa: PTH118

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Final

from scanner.results import ModelName, PassedOver
from scanner.stores.places import RecordError, among, read_record, readable, tree
from scanner.stores.store import Entry, Found, NotFound

POINTER: Final = ".lmstudio-home-pointer"
HOMES: Final = (".lmstudio", "lm-studio")
"""What its folder is called, now and before."""
MODELS: Final = "models"

_MAX_POINTER_BYTES: Final = 4096


class LmStudio:
    """The models of LM Studio."""

    slug = "lmstudio"

    def found(self, environ: Mapping[str, str], home: Path) -> Found | NotFound:  # noqa: ARG002 - it asks no variable
        """All of the folders that LM Studio may have used."""
        homes = (*_pointed_at(home), str(home / HOMES[0]), str(home / ".cache" / HOMES[1]))
        return among(os.path.join(folder, MODELS) for folder in homes)

    def is_root(self, path: str, names: Collection[str]) -> bool:  # noqa: ARG002 - the interface
        """Whether it is the folder of models in one of LM Studio's."""
        folder, name = os.path.split(path)
        return name == MODELS and os.path.basename(folder) in HOMES  # noqa: PTH119

    def entries(self, root: str) -> Iterator[Entry | PassedOver]:
        """Every file and folder below a publisher's, by path."""
        for path in tree(root):
            parts = Path(readable(os.path.relpath(path, root))).parts
            repository = "/".join(parts[:2]) if len(parts) > 1 else None
            yield Entry(path, (ModelName(self.slug, "/".join(parts), repository),))


def _pointed_at(home: Path) -> tuple[str, ...]:
    """The folder that the pointer holds, if it does."""
    try:
        folder = os.fsdecode(read_record(str(home / POINTER), _MAX_POINTER_BYTES)).strip()
    except RecordError:
        return ()
    return (folder,) if os.path.isabs(folder) and "\0" not in folder else ()  # noqa: PTH117


LM_STUDIO: Final = LmStudio()
