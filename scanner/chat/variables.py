"""The variables that a template is rendered with (`chat.md` section 3, steps 9 and 10)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from scanner.chat.changes import Journal, Step
from scanner.chat.request import Request
from scanner.chat.server import Server
from scanner.dialect import from_python

PRESERVE = "preserve_reasoning"
SAME_AS_PRESERVE = ("preserve_thinking",)
OPPOSITE_OF_PRESERVE = ("clear_thinking", "truncate_history_thinking", "drop_thinking")
EFFORT_NAMES = ("reasoning_effort", "reasoning_strength")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def variables_of(server: Server, request: Request, now: float, journal: Journal) -> dict[str, Any]:
    """All variables of a request but the messages and `add_generation_prompt`; later ones win."""
    kwargs = {**server.kwargs, **request.kwargs}
    thinking = server.enable_thinking if request.enable_thinking is None else request.enable_thinking
    variables: dict[str, Any] = {
        # No part of the request, so not marked as such.
        "bos_token": from_python(server.vocabulary.bos, mark_input=False),
        "eos_token": from_python(server.vocabulary.eos, mark_input=False),
        "enable_thinking": thinking,
    }
    if request.tools:
        variables["tools"] = list(request.tools)
    return variables | dates(now) | bound(kwargs, journal) | kwargs


def dates(now: float) -> dict[str, str]:
    """`datetime` and `date_string` for a time in seconds since the epoch, in local time."""
    day = time.localtime(now)
    month = MONTHS[day.tm_mon - 1]
    return {
        "datetime": f"{month} {day.tm_mday:02} {day.tm_year}",
        "date_string": f"{day.tm_mday:02} {month} {day.tm_year}",
    }


def bound(kwargs: Mapping[str, Any], journal: Journal) -> dict[str, Any]:
    """Step 10: what the names of llama.cpp's own choice stand for in templates."""
    names: dict[str, Any] = {}
    effort = kwargs.get("reasoning_effort")
    if isinstance(effort, str) and effort:
        names |= dict.fromkeys(EFFORT_NAMES, effort)
        journal.note(Step.EFFORT, f"the effort {effort!r} was bound to {' and '.join(EFFORT_NAMES)}")
    preserve = kwargs.get(PRESERVE)
    if isinstance(preserve, bool):
        names |= dict.fromkeys(SAME_AS_PRESERVE, preserve) | dict.fromkeys(OPPOSITE_OF_PRESERVE, not preserve)
        said = ", ".join([f"{name} {str(value).lower()}" for name, value in names.items() if name not in EFFORT_NAMES])
        journal.note(Step.EFFORT, f"{PRESERVE} {str(preserve).lower()} was bound to {said}")
    return names
