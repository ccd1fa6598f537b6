"""Why llama.cpp believes what it believes, and whether that is right.

A flag's reason in words, told from the probe runs that decided it (`caps.md`), and what was observed beside it
(`behaviours.md`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from scanner.results import (
    AUTOPARSER_START,
    CAPABILITIES,
    EVERY_START,
    LOGGED_START,
    Agreement,
    Behaviour,
    Capabilities,
    Observation,
    ProbeRun,
    Read,
    Verification,
)

DECIDING_PROBES: Mapping[str, tuple[str, ...]] = {
    "tools": ("tool_object_arguments", "tool_string_arguments"),
    "tool_calls": ("tool_object_arguments", "tool_string_arguments"),
    "parallel_tool_calls": ("parallel_tool_calls",),
    "system_role": ("system_role",),
    "string_content": ("typed_content",),
    "typed_content": ("typed_content", "typed_content_empty_array"),
    "object_arguments": ("tool_object_arguments",),
    "preserve_reasoning": ("preserve_reasoning",),
    "reasoning_effort": ("reasoning_effort",),
}
"""The probes that decide each capability."""

DECIDING_VALUES: Mapping[str, str] = {
    "tools": "tools[0].function.name",
    "tool_calls": "messages[1].tool_calls",
    "parallel_tool_calls": "messages[1].tool_calls[1].function",
    "system_role": "messages[0].content",
    "string_content": "messages[0].content",
    "typed_content": "messages[0].content",
    "object_arguments": "messages[1].tool_calls[0].function.arguments.arg",
    "preserve_reasoning": "messages[1].reasoning_content",
    "reasoning_effort": "reasoning_effort",
}
"""The value of the request whose reading tells each capability."""

STARTING_CONVERSATIONS: Mapping[str, str] = {
    EVERY_START: "one user message, thinking on",
    LOGGED_START: "system, user, assistant, user",
    AUTOPARSER_START: "a call with its arguments as an object",
}
"""The conversations that llama-server renders before it listens (`chat.md` section 6), in words."""

EFFECTS: Mapping[str, tuple[str, str]] = {
    "tools": ("tells clients that tools are described to the model", "tells clients that the model sees no tools"),
    "tool_calls": (
        "tells clients that the model sees earlier tool calls",
        "tells clients that the model does not see earlier tool calls",
    ),
    "parallel_tool_calls": (
        "tells clients that the model sees all calls of a message",
        "tells clients that the model sees one call of a message",
    ),
    "system_role": (
        "hands a system message to the template as it is",
        "puts the text of a leading system message before that of the next message",
    ),
    "string_content": ("hands text over as a string", "does not hand text over as a plain string"),
    "typed_content": (
        "hands a list of parts to the template as it is",
        "joins text parts to one string before the template sees them",
    ),
    "object_arguments": (
        "parses the arguments of calls into objects",
        "hands the arguments of calls over as JSON text",
    ),
    "preserve_reasoning": (
        "tells clients that earlier reasoning is kept",
        "tells clients that earlier reasoning is left out",
    ),
    "reasoning_effort": (
        "tells clients that a reasoning effort has an effect",
        "tells clients that a reasoning effort has no effect",
    ),
}
"""What llama.cpp does about a capability that it believes in, and about one that it does not."""

USUAL_OUTCOMES: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(
        ("late_system", "two_systems", "system_only", "developer", "no_user", "same_role_twice", "orphan_tool_result"),
        frozenset({"rendered"}),
    ),
    "server_starts": frozenset({"yes"}),
    "unknown_role": frozenset({"rendered", "dropped"}),
    "null_content_call": frozenset({"same"}),
    "thinking_switch": frozenset({"ignored"}),
    "generation_prompt": frozenset({"appended"}),
    "history": frozenset({"stable"}),
    "white_space": frozenset({"kept", "trimmed"}),
    "parts_join": frozenset({"nothing", "space", "newline", "blank line"}),
    "arguments": frozenset({"json", "xml", "nothing"}),
    "clock": frozenset({"same"}),
    "default_system": frozenset({"none"}),
    "bos": frozenset({"once", "none"}),
    "special_tokens": frozenset({"marked as input", "no control texts"}),
    "prefill": frozenset({"with a thought", "text only"}),
    "kwargs": frozenset({"none"}),
    "reference": frozenset({"equal"}),
}
"""Outcomes of each behaviour that ask for nobody's attention."""
MISPLACED = ("moved", "also lost")
"""Words of a detail that make a usual outcome worth a look all the same."""
ALWAYS_SAID = frozenset({"handler"})
"""Behaviours that stand elsewhere: the first line of an answer names the handler."""

