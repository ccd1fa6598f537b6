"""Rendered text in parts, each of which remembers whether it came from the request, and in bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scanner.dialect import RenderedPart


def joined_bytes(parts: Iterable[RenderedPart]) -> bytes:
    """The whole text."""
    return b"".join([part.text for part in parts])


def cut(parts: Sequence[RenderedPart], start: int, end: int) -> list[RenderedPart]:
    """The bytes from `start` to `end`, with their origins."""
    if start == 0 and end >= sum([len(part.text) for part in parts]):
        return list(parts)
    kept = []
    at = 0
    for part in parts:
        text = part.text[max(0, start - at) : max(0, end - at)]
        if text:
            kept.append(RenderedPart(text, part.is_input))
        at += len(part.text)
    return kept


def common_prefix(one: bytes, other: bytes) -> int:
    """How many bytes two texts share at their start."""
    size = min(len(one), len(other))
    if one[:size] == other[:size]:
        return size
    low, high = 0, size
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle)
    return low
