"""The pages as data. Every page is a frozen dataclass, built by a pure function from what the database holds.

A page says nothing of when it was written, and only the index of the newest scan: so a page changes when what it shows
changes, and else its file is left alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from reports.marks import Flags, flags_of, legend_of
from reports.overview import AllNotes, Overview, page_id
from reports.source_lines import SourceLine, source_lines
from reports.words import BEHAVIOUR_QUESTIONS, CAPABILITY_MEANINGS, LABELS, OUTCOME_MEANINGS, PROBE_TITLES, slug
from scanner.judge.rules import FILE_RULES, RULES
from scanner.judge.verdicts import (
    DECIDING_PROBES,
    Claim,
    Place,
    difference_text,
    disagreement_phrase,
    is_usual,
    judgement,
    place_of,
)
from scanner.results import (
    CAPABILITIES,
    Agreement,
    Behaviour,
    Effort,
    Finding,
    Outcome,
    Part,
    PassedOver,
    ProbeRun,
    RunError,
    Severity,
    StartCheck,
    Verdict,
)
from scanner.store.queries import (
    Analysis,
    ClaimCount,
    EffortCount,
    LatestFile,
    Outlier,
    StoredVerification,
    TemplateDetail,
    TemplateSummary,
)

SHOWN_ON_INDEX = 10
"""How many failures of each outcome the index shows before it points to the whole list."""


@dataclass(frozen=True, slots=True)
class ScanHeader:
    """The newest scan."""

    id: int
    started_at: datetime
    finished_at: datetime | None
    status: str
    profile: str
    capscan_version: str
    sources: tuple[str, ...]
    files_seen: int
    files_unchanged: int
    new_templates: int
    passed_over: tuple[PassedOver, ...]


@dataclass(frozen=True, slots=True)
class OutcomeCount:
    """How many files had an outcome. `address` leads to the list."""

    outcome: Outcome
    meaning: str
    files: int
    address: str


@dataclass(frozen=True, slots=True)
class FlagCount:
    """How many claim a capability, how many really have it, and how many claim too much or too little, of how many that
    have a verdict; `judged` is 0 where nothing was observed."""

    capability: str
    label: str
    meaning: str
    templates_claiming: int
    templates_analysed: int
    templates_observed: int
    templates_judged: int
    overclaiming: int
    underclaiming: int
    files_claiming: int
    files_analysed: int
    files_observed: int
    files_judged: int


@dataclass(frozen=True, slots=True)
class ProfileFlags:
    """The flag distribution under one engine profile."""

    profile: str
    flags: tuple[FlagCount, ...]


@dataclass(frozen=True, slots=True)
class TemplateRow:
    """One template under one profile, as lists show it. `path` is its first file; `worst` its worst finding."""

    page: str
    sha256: str
    profile: str
    path: str
    variant: str
    files: int
    size: int
    outcome: Outcome
    handler: str | None
    flags: Flags
    errors: int
    warnings: int
    notes: int
    worst: Finding | None


@dataclass(frozen=True, slots=True)
class CombinationRow:
    """One set of flags and the templates that have it."""

    profile: str
    flags: Flags
    templates: int
    files: int
    path: str


@dataclass(frozen=True, slots=True)
class OutlierRow:
    """A template with an error or a warning, or with a rare set of flags."""

    page: str
    profile: str
    path: str
    variant: str
    files: int
    severity: Severity
    errors: int
    warnings: int
    text: str


@dataclass(frozen=True, slots=True)
class FailureRow:
    """A file, or one of its variants, that was not examined, and why."""

    path: str
    variant: str
    page: str | None
    reason: str | None
    offset: int | None
    expected: str | None


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """What failed alike. `rows` may be fewer than `total`."""

    outcome: Outcome
    meaning: str
    anchor: str
    total: int
    rows: tuple[FailureRow, ...]


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """What became of one variant of a file since the scan before."""

    change: str
    path: str
    variant: str
    old_page: str | None
    new_page: str | None


@dataclass(frozen=True, slots=True)
class IndexPage:
    """The first page: how many, how good, what is wrong, what changed. `not_starting` counts the files with which
    llama-server would not start."""

    scan: ScanHeader
    root: str
    profiles: tuple[str, ...]
    files: int
    templates_total: int
    verified: Mapping[str, int]
    outcomes: tuple[OutcomeCount, ...]
    findings: Mapping[Severity, int]
    not_starting: int
    changes: Mapping[str, int]
    distribution: tuple[ProfileFlags, ...]
    efforts: tuple[EffortCount, ...]
    combinations: tuple[CombinationRow, ...]
    outliers: tuple[OutlierRow, ...]
    failures: tuple[FailureGroup, ...]
    templates: tuple[TemplateRow, ...]
    legend: tuple[Flags, ...]


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One variant of one model file. `starts`: whether llama-server starts with the file, on the variant that decides
    it (None: another decides, or not examined)."""

    path: str
    variant: str
    outcome: Outcome
    starts: bool | None
    page: str | None
    architecture: str | None
    quantization: str | None
    quantizer: str | None
    flags: Flags


