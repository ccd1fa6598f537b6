"""Hostile text made safe inside Markdown: whatever renders it shows the text, and nothing else comes of it.

Only ASCII punctuation is escaped, as CommonMark defines it, so that the source reads well where nothing renders it.
"""

from __future__ import annotations

import re
from urllib.parse import quote

from reports.text import plain

_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_ANYWHERE = re.compile(r"[\\`*\[\]|~$^&<>]")
# Inside a word underscores mean nothing; names are full of them.
_UNDERSCORES = re.compile(r"(?<![A-Za-z0-9_])_+|_+(?![A-Za-z0-9_])")
# What GitHub makes a link of without being asked. With its colon, or full stop, escaped it is none.
_BARE_LINK = re.compile(r"(?<=\w):(?=//)|(?<=\bwww)\.", re.IGNORECASE)
# At the start of a line: headings, lists, and the underlines of headings.
_AT_START = re.compile(r"^(?:(\d+)(?=[.)](?:\s|$))|(?=[#+=:-]))")


class Markdown(str):
    """Markdown that is what it should be already: it is not escaped again."""

    __slots__ = ()


def escaped(text: str) -> Markdown:
    """One line of text for anywhere in Markdown, the cells of a table included. What does not show, line ends too, is
    shown by its name, as on the pages; blanks at the ends are left out, as they would be in the end."""
    shown = _ANYWHERE.sub(lambda match: _ENTITIES.get(match[0], f"\\{match[0]}"), plain(text).strip(" "))
    shown = _UNDERSCORES.sub(lambda match: r"\_" * len(match[0]), shown)
    shown = _BARE_LINK.sub(lambda match: f"\\{match[0]}", shown)
    return Markdown(_AT_START.sub(r"\1\\", shown))


def linked(text: str, address: str | None) -> Markdown:
    """Text that leads to an address, which has to be one of ours; None: the text alone."""
    shown = escaped(text)
    return shown if address is None else Markdown(f"[{shown}]({_address(address)})")


def finalized(value: object) -> object:
    """What every expression of a Markdown template passes through: text is escaped, None shows as nothing."""
    if isinstance(value, Markdown):
        return value
    if isinstance(value, str):
        return escaped(value)
    return "" if value is None else value


def _address(address: str) -> str:
    """An address whose brackets, blanks and the like can end nothing."""
    return quote(address, safe="/:?#@!$&*+,;=%~._-'")
