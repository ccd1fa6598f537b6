"""What `enable_thinking` does, and how an assistant's own words are continued."""

from __future__ import annotations

from scanner.chat.parts import common_prefix
from scanner.probe.behaviours import conversations as texts
from scanner.probe.behaviours.base import (
    SEPARATOR,
    Answer,
    Prompts,
    excerpt,
    position,
    quoted,
    raises,
)
from scanner.probe.behaviours.outcomes import DROPPED, IGNORED, SWITCHES, TEXT_ONLY, WITH_THOUGHT
from scanner.results import Behaviour


def thinking_switch(prompts: Prompts) -> Behaviour:
    """One user message with `enable_thinking` true, false, and left to the server. `switches` says in its detail which
    of the two `unset equals`."""
    key = "thinking_switch"
    on, off, unset = [prompts.ask(inquiry) for inquiry in (texts.THINKING_ON, texts.THINKING_OFF, texts.USER)]
    for answer, which in ((on, "on"), (off, "off"), (unset, "unset")):
        if answer.failure is not None:
            return raises(key, answer.failure, which=which)
    if on.prompt == off.prompt == unset.prompt:
        return Behaviour(key, IGNORED, evidence=excerpt(on.text))
    equals = "on" if unset.prompt == on.prompt else "off" if unset.prompt == off.prompt else "neither"
    at = common_prefix(on.prompt, off.prompt)
    shown = [f"on: …{quoted(on.prompt[at:], 900)}", f"off: …{quoted(off.prompt[at:], 900)}"]
    return Behaviour(key, SWITCHES, f"unset equals {equals}", "\n".join(shown))


def prefill(prompts: Prompts) -> Behaviour:
    """A last message of the assistant, with and without a thought: what llama.cpp writes before and between. `text
    only`: the thought is lost. The detail quotes `before the thought`, `before the text` (behind the thought), and
    `alone`, what is written before a text without thought."""
    key = "prefill"
    thoughtful, alone = prompts.ask(texts.PREFILL_THOUGHT), prompts.ask(texts.PREFILL)
    for answer, which in ((alone, "text alone"), (thoughtful, "with a thought")):
        if answer.failure is not None:
            return raises(key, answer.failure, which=which)
    thought_at = position(thoughtful.text, texts.FIRST_THOUGHT)
    text_at = position(thoughtful.text, texts.FIRST_ANSWER)
    alone_at = position(alone.text, texts.FIRST_ANSWER)
    evidence = excerpt(thoughtful.text, len(thoughtful.text))
    if text_at < 0 or alone_at < 0:
        return Behaviour(key, DROPPED, evidence=evidence)
    start = _goes_on_at(prompts, alone)
    before_alone = f"alone {quoted(alone.text[start:alone_at])}"
    if thought_at < 0:
        return Behaviour(key, TEXT_ONLY, before_alone, evidence)
    before = f"before the thought {quoted(thoughtful.text[start:thought_at])}"
    behind = f"before the text {quoted(thoughtful.text[thought_at + len(texts.FIRST_THOUGHT) : text_at])}"
    return Behaviour(key, WITH_THOUGHT, SEPARATOR.join([before, behind, before_alone]), evidence)


def _goes_on_at(prompts: Prompts, alone: Answer) -> int:
    """Where the continuation begins: behind the same conversation without a generation prompt, else behind the user's
    text."""
    so_far = prompts.ask(texts.NO_PROMPT)
    if so_far.failure is None and alone.prompt.startswith(so_far.prompt):
        return len(so_far.text)
    return max(0, position(alone.text, texts.FIRST_USER) + len(texts.FIRST_USER))
