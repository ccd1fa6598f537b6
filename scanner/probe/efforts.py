"""Which reasoning efforts a template takes, and which of them make a difference (`behaviours.md` section 2)."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import sha256

from scanner.dialect import ErrorKind, Limits, RenderResult, Template, from_python
from scanner.probe import marked
from scanner.probe.capabilities import to_probe_run
from scanner.probe.effort_words import EFFORT_NAMES, effort_words, mentions_effort
from scanner.probe.marked import Form, Renderer, renderer
from scanner.probe.markers import Sight, sight
from scanner.results import Capabilities, Effort, EffortOutcome, ProbeRun

CAPABILITY = "reasoning_effort"

COMMON_WORDS = ("none", "minimal", "low", "medium", "high", "xhigh", "max", "auto")
"""Tried on every template: what clients send."""

MESSAGE_LENGTH = 1000
"""Characters kept of each error: a template may raise any text, and there is one for each word."""


class FreeText(StrEnum):
    """What a template does with an effort that it cannot know. `ignored`: it renders, and the word is not in it."""

    PRINTED = "printed"
    IGNORED = "ignored"
    RAISES = "raises"


@dataclass(frozen=True, slots=True)
class EffortTrial:
    """The efforts as tried: unset first, then the common words, then those that the template names.

    `free_text` is the outcome of a marker word, which is none of `efforts`. `run` is the render that shows the verdict:
    the first accepted one that differs from the first accepted one, else that, else the first. A render that used up a
    budget ends the trial: it is `run`, and there are no efforts and no `free_text`, since the rest would say nothing.
    """

    efforts: tuple[Effort, ...]
    free_text: FreeText | None
    run: ProbeRun | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """One word as it was rendered."""

    word: str | None
    data: Mapping[str, object]
    result: RenderResult
    duration: float

    def as_run(self) -> ProbeRun:
        """The render, named after the capability."""
        return to_probe_run(CAPABILITY, self.data, self.result, self.duration)


class BudgetExceeded(Exception):  # noqa: N818 - not an error: it ends the trial
    """A render used up a budget; the next ones would do the same."""

    def __init__(self, trial: Trial) -> None:
        super().__init__()
        self.trial = trial


def try_efforts(
    template: Template, capabilities: Capabilities, *, now: float | None = None, limits: Limits | None = None
) -> EffortTrial:
    """Try each reasoning effort on a template, one render a word.

    `capabilities` are llama.cpp's claims: they say in which form the user's text is sent. `now` is the clock of all
    renders, in seconds since the epoch.
    """
    trier = Trier(renderer(template, now, limits), Form(capabilities))
    try:
        return trier.try_all() if mentions_effort(template.text) else trier.try_none()
    except BudgetExceeded as exceeded:
        return EffortTrial((), None, exceeded.trial.as_run())


class Trier:
    """The trials of one template: renders words, and judges each beside those before it."""

    def __init__(self, renders: Renderer, form: Form) -> None:
        self.renders = renders
        self.data = renders.variables([form.message("user", marked.USER)])
        self.groups: dict[bytes, int] = {}
        self.shown: dict[int, Trial] = {}
        """The first render of each of the first two groups."""

    def try_all(self) -> EffortTrial:
        """Every word, and the marker."""
        unset = self.render(None)
        words = dict.fromkeys([*COMMON_WORDS, *effort_words(self.renders.template.nodes)])
        efforts = [self.judge(unset, unset), *[self.judge(self.render(word), unset) for word in words]]
        free_text = self.free_text()
        return EffortTrial(tuple(efforts), free_text, (self.shown.get(2) or self.shown.get(1) or unset).as_run())

    def try_none(self) -> EffortTrial:
        """Where no effort can change anything: one render stands for all."""
        unset = self.render(None)
        effort = self.judge(unset, unset)
        efforts = (effort, *[replace(effort, word=word) for word in COMMON_WORDS])
        return EffortTrial(efforts, FreeText.IGNORED if unset.result.ok else FreeText.RAISES, unset.as_run())

    def render(self, word: str | None) -> Trial:
        """Render with a word for the effort: one value under both names, as in a server. Raises `BudgetExceeded`."""
        names = EFFORT_NAMES if word is not None else ()
        started = time.perf_counter()
        result = self.renders.render({**self.data, **dict.fromkeys(names, from_python(word))})
        trial = Trial(word, {**self.data, **dict.fromkeys(names, word)}, result, time.perf_counter() - started)
        if result.error is not None and result.error.kind is ErrorKind.LIMIT:
            raise BudgetExceeded(trial)
        return trial

    def judge(self, trial: Trial, unset: Trial) -> Effort:
        """One effort beside the others. To be called in their order."""
        error = trial.result.error
        if error is not None:
            return Effort(trial.word, EffortOutcome.RAISES, error.message[:MESSAGE_LENGTH], error.line)
        group = self.groups.setdefault(sha256(trial.result.output).digest(), len(self.groups) + 1)
        if group <= 2:
            self.shown.setdefault(group, trial)
        same = unset.result.ok and trial.result.output == unset.result.output
        return Effort(
            trial.word,
            EffortOutcome.ACCEPTED,
            group=group,
            prints_word=not same and prints_more(trial, unset),
            equals_unset=same,
        )

    def free_text(self) -> FreeText:
        """What becomes of a word that no template knows."""
        result = self.render(marked.EFFORT).result
        if result.error is not None:
            return FreeText.RAISES
        printed = sight(marked.EFFORT, result.output.decode("utf-8", "replace")) is Sight.PRINTED
        return FreeText.PRINTED if printed else FreeText.IGNORED


def prints_more(trial: Trial, unset: Trial) -> bool:
    """Whether a word stands in its own output more often than in the one without an effort."""
    if trial.word is None:
        return False
    return occurrences(trial.word, trial.result.output) > occurrences(trial.word, unset.result.output)


def occurrences(word: str, output: bytes) -> int:
    """How often a word stands in an output, whole, in letters of any case."""
    whole = rf"(?<!\w){re.escape(word)}(?!\w)"
    return len(re.findall(whole, output.decode("utf-8", "replace"), re.IGNORECASE))


# -- in words ----------------------------------------------------------------------------------------------------------


SHOWN_MESSAGE = 60
"""Characters of an error that the summary shows."""


def effort_summary(efforts: Sequence[Effort]) -> str:
    """What the efforts do, in one line: `low, medium, xhigh accepted (xhigh = unset); high raises "…" (line 49)`."""
    words = [effort for effort in efforts if effort.word is not None]
    accepted = [effort for effort in words if effort.outcome is EffortOutcome.ACCEPTED]
    parts = [_accepted(accepted, everything=len(accepted) == len(words))] if accepted else []
    raising: dict[int | None, list[Effort]] = {}
    for effort in efforts:
        if effort.outcome is EffortOutcome.RAISES:
            raising.setdefault(effort.line, []).append(effort)
    return "; ".join([*parts, *[_raising(place, some) for place, some in raising.items()]]) or "no effort was tried"


def _accepted(accepted: Sequence[Effort], *, everything: bool) -> str:
    """The words that render, and which of them are one and the same."""
    who = "every word" if everything else named(accepted)
    groups: dict[int | None, list[Effort]] = {}
    for effort in accepted:
        groups.setdefault(effort.group, []).append(effort)
    differing = [group for group in groups.values() if not group[0].equals_unset]
    if not differing:
        return f"{who} accepted, " + ("none makes a difference" if len(accepted) > 1 else "which makes no difference")
    if everything and sum([effort.equals_unset for effort in accepted]) > 1:
        makes = "makes" if len(differing) == 1 else "make"
        return f"{who} accepted; only {', '.join([_alike(group) for group in differing])} {makes} a difference"
    equal = [_alike(group) for group in groups.values() if len(group) > 1 or group[0].equals_unset]
    own = ", each with an output of its own" if everything and len(groups) == len(accepted) > 1 else ""
    return f"{who} accepted{own}" + (f" ({', '.join(equal)})" if equal else "")


def _alike(group: Sequence[Effort]) -> str:
    return " = ".join([*[str(effort.word) for effort in group], *(["unset"] if group[0].equals_unset else [])])


def _raising(line: int | None, efforts: Sequence[Effort]) -> str:
    first = efforts[0].message or ""
    message = " ".join(first.removeprefix("Jinja Exception: ").split())
    shown = message if len(message) <= SHOWN_MESSAGE else message[: SHOWN_MESSAGE - 1] + "…"
    place = f" (line {line})" if line is not None else ""
    return f'{named(efforts)} {"raises" if len(efforts) == 1 else "raise"} "{shown}"{place}'


def named(efforts: Sequence[Effort]) -> str:
    """The words, one after another."""
    return ", ".join(["unset" if effort.word is None else effort.word for effort in efforts])
