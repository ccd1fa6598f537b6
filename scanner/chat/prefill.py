"""The autoparser's thinking tags: what it writes around a thought when it continues an assistant's message.

llama.cpp works them out by comparing renders of small conversations (`history`, `switched`, `in_calls`), then looks for
tell-tale texts in the template's source (`by_source`). All rules were found by putting small templates to the engine
(b11549); `tests/cases/prefill.json` holds a selection with its answers. The analysis does not depend on the request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from scanner.chat.server import Loaded, Vocabulary
from scanner.dialect import Limits

Render: TypeAlias = Callable[[Mapping[str, Any]], bytes | None]
"""Variables of a template → its output; None: it failed."""


@dataclass(frozen=True, slots=True)
class Tags:
    """What stands before and after a thought. Without a start the engine writes neither, even if it knows an end.
    `thinks`: it takes the template for one that thinks, which makes thinking the default."""

    start: bytes
    end: bytes
    thinks: bool = True

    def continued(self, generation_prompt: bytes, reasoning: bytes, content: bytes) -> list[tuple[bytes, bool]]:
        """Pieces to go on with behind the conversation so far: (text, whether it comes from the request)."""
        if not self.start:
            pieces = [(generation_prompt, False), (content, True)]
        else:
            # The first place, even where the start is plain text and stands in the turn's header by chance.
            before = generation_prompt.partition(self.start)[0]
            pieces = [(before, False), (self.start, False), (reasoning, True)]
            if content or not reasoning:
                pieces += [(self.end, False), (content, True)]
        return [piece for piece in pieces if piece[0]]


NONE = Tags(b"", b"", thinks=False)

# The engine's own texts: a template may look at them.
USER = {"role": "user", "content": "U_USER_MSG Hello END_U"}
ANSWER = {"role": "assistant", "content": "A_ASST_MSG I can help END_A"}
THOUGHT = "REASON_PART I am thinking END_R"
THOUGHTFUL = {**ANSWER, "reasoning_content": THOUGHT}
PROPERTIES = {
    "AA_ARG_FST_AA": {"type": "string", "description": "First argument"},
    "BB_ARG_SND_BB": {"type": "string", "description": "Second argument"},
}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {"type": "object", "properties": PROPERTIES, "required": []},
        },
    }
    for name, description in (("FFF_FIRST_FUN_F", "Test function foo"), ("SSS_SECOND_FUN_S", "Test function bar"))
]
CALL = {
    "id": "call00001",
    "type": "function",
    "function": {"name": "FFF_FIRST_FUN_F", "arguments": {"AA_ARG_FST_AA": "VVVV", "BB_ARG_SND_BB": "XXXX"}},
}
CALLING = {"role": "assistant", "content": None, "tool_calls": [CALL], "reasoning_content": THOUGHT}

_MARKER = rb"(?:<[^>]*>|\[[^\]]*\])"
_MARK = re.escape(THOUGHT.encode())
MARKER = re.compile(_MARKER)
SEGMENT = re.compile(rb"<[^>]*>?|\[[^\]]*\]?")
WRAPPED = re.compile(rb"(%b\s*)%b(\s*)(%b\s*)" % (_MARKER, _MARK, _MARKER))
ENDED = re.compile(rb"%b\s*(%b\s*)" % (_MARK, _MARKER))
BEFORE_MARKER = re.compile(rb"%b\s*(%b\s*)?" % (_MARK, _MARKER))
ANCHOR = 64


def tags_of(
    loaded: Loaded, vocabulary: Vocabulary, *, now: float | None = None, limits: Limits | None = None
) -> Tags:
    """The tags of a loaded template."""
    tokens = {"bos_token": vocabulary.bos, "eos_token": vocabulary.eos}

    def render(variables: Mapping[str, Any]) -> bytes | None:
        result = loaded.template.run({**tokens, **variables}, statistics=False, now=now, limits=limits)
        return result.output if result.ok else None

    return find_tags(render, loaded.source, supports_tool_calls=loaded.capabilities.tool_calls)


def find_tags(render: Render, source: bytes, *, supports_tool_calls: bool) -> Tags:
    """The tags of a template. `source` is its patched text, `render` renders it with these variables and no others but
    the vocabulary's tokens."""
    found = history(render)
    found = switched(found, render)
    if supports_tool_calls:
        found = in_calls(found, render)
    return by_source(found, source)


def thinks_by_default(tags: Tags) -> bool:
    """Whether `enable_thinking` is true for requests that do not say (autoparser only)."""
    return tags.thinks


def history(render: Render) -> Tags:
    """From a conversation that ends with an answer, with and without a thought: START is the marker right before the
    thought with the white space that follows, END the marker right after it with the white space around. Failing that,
    there is an end only."""
    without = render({"messages": [USER, ANSWER], "enable_thinking": True})
    text = render({"messages": [USER, THOUGHTFUL], "enable_thinking": True})
    if without is None or text is None:
        return NONE
    if wrapped := WRAPPED.search(text):
        return Tags(wrapped[1], wrapped[2] + wrapped[3])
    if ended := ENDED.search(text):
        return Tags(b"", ended[1])
    return NONE


