"""What a rule is, and the facts it may look at. A rule is data; it sees no syntax tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from scanner.judge.verdicts import claims, first_line
from scanner.results import (
    Behaviour,
    Capabilities,
    ChatTemplate,
    Finding,
    Observation,
    Outcome,
    ProbeRun,
    Severity,
    SpecialToken,
    StandardRender,
    TemplateResult,
)

DOCS = "docs/rules.md"
"""Where every rule has a section."""
MESSAGE_LENGTH = 160
"""Characters of a template's own message that a finding repeats."""
RAISED = "Jinja Exception: "
"""What llama.cpp puts before a message that the template itself raised."""
RAISES = "raises"
"""The outcome of a behaviour whose request failed."""
SEPARATOR = " · "
"""Between the parts of a behaviour's detail."""


@dataclass(frozen=True, slots=True)
class TemplateFacts:
    """One analysed template: its text as published, its analysis (whose findings are not looked at), and the flags of
    other builds, by profile, where it was analysed under several."""

    source: bytes
    result: TemplateResult
    outdated_gemma4: bool = False
    by_profile: Mapping[str, Capabilities] = field(default_factory=dict)

    def probe(self, name: str) -> ProbeRun | None:
        """The run of a probe; None where it did not run."""
        return next((run for run in self.result.probes if run.name == name), None)

    def behaviour(self, key: str) -> Behaviour | None:
        """A behaviour; None where none was examined."""
        return next((one for one in self.result.behaviours if one.key == key), None)

    def observation(self, capability: str) -> Observation | None:
        """What was observed of a capability; None where nothing was."""
        return next((one for one in self.result.observations if one.capability == capability), None)

    def prompt(self, scenario: str) -> str | None:
        """The prompt that llama.cpp makes of a standard conversation; None where there is none."""
        render = next((one for one in self.result.renders if is_prompt(one, scenario)), None)
        return None if render is None else render.output

    def line_of(self, capability: str) -> int | None:
        """The template's line that settled a flag, where one did."""
        told = claims(self.result.capabilities, self.result.probes)
        place = next(claim.place for claim in told if claim.capability == capability)
        return None if place is None else place.line

    def line_naming(self, *names: bytes) -> int | None:
        """The first line of the text that holds one of these names."""
        places = [at for at in map(self.source.find, names) if at >= 0]
        return self.source.count(b"\n", 0, min(places)) + 1 if places else None


def is_prompt(render: StandardRender, scenario: str) -> bool:
    """Whether a render is llama.cpp's prompt of a standard conversation."""
    return render.engine == "llama.cpp" and render.scenario == scenario and render.error is None


@dataclass(frozen=True, slots=True)
class VariantFacts:
    """One of a file's variants, and what was found out about it. `bos`: its behaviour of that name, if it is known."""

    template: ChatTemplate
    outcome: Outcome
    capabilities: Capabilities | None
    bos: Behaviour | None = None


@dataclass(frozen=True, slots=True)
class FileFacts:
    """A model file and its variants; `outcome` is that of its extraction, `bos` the token as the file has it, `notes`
    what its extraction noted."""

    outcome: Outcome
    variants: Sequence[VariantFacts]
    bos: SpecialToken = field(default_factory=SpecialToken)
    notes: Sequence[str] = ()


Facts = TypeVar("Facts", TemplateFacts, FileFacts)


@dataclass(frozen=True, slots=True)
class Match:
    """One hit of a rule: the line a person reads, what it rests on, and the template's line if there is one."""

    text: str
    evidence: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Rule(Generic[Facts]):
    """A rule. `when` yields its hits in some facts; `meaning` says what is so, `why` what it costs, `remedy` what to do
    about it, first for who writes the template, then for who serves it."""

    slug: str
    severity: Severity
    meaning: str
    why: str
    remedy: str
    when: Callable[[Facts], Iterator[Match]]

    @property
    def docs(self) -> str:
        """The rule's section in the documentation."""
        return f"{DOCS}#{self.slug}"

    def findings(self, facts: Facts) -> Iterator[Finding]:
        """The rule's hits as findings."""
        for match in self.when(facts):
            yield Finding(self.slug, self.severity, match.text, match.evidence, match.line)


def said(message: str) -> str:
    """A message as a finding repeats it: its first line, without the engine's own words, cut where it is long."""
    text = " ".join(first_line(message).removeprefix(RAISED).split())
    return text if len(text) <= MESSAGE_LENGTH else text[: MESSAGE_LENGTH - 1] + "…"


def error_of(run: ProbeRun | None) -> str | None:
    """Why a run failed in llama.cpp; None where it did not, or where only a budget of ours ran out."""
    if run is None or run.error is None or run.error.kind == "limit":
        return None
    return said(run.error.message)


def listed(words: Sequence[str], shown: int = 4) -> str:
    """Words one after another, the first few of many."""
    more = len(words) - shown
    return ", ".join(words) if more <= 1 else f"{', '.join(words[:shown])} and {more} more"
