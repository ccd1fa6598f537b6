"""Template files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from scanner.extract import extract, jinja_file
from scanner.results import ModelFile, Outcome, SourceKind
from tests.extract.helpers import extract_path, texts
from tests.gguf_builder import write_gguf


def test_a_template_file_is_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "my.jinja"
    path.write_bytes(b"{{ x }}\r\n\xff")
    result = extract_path(path)
    assert result.outcome is Outcome.ANALYSED
    assert texts(result) == {"default": b"{{ x }}\r\n\xff"}
    assert result.templates[0].origin == "my.jinja"


def test_an_empty_file_is_noted(tmp_path: Path) -> None:
    path = tmp_path / "my.jinja"
    path.touch()
    assert extract_path(path).notes == ("variant 'default' is empty",)


def test_a_file_beyond_the_limit_is_unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "my.jinja"
    path.write_bytes(b"x" * 11)
    monkeypatch.setattr(jinja_file, "MAX_TEMPLATE_BYTES", 10)
    result = extract_path(path)
    assert result.outcome is Outcome.UNREADABLE
    assert result.reason == "my.jinja: limit: 11 bytes, at most 10 are read"


def test_a_fifo_in_place_of_the_file_does_not_hang(tmp_path: Path) -> None:
    path = tmp_path / "my.jinja"
    os.mkfifo(path)
    result = extract(ModelFile(str(path), str(path), SourceKind.JINJA, 0, 0, ""))
    assert result.outcome is Outcome.UNREADABLE
    assert result.expected == "a regular file"


def test_a_gguf_file_behind_a_templates_name_is_read_as_what_it_is(tmp_path: Path) -> None:
    result = extract_path(write_gguf(tmp_path / "m.jinja"))
    assert (result.outcome, result.metadata.architecture) == (Outcome.NO_TEMPLATE, "llama")