def switched(found: Tags, render: Render) -> Tags:
    """From the generation prompt with thinking on and off; what is known already stays."""
    prompt = {"messages": [USER], "add_generation_prompt": True}
    off = render({**prompt, "enable_thinking": False})
    on = render({**prompt, "enable_thinking": True})
    if off is None or on is None:
        return found
    only_off, only_on = differing(off, on)
    if only_on.strip() and not only_off.strip():
        return opened(found, on, only_on)
    if only_off.strip() and not only_on.strip():
        return closed(found, off, only_off)
    if only_off.strip():
        return emptied(found, off, on)
    return found


def opened(found: Tags, on: bytes, added: bytes) -> Tags:
    """Thinking on adds something, at the very end: START."""
    if found.start or not on.endswith(added.strip()):
        return found
    return Tags(added, found.end)


def closed(found: Tags, off: bytes, added: bytes) -> Tags:
    """Thinking off adds something, at the very end: END, and the marker before it is START."""
    if found.end or not off.endswith(added.strip()):
        return found
    parts = [part for part in segments(off) if part.strip()]
    start = found.start
    if not start and len(parts) > 1 and parts[-1] == added.strip() and MARKER.fullmatch(parts[-2]):
        start = parts[-2]
    return Tags(start, added)


def emptied(found: Tags, off: bytes, on: bytes) -> Tags:
    """Both differ, as where a system message does, but one goes on behind the other's last bytes with just two
    markers: START and END."""
    for shorter, longer in ((off, on), (on, off)):
        _, anchor, extra = longer.rpartition(shorter[-ANCHOR:])
        parts = [part for part in segments(extra) if part.strip()] if anchor else []
        if len(parts) == 2 and all(MARKER.fullmatch(part) for part in parts):
            return Tags(found.start or parts[0], found.end or parts[1])
    return found


def in_calls(found: Tags, render: Render) -> Tags:
    """From a call with a thought, where an answer does not show its thought: these tags win. Here the white space
    before the end is not part of it."""
    context = {"tools": TOOLS, "enable_thinking": True}
    answer = render({**context, "messages": [USER, THOUGHTFUL]})
    call = render({**context, "messages": [USER, CALLING]})
    if answer is None or call is None or THOUGHT.encode() in answer or THOUGHT.encode() not in call:
        return found
    if wrapped := WRAPPED.search(call):
        return Tags(wrapped[1], wrapped[3])
    ended = BEFORE_MARKER.search(call)
    return Tags(found.start, ended[1] or b"" if ended else b"")


LAGUNA = b"laguna_glm_thinking"
GRANITE = (
    b"Write your thoughts between <think></think> and write your response between <response></response>"
)
NEMOTRON = (b"<SPECIAL_10>", b"<SPECIAL_11>", b"<SPECIAL_12>", b"<TOOL_RESPONSE>")
OLD_THINKING = b"content.split('</think>')"
NOT_OLD_THINKING = (b"reasoning_content", b"<SPECIAL_12>")


def by_source(found: Tags, source: bytes) -> Tags:
    """What the engine does for single families, told by texts in their templates."""
    if LAGUNA in source:
        found = replace(found, start=found.start.strip(), end=found.end.strip())
    if GRANITE in source:
        found = Tags(b"<think>", b"</think>")
    if all(text in source for text in NEMOTRON):
        found = Tags(b"<think>\n", b"</think>")
    if not found.thinks and OLD_THINKING in source and not any(text in source for text in NOT_OLD_THINKING):
        found = Tags(b"<think>", b"</think>")
    return found


def segments(text: bytes) -> list[bytes]:
    """Markers and the texts between them."""
    parts = []
    at = 0
    for marker in SEGMENT.finditer(text):
        parts += [text[at : marker.start()], marker[0]]
        at = marker.end()
    return [part for part in [*parts, text[at:]] if part]


def differing(one: bytes, other: bytes) -> tuple[bytes, bytes]:
    """What two texts do not share at their starts and ends, markers kept whole."""
    pair = segments(one), segments(other)
    ends_first = not other.startswith(one)
    for at_end in (ends_first, not ends_first):
        pair = without_shared(*pair, at_end=at_end)
    rests = b"".join(pair[0]), b"".join(pair[1])
    for at_end in (ends_first, not ends_first):
        if pair[0] and pair[1] and all(is_text(parts[-at_end]) for parts in pair):
            shared = common_prefix(*[rest[::-1] if at_end else rest for rest in rests])
            rests = tuple(rest[: len(rest) - shared] if at_end else rest[shared:] for rest in rests)
    return rests


def is_text(part: bytes) -> bool:
    return not MARKER.fullmatch(part)


def without_shared(one, other, *, at_end):
    step = -1 if at_end else 1
    shared = 0
    for left, right in zip(one[::step], other[::step], strict=False):
        if left != right:
            break
        shared += 1
    if at_end:
        return one[: len(one) - shared], other[: len(other) - shared]
    return one[shared:], other[shared:]


def common_prefix(one: bytes, other: bytes) -> int:
    """How many bytes two texts share at their start."""
    for at, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return at
    return min(len(one), len(other))
