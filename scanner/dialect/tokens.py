"""Tokens of the template language (`dialect.md` section 2)."""

from __future__ import annotations

from typing import Final, NamedTuple


class Kind:
    """Token kinds. The numbers are those that llama.cpp prints in `Unexpected token: … of type N`.

    Plain integers: looking up a member of an enumeration takes four times as long, and lexer and parser do little else.
    """

    END: Final = 0
    TEXT: Final = 1
    NUMBER: Final = 2
    STRING: Final = 3
    NAME: Final = 4
    ASSIGN: Final = 5
    LEFT_PAREN: Final = 6
    RIGHT_PAREN: Final = 7
    OPEN_STATEMENT: Final = 8
    CLOSE_STATEMENT: Final = 9
    OPEN_EXPRESSION: Final = 10
    CLOSE_EXPRESSION: Final = 11
    LEFT_BRACKET: Final = 12
    RIGHT_BRACKET: Final = 13
    LEFT_BRACE: Final = 14
    RIGHT_BRACE: Final = 15
    COMMA: Final = 16
    DOT: Final = 17
    COLON: Final = 18
    PIPE: Final = 19
    ADDITIVE: Final = 21
    MULTIPLICATIVE: Final = 22
    COMPARISON: Final = 23
    UNARY: Final = 24
    COMMENT: Final = 25


class Token(NamedTuple):
    """One token: `text` is its value (a string's with escapes resolved), `offset` its first byte in the normalised
    source."""

    kind: int
    text: bytes
    offset: int
