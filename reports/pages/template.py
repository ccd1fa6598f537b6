"""The page of one template."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from reports.builds import Flip, flips, oldest_first
from reports.gutters import Gutter, gutters, lines_run
from reports.marks import Flags, flags_of, legend_of
from reports.overview import AllNotes, Overview, page_id, preferred
from reports.pages.prompts import PromptPair, prompt_pairs
from reports.pages.rows import worst_first
from reports.pages.runs import ProbeView, RunView, probe_view, run_view
from reports.source_lines import SourceLine, shortened_source, source_lines
from reports.words import BEHAVIOUR_QUESTIONS, OUTCOME_MEANINGS
from scanner.judge import ALL_RULES
from scanner.judge.verdicts import DECIDING_PROBES, Claim, difference_text, is_usual, judgement
from scanner.results import (
    Behaviour,
    Capabilities,
    Effort,
    Finding,
    Outcome,
    StartCheck,
    TemplateResult,
    Verdict,
)
from scanner.store.queries import Analysis, StoredVerification, TemplateDetail

DECISIVE = frozenset(probe for probes in DECIDING_PROBES.values() for probe in probes)
REMEDIES = {rule.slug: rule.remedy for rule in ALL_RULES}


@dataclass(frozen=True, slots=True)
class Holder:
    """A file that holds the template; `last_scan` is None while it does, else the last scan in which it did. `place` is
    its path, where `path` is the name that a store has for it."""

    path: str
    variant: str
    origin: str | None
    last_scan: int | None
    place: str | None = None


@dataclass(frozen=True, slots=True)
class FindingView:
    """A finding, and what can be done about it."""

    finding: Finding
    remedy: str


@dataclass(frozen=True, slots=True)
class ClaimView:
    """A claim, and whether it is right, in one sentence. `probes` decided it and are shown with it, `elsewhere` names
    those that are shown with a claim before; `observed` is the conversation of our own that tells what is true."""

    claim: Claim
    judgement: str
    probes: tuple[ProbeView, ...]
    elsewhere: tuple[str, ...]
    observed: RunView | None


@dataclass(frozen=True, slots=True)
class Relative:
    """Another template to compare this one with, the page that does so (`compare`), and why."""

    compare: str
    path: str
    variant: str
    relation: str


@dataclass(frozen=True, slots=True)
class BehaviourView:
    """How the template answers one question beyond its flags."""

    behaviour: Behaviour
    question: str
    usual: bool


@dataclass(frozen=True, slots=True)
class BuildRow:
    """The template under one engine profile, and what flips against the build before it; `shown` is the profile that
    the rest of the page speaks of."""

    profile: str
    outcome: Outcome
    flags: Flags
    flips: tuple[Flip, ...]
    shown: bool


@dataclass(frozen=True, slots=True)
class VerifiedView:
    """What the real llama.cpp of a profile's build said of our flags, and when it was asked."""

    profile: str
    verdict: Verdict
    text: str
    verified_at: datetime


@dataclass(frozen=True, slots=True)
class TemplatePage:
    """One template, under the report's profile or else the first one it was analysed under. `start` as in
    `TemplateResult.server_start`; `undecided` are probes that decide no flag, `builds`
    oldest first; `source_cut` bytes at the end of the source are not
    shown; without `gutters` it is not known which lines ran."""

    page: str
    sha256: str
    size: int
    path: str
    variant: str
    profile: str
    outcome: Outcome
    outcome_meaning: str
    reason: str | None
    handler: str | None
    start: StartCheck | None
    patches: tuple[str, ...]
    flags: Flags
    holders: tuple[Holder, ...]
    claims: tuple[ClaimView, ...]
    undecided: tuple[ProbeView, ...]
    efforts: tuple[Effort, ...]
    free_text_effort: str | None
    behaviours: tuple[BehaviourView, ...]
    findings: tuple[FindingView, ...]
    probes: tuple[str, ...]
    builds: tuple[BuildRow, ...]
    verified: tuple[VerifiedView, ...]
    relatives: tuple[Relative, ...]
    source: tuple[SourceLine, ...]
    source_cut: int
    gutters: tuple[Gutter, ...]
    prompts: tuple[PromptPair, ...]
    legend: tuple[Flags, ...]


