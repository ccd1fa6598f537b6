"""Source bytes → tokens (`dialect.md` section 2)."""

from __future__ import annotations

import re

from scanner.dialect.errors import SyntaxFault, SyntaxKind
from scanner.dialect.strings import WHITE_SPACE
from scanner.dialect.tokens import Kind, Token

STRIPPED = b" \t\r\n"
"""What a `-` in a tag strips: fewer bytes than white space elsewhere."""

ESCAPES = {
    ord("n"): b"\n",
    ord("t"): b"\t",
    ord("r"): b"\r",
    ord("b"): b"\b",
    ord("f"): b"\f",
    ord("v"): b"\v",
    ord("\\"): b"\\",
    ord("'"): b"'",
    ord('"'): b'"',
}

FIXED = {
    b"{%-": Kind.OPEN_STATEMENT,
    b"-%}": Kind.CLOSE_STATEMENT,
    b"{{-": Kind.OPEN_EXPRESSION,
    b"-}}": Kind.CLOSE_EXPRESSION,
    b"{%": Kind.OPEN_STATEMENT,
    b"%}": Kind.CLOSE_STATEMENT,
    b"{{": Kind.OPEN_EXPRESSION,
    b"}}": Kind.CLOSE_EXPRESSION,
    b"(": Kind.LEFT_PAREN,
    b")": Kind.RIGHT_PAREN,
    b"{": Kind.LEFT_BRACE,
    b"}": Kind.RIGHT_BRACE,
    b"[": Kind.LEFT_BRACKET,
    b"]": Kind.RIGHT_BRACKET,
    b",": Kind.COMMA,
    b".": Kind.DOT,
    b":": Kind.COLON,
    b"|": Kind.PIPE,
    b"<=": Kind.COMPARISON,
    b">=": Kind.COMPARISON,
    b"==": Kind.COMPARISON,
    b"!=": Kind.COMPARISON,
    b"<": Kind.COMPARISON,
    b">": Kind.COMPARISON,
    b"+": Kind.ADDITIVE,
    b"-": Kind.ADDITIVE,
    b"~": Kind.ADDITIVE,
    b"*": Kind.MULTIPLICATIVE,
    b"/": Kind.MULTIPLICATIVE,
    b"%": Kind.MULTIPLICATIVE,
    b"=": Kind.ASSIGN,
}

NEXT_TAG = re.compile(rb"\{[%{#]")
IN_TAG = re.compile(
    rb"[ \t\n\v\f\r]*(?:"
    rb"([A-Za-z_][A-Za-z0-9_]*)"
    rb"|'([^'\\]*)'|\"([^\"\\]*)\""
    rb"|([0-9]+(?:\.[0-9]+)?)"
    rb"|(\{%-|-%\}|\{\{-|-\}\}|\{%|%\}|\{\{|\}\}|[(){}\[\],.:|]|[<>=!]=|[<>~*/%=])"
    rb"|([+-])"
    rb"|(['\"])"
    rb")"
)
NAME, SINGLE_QUOTED, DOUBLE_QUOTED, NUMBER, FIXED_TOKEN, SIGN, OPEN_QUOTE = range(1, 8)

NAME_KIND, STRING_KIND = Kind.NAME, Kind.STRING
BRACES = frozenset({Kind.LEFT_BRACE, Kind.RIGHT_BRACE})
CLOSING = frozenset({Kind.CLOSE_EXPRESSION, Kind.CLOSE_STATEMENT})

SIGNED_DIGITS = re.compile(rb"[+-][0-9]+(?:\.[0-9]+)?")
ENDS_OPERAND = frozenset({Kind.NAME, Kind.NUMBER, Kind.STRING, Kind.RIGHT_PAREN, Kind.RIGHT_BRACKET})
"""A sign after one of these is a binary operator."""


def tokenise(text: bytes) -> list[Token]:
    """The tokens of normalised source, without an end token. Raises `SyntaxFault` (kind `lexer`)."""
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        position = _read_text(text, position, tokens)
        if text.startswith(b"{#", position):
            position = _read_comment(text, position, tokens)
        elif position < len(text):
            position = _read_tag(text, position, tokens)
    return tokens


def _read_text(text: bytes, start: int, tokens: list[Token]) -> int:
    """Append the text token that starts at `start`, if any is left of it; gives the offset of the next tag."""
    tag = NEXT_TAG.search(text, start)
    end = tag.start() if tag else len(text)
    first, last = start, end
    if tag and tag.group() != b"{{":
        last = _strip_blanks_before_block(text, start, end)
    if start > 3:
        if text[start - 2 : start] in (b"%}", b"#}", b"-}") and first < last and text[first] == 0x0A:
            first += 1
        if text[start - 3 : start] in (b"-%}", b"-}}", b"-#}"):
            while first < last and text[first] in STRIPPED:
                first += 1
    if tag and text[end + 2 : end + 3] == b"-":
        while first < last and text[last - 1] in STRIPPED:
            last -= 1
    if first < last:
        tokens.append(Token(Kind.TEXT, text[first:last], start))
    return end


