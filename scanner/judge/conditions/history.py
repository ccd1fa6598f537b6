"""Whether a growing conversation keeps its beginning, which is what a server's prompt cache lives on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from scanner.judge.rule import Match, TemplateFacts
from scanner.results import Behaviour

BREAKS = "breaks"
CONVERSATIONS = {"plain": "a plain chat", "thoughts": "a chat with reasoning", "tools": "a chat with a tool call"}
"""In the order of the detail of `history`."""
GENERATION_PROMPT = "generation prompt"
BREAK = re.compile(
    r"(?:\A| · )(plain|thoughts|tools): breaks at turn (\d+), byte (\d+) of (\d+), in the (generation prompt|history): "
    r'("(?:[^"\\]|\\.)*") became "(?:[^"\\]|\\.)*"(?:, (thought [a-z0-9 ]*[a-z]))?'
)
REASONING_DROPPED = ("thought not sent again", "thought kept in turn 2 only")


@dataclass(frozen=True, slots=True)
class Break:
    """One conversation's break as the detail tells it: the prompt of turn `turn` no longer holds what stood behind
    `byte` of the `size` bytes before; `old` is what stood there."""

    conversation: str
    turn: int
    byte: int
    size: int
    where: str
    old: str
    thought: str

    @property
    def by_reasoning(self) -> bool:
        """Whether it is explained by reasoning that a client, or the template, did not keep."""
        return self.where == GENERATION_PROMPT or self.thought in REASONING_DROPPED


def history_breaks(facts: TemplateFacts) -> Iterator[Match]:
    """A break, and what it costs. Of a template that can keep reasoning, breaks that come of reasoning not being kept
    do not count: llama-server asks it to by default (`chat.md` section 6), and a client that sends the reasoning back
    has a stable history."""
    found, claims = facts.behaviour("history"), facts.result.capabilities
    if found is None or found.outcome != BREAKS or claims is None:
        return
    breaks = [one for one in breaks_of(found) if not (claims.preserve_reasoning and one.by_reasoning)]
    costly = next((one for one in breaks if one.where != GENERATION_PROMPT), None)
    cheap = next((one for one in breaks if one.where == GENERATION_PROMPT), None)
    texts = [text for text in (_costly(costly), _cheap(cheap)) if text]
    if texts:
        yield Match("; ".join(texts), "behaviour history", found.line)


def breaks_of(found: Behaviour) -> Iterator[Break]:
    """The breaks that a detail tells of."""
    for name, turn, byte, size, where, old, thought in BREAK.findall(found.detail):
        yield Break(name, int(turn), int(byte), int(size), where, str(json.loads(old)), thought)


def _costly(one: Break | None) -> str:
    if one is None:
        return ""
    why = " (earlier reasoning is left out again)" if one.thought == "thought kept in turn 2 only" else ""
    return (
        f"turn {one.turn} of {CONVERSATIONS[one.conversation]} changes what was sent before from byte {one.byte:,} of "
        f"{one.size:,} on{why}: a server computes all behind it again"
    )


def _cheap(one: Break | None) -> str:
    if one is None:
        return ""
    # What the old prompt went on with is the template's own as long as no marker of ours is in it.
    shown = f" ({json.dumps(one.old, ensure_ascii=False)})" if one.old and "CAPSCAN" not in one.old else ""
    return (
        f"turn {one.turn} of {CONVERSATIONS[one.conversation]} takes back the end of the generation prompt{shown}: a "
        "server computes each answer again"
    )
