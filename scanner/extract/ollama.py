"""What Ollama keeps beside a model: Go templates, in files of their own (`ModelFile.layers`).

They are texts of Go's `text/template` (https://docs.ollama.com/template), which Ollama itself renders. llama.cpp reads
the Jinja templates in the model file and nothing of these, so they are kept as another kind, and never parsed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

from scanner.errors import UnreadableError
from scanner.extract.jinja_file import MAX_TEMPLATE_BYTES
from scanner.extract.source import read_whole
from scanner.extract.variants import settle
from scanner.results import GO, ChatTemplate, FileResult

VARIANT: Final = "ollama"

_SHOWN: Final = 19
"""Characters of a blob's name that an origin shows: `sha256-` and twelve digits, as Ollama shows digests."""


def with_layers(result: FileResult) -> FileResult:
    """The result of a model file with the Go templates beside it, as the variant `ollama` (of several that differ, the
    others by their origin, too); one that cannot be read is a note."""
    found: list[ChatTemplate] = []
    notes: list[str] = []
    for layer in map(Path, result.file.layers):
        origin = f"blobs/{layer.name[:_SHOWN]}"
        try:
            found.append(ChatTemplate(VARIANT, read_whole(layer, MAX_TEMPLATE_BYTES), origin, GO))
        except (UnreadableError, OSError) as error:
            notes.append(f"the Go template in {origin} cannot be read: {getattr(error, 'strerror', None) or error}")
    # That tags of one model have templates of their own is no conflict, so there is nothing to note.
    templates, _ = settle(_apart(found, result.templates))
    return replace(result, templates=(*result.templates, *templates), notes=(*result.notes, *notes))


def _apart(found: Iterable[ChatTemplate], others: Iterable[ChatTemplate]) -> list[ChatTemplate]:
    """Go templates under names that no Jinja template of the file has."""
    taken = {template.variant for template in others}
    name = VARIANT
    while name in taken:
        name += " (Go)"
    return [replace(template, variant=name) for template in found]
