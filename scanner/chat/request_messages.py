"""The messages of a request: checked as llama-server checks them, and rebuilt as llama.cpp hands them on (`chat.md`
section 3, step 3).

The server looks twice, and an error of the first look wins over any of the second, whichever message it is about:
`check_messages` looks at the content of all messages, `read_messages` at everything else. Texts and order of the errors
were read off the real engine (`tests/cases/requests.jsonl`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from scanner.chat.json_text import dump_json
from scanner.chat.request_base import SERVER_ERROR, Message, Notes, Refusal, RequestError, item_of, string_of

FAILED = "Failed to parse messages: "
ASSISTANT = "assistant"
OPTIONAL_TEXTS = ("reasoning_content", "name", "tool_call_id")
"""Further strings of a message, in llama.cpp's order. An empty one is left out."""
MESSAGE_KEYS = ("role", "content", "tool_calls", *OPTIONAL_TEXTS)
MEDIA = {"image_url": "image", "input_audio": "audio", "input_video": "video", "video_url": "video"}
"""Types of content parts that need a multimodal model, and what the server calls them."""
NO_MEDIA = "{} input is not supported - hint: if this is unexpected, you may need to provide the mmproj"


def check_messages(messages: Sequence[Any]) -> None:
    """The server's first look. Raises RequestError."""
    for index, message in enumerate(messages):
        _check_message(message if isinstance(message, Mapping) else {}, index)


def _check_message(message: Mapping[str, Any], index: int) -> None:
    if "content" not in message:
        if message.get("role") != ASSISTANT:
            raise RequestError("All non-assistant messages must contain 'content'", index)
        if "tool_calls" not in message:
            raise RequestError("Assistant message must contain either 'content' or 'tool_calls'!", index)
        return
    content = message["content"]
    if isinstance(content, list):
        for part in content:
            _check_part(part, index)
    elif content is not None and not isinstance(content, str):
        raise RequestError("Expected 'content' to be a string or an array", index)


def _check_part(part: Any, index: int) -> None:
    kind = part.get("type") if isinstance(part, Mapping) else None
    if kind == "text":
        return
    if isinstance(kind, str) and kind in MEDIA:
        raise RequestError(NO_MEDIA.format(MEDIA[kind]), index, status=SERVER_ERROR)
    raise RequestError("unsupported content[].type", index)


def read_messages(messages: Sequence[Any], notes: Notes) -> tuple[Message, ...]:
    """The messages that `check_messages` let pass, rebuilt. Raises RequestError."""
    return tuple(_read(index, message, notes) for index, message in enumerate(messages))


def _read(index: int, given: Mapping[str, Any], notes: Notes) -> Message:
    notes.message = index
    try:
        return _message(given, notes)
    except Refusal as refusal:
        raise RequestError(FAILED + refusal.text, index, status=SERVER_ERROR) from None
    finally:
        notes.message = None


def _message(given: Mapping[str, Any], notes: Notes) -> Message:
    if "role" not in given:
        raise Refusal(f"Missing 'role' in message: {dump_json(given)}")
    message: Message = {"role": string_of(given["role"]), "content": _content(given, notes)}
    calls = _calls(given, notes)
    for name in OPTIONAL_TEXTS:
        text = string_of(given.get(name, ""))
        if text:
            message[name] = text
        elif name in given:
            notes.add(f"empty {name} left out")
    if calls:
        message["tool_calls"] = calls
    notes.dropped(given, MESSAGE_KEYS)
    return message


def _content(given: Mapping[str, Any], notes: Notes) -> str | list[dict[str, str]]:
    content = given.get("content")
    if content is None:
        notes.add(f"{'null' if 'content' in given else 'absent'} content became an empty string")
        return ""
    if isinstance(content, str):
        return content
    if not content:
        notes.add("an empty list of content parts became an empty string")
        return ""
    return [_part(part, position, notes) for position, part in enumerate(content)]


def _part(given: Mapping[str, Any], position: int, notes: Notes) -> dict[str, str]:
    text = string_of(item_of(given, "text"))
    notes.dropped(given, ("type", "text"), f" from content part {position}")
    return {"type": "text", "text": text}


# --- tool calls -------------------------------------------------------------------------------------------------------


def _calls(given: Mapping[str, Any], notes: Notes) -> list[dict[str, Any]]:
    calls = given.get("tool_calls", [])
    rebuilt = [_call(call, position, notes) for position, call in enumerate(_items(calls))]
    if "tool_calls" in given and not rebuilt:
        notes.add(f"{'null' if calls is None else 'empty'} tool_calls left out")
    elif isinstance(calls, Mapping):
        notes.add("tool_calls given as an object: its values were taken for the calls")
    return rebuilt


def _items(value: Any) -> Iterator[Any]:
    """What the JSON library walks over: the items of an array, the values of an object, a single other value."""
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, list):
        yield from value
    elif value is not None:
        yield value


def _call(given: Any, position: int, notes: Notes) -> dict[str, Any]:
    function = _function(given)
    name = string_of(function["name"])
    call = {"type": "function", "function": {"name": name, "arguments": _arguments(function, position, notes)}}
    if "id" in given:
        identifier = string_of(given["id"])
        if identifier:
            call["id"] = identifier
        else:
            notes.add(f"empty id of tool call {position} left out")
    notes.dropped(given, ("type", "function", "id"), f" from tool call {position}")
    notes.dropped(function, ("name", "arguments"), f" from the function of tool call {position}")
    return call


def _function(call: Any) -> Mapping[str, Any]:
    """The function of a call that has a type, a function and in it a name. Raises Refusal."""
    given: Mapping[str, Any] = call if isinstance(call, Mapping) else {}
    if "type" not in given:
        raise Refusal(f"Missing tool call type: {dump_json(call)}")
    if given["type"] != "function":
        raise Refusal(f"Unsupported tool call type: {dump_json(call)}")
    if "function" not in given:
        raise Refusal(f"Missing tool call function: {dump_json(call)}")
    function = given["function"]
    if not isinstance(function, Mapping) or "name" not in function:
        raise Refusal(f"Missing tool call name: {dump_json(call)}")
    return function


def _arguments(function: Mapping[str, Any], position: int, notes: Notes) -> str:
    arguments = item_of(function, "arguments")
    if isinstance(arguments, str):
        return arguments
    kind = "an object" if isinstance(arguments, Mapping) else "no string"
    notes.add(f"arguments of tool call {position} given as {kind} were written as JSON text")
    return dump_json(arguments)
