"""Tokens of the template language (`dialect.md` section 2)."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class Kind(IntEnum):
    """Token kinds. The numbers are those that llama.cpp prints in `Unexpected token: … of type N`."""

    END = 0
    TEXT = 1
    NUMBER = 2
    STRING = 3
    NAME = 4
    ASSIGN = 5
    LEFT_PAREN = 6
    RIGHT_PAREN = 7
    OPEN_STATEMENT = 8
    CLOSE_STATEMENT = 9
    OPEN_EXPRESSION = 10
    CLOSE_EXPRESSION = 11
    LEFT_BRACKET = 12
    RIGHT_BRACKET = 13
    LEFT_BRACE = 14
    RIGHT_BRACE = 15
    COMMA = 16
    DOT = 17
    COLON = 18
    PIPE = 19
    ADDITIVE = 21
    MULTIPLICATIVE = 22
    COMPARISON = 23
    UNARY = 24
    COMMENT = 25


class Token(NamedTuple):
    """One token: `text` is its value (a string's with escapes resolved), `offset` its first byte in the normalised
    source."""

    kind: Kind
    text: bytes
    offset: int
