"""Bytes at an offset: the only thing the extractors ask of where a file is kept.

No extractor opens a file in another way (a test holds that), and none reads one to its end: GGUF headers go through
`RangeReader.read` in chunks, with every length checked against `size` before; the small files of a model directory
(JSON, templates) through `read_whole`, which refuses a longer one than its caller allows. So a source of another kind,
`https://` with range requests or `hf://`, needs a `RangeReader` of its own, and for directories and the other shards of
a split model a way to name what stands beside a file; nothing of the readers changes.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from scanner.errors import UnreadableError


class RangeReader(Protocol):
    """A source of bytes with random access: a local file, or (later) a remote one."""

    @property
    def size(self) -> int:
        """The length of the whole source, in bytes."""
        ...

    def read(self, offset: int, length: int) -> bytes:
        """The `length` bytes at `offset`; fewer only where the source ends."""
        ...


class LocalFile:
    """A regular file as a `RangeReader`. Raises OSError as `open` does, UnreadableError for anything but a file."""

    def __init__(self, path: Path) -> None:
        # Without O_NONBLOCK, opening a FIFO that took the place of a file would wait for a writer for ever.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(descriptor)
            raise UnreadableError(f"{path.name}: expected a regular file", expected="a regular file")
        self._size = status.st_size
        self._file = open(descriptor, "rb", buffering=0)  # noqa: PTH123, SIM115 - closed by close()

    @property
    def size(self) -> int:
        return self._size

    def read(self, offset: int, length: int) -> bytes:
        self._file.seek(offset)
        data = self._file.read(length)
        while len(data) < length and (more := self._file.read(length - len(data))):
            data += more
        return data

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_whole(path: Path, limit: int) -> bytes:
    """All bytes of a file of at most `limit` bytes.

    Raises UnreadableError for a longer one, before anything of it is read, and OSError as `open` does.
    """
    with LocalFile(path) as file:
        if file.size > limit:
            raise UnreadableError(
                f"{path.name}: limit: {file.size} bytes, at most {limit} are read", expected=f"at most {limit} bytes"
            )
        return file.read(0, file.size)
