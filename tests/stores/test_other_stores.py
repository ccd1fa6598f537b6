"""llama.cpp's cache and LM Studio's folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scanner.stores import Found, NotFound
from scanner.stores.llama_cpp import LLAMA_CPP
from scanner.stores.lm_studio import LM_STUDIO
from tests.stores.builders import COMMITS, OTHER_TEMPLATE, HubCache, LlamaCache, gguf
from tests.stores.scanning import Scanned


@pytest.fixture
def cache(scanned: Scanned) -> LlamaCache:
    return LlamaCache(scanned.home / ".cache" / "llama.cpp")


def test_manifests_say_what_files_are(cache: LlamaCache, scanned: Scanned, tmp_path: Path) -> None:
    repository, file = "ggml-org/gemma-3-1b-it-GGUF", "gemma-3-1b-it-Q4_K_M.gguf"
    cache.file(repository, file, gguf(tmp_path))
    cache.file(repository, "sub/other-Q8_0.gguf", gguf(tmp_path, OTHER_TEMPLATE))
    cache.manifest(repository, "latest", ggufFile=file)
    cache.manifest(repository, "Q4_K_M", ggufFile=file)
    scanned.scan("--store", "llama.cpp")
    assert [row[:2] for row in scanned.names()] == [
        (f"{repository}/sub_other-Q8_0.gguf", repository),
        (f"{repository}:Q4_K_M", repository),
        (f"{repository}:latest", repository),
    ]
    assert f"llama.cpp: {repository}:latest" in scanned.show(repository)


def test_files_of_older_builds_say_where_they_are_from(cache: LlamaCache, scanned: Scanned, tmp_path: Path) -> None:
    file = cache.file("org/a_b", "m.gguf", gguf(tmp_path))
    url = "https://huggingface.co/org/a_b/resolve/main/m.gguf"
    Path(f"{file}.json").write_text(json.dumps({"url": url, "etag": "x", "lastModified": "y"}))
    cache.file("ai/smollm2", "135M-Q4_0.gguf", gguf(tmp_path, OTHER_TEMPLATE))
    scanned.scan("--store", "llama.cpp")
    assert [row[:3] for row in scanned.names()] == [
        ("ai_smollm2_135M-Q4_0.gguf", None, None),
        ("org/a_b/m.gguf", "org/a_b", "main"),
    ]


@pytest.mark.parametrize(
    "metadata", [b"no", b'{"url": 7}', b'{"url": "https://[/x"}', b'{"url": "a/b/c/\\ud800"}', b"[]"]
)
def test_metadata_that_says_nothing(cache: LlamaCache, scanned: Scanned, tmp_path: Path, metadata: bytes) -> None:
    file = cache.file("org/name", "m.gguf", gguf(tmp_path))
    Path(f"{file}.json").write_bytes(metadata)
    cache.manifest("other/name", "latest").write_bytes(metadata)
    assert scanned.scan("--store", "llama.cpp") == 0
    assert [row[0] for row in scanned.names()] == ["org_name_m.gguf"]


def test_a_manifest_with_a_path_in_it_names_no_other_file(cache: LlamaCache, scanned: Scanned, tmp_path: Path) -> None:
    cache.file("org/name", "m.gguf", gguf(tmp_path))
    cache.manifest("org/name", "latest", ggufFile="../../../etc/passwd")
    scanned.scan("--store", "llama.cpp")
    assert [row[0] for row in scanned.names()] == ["org/name/m.gguf"]


def test_newer_builds_share_the_cache_of_hugging_face(scanned: Scanned, tmp_path: Path) -> None:
    """https://github.com/ggml-org/llama.cpp/blob/master/common/hf-cache.cpp."""
    hub = HubCache(scanned.home / ".cache" / "huggingface" / "hub")
    hub.file("org/name", COMMITS[0], "m-Q4_K_M.gguf", gguf(tmp_path))
    hub.ref("org/name", "main", COMMITS[0])
    scanned.scan("--store", "llama.cpp")
    assert [row[:3] for row in scanned.names()] == [("org/name:Q4_K_M", "org/name", COMMITS[0])]
    scanned.scan("--store", "all")
    assert [row[0] for row in scanned.names()] == ["org/name/m-Q4_K_M.gguf"]


def test_where_llama_cpp_keeps_its_cache(scanned: Scanned, tmp_path: Path) -> None:
    own = HubCache(tmp_path / "own")
    own.file("org/name", COMMITS[0], "m-00001-of-00002.gguf", gguf(tmp_path))
    assert LLAMA_CPP.found({"LLAMA_CACHE": str(own.root)}, scanned.home) == Found((str(own.root),))
    missing = LLAMA_CPP.found({"LLAMA_CACHE": str(tmp_path / "none")}, scanned.home)
    assert missing == NotFound((str(tmp_path / "none"),), f"{tmp_path}/none: does not exist")


def lm_studio_file(home: Path, path: str, data: bytes) -> Path:
    """https://lmstudio.ai/docs/app/advanced/import-model: `models/PUBLISHER/MODEL/FILE`."""
    file = home / "models" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return file


def test_lm_studio_names_files_by_publisher_and_model(scanned: Scanned, tmp_path: Path) -> None:
    home = scanned.home / ".lmstudio"
    lm_studio_file(home, "infra-ai/ocelot-v1/ocelot-v1-instruct-q4_0.gguf", gguf(tmp_path))
    lm_studio_file(home, "mlx-community/ocelot/tokenizer_config.json", b"{}")
    lm_studio_file(home, "stray.gguf", gguf(tmp_path, OTHER_TEMPLATE))
    scanned.scan("--store", "lmstudio")
    assert [row[:2] for row in scanned.names()] == [
        ("infra-ai/ocelot-v1/ocelot-v1-instruct-q4_0.gguf", "infra-ai/ocelot-v1"),
        ("mlx-community/ocelot", "mlx-community/ocelot"),
        ("stray.gguf", None),
    ]
    scanned.scan(home)
    assert len(scanned.names()) == 3


def test_where_lm_studio_is(tmp_path: Path) -> None:
    moved, older = tmp_path / "moved", tmp_path / ".cache" / "lm-studio"
    for home in (moved, older):
        (home / "models").mkdir(parents=True)
    (tmp_path / ".lmstudio-home-pointer").write_text(f"{moved}\n")
    assert LM_STUDIO.found({}, tmp_path) == Found((str(moved / "models"), str(older / "models")))
    for pointer in (b"relative", b"\0/x", b"/x\0", b"x" * 100_000, b"\xff"):
        (tmp_path / ".lmstudio-home-pointer").write_bytes(pointer)
        assert LM_STUDIO.found({}, tmp_path) == Found((str(older / "models"),))
