"""Text in Markdown stays text, whoever wrote it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from reports.markdown import Markdown, escaped, finalized, linked
from reports.text import plain

PARSER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])

TEXTS = st.text() | st.text(alphabet="\\`*_[]()<>&|~#+-=!:/.@$^ \n\t0w", max_size=20)

ATTACKS = (
    "<script>alert(1)</script>",
    "a|b\\|c\\\\|d",
    "`` ` ```",
    "[x](javascript:alert(1))",
    "![x](https://example.org/x.png)",
    "<https://example.org>",
    "[x]: https://example.org",
    "&lt;b&gt; &amp; &copy;",
    "**bold** _em_ __strong__ ~~gone~~",
    "# heading",
    "1. one",
    "12) twelve",
    "- item\n- item",
    "===",
    "a\n---",
    "    code",
    "\u202e\x00\ud800",
    "|---|",
)


def inline(markdown: str) -> list[Token]:
    """The pieces of the only inline content that is in a document."""
    (found,) = [token for token in PARSER.parse(markdown) if token.type == "inline" and token.content != "head"]
    return found.children or []


def text_of(pieces: list[Token]) -> str:
    assert {piece.type for piece in pieces} <= {"text", "text_special"}
    return "".join(piece.content for piece in pieces)


def shown(text: str) -> str:
    return plain(text).strip(" ")


Test = Callable[[str], None]


def with_attacks(test: Test) -> Test:
    """Any text, and those that mean something to Markdown."""
    for attack in ATTACKS:
        test = example(attack)(test)
    return settings(deadline=None)(given(TEXTS)(test))


@with_attacks
def test_text_stays_text_in_a_cell(text: str) -> None:
    if not shown(text):
        return
    document = f"| head |\n| --- |\n| {escaped(text)} |\n"
    assert text_of(inline(document)) == shown(text)


@with_attacks
def test_text_stays_text_in_an_item(text: str) -> None:
    if not shown(text):
        return
    assert text_of(inline(f"- {escaped(text)}\n")) == shown(text)


@with_attacks
def test_text_stays_text_in_a_link(text: str) -> None:
    if not shown(text):
        return
    opening, *inside, closing = inline(f"Of {linked(text, 'https://example.org/a.html')}")[1:]
    assert (opening.type, opening.attrs) == ("link_open", {"href": "https://example.org/a.html"})
    assert closing.type == "link_close"
    assert text_of(inside) == shown(text)


@pytest.mark.parametrize("address", ["https://example.org/a(b)/c d.html#x", "https://example.org/a\\)[x](y)<z>.html"])
def test_an_address_ends_where_it_ends(address: str) -> None:
    opening, text, _closing = inline(linked("a", address))
    assert text.content == "a"
    assert " " not in str(opening.attrs["href"])


def test_nothing_becomes_a_link_unasked() -> None:
    # GitHub's Markdown looks for these; that an escaped character is none of them is in its specification.
    assert escaped("see https://example.org and www.example.org") == "see https\\://example.org and www\\.example.org"


def test_what_reads_well_is_left_as_it_is() -> None:
    assert (
        escaped("models/Qwen3-8B_Q4_K_M.gguf (line 49): 1.5 of 2") == "models/Qwen3-8B_Q4_K_M.gguf (line 49): 1.5 of 2"
    )


def test_an_expression_is_escaped_once() -> None:
    assert finalized("a|b") == "a\\|b"
    assert finalized(Markdown("a | b")) == "a | b"
    assert finalized(None) == ""
    assert finalized(3) == 3