REASONING_MARKER = "<REASONING_CONTENT_PLACEHOLDER>"

_WALKS = frozenset({"selectattr", "array_access"})


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a template, from 1; the column counts bytes."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one probe says on one capability, and the place in the template that it points at."""

    probe: str
    ok: bool
    text: str
    place: Place | None


@dataclass(frozen=True, slots=True)
class Claim:
    """One flag of a template: the claim, the evidence that settled it (of the probe `settled_by`), and all that was
    looked at; beside it what was observed."""

    capability: str
    label: str
    llama_cpp_name: str
    claimed: bool | None
    why: str
    place: Place | None
    evidence: tuple[Evidence, ...]
    settled_by: str | None = None
    really: bool | None = None
    reason: str | None = None
    agreement: Agreement | None = None


def claims(
    capabilities: Capabilities | None, runs: Sequence[ProbeRun], observations: Sequence[Observation] = ()
) -> tuple[Claim, ...]:
    """The nine claims in the order of CAPABILITIES; without capabilities nothing is claimed (None)."""
    observed = {one.capability: one for one in observations}
    return tuple(_beside(_claim(name, capabilities, runs), observed.get(name)) for name in CAPABILITIES)


def _beside(claim: Claim, observation: Observation | None) -> Claim:
    if observation is None:
        return claim
    return replace(claim, really=observation.verdict, reason=observation.reason, agreement=observation.agreement)


def place_of(line: int | None, column: int | None) -> Place | None:
    """A place, if both numbers are known."""
    return None if line is None or column is None else Place(line, column)


def _claim(name: str, capabilities: Capabilities | None, runs: Sequence[ProbeRun]) -> Claim:
    claimed: bool | None = None if capabilities is None else getattr(capabilities, name)
    decisive = [run for run in runs if run.name in DECIDING_PROBES[name]]
    evidence = tuple(_evidence(name, run) for run in decisive)
    settled = _settling(claimed, decisive, evidence, name)
    if claimed is None:
        why = "the template was not examined"
    elif settled is None:
        why = "the probe runs were not kept"
    else:
        why = settled.text
    return Claim(
        capability=name,
        label=name.replace("_", " "),
        llama_cpp_name=f"supports_{name}",
        claimed=claimed,
        why=why,
        place=None if settled is None or claimed is None else settled.place,
        evidence=evidence,
        settled_by=None if settled is None or claimed is None else settled.probe,
    )


def _settling(
    claimed: bool | None, runs: Sequence[ProbeRun], evidence: Sequence[Evidence], name: str
) -> Evidence | None:
    """The evidence that agrees with the claim, the latest first: later probes overrule earlier ones."""
    pairs = list(zip(runs, evidence, strict=True))
    agreeing = [said for run, said in pairs if _speaks_for(name, run) == claimed]
    return agreeing[-1] if agreeing else (evidence[-1] if evidence else None)


def _speaks_for(name: str, run: ProbeRun) -> bool:
    read = _read(run, DECIDING_VALUES[name])
    if name == "typed_content":
        return bool(_WALKS & set(read.ops)) and (run.ok or run.name == "typed_content")
    if name == "string_content":
        return run.ok and not _loses_text(run, read)
    if name == "preserve_reasoning":
        return REASONING_MARKER in run.output
    # These two count what was read even when the render failed afterwards.
    return read.used and (run.ok or name in ("system_role", "reasoning_effort"))


def _evidence(name: str, run: ProbeRun) -> Evidence:
    read = _read(run, DECIDING_VALUES[name])
    speaks = _speaks_for(name, run)
    if run.error is not None and not speaks:
        at = place_of(run.error.line, run.error.column)
        return Evidence(run.name, run.ok, f"the probe failed: {first_line(run.error.message)}", at)
    said = _said_for(name, read) if speaks else _said_against(name, read)
    return Evidence(run.name, run.ok, said, place_of(read.line, read.column) if speaks else None)


