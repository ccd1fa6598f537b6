"""The autoparser's tags, held against a real server's prompts for small templates (`tests/prefill_cases.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from scanner.chat import prefill
from scanner.chat.handlers import AUTOPARSER
from scanner.chat.prefill import NO_TAGS, Tags
from scanner.chat.prompt import make_prompt
from scanner.chat.server import Server, Vocabulary
from scanner.serving import load
from tests import prefill_cases

ANSWERS = prefill_cases.load()
VOCABULARY = Vocabulary("<s>", "</s>", add_bos=True)


@pytest.mark.parametrize("name", prefill_cases.TEMPLATES)
def test_a_continued_message_is_the_servers_own(name: str) -> None:
    loaded = load(prefill_cases.TEMPLATES[name].encode())
    assert loaded.handler == AUTOPARSER
    thinks = prefill.tags_of(loaded, VOCABULARY).thinks
    server = Server(loaded, vocabulary=VOCABULARY, enable_thinking=thinks)
    prompts = {key: make_prompt(server, body) for key, body in prefill_cases.REQUESTS.items()}
    assert {key: prompt.prompt.decode() for key, prompt in prompts.items()} == ANSWERS[name]


def test_every_answer_has_its_template() -> None:
    assert list(ANSWERS) == list(prefill_cases.TEMPLATES)


@pytest.mark.parametrize(
    ("closed", "content", "continued"),
    [
        (None, b"Hi", b"<t>so</t>Hi"),
        (None, b"", b"<t>so"),
        # The server writes the end for text parts that are empty, and where a request continues the content by name.
        (True, b"", b"<t>so</t>"),
        # A request may continue the thought by name, too: its content is then left out.
        (False, b"Hi", b"<t>so"),
    ],
)
def test_a_thought_ends_where_something_follows(closed: bool | None, content: bytes, continued: bytes) -> None:
    pieces = Tags(b"<t>", b"</t>").continued(b"<bot><t>", b"so", content, closed=closed)
    assert b"".join([text for text, _ in pieces]) == b"<bot>" + continued
    assert {text for text, is_input in pieces if is_input} <= {b"so", content}


def test_without_a_start_the_thought_is_left_out() -> None:
    assert NO_TAGS.continued(b"<bot>", b"so", b"Hi") == [(b"<bot>", False), (b"Hi", True)]
    assert Tags(b"", b"</t>").continued(b"<bot>", b"so", b"Hi") == [(b"<bot>", False), (b"Hi", True)]


def test_a_template_that_fails_at_everything_has_no_tags() -> None:
    def fails(_: Mapping[str, Any]) -> None:
        return None

    assert prefill.in_answers(fails) == NO_TAGS
    assert prefill.in_prompts(NO_TAGS, fails) == NO_TAGS
    assert prefill.in_calls(NO_TAGS, fails) == NO_TAGS


@pytest.mark.parametrize(
    ("off", "on", "differences"),
    [
        (b"<a>", b"<a>", (b"", b"")),
        (b"", b"<t>", (b"", b"<t>")),
        (b"a<t>", b"a</t>", (b"<t>", b"</t>")),
        (b"[a]", b"[a]words[a]", (b"", b"words[a]")),
        (b"[a]words[a]", b"[a]", (b"[a]words", b"")),
        (b"one", b"once", (b"", b"c")),
        (b"a<t", b"a<tt", (b"", b"t")),
    ],
)
def test_markers_differ_whole_and_texts_letter_by_letter(
    off: bytes, on: bytes, differences: tuple[bytes, bytes]
) -> None:
    assert prefill.differing(off, on) == differences
