"""Messages of a role, or at a place, that a template does not take."""

from __future__ import annotations

import re
from collections.abc import Iterator

from scanner.judge.rule import RAISES, Match, TemplateFacts, error_of, said

DROPPED = "dropped"
IN_A_ROW = re.compile(r"(?:\A| · )(users|assistants): raises \((.*?)\)(?: · assistants: |\Z)", re.DOTALL)
"""In the detail of `same_role_twice`: who fails first, and why."""


def late_system_raises(facts: TemplateFacts) -> Iterator[Match]:
    """user, assistant, system, user fails, and without the system message it does not."""
    late = facts.behaviour("late_system")
    if late is not None and late.outcome == RAISES and _chats(facts):
        text = f"a system message after the first turn fails: {said(late.detail)}"
        yield Match(text, "behaviour late_system", late.line)


def late_system_dropped(facts: TemplateFacts) -> Iterator[Match]:
    """user, assistant, system, user renders without the system text."""
    late = facts.behaviour("late_system")
    if late is not None and late.outcome == DROPPED:
        text = "a system message after the first turn is silently left out of the prompt"
        yield Match(text, "behaviour late_system", late.line)


def second_system_dropped(facts: TemplateFacts) -> Iterator[Match]:
    """Two leading system messages, of which one or both are missing; a template that takes none at all is another
    matter, and so is one that drops even a single one."""
    two, alone = facts.behaviour("two_systems"), facts.behaviour("developer")
    if two is None or two.outcome != DROPPED or alone is None or alone.outcome == DROPPED:
        return
    lost = {"lost: system": "the first is", "lost: other system": "the second is"}.get(two.detail, "both are")
    text = f"of two system messages at the start {lost} silently left out of the prompt"
    yield Match(text, "behaviour two_systems", two.line)


def roles_must_alternate(facts: TemplateFacts) -> Iterator[Match]:
    """Two messages of one role in a row fail, where a plain chat does not."""
    twice = facts.behaviour("same_role_twice")
    if twice is None or twice.outcome != RAISES or not _chats(facts):
        return
    found = IN_A_ROW.search(twice.detail)
    who, why = (found[1], said(found[2])) if found else ("users", said(twice.detail))
    text = f"two {who.removesuffix('s')} messages in a row fail: {why}"
    yield Match(text, "behaviour same_role_twice", twice.line)


def system_raises(facts: TemplateFacts) -> Iterator[Match]:
    """The system probe fails where the plain one does not. What a request meets depends on the flag: without it
    llama.cpp never hands a leading system message over (`chat.md` section 3, step 6)."""
    run, plain, claims = facts.probe("system_role"), facts.probe("typed_content"), facts.result.capabilities
    message = error_of(run)
    if message is None or run is None or run.error is None or plain is None or not plain.ok or claims is None:
        return
    instead = "" if claims.system_role else "; llama.cpp puts its text before that of the next message instead"
    yield Match(f"a system message fails: {message}{instead}", "probe system_role", run.error.line)


def _chats(facts: TemplateFacts) -> bool:
    """Whether a plain chat of several turns renders."""
    history = facts.behaviour("history")
    return history is not None and history.outcome != RAISES
