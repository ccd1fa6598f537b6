"""What single handlers do to messages and prompts, beyond the steps that all share (`chat.md` section 5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from scanner.chat.changes import OUTDATED_GEMMA4, Journal, Step
from scanner.chat.continuation import DEEPSEEK, DSML_V32
from scanner.chat.handlers import is_outdated_gemma4
from scanner.chat.json_text import JsonTextError, parse_json
from scanner.chat.parts import cut, joined_bytes
from scanner.chat.request import Message
from scanner.dialect import RenderedPart

Adjust: TypeAlias = Callable[[list[Message], bytes, Journal], list[Message]]
"""Messages, the template's source and the journal → the messages to go on with."""


def adjust(handler: str, messages: list[Message], source: bytes, journal: Journal) -> list[Message]:
    """The messages as a handler wants them."""
    return ADJUSTMENTS[handler](messages, source, journal) if handler in ADJUSTMENTS else messages


def _gpt_oss(messages: list[Message], _source: bytes, journal: Journal) -> list[Message]:
    for index, message in enumerate(messages):
        if isinstance(message.get("reasoning_content"), str):
            message["thinking"] = message["reasoning_content"]
            journal.note(Step.HANDLER, "reasoning_content was copied to thinking", index)
            if message.get("tool_calls"):
                message.pop("content", None)
                journal.note(Step.HANDLER, "the content beside reasoning and tool calls was removed", index)
    return messages


def _lfm2(messages: list[Message], _source: bytes, journal: Journal) -> list[Message]:
    for index, message in enumerate(messages):
        if "reasoning_content" in message:
            message["thinking"] = message["reasoning_content"]
            journal.note(Step.HANDLER, "reasoning_content was copied to thinking", index)
    return messages


def _ministral(messages: list[Message], _source: bytes, journal: Journal) -> list[Message]:
    for index, message in enumerate(messages):
        if message["role"] not in ("system", "assistant"):
            continue
        content = message.get("content")
        parts: list[Any] = []
        if message.get("reasoning_content"):
            parts.append({"type": "thinking", "thinking": message.pop("reasoning_content")})
        if isinstance(content, str):
            parts.append({"type": "text", "text": content})
        elif isinstance(content, list):
            parts += content
        message["content"] = parts
        journal.note(Step.HANDLER, "content and reasoning became a list of parts", index)
    return messages


def _deepseek(messages: list[Message], source: bytes, journal: Journal) -> list[Message]:
    return messages if DSML_V32 in source else _in_order_of_calls(messages, journal)


def _in_order_of_calls(messages: list[Message], journal: Journal) -> list[Message]:
    """Tool results within a run of user and tool messages, in the order of the calls they answer."""
    ranks: Mapping[str, int] = {}
    start = 0
    while start < len(messages):
        if messages[start]["role"] not in ("user", "tool"):
            calls = messages[start].get("tool_calls") or ()
            if messages[start]["role"] == "assistant" and calls:
                ranks = {call.get("id", ""): rank for rank, call in enumerate(calls)}
            start += 1
            continue
        end = start
        while end < len(messages) and messages[end]["role"] in ("user", "tool"):
            end += 1
        places = [at for at in range(start, end) if messages[at]["role"] == "tool"]
        results = [messages[at] for at in places]
        ordered = sorted(results, key=lambda result: ranks.get(result.get("tool_call_id", ""), 0))
        for at, before, result in zip(places, results, ordered, strict=True):
            messages[at] = result
            if result is not before:
                journal.note(Step.HANDLER, "tool results were put in the order of the calls", at)
        start = end
    return messages


def _gemma4(messages: list[Message], source: bytes, journal: Journal) -> list[Message]:
    if not is_outdated_gemma4(source):
        return messages
    journal.warn(OUTDATED_GEMMA4)
    folded: list[Message] = []
    at = 0
    while at < len(messages):
        if not (messages[at]["role"] == "assistant" and messages[at].get("tool_calls")):
            folded.append(messages[at])
            at += 1
            continue
        message, following = _fold_tool_turn(messages, at)
        journal.note(
            Step.HANDLER, f"a call, its results and its answer became one message ({following - at} of them)", at
        )
        folded.append(message)
        at = following
    return folded


