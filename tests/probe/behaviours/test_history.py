"""Whether a growing conversation keeps its beginning."""

from __future__ import annotations

from scanner.probe.behaviours.history import Break, first_break
from tests.probe.behaviours.helpers import CALLS, CHAT, behaviours, raising

KEEPS = CALLS.replace("{{ message.content }}", "{{ message.reasoning_content }}{{ message.content }}").replace(
    "%s", "{{ call.function.arguments | tojson }}"
)
DROPS_OLD = KEEPS.replace(
    "{{ message.reasoning_content }}",
    "{% if loop.index0 > last.user %}{{ message.reasoning_content }}{% endif %}",
)
LAST_USER = (
    "{% set last = namespace(user=0) %}{% for message in messages %}"
    "{% if message.role == 'user' %}{% set last.user = loop.index0 %}{% endif %}{% endfor %}"
)
OPENS_THOUGHT = CHAT.replace("<|assistant|>{%", "<|assistant|><think>{%")


def test_stable() -> None:
    found = behaviours(CHAT)["history"]
    assert found.outcome == "stable"
    assert found.detail == (
        "plain: stable · thoughts: stable, thought not sent again · tools: stable, thought not sent again"
    )


def test_thoughts_that_are_kept() -> None:
    found = behaviours(KEEPS)["history"]
    assert (found.outcome, found.detail) == (
        "stable",
        "plain: stable · thoughts: stable, thought kept · tools: stable, thought kept",
    )


def test_a_thought_that_goes_when_the_next_user_speaks() -> None:
    found = behaviours(LAST_USER + DROPS_OLD)["history"]
    assert found.outcome == "breaks"
    plain, thoughts, tools = found.detail.split(" · ")
    assert (plain, thoughts) == ("plain: stable", "thoughts: stable, thought not sent again")
    assert tools.startswith("tools: breaks at turn 3, byte ")
    assert ', in the history: "CAPSCAN_FIRST_THOUGHT[CALL]' in tools
    assert tools.endswith("thought kept in turn 2 only")
    assert found.evidence.startswith("turn 2:\n")
    assert "\n\nturn 3:\n" in found.evidence


def test_a_generation_prompt_that_is_not_kept() -> None:
    found = behaviours(OPENS_THOUGHT)["history"]
    assert found.outcome == "breaks"
    opening = len("<|user|>CAPSCAN_FIRST_USER<|end|><|assistant|>")
    place = f"turn 2, byte {opening} of {opening + 7}, in the generation prompt"
    assert found.detail.startswith(f'plain: breaks at {place}: "<think>" became "CAPSCAN_FIRST_ANSWER<|end|>')


def test_a_beginning_that_depends_on_the_end() -> None:
    found = behaviours("{{ messages | length }}" + CHAT)["history"]
    assert found.detail.startswith("plain: breaks at turn 2, byte 0 of ")
    assert ', in the history: "1<|user|>' in found.detail


def test_tools_that_move_to_the_last_user() -> None:
    moves = (
        "{% for message in messages %}{% if loop.index0 == last.user and tools %}{{ tools | tojson }}{% endif %}"
        "<|{{ message.role }}|>{{ message.content }}{% endfor %}"
    )
    found = behaviours(LAST_USER + moves)["history"]
    assert found.outcome == "breaks"
    assert " · tools: breaks at turn 3, byte 0 of " in found.detail


def test_a_template_without_tools_is_judged_by_its_other_conversations() -> None:
    found = behaviours(raising("message.role == 'tool'"))["history"]
    assert found.outcome == "stable"
    assert found.detail.endswith(" · tools: raises (Jinja Exception: no, thanks)")


def test_a_plain_conversation_that_fails() -> None:
    found = behaviours(raising("message.role == 'assistant'"))["history"]
    assert (found.outcome, found.detail, found.line) == ("raises", "Jinja Exception: no, thanks", 2)


def test_the_first_break_of_several_prompts() -> None:
    assert first_break([b"a", b"ab", b"abc"]) is None
    assert first_break([b"ab", b"abc", b"axc"]) == Break(3, 1, b"abc", b"axc")
    assert first_break([b"ab", b"a"]) == Break(2, 1, b"ab", b"a")
