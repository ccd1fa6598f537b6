"""A flag of a template explained: what was sent, what was read and printed, what llama.cpp concluded, and whether that
is right."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from scanner import answers
from scanner.console import clip, visible, wrapped
from scanner.errors import UsageError
from scanner.judge.verdicts import Claim, claims, disagreement_phrase, judgement
from scanner.probe import marked
from scanner.probe.markers import pattern
from scanner.results import CAPABILITIES, Observation, ProbeRun, TemplateResult

EVERY = "all"
"""Instead of a capability's name: all of them."""

SUBJECTS: Mapping[str, str] = {
    "tools": marked.TOOL_NAME,
    "tool_calls": marked.CALLS[0].name,
    "parallel_tool_calls": marked.CALLS[1].name,
    "system_role": marked.SYSTEM,
    "string_content": marked.USER,
    "typed_content": marked.USER,
    "object_arguments": marked.CALLS[0].key,
    "preserve_reasoning": marked.EARLIER_REASONING,
}
"""The marker that each capability's own conversation is about."""

EXCERPT = 150
"""Characters of a render that an explanation shows."""


def explain_answer(result: TemplateResult, capability: str) -> Iterator[str]:
    """A flag in words, or all: what was sent, what was read and where, what was printed, what llama.cpp concluded, and
    whether that is right. Raises UsageError for a name that is none."""
    name = capability.replace("-", "_").removeprefix("supports_")
    if name not in (*CAPABILITIES, EVERY):
        raise UsageError(f"there is no capability {capability}: choose one of {', '.join(CAPABILITIES)}, or {EVERY}")
    return _explained(result, name)


def _explained(result: TemplateResult, name: str) -> Iterator[str]:
    if result.capabilities is None:
        yield answers.outcome_line(result)
        return
    observed = {one.capability: one for one in result.observations}
    chosen = [
        claim
        for claim in claims(result.capabilities, result.probes, result.observations)
        if name in (claim.capability, EVERY)
    ]
    for place, claim in enumerate(chosen):
        if place:
            yield ""
        yield from wrapped("", _headline(claim, result), bold=True)
        run = next((run for run in result.probes if run.name == claim.settled_by), None)
        if run is not None:
            yield from _llama_cpp_says(claim, run)
        if claim.capability in observed:
            yield from _we_say(claim, observed[claim.capability])
        yield from wrapped("  so         ", judgement(claim))


def _headline(claim: Claim, result: TemplateResult) -> str:
    """`reasoning_effort: claimed yes (read at line 47), observed yes: low, medium accepted; …`."""
    how = "read" if claim.claimed else "fails"
    place = f" ({how} at line {claim.place.line})" if claim.place is not None else ""
    claimed = f"{claim.capability}: claimed {answers.flag_word(claim.claimed)}{place}"
    if claim.reason is None:
        return f"{claimed}, not observed under profile {result.profile}"
    observed = "not told" if claim.really is None else answers.flag_word(claim.really)
    said = visible(claim.reason)
    if claim.capability == "reasoning_effort" and result.efforts:
        said = answers.efforts_words(result)
    elif claim.agreement in answers.SIDES and claim.agreement is not None:
        said = visible(disagreement_phrase(claim.agreement, claim.reason))
    return f"{claimed}, observed {observed}: {said}"


def _llama_cpp_says(claim: Claim, run: ProbeRun) -> Iterator[str]:
    yield from wrapped("  llama.cpp  sent       ", _sent(run))
    reads = [read for read in run.reads if claim.place is not None and read.line == claim.place.line]
    for read in [read for read in reads if claim.place is not None and read.column == claim.place.column][:1]:
        yield from wrapped("             read       ", f"{answers.read_words(read)} at {read.line}:{read.column}")
    yield from wrapped("             printed    ", _printed(run, None))
    yield from wrapped("             concluded  ", f"{answers.flag_word(claim.claimed)}: {visible(claim.why)}")


def _we_say(claim: Claim, observation: Observation) -> Iterator[str]:
    if observation.run is not None:
        yield from wrapped("  Capscan    sent       ", _sent(observation.run))
        yield from wrapped("             printed    ", _printed(observation.run, SUBJECTS.get(claim.capability)))
    start = "  Capscan    " if observation.run is None else "             "
    yield from wrapped(f"{start}concluded  ", f"{answers.flag_word(claim.really)}: {visible(observation.reason)}")


def _sent(run: ProbeRun) -> str:
    """A conversation in one line: the roles with their contents, calls, and what else was bound that matters."""
    messages = run.variables.get("messages")
    parts = (
        [_message(message) for message in messages if isinstance(message, dict)] if isinstance(messages, list) else []
    )
    tools = run.variables.get("tools")
    if isinstance(tools, list) and tools:
        parts.append(f"{len(tools)} tool{'' if len(tools) == 1 else 's'}")
    if "reasoning_effort" in run.variables:
        parts.append(f"reasoning_effort {_data(run.variables['reasoning_effort'])}")
    return " · ".join(parts)


def _message(message: Mapping[str, object]) -> str:
    said = [str(message.get("role"))]
    if "content" in message:
        said.append(_data(message["content"]))
    if message.get("reasoning_content"):
        said.append(f"reasoning {_data(message['reasoning_content'])}")
    calls = message.get("tool_calls")
    if isinstance(calls, list) and calls:
        said.append(f"{len(calls)} call{'' if len(calls) == 1 else 's'}")
    return visible(" ".join(said))


def _data(value: object) -> str:
    return clip(json.dumps(value, ensure_ascii=False), 60)


def _printed(run: ProbeRun, subject: str | None) -> str:
    """What a run gave: the part of its output around the subject, or its beginning."""
    if run.error is not None:
        return f"nothing, {answers.failure_line(run)}"
    found = pattern(subject).search(run.output) if subject is not None else None
    start = max(0, found.start() - EXCERPT // 2) if found is not None else 0
    end = start + EXCERPT
    shown = json.dumps(run.output[start:end], ensure_ascii=False)
    return visible(("…" if start else "") + shown + ("…" if end < len(run.output) else ""))
