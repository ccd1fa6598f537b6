"""Text that hides or lies is shown for what it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.text import line, plain, rendered, ticked, visible
from scanner.results import Part


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a<b>&\"'", "a&lt;b&gt;&amp;&#34;&#39;"),
        ("\u202e", '<span class="ctl" title="right-to-left override">U+202E</span>'),
        ("\0", '<span class="ctl" title="control character">U+0000</span>'),
        ("\udcff", '<span class="ctl">byte FF</span>'),
        ("\ud800", '<span class="ctl" title="control character">U+D800</span>'),
        ("a\n\tb", "a\n\tb"),
        ("漢字é\u3000", "漢字é\u3000"),
    ],
)
def test_visible(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_backticks_make_code_and_nothing_else_does() -> None:
    assert ticked("say `a < b`, <b>no</b> `") == ("say <code>a &lt; b</code>, &lt;b&gt;no&lt;/b&gt; <code></code>")


@pytest.mark.parametrize("hidden", "\ufe0f\U000e0141\u180b\u2800\u00ad\u200b\u2060")
def test_what_is_drawn_as_nothing_is_marked(hidden: str) -> None:
    assert f"U+{ord(hidden):04X}" in visible(f"a{hidden}b")
    assert f"⟨U+{ord(hidden):04X}⟩" in plain(f"a{hidden}b")


def test_a_long_run_of_one_mark_is_drawn_once() -> None:
    assert visible("\u200b" * 400_000) == '<span class="ctl" title="zero width space">U+200B times 400,000</span>'
    assert visible("漢" * 20) == "漢" * 20


def test_names_that_differ_look_different() -> None:
    assert line("a\nb\tc") == (
        'a<span class="ctl" title="control character">U+000A</span>'
        'b<span class="ctl" title="control character">U+0009</span>c'
    )


def test_blanks_without_end_cost_no_more_than_other_text() -> None:
    """Where each of them was a beginning to try, a million would have taken hours."""
    assert len(rendered([Part(" " * 1_000_000 + "x", False)])) == 1_000_001
    assert len(rendered([Part("x \n" * 100_000, False)])) > 100_000


def test_plain_is_one_line_without_markup() -> None:
    assert plain("a\nb\u202e\udcff<") == "a⟨U+000A⟩b⟨U+202E⟩⟨byte FF⟩<"


def test_rendered_marks_input_line_ends_and_trailing_blanks() -> None:
    assert rendered([Part("a ", False), Part(" \nb", True)]) == (
        'a<span class="ws" title="1 blank at the end of the line"> </span>'
        '<mark title="from the request"><span class="ws" title="1 blank at the end of the line"> </span></mark>'
        '<mark title="from the request"><i class="nl"></i>\nb</mark>'
    )


@given(st.lists(st.tuples(st.text(alphabet=" \tab\n\r\u202e<", max_size=8), st.booleans()), max_size=5))
def test_rendered_loses_nothing(drawn: list[tuple[str, bool]]) -> None:
    html = rendered([Part(text, is_input) for text, is_input in drawn])
    expected = "".join(text for text, _ in drawn).replace("\r", "U+000D").replace("\u202e", "U+202E")
    assert html.striptags().replace(" ", "") == " ".join(expected.split()).replace(" ", "")
    assert "\u202e" not in html


@given(st.text())
def test_shown_text_can_always_be_written(text: str) -> None:
    assert bool(visible(text).encode("utf-8")) == bool(text)
    assert bool(plain(text).encode("utf-8")) == bool(text)
