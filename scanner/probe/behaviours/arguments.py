"""How the arguments of a tool call are written."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from scanner.probe.behaviours import conversations as texts
from scanner.probe.behaviours.base import SEPARATOR, Prompts, excerpt, raises
from scanner.probe.behaviours.outcomes import JSON, NOTHING, OTHER, PYTHON, XML
from scanner.results import Behaviour

_KEY = re.escape(texts.LATE_KEY)
_FORMS: Sequence[tuple[str, re.Pattern[str]]] = (
    (JSON, re.compile(rf'\\*"{_KEY}\\*"\s*:')),
    (PYTHON, re.compile(rf"'{_KEY}'\s*:")),
    (XML, re.compile(rf"<[^<>]*{_KEY}[^<>]*>|>\s*{_KEY}\s*<")),
)
"""Around a key: `"key":`, `'key':`, and `<parameter=key>`, `<… name="key">` or `<arg_key>key</arg_key>`."""
_VALUE = re.compile(rf"{re.escape(texts.VALUE)}(.{{0,24}}?){re.escape(texts.VALUE_END)}", re.DOTALL)
_DOUBLE = re.compile(r'\\{2,}"')
_WRITTEN = r"""\\*["']?\s*[:=>]\s*([^,}\]<\n]*)"""
_NULL = re.compile(re.escape(texts.NESTED_EARLY) + _WRITTEN)
_NUMBER = re.compile(re.escape(texts.NESTED_LATE) + _WRITTEN)
"""A key and, behind it, its value: up to a comma, a bracket, a tag or the end of the line."""


def arguments(prompts: Prompts) -> Behaviour:
    """A call with arguments of many kinds, in a conversation with its tool. Outcome: `json`, `python` (its notation
    for a dict: `'key': …`), `xml` (keys in tags), `other` (such as `f(key="…")`), or `nothing`: the value is not
    printed. The detail, in this order: the form · keys `kept|sorted|lost` · non-ASCII `kept|escaped|lost` · string
    `as is|double-encoded|changed` · null and the number 1.5 as they are written."""
    key = "arguments"
    answer = prompts.ask(texts.CALL)
    if answer.failure is not None:
        return raises(key, answer.failure)
    text = answer.text
    value = _VALUE.search(text)
    if value is None and texts.VALUE not in text:
        return Behaviour(key, NOTHING, NOTHING, excerpt(text, len(text)))
    form = next((name for name, sign in _FORMS if sign.search(text)), OTHER)
    written = value[1] if value is not None else ""
    parts = [
        form,
        f"keys {_order(text)}",
        f"non-ASCII {_non_ascii(written)}",
        f"string {_string(written)}",
        f"null {_word(_NULL, text)}",
        f"number {_word(_NUMBER, text)}",
    ]
    return Behaviour(key, form, SEPARATOR.join(parts), excerpt(text, max(0, text.find(texts.VALUE))))


def _order(text: str) -> str:
    """Of the keys, outer and inner, which were sent in an order that is not that of the alphabet."""
    outer = [text.find(name) for name in (texts.EARLY_KEY, texts.LATE_KEY)]
    inner = [text.find(name) for name in (texts.NESTED_EARLY, texts.NESTED_LATE)]
    if min(outer + inner) < 0:
        return "lost"
    return "kept" if outer[0] < outer[1] and inner[0] < inner[1] else "sorted"


def _non_ascii(written: str) -> str:
    if texts.NON_ASCII in written:
        return "kept"
    return "escaped" if json.dumps(texts.NON_ASCII)[2:-1] in written else "lost"


def _string(written: str) -> str:
    """The quotation mark inside the value: as it is, or behind one backslash as JSON writes it once, counts as is."""
    if _DOUBLE.search(written):
        return "double-encoded"
    return "as is" if texts.QUOTE in written else "changed"


def _word(sign: re.Pattern[str], text: str) -> str:
    found = sign.search(text)
    return "lost" if found is None else found[1].strip()[:20] or "empty"
