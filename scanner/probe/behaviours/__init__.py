"""What is really true of a template: every key of `behaviours.md` section 3, with evidence.

    references = {name: result, …}            # of `reference_requests`, by `scanner.reference.ReferenceProcess`
    found = examine(server, started, references, now=now)
    found.behaviours, found.renders

Each key has a judge that asks for prompts and looks at nothing else (`JUDGES`), so a real server can be asked the same
(`tests/behaviour_oracle.py`); a few keys are told otherwise (`settings`, `content.null_content_call`, `tokens.bos`,
`tokens.special_tokens`, `reference`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from scanner.chat.server import Server
from scanner.chat.start import Start
from scanner.dialect import Limits
from scanner.probe.behaviours import content, roles, settings, thinking, tokens
from scanner.probe.behaviours.arguments import arguments
from scanner.probe.behaviours.asking import Requests
from scanner.probe.behaviours.base import Judge, NotExaminedError
from scanner.probe.behaviours.history import history
from scanner.probe.behaviours.outcomes import NOT_EXAMINED, OUTCOMES
from scanner.probe.behaviours.reference import (
    STANDARD,
    References,
    joined_parts,
    reference,
    reference_requests,
    standard_renders,
)
from scanner.results import Behaviour, StandardRender

__all__ = [
    "JUDGES",
    "NOT_EXAMINED",
    "OUTCOMES",
    "STANDARD",
    "Examination",
    "References",
    "Requests",
    "behave",
    "examine",
    "reference_requests",
    "standard_renders",
]

JUDGES: Mapping[str, Judge] = {
    "late_system": roles.LATE_SYSTEM.judge,
    "two_systems": roles.TWO_SYSTEMS.judge,
    "system_only": roles.SYSTEM_ONLY.judge,
    "developer": roles.DEVELOPER.judge,
    "no_user": roles.NO_USER.judge,
    "same_role_twice": roles.same_role_twice,
    "unknown_role": roles.UNKNOWN_ROLE.judge,
    "orphan_tool_result": roles.ORPHAN_TOOL_RESULT.judge,
    "thinking_switch": thinking.thinking_switch,
    "generation_prompt": tokens.generation_prompt,
    "history": history,
    "white_space": content.white_space,
    "parts_join": content.parts_join,
    "arguments": arguments,
    "clock": tokens.clock,
    "default_system": tokens.default_system,
    "prefill": thinking.prefill,
}
"""The keys that any source of prompts can be asked about."""


@dataclass(frozen=True, slots=True)
class Examination:
    """All behaviours, in the order of `OUTCOMES`, and the standard conversations under both engines."""

    behaviours: tuple[Behaviour, ...]
    renders: tuple[StandardRender, ...]


def examine(
    server: Server, started: Start, references: References, *, now: float, limits: Limits | None = None
) -> Examination:
    """Everything about a server's templates. `started` is what its start gave, `references` are the renders of
    `reference_requests`; `now` is the clock of all prompts, in seconds since the epoch."""
    requests = Requests(server, now, limits)
    renders = standard_renders(requests, references)
    return Examination(behave(requests, started, renders), renders)


def behave(requests: Requests, started: Start, renders: Sequence[StandardRender]) -> tuple[Behaviour, ...]:
    """Every key, in the order of `OUTCOMES`. `renders`: the standard conversations."""
    server, now, limits = requests.server, requests.now, requests.limits
    joined = joined_parts(renders)
    others: Mapping[str, Callable[[], Behaviour]] = {
        "server_starts": lambda: settings.server_starts(started),
        "null_content_call": lambda: content.null_content_call(server, now=now, limits=limits),
        "parts_join": lambda: content.parts_join(requests, joined),
        "bos": lambda: tokens.bos(_uncut(requests), server.vocabulary),
        "special_tokens": lambda: tokens.special_tokens(requests),
        "kwargs": lambda: settings.kwargs(server.default),
        "handler": lambda: settings.handler(server.default),
        "reference": lambda: reference(renders),
    }
    return tuple([_judged(key, requests, others.get(key)) for key in OUTCOMES])


def _judged(key: str, requests: Requests, judge: Callable[[], Behaviour] | None) -> Behaviour:
    try:
        return judge() if judge is not None else JUDGES[key](requests)
    except NotExaminedError as limit:
        return Behaviour(key, NOT_EXAMINED, str(limit))


def _uncut(requests: Requests) -> Requests:
    """The same requests to a tokenizer that adds nothing, so that nothing is cut."""
    server = requests.server
    if not server.vocabulary.add_bos:
        return requests
    vocabulary = replace(server.vocabulary, add_bos=False, add_eos=False)
    return Requests(replace(server, vocabulary=vocabulary), requests.now, requests.limits)
