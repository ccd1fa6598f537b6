"""JSON as llama.cpp's JSON library reads and writes it: what is JSON at all, what becomes of numbers, how a value is
written, and the words of an error. Read off the real engine, and held against it (`tests/cases/json_texts.jsonl`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from scanner.chat import json_lexer as lexer
from scanner.chat.json_lexer import BadToken, Lexer, NumberTooLarge
from scanner.chat.json_numbers import float_text

MAX_DEPTH = 200
"""How deep arrays and objects may nest, here and in a template. llama.cpp has no such limit."""

_OPENERS = {lexer.OPEN_OBJECT, lexer.OPEN_ARRAY}
_SCALARS = {lexer.STRING, lexer.NUMBER, lexer.TRUE, lexer.FALSE, lexer.NULL}
_A_VALUE = "'[', '{', or a literal"
_SYNTAX = "[json.exception.parse_error.101] parse error at line {}, column {}: "
_EMPTY = "attempting to parse an empty input; check that your input string or stream contains the expected JSON"
_TO_ESCAPE = re.compile(r'["\\\x00-\x1f]')
_SHORT_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


class JsonTextError(Exception):
    """A text is not JSON, or a value has no JSON text.

    `message` is what the library says, kind and place included. `ours`: it may be JSON all the same, but goes beyond
    a limit of Capscan's own; the message then says so.
    """

    def __init__(self, message: str, *, ours: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.ours = ours


def parse_json(text: bytes | str) -> Any:
    """The value of a JSON text. Raises JsonTextError, and nothing else.

    Integers that fit 64 bits (unsigned ones up to 2^64-1) become `int`, all other numbers `float`. Of keys that stand
    twice the last value counts, at the first one's place. Lone surrogates in a `str` stand for the bytes they escape.
    """
    return Parser(_bytes(text)).document()


def dump_json(value: Any, *, indent: int | None = None) -> str:
    """The JSON text of a value: compact, or with `indent` blanks a level; keys in their order, nothing escaped that
    need not be. Raises JsonTextError for what is not JSON."""
    pieces: list[str] = []
    Writer(pieces, indent).write(value, 0)
    return "".join(pieces)


def is_unicode(text: str) -> bool:
    """Whether a text holds no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _bytes(text: bytes | str) -> bytes:
    if isinstance(text, bytes):
        return text
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def _too_deep() -> JsonTextError:
    return JsonTextError(f"JSON nested deeper than {MAX_DEPTH} levels (a limit of Capscan's own)", ours=True)