def _strip_blanks_before_block(text: bytes, start: int, end: int) -> int:
    """Where text that ends before a block tag or comment stops once the blanks of the tag's own line are dropped."""
    last = end
    while last > start and text[last - 1] in WHITE_SPACE and text[last - 1] != 0x0A:
        last -= 1
    # llama.cpp's scan stops at the first byte of the source without looking at it, and drops that byte as well.
    if start == 0 and last <= 1:
        return 0
    if last > start and text[last - 1] == 0x0A:
        return last
    return end


def _read_comment(text: bytes, start: int, tokens: list[Token]) -> int:
    close = text.find(b"#}", start + 2)
    if close < 0:
        raise SyntaxFault(SyntaxKind.LEXER, "lexer: missing end of comment tag", start + 2, excerpt=True)
    tokens.append(Token(Kind.COMMENT, text[start + 2 : close], start))
    return close + 2


def _read_tag(text: bytes, start: int, tokens: list[Token]) -> int:
    """Append the tokens of one tag, from its opening to its closing token; gives the offset behind it."""
    opening = text[start : start + 3] if text[start + 2 : start + 3] == b"-" else text[start : start + 2]
    tokens.append(Token(FIXED[opening], opening, start))
    position = start + len(opening)
    if text[position : position + 1] == b"-":
        position += 1
    open_braces = 0
    match_token = IN_TAG.match
    append = tokens.append
    make = tuple.__new__  # half the time of Token(…), which checks what is known to be right
    while found := match_token(text, position):
        group = found.lastindex or 0
        word = found[group]
        position = found.end()
        begin = position - len(word)
        if group == NAME:
            append(make(Token, (NAME_KIND, word, begin)))
        elif group == FIXED_TOKEN:
            if open_braces and word == b"}}":
                word, position = b"}", begin + 1
            kind = FIXED[word]
            append(make(Token, (kind, word, begin)))
            if kind in BRACES:
                open_braces += 1 if kind == Kind.LEFT_BRACE else -1
            elif kind in CLOSING:
                return position
        elif group <= DOUBLE_QUOTED:
            append(make(Token, (STRING_KIND, word, begin - 2)))
        elif group == NUMBER:
            append(make(Token, (Kind.NUMBER, word, begin)))
        elif group == SIGN:
            token = _read_sign(text, begin, tokens[-1].kind)
            append(token)
            position = begin + len(token.text)
        else:
            value, position = _read_string(text, begin)
            append(make(Token, (STRING_KIND, value, begin)))
    return _expect_end(text, position)


def _read_sign(text: bytes, begin: int, previous: int) -> Token:
    if previous in ENDS_OPERAND:
        return Token(Kind.ADDITIVE, text[begin : begin + 1], begin)
    if signed := SIGNED_DIGITS.match(text, begin):
        return Token(Kind.NUMBER, signed.group(), begin)
    return Token(Kind.UNARY, text[begin : begin + 1], begin)


def _read_string(text: bytes, begin: int) -> tuple[bytes, int]:
    """The value of a string with escapes, and the offset behind its closing quote."""
    quote = text[begin]
    value = bytearray()
    position = begin + 1
    while position < len(text):
        byte = text[position]
        position += 1
        if byte == quote:
            return bytes(value), position
        if byte != 0x5C:
            value.append(byte)
        elif position < len(text):
            escaped = text[position]
            position += 1
            if escaped not in ESCAPES:
                name = chr(escaped) if escaped < 0x80 else "\ufffd"
                message = f"lexer: unknown escape character \\{name}"
                raise SyntaxFault(SyntaxKind.LEXER, message, position, excerpt=True)
            value += ESCAPES[escaped]
        else:
            message = "lexer: unexpected end of input after escape character"
            raise SyntaxFault(SyntaxKind.LEXER, message, position, excerpt=True)
    message = "lexer: unexpected end of input during consume_while"
    raise SyntaxFault(SyntaxKind.LEXER, message, len(text) + 1, excerpt=True)


def _expect_end(text: bytes, position: int) -> int:
    """No token starts at `position`: that is the end of the source, or an error."""
    while position < len(text) and text[position] in WHITE_SPACE:
        position += 1
    if position == len(text):
        return position
    name = chr(text[position]) if text[position] < 0x80 else "\ufffd"
    raise SyntaxFault(SyntaxKind.LEXER, f"lexer: unexpected character: {name}", position, excerpt=True)
