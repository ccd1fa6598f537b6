"""A home of its own, and no variable that leads out of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from scanner.stores import ollama
from tests.stores.scanning import Scanned

VARIABLES = (
    *("OLLAMA_MODELS", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME", "LLAMA_CACHE"),
    "CAPSCAN_DB",
)


@pytest.fixture
def scanned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Scanned:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(ollama, "SERVICE_ROOTS", ())
    made = Scanned(tmp_path, capsys)
    monkeypatch.setenv("HOME", str(made.home))
    monkeypatch.chdir(tmp_path)
    return made
