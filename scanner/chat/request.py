"""The body of a chat request, as llama-server reads it: checked, and in the form the later steps want
(`chat.md` section 3, steps 3 and 9, and its server fields).

What the server says of a bad request, in which order it looks at things, and what it changes without saying so was
read off the real engine: `tests/cases/requests.jsonl` holds its answers.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from scanner.chat.json_text import MAX_DEPTH, JsonTextError, is_unicode, parse_json
from scanner.chat.request_base import Message, Notes, RequestError, RequestLimitError, Tool
from scanner.chat.request_fields import (
    AUTO,
    Fields,
    check_reasoning_format,
    check_tool_choice,
    note_ignored,
    read_continuation,
    read_kwargs,
    read_schema,
)
from scanner.chat.request_messages import check_messages, read_messages
from scanner.chat.request_tools import read_tools

__all__ = [
    "Message",
    "Request",
    "RequestError",
    "RequestLimitError",
    "Tool",
    "read_request",
    "read_request_text",
]


@dataclass(frozen=True, slots=True)
class Request:
    """A request as the server understood it.

    `messages` and `tools` are rebuilt as llama.cpp hands them on. `kwargs` are the template's extra variables, with
    `reasoning_effort` among them. `enable_thinking` is None where the request leaves it to the server.
    `add_generation_prompt` is what was asked for; it counts only where nothing is continued.

    `continues` says that the last message, whatever its role, is taken off and continued, and how: `auto` (its
    reasoning, then its text if it has any), `content` (its text always), `reasoning_content` (its reasoning only).
    None: nothing is continued. A last message of the assistant is continued without being asked for.

    `response_format` is the JSON schema that the answer has to follow. `tool_choice` is `auto`, `none` or `required`;
    the tools are told to the template in any case.

    `notes` says what was changed: (text, index of the message or None). `warnings` are what llama.cpp writes into its
    log about fields of the wrong type. `refused_later` is what the server answers in place of a prompt that it made:
    it looks at some fields only afterwards, so an error of the template comes first.
    """

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    enable_thinking: bool | None = None
    add_generation_prompt: bool = True
    response_format: Any = None
    notes: tuple[tuple[str, int | None], ...] = ()
    continues: str | None = None
    tool_choice: str = AUTO
    warnings: tuple[str, ...] = ()
    refused_later: RequestError | None = None


def read_request(body: Any) -> Request:
    """Read the body of a request that was JSON: what a client would send for this value. Raises RequestError, and
    nothing else."""
    return _read(body if _is_plain(body, 0) else _parsed(_sent(body)))


def read_request_text(text: bytes | str) -> Request:
    """Read the body of a request as it stands in the HTTP request. Raises RequestError, and nothing else."""
    return _read(_parsed(text))


def _parsed(text: bytes | str) -> Any:
    try:
        return parse_json(text)
    except JsonTextError as error:
        raise (RequestLimitError if error.ours else RequestError)(error.message) from None


def _is_plain(value: Any, depth: int) -> bool:
    """Whether a value is JSON that any library reads back as it is."""
    if isinstance(value, str):
        return is_unicode(value)
    if value is None or isinstance(value, bool):
        return True
    if isinstance(value, int):
        return -(2**63) <= value < 2**64
    if isinstance(value, float):
        return math.isfinite(value)
    if depth >= MAX_DEPTH:
        return False
    if type(value) is dict:
        return all(type(key) is str and _is_plain(key, depth) for key in value) and _are_plain(value.values(), depth)
    return type(value) is list and _are_plain(value, depth)


def _are_plain(items: Iterable[Any], depth: int) -> bool:
    return all(_is_plain(item, depth + 1) for item in items)


def _sent(body: Any) -> str:
    """The text that a client written in Python sends for a value."""
    try:
        return json.dumps(body, default=_as_dict)
    except (TypeError, ValueError, RecursionError) as error:
        raise RequestLimitError(f"the body of the request is not JSON: {error}") from None


def _as_dict(value: Any) -> dict[Any, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"it holds a value of type {type(value).__name__}")


def _read(body: Any) -> Request:
    """Read the fields in the server's order: the first that is wrong gives the error."""
    fields, notes = Fields(body if isinstance(body, Mapping) else {}), Notes()
    fields.boolean("stream", False)
    tool_choice = fields.string("tool_choice", AUTO)
    schema = read_schema(fields, fields.string("grammar", ""))
    messages = _messages(fields.given, notes)
    tools = read_tools(fields.given.get("tools"), notes)
    check_tool_choice(tool_choice)
    fields.boolean("parallel_tool_calls", False)
    add_generation_prompt = fields.boolean("add_generation_prompt", True)
    effort = fields.string("reasoning_effort", "")
    continues = read_continuation(fields, add_generation_prompt, messages)
    fields.boolean("echo", False)
    check_reasoning_format(fields)
    if tools and tool_choice != "none" and "grammar" in fields.given:
        raise RequestError("Cannot use custom grammar constraints with tools.")
    kwargs, thinking = read_kwargs(fields, effort, notes)
    fields.skip_number("thinking_budget_tokens")
    fields.skip_number("reasoning_budget_tokens")
    refused_later = _late_refusal(fields)
    note_ignored(fields, notes)
    if tools and tool_choice == "none":
        notes.add("tool_choice none keeps the model from calling, but the tools are told to the template all the same")
    return Request(
        messages=messages,
        tools=tools,
        kwargs=kwargs,
        enable_thinking=thinking,
        add_generation_prompt=add_generation_prompt,
        response_format=schema,
        notes=tuple(notes.entries),
        continues=continues,
        tool_choice=tool_choice,
        warnings=tuple(fields.warnings),
        refused_later=refused_later,
    )


def _messages(body: Mapping[str, Any], notes: Notes) -> tuple[Message, ...]:
    if "messages" not in body:
        raise RequestError("'messages' is required")
    messages = body["messages"]
    if not isinstance(messages, list):
        raise RequestError("Expected 'messages' to be an array")
    check_messages(messages)
    return read_messages(messages, notes)


def _late_refusal(fields: Fields) -> RequestError | None:
    if fields.boolean("logprobs", False):
        fields.skip_number("top_logprobs")
    elif fields.given.get("top_logprobs") is not None:
        return RequestError("top_logprobs requires logprobs to be set to true")
    return None