class Parser:
    """Builds the value of one JSON text. Without recursion: a text may be nested as deep as it is long."""

    def __init__(self, data: bytes) -> None:
        self.lexer = Lexer(data)
        self.root: Any = None
        # The containers that are not closed yet, the innermost last.
        self.open: list[Any] = []
        # The key that the next value of the innermost object belongs to.
        self.key = ""

    def document(self) -> Any:
        """One value and nothing behind it."""
        self._value(self._take("value"))
        while self.open:
            innermost = self.open[-1]
            if isinstance(innermost, list):
                self._in_array(innermost)
            else:
                self._in_object(innermost)
        kind = self._take("value", lexer.END)
        if kind != lexer.END:
            raise self._unexpected(kind, "value", lexer.END)
        return self.root

    def _in_array(self, array: list[Any]) -> None:
        if not array:
            kind = self._take("value")
            if kind == lexer.CLOSE_ARRAY:
                self.open.pop()
            else:
                self._value(kind)
            return
        kind = self._take("array", lexer.CLOSE_ARRAY)
        if kind == lexer.COMMA:
            self._value(self._take("value"))
        elif kind == lexer.CLOSE_ARRAY:
            self.open.pop()
        else:
            raise self._unexpected(kind, "array", lexer.CLOSE_ARRAY)

    def _in_object(self, entries: dict[str, Any]) -> None:
        if not entries:
            kind = self._take("object key", lexer.STRING)
            if kind == lexer.CLOSE_OBJECT:
                self.open.pop()
            else:
                self._entry(kind)
            return
        kind = self._take("object", lexer.CLOSE_OBJECT)
        if kind == lexer.COMMA:
            self._entry(self._take("object key", lexer.STRING))
        elif kind == lexer.CLOSE_OBJECT:
            self.open.pop()
        else:
            raise self._unexpected(kind, "object", lexer.CLOSE_OBJECT)

    def _entry(self, kind: str) -> None:
        if kind != lexer.STRING:
            raise self._unexpected(kind, "object key", lexer.STRING)
        self.key = str(self.lexer.value)
        separator = self._take("object separator", lexer.COLON)
        if separator != lexer.COLON:
            raise self._unexpected(separator, "object separator", lexer.COLON)
        self._value(self._take("value"))

    def _value(self, kind: str) -> None:
        if kind in _SCALARS:
            self._store(self.lexer.value)
        elif kind in _OPENERS:
            if len(self.open) >= MAX_DEPTH:
                raise _too_deep()
            container: Any = {} if kind == lexer.OPEN_OBJECT else []
            self._store(container)
            self.open.append(container)
        else:
            raise self._unexpected(kind, "value", _A_VALUE)

    def _store(self, value: Any) -> None:
        if not self.open:
            self.root = value
        elif isinstance(self.open[-1], list):
            self.open[-1].append(value)
        else:
            self.open[-1][self.key] = value

    def _take(self, context: str, expected: str | None = None) -> str:
        """The next token's kind, in this context and with this one expected (None: any value)."""
        try:
            return self.lexer.next()
        except BadToken as error:
            hint = f"; expected {expected}" if expected else ""
            raise self._syntax_error(context, f"{error.text}; last read: '{self.lexer.last_read()}'{hint}") from None
        except NumberTooLarge as error:
            # The library looks at the number only where one may stand.
            if context == "value" and expected is None:
                message = f"[json.exception.out_of_range.406] number overflow parsing '{error.text}'"
                raise JsonTextError(message) from None
            return lexer.NUMBER

    def _unexpected(self, kind: str, context: str, expected: str) -> JsonTextError:
        if kind == lexer.END and self.lexer.position == 1:
            return JsonTextError(_SYNTAX.format(1, 1) + _EMPTY)
        return self._syntax_error(context, f"unexpected {kind}; expected {expected}")

    def _syntax_error(self, context: str, detail: str) -> JsonTextError:
        place = _SYNTAX.format(*self.lexer.place())
        return JsonTextError(f"{place}syntax error while parsing {context} - {detail}")


class Writer:
    """Appends the JSON text of values to `pieces`."""

    def __init__(self, pieces: list[str], indent: int | None) -> None:
        self.pieces = pieces
        self.indent = indent
        self.colon = ":" if indent is None else ": "

    def write(self, value: Any, depth: int) -> None:
        """Write a value that stands `depth` levels deep."""
        if isinstance(value, Mapping):
            entries = [(_string(key) + self.colon, item) for key, item in value.items()]
            self._container("{", "}", entries, depth)
        elif isinstance(value, list | tuple):
            self._container("[", "]", [("", item) for item in value], depth)
        else:
            self.pieces.append(_scalar(value))

    def _container(self, opening: str, closing: str, entries: Iterable[tuple[str, Any]], depth: int) -> None:
        if depth >= MAX_DEPTH:
            raise _too_deep()
        self.pieces.append(opening)
        separator = ""
        for label, item in entries:
            self.pieces += [separator, self._new_line(depth + 1), label]
            self.write(item, depth + 1)
            separator = ","
        self.pieces.append(self._new_line(depth) if separator else "")
        self.pieces.append(closing)

    def _new_line(self, depth: int) -> str:
        return "" if self.indent is None else "\n" + " " * (self.indent * depth)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return _string(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return _integer(value)
    if isinstance(value, float):
        return float_text(value)
    raise JsonTextError(f"not a JSON value: {type(value).__name__}", ours=True)


def _integer(number: int) -> str:
    """An integer beyond 64 bits is a double there."""
    if -(2**63) <= number < 2**64:
        return str(int(number))
    try:
        return float_text(float(number))
    except OverflowError:
        raise JsonTextError("not a JSON value: an integer that no double holds", ours=True) from None


def _string(text: Any) -> str:
    if not isinstance(text, str):
        raise JsonTextError(f"not the key of a JSON object: {type(text).__name__}", ours=True)
    if not is_unicode(text):
        raise JsonTextError("not a JSON value: a lone surrogate in a string", ours=True)
    return '"' + _TO_ESCAPE.sub(_escaped, text) + '"'


def _escaped(found: re.Match[str]) -> str:
    return _SHORT_ESCAPES.get(found[0]) or f"\\u{ord(found[0]):04x}"
