"""What the generic handler (the autoparser) writes around a thought when it continues an assistant's message.

llama.cpp works the tags out by comparing renders of small conversations (`in_answers`, `in_prompts`, `in_calls`), then
looks for tell-tale texts of single families in the template's source (`by_source`). The rules are told from a real
server's prompts for some ten thousand small templates, of which `tests/cases/prefill.json` holds a selection. They
do not depend on the request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from typing import Any, TypeAlias, TypeVar

from scanner.chat.server import Loaded, Vocabulary
from scanner.dialect import Limits

T = TypeVar("T", bytes, list[bytes])
Render: TypeAlias = Callable[[Mapping[str, Any]], bytes | None]
"""Variables of a template → its output; None: it failed."""


@dataclass(frozen=True, slots=True)
class Tags:
    """What stands before and after a thought. `thinks`: there was a sign of thoughts, even if none of their tags; the
    server then gives `enable_thinking` as true to requests that do not say."""

    start: bytes
    end: bytes
    thinks: bool = True

    def continued(
        self, generation_prompt: bytes, reasoning: bytes, content: bytes, *, closed: bool | None = None
    ) -> list[tuple[bytes, bool]]:
        """Pieces to go on with behind the conversation so far: (text, whether it comes from the request).

        `closed`: whether the thought is over; by default it is unless there is nothing else. Without a start neither
        the thought nor its end is written. The generation prompt is cut at the first place that holds the start, even
        where that is plain text and stands in the turn's header by chance.
        """
        pieces = [(generation_prompt, False)]
        if self.start:
            pieces = [(generation_prompt.partition(self.start)[0], False), (self.start, False), (reasoning, True)]
        if closed or (closed is None and (content or not reasoning)):
            pieces += [(self.end if self.start else b"", False), (content, True)]
        return [piece for piece in pieces if piece[0]]


NO_TAGS = Tags(b"", b"", thinks=False)


# --- the conversations: the engine's own texts, as a template may look at them ----------------------------------------

THOUGHT = "REASON_PART I am thinking END_R"
USER: Mapping[str, Any] = {"role": "user", "content": "U_USER_MSG Hello END_U"}
ANSWER: Mapping[str, Any] = {"role": "assistant", "content": "A_ASST_MSG I can help END_A"}
THOUGHTFUL_ANSWER: Mapping[str, Any] = {**ANSWER, "reasoning_content": THOUGHT}
_ARGUMENTS = {"AA_ARG_FST_AA": "VVVV", "BB_ARG_SND_BB": "XXXX"}
THOUGHTFUL_CALL: Mapping[str, Any] = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "call00001", "type": "function", "function": {"name": "FFF_FIRST_FUN_F", "arguments": _ARGUMENTS}}
    ],
    "reasoning_content": THOUGHT,
}
_PARAMETERS = {
    "type": "object",
    "properties": {
        "AA_ARG_FST_AA": {"type": "string", "description": "First argument"},
        "BB_ARG_SND_BB": {"type": "string", "description": "Second argument"},
    },
    "required": [],
}
TOOLS: Sequence[Mapping[str, Any]] = [
    {"type": "function", "function": {"name": name, "description": description, "parameters": _PARAMETERS}}
    for name, description in (("FFF_FIRST_FUN_F", "Test function foo"), ("SSS_SECOND_FUN_S", "Test function bar"))
]

# --- what is looked for -----------------------------------------------------------------------------------------------

_MARKER = rb"(?:<[^>]*>|\[[^\]]*\])"
MARKER = re.compile(_MARKER)
NEXT_MARKER = re.compile(rb"(\s*)(%b\s*)" % _MARKER)
OPENINGS = {b">": b"<", b"]": b"["}
PART = re.compile(rb"<[^>]*>?|\[[^\]]*\]?|[^<\[]+")
"""A marker, an unfinished one at the very end (which counts as text), or the text between."""
COMPARED = 64
"""Bytes at the end of the shorter prompt that the longer one must hold."""


def tags_of(loaded: Loaded, vocabulary: Vocabulary, *, now: float | None = None, limits: Limits | None = None) -> Tags:
    """The tags of a template as loaded."""
    tokens = {"bos_token": vocabulary.bos, "eos_token": vocabulary.eos}

    def render(variables: Mapping[str, Any]) -> bytes | None:
        result = loaded.template.run({**tokens, **variables}, statistics=False, now=now, limits=limits)
        return result.output if result.ok else None

    found = in_prompts(in_answers(render), render)
    if loaded.capabilities.tool_calls:
        found = in_calls(found, render)
    return by_source(found, loaded.source)


def in_answers(render: Render) -> Tags:
    """From a conversation that ends with an answer and its thought.

    Start is the marker right before the thought with the white space between, end the marker right after it with the
    white space on both sides. Failing that, the marker after the thought is an end without a start, and white space
    before it is no part of it. A template that cannot render the answer without a thought is not looked at.
    """
    answered = {"enable_thinking": True, "messages": [USER, ANSWER]}
    text = render({**answered, "messages": [USER, THOUGHTFUL_ANSWER]})
    if text is None or render(answered) is None:
        return NO_TAGS
    start, space, end = around_thought(text)
    if start:
        return Tags(start, space + end)
    return Tags(b"", end) if end else NO_TAGS


def in_prompts(found: Tags, render: Render) -> Tags:
    """From the generation prompt with thinking on and off. A tag that is known already stays."""
    asked = {"messages": [USER], "add_generation_prompt": True}
    on = render({**asked, "enable_thinking": True})
    off = render({**asked, "enable_thinking": False})
    if on is None or off is None:
        return found
    only_off, only_on = differing(off, on)
    if only_off.strip() and only_on.strip():
        return ended_elsewhere(found, off, on)
    if only_on.strip() and on.endswith(only_on.strip()):
        return replace(found, start=found.start or only_on, thinks=True)
    if only_off.strip() and off.endswith(only_off.strip()):
        return ended(found, off, only_off)
    return found


def ended(found: Tags, off: bytes, end: bytes) -> Tags:
    """Thinking off adds something: it is the end, and the start is the marker before it, if it is one part."""
    if found.end:
        return found
    parts = visible_parts(off)
    has_start = len(parts) > 1 and parts[-1] == end.strip() and is_marker(parts[-2])
    return Tags(parts[-2] if has_start else b"", end)


def ended_elsewhere(found: Tags, off: bytes, on: bytes) -> Tags:
    """Both prompts have something of their own, as where a system message names the mode. The tags are then two
    markers, and nothing else, which one prompt has behind the last bytes of the other."""
    for shorter, longer in ((off, on), (on, off)):
        _, anchor, behind = longer.rpartition(shorter[-COMPARED:])
        parts = visible_parts(behind)
        if anchor and len(parts) == 2 and all(map(is_marker, parts)):
            return Tags(found.start or parts[0], found.end or parts[1])
    return found


def in_calls(found: Tags, render: Render) -> Tags:
    """From a tool call with a thought, where an answer does not show its own: these tags win. White space before the
    end is no part of it."""
    context = {"tools": TOOLS, "enable_thinking": True}
    answer = render({**context, "messages": [USER, THOUGHTFUL_ANSWER]})
    call = render({**context, "messages": [USER, THOUGHTFUL_CALL]})
    if answer is None or call is None or THOUGHT.encode() in answer or THOUGHT.encode() not in call:
        return found
    start, _, end = around_thought(call)
    return Tags(start or found.start, end)


def around_thought(text: bytes) -> tuple[bytes, bytes, bytes]:
    """Of the first thought in `text` that stands between two markers: the one before it with the white space that
    follows, the white space behind the thought, the marker there with the white space that follows. If none does: what
    is behind the first thought, with an empty start."""
    pieces = text.split(THOUGHT.encode())
    for before, behind in pairwise(pieces):
        start, following = marker_at_end(before), NEXT_MARKER.match(behind)
        if start and following:
            return start, following[1], following[2]
    following = NEXT_MARKER.match(pieces[1]) if len(pieces) > 1 else None
    return (b"", following[1], following[2]) if following else (b"", b"", b"")


def marker_at_end(text: bytes) -> bytes:
    """The marker that a text ends with, and the white space behind it."""
    bare = text.rstrip()
    opening = OPENINGS.get(bare[-1:])
    if opening is None:
        return b""
    at = bare.find(opening, bare.rfind(bare[-1:], 0, -1) + 1)
    return text[at:] if at >= 0 else b""


LAGUNA = b"laguna_glm_thinking"
GRANITE = b"Write your thoughts between <think></think> and write your response between <response></response>"
NEMOTRON_V2 = (b"<SPECIAL_10>", b"<SPECIAL_11>", b"<SPECIAL_12>", b"<TOOL_RESPONSE>")
CUTS_THOUGHTS = b"content.split('</think>')"
KNOWS_THOUGHTS = (b"reasoning_content", b"<SPECIAL_12>")


def by_source(found: Tags, source: bytes) -> Tags:
    """What single families get, told by texts in their templates; comments count. The last one is for templates that
    cut thoughts out of the history and never print one: DeepSeek R1, QwQ."""
    if LAGUNA in source:
        found = replace(found, start=found.start.strip(), end=found.end.strip())
    if GRANITE in source:
        found = Tags(b"<think>", b"</think>")
    if all(text in source for text in NEMOTRON_V2):
        found = Tags(b"<think>\n", b"</think>")
    if not found.thinks and CUTS_THOUGHTS in source and not any(text in source for text in KNOWS_THOUGHTS):
        found = Tags(b"<think>", b"</think>")
    return found


# --- comparing texts --------------------------------------------------------------------------------------------------


def is_marker(part: bytes) -> bool:
    """Whether this is something in angle or square brackets."""
    return MARKER.fullmatch(part) is not None


def visible_parts(text: bytes) -> list[bytes]:
    """The markers and the texts between them, without those of white space only."""
    return [part for part in PART.findall(text) if part.strip()]


def differing(off: bytes, on: bytes) -> tuple[bytes, bytes]:
    """What two texts do not share at their starts and ends; markers are shared whole or not at all.

    What could count as either is taken as shared at the end, unless `on` is just a longer `off`.
    """
    ends = (False, True) if on.startswith(off) else (True, False)
    parts = PART.findall(off), PART.findall(on)
    for at_end in ends:
        shared = count_shared(*parts, at_end=at_end)
        parts = without(parts[0], shared, at_end), without(parts[1], shared, at_end)
    texts = b"".join(parts[0]), b"".join(parts[1])
    for at_end in ends:
        if all(parts) and not any(is_marker(part[-1 if at_end else 0]) for part in parts):
            shared = count_shared(*texts, at_end=at_end)
            texts = without(texts[0], shared, at_end), without(texts[1], shared, at_end)
    return texts


def count_shared(one: Sequence[Any], other: Sequence[Any], *, at_end: bool = False) -> int:
    """How many items two sequences share at the start or the end."""
    step = -1 if at_end else 1
    pairs = zip(one[::step], other[::step], strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def without(items: T, count: int, at_end: bool) -> T:
    """The items but for the first or last `count`."""
    return items[: len(items) - count] if at_end else items[count:]
