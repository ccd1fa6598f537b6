"""Strings: bytes in parts, each of which remembers whether it came from the request (`dialect.md` section 1)."""

from __future__ import annotations

import re
from typing import TypeAlias

WHITE_SPACE = b" \t\n\v\f\r"

Piece: TypeAlias = tuple[bytes, bool]
"""A run of bytes, and whether it came from the request (llama.cpp's `is_input`)."""
Pieces: TypeAlias = tuple[Piece, ...]

WORD_START = re.compile(rb"(\A|[ \t\n\v\f\r])([a-z])")


def text_of(pieces: Pieces) -> bytes:
    """The whole text."""
    if len(pieces) == 1:
        return pieces[0][0]
    return b"".join([piece[0] for piece in pieces])


def from_request(pieces: Pieces) -> bool:
    """Whether every piece came from the request, so that text made of all of them counts as such."""
    return bool(pieces) and all(piece[1] for piece in pieces)


def merged(pieces: list[Piece]) -> list[Piece]:
    """The same text with neighbours of one origin joined."""
    runs: list[tuple[list[bytes], bool]] = []
    for text, is_input in pieces:
        if runs and runs[-1][1] is is_input:
            runs[-1][0].append(text)
        else:
            runs.append(([text], is_input))
    return [(b"".join(texts), is_input) for texts, is_input in runs]


def upper(pieces: Pieces) -> Pieces:
    """ASCII letters in upper case, piece by piece."""
    return tuple([(text.upper(), is_input) for text, is_input in pieces])


def lower(pieces: Pieces) -> Pieces:
    """ASCII letters in lower case, piece by piece."""
    return tuple([(text.lower(), is_input) for text, is_input in pieces])


def capitalize(pieces: Pieces) -> Pieces:
    """The first byte of every piece in upper case, the rest in lower case."""
    return tuple([(text[:1].upper() + text[1:].lower(), is_input) for text, is_input in pieces])


def title(pieces: Pieces) -> Pieces:
    """Words start at a piece's start and after white space only."""
    return tuple([(WORD_START.sub(_raise_letter, text.lower()), is_input) for text, is_input in pieces])


def _raise_letter(found: re.Match[bytes]) -> bytes:
    return found[1] + found[2].upper()


def strip(pieces: Pieces, *, left: bool = True, right: bool = True, characters: bytes = WHITE_SPACE) -> Pieces:
    """Without the given bytes at the ends asked for; pieces that hold nothing else go whole."""
    first, last = 0, len(pieces)
    if left:
        while first < last and not pieces[first][0].lstrip(characters):
            first += 1
    if right:
        while last > first and not pieces[last - 1][0].rstrip(characters):
            last -= 1
    kept = list(pieces[first:last])
    if kept and left:
        kept[0] = (kept[0][0].lstrip(characters), kept[0][1])
    if kept and right:
        kept[-1] = (kept[-1][0].rstrip(characters), kept[-1][1])
    return tuple(kept)


JSON_SPECIAL = re.compile(rb"[\x00-\x1f\"\\]")
JSON_NAMED = {b'"': b'\\"', b"\\": b"\\\\", b"\b": b"\\b", b"\f": b"\\f", b"\n": b"\\n", b"\r": b"\\r", b"\t": b"\\t"}


def json_string(text: bytes) -> bytes:
    """Text as a JSON string: `"`, `\\` and control bytes escaped, all else kept."""
    return b'"' + JSON_SPECIAL.sub(_json_escape, text) + b'"'


def _json_escape(found: re.Match[bytes]) -> bytes:
    return JSON_NAMED.get(found[0]) or b"\\u%04x" % found[0][0]
