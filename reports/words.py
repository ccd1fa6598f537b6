"""What things are called on the pages, and what they mean."""

from __future__ import annotations

from collections.abc import Mapping

from scanner.results import CAPABILITIES, Outcome

LABELS: Mapping[str, str] = {name: name.replace("_", " ") for name in CAPABILITIES}
"""A capability's name as a person reads it."""

CAPABILITY_MEANINGS: Mapping[str, str] = {
    "tools": "The template reads the name of the tool it is given, so a client may send tools.",
    "tool_calls": "The template reads the tool calls of an earlier assistant message.",
    "parallel_tool_calls": "The template reads the second of two tool calls in one assistant message.",
    "system_role": "The template reads the content of a leading system message.",
    "string_content": "A message whose content is a plain string renders, and its text is not lost.",
    "typed_content": "The template walks a message's content as a list of typed parts.",
    "object_arguments": "The template reads into a tool call's arguments when they are an object, not a string.",
    "preserve_reasoning": "The reasoning of an earlier assistant message is still in the prompt.",
    "reasoning_effort": "The template reads the reasoning effort.",
}

OUTCOME_MEANINGS: Mapping[Outcome, str] = {
    Outcome.ANALYSED: "a template was found and every probe ran",
    Outcome.NOT_PARSEABLE: "not examined: llama.cpp cannot parse the template, the server would not start",
    Outcome.LIMIT_EXCEEDED: "not examined: the template used up a budget of Capscan's",
    Outcome.UNREADABLE: "not examined: the file is broken or could not be read",
    Outcome.NO_TEMPLATE: "nothing to examine: no chat template, llama.cpp would use ChatML",
    Outcome.NOT_A_MODEL: "nothing to examine: not a model file",
    Outcome.SKIPPED: "not examined: passed over",
}
"""In the order a report lists them, worst failure first."""

PROBE_TITLES: Mapping[str, str] = {
    "typed_content": "one user message, its content a string",
    "typed_content_empty_array": "one user message, its content an empty list of parts",
    "system_role": "a system message, then a user message",
    "tool_object_arguments": "a tool call whose arguments are an object",
    "tool_string_arguments": "a tool call whose arguments are a string",
    "parallel_tool_calls": "two tool calls in one assistant message",
    "preserve_reasoning": "two earlier answers with their reasoning",
    "reasoning_effort": "one user message, with the reasoning effort `low`",
}

BEHAVIOUR_QUESTIONS: Mapping[str, str] = {
    "server_starts": "does llama-server start with it as a model's default",
    "late_system": "a system message after an answer",
    "two_systems": "two system messages at the start",
    "system_only": "only a system message",
    "developer": "the role developer",
    "no_user": "an answer first, before any user",
    "same_role_twice": "two users, two answers in a row",
    "unknown_role": "the role critic",
    "orphan_tool_result": "a tool result without a call",
    "null_content_call": "a call whose content is absent, null, empty",
    "thinking_switch": "does enable_thinking change anything",
    "generation_prompt": "what the generation prompt adds",
    "history": "is the prompt so far a prefix of the next one",
    "white_space": "white space at both ends of contents",
    "parts_join": "what stands between two text parts",
    "arguments": "how the arguments of a call are written",
    "clock": "the same request a day later",
    "default_system": "what it says where there is no system message",
    "bos": "who puts the BOS at the start",
    "special_tokens": "control texts that a user writes",
    "prefill": "what an answer that was begun is continued with",
    "kwargs": "variables that no usual request sets",
    "handler": "the parser that reads the model's answers",
    "reference": "the same conversations as transformers renders them",
}

SCENARIO_TITLES: Mapping[str, str] = {
    "user": "one user message",
    "system": "a system message, then the user",
    "late-system": "a system message after the first turn",
    "text-parts": "content as two text parts",
    "turns": "three turns",
    "tools": "a tool is offered",
    "tool-call": "a call, its result, the answer, the next question",
    "parallel-calls": "two calls at once and their results",
    "nested-arguments": "arguments with lists, objects, null and numbers",
    "reasoning": "a history with reasoning",
    "reasoning-call": "reasoning, text and a call in one message",
    "prefill": "the assistant's own words are to be continued",
}
"""What is sent in each standard conversation (`scanner.chat.scenarios`, where a test holds them equal)."""

ERROR_KINDS: Mapping[str, str] = {
    "raised": "the template raised",
    "runtime": "failed",
    "not_implemented": "not implemented in llama.cpp",
    "loop_control": "break or continue outside a loop",
    "limit": "a budget was used up",
}


def slug(words: str) -> str:
    """A name as it stands in addresses: `not a model file` is `not-a-model-file`."""
    return words.replace(" ", "-")
