"""The source text and places in it (`dialect.md` section 2, `chat.md` section 3 for the excerpt)."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

EXCERPT_BYTES = 40
"""How much of the source llama.cpp shows on either side of an error."""


def normalise(source: bytes) -> bytes:
    """The bytes that the lexer sees: line ends as `\\n`, and one byte less if the original ends in `\\n`."""
    text = source.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return text[:-1] if source.endswith(b"\n") else text


class Lines:
    """The lines of normalised source, to tell places in it."""

    def __init__(self, text: bytes) -> None:
        self.starts = list(accumulate([len(line) + 1 for line in text.split(b"\n")], initial=0))[:-1]
        self.size = len(text)

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column, both from 1, of a byte offset. Columns count bytes, as llama.cpp's do."""
        offset = min(offset, self.size)
        line = bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1] + 1


def excerpt(text: bytes, offset: int) -> str:
    """The source around `offset` as llama.cpp prints it below an error: one line, and a caret under the place."""
    start = max(0, offset - EXCERPT_BYTES)
    shown = text[start : offset + EXCERPT_BYTES].decode("utf-8", "replace").replace("\n", "↵")
    return f"...{shown}...\n{' ' * (offset - start + 3)}^"
