"""One child process and its two pipes: lines out, lines in, each waited for until a deadline."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import time
from typing import IO, cast

_CHUNK = 1 << 16
_PASSED_ON = ("LD_LIBRARY_PATH", "PYTHONHOME", "TZ")
"""All that the child sees of this process's environment, besides where modules are found."""


class ChildEndedError(Exception):
    """The child is no more; its text says how it ended."""


class Child:
    """A running `python -m MODULE ARGUMENTS…`, to be ended by `end`."""

    def __init__(self, module: str, *arguments: str) -> None:
        # -P: the working directory may hold hostile files with the names of modules.
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-P", "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env=_surroundings(),
        )
        self._stdin = cast(IO[bytes], self._process.stdin)
        self._stdout = cast(IO[bytes], self._process.stdout)
        self._poll = select.poll()
        self._poll.register(self._stdout, select.POLLIN)
        self._unread = bytearray()

    @property
    def alive(self) -> bool:
        """It has not ended yet."""
        return self._process.poll() is None

    def send(self, line: bytes) -> None:
        """Hand over one line. A child that has ended is noticed by `receive`."""
        unsent = memoryview(line)
        with contextlib.suppress(BrokenPipeError):
            while unsent:
                unsent = unsent[os.write(self._stdin.fileno(), unsent) :]

    def receive(self, deadline: float) -> bytes:
        """The child's next line. Raises TimeoutError at the deadline (of `time.monotonic`), or ChildEndedError."""
        searched = 0
        while (end := self._unread.find(b"\n", searched)) < 0:
            searched = len(self._unread)
            self._unread += self._read(deadline)
        line = bytes(self._unread[: end + 1])
        del self._unread[: end + 1]
        return line

    def end(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait()
        self._stdin.close()
        self._stdout.close()

    def _read(self, deadline: float) -> bytes:
        if not self._poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            raise TimeoutError
        chunk = os.read(self._stdout.fileno(), _CHUNK)
        if not chunk:
            raise self._ended()
        return chunk

    def _ended(self) -> ChildEndedError:
        code = self._process.wait()
        return ChildEndedError(f"signal {-code}" if code < 0 else f"exit code {code}")


def _surroundings() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return {**kept, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
