"""The tokens of a JSON text, as llama.cpp's JSON library takes them.

Strict JSON, and three things more: a byte order mark may stand first, a NUL byte outside a string ends the text, and
numbers beyond 64 bits become doubles. Errors say what the library says; all of it was read off the real engine.
"""

from __future__ import annotations

import math
import re
from typing import Final

OPEN_OBJECT, CLOSE_OBJECT, OPEN_ARRAY, CLOSE_ARRAY = "'{'", "'}'", "'['", "']'"
COLON, COMMA = "':'", "','"
STRING, NUMBER, END = "string literal", "number literal", "end of input"
TRUE, FALSE, NULL = "true literal", "false literal", "null literal"
"""The kinds of token, by the names they have in error texts."""

_MARKS: Final = {kind[1].encode(): kind for kind in (OPEN_OBJECT, CLOSE_OBJECT, OPEN_ARRAY, CLOSE_ARRAY, COLON, COMMA)}
_LITERALS: Final = {b"t": (b"true", TRUE, True), b"f": (b"false", FALSE, False), b"n": (b"null", NULL, None)}
_ORDER_MARK: Final = b"\xef\xbb\xbf"
_BLANKS = re.compile(rb"[ \t\n\r]*")
_PLAIN = re.compile(rb'[^"\\\x00-\x1f]*')
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(?P<fraction>\.[0-9]+)?(?P<power>[eE][+-]?[0-9]+)?")
_HEX = re.compile(rb"[0-9a-fA-F]{0,4}")
_ESCAPES: Final = {
    b'"': '"',
    b"\\": "\\",
    b"/": "/",
    b"b": "\b",
    b"f": "\f",
    b"n": "\n",
    b"r": "\r",
    b"t": "\t",
}
_CONTROLS: Final = (
    *("NUL", "SOH", "STX", "ETX", "EOT", "ENQ", "ACK", "BEL", "BS", "HT", "LF", "VT", "FF", "CR", "SO", "SI"),
    *("DLE", "DC1", "DC2", "DC3", "DC4", "NAK", "SYN", "ETB", "CAN", "EM", "SUB", "ESC", "FS", "GS", "RS", "US"),
)
_SHORT: Final = {8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r"}
_HIGH, _LOW = range(0xD800, 0xDC00), range(0xDC00, 0xE000)
# The longest integers that may fit 64 bits, in digits and sign; Python refuses to read very long ones.
_INTEGER_LENGTH: Final = 20
_BAD_HEX: Final = "invalid string: '\\u' must be followed by 4 hex digits"
_BAD_PAIR: Final = "invalid string: surrogate U+D800..U+DBFF must be followed by U+DC00..U+DFFF"


class BadToken(Exception):  # noqa: N818 - on its way to the parser, which knows what was expected there
    """No token stands here; the text says why, in the library's words."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class NumberTooLarge(Exception):  # noqa: N818 - as above
    """A number that no double holds; `text` is how it is written."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class Lexer:
    """Takes one token after the other from `data`.

    `value` is what the last string, number or literal stands for. `position` is how many bytes were read, one more
    than there are after the end of the text was met; it says where an error is.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0
        self.value: object = None
        # What error texts quote as "last read" begins with the last string or number.
        self._quoted_from = 0
        self._before_line_end = False

    def next(self) -> str:
        """The kind of the next token. Raises BadToken and NumberTooLarge."""
        if self.position == 0:
            self._skip_order_mark()
        self._before_line_end = False
        blanks = _BLANKS.match(self.data, self.position)
        start = blanks.end() if blanks else self.position
        char = self.data[start : start + 1]
        self.position = start + 1
        if char in (b"", b"\0"):
            return END
        if char in _MARKS:
            return _MARKS[char]
        if char == b'"':
            return self._string(start)
        if char == b"-" or char.isdigit():
            return self._number(start)
        if char in _LITERALS:
            return self._literal(start, *_LITERALS[char])
        raise BadToken("invalid literal")

    def place(self) -> tuple[int, int]:
        """(line, column) of the last byte read, as the library counts: bytes, and a line end counts as column 0 of
        the line it begins. A number is only known to be whole when the byte behind it was looked at; where that is a
        line end, the column is lost."""
        read = self.data[: self.position]
        line = read.count(b"\n") + 1
        return line, 0 if self._before_line_end else self.position - (read.rfind(b"\n") + 1)

    def last_read(self) -> str:
        """What error texts quote: control characters by number, bytes that are not UTF-8 as U+FFFD."""
        text = self.data[self._quoted_from : self.position].decode("utf-8", "replace")
        return re.sub(r"[\x00-\x1f]", lambda found: f"<U+{ord(found[0]):04X}>", text)

    def _skip_order_mark(self) -> None:
        if not self.data.startswith(_ORDER_MARK[:1]):
            return
        for byte in _ORDER_MARK:
            self.position += 1
            if self.data[self.position - 1 : self.position] != bytes([byte]):
                raise BadToken("invalid BOM; must be 0xEF 0xBB 0xBF if given")

    def _bad(self, position: int, text: str) -> BadToken:
        """An error at the byte before `position`."""
        self.position = position
        return BadToken(text)

    def _literal(self, start: int, word: bytes, kind: str, value: object) -> str:
        for at in range(1, len(word)):
            if self.data[start + at : start + at + 1] != word[at : at + 1]:
                raise self._bad(start + at + 1, "invalid literal")
        self.position = start + len(word)
        self.value = value
        return kind

    # --- numbers ------------------------------------------------------------------------------------------------------

    def _number(self, start: int) -> str:
        self._quoted_from = start
        found = _NUMBER.match(self.data, start)
        if not found:
            raise self._bad(start + 2, "invalid number; expected digit after '-'")
        self._expect_whole(found)
        self.position = found.end()
        self._before_line_end = self.data.startswith(b"\n", found.end())
        text = found[0].decode()
        self.value = _integer(text) if found["fraction"] is None and found["power"] is None else float(text)
        if isinstance(self.value, float) and math.isinf(self.value):
            raise NumberTooLarge(text)
        return NUMBER

    def _expect_whole(self, found: re.Match[bytes]) -> None:
        """Nothing may follow that begins a further part of the number and does not go on with it."""
        end = found.end()
        behind = self.data[end : end + 1]
        if behind == b"." and found["fraction"] is None and found["power"] is None:
            raise self._bad(end + 2, "invalid number; expected digit after '.'")
        if behind in (b"e", b"E") and found["power"] is None:
            if self.data[end + 1 : end + 2] in (b"+", b"-"):
                raise self._bad(end + 3, "invalid number; expected digit after exponent sign")
            raise self._bad(end + 2, "invalid number; expected '+', '-', or digit after exponent")

    # --- strings ------------------------------------------------------------------------------------------------------

    def _string(self, start: int) -> str:
        self._quoted_from = start
        pieces: list[str] = []
        at = start + 1
        while True:
            plain = _PLAIN.match(self.data, at)
            end = plain.end() if plain else at
            pieces.append(self._plain(at, end))
            char = self.data[end : end + 1]
            if char == b'"':
                break
            if char != b"\\":
                raise self._bad(end + 1, _unfinished(char))
            piece, at = self._escape(end)
            pieces.append(piece)
        self.position = end + 1
        self.value = "".join(pieces)
        return STRING

    def _plain(self, start: int, end: int) -> str:
        try:
            return self.data[start:end].decode()
        except UnicodeDecodeError as error:
            # Within a sequence the byte that does not belong there has been read as well.
            inside = 0 if error.reason == "invalid start byte" else 1
            raise self._bad(start + error.end + inside, "invalid string: ill-formed UTF-8 byte") from None

    def _escape(self, start: int) -> tuple[str, int]:
        """The text of the escape at `start`, and where it ends."""
        char = self.data[start + 1 : start + 2]
        if char in _ESCAPES:
            return _ESCAPES[char], start + 2
        if char != b"u":
            raise self._bad(start + 2, "invalid string: forbidden character after backslash")
        unit, end = self._unit(start + 2)
        if unit in _LOW:
            raise self._bad(end, "invalid string: surrogate U+DC00..U+DFFF must follow U+D800..U+DBFF")
        return self._pair(unit, end) if unit in _HIGH else (chr(unit), end)

    def _pair(self, high: int, start: int) -> tuple[str, int]:
        """A character outside the basic plane, of which the second half has to be written at `start`."""
        for at, byte in enumerate(b"\\u", start):
            if self.data[at : at + 1] != bytes([byte]):
                raise self._bad(at + 1, _BAD_PAIR)
        low, end = self._unit(start + 2)
        if low not in _LOW:
            raise self._bad(end, _BAD_PAIR)
        return chr(0x10000 + ((high - _HIGH.start) << 10) + (low - _LOW.start)), end

    def _unit(self, start: int) -> tuple[int, int]:
        """Four hexadecimal digits, and where they end."""
        digits = _HEX.match(self.data, start)
        end = digits.end() if digits else start
        if end < start + 4:
            raise self._bad(end + 1, _BAD_HEX)
        return int(self.data[start:end], 16), end


def _integer(text: str) -> int | float:
    """An integer of 64 bits, signed if it has a sign, else a double."""
    if len(text) <= _INTEGER_LENGTH:
        number = int(text)
        if -(2**63) <= number < 2**64:
            return number
    return float(text)


def _unfinished(char: bytes) -> str:
    """Why a string does not go on with this byte (none: the text ends)."""
    if not char:
        return "invalid string: missing closing quote"
    code = ord(char)
    short = f" or {_SHORT[code]}" if code in _SHORT else ""
    return f"invalid string: control character U+{code:04X} ({_CONTROLS[code]}) must be escaped to \\u{code:04X}{short}"
