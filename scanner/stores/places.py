"""Where stores are looked for, and the little files in them: nothing here raises for what a disk holds."""

# `os.path` throughout: its questions never raise, whatever the file system says.
# ruff: noqa: PTH112, PTH116, PTH118

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from scanner.stores.store import Found, NotFound

MAX_RECORD_BYTES: Final = 4 * 1024 * 1024
"""A longer manifest or metadata file is not read. A layer of a manifest takes about 200 bytes, so there is room for one
for each of twenty thousand tensors, as some of Ollama's have them."""


class RecordError(Exception):
    """A record of a store cannot be used; the message says why, in words for a list."""


def first_set(environ: Mapping[str, str], *names: str) -> str | None:
    """The value of the first of these variables that is set and not empty."""
    return next((environ[name] for name in names if environ.get(name)), None)


def among(places: Iterable[str]) -> Found | NotFound:
    """Those of these folders that are there."""
    looked = tuple(dict.fromkeys(os.path.abspath(place) for place in places))  # noqa: PTH100 - links stay as they are
    roots = tuple(place for place in looked if os.path.isdir(place))
    if roots:
        return Found(roots)
    reasons = [f"{place}: {_why_none(place)}" for place in looked]
    return NotFound(looked, "; ".join(reasons) or "there is no place to look for it")


def _why_none(place: str) -> str:
    try:
        status = os.stat(place)
    except FileNotFoundError:
        return "does not exist"
    except (OSError, ValueError) as error:
        return (error.strerror if isinstance(error, OSError) else None) or str(error)
    return "cannot be entered" if stat.S_ISDIR(status.st_mode) else "not a folder"


def readable(path: str) -> str:
    """A name with bytes that are not UTF-8 as escapes, so that it can be shown and stored."""
    return os.fsencode(path).decode("utf-8", errors="backslashreplace")


def read_record(path: str, limit: int = MAX_RECORD_BYTES) -> bytes:
    """All bytes of a small file. Raises RecordError where it is none, is too long, or cannot be read."""
    try:
        # Without O_NONBLOCK, opening a FIFO would wait for a writer for ever.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        raise RecordError("does not exist") from None
    except (OSError, ValueError) as error:
        raise RecordError(f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise RecordError("not a regular file")
        if status.st_size > limit:
            raise RecordError(f"limit: {status.st_size:,} bytes, at most {limit:,} are read")
        with os.fdopen(os.dup(descriptor), "rb") as file:
            return file.read(limit)
    except OSError as error:
        raise RecordError(f"cannot be read: {error.strerror or error}") from None
    finally:
        os.close(descriptor)


def read_object(path: str, limit: int = MAX_RECORD_BYTES) -> Mapping[str, object]:
    """The JSON object in a small file. Raises RecordError as `read_record` does, and where it holds none."""
    try:
        value = json.loads(read_record(path, limit).decode("utf-8"))
    except (ValueError, RecursionError, MemoryError):
        # Not UTF-8, not JSON, a number of thousands of digits, or nested too deeply.
        raise RecordError("not JSON") from None
    if not isinstance(value, dict):
        raise RecordError("not a JSON object")
    return value


def tree(root: str) -> Iterator[str]:
    """Every folder and file below `root`, folders before what is in them, by the bytes of the names.

    Links are followed, no folder is entered twice; hidden files and what cannot be listed are left out.
    """
    entered: set[tuple[int, int]] = set()
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        try:
            status = os.stat(folder)
            if (status.st_dev, status.st_ino) in entered:
                continue
            entered.add((status.st_dev, status.st_ino))
            with os.scandir(folder) as listed:
                names = sorted((entry.name for entry in listed), key=os.fsencode)
        except (OSError, ValueError):
            continue
        if folder != root:
            yield folder
        paths = [os.path.join(folder, name) for name in names if not name.startswith(".")]
        folders = {path for path in paths if os.path.isdir(path)}
        yield from (path for path in paths if path not in folders)
        waiting += [path for path in reversed(paths) if path in folders]


def folders_in(root: str) -> list[str]:
    """The names of the folders in `root`, by their bytes; none where it cannot be listed."""
    try:
        with os.scandir(root) as listed:
            return sorted((entry.name for entry in listed if entry.is_dir()), key=os.fsencode)
    except OSError:
        return []
