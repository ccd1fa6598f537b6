"""What is really true of a template (`behaviours.md`): observed verdicts, efforts, behaviours, and the reference."""

from __future__ import annotations

import atexit
from dataclasses import dataclass, replace
from functools import cache

from scanner.chat.server import Server
from scanner.chat.start import Start
from scanner.dialect import Limits
from scanner.probe.behaviours import NOT_EXAMINED, OUTCOMES, References, examine, reference_requests
from scanner.probe.efforts import try_efforts
from scanner.probe.observed import observe
from scanner.reference import ReferenceProcess, variables_of_request
from scanner.results import CAPABILITIES, Behaviour, Effort, Observation, StandardRender


@dataclass(frozen=True, slots=True)
class Truth:
    """The fields of a `TemplateResult` that say what is really true."""

    observations: tuple[Observation, ...]
    efforts: tuple[Effort, ...]
    free_text_effort: str | None
    behaviours: tuple[Behaviour, ...]
    renders: tuple[StandardRender, ...]


START_STEPS, RENDER_STEPS, OUTPUT_BYTES = 500_000, 100_000, 512 * 1024
"""Budgets of one render at the start of a server, and of one here. There are some fifteen and two hundred of them, so
each has a part of what a probe has; the largest of published templates takes a few thousand steps."""
MOST_STEPS = 40_000
"""A template whose plain chat takes more is not examined here: two hundred renders of it would take too long, and its
flags would be lost with the time-out."""
PLAIN = {"messages": [{"role": "user", "content": "Hello"}], "add_generation_prompt": True}


def share(limits: Limits, steps: int) -> Limits:
    """The same limits with no more than these steps for a render."""
    return replace(limits, steps=min(limits.steps, steps), output_bytes=min(limits.output_bytes, OUTPUT_BYTES))


def find_truth(server: Server, started: Start, source: bytes, *, now: float) -> Truth:
    """Everything of a server's default template; `source` is its text as published, which the reference renders. `now`
    is the clock of all renders, in seconds since the epoch."""
    template, claimed = server.default.template, server.default.capabilities
    plain = template.run({**PLAIN, "bos_token": server.vocabulary.bos}, statistics=False, now=now)
    if plain.steps > MOST_STEPS:
        return _too_slow(plain.steps)
    limits = share(template.limits, RENDER_STEPS)
    trial = try_efforts(template, claimed, now=now, limits=limits)
    observations = observe(template, claimed, trial.efforts, effort_run=trial.run, now=now, limits=limits)
    found = examine(server, started, references_of(server, source, now), now=now, limits=limits)
    free_text = None if trial.free_text is None else str(trial.free_text)
    return Truth(observations, trial.efforts, free_text, found.behaviours, found.renders)


def _too_slow(steps: int) -> Truth:
    """Nothing is known, and why."""
    reason = f"limit: a plain chat takes {steps:,} steps, more than {MOST_STEPS:,}"
    observations = tuple([Observation(capability, None, reason) for capability in CAPABILITIES])
    behaviours = tuple([Behaviour(key, NOT_EXAMINED, reason) for key in OUTCOMES])
    return Truth(observations, (), None, behaviours, ())


def references_of(server: Server, source: bytes, now: float) -> References:
    """The reference's renders of all conversations that the behaviours compare, by name."""
    asked = reference_requests(server, now=now)
    tokens = server.vocabulary
    conversations = [variables_of_request(body, bos=tokens.bos, eos=tokens.eos) for body in asked.values()]
    return dict(zip(asked, _process().render_all(source, conversations, now=now), strict=True))


@cache
def _process() -> ReferenceProcess:
    """One for each process of ours, as starting one takes longer than rendering."""
    process = ReferenceProcess()
    atexit.register(process.close)
    return process
