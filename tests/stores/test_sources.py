"""`capscan sources`, and `--store`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scanner.cli import run
from tests.stores.builders import GO, OllamaStore
from tests.stores.scanning import Scanned


def test_sources_lists_what_is_here_and_where_others_would_be(
    scanned: Scanned, capsys: pytest.CaptureFixture[str]
) -> None:
    store = OllamaStore(scanned.home / ".ollama" / "models")
    model = store.model()
    store.tag("registry.ollama.ai/library/one/latest", [("model", model), ("template", store.blob(GO))])
    store.tag("registry.ollama.ai/library/two/latest", [("model", model)])
    store.raw("registry.ollama.ai/library/bad/latest", b"")
    assert run(["sources", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    size = (store.root / "blobs" / model.replace(":", "-")).stat().st_size
    assert document["found"] == [
        {"store": "ollama", "where": str(store.root), "models": 2, "files": 1, "bytes": size, "passed_over": 1}
    ]
    absent = {one["store"]: one["looked"] for one in document["not_found"]}
    assert list(absent) == ["huggingface", "llama.cpp", "lmstudio"]
    assert str(scanned.home / ".lmstudio" / "models") in absent["lmstudio"]
    assert run(["sources"]) == 0
    out = capsys.readouterr().out
    assert str(store.root) in out and "not here: lmstudio" in out


def test_a_store_that_is_not_here_is_said(scanned: Scanned, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["scan", "--store", "lmstudio", "--db", scanned.database, "--quiet"]) == 3
    told = capsys.readouterr()
    assert "there is no such store here" in told.out
    assert f"lmstudio:{scanned.home}/.lmstudio/models" in told.err
    assert run(["scan", "--store", "all", "--db", scanned.database, "--quiet"]) == 3
    assert "capscan sources" in capsys.readouterr().err
    assert run(["scan", "--db", scanned.database]) == 2


def test_stores_and_paths_together(scanned: Scanned, tmp_path: Path) -> None:
    store = OllamaStore(scanned.home / ".ollama" / "models")
    store.tag("registry.ollama.ai/library/one/latest", [("model", store.model())])
    linked = tmp_path / "models"
    linked.mkdir()
    (linked / "one.gguf").symlink_to(next((store.root / "blobs").glob("*")))
    (linked / "t.jinja").write_text("{{ messages }}")
    document = scanned.document(linked, "--store", "ollama")
    assert document["files"] == 2
    assert [row[0] for row in scanned.names()] == ["one:latest"]
