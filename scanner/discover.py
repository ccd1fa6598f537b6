"""What is there: from the paths a person gives to an ordered stream of model files. Nothing is parsed here."""

# `os.path` throughout: it keeps a path as it was given, and its questions never raise, whatever the file system says.
# ruff: noqa: PTH100, PTH112, PTH113, PTH114, PTH116, PTH118, PTH122

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from scanner.results import ModelFile, PassedOver, SourceKind
from scanner.shards import join
from scanner.stores import STORES, Entry, StoreSource, store_above, store_at
from scanner.stores.huggingface import HUGGING_FACE

GGUF_MAGIC: Final = b"GGUF"

SHARED_BLOBS: Final = HUGGING_FACE.slug
"""The store whose own `blobs`, where it has any, hold what files of several repositories link to."""

TEMPLATE_FILE: Final = "chat_template.jinja"
TEMPLATE_FOLDER: Final = "additional_chat_templates"
DIRECTORY_MARKS: Final = (TEMPLATE_FILE, "chat_template.json", "tokenizer_config.json", "adapter_config.json")
"""A directory with one of these files, or with TEMPLATE_FOLDER, is a model (or adapter) in the Hugging Face layout."""
DIRECTORY_FILES: Final = (*DIRECTORY_MARKS, "config.json")
"""The files of a model directory that its extraction reads, besides those of TEMPLATE_FOLDER."""

_DATA: Final = (".cfg", ".csv", ".ini", ".json", ".jsonl", ".lock", ".parquet", ".sqlite", ".toml", ".tsv", ".xml")
_TEXTS: Final = (".css", ".htm", ".html", ".ipynb", ".log", ".md", ".pdf", ".rst", ".txt", ".yaml", ".yml")
_CODE: Final = (".bat", ".c", ".cpp", ".h", ".js", ".metadata", ".proto", ".py", ".pyc", ".sh", ".ts")
_PICTURES: Final = (".gif", ".jpeg", ".jpg", ".png", ".svg", ".webp")
_ARCHIVES: Final = (".gz", ".tar", ".xz", ".zip", ".zst")
_WEIGHTS: Final = (".h5", ".msgpack", ".npy", ".npz", ".onnx", ".pt", ".pth", ".safetensors")
_NEVER_GGUF: Final = frozenset((*_DATA, *_TEXTS, *_CODE, *_PICTURES, *_ARCHIVES, *_WEIGHTS))
"""Suffixes of files that a walk does not open to look for the GGUF magic."""

Found = ModelFile | PassedOver


def discover(sources: Sequence[str | Path | StoreSource]) -> Iterator[Found]:
    """Find the model files under `sources`, in their order; directories depth first, by the bytes of the names.

    Out, as a lazy stream: every GGUF file (by its suffix or its first four bytes), every `*.jinja` file, every model
    directory; and what was passed over, with the reason: a path that does not exist, a broken link, a folder that
    cannot be listed or was entered before, anything that is neither file nor directory (which is never opened).
    A file given or linked twice appears once, and so does a split model, whichever of its shards come up. A file given
    directly is always taken. Links are followed. Not looked at in a walk: hidden files, `.git`, and the `blobs` of a
    Hugging Face cache, which its `snapshots` link to.

    A store of models (`scanner.stores`), given as such, as a path, or met on the way, names its files; what is wrong
    with its records is passed over, where its folder comes in the stream.

    Never raises for what it finds. What is remembered: the directories entered, the links taken, the split models, and
    what stores name; no other plain files.
    """
    walk = _Walk()
    yield from join(found for source in sources for found in walk.source(source))