@dataclass(frozen=True, slots=True)
class ModelsPage:
    """Every variant of every model file."""

    root: str
    profiles: tuple[str, ...]
    files: int
    rows: tuple[ModelRow, ...]
    legend: tuple[Flags, ...]


@dataclass(frozen=True, slots=True)
class FailuresPage:
    """Everything that was not examined, by outcome."""

    root: str
    total: int
    groups: tuple[FailureGroup, ...]


@dataclass(frozen=True, slots=True)
class ChangesPage:
    """The changes between the two newest finished scans."""

    root: str
    rows: tuple[ChangeRow, ...]


@dataclass(frozen=True, slots=True)
class FoundAt:
    """One finding: of a template (`page` names it) or of a whole file (`page` is None)."""

    page: str | None
    profile: str
    path: str
    variant: str
    files: int
    line: int | None
    text: str
    evidence: str


@dataclass(frozen=True, slots=True)
class RuleGroup:
    """A rule and everything it found."""

    rule: str
    severity: Severity
    meaning: str
    remedy: str
    found: tuple[FoundAt, ...]


@dataclass(frozen=True, slots=True)
class FindingsPage:
    """All findings by rule, worst first."""

    root: str
    totals: Mapping[Severity, int]
    rules: tuple[RuleGroup, ...]


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """A template and the reason for one of its flags; `really` says in words where that is not true."""

    template: TemplateRow
    why: str
    place: Place | None
    really: str | None


@dataclass(frozen=True, slots=True)
class CapabilityPage:
    """One capability: which templates claim it, which do not, of which it is not known, and why; those whose claim is
    wrong also by themselves."""

    capability: str
    label: str
    llama_cpp_name: str
    meaning: str
    profiles: tuple[str, ...]
    wrong: tuple[ClaimRow, ...]
    yes: tuple[ClaimRow, ...]
    no: tuple[ClaimRow, ...]
    unknown: tuple[ClaimRow, ...]
    legend: tuple[Flags, ...]


@dataclass(frozen=True, slots=True)
class CombinationGroup:
    """One set of flags, under one profile, with its templates."""

    profile: str
    flags: Flags
    templates: tuple[TemplateRow, ...]


@dataclass(frozen=True, slots=True)
class CombinationsPage:
    """The sets of flags that occur, commonest first, each with its templates."""

    profiles: tuple[str, ...]
    groups: tuple[CombinationGroup, ...]
    legend: tuple[Flags, ...]


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


Page = (
    IndexPage
    | ModelsPage
    | FailuresPage
    | ChangesPage
    | FindingsPage
    | CapabilityPage
    | CombinationsPage
    | TemplatePage
)


def index_page(overview: Overview, notes: AllNotes) -> IndexPage:
    """The index of a report."""
    rows = template_rows(overview, notes)
    combined = tuple(
        CombinationRow(one.profile, flags_of(one.flags), one.templates, one.files, overview.shown(one.path))
        for one in overview.combinations
    )
    return IndexPage(
        scan=_scan_header(overview),
        root=overview.root,
        profiles=overview.profiles,
        files=_distinct(overview.files),
        templates_total=len({template.sha256 for template in overview.templates}),
        verified=overview.verified,
        outcomes=_outcomes(overview.files),
        findings=_severities(overview, notes),
        not_starting=sum(not starts for starts in overview.starts.values()),
        changes=dict(sorted(Counter(change.change for change in overview.changes).items())),
        distribution=_distribution(overview.claim_counts),
        efforts=_efforts_that_differ(overview.efforts),
        combinations=combined,
        outliers=tuple(_outlier(overview, outlier) for outlier in overview.outliers),
        failures=_failure_groups(overview, limit=SHOWN_ON_INDEX),
        templates=rows,
        legend=legend_of([*(row.flags for row in rows), *(row.flags for row in combined)]),
    )


