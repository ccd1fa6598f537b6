"""Conversations in which every text is a marker, with the variables of a request (`behaviours.md` section 1).

Roles, types, JSON-schema types and ids are not marked: templates compare them, and two of Mistral's demand ids of nine
letters and digits.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scanner.chat.variables import dates
from scanner.dialect import Limits, RenderResult, Template, from_python
from scanner.probe.capabilities import to_probe_run
from scanner.probe.conversations import Data
from scanner.probe.markers import marker
from scanner.results import Capabilities, ProbeRun

SYSTEM, USER, USER_AGAIN, USER_LAST = marker("SYSTEM"), marker("FIRST_USER"), marker("NEXT_USER"), marker("LAST_USER")
ANSWER, LAST_ANSWER = marker("FIRST_ANSWER"), marker("LAST_ANSWER")
EARLIER_REASONING, LAST_REASONING = marker("EARLIER_REASONING"), marker("LAST_REASONING")
TOOL_NAME, PARAMETER = marker("TOOL"), marker("PARAMETER")
EFFORT = marker("EFFORT")

OFFERED_TOOL: Data = {
    "type": "function",
    "function": {
        "name": TOOL_NAME,
        "description": marker("DESCRIPTION"),
        "parameters": {
            "type": "object",
            "properties": {PARAMETER: {"type": "string", "description": marker("HINT")}},
            "required": [PARAMETER],
        },
    },
}

TOKENS = {"bos_token": from_python("<s>", mark_input=False), "eos_token": from_python("</s>", mark_input=False)}
"""No part of a request, so not marked as such."""
TOKEN_TEXTS = {"bos_token": "<s>", "eos_token": "</s>"}

KEEPS_REASONING: Data = {
    "preserve_thinking": True,
    "clear_thinking": False,
    "truncate_history_thinking": False,
    "drop_thinking": False,
}
"""What asks a template to keep the reasoning of earlier turns, as in the probe of llama.cpp (`caps.md`, 7)."""


@dataclass(frozen=True, slots=True)
class MarkedCall:
    """A tool call by its markers. Its name is not that of the offered tool, which a list of tools prints as well."""

    id: str
    name: str
    key: str
    value: str
    result: str

    def message_part(self, *, as_object: bool) -> Data:
        """The call as an assistant's message holds it; arguments as an object, or as JSON text."""
        arguments: Data = {self.key: self.value}
        return {
            "type": "function",
            "function": {"name": self.name, "arguments": arguments if as_object else json.dumps(arguments)},
            "id": self.id,
        }


CALLS = tuple(
    [
        MarkedCall(f"call0000{number}", *[marker(f"{word}_{what}") for what in ("CALL", "KEY", "VALUE", "RESULT")])
        for number, word in ((1, "FIRST"), (2, "SECOND"))
    ]
)


class Form:
    """The form in which a template claims to take contents: a list of one text part when typed only, else text."""

    def __init__(self, capabilities: Capabilities) -> None:
        self.typed = capabilities.typed_content and not capabilities.string_content

    def content(self, text: str) -> object:
        """A message's content."""
        return text_part(text) if self.typed else text

    def message(self, role: str, text: str, **more: object) -> Data:
        """A message in the key order of a request."""
        return {"role": role, "content": self.content(text), **more}

    def tool_use(self, calls: Sequence[MarkedCall], *, as_object: bool) -> list[Data]:
        """A user asks, the assistant calls without content, the tools answer, it reports, the user goes on."""
        made = [call.message_part(as_object=as_object) for call in calls]
        return [
            self.message("user", USER),
            self.message("assistant", "", tool_calls=made),
            *[self.message("tool", call.result, tool_call_id=call.id) for call in calls],
            self.message("assistant", ANSWER),
            self.message("user", USER_LAST),
        ]

    def reasoning_history(self) -> list[Data]:
        """Two answers with reasoning, each between users."""
        return [
            self.message("user", USER),
            self.message("assistant", ANSWER, reasoning_content=EARLIER_REASONING),
            self.message("user", USER_AGAIN),
            self.message("assistant", LAST_ANSWER, reasoning_content=LAST_REASONING),
            self.message("user", USER_LAST),
        ]


def text_part(text: str) -> list[Data]:
    """A content of one text part."""
    return [{"type": "text", "text": text}]


@dataclass(slots=True)
class Renderer:
    """Renders conversations with the variables of a request, without statistics.

    `now` is the clock of every run, in seconds since the epoch; it stands still, so that outputs can be compared.
    """

    template: Template
    now: float
    limits: Limits | None
    shared: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.shared = dates(self.now)

    def variables(self, messages: Sequence[Data], tools: Sequence[Data] = (), extra: Data | None = None) -> Data:
        """What a request binds, as data. No `tools` where there are none: an empty list changes some templates."""
        offered = {"tools": list(tools)} if tools else {}
        more = dict(extra or {})
        return {
            "messages": list(messages),
            **offered,
            **TOKEN_TEXTS,
            "enable_thinking": True,
            **self.shared,
            **more,
            "add_generation_prompt": True,
        }

    def render(self, data: Mapping[str, object]) -> RenderResult:
        """Run the template."""
        return self.template.run({**data, **TOKENS}, statistics=False, now=self.now, limits=self.limits)

    def run(self, name: str, data: Mapping[str, object]) -> ProbeRun:
        """Run the template and keep the run under a name."""
        started = time.perf_counter()
        result = self.render(data)
        return to_probe_run(name, data, result, time.perf_counter() - started)


def renderer(template: Template, now: float | None, limits: Limits | None) -> Renderer:
    """A renderer whose clock stands at `now`, or at the present."""
    return Renderer(template, time.time() if now is None else now, limits)
