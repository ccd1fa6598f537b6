"""A template on its own: a `*.jinja` file."""

from __future__ import annotations

from pathlib import Path

from scanner.extract.source import read_whole
from scanner.extract.variants import DEFAULT, settle
from scanner.results import ChatTemplate, FileResult, ModelFile, Outcome

MAX_TEMPLATE_BYTES = 16 * 1024 * 1024
"""A longer file is not read (the longest known template has less than a hundredth of this)."""


def extract(model_file: ModelFile) -> FileResult:
    """The file's bytes, as they are, as the template `default`. Raises UnreadableError beyond the limit, OSError."""
    path = Path(model_file.path)
    template = ChatTemplate(DEFAULT, read_whole(path, MAX_TEMPLATE_BYTES), path.name)
    templates, notes = settle([template])
    return FileResult(model_file, Outcome.ANALYSED, templates, notes=notes)
