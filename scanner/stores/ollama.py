"""Ollama: manifests by name, and blobs by digest.

Layout, as Ollama's source has it (https://github.com/ollama/ollama/blob/main/manifest/paths.go and `manifest.go` beside
it, names in `types/model/name.go`; where models are: https://docs.ollama.com/faq#where-are-models-stored):

- `manifests/HOST/NAMESPACE/MODEL/TAG` and, from 0.40 on, `manifests-v2/` with `ollama.com` for `registry.ollama.ai`
  and files that are links to a blob; where both have a name, the newer one counts. Some have a kind (`skill`, `agent`,
  `mcp`) between namespace and model.
- A manifest is JSON: `layers` with `mediaType` (`application/vnd.ollama.image.model`, `.projector`, `.adapter`,
  `.template`, …) and `digest`; or a list of `manifests`, one for each runner, whole or by their digest.
- `blobs/sha256-HEX`; `sha256:HEX` in older stores.

A host that is not Ollama's own belongs to the name it shows: `hf.co/ORG/REPOSITORY:QUANTIZATION`.
"""

# `os.path` throughout: its questions never raise, whatever the file system says.
# ruff: noqa: PTH112, PTH113, PTH118

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from scanner.results import ModelName, PassedOver
from scanner.stores.places import RecordError, among, first_set, read_object, readable, tree
from scanner.stores.store import Entry, Found, NotFound

MANIFESTS: Final = ("manifests-v2", "manifests")
"""The folders of manifests, the one that counts first."""
BLOBS: Final = "blobs"

SERVICE_ROOTS: Final = ("/usr/share/ollama/.ollama/models", "/var/lib/ollama/models")
"""Where the service keeps models: as Ollama's installer sets it up, and as NixOS does
(https://github.com/NixOS/nixpkgs/blob/master/nixos/modules/services/misc/ollama.nix)."""

_MEDIA_TYPE: Final = "application/vnd.ollama.image."
PARTS: Final = (" (projector)", " (adapter)")
"""What stands behind a model's name in those of files that belong to it."""

MAX_FILES: Final = 64
"""Files and templates of one manifest, and manifests in a list; one with more is not used."""

_ROLES: Final = dict(zip(("model", "projector", "adapter"), ("", *PARTS), strict=True))
"""Kinds of layers that are files of their own, and what their names have behind them."""
_TEMPLATES: Final = ("template", "prompt")
_DIGEST: Final = re.compile(r"sha256[:-]([0-9a-fA-F]{64})")
_HOST: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,349}")
_NAMESPACE: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,79}")
_PART: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}")
_KINDS: Final = ("agent", "mcp", "skill")
_PUBLIC: Final = ("registry.ollama.ai", "ollama.com")
_HUGGING_FACE: Final = ("hf.co", "huggingface.co")
_OTHER_RUNNERS: Final = ("mlx",)
"""Runners whose models are not GGUF."""


class Ollama:
    """The store of Ollama."""

    slug = "ollama"

    def found(self, environ: Mapping[str, str], home: Path) -> Found | NotFound:
        """`$OLLAMA_MODELS`; without it the person's own models and the service's."""
        given = first_set(environ, "OLLAMA_MODELS")
        return among((given,) if given else (str(home / ".ollama" / "models"), *SERVICE_ROOTS))

    def is_root(self, path: str, names: Collection[str]) -> bool:  # noqa: ARG002 - the interface
        """Whether there are blobs beside manifests."""
        return BLOBS in names and not set(MANIFESTS).isdisjoint(names)

    def entries(self, root: str) -> Iterator[Entry | PassedOver]:
        """The blobs that manifests name, by path, behind the manifests that cannot be used."""
        reader = _Reader(root)
        for path, name in _manifests(root):
            if name is None:
                yield PassedOver(readable(path), "not a manifest: its path is no name that Ollama knows")
                continue
            try:
                yield from (PassedOver(readable(path), f"{name.name}: {reason}") for reason in reader.take(path, name))
            except RecordError as error:
                yield PassedOver(readable(path), f"{name.name}: its manifest: {error}")
        yield from reader.entries()