def models_page(overview: Overview) -> ModelsPage:
    """The list of all files."""
    known = {template.sha256 for template in overview.templates}
    rows = tuple(
        ModelRow(
            path=overview.shown(file.path),
            variant=file.variant,
            outcome=file.outcome,
            starts=overview.starts.get((file.path, file.variant)),
            page=_page_if(file.sha256, known),
            architecture=file.architecture,
            quantization=file.file_type,
            quantizer=file.quantized_by,
            flags=flags_of(file.capabilities, file.observed),
        )
        for file in overview.files
    )
    return ModelsPage(
        root=overview.root,
        profiles=overview.profiles,
        files=_distinct(overview.files),
        rows=rows,
        legend=legend_of(row.flags for row in rows),
    )


def failures_page(overview: Overview) -> FailuresPage:
    """The list of what was not examined."""
    groups = _failure_groups(overview, limit=None)
    return FailuresPage(overview.root, sum(group.total for group in groups), groups)


def changes_page(overview: Overview) -> ChangesPage:
    """The list of changes."""
    known = {template.sha256 for template in overview.templates}
    rows = tuple(
        ChangeRow(
            change=change.change,
            path=overview.shown(change.path),
            variant=change.variant,
            old_page=_page_if(change.old_sha256, known),
            new_page=_page_if(change.new_sha256, known),
        )
        for change in overview.changes
    )
    return ChangesPage(overview.root, rows)


def findings_page(overview: Overview, notes: AllNotes) -> FindingsPage:
    """All findings, by severity, then in the order of the rules."""
    found = _found_by_rule(overview, notes)
    texts = {rule.slug: (rule.meaning, rule.remedy) for rule in RULES}
    texts |= {rule.slug: (rule.meaning, rule.remedy) for rule in FILE_RULES}
    order = {rule: place for place, rule in enumerate(texts)}
    worst_first = list(Severity)
    keys = sorted(found, key=lambda key: (worst_first.index(key[0]), order.get(key[1], len(order)), key[1]))
    return FindingsPage(
        root=overview.root,
        totals=_severities(overview, notes),
        rules=tuple(
            RuleGroup(
                rule=rule,
                severity=severity,
                meaning=texts.get(rule, ("A rule that this version of Capscan does not know.", ""))[0],
                remedy=texts.get(rule, ("", ""))[1],
                found=tuple(found[severity, rule]),
            )
            for severity, rule in keys
        ),
    )


def capability_pages(overview: Overview, notes: AllNotes) -> tuple[CapabilityPage, ...]:
    """A page for each capability, in the order of CAPABILITIES."""
    rows = template_rows(overview, notes)
    return tuple(_capability_page(name, overview, rows, notes) for name in CAPABILITIES)


def combinations_page(overview: Overview, notes: AllNotes) -> CombinationsPage:
    """The sets of flags with their templates."""
    members: dict[tuple[str, str], list[TemplateRow]] = {}
    for row in template_rows(overview, notes):
        members.setdefault((row.profile, row.flags.claimed), []).append(row)
    groups = tuple(
        CombinationGroup(one.profile, flags, tuple(members.get((one.profile, flags.key), ())))
        for one in overview.combinations
        for flags in (flags_of(one.flags),)
    )
    shown = [*(group.flags for group in groups), *(row.flags for group in groups for row in group.templates)]
    return CombinationsPage(overview.profiles, groups, legend_of(shown))


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
        findings=_worst_first(result.findings),
        probes=tuple(_probe_view(run) for run in result.probes),
        others=others,
        verified=tuple(_verified(found) for found in detail.verifications),
        source=source_lines(detail.source, result.probes, result.findings, result.parse_error),
        legend=legend_of([flags, *(other.flags for other in others)]),
    )


