"""Stores as the real tools lay them out: `scanner.stores` names the documentation and the sources of each."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.gguf_builder import write_gguf

TEMPLATE = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}"
OTHER_TEMPLATE = "{% for m in messages %}[{{ m.role }}] {{ m.content }}{% endfor %}"
GO = b"{{ if .System }}<|system|>{{ .System }}{{ end }}<|user|>{{ .Prompt }}"
COMMITS = ("2439f60ef33a0d46d85da5001d52aeda5b00ce9f", "bbc77c8132af1cc5cf678da3f1ddf2de43606d48")


def gguf(folder: Path, template: str | None = TEMPLATE, **more: str) -> bytes:
    """The bytes of a small model; the file that they were written to is gone again."""
    path = folder / ".written.gguf"
    folder.mkdir(parents=True, exist_ok=True)
    write_gguf(path, template, strings=more)
    data = path.read_bytes()
    path.unlink()
    return data


class OllamaStore:
    """https://github.com/ollama/ollama/blob/main/docs/faq.mdx ("Where are models stored?") for the place, and for what
    is in it https://github.com/ollama/ollama/blob/main/manifest/paths.go: `manifests/HOST/NAMESPACE/MODEL/TAG` and
    `blobs/sha256-HEX`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "blobs").mkdir(parents=True)
        (root / "manifests").mkdir()

    def blob(self, data: bytes, separator: str = "-") -> str:
        """Keep a blob; gives its digest as manifests write it."""
        digest = hashlib.sha256(data).hexdigest()
        (self.root / "blobs" / f"sha256{separator}{digest}").write_bytes(data)
        return f"sha256:{digest}"

    def model(self, template: str | None = TEMPLATE, separator: str = "-", **more: str) -> str:
        """Keep a model; gives its digest."""
        return self.blob(gguf(self.root / "blobs", template, **more), separator)

    def tag(self, path: str, layers: Sequence[tuple[str, str]], manifests: str = "manifests") -> Path:
        """A manifest, as `ollama pull` writes it: kinds and digests of the layers."""
        return self.raw(path, json.dumps(self.manifest(layers)).encode(), manifests)

    def raw(self, path: str, data: bytes, manifests: str = "manifests") -> Path:
        """Anything in the place of a manifest."""
        file = self.root / manifests / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        return file

    def manifest(self, layers: Sequence[tuple[str, str]]) -> Mapping[str, object]:
        return {
            "schemaVersion": 2,
            "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
            "config": {
                "mediaType": "application/vnd.docker.container.image.v1+json",
                "digest": self.blob(b'{"model_format":"gguf","model_family":"llama"}'),
                "size": 46,
            },
            "layers": [
                {"mediaType": f"application/vnd.ollama.image.{kind}", "digest": digest, "size": 1}
                for kind, digest in layers
            ],
        }


class HubCache:
    """https://huggingface.co/docs/huggingface_hub/guides/manage-cache: `models--ORG--NAME/{refs,blobs,snapshots}`, the
    files of a snapshot links into `blobs`, or, where there are no links ("Limitations"), the files themselves."""

    def __init__(self, root: Path, *, links: bool = True) -> None:
        self.root = root
        self.links = links
        root.mkdir(parents=True)

    def file(self, repository: str, commit: str, name: str, data: bytes) -> Path:
        folder = self.root / f"models--{repository.replace('/', '--')}"
        path = folder / "snapshots" / commit / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not self.links:
            path.write_bytes(data)
            return path
        blob = folder / "blobs" / hashlib.sha256(data).hexdigest()
        blob.parent.mkdir(exist_ok=True)
        blob.write_bytes(data)
        up = "../" * (len(path.relative_to(folder).parts) - 1)
        path.symlink_to(f"{up}blobs/{blob.name}")
        return path

    def ref(self, repository: str, name: str, commit: str) -> None:
        path = self.root / f"models--{repository.replace('/', '--')}" / "refs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(commit)


class LlamaCache:
    """https://github.com/ggml-org/llama.cpp/blob/b6500/common/arg.cpp and `common/download.cpp` after it: one folder,
    files called `ORG_NAME_FILE`, and `manifest=ORG=NAME=TAG.json` with what the Hub said of a tag."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True)

    def file(self, repository: str, file: str, data: bytes) -> Path:
        path = self.root / f"{repository}_{file}".replace("/", "_")
        path.write_bytes(data)
        (self.root / f"{path.name}.etag").write_text('"9a2b"')
        return path

    def manifest(self, repository: str, tag: str, **files: str) -> Path:
        path = self.root / f"manifest={repository.replace('/', '=')}={tag}.json"
        path.write_text(json.dumps({key: {"rfilename": name, "size": 1} for key, name in files.items()}))
        return path
