"""Hostile text made safe to look at: what does not show, or reorders what does, is shown by its name.

Escaping is jinja2's; this is about characters that survive it and deceive the eye, or cannot be written as UTF-8.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from markupsafe import Markup, escape

from scanner.results import Part

_CANDIDATE = re.compile("([^\\x20-\\x7e\n\t])\\1*")
_LINE_ENDS = re.compile("[\n\t]")
_HIDING = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp", "Zs"})
# Drawn as nothing whatever their category says (Unicode's Default_Ignorable_Code_Point), variation selectors among
# them; a blank that is no space; the replacement character, which stands for a lost byte.
_IGNORABLE = (
    *((0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x3164, 0x3164), (0xFE00, 0xFE0F)),
    *((0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)),
)
_ALSO = frozenset("\u2800\ufffd")
_IDEOGRAPHIC_SPACE = "\u3000"
# Never tried again from the middle of a run: a template may print nothing but blanks.
_TRAILING_BLANKS = re.compile(r"(?<![ \t])[ \t]++(?=\r?\n|\Z)")
_MOST_ALIKE = 8
"""Marks of the same character side by side; more are drawn once and counted."""
_LINE_END = '<i class="nl"></i>\n'


def plain(text: str) -> str:
    """One line of text for anywhere on a page, attributes included: `a⟨U+202E⟩b`. Still to be escaped."""
    if text.isascii() and text.isprintable():
        return text
    shown = _CANDIDATE.sub(lambda match: _run(match, _bracketed), text)
    return _LINE_ENDS.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", shown)


def visible(text: str) -> Markup:
    """Text as HTML for the inside of an element, hidden characters as marks; line ends and tabs stay."""
    return Markup(_visible(text))  # noqa: S704 - escaped there


def line(text: str) -> Markup:
    """One line of text as HTML, as `visible`, line ends and tabs as marks too: names that differ must look so."""
    return Markup(_LINE_ENDS.sub(lambda match: _marked(match[0], f"U+{ord(match[0]):04X}"), _visible(text)))  # noqa: S704 - escaped there


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
    cuts = deque(sorted({edge for span in blanks for edge in span}))
    starts = {start for start, _end in blanks}
    inside = False
    offset = 0
    for part in parts:
        end = offset + len(part.text)
        while offset < end:
            if cuts and cuts[0] == offset:
                inside = cuts.popleft() in starts
            stop = min(cuts[0], end) if cuts else end
            yield whole[offset:stop], part.is_input, inside
            offset = stop


def _visible(text: str) -> str:
    """As `visible`. A `Markup` would check every piece that is added to it again, and there are very many."""
    escaped = str(escape(text))
    if escaped.isascii() and escaped.isprintable():
        return escaped
    return _CANDIDATE.sub(lambda match: _run(match, _marked), escaped)


def _run(match: re.Match[str], mark: Callable[[str, str], str]) -> str:
    """A run of one character, as it is where it shows, else marked."""
    name = _name(match[1])
    if name is None:
        return match[0]
    count = len(match[0])
    return mark(match[1], f"{name} times {count:,}") if count > _MOST_ALIKE else mark(match[1], name) * count


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
    ignored = any(first <= code <= last for first, last in _IGNORABLE)
    if hides or ignored or character in _ALSO or 0xFDD0 <= code <= 0xFDEF or code & 0xFFFE == 0xFFFE:
        return f"U+{code:04X}"
    return None


def _bracketed(_character: str, name: str) -> str:
    return f"⟨{name}⟩"


def _marked(character: str, name: str) -> str:
    title = f' title="{unicodedata.name(character, "control character").lower()}"' if name.startswith("U") else ""
    return f'<span class="ctl"{title}>{name}</span>'
