"""The switch of thinking, and what stands before continued words."""

from __future__ import annotations

import pytest

from tests.probe.behaviours.helpers import CHAT, behaviours, raising

THINKS = (
    "{% for message in messages %}<|{{ message.role }}|>"
    "{% if message.reasoning_content %}<think>{{ message.reasoning_content }}</think>{% endif %}"
    "{{ message.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% if enable_thinking is false %}<think></think>{% endif %}{% endif %}"
)
TELLS_SYSTEM = "{{ 'think!' if enable_thinking else 'do not think' }} This is a long text behind it." + CHAT


@pytest.mark.parametrize(
    ("template", "outcome", "detail"),
    [
        (THINKS, "switches", "unset equals on"),
        (TELLS_SYSTEM, "switches", "unset equals off"),
        (CHAT, "ignored", ""),
    ],
)
def test_thinking_switch(template: str, outcome: str, detail: str) -> None:
    found = behaviours(template)["thinking_switch"]
    assert (found.outcome, found.detail) == (outcome, detail)


def test_thinking_switch_raises() -> None:
    found = behaviours(raising("enable_thinking is false"))["thinking_switch"]
    assert (found.outcome, found.detail, found.line) == ("raises", "off: Jinja Exception: no, thanks", 2)


def test_the_evidence_of_a_switch_shows_both_sides() -> None:
    assert behaviours(THINKS)["thinking_switch"].evidence == 'on: …""\noff: …"<think></think>"'


def test_words_are_continued_behind_a_thought() -> None:
    found = behaviours(THINKS)["prefill"]
    assert found.outcome == "with a thought"
    assert found.detail == (
        'before the thought "<|assistant|><think>" · before the text "</think>" · alone "<|assistant|><think></think>"'
    )


def test_words_are_continued_without_a_thought() -> None:
    found = behaviours(CHAT)["prefill"]
    assert (found.outcome, found.detail) == ("text only", 'alone "<|assistant|>"')


def test_a_generation_prompt_in_place_of_an_end_is_cut_where_they_part() -> None:
    ends = CHAT.replace("{% endif %}", "{% else %}<|over|>{% endif %}")
    assert behaviours(ends)["prefill"].detail == 'alone "assistant|>"'
    assert "<|end|><|over|>assistant|>CAPSCAN_FIRST_ANSWER" in behaviours(ends)["prefill"].evidence


def test_continuing_raises() -> None:
    found = behaviours(raising("not add_generation_prompt and messages|length == 1 and message.role == 'user'"))
    assert (found["prefill"].outcome, found["prefill"].line) == ("raises", 2)
    assert found["prefill"].detail == "text alone: Jinja Exception: no, thanks"
