"""The cache of huggingface_hub: names, links, and what is broken in it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from scanner.stores import Found, NotFound
from scanner.stores.huggingface import HUGGING_FACE
from tests.stores.builders import COMMITS, OTHER_TEMPLATE, TEMPLATE, HubCache, gguf
from tests.stores.scanning import Scanned

OLD, NEW = COMMITS
REPOSITORY = "ggml-org/gemma-3-1b-it-GGUF"
FILE = "gemma-3-1b-it-Q4_K_M.gguf"


@pytest.fixture
def cache(scanned: Scanned) -> HubCache:
    return HubCache(scanned.home / ".cache" / "huggingface" / "hub")


def test_a_blob_of_two_revisions_is_one_file_with_both_names(cache: HubCache, scanned: Scanned, tmp_path: Path) -> None:
    data = gguf(tmp_path)
    for commit in COMMITS:
        cache.file(REPOSITORY, commit, FILE, data)
        cache.file(REPOSITORY, commit, "README.md", b"# hello")
    cache.ref(REPOSITORY, "main", NEW)
    document = scanned.document("--store", "huggingface")
    assert (document["files"], document["passed_over"]) == (1, [])
    assert [row[:3] for row in scanned.names()] == [
        (f"{REPOSITORY}/{FILE}", REPOSITORY, NEW),
        (f"{REPOSITORY}@{OLD[:12]}/{FILE}", REPOSITORY, OLD),
    ]
    (row,) = scanned.query("files")
    assert Path(str(row["path"])).name == FILE
    assert f"{REPOSITORY}/{FILE}" in scanned.show(f"{REPOSITORY}/{FILE}")


def test_refs_are_names(cache: HubCache, scanned: Scanned, tmp_path: Path) -> None:
    cache.file("org/name", OLD, "m.gguf", gguf(tmp_path))
    cache.ref("org/name", "v1.0", OLD)
    cache.ref("org/name", "refs/pr/1", OLD)
    cache.ref("org/name", "main", "not a commit")
    scanned.scan("--store", "huggingface")
    assert [row[0] for row in scanned.names()] == ["org/name@refs/pr/1/m.gguf", "org/name@v1.0/m.gguf"]


def test_a_model_directory_goes_by_its_repository(cache: HubCache, scanned: Scanned) -> None:
    cache.file("gpt2", OLD, "tokenizer_config.json", b"{}")
    cache.file("gpt2", OLD, "chat_template.jinja", TEMPLATE.encode())
    cache.file("gpt2", OLD, "onnx/tokenizer_config.json", b"{}")
    cache.ref("gpt2", "main", OLD)
    scanned.scan("--store", "huggingface")
    assert [row[0] for row in scanned.names()] == ["gpt2", "gpt2/onnx"]


def test_a_cache_without_links(scanned: Scanned, tmp_path: Path) -> None:
    cache = HubCache(scanned.home / ".cache" / "huggingface" / "hub", links=False)
    for commit in COMMITS:
        cache.file(REPOSITORY, commit, FILE, gguf(tmp_path))
    cache.ref(REPOSITORY, "main", NEW)
    assert scanned.document("--store", "huggingface")["files"] == 2
    assert [row[0] for row in scanned.names()] == [f"{REPOSITORY}/{FILE}", f"{REPOSITORY}@{OLD[:12]}/{FILE}"]


def test_a_broken_link_costs_one_file(cache: HubCache, scanned: Scanned, tmp_path: Path) -> None:
    cache.file("org/name", OLD, "good.gguf", gguf(tmp_path))
    broken = cache.file("org/name", OLD, "gone.gguf", gguf(tmp_path, OTHER_TEMPLATE))
    broken.resolve().unlink()
    document = scanned.document("--store", "huggingface")
    assert document["passed_over"] == [{"path": str(broken), "reason": "a broken link"}]
    assert [row[0] for row in scanned.names()] == [f"org/name@{OLD[:12]}/good.gguf"]


def test_files_that_repositories_share(cache: HubCache, scanned: Scanned, tmp_path: Path) -> None:
    """ "Shared blobs across repos": `blobs/PREFIX/HASH` of the cache, to which the repositories' blobs link."""
    data = gguf(tmp_path)
    name = hashlib.sha256(data).hexdigest()
    shared = cache.root / "blobs" / name[:2] / name
    shared.parent.mkdir(parents=True)
    shared.write_bytes(data)
    for repository in ("org/one", "org/two"):
        blob = cache.file(repository, OLD, "m.gguf", data).resolve()
        blob.unlink()
        blob.symlink_to(f"../../blobs/{name[:2]}/{name}")
        cache.ref(repository, "main", OLD)
    assert scanned.document("--store", "huggingface")["files"] == 1
    assert [row[0] for row in scanned.names()] == ["org/one/m.gguf", "org/two/m.gguf"]
    (spread,) = scanned.query("spread")
    assert (spread["files"], spread["models"], spread["repositories"]) == (1, 2, 2)


@pytest.mark.parametrize("inside", [".", "..", f"models--org--name/snapshots/{NEW}", "models--org--name"])
def test_a_path_of_the_cache_is_recognised(cache: HubCache, scanned: Scanned, tmp_path: Path, inside: str) -> None:
    for commit in COMMITS:
        cache.file("org/name", commit, "m.gguf", gguf(tmp_path))
    cache.ref("org/name", "main", NEW)
    assert scanned.document(cache.root / inside)["files"] == 1
    assert "org/name/m.gguf" in [row[0] for row in scanned.names()]


def test_the_variables_that_say_where_it_is(tmp_path: Path) -> None:
    """https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables."""
    places = {
        "HF_HUB_CACHE": "",
        "HUGGINGFACE_HUB_CACHE": "",
        "HF_HOME": "hub",
        "XDG_CACHE_HOME": "huggingface/hub",
    }
    environ: dict[str, str] = {}
    for name, below in reversed(places.items()):
        root = tmp_path / name / below
        root.mkdir(parents=True)
        environ[name] = str(tmp_path / name)
        assert HUGGING_FACE.found(environ, tmp_path) == Found((str(root),))
    home = tmp_path / "home"
    default = str(home / ".cache/huggingface/hub")
    assert HUGGING_FACE.found({}, home) == NotFound((default,), f"{default}: does not exist")
    assert HUGGING_FACE.found({"HF_HOME": ""}, home) == NotFound((default,), f"{default}: does not exist")
