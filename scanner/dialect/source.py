"""The source text and places in it (`dialect.md` section 2, `chat.md` section 3 for the excerpt)."""

from __future__ import annotations

EXCERPT_BYTES = 40
"""How much of the source llama.cpp shows on either side of an error."""


def normalise(source: bytes) -> bytes:
    """The bytes that the lexer sees: line ends as `\\n`, and one byte less if the original ends in `\\n`."""
    text = source.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return text[:-1] if source.endswith(b"\n") else text


def place(text: bytes, offset: int) -> tuple[int, int]:
    """Line and column, both from 1, of a byte offset into normalised source. Columns count bytes, as llama.cpp's do."""
    before = text[:offset]
    return before.count(b"\n") + 1, len(before) - (before.rfind(b"\n") + 1) + 1


def excerpt(text: bytes, offset: int) -> str:
    """The source around `offset` as llama.cpp prints it below an error: one line, and a caret under the place."""
    start = max(0, offset - EXCERPT_BYTES)
    shown = text[start : offset + EXCERPT_BYTES].decode("utf-8", "replace").replace("\n", "↵")
    return f"...{shown}...\n{' ' * (offset - start + 3)}^"
