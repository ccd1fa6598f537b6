"""Whether a growing conversation keeps its beginning, which is what a server's prompt cache lives on.

Compared are the prompts of one conversation's requests, turn by turn, byte by byte. Prompt n ends with the generation
prompt; it is what the server has in its cache when the model starts to speak. If prompt n + 1 does not begin with it,
everything from the first differing byte on has to be computed again, every turn. What the model itself said in between
is not compared: no request holds it as it was generated, and it costs what it is long. But a thought that is not sent
again means that the answer behind it is computed twice, so the detail tells whether it is.

Three conversations are tried:
- `plain`: a user, answer, user, answer, user.
- `thoughts`: the same, the answers with `reasoning_content`.
- `tools`: a user and a tool; then a call with a thought, and its result; then an answer and the next user.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from scanner.chat.parts import common_prefix
from scanner.probe.behaviours import conversations as texts
from scanner.probe.behaviours.base import (
    SEPARATOR,
    Answer,
    Failure,
    Inquiry,
    Prompts,
    position,
    quoted,
    raises,
    shortened,
)
from scanner.probe.behaviours.outcomes import BREAKS, STABLE
from scanner.results import Behaviour

KEY = "history"
SHOWN = 40
"""Bytes of a differing text that a detail shows."""
AROUND = 400
"""Bytes before and behind a break that are kept as evidence."""


@dataclass(frozen=True, slots=True)
class Break:
    """Where a prompt is not what the one before it begins with: `turn` is the number of the later request, from 1."""

    turn: int
    byte: int
    before: bytes
    after: bytes

    def said(self, generation_prompt: bytes) -> str:
        """The break in words. `in the generation prompt`: all that was history before is kept."""
        opens = self.before.endswith(generation_prompt) and len(self.before) - self.byte <= len(generation_prompt)
        where = "in the generation prompt" if generation_prompt and opens else "in the history"
        old, new = self.before[self.byte :][:SHOWN], self.after[self.byte :][:SHOWN]
        place = f"turn {self.turn}, byte {self.byte} of {len(self.before)}, {where}"
        return f"{BREAKS} at {place}: {quoted(old)} became {quoted(new)}"

    def shown(self) -> str:
        """Both prompts around the break."""
        start = max(0, self.byte - AROUND)
        end = self.byte + AROUND
        older, newer = [text[start:end].decode("utf-8", "replace") for text in (self.before, self.after)]
        return f"turn {self.turn - 1}:\n{older}\n\nturn {self.turn}:\n{newer}"


@dataclass(frozen=True, slots=True)
class Conversation:
    """The requests of a conversation, and the thought that the later ones hold (None: none)."""

    name: str
    turns: Sequence[Inquiry]
    thought: str | None = None


CONVERSATIONS = (
    Conversation("plain", (texts.USER, texts.SECOND_TURN, texts.THIRD_TURN)),
    Conversation("thoughts", (texts.USER, texts.SECOND_THOUGHTFUL, texts.THIRD_THOUGHTFUL), texts.FIRST_THOUGHT),
    Conversation("tools", (texts.TOOLS, texts.CALL, texts.AFTER_CALL), texts.FIRST_THOUGHT),
)


@dataclass(frozen=True, slots=True)
class Growth:
    """What became of one conversation."""

    name: str
    failure: Failure | None = None
    first_break: Break | None = None
    thought_sent: str = ""

    def said(self, generation_prompt: bytes) -> str:
        """This conversation's part of the detail."""
        if self.failure is not None:
            return f"{self.name}: raises ({shortened(self.failure.message)})"
        thought = f", {self.thought_sent}" if self.thought_sent else ""
        kept = STABLE if self.first_break is None else self.first_break.said(generation_prompt)
        return f"{self.name}: {kept}{thought}"


def history(prompts: Prompts) -> Behaviour:
    """`breaks` if one of the conversations does; `raises` only if the plain one fails: that a template takes no tools
    is told elsewhere. The detail has all three as `plain: … · thoughts: … · tools: …`."""
    grown = [grow(prompts, conversation) for conversation in CONVERSATIONS]
    if grown[0].failure is not None:
        return raises(KEY, grown[0].failure)
    generation_prompt = generation_prompt_of(prompts)
    detail = SEPARATOR.join([growth.said(generation_prompt) for growth in grown])
    broken = next((growth.first_break for growth in grown if growth.first_break is not None), None)
    if broken is None:
        return Behaviour(KEY, STABLE, detail)
    return Behaviour(KEY, BREAKS, detail, broken.shown())


def grow(prompts: Prompts, conversation: Conversation) -> Growth:
    """Put a conversation's requests one after the other."""
    answers = [prompts.ask(inquiry) for inquiry in conversation.turns]
    for answer in answers:
        if answer.failure is not None:
            return Growth(conversation.name, answer.failure)
    found = first_break([answer.prompt for answer in answers])
    return Growth(conversation.name, None, found, _thought_sent(answers, conversation.thought))


def first_break(turns: Sequence[bytes]) -> Break | None:
    """The first prompt that the next one does not begin with."""
    for number, (before, after) in enumerate(pairwise(turns), 2):
        if not after.startswith(before):
            return Break(number, common_prefix(before, after), before, after)
    return None


def _thought_sent(answers: Sequence[Answer], thought: str | None) -> str:
    """Whether the first thought stands in the later prompts."""
    if thought is None:
        return ""
    second, third = [position(answer.text, thought) >= 0 for answer in answers[1:]]
    return {
        (True, True): "thought kept",
        (True, False): "thought kept in turn 2 only",
        (False, False): "thought not sent again",
    }.get((second, third), "thought sent from turn 3 on")


def generation_prompt_of(prompts: Prompts) -> bytes:
    """What a generation prompt adds to one user message; empty where that cannot be told."""
    with_it, without = prompts.ask(texts.USER), prompts.ask(texts.NO_PROMPT)
    if with_it.failure is None and without.failure is None and with_it.prompt.startswith(without.prompt):
        return with_it.prompt[len(without.prompt) :]
    return b""
