"""What becomes of the texts of a conversation, and what a template adds to them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from scanner.judge.rule import SEPARATOR, Match, TemplateFacts
from scanner.results import Behaviour

BESIDE_A_CALL, OFFERED = "reasoning-call", "tools"
"""Standard conversations: an assistant message with text and a call, and the same question without an answer."""
TEXT_BESIDE_A_CALL = "Let me look."
ARGUMENT = re.compile(r"Z(?:ü|\\u00fc)rich")
"""The value of the argument of that call; the user's question holds it too."""
RESULTS, PARTS, BESIDE = "results of tools", "a message of two text parts", "the text beside reasoning and a tool call"
"""What may be lost, as a finding names it."""
DEFAULT_TEXT_SHOWN = 80
"""Characters of a template's own system text that a finding shows."""
JOINED = re.compile(r'("(?:[^"\\]|\\.)*") · reference ("(?:[^"\\]|\\.)*")\Z')
"""The detail of `parts_join`: what stands between two parts, in llama.cpp and in the reference."""
DAILY = "changes daily"
TWO_DATES = re.compile(r'("(?:[^"\\]|\\.)*") · later ("(?:[^"\\]|\\.)*")\Z')
"""An outcome of `clock`, and its detail: the line that differs, at two dates."""
DATE_LENGTH = 8
"""Characters by which a date is found again; a shorter text may stand elsewhere too."""
DUMPED = re.compile(r"""["']text\\*["']\s*:""")
"""A list of parts that was printed as data."""


def content_lost(facts: TemplateFacts) -> Iterator[Match]:
    """Texts of an ordinary conversation that are not in the prompt. A system message is another matter (`system_role`),
    and so are the results of tools for a template that knows no tools."""
    lost = [*_lost_roles(facts)]
    parts = facts.behaviour("parts_join")
    if parts is not None and parts.outcome == "dropped":
        lost.append(PARTS)
    if _loses_text_beside_a_call(facts):
        lost.append(BESIDE)
    if lost:
        verb = "are" if len(lost) > 1 or lost[0] == RESULTS else "is"
        yield Match(f"{', '.join(lost)} {verb} left out of the prompt", _evidence(lost[0]))


def _lost_roles(facts: TemplateFacts) -> Iterator[str]:
    found, claims = facts.behaviour("white_space"), facts.result.capabilities
    if found is None or claims is None:
        return
    parts = found.detail.split(SEPARATOR)
    for role, text in (("user", "what the user says"), ("assistant", "what the assistant said")):
        if f"{role} dropped" in parts:
            yield text
    if "tool dropped" in parts and (claims.tools or claims.tool_calls):
        yield RESULTS


def _loses_text_beside_a_call(facts: TemplateFacts) -> bool:
    """Whether the call is printed and its text is not."""
    prompt, before = facts.prompt(BESIDE_A_CALL), facts.prompt(OFFERED)
    if prompt is None or before is None or TEXT_BESIDE_A_CALL in prompt:
        return False
    return len(ARGUMENT.findall(prompt)) > len(ARGUMENT.findall(before))


def _evidence(lost: str) -> str:
    if lost == BESIDE:
        return f"conversation {BESIDE_A_CALL}"
    return "behaviour parts_join" if lost == PARTS else "behaviour white_space"


def typed_join_differs(facts: TemplateFacts) -> Iterator[Match]:
    """Two text parts have another text between them than in transformers, where that prints them at all: a template
    that takes strings only prints a list as data there, which nobody wants."""
    found = facts.behaviour("parts_join")
    joined = None if found is None else JOINED.match(found.detail)
    if joined is None or joined[1] == joined[2] or DUMPED.search(str(json.loads(joined[2]))):
        return
    text = f"llama.cpp puts {_shown(joined[1])} between two text parts, transformers {_shown(joined[2])}"
    yield Match(text, "behaviour parts_join")


def _shown(quoted: str) -> str:
    return {'""': "nothing", '"\\n"': "a newline", '" "': "a blank", '"\\n\\n"': "an empty line"}.get(quoted, quoted)


def default_system(facts: TemplateFacts) -> Iterator[Match]:
    """Words before the first user message that no request sent."""
    found = facts.behaviour("default_system")
    if found is not None and found.outcome == "adds":
        words = _before_the_date(" ".join(found.detail.split()), facts.behaviour("clock"))
        shown = words if len(words) <= DEFAULT_TEXT_SHOWN else words[: DEFAULT_TEXT_SHOWN - 1] + "…"
        yield Match(f'adds a text of its own where there is no system message: "{shown}"', "behaviour default_system")


def _before_the_date(words: str, clock: Behaviour | None) -> str:
    """The words up to what changes daily, or the finding would be another one every day."""
    dated = None if clock is None or clock.outcome != DAILY else TWO_DATES.match(clock.detail)
    if dated is None:
        return words
    today, later = " ".join(json.loads(dated[1]).split()), " ".join(json.loads(dated[2]).split())
    differs = next((at for at, (one, other) in enumerate(zip(today, later, strict=False)) if one != other), len(today))
    start = len(today[:differs].rstrip("0123456789-/."))
    date = today[start : start + DATE_LENGTH].strip()
    before, found, _ = words.partition(date) if date else (words, "", "")
    return f"{before.rstrip()} …" if found else words


def clock_dependent(facts: TemplateFacts) -> Iterator[Match]:
    """The same request at two dates; the date itself is left out, or the finding would be another one every day."""
    found = facts.behaviour("clock")
    if found is not None and found.outcome == DAILY:
        line = facts.line_naming(b"strftime_now", b"date_string", b"datetime")
        yield Match("prints the date, so the same request gives another prompt every day", "behaviour clock", line)