def _behaviour_view(behaviour: Behaviour) -> BehaviourView:
    return BehaviourView(behaviour, BEHAVIOUR_QUESTIONS.get(behaviour.key, ""), is_usual(behaviour))


def _efforts_that_differ(counts: Sequence[EffortCount]) -> tuple[EffortCount, ...]:
    """None at all where every template is alike for every effort."""
    return tuple(counts) if any(count.raises or count.accepted > count.inert for count in counts) else ()


def _verified(found: StoredVerification) -> VerifiedView:
    told = found.verification
    return VerifiedView(told.profile, told.verdict, difference_text(told), found.verified_at)


def template_rows(overview: Overview, notes: AllNotes) -> tuple[TemplateRow, ...]:
    """The templates as lists show them, by their first file."""
    return tuple(_template_row(overview, template, notes) for template in overview.templates)


def _template_row(overview: Overview, template: TemplateSummary, notes: AllNotes) -> TemplateRow:
    noted = notes.get((template.sha256, template.profile))
    findings = _worst_first(noted.findings) if noted is not None else ()
    return TemplateRow(
        page=page_id(template.sha256),
        sha256=template.sha256,
        profile=template.profile,
        path=overview.shown(template.path),
        variant=overview.variant(template.sha256, template.path),
        files=template.files,
        size=template.size,
        outcome=template.outcome,
        handler=template.handler,
        flags=flags_of(template.capabilities, template.observed),
        errors=template.errors,
        warnings=template.warnings,
        notes=template.notes,
        worst=findings[0] if findings else None,
    )


def _scan_header(overview: Overview) -> ScanHeader:
    scan = overview.scan.scan
    return ScanHeader(
        id=scan.id,
        started_at=scan.started_at,
        finished_at=scan.finished_at,
        status=scan.status,
        profile=scan.profile,
        capscan_version=scan.capscan_version,
        sources=scan.sources,
        files_seen=scan.files_seen,
        files_unchanged=scan.files_unchanged,
        new_templates=overview.scan.new_templates,
        passed_over=scan.passed_over,
    )


def _distinct(files: Iterable[LatestFile]) -> int:
    return len({file.path for file in files})


def _outcomes(files: Sequence[LatestFile]) -> tuple[OutcomeCount, ...]:
    """A file whose variants fared differently counts under each of its outcomes."""
    counts = Counter(outcome for _path, outcome in {(file.path, file.outcome) for file in files})
    return tuple(
        OutcomeCount(
            outcome,
            meaning,
            counts[outcome],
            "models.html?outcome=analysed" if outcome is Outcome.ANALYSED else f"failures.html#{slug(outcome)}",
        )
        for outcome, meaning in OUTCOME_MEANINGS.items()
        if counts[outcome]
    )


def _severities(overview: Overview, notes: AllNotes) -> dict[Severity, int]:
    counts = Counter(finding.severity for key in _listed(overview, notes) for finding in notes[key].findings)
    counts.update(finding.severity for finding in overview.file_findings)
    return {severity: counts[severity] for severity in Severity}


def _listed(overview: Overview, notes: AllNotes) -> list[tuple[str, str]]:
    keys = [(template.sha256, template.profile) for template in overview.templates]
    return [key for key in keys if key in notes]


def _distribution(counts: Sequence[ClaimCount]) -> tuple[ProfileFlags, ...]:
    by_profile: dict[str, list[FlagCount]] = {}
    for count in counts:
        by_profile.setdefault(count.profile, []).append(
            FlagCount(
                capability=count.capability,
                label=LABELS[count.capability],
                meaning=CAPABILITY_MEANINGS[count.capability],
                templates_claiming=count.templates_claiming,
                templates_analysed=count.templates_analysed,
                templates_observed=count.templates_observed,
                templates_judged=count.templates_judged,
                overclaiming=count.templates_overclaiming,
                underclaiming=count.templates_underclaiming,
                files_claiming=count.files_claiming,
                files_analysed=count.files_analysed,
                files_observed=count.files_observed,
                files_judged=count.files_judged,
            )
        )
    return tuple(ProfileFlags(profile, tuple(flags)) for profile, flags in sorted(by_profile.items()))


