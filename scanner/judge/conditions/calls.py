"""What becomes of tool calls and their arguments."""

from __future__ import annotations

from collections.abc import Iterator

from scanner.judge.rule import SEPARATOR, Match, TemplateFacts
from scanner.results import AUTOPARSER_START, Behaviour

NOTHING, PYTHON, JSON, XML = "nothing", "python", "json", "xml"
"""Outcomes of the behaviour `arguments`."""
NULL_CONTENT_ONLY = {"null: call printed", "empty: call lost"}
"""Parts of the detail of `null_content_call`."""


def arguments_lost(facts: TemplateFacts) -> Iterator[Match]:
    """The arguments of a call, or nested ones, are not in the prompt, though the template takes calls."""
    found, claims = facts.behaviour("arguments"), facts.result.capabilities
    if found is None or claims is None:
        return
    parts = found.detail.split(SEPARATOR)
    if found.outcome == NOTHING and claims.tool_calls:
        text = "a call is printed without its arguments, or not at all"
    elif found.outcome != NOTHING and "keys lost" in parts:
        lost = [what for what in ("null", "number") if f"{what} lost" in parts]
        text = "nested arguments of a call are lost" + (f" ({', '.join(['keys', *lost])})" if lost else "")
    else:
        return
    yield _match(facts, text, found)


def arguments_double_encoded(facts: TemplateFacts) -> Iterator[Match]:
    """A string argument's quotation mark stands behind more than one backslash."""
    found = facts.behaviour("arguments")
    if found is not None and "string double-encoded" in found.detail.split(SEPARATOR):
        yield _match(facts, "the arguments of a call are printed as JSON text inside of JSON text", found)


def arguments_python_repr(facts: TemplateFacts) -> Iterator[Match]:
    """Arguments in Python's notation, all of them, or those nested in a call that is JSON or XML. `None` in a call that
    looks like Python's (`f(a=None)`) is as it should be."""
    found = facts.behaviour("arguments")
    if found is None:
        return
    if found.outcome == PYTHON:
        yield _match(facts, "the arguments of a call are printed as Python prints a dict ('key': …)", found)
    elif found.outcome in (JSON, XML) and "null None" in found.detail.split(SEPARATOR):
        yield _match(facts, "nested arguments of a call are printed as Python prints them (None, 'key': …)", found)


def call_needs_null_content(facts: TemplateFacts) -> Iterator[Match]:
    """A call is printed when the content is null, and lost when it is empty, which is what llama.cpp makes of both
    (`chat.md` section 3, step 3)."""
    found = facts.behaviour("null_content_call")
    if found is not None and set(found.detail.split(SEPARATOR)) >= NULL_CONTENT_ONLY:
        text = 'a call is printed only when its content is null; llama.cpp always sends "", so the call is lost'
        yield Match(text, f"behaviour {found.key}", facts.line_naming(b"is none", b"is not none", b"== none"))


def calls_not_json(facts: TemplateFacts) -> Iterator[Match]:
    """A call that looks like a JSON object and is none, which keeps a server from starting."""
    start = facts.result.start
    if start is not None and start.conversation == AUTOPARSER_START and start.error is not None:
        yield Match(start.error.message, "observed object_arguments", facts.line_of("tool_calls"))


def _match(facts: TemplateFacts, text: str, found: Behaviour) -> Match:
    return Match(text, f"behaviour {found.key}", facts.line_naming(b".arguments", b"'arguments'", b'"arguments"'))
