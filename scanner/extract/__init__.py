"""From a model file to its chat templates: one extractor for each kind of source, all behind `extract`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from scanner.errors import UnreadableError
from scanner.extract import gguf, huggingface, jinja_file, ollama
from scanner.extract.gguf_header import MAGIC
from scanner.extract.source import LocalFile
from scanner.results import FileResult, ModelFile, Outcome, SourceKind

Extractor = Callable[[ModelFile], FileResult]
"""Opens one model file. May raise UnreadableError and OSError; `extract` turns both into results."""

_EXTRACTORS: Mapping[SourceKind, Extractor] = {
    SourceKind.GGUF: gguf.extract,
    SourceKind.HUGGINGFACE: huggingface.extract,
    SourceKind.JINJA: jinja_file.extract,
}


def _kind(model_file: ModelFile) -> SourceKind:
    """What the file is: by its content, where a template's name hides a GGUF file. Raises as `LocalFile` does."""
    if model_file.kind is SourceKind.JINJA:
        with LocalFile(Path(model_file.path)) as file:
            if file.read(0, len(MAGIC)) == MAGIC:
                return SourceKind.GGUF
    return model_file.kind


def extract(model_file: ModelFile) -> FileResult:
    """Take the chat templates and the metadata out of one model file.

    A file that cannot be read, is broken or is no model is a result like any other (`Outcome`), never an exception.
    """
    result = _extract(model_file)
    return ollama.with_layers(result) if model_file.layers else result


def _extract(model_file: ModelFile) -> FileResult:
    """The same, of the file itself."""
    try:
        return _EXTRACTORS[_kind(model_file)](model_file)
    except UnreadableError as error:
        return FileResult(
            model_file, Outcome.UNREADABLE, reason=str(error), offset=error.offset, expected=error.expected
        )
    except OSError as error:
        name = Path(str(error.filename or model_file.path)).name
        return FileResult(model_file, Outcome.UNREADABLE, reason=f"{name}: cannot be read: {error.strerror or error}")
