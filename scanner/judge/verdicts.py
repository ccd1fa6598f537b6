"""Why a flag is what it is, in words: what llama.cpp's rule looked at, and what it saw (`caps.md`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scanner.results import CAPABILITIES, Capabilities, ProbeRun, Read


@dataclass(frozen=True, slots=True)
class Claim:
    """One flag, the reason for it, and the probe that decided it."""

    capability: str
    claimed: bool
    why: str
    probe: str


def explain(capabilities: Capabilities, probes: Sequence[ProbeRun]) -> tuple[Claim, ...]:
    """Every flag with its reason, in the order of `CAPABILITIES`."""
    runs = {run.name: run for run in probes}
    return tuple(EXPLAIN[name](name, bool(getattr(capabilities, name)), runs) for name in CAPABILITIES)


Runs = dict[str, ProbeRun]
Explain = Callable[[str, bool, Runs], Claim]


def by_read(path: str, what: str, *probes: str) -> Explain:
    """A flag that follows from one value having been read, in the last of `probes` that ran."""

    def explain_one(capability: str, claimed: bool, runs: Runs) -> Claim:
        run = next(runs[name] for name in reversed(probes) if name in runs)
        if claimed:
            run = next((runs[name] for name in probes if name in runs and _read(runs[name], path)), run)
            return Claim(capability, True, f"{what} read at {_place(_read(run, path))}", run.name)
        if run.error is not None:
            return Claim(capability, False, f"the probe failed: {_error(run)}", run.name)
        return Claim(capability, False, f"{what} never read", run.name)

    return explain_one


def string_content(capability: str, claimed: bool, runs: Runs) -> Claim:
    """Probe 1: false if it failed, or if the content is walked as parts and the text not printed."""
    run = runs["typed_content"]
    if claimed:
        return Claim(capability, True, "a plain user message renders", run.name)
    why = f"a plain user message fails: {_error(run)}" if run.error else "the text of a plain message is not printed"
    return Claim(capability, False, why, run.name)


def typed_content(capability: str, claimed: bool, runs: Runs) -> Claim:
    """Probes 1 and 2: true if the content was walked as a list."""
    runs_tried = [runs[name] for name in ("typed_content", "typed_content_empty_array") if name in runs]
    for run in runs_tried:
        read = _read(run, "messages[0].content")
        if claimed and read is not None and {"selectattr", "array_access"} & set(read.ops):
            return Claim(capability, True, f"content walked as a list, first read at {_place(read)}", run.name)
    return Claim(capability, claimed, "content never walked as a list of parts", runs_tried[-1].name)


def preserve_reasoning(capability: str, claimed: bool, runs: Runs) -> Claim:
    """Probe 7, by output alone."""
    run = runs["preserve_reasoning"]
    if claimed:
        return Claim(capability, True, "the earlier reasoning is printed", run.name)
    why = f"the probe failed: {_error(run)}" if run.error else "the earlier reasoning is not in the output"
    return Claim(capability, False, why, run.name)


def reasoning_effort(capability: str, claimed: bool, runs: Runs) -> Claim:
    """Probe 8; older builds have none."""
    if "reasoning_effort" not in runs:
        return Claim(capability, False, "this build has no such flag", "")
    return by_read("reasoning_effort", "effort", "reasoning_effort")(capability, claimed, runs)


EXPLAIN: dict[str, Explain] = {
    "tools": by_read("tools[0].function.name", "the tool's name", "tool_object_arguments", "tool_string_arguments"),
    "tool_calls": by_read("messages[1].tool_calls", "the call list", "tool_object_arguments", "tool_string_arguments"),
    "parallel_tool_calls": by_read("messages[1].tool_calls[1].function", "the second call", "parallel_tool_calls"),
    "system_role": by_read("messages[0].content", "system content", "system_role"),
    "string_content": string_content,
    "typed_content": typed_content,
    "object_arguments": by_read(
        "messages[1].tool_calls[0].function.arguments.arg", "the argument", "tool_object_arguments"
    ),
    "preserve_reasoning": preserve_reasoning,
    "reasoning_effort": reasoning_effort,
}


def _read(run: ProbeRun, path: str) -> Read | None:
    return next((read for read in run.reads if read.path == path and read.used), None)


def _place(read: Read | None) -> str:
    return "?" if read is None else f"{read.line}:{read.column}"


def _error(run: ProbeRun) -> str:
    if run.error is None:
        return ""
    place = f" (line {run.error.line})" if run.error.line is not None else ""
    return " ".join(run.error.message.split()) + place
