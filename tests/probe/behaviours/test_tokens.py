"""Generation prompt, clock, default system text, BOS, control texts."""

from __future__ import annotations

import pytest

from scanner.chat.server import Vocabulary
from scanner.probe.behaviours.base import Answer
from scanner.probe.behaviours.tokens import control_texts
from tests.probe.behaviours.helpers import CHAT, behaviours, raising


@pytest.mark.parametrize(
    ("template", "outcome", "detail"),
    [
        (CHAT, "appended", '"<|assistant|>"'),
        ("{{ messages[0].content }}", "ignored", ""),
        (
            "{{ 'a' if add_generation_prompt else 'b' }}{{ messages[0].content }}",
            "changes more",
            'with it "aCAPSCAN_FIRST_USER" · without it "bCAPSCAN_FIRST_USER"',
        ),
    ],
)
def test_generation_prompt(template: str, outcome: str, detail: str) -> None:
    found = behaviours(template)["generation_prompt"]
    assert (found.outcome, found.detail) == (outcome, detail)


def test_a_template_that_fails_without_a_generation_prompt() -> None:
    found = behaviours(raising("not add_generation_prompt"))["generation_prompt"]
    # A server renders every request both ways, so it fails either way.
    assert (found.outcome, found.detail, found.line) == ("raises", "with it: Jinja Exception: no, thanks", 2)


@pytest.mark.parametrize("source", ["strftime_now('%d')", "datetime", "date_string"])
def test_a_clock_is_seen(source: str) -> None:
    found = behaviours("Now: {{ " + source + " }}!\n" + CHAT)["clock"]
    assert found.outcome == "changes daily"
    assert found.detail.startswith('"Now: ')
    assert ' · later "Now: ' in found.detail


def test_no_clock() -> None:
    assert behaviours("{# datetime #}" + CHAT)["clock"].outcome == "same"
    assert behaviours("{% set x = datetime %}" + CHAT)["clock"].outcome == "same"


def test_a_clock_that_raises() -> None:
    found = behaviours(raising("'FIRST_USER' in message.content"))["clock"]
    assert (found.outcome, found.line) == ("raises", 2)


ADDS = "{% if messages and messages[0].role != 'system' %}<|system|>Be kind.<|end|>{% endif %}" + CHAT
DATED = "{% if messages and messages[0].role == 'system' %}{% set text = messages[0].content %}"
ALWAYS = "<|system|>Know this.\n{% if messages and messages[0].role == 'system' %}{{ messages[0].content }}{% endif %}"
TOKENS_ONLY = "<s>[gMASK]{% for message in messages %}[INST]{{ message.content }}[/INST]</s>{% endfor %}"


@pytest.mark.parametrize(
    ("template", "outcome", "detail"),
    [
        (CHAT, "none", ""),
        (TOKENS_ONLY, "none", ""),
        ("{% if messages and messages[0].role != 'system' %}<|system|><|end|>{% endif %}" + CHAT, "none", ""),
        (ADDS, "adds", "Be kind."),
        (ALWAYS + "<|end|>" + CHAT, "adds", "Know this."),
        (
            "{% if messages and messages[0].role != 'system' %}]~[system: Be kind.]~[{% endif %}"
            "{% for m in messages %}]~[{{ m.role }}: {{ m.content }}{% endfor %}",
            "adds",
            "Be kind.]~[",
        ),
        (raising("message.role == 'assistant'").replace("%}<|{{", "%}<|{{"), "none", ""),
    ],
)
def test_default_system(template: str, outcome: str, detail: str) -> None:
    found = behaviours(template)["default_system"]
    assert (found.outcome, found.detail) == (outcome, detail)


def test_default_system_raises() -> None:
    assert behaviours(raising("'FIRST_USER' in message.content"))["default_system"].outcome == "raises"


@pytest.mark.parametrize(
    ("template", "vocabulary", "outcome", "detail"),
    [
        ("{{ bos_token }}" + CHAT, Vocabulary("<s>", "</s>"), "once", "by the template"),
        (CHAT, Vocabulary("<s>", "</s>", add_bos=True), "once", "by the tokenizer"),
        (
            "{{ bos_token }}" + CHAT,
            Vocabulary("<s>", "</s>", add_bos=True),
            "twice, cut by llama.cpp",
            "<s> by template and tokenizer",
        ),
        (CHAT, Vocabulary("<s>", "</s>"), "none", ""),
        (CHAT, Vocabulary("", "</s>"), "none", "the vocabulary has no BOS token"),
    ],
)
def test_bos(template: str, vocabulary: Vocabulary, outcome: str, detail: str) -> None:
    found = behaviours(template, vocabulary)["bos"]
    assert (found.outcome, found.detail) == (outcome, detail)


def test_bos_of_a_template_that_raises() -> None:
    assert behaviours(raising("'FIRST_USER' in message.content"))["bos"].outcome == "raises"


@pytest.mark.parametrize(
    ("template", "outcome", "detail"),
    [
        (CHAT, "marked as input", '"<|user|><|end|><|assistant|>"'),
        ("{% for m in messages %}User: {{ m.content }}\nBot:{% endfor %}", "marked as input", '"User:"'),
        (CHAT.replace("message.content", "message.content | tojson"), "merged into template text", None),
        (
            CHAT.replace("message.content", "message.content | replace('<', '(')"),
            None,
            '"<|user|><|end|><|assistant|>" · changed on the way',
        ),
        ("{% for m in messages %}{{ m.content }}{% endfor %}", "no control texts", ""),
        ("{{ '<a>' + messages[0].content[:18] }}", "dropped", ""),
    ],
)
def test_special_tokens(template: str, outcome: str | None, detail: str | None) -> None:
    found = behaviours(template)["special_tokens"]
    assert outcome in (None, found.outcome)
    assert detail in (None, found.detail)


@pytest.mark.parametrize("condition", ["'OPENING' in message.content", "'FIRST_USER' in message.content"])
def test_special_tokens_raise(condition: str) -> None:
    found = behaviours(raising(condition))["special_tokens"]
    assert (found.outcome, found.line) == ("raises", 2)


def test_control_texts_are_each_taken_once_and_are_few() -> None:
    signs = "".join([f"<{letter}>" for letter in "abcdefgh"])
    assert control_texts(Answer(f"<a><a>{signs}CAPSCAN_FIRST_USER[/INST]".encode())) == [
        f"<{letter}>" for letter in "abcdef"
    ]
    assert control_texts(Answer(b"<a> no message")) == []