@dataclass(slots=True)
class _Blob:
    names: list[ModelName] = field(default_factory=list)
    layers: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Reader:
    """Collects what the manifests of a store say of its blobs."""

    root: str
    blobs: dict[str, _Blob] = field(default_factory=dict)

    def take(self, path: str, name: ModelName) -> Iterator[str]:
        """Read one manifest; gives what is wrong with it. Raises RecordError where it cannot be used at all."""
        layers = list(self._layers(read_object(path)))
        if not any(kind == "model" for kind, _ in layers):
            yield f"it names no model file, only {_listed(kind for kind, _ in layers)}"
        wanted = [(kind, digest) for kind, digest in layers if kind in _ROLES or kind in _TEMPLATES]
        if len(wanted) > MAX_FILES:
            raise RecordError(f"limit: {len(wanted):,} files and templates, at most {MAX_FILES} are looked at")
        there: list[tuple[str, str]] = []
        for kind, digest in wanted:
            try:
                there.append((kind, self._blob(digest)))
            except RecordError as error:
                yield f"its {kind} {error}"
        for kind, blob in there:
            if kind in _ROLES:
                held = self.blobs.setdefault(blob, _Blob())
                held.names.append(replace(name, name=name.name + _ROLES[kind]))
                if kind == "model":
                    held.layers += [one for other, one in there if other in _TEMPLATES and one not in held.layers]

    def entries(self) -> Iterator[Entry]:
        """The blobs with their names, each once."""
        for path, held in sorted(self.blobs.items()):
            # Short names of Ollama's own library before those with a person's or a host's before them.
            names = sorted(set(held.names), key=lambda name: (name.name.count("/"), name.name))
            yield Entry(path, tuple(names), tuple(held.layers))

    def _layers(self, manifest: Mapping[str, object], *, nested: bool = False) -> Iterator[tuple[str, object]]:
        """Kind and digest of every layer that llama.cpp's side of a manifest has."""
        children = manifest.get("manifests")
        if isinstance(children, list) and not nested:
            if len(children) > MAX_FILES:
                raise RecordError(f"limit: a list of {len(children):,} manifests, at most {MAX_FILES} are read")
            for child in children:
                if isinstance(child, dict) and child.get("runner") not in _OTHER_RUNNERS:
                    yield from self._layers(self._whole(child), nested=True)
            return
        layers = manifest.get("layers")
        if not isinstance(layers, list):
            raise RecordError("it has no layers")
        for layer in layers:
            media_type = layer.get("mediaType") if isinstance(layer, dict) else None
            if not isinstance(media_type, str):
                raise RecordError("a layer has no media type")
            yield media_type.removeprefix(_MEDIA_TYPE), layer.get("digest")

    def _whole(self, child: Mapping[str, object]) -> Mapping[str, object]:
        """A manifest of a list, which may stand there by its digest alone."""
        return child if "layers" in child else read_object(self._blob(child.get("digest")))

    def _blob(self, digest: object) -> str:
        """Where a blob is. Raises RecordError where there is none."""
        match = _DIGEST.fullmatch(digest) if isinstance(digest, str) else None
        if match is None:
            raise RecordError("has a digest that is none")
        for separator in "-:":
            path = os.path.join(self.root, BLOBS, f"sha256{separator}{match[1]}")
            if os.path.isfile(path):
                return path
        raise RecordError(f"is missing: there is no blob sha256-{match[1][:12]}…")


def _listed(kinds: Iterable[str]) -> str:
    """Kinds of layers in words; anything may stand there."""
    known = sorted({kind[:40].encode(errors="backslashreplace").decode() for kind in kinds})
    return ", ".join(known[:4]) + (", …" if len(known) > 4 else "") if known else "nothing"


def _manifests(root: str) -> Iterator[tuple[str, ModelName | None]]:
    """Every manifest and its name, None where its path is none; of two with one name the first counts."""
    known: set[str] = set()
    for folder in (os.path.join(root, name) for name in MANIFESTS):
        for path in tree(folder):
            if os.path.isdir(path):
                continue
            name = _name(Path(os.path.relpath(path, folder)).parts)
            if name is None or name.name not in known:
                yield path, name
            if name is not None:
                known.add(name.name)


def _name(parts: Sequence[str]) -> ModelName | None:
    """The name that a manifest's path stands for, as `ollama list` shows it."""
    host, namespace, *kind, model, tag = parts if len(parts) in (4, 5) else ["", "", "", ""]
    # A colon, before a port, is none that every file system allows.
    host = host.replace("%3A", ":")
    valid = (
        _HOST.fullmatch(host)
        and _NAMESPACE.fullmatch(namespace)
        and all(part in _KINDS for part in kind)
        and _PART.fullmatch(model)
        and _PART.fullmatch(tag)
    )
    if not valid:
        return None
    path = "/".join((*kind, model))
    public = host.lower() in _PUBLIC
    shown = path if public and namespace.lower() == "library" else f"{namespace}/{path}"
    name = f"{shown}:{tag}" if public else f"{host}/{shown}:{tag}"
    if host.lower() in _HUGGING_FACE:
        return ModelName("ollama", name, f"{namespace}/{path}", tag)
    return ModelName("ollama", name, f"{_PUBLIC[1] if public else host}/{namespace}/{path}", tag)


OLLAMA: Final = Ollama()
