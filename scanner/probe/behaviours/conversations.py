"""The requests behind the behaviours, as data. Every text is a marker, so that nothing is found by accident.

`INQUIRIES` holds all of them; only the one about control texts (`tokens.py`) depends on the template. Requests that a
server changes into the same messages are equal on purpose (`DEVELOPER` and `SYSTEM`), so that they are rendered once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from scanner.chat.scenarios import conversation, says
from scanner.probe.behaviours.base import Inquiry
from scanner.probe.markers import marker

FIRST_USER, NEXT_USER, LAST_USER = marker("FIRST_USER"), marker("NEXT_USER"), marker("LAST_USER")
FIRST_ANSWER, NEXT_ANSWER = marker("FIRST_ANSWER"), marker("NEXT_ANSWER")
FIRST_THOUGHT, NEXT_THOUGHT = marker("FIRST_THOUGHT"), marker("NEXT_THOUGHT")
SYSTEM_TEXT, OTHER_SYSTEM, CRITIC_TEXT = marker("SYSTEM"), marker("OTHER_SYSTEM"), marker("CRITIC")
RESULT_TEXT, TOOL_NAME = marker("RESULT"), marker("TOOL")
LEFT, RIGHT = marker("LEFT"), marker("RIGHT")

BLANK = " \n "
"""White space that no template puts around a content by itself."""

CALL_ID = "call00001"

EARLY_KEY, NESTED_EARLY, NESTED_LATE, LATE_KEY = marker("ZULU"), marker("YANKEE"), marker("XRAY"), marker("ALFA")
"""Keys of the arguments, none in alphabetical order with the next; no tool declares them."""
VALUE, VALUE_END = marker("VALUE"), marker("ENDING")
NON_ASCII, QUOTE = "é", '"'
ARGUMENTS: Mapping[str, object] = {
    EARLY_KEY: [1, {NESTED_EARLY: None, NESTED_LATE: 1.5}],
    LATE_KEY: f"{VALUE}{NON_ASCII}{QUOTE}{VALUE_END}",
}

TOOL: Mapping[str, object] = {
    "type": "function",
    "function": {
        "name": TOOL_NAME,
        "description": marker("DESCRIPTION"),
        "parameters": {
            "type": "object",
            "properties": {marker("PARAMETER"): {"type": "string", "description": marker("HINT")}},
            "required": [marker("PARAMETER")],
        },
    },
}

_FIRST, _NEXT, _LAST = says("user", FIRST_USER), says("user", NEXT_USER), says("user", LAST_USER)
_ANSWER, _NEXT_ANSWER = says("assistant", FIRST_ANSWER), says("assistant", NEXT_ANSWER)
_THOUGHTFUL = {**_ANSWER, "reasoning_content": FIRST_THOUGHT}
_NEXT_THOUGHTFUL = {**_NEXT_ANSWER, "reasoning_content": NEXT_THOUGHT}
_SYSTEM = says("system", SYSTEM_TEXT)
_FUNCTION = {"name": TOOL_NAME, "arguments": json.dumps(ARGUMENTS, ensure_ascii=False)}
_CALL = {"id": CALL_ID, "type": "function", "function": _FUNCTION}
_CALLS = {**says("assistant", "", tool_calls=[_CALL]), "reasoning_content": FIRST_THOUGHT}
_RESULT = says("tool", f"{BLANK}{RESULT_TEXT}{BLANK}", tool_call_id=CALL_ID, name=TOOL_NAME)


def _inquiry(name: str, *messages: Mapping[str, Any], **fields: object) -> Inquiry:
    return Inquiry(name, conversation(*messages, **fields))


def _padded(message: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**message, "content": f"{BLANK}{message['content']}{BLANK}"}


USER = _inquiry("user", _FIRST)
USER_LATER = replace(USER, name="user a day later", later=True)
NO_PROMPT = _inquiry("user, no generation prompt", _FIRST, add_generation_prompt=False)
THINKING_ON = _inquiry("thinking on", _FIRST, chat_template_kwargs={"enable_thinking": True})
THINKING_OFF = _inquiry("thinking off", _FIRST, chat_template_kwargs={"enable_thinking": False})

SYSTEM = _inquiry("system, user", _SYSTEM, _FIRST)
DEVELOPER = _inquiry("developer, user", {**_SYSTEM, "role": "developer"}, _FIRST)
LATE_SYSTEM = _inquiry("user, assistant, system, user", _FIRST, _ANSWER, _SYSTEM, _NEXT)
TWO_SYSTEMS = _inquiry("system, system, user", _SYSTEM, says("system", OTHER_SYSTEM), _FIRST)
SYSTEM_ONLY = _inquiry("system", _SYSTEM)
NO_USER = _inquiry("assistant, user", _ANSWER, _NEXT)
TWO_USERS = _inquiry("user, user", _FIRST, _NEXT)
TWO_ASSISTANTS = _inquiry("user, assistant, assistant, user", _FIRST, _ANSWER, _NEXT_ANSWER, _NEXT)
UNKNOWN_ROLE = _inquiry("user, critic, user", _FIRST, says("critic", CRITIC_TEXT), _NEXT)
ORPHAN_RESULT = _inquiry("user, tool", _FIRST, says("tool", RESULT_TEXT, tool_call_id=CALL_ID, name=TOOL_NAME))

SECOND_TURN = _inquiry("two turns", _FIRST, _ANSWER, _NEXT)
THIRD_TURN = _inquiry("three turns", _FIRST, _ANSWER, _NEXT, _NEXT_ANSWER, _LAST)
SECOND_THOUGHTFUL = _inquiry("two turns, thoughts", _FIRST, _THOUGHTFUL, _NEXT)
THIRD_THOUGHTFUL = _inquiry("three turns, thoughts", _FIRST, _THOUGHTFUL, _NEXT, _NEXT_THOUGHTFUL, _LAST)
TOOLS = _inquiry("tools", _FIRST, tools=[TOOL])
CALL = _inquiry("a call, its result", _FIRST, _CALLS, _RESULT, tools=[TOOL])
AFTER_CALL = _inquiry(
    "a call, its result, the answer, user", _FIRST, _CALLS, _RESULT, _NEXT_ANSWER, _LAST, tools=[TOOL]
)

BLANKS = _inquiry("white space", *[_padded(message) for message in (_SYSTEM, _FIRST, _ANSWER, _NEXT)])
BLANKS_NO_SYSTEM = _inquiry("white space, no system", *[_padded(message) for message in (_FIRST, _ANSWER, _NEXT)])
PARTS = _inquiry("two text parts", says("user", [{"type": "text", "text": text} for text in (LEFT, RIGHT)]))
PREFILL = _inquiry("continue", _FIRST, _ANSWER)
PREFILL_THOUGHT = _inquiry("continue behind a thought", _FIRST, _THOUGHTFUL)

INQUIRIES: Sequence[Inquiry] = (
    USER, USER_LATER, NO_PROMPT, THINKING_ON, THINKING_OFF, SYSTEM, DEVELOPER, LATE_SYSTEM, TWO_SYSTEMS, SYSTEM_ONLY,
    NO_USER, TWO_USERS, TWO_ASSISTANTS, UNKNOWN_ROLE, ORPHAN_RESULT, SECOND_TURN, THIRD_TURN, SECOND_THOUGHTFUL,
    THIRD_THOUGHTFUL, TOOLS, CALL, AFTER_CALL, BLANKS, BLANKS_NO_SYSTEM, PARTS, PREFILL, PREFILL_THOUGHT,
)  # fmt: skip
"""All of them; their names differ."""