def _said_for(name: str, read: Read) -> str:
    if name == "typed_content":
        return f"walked as a list ({', '.join(sorted(_WALKS & set(read.ops)))})"
    if name == "string_content":
        return "a plain string renders and is read" if read.used else "a plain string renders"
    if name == "preserve_reasoning":
        return "earlier reasoning is in the output"
    return f"{read.path} is read"


def _said_against(name: str, read: Read) -> str:
    if name == "typed_content":
        return "content is not walked as a list"
    if name == "string_content":
        return "a plain string is walked as a list, and its text is lost"
    if name == "preserve_reasoning":
        return "earlier reasoning is not in the output"
    return f"{read.path} is never read"


def _loses_text(run: ProbeRun, read: Read) -> bool:
    sent = run.variables.get("messages")
    first = sent[0] if isinstance(sent, list) and sent else {}
    content = first.get("content") if isinstance(first, dict) else None
    return bool(_WALKS & set(read.ops)) and isinstance(content, str) and content not in run.output


def _read(run: ProbeRun, path: str) -> Read:
    unread = Read(path, used=False, ops=(), line=None, column=None)
    return next((read for read in run.reads if read.path == path), unread)


def really_word(claim: Claim) -> str:
    """What was observed, in a few words: `yes`, `no, absent`, `no, raises`, `not told`; empty where nothing was."""
    if claim.reason is None:
        return ""
    if claim.really is None:
        return "not told"
    if claim.really:
        return "yes"
    reason = claim.reason.partition(":")[0]
    return f"no, {SHORT_REASONS.get(reason, reason)}"


SHORT_REASONS: Mapping[str, str] = {"raised": "raises", "same for every effort": "all alike"}

_PHRASES: Mapping[tuple[Agreement, str], str] = {
    (Agreement.OVERCLAIMS, "absent"): "reads it, never prints it",
    (Agreement.OVERCLAIMS, "dumped"): "dumps it as data",
    (Agreement.OVERCLAIMS, "python repr"): "prints it as a Python repr",
    (Agreement.OVERCLAIMS, "same for every effort"): "same output for every effort",
    (Agreement.UNDERCLAIMS, "printed"): "prints it all the same",
    (Agreement.UNDERCLAIMS, "different outputs"): "outputs differ all the same",
}


def disagreement_phrase(agreement: Agreement, reason: str) -> str:
    """Why a claim is wrong, in a few words."""
    kind, _, rest = reason.partition(":")
    if kind == "raised":
        return f"raises: {first_line(rest).removeprefix('Jinja Exception: ')}"
    return _PHRASES.get((agreement, reason), reason)


def judgement(claim: Claim) -> str:
    """Whether a claim is right, and what llama.cpp does because of it, in one sentence."""
    if claim.claimed is None:
        return "llama.cpp of this build makes no claim."
    believed, otherwise = EFFECTS[claim.capability]
    effect = believed if claim.claimed else otherwise
    if claim.agreement is None:
        return f"Whether that is right could not be told; llama.cpp {effect}."
    if claim.agreement is Agreement.AGREES:
        return f"That is right. llama.cpp {effect}."
    much = "too much" if claim.agreement is Agreement.OVERCLAIMS else "too little"
    phrase = disagreement_phrase(claim.agreement, claim.reason or "")
    return f"That is wrong: llama.cpp believes {much} and {effect}, but the template {phrase}."


def is_usual(behaviour: Behaviour) -> bool:
    """Whether a behaviour needs nobody's attention."""
    if behaviour.key in ALWAYS_SAID:
        return True
    usual = behaviour.outcome in USUAL_OUTCOMES.get(behaviour.key, frozenset())
    return usual and not any(word in behaviour.detail for word in MISPLACED)


def first_line(message: str) -> str:
    """What a message says first; an engine's may go on with an excerpt, or begin with an empty line."""
    lines = message.strip().splitlines()
    return lines[0] if lines else "no message"


def difference_text(result: Verification) -> str:
    """Why a template is not equal, in one line."""
    flags = [
        f"{difference.capability} is {yes_or_no(difference.engine)} in llama.cpp, {yes_or_no(difference.ours)} here "
        f"(probe {difference.probe})"
        for difference in result.differences
    ]
    return "; ".join([*flags, *([result.reason] if result.reason else [])])


def yes_or_no(holds: bool) -> str:
    """A flag's value as a word."""
    return "yes" if holds else "no"
