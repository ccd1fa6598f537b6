"""The text patches that llama.cpp applies to a default template before it parses it (`chat.md` section 2)."""

from __future__ import annotations

from dataclasses import dataclass

NEVER = b"{%- if false %}"
CUT_AT_NUL = "cut-at-nul"


@dataclass(frozen=True, slots=True)
class Patch:
    """A line that is replaced by one that never holds, in sources that contain both `signs`."""

    name: str
    signs: tuple[bytes, bytes]
    line: bytes


PATCHES = (
    Patch(
        "gpt-oss-channel-check",
        (b"<|channel|>", b"in message.content or"),
        b'{%- if "<|channel|>analysis<|message|>" in message.content or '
        b'"<|channel|>final<|message|>" in message.content %}',
    ),
    Patch(
        "mistral-empty-assistant-check",
        (b"[TOOL_CALLS]", b"if (message['content'] is none or"),
        b"{%- if (message['content'] is none or message['content'] == '' or message['content']|length == 0) and "
        b"(message['tool_calls'] is not defined or message['tool_calls'] is none or "
        b"message['tool_calls']|length == 0) %}",
    ),
)


@dataclass(frozen=True, slots=True)
class Patched:
    """A source as llama.cpp parses it, and the names of the patches that changed it."""

    source: bytes
    names: tuple[str, ...]


def patch(source: bytes) -> Patched:
    """The source of a default template with llama.cpp's patches applied. Before them, what follows a NUL is lost, as
    the text passes through a C string when a model is loaded."""
    names = []
    if b"\0" in source:
        source = source.partition(b"\0")[0]
        names.append(CUT_AT_NUL)
    for rule in PATCHES:
        if all(sign in source for sign in rule.signs) and rule.line in source:
            source = source.replace(rule.line, NEVER)
            names.append(rule.name)
    return Patched(source, tuple(names))
