"""The page of one template."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from reports.marks import Flags, flags_of, legend_of
from reports.overview import AllNotes, Overview, page_id
from reports.pages.rows import worst_first
from reports.source_lines import SourceLine, source_lines
from reports.words import BEHAVIOUR_QUESTIONS, OUTCOME_MEANINGS, PROBE_TITLES
from scanner.judge.verdicts import DECIDING_PROBES, Claim, Place, difference_text, is_usual, judgement, place_of
from scanner.results import Behaviour, Effort, Finding, Outcome, Part, ProbeRun, RunError, StartCheck, Verdict
from scanner.store.queries import Analysis, StoredVerification, TemplateDetail


@dataclass(frozen=True, slots=True)
class Holder:
    """A file that holds the template; `last_scan` is None while it does, else the last scan in which it did."""

    path: str
    variant: str
    origin: str | None
    last_scan: int | None


@dataclass(frozen=True, slots=True)
class ReadRow:
    """A value of the request that a probe read."""

    path: str
    used: bool
    ops: tuple[str, ...]
    place: Place | None


@dataclass(frozen=True, slots=True)
class ProbeView:
    """One probe run: what it tries and decides, what was sent, what came back, what was read."""

    name: str
    title: str
    decides: tuple[str, ...]
    ok: bool
    error: RunError | None
    milliseconds: float
    conversation: Mapping[str, object]
    parts: tuple[Part, ...]
    reads: tuple[ReadRow, ...]


@dataclass(frozen=True, slots=True)
class ClaimView:
    """A claim, and whether it is right, in one sentence."""

    claim: Claim
    judgement: str


@dataclass(frozen=True, slots=True)
class BehaviourView:
    """How the template answers one question beyond its flags."""

    behaviour: Behaviour
    question: str
    usual: bool


@dataclass(frozen=True, slots=True)
class OtherProfile:
    """The template under another engine profile."""

    profile: str
    outcome: Outcome
    flags: Flags


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
    `TemplateResult.server_start`."""

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
    efforts: tuple[Effort, ...]
    free_text_effort: str | None
    behaviours: tuple[BehaviourView, ...]
    findings: tuple[Finding, ...]
    probes: tuple[ProbeView, ...]
    others: tuple[OtherProfile, ...]
    verified: tuple[VerifiedView, ...]
    source: tuple[SourceLine, ...]
    legend: tuple[Flags, ...]


def template_page(overview: Overview, detail: TemplateDetail, notes: AllNotes) -> TemplatePage:
    """The page of one template; it has at least one analysis."""
    chosen = _main_analysis(detail, overview.scan.scan.profile)
    result = chosen.result
    noted = notes[detail.sha256, result.profile]
    flags = flags_of(result.capabilities, chosen.observed)
    others = tuple(
        OtherProfile(other.result.profile, other.result.outcome, flags_of(other.result.capabilities))
        for other in detail.analyses
        if other is not chosen
    )
    holders = _holders(overview, detail)
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
        flags=flags,
        holders=holders,
        claims=tuple(ClaimView(claim, judgement(claim)) for claim in noted.claims),
        efforts=result.efforts,
        free_text_effort=result.free_text_effort,
        behaviours=tuple(_behaviour_view(one) for one in result.behaviours),
        findings=worst_first(result.findings),
        probes=tuple(_probe_view(run) for run in result.probes),
        others=others,
        verified=tuple(_verified(found) for found in detail.verifications),
        source=source_lines(detail.source, result.probes, result.findings, result.parse_error),
        legend=legend_of([flags, *(other.flags for other in others)]),
    )


def _behaviour_view(behaviour: Behaviour) -> BehaviourView:
    return BehaviourView(behaviour, BEHAVIOUR_QUESTIONS.get(behaviour.key, ""), is_usual(behaviour))


def _verified(found: StoredVerification) -> VerifiedView:
    told = found.verification
    return VerifiedView(told.profile, told.verdict, difference_text(told), found.verified_at)


def _main_analysis(detail: TemplateDetail, profile: str) -> Analysis:
    same = [analysis for analysis in detail.analyses if analysis.result.profile == profile]
    return (same or list(detail.analyses))[0]


def _holders(overview: Overview, detail: TemplateDetail) -> tuple[Holder, ...]:
    """Those that hold the template now first: a file's newest appearance is of the scan that last saw the file."""
    now = overview.held[detail.sha256]
    holders = [
        Holder(
            path=overview.shown(one.path),
            variant=one.variant,
            origin=one.origin,
            last_scan=None if (one.path, one.variant) in now else one.scan_id,
        )
        for one in detail.appearances
    ]
    return tuple(sorted(holders, key=lambda holder: (holder.last_scan is not None, holder.path, holder.variant)))


def _probe_view(run: ProbeRun) -> ProbeView:
    return ProbeView(
        name=run.name,
        title=PROBE_TITLES.get(run.name, ""),
        decides=tuple(name for name, probes in DECIDING_PROBES.items() if run.name in probes),
        ok=run.ok,
        error=run.error,
        milliseconds=round(run.duration * 1000, 2),
        conversation=run.variables,
        parts=run.parts or ((Part(run.output, False),) if run.output else ()),
        reads=tuple(ReadRow(read.path, read.used, read.ops, place_of(read.line, read.column)) for read in run.reads),
    )