def template_page(
    overview: Overview, detail: TemplateDetail, notes: AllNotes, relatives: tuple[Relative, ...] = ()
) -> TemplatePage:
    """The page of one template; it has at least one analysis."""
    chosen = main_analysis(detail, overview.scan.scan.profile)
    result = chosen.result
    holders = _holders(overview, detail)
    builds = _builds(detail, chosen)
    ran = lines_run(result.probes, result.lines)
    source, cut = shortened_source(detail.source)
    return TemplatePage(
        page=page_id(detail.sha256),
        sha256=detail.sha256,
        size=len(detail.source),
        path=holders[0].path if holders else "",
        variant=holders[0].variant if holders else "",
        profile=result.profile,
        outcome=result.outcome,
        outcome_meaning=OUTCOME_MEANINGS[result.outcome],
        reason=result.reason,
        handler=result.handler,
        start=result.server_start,
        patches=result.patches,
        flags=flags_of(result.capabilities, chosen.observed),
        holders=holders,
        claims=_claims(notes[detail.sha256, result.profile].claims, result),
        undecided=tuple(probe_view(run) for run in result.probes if run.name not in DECISIVE),
        efforts=result.efforts,
        free_text_effort=result.free_text_effort,
        behaviours=tuple(_behaviour_view(one) for one in result.behaviours),
        findings=tuple(FindingView(one, REMEDIES.get(one.rule, "")) for one in worst_first(result.findings)),
        probes=tuple(run.name for run in result.probes),
        builds=builds,
        verified=tuple(_verified(found) for found in detail.verifications),
        relatives=relatives,
        source=source_lines(source, result.probes, result.findings, result.parse_error, ran),
        source_cut=cut,
        gutters=gutters(ran.values(), result.probes),
        prompts=prompt_pairs(result.renders),
        legend=legend_of(build.flags for build in builds),
    )


def _claims(claims: Iterable[Claim], result: TemplateResult) -> tuple[ClaimView, ...]:
    """Each probe is shown with the first claim that it decides."""
    runs = {run.name: run for run in result.probes}
    observed = {one.capability: one.run for one in result.observations}
    views, shown = [], set[str]()
    for claim in claims:
        deciding = [name for name in DECIDING_PROBES[claim.capability] if name in runs]
        new = [name for name in deciding if name not in shown]
        own = observed.get(claim.capability)
        views.append(
            ClaimView(
                claim=claim,
                judgement=judgement(claim),
                probes=tuple(probe_view(runs[name]) for name in new),
                elsewhere=tuple(name for name in deciding if name in shown),
                observed=None if own is None else run_view(own),
            )
        )
        shown.update(new)
    return tuple(views)


def _builds(detail: TemplateDetail, chosen: Analysis) -> tuple[BuildRow, ...]:
    by_profile = {analysis.result.profile: analysis for analysis in detail.analyses}
    rows: list[BuildRow] = []
    before: Capabilities | None = None
    for profile in oldest_first(by_profile):
        analysis = by_profile[profile]
        now = analysis.result.capabilities
        flags = flags_of(now, analysis.observed)
        rows.append(BuildRow(profile, analysis.result.outcome, flags, flips(before, now), analysis is chosen))
        before = now
    return tuple(rows)


def _behaviour_view(behaviour: Behaviour) -> BehaviourView:
    return BehaviourView(behaviour, BEHAVIOUR_QUESTIONS.get(behaviour.key, ""), is_usual(behaviour))


def _verified(found: StoredVerification) -> VerifiedView:
    told = found.verification
    return VerifiedView(told.profile, told.verdict, difference_text(told), found.verified_at)


def main_analysis(detail: TemplateDetail, profile: str) -> Analysis:
    """The analysis that the page of a template shows: the one under this profile, or else the newest build's."""
    by_profile = {analysis.result.profile: analysis for analysis in detail.analyses}
    return by_profile[preferred(by_profile, profile)]


def _holders(overview: Overview, detail: TemplateDetail) -> tuple[Holder, ...]:
    """Those that hold the template now first: a file's newest appearance is of the scan that last saw the file."""
    now = overview.held[detail.sha256]
    holders = [
        Holder(
            path=overview.shown(one.path),
            variant=one.variant,
            origin=one.origin,
            last_scan=None if (one.path, one.variant) in now else one.scan_id,
            place=overview.place(one.path),
        )
        for one in detail.appearances
    ]
    return tuple(sorted(holders, key=lambda holder: (holder.last_scan is not None, holder.path, holder.variant)))
