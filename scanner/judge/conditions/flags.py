"""The nine flags: whether they are right, why they are what they are, and whether every build says the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from scanner.judge.rule import Match, TemplateFacts, error_of, said
from scanner.judge.verdicts import disagreement_phrase
from scanner.results import CAPABILITIES, Agreement, ProbeRun

SAME_EFFORT = "same for every effort"
"""The reason of an observation that `effort-inert` tells of."""


def disagrees(capability: str, side: Agreement) -> Callable[[TemplateFacts], Iterator[Match]]:
    """The condition that a flag claims too much, or too little (`behaviours.md` section 1). An effort that makes no
    difference has a rule of its own."""
    label = capability.replace("_", " ")
    claimed = "claimed" if side is Agreement.OVERCLAIMS else "not claimed"

    def condition(facts: TemplateFacts) -> Iterator[Match]:
        seen = facts.observation(capability)
        if seen is None or seen.agreement is not side or (capability, seen.reason) == ("reasoning_effort", SAME_EFFORT):
            return
        phrase = disagreement_phrase(side, seen.reason)
        if label.endswith("s") and not phrase.startswith("raises"):
            phrase = phrase.replace(" it", " them")
        evidence = f"observed {capability}: {said(seen.reason)}"
        yield Match(f"{label} {claimed}, but the template {phrase}", evidence, facts.line_of(capability))

    return condition


def no_content_form(facts: TemplateFacts) -> Iterator[Match]:
    """Of which llama.cpp itself warns (`chat.md` section 4)."""
    claims = facts.result.capabilities
    if claims is not None and not claims.string_content and not claims.typed_content:
        run = facts.probe("typed_content")
        message = error_of(run)
        why = f": the probe failed ({message})" if message is not None else ""
        line = run.error.line if run is not None and run.error is not None else None
        yield Match(f"neither text nor typed parts count as supported content{why}", "probe typed_content", line)


def calls_without_tools(facts: TemplateFacts) -> Iterator[Match]:
    """Of which llama.cpp itself warns (`chat.md` section 4)."""
    claims = facts.result.capabilities
    if claims is not None and claims.tool_calls and not claims.tools:
        text = "takes tool calls but never reads the tools it is given"
        yield Match(text, "flags tool_calls, tools", facts.line_of("tool_calls"))


def probe_threw(facts: TemplateFacts) -> Iterator[Match]:
    """Flags that are false because their probe failed, in templates that do mention the field; one hit an error."""
    claims = facts.result.capabilities
    if claims is None:
        return
    blamed: dict[str, list[str]] = {}
    runs: dict[str, ProbeRun] = {}
    for capability, (name, wanted) in DECIDED_BY_FAILURE.items():
        run = facts.probe(name)
        message = error_of(run)
        if message is None or run is None or getattr(claims, capability) or wanted not in facts.source:
            continue
        if capability == "string_content" and claims.typed_content:
            # It takes parts and fails at a string, which is what the flag says.
            continue
        blamed.setdefault(message, []).append(capability)
        runs.setdefault(message, run)
    for message, capabilities in blamed.items():
        run = runs[message]
        count = "flag" if len(capabilities) == 1 else "flags"
        text = f"{count} {', '.join(capabilities)} off because the probe failed: {message}"
        yield Match(text, f"probe {run.name}", run.error.line if run.error is not None else None)


DECIDED_BY_FAILURE = {
    "tools": ("tool_string_arguments", b"tools"),
    "tool_calls": ("tool_string_arguments", b"tool_calls"),
    "parallel_tool_calls": ("parallel_tool_calls", b"tool_calls"),
    "object_arguments": ("tool_object_arguments", b"arguments"),
    "string_content": ("typed_content", b"content"),
}
"""The probe whose failure alone turns a capability off, and the field it looks for."""


def flags_change_with_build(facts: TemplateFacts) -> Iterator[Match]:
    """Only where the template was analysed under several profiles."""
    changing = []
    for name in CAPABILITIES:
        flags = {profile: getattr(flags, name) for profile, flags in facts.by_profile.items()}
        known = {profile: holds for profile, holds in flags.items() if holds is not None}
        if len(set(known.values())) > 1:
            values = ", ".join(f"{profile} {'yes' if holds else 'no'}" for profile, holds in known.items())
            changing.append(f"{name} ({values})")
    if changing:
        yield Match(f"flags depend on the build: {'; '.join(changing)}", f"profiles {', '.join(facts.by_profile)}")
