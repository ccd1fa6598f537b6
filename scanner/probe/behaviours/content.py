"""What becomes of contents: white space at their ends, two text parts, the content of a call."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from scanner.chat.server import Loaded, Server
from scanner.dialect import Limits, RenderResult
from scanner.probe.behaviours import conversations as texts
from scanner.probe.behaviours.asking import run_template
from scanner.probe.behaviours.base import (
    SEPARATOR,
    Answer,
    Prompts,
    between,
    excerpt,
    position,
    quoted,
    raises,
    shortened,
)
from scanner.probe.behaviours.outcomes import (
    BLANK_LINE,
    DIFFERENT,
    DROPPED,
    DUMPED,
    KEPT,
    NEWLINE,
    NOTHING,
    OTHER,
    RAISES,
    SAME,
    SPACE,
    TRIMMED,
)
from scanner.probe.marked import TOKENS, Form
from scanner.probe.markers import Sight, pattern, sight
from scanner.results import Behaviour

# -- white space -------------------------------------------------------------------------------------------------------

_ROLES: Mapping[str, str] = {
    "system": texts.SYSTEM_TEXT,
    "user": texts.FIRST_USER,
    "assistant": texts.FIRST_ANSWER,
}


def white_space(prompts: Prompts) -> Behaviour:
    """Contents with white space at both ends. The detail has each role, as `system kept · user trimmed · assistant
    trimmed right · tool raises`; the outcome is `trimmed` if one is, else `kept` if one is.

    Where the conversation fails it is tried again without its system message. The tool result is that of a
    conversation of its own.
    """
    key = "white_space"
    answer = prompts.ask(texts.BLANKS)
    found = {}
    if answer.failure is not None:
        found["system"] = RAISES
        answer = prompts.ask(texts.BLANKS_NO_SYSTEM)
    for role, marker in _ROLES.items():
        found.setdefault(role, treatment(answer, marker))
    found["tool"] = treatment(prompts.ask(texts.CALL), texts.RESULT_TEXT)
    detail = SEPARATOR.join([f"{role} {how}" for role, how in found.items()])
    outcome = _outcome([how.partition(" ")[0] for how in found.values()])
    if outcome == RAISES and answer.failure is not None:
        return Behaviour(key, RAISES, detail, excerpt(answer.failure.text), answer.failure.line)
    return Behaviour(key, outcome, detail, excerpt(answer.text))


def _outcome(found: list[str]) -> str:
    return next(outcome for outcome in (TRIMMED, KEPT, DROPPED, RAISES) if outcome in found)


def treatment(answer: Answer, marker: str) -> str:
    """What became of the white space around a marker: `kept`, `trimmed`, `trimmed left`, `trimmed right`, `dropped`
    (the text with it), or `raises`."""
    if answer.failure is not None:
        return RAISES
    text = answer.text
    if position(text, marker) < 0:
        return DROPPED
    escaped = json.dumps(texts.BLANK)[1:-1]
    left = any(f"{blank}{marker}" in text for blank in (texts.BLANK, escaped))
    right = any(f"{marker}{blank}" in text for blank in (texts.BLANK, escaped))
    if left and right:
        return KEPT
    return f"{TRIMMED} right" if left else f"{TRIMMED} left" if right else TRIMMED


# -- parts -------------------------------------------------------------------------------------------------------------

_JOINS: Mapping[str, str] = {"": NOTHING, " ": SPACE, "\n": NEWLINE, "\n\n": BLANK_LINE}


def parts_join(prompts: Prompts, reference: str | None = None) -> Behaviour:
    """A user message of two text parts: what stands between them. The detail quotes it, and what the reference put
    there (`reference`, None: not known)."""
    key = "parts_join"
    answer = prompts.ask(texts.PARTS)
    there = [] if reference is None else [f"reference {quoted(reference)}"]
    if answer.failure is not None:
        return raises(key, answer.failure)
    found = between(answer.text, texts.LEFT, texts.RIGHT)
    evidence = excerpt(answer.text, position(answer.text, texts.LEFT))
    if found is None:
        return Behaviour(key, DROPPED, SEPARATOR.join(there), evidence)
    detail = SEPARATOR.join([quoted(found), *there])
    if sight(texts.RIGHT, answer.text) is Sight.DUMPED:
        return Behaviour(key, DUMPED, detail, evidence)
    return Behaviour(key, _JOINS.get(found, OTHER), detail, evidence)


# -- the content of a call ---------------------------------------------------------------------------------------------

_CONTENTS: Mapping[str, Mapping[str, Any]] = {"absent": {}, "null": {"content": None}, "empty": {"content": ""}}


def null_content_call(server: Server, *, now: float, limits: Limits | None) -> Behaviour:
    """A call whose content is absent, null or empty, put to the template that takes tools itself, since a request
    makes them all empty. The detail says of each whether the call is printed, as `absent: call printed · null: call
    printed · empty: call lost`. `raises` if any does.

    A tool's result follows. Where even the empty content fails, as with a template that knows no tools, it is tried
    without: the question is about the content.
    """
    loaded = server.tool_use or server.default

    def run(content: Mapping[str, Any], *, answered: bool) -> RenderResult:
        return run_template(loaded.template, _call_variables(loaded, content, answered=answered), now, limits)

    results = {name: run(content, answered=True) for name, content in _CONTENTS.items()}
    if not results["empty"].ok:
        results = {name: run(content, answered=False) for name, content in _CONTENTS.items()}
    return _compared(results)


def _compared(results: Mapping[str, RenderResult]) -> Behaviour:
    key = "null_content_call"
    detail = SEPARATOR.join([f"{name}: {_said(result)}" for name, result in results.items()])
    error = next((result.error for result in results.values() if result.error is not None), None)
    if error is not None:
        return Behaviour(key, RAISES, detail, excerpt(error.message), error.line)
    outputs = {name: result.output.decode("utf-8", "replace") for name, result in results.items()}
    if len(set(outputs.values())) == 1:
        return Behaviour(key, SAME, detail, excerpt(outputs["empty"]))
    shown = [f"{name}:\n{output[:600]}" for name, output in outputs.items()]
    return Behaviour(key, DIFFERENT, detail, excerpt("\n\n".join(shown)))


def _said(result: RenderResult) -> str:
    if result.error is not None:
        return f"raises ({shortened(result.error.message)})"
    printed = pattern(texts.VALUE).search(result.output.decode("utf-8", "replace"))
    return "call lost" if printed is None else "call printed"


def _call_variables(loaded: Loaded, content: Mapping[str, Any], *, answered: bool) -> Mapping[str, Any]:
    """A user asks, the assistant calls, the tool answers if it does."""
    form = Form(loaded.capabilities)
    as_object = loaded.capabilities.object_arguments
    arguments = {texts.LATE_KEY: texts.VALUE}
    function = {"name": texts.TOOL_NAME, "arguments": arguments if as_object else json.dumps(arguments)}
    call = {"type": "function", "function": function, "id": texts.CALL_ID}
    result = form.message("tool", texts.RESULT_TEXT, tool_call_id=texts.CALL_ID, name=texts.TOOL_NAME)
    return {
        "messages": [
            form.message("user", texts.FIRST_USER),
            {"role": "assistant", **content, "tool_calls": [call]},
            *([result] if answered else []),
        ],
        "tools": [texts.TOOL],
        **TOKENS,
        "enable_thinking": True,
        "add_generation_prompt": True,
    }
