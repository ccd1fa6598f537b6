"""What a browser would make of a page: its elements, links, anchors and text."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path


@dataclass
class Parsed:
    """A page taken apart."""

    elements: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    script_text: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    unclosed: list[str] = field(default_factory=list)

    @property
    def ids(self) -> list[str]:
        return [value for _tag, attributes in self.elements if (value := attributes.get("id")) is not None]

    def values(self, name: str) -> list[str]:
        """All values of an attribute."""
        return [value for _tag, attributes in self.elements if (value := attributes.get(name)) is not None]


_VOID = {"meta", "link", "input", "br"}


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parsed = Parsed()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.parsed.elements.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.parsed.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.parsed.unclosed.append(tag)

    def handle_data(self, data: str) -> None:
        (self.parsed.script_text if self.open and self.open[-1] == "script" else self.parsed.text).append(data)


def parse(page: Path) -> Parsed:
    """Takes a page apart."""
    return parse_text(page.read_text(encoding="utf-8"))


def parse_text(html: str) -> Parsed:
    """Takes a page, or a piece of one, apart."""
    parser = _Parser()
    parser.feed(html)
    parser.close()
    parser.parsed.unclosed += parser.open
    return parser.parsed