def _fold_tool_turn(messages: list[Message], at: int) -> tuple[Message, int]:
    """An assistant's calls with the results and the answer behind them, as one message; where the next one starts."""
    call = messages[at]
    calls = call["tool_calls"]
    following = at + 1
    responses = []
    while following < len(messages) and messages[following]["role"] == "tool":
        result = messages[following]
        place = following - at - 1
        name = calls[place]["function"]["name"] if place < len(calls) else result.get("tool_call_id", "")
        responses.append({"name": name, "response": _as_json(result.get("content"))})
        following += 1
    content: object = ""
    reasoning = call.get("reasoning_content")
    if following < len(messages):
        answer = messages[following]
        if answer["role"] == "assistant" and not answer.get("tool_calls") and answer.get("content"):
            content = answer["content"]
            following += 1
    message: Message = {"role": "assistant", "tool_calls": calls}
    if responses:
        message["tool_responses"] = responses
    if content:
        message["content"] = content
    if reasoning:
        message["reasoning_content"] = reasoning
    return message, following


def _as_json(content: object) -> object:
    if not isinstance(content, str):
        return content
    try:
        return parse_json(content)
    except JsonTextError:
        return content


ADJUSTMENTS: Mapping[str, Adjust] = {
    "GPT-OSS": _gpt_oss,
    "LFM2": _lfm2,
    "LFM2.5": _lfm2,
    "Ministral/Magistral Large 3": _ministral,
    DEEPSEEK: _deepseek,
    "Gemma 4": _gemma4,
}
NOT_NORMALISED_AGAIN = frozenset({"GPT-OSS", "LFM2", "LFM2.5", "Ministral/Magistral Large 3"})
"""Handlers whose own message lists go to the template as they are; so do those of DeepSeek V4."""


def normalises_again(handler: str, source: bytes) -> bool:
    """Whether step 4 is applied once more behind a handler's own changes."""
    return handler not in NOT_NORMALISED_AGAIN and not is_deepseek_v4(handler, source)


def takes_schema(handler: str, source: bytes) -> bool:
    """Whether a schema for the answer is told to the template, as the variable `response_format`."""
    return is_deepseek_v4(handler, source)


def is_deepseek_v4(handler: str, source: bytes) -> bool:
    """Whether this handler works in its way for V4."""
    return handler == DEEPSEEK and DSML_V32 not in source


GPT_OSS_RETURN, GPT_OSS_END = b"<|return|>", b"<|end|>"
GEMMA4_TURN_END, GEMMA4_PROMPT = b"<turn|>\n", b"<|turn>model\n"


def finish(
    handler: str, parts: list[RenderedPart], opens_turn: bool, add_generation_prompt: bool, journal: Journal
) -> list[RenderedPart]:
    """What two handlers do to a finished prompt; `opens_turn`: the assistant speaks next, prompted or continued."""
    if handler == "GPT-OSS" and not add_generation_prompt:
        return _end_instead_of_return(parts, journal)
    if handler == "Gemma 4" and opens_turn and joined_bytes(parts).endswith(GEMMA4_TURN_END):
        journal.note(Step.HANDLER, "the generation prompt that the template left out was added")
        return [*parts, RenderedPart(GEMMA4_PROMPT, False)]
    return parts


def _end_instead_of_return(parts: list[RenderedPart], journal: Journal) -> list[RenderedPart]:
    whole = joined_bytes(parts)
    at = whole.rfind(GPT_OSS_RETURN)
    if at < 0:
        return parts
    journal.note(Step.HANDLER, "the last <|return|> became <|end|>")
    behind = cut(parts, at + len(GPT_OSS_RETURN), len(whole))
    return [*cut(parts, 0, at), RenderedPart(GPT_OSS_END, False), *behind]
