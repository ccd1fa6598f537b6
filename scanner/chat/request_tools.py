"""The tools of a request: checked as llama-server checks them, and rebuilt as llama.cpp hands them on (`chat.md`
section 3, step 9). Texts and order of the errors were read off the real engine (`tests/cases/requests.jsonl`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scanner.chat.json_text import dump_json
from scanner.chat.request_base import (
    SERVER_ERROR,
    Notes,
    Refusal,
    RequestError,
    Tool,
    item_of,
    shown,
    string_of,
    type_name,
)


def read_tools(given: Any, notes: Notes) -> tuple[Tool, ...]:
    """The tools, rebuilt; none where the field is absent (None). Raises RequestError."""
    if given is None:
        return ()
    try:
        if not isinstance(given, list):
            raise Refusal(f"Expected 'tools' to be an array, got {dump_json(given)}")
        return tuple([_tool(tool, notes) for tool in given])
    except Refusal as refusal:
        text = f"Failed to parse tools: {refusal.text}; tools = {dump_json(given, indent=2)}"
        raise RequestError(text, status=SERVER_ERROR) from None


def _tool(given: Any, notes: Notes) -> Tool:
    function = _function(given)
    name = string_of(item_of(function, "name"))
    description = string_of(function.get("description", ""))
    parameters = function.get("parameters", {})
    _note_changes(given, function, name, notes)
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def _function(tool: Any) -> Mapping[str, Any]:
    """The function of a tool that has a type and an object for a function. Raises Refusal."""
    given: Mapping[str, Any] = tool if isinstance(tool, Mapping) else {}
    if "type" not in given:
        raise Refusal(f"Missing tool type: {dump_json(tool)}")
    if given["type"] != "function":
        raise Refusal(f"Unsupported tool type: {dump_json(tool)}")
    if "function" not in given:
        raise Refusal(f"Missing tool function: {dump_json(tool)}")
    function = given["function"]
    if not isinstance(function, Mapping):
        raise Refusal(f"[json.exception.type_error.304] cannot use at() with {type_name(function)}")
    return function


def _note_changes(tool: Mapping[str, Any], function: Mapping[str, Any], name: str, notes: Notes) -> None:
    called = shown(name)
    if "description" not in function:
        notes.add(f"an empty description added to tool {called}")
    if "parameters" not in function:
        notes.add(f"empty parameters added to tool {called}")
    notes.dropped(tool, ("type", "function"), f" from tool {called}")
    notes.dropped(function, ("name", "description", "parameters"), f" from the function of tool {called}")
