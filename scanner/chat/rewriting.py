"""What llama.cpp does to the messages of a request before any template sees them (`chat.md` section 3, steps 2 to 8).

Every function takes the messages, may change them in place (they are the pipeline's own copies), and gives the list to
go on with. What it changed goes into the journal.
"""

from __future__ import annotations

from typing import Any

from scanner.chat.changes import CALLS_WITHOUT_TOOLS, NO_CONTENT_FORM, SYSTEM_REMOVED, Journal, Step
from scanner.chat.json_text import JsonTextError, parse_json
from scanner.chat.request_base import SERVER_ERROR, Message, RequestError
from scanner.results import Capabilities

TRIMS = b"You have access to the following functions in JSONSchema format"
"""A source with this text gets its content trimmed (step 2)."""
KEEPS_DEVELOPER = b"<|channel|>"
"""A source with this text knows the role `developer` (step 5)."""
NOT_MERGED = "[json.exception.type_error.302] type must be string, but is array"
"""What the server says where it should merge a system message and content comes in parts."""
BAD_ARGUMENTS = "Failed to parse tool call arguments as JSON: "
WHITE_SPACE = " \t\n\v\f\r"


def rewrite(messages: list[Message], source: bytes, capabilities: Capabilities, journal: Journal) -> list[Message]:
    """Steps 2 to 8 for a template of this source and these flags. Raises `RequestError` for arguments that are not
    JSON where the template wants them parsed."""
    if TRIMS in source:
        trim(messages, journal)
    normalise_content(messages, capabilities, journal)
    if KEEPS_DEVELOPER not in source:
        map_developer(messages, journal)
    if not capabilities.system_role:
        messages = merge_system(messages, journal)
    if capabilities.tool_calls:
        add_content(messages, journal)
    if capabilities.object_arguments:
        parse_arguments(messages, journal)
    return messages


def trim(messages: list[Message], journal: Journal) -> None:
    """Step 2: no white space at the ends of content, reasoning and text parts."""
    for index, message in enumerate(messages):
        before = repr(message)
        for name in ("content", "reasoning_content"):
            if isinstance(message.get(name), str):
                message[name] = message[name].strip(WHITE_SPACE)
        if isinstance(message.get("content"), list):
            for part in message["content"]:
                if isinstance(part.get("text"), str):
                    part["text"] = part["text"].strip(WHITE_SPACE)
        if repr(message) != before:
            journal.note(Step.TRIMMED, "white space at the ends was cut, as for every template of this family", index)


def normalise_content(messages: list[Message], capabilities: Capabilities, journal: Journal) -> None:
    """Step 4: content takes the one form that the template claims to support."""
    strings, typed = capabilities.string_content, capabilities.typed_content
    if not strings and not typed:
        journal.warn(NO_CONTENT_FORM)
    for index, message in enumerate(messages):
        content = message.get("content")
        if strings and not typed and isinstance(content, list):
            message["content"] = joined(content)
            journal.note(Step.CONTENT, f"{_count(content)} became one string: the template takes strings only", index)
        if typed and not strings and isinstance(content, str):
            message["content"] = [{"type": "text", "text": content}]
            journal.note(Step.CONTENT, "the string became a text part: the template takes typed content only", index)


def joined(parts: list[dict[str, Any]], between: str = "\n") -> str:
    """Parts as one string: texts with `between` them, but nothing beside a media marker, and nothing before the first
    text that is not empty."""
    text = ""
    breaks = False
    for part in parts:
        is_text = part.get("type") == "text"
        if breaks and is_text and text:
            text += between
        text += part.get("text", "")
        breaks = is_text
    return text


def map_developer(messages: list[Message], journal: Journal) -> None:
    """Step 5."""
    for index, message in enumerate(messages):
        if message["role"] == "developer":
            message["role"] = "system"
            journal.note(Step.DEVELOPER, "the role developer became system", index)


def merge_system(messages: list[Message], journal: Journal) -> list[Message]:
    """Step 6, for a template that is not known to read system messages. Raises `RequestError` for content in parts,
    which llama.cpp cannot merge."""
    if not messages or messages[0]["role"] != "system":
        return messages
    system, *others = messages
    if not others:
        journal.warn(SYSTEM_REMOVED)
        journal.note(Step.SYSTEM, "the only message, a system message, was removed", 0)
        return []
    first = others[0]
    for index, message in enumerate((system, first)):
        if not isinstance(message["content"], str):
            raise RequestError(NOT_MERGED, index, status=SERVER_ERROR)
    first["content"] = f"{system['content']}\n{first['content']}"
    text = f"the system message was put in front of the next one ({first['role']}): no support for the system role"
    journal.note(Step.SYSTEM, text, 0)
    return others


def add_content(messages: list[Message], journal: Journal) -> None:
    """Step 7."""
    for index, message in enumerate(messages):
        if "tool_calls" in message and "content" not in message:
            message["content"] = ""
            journal.note(Step.CONTENT, "an empty content was added beside the tool calls", index)


def parse_arguments(messages: list[Message], journal: Journal) -> None:
    """Step 8: the template reads single arguments, so it gets them as objects."""
    for index, message in enumerate(messages):
        for call in message.get("tool_calls", ()):
            function = call["function"]
            if not isinstance(function["arguments"], str):
                continue
            try:
                function["arguments"] = parse_json(function["arguments"])
            except JsonTextError as error:
                raise RequestError(f"{BAD_ARGUMENTS}{error.message}", index) from error
            journal.note(Step.ARGUMENTS, f"the arguments of {function['name']} were parsed from their JSON text", index)


def warn_of_tools(has_tools: bool, capabilities: Capabilities, journal: Journal) -> None:
    """llama.cpp's warning where tools come to a template that shows calls and no tools (section 4)."""
    if has_tools and capabilities.tool_calls and not capabilities.tools:
        journal.warn(CALLS_WITHOUT_TOOLS)


def _count(parts: list[Any]) -> str:
    return "1 part" if len(parts) == 1 else f"{len(parts)} parts"
