"""What `apply_chat_template` of transformers hands to a template for a request (version 5.24.0)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

_REASONING = ("reasoning_content", "thinking", "reasoning")
"""The names under which a message may carry its reasoning, the first that is there counts."""


def variables_of(
    messages: Sequence[Mapping[str, Any]],
    *,
    tools: Sequence[Mapping[str, Any]] | None = None,
    add_generation_prompt: bool = True,
    bos: str | None = None,
    eos: str | None = None,
    kwargs: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The template's variables for a request in OpenAI's form.

    Messages lose the keys whose value is None, show their reasoning as `thinking` and as `reasoning_content`, and have
    the arguments of tool calls as objects, the form that transformers documents (text that is no JSON stays text).
    `tools` pass as they are: None and an empty list differ. A special token that the model does not have is absent.
    `kwargs` go last. The arguments are not changed, but the result shares data with them.

    transformers refuses an empty conversation; this does not.
    """
    tokens = {"bos_token": bos, "eos_token": eos}
    return {
        "messages": [_message(message) for message in messages],
        "tools": tools,
        "documents": None,
        "add_generation_prompt": add_generation_prompt,
        **{name: token for name, token in tokens.items() if token is not None},
        **(kwargs or {}),
    }


def variables_of_request(body: Mapping[str, Any], *, bos: str | None, eos: str | None) -> dict[str, Any]:
    """The same for the body of a chat request, as a person would hand it on: what only servers know, such as
    `reasoning_effort`, becomes a keyword argument. Raises `ValueError` for a body that is no conversation."""
    effort = {"reasoning_effort": body["reasoning_effort"]} if "reasoning_effort" in body else {}
    kwargs = body.get("chat_template_kwargs") or {}
    messages = body.get("messages", [])
    if not isinstance(messages, list) or not all(isinstance(message, Mapping) for message in messages):
        raise ValueError("`messages` is no list of objects")
    if not isinstance(kwargs, Mapping):
        raise ValueError("`chat_template_kwargs` is no object")
    return variables_of(
        messages,
        tools=body.get("tools"),
        add_generation_prompt=bool(body.get("add_generation_prompt", True)),
        bos=bos,
        eos=eos,
        kwargs={**effort, **kwargs},
    )


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    present = {key: value for key, value in message.items() if value is not None}
    if isinstance(calls := present.get("tool_calls"), list):
        present["tool_calls"] = [_call(call) for call in calls]
    return _with_reasoning(present)


def _with_reasoning(message: dict[str, Any]) -> dict[str, Any]:
    """Where the new keys stand matters to templates that print a whole message."""
    found = [message[name] for name in _REASONING if name in message]
    return {"thinking": found[0]} | message | {"reasoning_content": found[0]} if found else message


def _call(call: Any) -> Any:
    match call:
        case {"function": {"arguments": str(text), **function}, **rest}:
            del rest, function
            return {**call, "function": {**call["function"], "arguments": _parsed(text)}}
    return call


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