def _outlier(overview: Overview, outlier: Outlier) -> OutlierRow:
    return OutlierRow(
        page=page_id(outlier.sha256),
        profile=outlier.profile,
        path=overview.shown(outlier.path),
        variant=overview.variant(outlier.sha256, outlier.path),
        files=outlier.files,
        severity=outlier.severity,
        errors=outlier.errors,
        warnings=outlier.warnings,
        text=outlier.text,
    )


def _failure_groups(overview: Overview, *, limit: int | None) -> tuple[FailureGroup, ...]:
    known = {template.sha256 for template in overview.templates}
    failed: dict[Outcome, list[FailureRow]] = {}
    for file in overview.files:
        if file.outcome is not Outcome.ANALYSED:
            failed.setdefault(file.outcome, []).append(
                FailureRow(
                    path=overview.shown(file.path),
                    variant=file.variant,
                    page=_page_if(file.sha256, known),
                    reason=file.reason,
                    offset=file.offset,
                    expected=file.expected,
                )
            )
    return tuple(
        FailureGroup(outcome, meaning, slug(outcome), len(failed[outcome]), tuple(failed[outcome][:limit]))
        for outcome, meaning in OUTCOME_MEANINGS.items()
        if outcome in failed
    )


def _page_if(sha256: str | None, known: set[str]) -> str | None:
    return page_id(sha256) if sha256 in known and sha256 is not None else None


def _found_by_rule(overview: Overview, notes: AllNotes) -> dict[tuple[Severity, str], list[FoundAt]]:
    found: dict[tuple[Severity, str], list[FoundAt]] = {}
    for template in overview.templates:
        noted = notes.get((template.sha256, template.profile))
        for finding in noted.findings if noted is not None else ():
            at = FoundAt(
                page=page_id(template.sha256),
                profile=template.profile,
                path=overview.shown(template.path),
                variant=overview.variant(template.sha256, template.path),
                files=template.files,
                line=finding.line,
                text=finding.text,
                evidence=finding.evidence,
            )
            found.setdefault((finding.severity, finding.rule), []).append(at)
    for whole in overview.file_findings:
        path = overview.shown(whole.path)
        at = FoundAt(None, overview.scan.scan.profile, path, "", 1, None, whole.text, whole.evidence)
        found.setdefault((whole.severity, whole.rule), []).append(at)
    return found


def _capability_page(
    name: str, overview: Overview, templates: Sequence[TemplateRow], notes: AllNotes
) -> CapabilityPage:
    place = CAPABILITIES.index(name)
    claimed: dict[bool | None, list[ClaimRow]] = {True: [], False: [], None: []}
    wrong: list[ClaimRow] = []
    for row in templates:
        noted = notes.get((row.sha256, row.profile))
        claim = noted.claims[place] if noted is not None else None
        if claim is not None:
            listed = ClaimRow(row, claim.why, claim.place, _really(claim))
            claimed[claim.claimed].append(listed)
            if listed.really is not None:
                wrong.append(listed)
    return CapabilityPage(
        capability=name,
        label=LABELS[name],
        llama_cpp_name=f"supports_{name}",
        meaning=CAPABILITY_MEANINGS[name],
        profiles=overview.profiles,
        wrong=tuple(wrong),
        yes=tuple(claimed[True]),
        no=tuple(claimed[False]),
        unknown=tuple(claimed[None]),
        legend=legend_of(row.flags for row in templates),
    )


def _really(claim: Claim) -> str | None:
    """What is true instead of a claim that is wrong."""
    if claim.agreement is None or claim.agreement is Agreement.AGREES:
        return None
    phrase = disagreement_phrase(claim.agreement, claim.reason or "")
    return f"{'no' if claim.agreement is Agreement.OVERCLAIMS else 'yes'}: the template {phrase}"


def _main_analysis(detail: TemplateDetail, profile: str) -> Analysis:
    same = [analysis for analysis in detail.analyses if analysis.result.profile == profile]
    return (same or list(detail.analyses))[0]


def _worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    order = list(Severity)
    return tuple(sorted(findings, key=lambda finding: order.index(finding.severity)))


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
