"""Ollama's store: names, shared blobs, Go templates, and manifests that cannot be used."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

import pytest

from scanner.results import ModelName, PassedOver
from scanner.stores import Entry
from scanner.stores.ollama import OLLAMA
from scanner.stores.places import MAX_RECORD_BYTES
from tests.stores.builders import GO, OTHER_TEMPLATE, OllamaStore
from tests.stores.scanning import Scanned, passed_over

PUBLIC = "registry.ollama.ai/library"


@pytest.fixture
def store(scanned: Scanned) -> OllamaStore:
    return OllamaStore(scanned.home / ".ollama" / "models")


def test_names_are_those_that_ollama_shows(store: OllamaStore, scanned: Scanned) -> None:
    model = store.model()
    for path in (
        f"{PUBLIC}/llama3.2/3b",
        f"{PUBLIC}/llama3.2/latest",
        "registry.ollama.ai/someone/mine/v1",
        "hf.co/bartowski/Llama-3.2-3B-GGUF/Q4_K_M",
        "registry.example.com%3A5000/team/mine/latest",
        f"{PUBLIC}/skill/writer/latest",
    ):
        store.tag(path, [("model", model)])
    assert scanned.scan("--store", "ollama") == 0
    file = f"sha256-{model.removeprefix('sha256:')}"
    assert scanned.names() == [
        ("hf.co/bartowski/Llama-3.2-3B-GGUF:Q4_K_M", "bartowski/Llama-3.2-3B-GGUF", "Q4_K_M", file),
        ("llama3.2:3b", "ollama.com/library/llama3.2", "3b", file),
        ("llama3.2:latest", "ollama.com/library/llama3.2", "latest", file),
        ("registry.example.com:5000/team/mine:latest", "registry.example.com:5000/team/mine", "latest", file),
        ("skill/writer:latest", "ollama.com/library/skill/writer", "latest", file),
        ("someone/mine:v1", "ollama.com/someone/mine", "v1", file),
    ]
    assert scanned.query("files")[0]["path"] == str(store.root / "blobs" / file)
    (spread,) = scanned.query("spread")
    assert (spread["files"], spread["models"], spread["repositories"]) == (1, 6, 5)


def test_a_scan_of_a_store_is_compared_with_the_one_before(store: OllamaStore, scanned: Scanned) -> None:
    store.tag(f"{PUBLIC}/one/latest", [("model", store.model())])
    scanned.scan("--store", "ollama")
    store.tag(f"{PUBLIC}/two/latest", [("model", store.model(OTHER_TEMPLATE))])
    scanned.scan("--store", "ollama")
    assert "Since the last scan: 1 appeared" in scanned.summary
    with sqlite3.connect(scanned.database) as database:
        rows = database.execute("SELECT DISTINCT sources FROM scans").fetchall()
    assert [json.loads(row[0]) for row in rows] == [[f"ollama:{store.root}"]]


def test_a_new_tag_on_an_unchanged_blob_shows_up(store: OllamaStore, scanned: Scanned) -> None:
    model = store.model()
    store.tag(f"{PUBLIC}/one/latest", [("model", model)])
    scanned.scan("--store", "ollama")
    store.tag(f"{PUBLIC}/two/latest", [("model", model)])
    document = scanned.document("--store", "ollama")
    assert (document["files"], document["unchanged"]) == (1, 1)
    assert [row[0] for row in scanned.names()] == ["one:latest", "two:latest"]
    (store.root / "manifests" / PUBLIC / "one" / "latest").unlink()
    scanned.scan("--store", "ollama")
    assert [row[0] for row in scanned.names()] == ["two:latest"]


def test_the_go_template_is_kept_and_never_taken_for_jinja(store: OllamaStore, scanned: Scanned) -> None:
    store.tag(f"{PUBLIC}/one/latest", [("model", store.model()), ("template", store.blob(GO))])
    document = scanned.document("--store", "ollama")
    assert (document["templates"], document["go_templates"], document["variants"]) == (1, 1, {"default": 1})
    assert document["outcomes"] == {"analysed": 1}
    rows = {row["variant"]: row for row in scanned.query("files")}
    assert rows["ollama"]["outcome"] == "skipped"
    assert rows["ollama"]["reason"] == "a Go template of Ollama's: llama.cpp does not read it"
    with sqlite3.connect(scanned.database) as database:
        assert database.execute("SELECT kind, source FROM templates WHERE kind <> 'jinja'").fetchall() == [("go", GO)]
        assert database.execute("SELECT COUNT(*) FROM analyses").fetchone() == (1,)
    assert GO.decode() in scanned.show(str(rows["ollama"]["sha256"]))
    scanned.scan("--store", "ollama")
    assert "1 Go template of Ollama's in 1 file" in scanned.summary
    assert [row["outcome"] for row in scanned.query("files")] == ["analysed", "skipped"]


def test_a_model_with_a_go_template_alone_is_one_without_a_template(store: OllamaStore, scanned: Scanned) -> None:
    store.tag(f"{PUBLIC}/one/latest", [("model", store.model(None)), ("template", store.blob(GO))])
    assert scanned.document("--store", "ollama")["outcomes"] == {"no template": 1}
    assert [(row["variant"], row["outcome"]) for row in scanned.query("files")] == [
        ("", "no template"),
        ("ollama", "skipped"),
    ]
    assert "llama.cpp uses ChatML" in scanned.show("one")


def test_a_new_go_template_on_an_unchanged_model_is_seen(store: OllamaStore, scanned: Scanned) -> None:
    model = store.model()
    store.tag(f"{PUBLIC}/one/latest", [("model", model), ("template", store.blob(GO))])
    scanned.scan("--store", "ollama")
    store.tag(f"{PUBLIC}/two/latest", [("model", model), ("template", store.blob(b"{{ .Prompt }}"))])
    scanned.scan("--store", "ollama")
    variants = [str(row["variant"]) for row in scanned.query("files")]
    assert variants[:2] == ["default", "ollama"] and variants[2].startswith("ollama (blobs/sha256-")


def test_projectors_and_adapters_have_names_of_their_own(store: OllamaStore, scanned: Scanned) -> None:
    projector = store.blob(b"GGUF" + b"\3\0\0\0" + bytes(16))
    store.tag(f"{PUBLIC}/llava/7b", [("model", store.model()), ("projector", projector)])
    scanned.scan("--store", "ollama")
    assert [row[0] for row in scanned.names()] == ["llava:7b", "llava:7b (projector)"]
    assert "llava:7b" in scanned.show("llava:7b")


def test_blobs_of_older_stores_have_a_colon(store: OllamaStore, scanned: Scanned) -> None:
    store.tag(f"{PUBLIC}/old/latest", [("model", store.model(separator=":"))])
    scanned.scan("--store", "ollama")
    assert [row[0] for row in scanned.names()] == ["old:latest"]


def test_newer_manifests_are_links_and_lists(store: OllamaStore, scanned: Scanned) -> None:
    old, new = store.model(), store.model(OTHER_TEMPLATE)
    store.tag(f"{PUBLIC}/one/latest", [("model", old)])
    child = json.dumps(store.manifest([("model", new)])).encode()
    listed = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.ollama.manifest.list.v2+json",
        "manifests": [
            {"mediaType": "…", "runner": "mlx", "digest": f"sha256:{'0' * 64}"},
            {"mediaType": "…", "runner": "ollama", "digest": store.blob(child)},
        ],
    }
    blob = store.blob(json.dumps(listed).encode()).replace(":", "-")
    link = store.root / "manifests-v2" / "ollama.com" / "library" / "one" / "latest"
    link.parent.mkdir(parents=True)
    link.symlink_to(os.path.relpath(store.root / "blobs" / blob, link.parent))
    document = scanned.document("--store", "ollama")
    assert document["passed_over"] == []
    assert [(row[0], row[3]) for row in scanned.names()] == [("one:latest", new.replace(":", "-"))]


HOSTILE = {
    "is-not-json": (b"\x7fELF", "its manifest: not JSON"),
    "is-no-object": (b"[]", "its manifest: not a JSON object"),
    "is-deep": (b"[" * 200_000, "its manifest: not JSON"),
    "is-huge": (b" " * (MAX_RECORD_BYTES + 1), "its manifest: limit: 4,194,305 bytes, at most 4,194,304 are read"),
    "has-no-layers": (b"{}", "its manifest: it has no layers"),
    "has-odd-layers": (b'{"layers": [7]}', "its manifest: a layer has no media type"),
    "has-a-path": (
        b'{"layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": "../../etc/passwd"}]}',
        "its model has a digest that is none",
    ),
    "is-dangling": (
        json.dumps(
            {"layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{'a' * 64}"}]}
        ).encode(),
        "its model is missing: there is no blob sha256-aaaaaaaaaaaa…",
    ),
    "has-odd-words": (
        b'{"layers": [{"mediaType": "\\ud800"}, {"mediaType": "a\\u001b"}]}',
        "it names no model file, only \\ud800, a\x1b",
    ),
    "has-many-layers": (
        json.dumps({"layers": [{"mediaType": "application/vnd.ollama.image.model"}] * 9999}).encode(),
        "its manifest: limit: 9,999 files and templates, at most 64 are looked at",
    ),
    "has-many-manifests": (
        json.dumps({"manifests": [{"digest": "x"}] * 9999}).encode(),
        "its manifest: limit: a list of 9,999 manifests, at most 64 are read",
    ),
    "is-in-the-cloud": (b'{"layers": []}', "it names no model file, only nothing"),
}


def test_a_manifest_that_cannot_be_used_costs_one_entry(store: OllamaStore, scanned: Scanned) -> None:
    store.tag(f"{PUBLIC}/good/latest", [("model", store.model())])
    for name, (data, _) in HOSTILE.items():
        store.raw(f"{PUBLIC}/{name}/latest", data)
    store.raw("too/short", b"{}")
    store.raw(f"{PUBLIC}/-option/latest", b"{}")
    link = store.root / "manifests" / PUBLIC / "is-linked" / "latest"
    link.parent.mkdir()
    link.symlink_to(store.root / "blobs" / f"sha256-{'b' * 64}")
    os.mkfifo(store.root / "manifests" / PUBLIC / "good" / "pipe")
    document = scanned.document("--store", "ollama")
    told = passed_over(document, store.root / "manifests")
    named = {f"{PUBLIC}/{name}/latest": f"{name}:latest: {reason}" for name, (_, reason) in HOSTILE.items()}
    no_name = "not a manifest: its path is no name that Ollama knows"
    listed = document["passed_over"]
    assert isinstance(listed, list) and len(listed) == len(told)
    assert told.pop(f"{PUBLIC}/is-linked/latest") == "is-linked:latest: its manifest: does not exist"
    assert told.pop(f"{PUBLIC}/good/pipe") == "good:pipe: its manifest: not a regular file"
    assert told == {**named, "too/short": no_name, f"{PUBLIC}/-option/latest": no_name}
    assert (document["files"], [row[0] for row in scanned.names()]) == (1, ["good:latest"])


def test_a_link_out_of_the_store_gives_nothing_away(store: OllamaStore, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the secret")
    (store.root / "manifests" / "hf.co" / "a" / "b").mkdir(parents=True)
    (store.root / "manifests" / "hf.co" / "a" / "b" / "c").symlink_to(secret)
    (found,) = OLLAMA.entries(str(store.root))
    assert isinstance(found, PassedOver) and "secret" not in found.reason


def test_entries_are_what_manifests_name(store: OllamaStore) -> None:
    model, template = store.model(), store.blob(GO)
    store.tag(f"{PUBLIC}/one/latest", [("model", model), ("template", template)])
    blobs = store.root / "blobs"
    assert list(OLLAMA.entries(str(store.root))) == [
        Entry(
            str(blobs / model.replace(":", "-")),
            (ModelName("ollama", "one:latest", "ollama.com/library/one", "latest"),),
            (str(blobs / template.replace(":", "-")),),
        )
    ]


@pytest.mark.parametrize("inside", ["", "blobs", ".."])
def test_a_path_of_the_store_is_recognised(store: OllamaStore, scanned: Scanned, inside: str) -> None:
    store.tag(f"{PUBLIC}/one/latest", [("model", store.model()), ("template", store.blob(GO))])
    scanned.scan(store.root / inside)
    assert [row[0] for row in scanned.names()] == ["one:latest"]
    assert [row["variant"] for row in scanned.query("files")] == ["default", "ollama"]


def test_a_blob_given_by_its_path_has_its_names(store: OllamaStore, scanned: Scanned) -> None:
    model = store.model()
    store.tag(f"{PUBLIC}/one/latest", [("model", model)])
    store.raw(f"{PUBLIC}/bad/latest", b"")
    assert scanned.scan(store.root / "blobs" / model.replace(":", "-")) == 0
    assert [row[0] for row in scanned.names()] == ["one:latest"]
    assert "Passed over" not in scanned.summary


def test_show_knows_names(store: OllamaStore, scanned: Scanned) -> None:
    store.tag("hf.co/org/repo/Q4_K_M", [("model", store.model())])
    store.tag(f"{PUBLIC}/llama3.2/latest", [("model", store.model(OTHER_TEMPLATE))])
    scanned.scan("--store", "ollama")
    assert "ollama: hf.co/org/repo:Q4_K_M" in scanned.show("hf.co/org/repo:Q4_K_M")
    assert "ollama: llama3.2:latest" in scanned.show("llama3.2")


def test_the_summary_and_the_report_show_names(store: OllamaStore, scanned: Scanned, tmp_path: Path) -> None:
    from scanner.cli import run

    model = store.model("{% if x %}")
    store.tag(f"{PUBLIC}/broken/7b", [("model", model)])
    scanned.scan("--store", "ollama")
    assert "broken:7b" in scanned.summary and "sha256-" not in scanned.summary
    assert run(["report", "--db", scanned.database, "-o", str(tmp_path / "report")]) == 0
    pages = {path.parent.name: path.read_text() for path in (tmp_path / "report").glob("templates/*.html")}
    assert "broken:7b" in pages["templates"] and model.removeprefix("sha256:") in pages["templates"]
    models = (tmp_path / "report" / "models.html").read_text()
    assert "broken:7b" in models
