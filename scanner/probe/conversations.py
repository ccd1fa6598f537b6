"""What the capability probes send (`caps.md`), as data. Key order counts: templates print it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

Data: TypeAlias = Mapping[str, object]

STRING_MARKER = "STRING_MARKER"
REASONING_MARKER = "<REASONING_CONTENT_PLACEHOLDER>"

USER: Data = {"role": "user", "content": "User message"}
SYSTEM: Data = {"role": "system", "content": "System message"}
TOOL: Data = {
    "name": "tool",
    "type": "function",
    "function": {
        "name": "tool1",
        "description": "Tool description",
        "parameters": {
            "type": "object",
            "properties": {"arg": {"type": "string", "description": "Arg description"}},
            "required": ["arg"],
        },
    },
}
OBJECT_ARGUMENTS: Data = {"arg": "value"}
STRING_ARGUMENTS = '{"arg": "value"}'


@dataclass(frozen=True, slots=True)
class Conversation:
    """One probe's input. `extra` holds variables that only this probe sets."""

    name: str
    messages: Sequence[Data]
    tools: Sequence[object] = ()
    extra: Data = field(default_factory=dict)

    def variables(self) -> dict[str, object]:
        """All variables of the run, in a fixed order."""
        return {
            "messages": list(self.messages),
            "tools": list(self.tools),
            "bos_token": "",
            "eos_token": "",
            "add_generation_prompt": True,
            **self.extra,
        }


def user_says(name: str, content: object, tools: Sequence[object] = ()) -> Conversation:
    """One user message."""
    return Conversation(name, [{"role": "user", "content": content}], tools)


def tool_call(call_id: str, arguments: object) -> Data:
    """A call of the tool."""
    return {"id": call_id, "type": "function", "function": {"name": "tool1", "arguments": arguments}}


def tool_use(name: str, calls: Sequence[Data]) -> Conversation:
    """A user asks, the assistant calls, the tool answers, the assistant reports, the user goes on."""
    return Conversation(
        name,
        [
            USER,
            {"role": "assistant", "content": "", "tool_calls": list(calls)},
            {"role": "tool", "content": "Tool response", "tool_call_id": "call00001"},
            {"role": "assistant", "content": "The tool response was 'tool response'"},
            USER,
        ],
        [TOOL],
    )


def with_empty_reasoning(conversation: Conversation) -> Conversation:
    """The conversation with an empty reasoning in each assistant message, behind all its other keys."""
    messages = [
        {**message, "reasoning_content": ""} if message["role"] == "assistant" else message
        for message in conversation.messages
    ]
    return replace(conversation, messages=messages)


def reasoning_history(name: str, reasonings: Sequence[str], extra: Data) -> Conversation:
    """A conversation whose assistant messages carry reasoning, one each."""
    messages = [USER]
    for reasoning in reasonings:
        answer = {"role": "assistant", "content": "Assistant message", "reasoning_content": reasoning}
        messages += [answer, USER]
    return Conversation(name, messages, extra=extra)