@dataclass(slots=True)
class _Walk:
    entered: set[tuple[int, int]] = field(default_factory=set)
    """Device and inode of every directory entered."""
    claimed: dict[tuple[int, int], set[str]] = field(default_factory=dict)
    """Device and inode to real paths, for files that were given directly or reached by a link."""
    stores: set[str] = field(default_factory=set)
    """The folders of the stores that were met."""
    known: dict[str, Entry] = field(default_factory=dict)
    """By real path, what these stores name."""
    told: set[str] = field(default_factory=set)
    """Paths that stores passed over: why, is said once."""

    def source(self, source: str | Path | StoreSource) -> Iterator[Found]:
        return self.store(source) if isinstance(source, StoreSource) else self.given(str(source))

    def store(self, source: StoreSource) -> Iterator[Found]:
        if not os.path.isdir(source.root):
            yield PassedOver(_printable(str(source)), "there is no such store here")
            return
        yield from self._tell(self._learn(source))
        yield from self._directories(source.root, str(source))

    def given(self, source: str) -> Iterator[Found]:
        try:
            status = os.stat(source)
            # Behind a link, `..` is not what the text of the path says.
            path = os.path.realpath(source) if ".." in Path(source).parts else os.path.abspath(source)
        except (OSError, ValueError) as error:
            yield PassedOver(_printable(source), _why_no_status(source, error))
            return
        above = store_above(path)
        if above is not None:
            # What is wrong elsewhere in that store was not asked for.
            for _ in self._learn(above):
                pass
        if stat.S_ISDIR(status.st_mode):
            yield from self._directories(path, source)
        elif not stat.S_ISREG(status.st_mode):
            yield PassedOver(_printable(path), _special(status))
        elif not _is_text(path):
            yield PassedOver(_printable(path), "its name is not valid UTF-8")
        elif self._claim(path, status):
            kind = SourceKind.JINJA if path.lower().endswith(".jinja") else SourceKind.GGUF
            yield self._named(_model_file(path, source, kind, status))

    def _learn(self, source: StoreSource) -> Iterator[PassedOver]:
        """Ask a store for its names, once; gives what is wrong with its records."""
        if source.root in self.stores:
            return
        self.stores.add(source.root)
        for entry in STORES[source.store].entries(source.root):
            if isinstance(entry, PassedOver):
                yield entry
            else:
                self.known.setdefault(os.path.realpath(entry.path), entry)

    def _tell(self, passed_over: Iterator[PassedOver]) -> Iterator[PassedOver]:
        for passed in passed_over:
            yield passed
            self.told.add(passed.path)

    def _named(self, file: ModelFile) -> ModelFile:
        """The file with what its store says of it."""
        entry = self.known.get(os.path.realpath(file.path)) if self.known else None
        if entry is None:
            return file
        fingerprint = "+".join((file.fingerprint, *map(os.path.basename, entry.layers)))
        return replace(file, names=entry.names, layers=entry.layers, fingerprint=fingerprint)

    def _directories(self, top: str, source: str) -> Iterator[Found]:
        """Walk from `top`, with a stack of our own: a tree may be deeper than Python may recurse."""
        stack: list[Iterator[Found | str]] = [self._directory(top, source)]
        while stack:
            found = next(stack[-1], None)
            if found is None:
                stack.pop()
            elif isinstance(found, str):
                stack.append(self._directory(found, source))
            elif isinstance(found, ModelFile) or found.path not in self.told:
                yield found

    def _directory(self, path: str, source: str) -> Iterator[Found | str]:
        """What one directory holds; its subdirectories as paths, at the place where they are to be entered."""
        try:
            status = os.stat(path)
            if (status.st_dev, status.st_ino) in self.entered:
                yield PassedOver(_printable(path), "a directory already visited, under another path or by a link loop")
                return
            self.entered.add((status.st_dev, status.st_ino))
            with os.scandir(path) as entries:
                names = sorted((entry.name for entry in entries), key=os.fsencode)
        except OSError as error:
            yield PassedOver(_printable(path), f"the folder cannot be listed: {_words(error)}")
            return
        if not _is_text(path):
            yield PassedOver(_printable(path), "its name is not valid UTF-8")
            return
        store = store_at(path, names)
        if store is not None:
            yield from self._tell(self._learn(store))
        is_model = _is_model_directory(path)
        if is_model:
            yield self._named(_model_directory(path, source))
        for name in names:
            # What repositories of a cache share is reached through their snapshots.
            if not (name == "blobs" and store is not None and store.store == SHARED_BLOBS):
                yield from self._entry(path, name, source, is_model)

    def _entry(self, folder: str, name: str, source: str, in_model: bool) -> Iterator[Found | str]:
        path = os.path.join(folder, name)
        try:
            own = os.lstat(path)
            is_link = stat.S_ISLNK(own.st_mode)
            status = os.stat(path) if is_link else own
        except OSError as error:
            yield PassedOver(_printable(path), _why_no_status(path, error))
            return
        if stat.S_ISDIR(status.st_mode):
            if not _is_left_out(folder, name, in_model):
                yield path
        elif not stat.S_ISREG(status.st_mode):
            yield PassedOver(_printable(path), _special(status))
        elif _may_be_model(name, in_model):
            yield from self._file(path, source, status, is_link)

    def _file(self, path: str, source: str, status: os.stat_result, is_link: bool) -> Iterator[Found]:
        if not self._claim(path, status) if is_link else self._is_claimed(path, status):
            return
        try:
            kind = _kind(path)
        except OSError as error:
            yield PassedOver(_printable(path), f"cannot be read: {_words(error)}")
            return
        if kind is None:
            return
        if _is_text(path):
            yield self._named(_model_file(path, source, kind, status))
        else:
            yield PassedOver(_printable(path), "its name is not valid UTF-8")

    def _claim(self, path: str, status: os.stat_result) -> bool:
        """Take a file that was given or linked; False if it was taken before, or its own directory's walk takes it."""
        if self._is_claimed(path, status) or self._stands_in_a_walk(path):
            return False
        self.claimed.setdefault((status.st_dev, status.st_ino), set()).add(os.path.realpath(path))
        return True

    def _is_claimed(self, path: str, status: os.stat_result) -> bool:
        # The inode alone would take hard links, which are files of their own, for one.
        reals = self.claimed.get((status.st_dev, status.st_ino))
        return reals is not None and os.path.realpath(path) in reals

    def _stands_in_a_walk(self, path: str) -> bool:
        """Whether the real file is one that the walk of its own directory takes, or has taken."""
        real = os.path.realpath(path)
        folder, name = os.path.split(real)
        try:
            status = os.stat(folder)
            if (status.st_dev, status.st_ino) not in self.entered:
                return False
            return _may_be_model(name, _is_model_directory(folder)) and _kind(real) is not None
        except OSError:
            return False


