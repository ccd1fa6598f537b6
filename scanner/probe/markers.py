"""Marker texts, and whether a rendered text shows one (`behaviours.md` section 1)."""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache

PREFIX = "CAPSCAN"
GAP = r"[^a-z0-9]{0,3}"
"""What may stand for the underscore of a marker: an escape, a blank, a hyphen."""
QUOTE = r"""\\*(?:["']|&#?\w{1,4};)"""
"""A quote, perhaps escaped for a JSON string or for HTML."""
DUMPED = re.compile(rf"{QUOTE}text{QUOTE}\s*:\s*{QUOTE}\Z", re.IGNORECASE)
"""What stands before the text of a message part that was printed as data, in JSON or in Python's notation."""
DUMP_ROOM = 40
"""How far back such a beginning may lie."""
PYTHON_KEY_BEFORE, PYTHON_KEY_AFTER = re.compile(r"'\Z"), re.compile(r"'\s*:")


class Sight(IntEnum):
    """How a marker stands in a text, in rising order of what that is worth."""

    ABSENT = 0
    DUMPED = 1
    PYTHON_KEY = 2
    PRINTED = 3


def marker(word: str) -> str:
    """The marker text of a word. No template holds one, and none of those in use begins another."""
    return f"{PREFIX}_{word}"


@lru_cache(maxsize=64)
def pattern(text: str) -> re.Pattern[str]:
    """Finds a marker in a text, whatever its letters' case and however its underscores are written: a template that
    prints in lower case, or escapes for Markdown, does print it."""
    return re.compile(GAP.join(text.split("_")), re.IGNORECASE)


def sight(text: str, output: str, *, as_key: bool = False) -> Sight:
    """The best sight of marker `text` in `output`: one that is not inside a dump of its message part, nor, for the key
    of an argument (`as_key`), a key in Python's notation (`'KEY': `; `f(KEY='value')` is not)."""
    best = Sight.ABSENT
    for found in pattern(text).finditer(output):
        best = max(best, _sight_at(output, found.start(), found.end(), as_key=as_key))
        if best is Sight.PRINTED:
            break
    return best


def _sight_at(output: str, start: int, end: int, *, as_key: bool) -> Sight:
    before = output[max(0, start - DUMP_ROOM) : start]
    if DUMPED.search(before):
        return Sight.DUMPED
    if as_key and PYTHON_KEY_BEFORE.search(before) and PYTHON_KEY_AFTER.match(output, end):
        return Sight.PYTHON_KEY
    return Sight.PRINTED
