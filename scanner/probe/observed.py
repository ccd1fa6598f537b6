"""The observed verdicts: what the output of marked conversations shows (`behaviours.md` section 1).

Judged by output alone, beside what llama.cpp claims from what a template read. The conversations go to the template
itself, not through the changes a server makes to a request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from scanner.dialect import ErrorKind, Limits, Template
from scanner.probe import marked
from scanner.probe.marked import CALLS, OFFERED_TOOL, Form, Renderer, renderer, text_part
from scanner.probe.markers import Sight, sight
from scanner.results import CAPABILITIES, Agreement, Capabilities, Effort, EffortOutcome, Observation, ProbeRun

REASON_LENGTH = 300
"""Characters of a template's own message that a reason repeats; the run has all of it."""

PRINTED, ABSENT, DUMPED, PYTHON_REPR = "printed", "absent", "dumped", "python repr"
SAME_EFFORT, DIFFERENT_EFFORTS, NO_EFFORT = "same for every effort", "different outputs", "no effort was tried"

REASONS = {
    Sight.PRINTED: PRINTED,
    Sight.PYTHON_KEY: PYTHON_REPR,
    Sight.DUMPED: DUMPED,
    Sight.ABSENT: ABSENT,
}


class Judgement(NamedTuple):
    """A verdict (None: it could not be told) and its reason."""

    verdict: bool | None
    reason: str


def observe(
    template: Template,
    capabilities: Capabilities,
    efforts: Sequence[Effort],
    *,
    effort_run: ProbeRun | None = None,
    now: float | None = None,
    limits: Limits | None = None,
) -> tuple[Observation, ...]:
    """What a template's output shows of each capability, in the order of `CAPABILITIES`.

    `capabilities` are llama.cpp's claims: they say in which form contents and arguments are sent, and each verdict is
    put beside its claim. `efforts` and `effort_run` are those of `try_efforts`. `now` is the clock of the runs, in
    seconds since the epoch.
    """
    observer = Observer(renderer(template, now, limits), capabilities)
    found = observer.observe_all()
    found["reasoning_effort"] = observe_efforts(efforts, effort_run)
    return tuple([_beside_claim(found[name], capabilities) for name in CAPABILITIES])


class Observer:
    """The conversations of one template. Each is rendered once, also where two capabilities are told from it."""

    def __init__(self, renders: Renderer, capabilities: Capabilities) -> None:
        self.renders = renders
        self.claims = capabilities
        self.form = Form(capabilities)

    def observe_all(self) -> dict[str, Observation]:
        """The verdicts of all capabilities but the effort, without their claims."""
        form, claims = self.form, self.claims
        user = form.message("user", marked.USER)
        system = form.message("system", marked.SYSTEM)
        tools = [OFFERED_TOOL]
        as_text = [{"role": "user", "content": marked.USER}]
        as_part = [{"role": "user", "content": text_part(marked.USER)}]
        calls = self.run("tool_calls", form.tool_use(CALLS[:1], as_object=claims.object_arguments), tools)
        both_calls = form.tool_use(CALLS, as_object=claims.object_arguments)
        reasoning = form.reasoning_history()
        found = [
            shows(self.run("string_content", as_text), marked.USER),
            shows(self.run("typed_content", as_part), marked.USER),
            shows(self.run("system_role", [system, user]), marked.SYSTEM),
            shows(self.run("tools", [user], tools), marked.TOOL_NAME),
            shows(calls, CALLS[0].name, CALLS[0].value),
            shows(
                self.run("parallel_tool_calls", both_calls, tools),
                *[text for call in CALLS for text in (call.name, call.value)],
            ),
            self.object_arguments(calls),
            shows(self.run("preserve_reasoning", reasoning, extra=marked.KEEPS_REASONING), marked.EARLIER_REASONING),
        ]
        return {observation.capability: observation for observation in found}

    def object_arguments(self, calls: ProbeRun) -> Observation:
        """From the run of the tool calls, where that had an object for arguments."""
        if self.claims.object_arguments:
            run = replace(calls, name="object_arguments")
        else:
            run = self.run("object_arguments", self.form.tool_use(CALLS[:1], as_object=True), [OFFERED_TOOL])
        return shows(run, CALLS[0].value, key=CALLS[0].key)

    def run(
        self,
        capability: str,
        messages: Sequence[Mapping[str, object]],
        tools: Sequence[Mapping[str, object]] = (),
        extra: Mapping[str, object] | None = None,
    ) -> ProbeRun:
        """Render one conversation under a capability's name."""
        return self.renders.run(capability, self.renders.variables(messages, tools, extra))


def shows(run: ProbeRun, *texts: str, key: str | None = None) -> Observation:
    """The verdict for the capability that a run is named after: true when every marker of `texts` is printed, and the
    argument key `key`, if one is given."""
    verdict, reason = judge_run(run) or judge_sights(run.output, texts, key)
    return Observation(run.name, verdict, reason, run=run)


def judge_run(run: ProbeRun) -> Judgement | None:
    """What a run that failed says; None where there is an output to look at. A budget of ours says nothing."""
    if run.error is None:
        return None
    message = shortened(run.error.message)
    if run.error.kind == ErrorKind.LIMIT:
        return Judgement(None, f"limit: {message}")
    return Judgement(False, f"raised: {message}")


def judge_sights(output: str, texts: Sequence[str], key: str | None) -> Judgement:
    """The verdict of the marker that is seen least."""
    sights = [sight(text, output) for text in texts]
    if key is not None:
        sights.append(sight(key, output, as_key=True))
    least = min(sights)
    return Judgement(least is Sight.PRINTED, REASONS[least])


def observe_efforts(efforts: Sequence[Effort], run: ProbeRun | None = None) -> Observation:
    """The verdict on reasoning effort: true when at least two accepted efforts give different outputs."""
    verdict, reason = judge_efforts(efforts) or (run and judge_run(run)) or Judgement(None, NO_EFFORT)
    return Observation("reasoning_effort", verdict, reason, run=run)


def judge_efforts(efforts: Sequence[Effort]) -> Judgement | None:
    """The verdict of efforts that were tried; None where none was."""
    accepted = [effort for effort in efforts if effort.outcome is EffortOutcome.ACCEPTED]
    if not efforts:
        return None
    if not accepted:
        return Judgement(False, f"raised: {shortened(efforts[0].message or '')}")
    outputs = len({effort.group for effort in accepted})
    return Judgement(outputs > 1, DIFFERENT_EFFORTS if outputs > 1 else SAME_EFFORT)


def _beside_claim(observation: Observation, capabilities: Capabilities) -> Observation:
    claim: bool | None = getattr(capabilities, observation.capability)
    return replace(observation, agreement=agreement_of(claim, observation.verdict))


def agreement_of(claimed: bool | None, observed: bool | None) -> Agreement | None:
    """A claim beside a verdict; None where either is missing."""
    if claimed is None or observed is None:
        return None
    if claimed == observed:
        return Agreement.AGREES
    return Agreement.OVERCLAIMS if claimed else Agreement.UNDERCLAIMS


def shortened(message: str) -> str:
    """A message of a template's, cut where it is longer than a reason should be."""
    return message if len(message) <= REASON_LENGTH else message[: REASON_LENGTH - 1] + "…"
