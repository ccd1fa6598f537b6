"""Rendered text in parts, each of which remembers whether it came from the request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scanner.dialect import RenderedPart


def joined_bytes(parts: Iterable[RenderedPart]) -> bytes:
    """The whole text."""
    return b"".join([part.text for part in parts])


def cut(parts: Sequence[RenderedPart], start: int, end: int) -> list[RenderedPart]:
    """The bytes from `start` to `end`, with their origins."""
    kept = []
    at = 0
    for part in parts:
        text = part.text[max(0, start - at) : max(0, end - at)]
        if text:
            kept.append(RenderedPart(text, part.is_input))
        at += len(part.text)
    return kept
