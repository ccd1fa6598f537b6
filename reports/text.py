"""Hostile text made safe to look at: what does not show, or reorders what does, is shown by its name.

Escaping is jinja2's; this is about characters that survive it and deceive the eye, or cannot be written as UTF-8.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache

from markupsafe import Markup, escape

from scanner.results import Part

_CANDIDATE = re.compile("[^\\x20-\\x7e\n\t]")
_ASCII_CONTROL_IN_LINE = re.compile("[\n\t]")
_HIDING = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp", "Zs"})
# Letters by their category, but drawn as nothing; the replacement character, which stands for a lost byte.
_ALSO = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\ufffd")
_IDEOGRAPHIC_SPACE = "\u3000"
_TRAILING_BLANKS = re.compile(r"[ \t]+(?=\r?\n|\Z)")
_LINE_END = '<i class="nl"></i>\n'


def plain(text: str) -> str:
    """One line of text for anywhere on a page, attributes included: `a⟨U+202E⟩b`. Still to be escaped."""
    if text.isascii() and text.isprintable():
        return text
    shown = _CANDIDATE.sub(lambda match: _bracketed(match[0]), text)
    return _ASCII_CONTROL_IN_LINE.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", shown)


def visible(text: str) -> Markup:
    """Text as HTML for the inside of an element, hidden characters as marks; line ends and tabs stay."""
    return Markup(_visible(text))  # noqa: S704 - escaped there


def rendered(parts: Iterable[Part]) -> Markup:
    """A prompt as HTML: the request's own text in `<mark>`, blanks at the ends of lines and the line ends marked."""
    shown = []
    for piece, is_input, blank in _pieces(tuple(parts)):
        html = _blanks(piece) if blank else _visible(piece).replace("\n", _LINE_END)
        shown.append(f'<mark title="from the request">{html}</mark>' if is_input else html)
    return Markup("".join(shown))  # noqa: S704 - every piece was escaped


def ticked(text: str) -> Markup:
    """A text of our own as HTML: what stands in backticks is code."""
    pieces = visible(text).split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(piece) if place % 2 else piece for place, piece in enumerate(pieces)
    )


def pretty(data: object) -> Markup:
    """Data as indented JSON in its own order, as HTML for the inside of an element."""
    return _indented(json.dumps(data))


@lru_cache(maxsize=256)
def _indented(compact: str) -> Markup:
    # Every template is sent the same few conversations.
    return visible(json.dumps(json.loads(compact), indent=2, ensure_ascii=False))


def _pieces(parts: tuple[Part, ...]) -> Iterator[tuple[str, bool, bool]]:
    """Text, whether it is input, whether it is trailing blanks. A line may end in another part than it began in."""
    whole = "".join(part.text for part in parts)
    blanks = [match.span() for match in _TRAILING_BLANKS.finditer(whole)]
    cuts = sorted({edge for span in blanks for edge in span})
    starts = {start for start, _end in blanks}
    inside = False
    offset = 0
    for part in parts:
        end = offset + len(part.text)
        while offset < end:
            if cuts and cuts[0] == offset:
                inside = cuts.pop(0) in starts
            stop = min(cuts[0], end) if cuts else end
            yield whole[offset:stop], part.is_input, inside
            offset = stop


def _visible(text: str) -> str:
    """As `visible`. A `Markup` would check every piece that is added to it again, and there are very many."""
    escaped = str(escape(text))
    if escaped.isascii() and escaped.isprintable():
        return escaped
    return _CANDIDATE.sub(lambda match: _marked(match[0]), escaped)


def _blanks(blanks: str) -> str:
    return f'<span class="ws" title="{_counted(blanks)} at the end of the line">{blanks}</span>'


def _counted(blanks: str) -> str:
    return f"{len(blanks)} blank{'' if len(blanks) == 1 else 's'}"


@lru_cache(maxsize=4096)
def _name(character: str) -> str | None:
    """What to call a character that would not show as itself; None for one that does."""
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        return f"byte {code - 0xDC00:02X}"
    hides = unicodedata.category(character) in _HIDING and character != _IDEOGRAPHIC_SPACE
    if hides or character in _ALSO or 0xFDD0 <= code <= 0xFDEF or code & 0xFFFE == 0xFFFE:
        return f"U+{code:04X}"
    return None


def _bracketed(character: str) -> str:
    name = _name(character)
    return character if name is None else f"⟨{name}⟩"


def _marked(character: str) -> str:
    name = _name(character)
    if name is None:
        return character
    title = f' title="{unicodedata.name(character, "control character").lower()}"' if name.startswith("U") else ""
    return f'<span class="ctl"{title}>{name}</span>'
