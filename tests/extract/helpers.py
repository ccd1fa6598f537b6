"""What the tests of extraction share: from a path to a result, through the public doors."""

from __future__ import annotations

from pathlib import Path

from scanner.discover import discover
from scanner.extract import extract
from scanner.results import FileResult, ModelFile


def extract_path(path: Path) -> FileResult:
    """Discover one file or directory, and extract the first model of it."""
    found = next(iter(discover([path])))
    assert isinstance(found, ModelFile), found
    return extract(found)


def texts(result: FileResult) -> dict[str, bytes]:
    """Variant to template bytes, in the order of the result."""
    return {template.variant: template.source for template in result.templates}