def _is_model_directory(path: str) -> bool:
    if any(os.path.isfile(os.path.join(path, name)) for name in DIRECTORY_MARKS):
        return True
    return os.path.isdir(os.path.join(path, TEMPLATE_FOLDER))


def _is_left_out(folder: str, name: str, in_model: bool) -> bool:
    if name == "blobs":
        return os.path.isdir(os.path.join(folder, "snapshots"))
    return name == ".git" or (in_model and name == TEMPLATE_FOLDER)


def _may_be_model(name: str, in_model: bool) -> bool:
    """Whether a walk looks at a file of this name; `in_model`: it stands in a model directory."""
    if name.startswith("."):
        return False
    suffix = os.path.splitext(name)[1].lower()
    return suffix not in _NEVER_GGUF and not (in_model and name == TEMPLATE_FILE)


def _kind(path: str) -> SourceKind | None:
    """By suffix, else by the first bytes; None: no model file. Raises OSError."""
    if path.lower().endswith(".jinja"):
        return SourceKind.JINJA
    if path.lower().endswith(".gguf"):
        return SourceKind.GGUF
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        return SourceKind.GGUF if os.read(descriptor, len(GGUF_MAGIC)) == GGUF_MAGIC else None
    finally:
        os.close(descriptor)


def _model_file(path: str, source: str, kind: SourceKind, status: os.stat_result) -> ModelFile:
    fingerprint = f"{status.st_size}:{status.st_mtime_ns}:{status.st_ino}"
    return ModelFile(path, _printable(source), kind, status.st_size, status.st_mtime_ns, fingerprint)


def _model_directory(path: str, source: str) -> ModelFile:
    digest = hashlib.sha256()
    size = newest = 0
    for name, status in _files_that_matter(Path(path)):
        digest.update(f"{name}\0{status.st_size}\0{status.st_mtime_ns}\0{status.st_ino}\n".encode(errors="replace"))
        size += status.st_size
        newest = max(newest, status.st_mtime_ns)
    return ModelFile(path, _printable(source), SourceKind.HUGGINGFACE, size, newest, digest.hexdigest())


def _files_that_matter(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    try:
        additional = sorted(each.name for each in (folder / TEMPLATE_FOLDER).iterdir() if each.suffix == ".jinja")
    except OSError:
        additional = []
    for name in (*DIRECTORY_FILES, *(f"{TEMPLATE_FOLDER}/{each}" for each in additional)):
        try:
            yield name, (folder / name).stat()
        except OSError:
            continue


def _why_no_status(path: str, error: OSError | ValueError) -> str:
    if isinstance(error, OSError):
        if error.errno == errno.ELOOP:
            return "a link loop"
        if isinstance(error, FileNotFoundError):
            return "a broken link" if os.path.islink(path) else "does not exist"
    return f"cannot be looked at: {_words(error)}"


def _special(status: os.stat_result) -> str:
    kinds = {stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}
    return f"{kinds.get(stat.S_IFMT(status.st_mode), 'something else')}, neither file nor directory"


def _words(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _is_text(path: str) -> bool:
    return _printable(path) == path


def _printable(path: str) -> str:
    """The path with bytes that are not UTF-8 as escapes, so that it can be shown and stored."""
    return os.fsencode(path).decode("utf-8", errors="backslashreplace")
