"""Two scans compared: which models and templates are new, gone or changed, what flipped, and because of what.

    old, new = history.snapshot(engine, 1), history.snapshot(engine, 2)
    diff = compare(old, new, history.judgements(engine, needed(old, new)))

Everything here is a pure function over records; `read_diff` is the one that reads.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby, pairwise

from sqlalchemy import Engine

from scanner.results import CAPABILITIES, Finding, Outcome, Severity
from scanner.store import history, queries
from scanner.store.history import Judgement, Sighting, Snapshot
from scanner.store.records import ScanRecord


class Cause(StrEnum):
    """Because of what something flipped. AGAIN: the same template was examined again, after a time-out, say."""

    TEMPLATE = "new template"
    FILE = "changed file"
    PROFILE = "new profile"
    CAPSCAN = "new Capscan"
    AGAIN = "examined again"


class What(StrEnum):
    """What kind of thing flipped; the values are as a person reads them."""

    OUTCOME = "outcome"
    START = "llama-server starts"
    HANDLER = "handler"
    CLAIMED = "claimed"
    OBSERVED = "really"
    BEHAVIOUR = "behaviour"
    EFFORT = "effort"
    FINDING = "finding"


class Came(StrEnum):
    """What became of a file, or of a template in a file, from one scan to the other."""

    NEW = "new"
    GONE = "gone"
    CHANGED = "changed"
    REPLACED = "replaced"


@dataclass(frozen=True, slots=True)
class Holder:
    """A variant of a model file; `variant` is '' where the whole file is meant."""

    path: str
    variant: str = ""


@dataclass(frozen=True, slots=True)
class FileChange:
    """A model file that is new, gone or changed. An outcome is that of opening the file (`analysed`: it has templates),
    None where the scan did not see it; `reason` goes with the newer one. `rewritten`: whether the file itself is
    another, None where that is not known. Sizes are in bytes, None where they are not known."""

    change: Came
    path: str
    old_outcome: Outcome | None
    new_outcome: Outcome | None
    reason: str | None = None
    rewritten: bool | None = None
    old_size: int | None = None
    new_size: int | None = None


@dataclass(frozen=True, slots=True)
class TemplateChange:
    """A template that took the place of another, or a variant that is new or gone, in files with templates in both
    scans. `holders` are the places where it happened, by path."""

    change: Came
    old_sha256: str | None
    new_sha256: str | None
    holders: tuple[Holder, ...]


@dataclass(frozen=True, slots=True)
class Flip:
    """One answer about a template, or about a file as a whole (no SHA-256), that is not what it was, and because of
    what. `name` says which: a capability, the key of a behaviour, an effort, a rule. `old` and `new` are the answers in
    words; of a finding None where there is none, with its `severity` and `text`. All `holders` are told alike."""

    what: What
    name: str
    old: str | None
    new: str | None
    causes: tuple[Cause, ...]
    old_sha256: str | None
    new_sha256: str | None
    holders: tuple[Holder, ...]
    severity: Severity | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Diff:
    """How the scan `new` differs from the scan `old`; `capscan` tells the versions of Capscan whose analyses were
    compared, where they differ: the older and the newer."""

    old: ScanRecord
    new: ScanRecord
    files: tuple[FileChange, ...] = ()
    templates: tuple[TemplateChange, ...] = ()
    flips: tuple[Flip, ...] = ()
    capscan: tuple[str, str] | None = None

    @property
    def changed(self) -> bool:
        """Whether anything differs."""
        return bool(self.files or self.templates or self.flips)


def read_diff(engine: Engine, old_scan: int, new_scan: int) -> Diff:
    """Read two scans from the database and compare them. Raises UsageError for a scan that does not exist."""
    old, new = history.snapshot(engine, old_scan), history.snapshot(engine, new_scan)
    return compare(old, new, history.judgements(engine, needed(old, new)))


def chosen_scans(engine: Engine, scans: Sequence[int]) -> tuple[int, int] | None:
    """The two scans that are meant: both given; of one, the newest finished one before it of the same sources; of none,
    the newest finished scan and the one before that. None where there is nothing to compare with. Raises UsageError for
    a scan that does not exist."""
    if len(scans) > 1:
        return scans[0], scans[1]
    new = scans[0] if scans else queries.newest_finished(engine)
    old = None if new is None else queries.scan_before(engine, new)
    return None if new is None or old is None else (old, new)


def needed(old: Snapshot, new: Snapshot) -> set[int]:
    """The numbers of the analyses that `compare` looks at."""
    return {number for pair in _pairs(old, new) for number in _chain(pair, old, new)}


def compare(old: Snapshot, new: Snapshot, judged: Mapping[int, Judgement]) -> Diff:
    """Compare what two scans saw; `judged` are the analyses that are `needed`, by number.

    A scan that did not finish did not come to every file: what it says nothing of is neither gone nor new.
    """
    pairs = _pairs(old, new)
    chains = {pair: [judged[number] for number in _chain(pair, old, new) if number in judged] for pair in pairs}
    files = tuple(_file_changes(old, new))
    flips = [
        *[flip for pair, holders in pairs.items() for flip in _flips(pair, chains[pair], holders)],
        *_found_again(old, new, pairs, chains),
        *_file_flips(old, new, files, pairs, chains),
    ]
    return Diff(
        old.scan,
        new.scan,
        files=files,
        templates=tuple(_template_changes(old, new)),
        flips=tuple(sorted(flips, key=_flip_order)),
        capscan=_versions(chains.values(), old.scan, new.scan),
    )


# -- files and templates -----------------------------------------------------------------------------------------------


def _file_changes(old: Snapshot, new: Snapshot) -> Iterator[FileChange]:
    before, after = _by_path(old), _by_path(new)
    for path in sorted(before.keys() | after.keys()):
        if path not in after:
            if _is_finished(new):
                yield FileChange(Came.GONE, path, _file_outcome(before[path]), None, old_size=_size(before[path]))
        elif path not in before:
            if _is_finished(old):
                seen = after[path]
                yield FileChange(Came.NEW, path, None, _file_outcome(seen), _file_reason(seen), new_size=_size(seen))
        else:
            yield from _file_change(path, before[path], after[path])


def _file_change(path: str, before: Sequence[Sighting], after: Sequence[Sighting]) -> Iterator[FileChange]:
    outcomes = _file_outcome(before), _file_outcome(after)
    identities = _identity(before[0].fingerprint), _identity(after[0].fingerprint)
    rewritten = None if None in identities else identities[0] != identities[1]
    if rewritten or outcomes[0] is not outcomes[1]:
        yield FileChange(Came.CHANGED, path, *outcomes, _file_reason(after), rewritten, _size(before), _size(after))


def _template_changes(old: Snapshot, new: Snapshot) -> Iterator[TemplateChange]:
    """Where files without templates are concerned, the change of the file says it all."""
    places: defaultdict[tuple[str | None, str | None], list[Holder]] = defaultdict(list)
    before, after = _by_path(old), _by_path(new)
    for path in before.keys() & after.keys():
        was, now = _variants(before[path]), _variants(after[path])
        if was and now:
            for variant in was.keys() | now.keys():
                places[was.get(variant), now.get(variant)].append(Holder(path, variant))
    changes = [
        TemplateChange(_came(was, now), was, now, tuple(sorted(holders, key=_holder_order)))
        for (was, now), holders in places.items()
        if was != now
    ]
    yield from sorted(changes, key=lambda change: (_holder_order(change.holders[0]), change.change))


def _came(was: str | None, now: str | None) -> Came:
    if was is None:
        return Came.NEW
    return Came.GONE if now is None else Came.REPLACED


def _by_path(snapshot: Snapshot) -> dict[str, list[Sighting]]:
    return {path: list(seen) for path, seen in groupby(snapshot.sightings, key=lambda sighting: sighting.path)}


def _variants(seen: Iterable[Sighting]) -> dict[str, str]:
    """The templates of a file, by variant."""
    return {one.variant: one.sha256 for one in seen if one.sha256 is not None}


def _file_outcome(seen: Sequence[Sighting]) -> Outcome:
    return Outcome.ANALYSED if seen[0].sha256 is not None else seen[0].outcome


def _file_reason(seen: Sequence[Sighting]) -> str | None:
    return None if seen[0].sha256 is not None else seen[0].reason


def _identity(fingerprint: str | None) -> str | None:
    """What of a fingerprint (size, time and inode of a file; a digest for a folder) tells that the file is another. An
    inode does not: it changes when a collection is copied, or mounted again."""
    return None if fingerprint is None else fingerprint.rpartition(":")[0] or fingerprint


def _size(seen: Sequence[Sighting]) -> int | None:
    """The size that a file's fingerprint begins with; that of a folder tells none."""
    size, colon, _ = (seen[0].fingerprint or "").partition(":")
    return int(size) if colon and size.isdecimal() else None


def _is_finished(snapshot: Snapshot) -> bool:
    return snapshot.scan.status == "finished"


def _holder_order(holder: Holder) -> tuple[str, str]:
    return holder.path, holder.variant


# -- what flipped ------------------------------------------------------------------------------------------------------

Pair = tuple[str, str]
"""The SHA-256 of the templates that both scans saw at one path and variant."""


def _pairs(old: Snapshot, new: Snapshot) -> dict[Pair, tuple[Holder, ...]]:
    """Each pair of templates to compare, and where: those at one path and variant in both scans whose analyses are not
    the same one."""
    before = {(seen.path, seen.variant): seen.sha256 for seen in old.sightings if seen.sha256 is not None}
    found: defaultdict[Pair, list[Holder]] = defaultdict(list)
    for seen in new.sightings:
        was = before.get((seen.path, seen.variant))
        if was is None or seen.sha256 is None:
            continue
        if old.analyses.get(was) != new.analyses.get(seen.sha256):
            found[was, seen.sha256].append(Holder(seen.path, seen.variant))
    return {pair: tuple(sorted(holders, key=_holder_order)) for pair, holders in found.items()}


def _chain(pair: Pair, old: Snapshot, new: Snapshot) -> tuple[int, ...]:
    """The analyses that lead from the old template to the new one. That of the old template as the newer Capscan, under
    the newer profile, judges it tells what the new template is to blame for, and what is not."""
    numbers = (old.analyses.get(pair[0]), new.analyses.get(pair[0]), new.analyses.get(pair[1]))
    return tuple(dict.fromkeys(number for number in numbers if number is not None))


@dataclass(frozen=True, slots=True)
class _Answer:
    """One answer of an analysis: `value` is what is compared, the rest is told."""

    value: str | None
    severity: Severity | None = None
    text: str | None = None


_Answers = Mapping[tuple[What, str], _Answer]
_NOTHING = _Answer(None)


def _flips(pair: Pair, chain: Sequence[Judgement], holders: tuple[Holder, ...]) -> Iterator[Flip]:
    """What flipped from the first analysis of a chain to the last. Where only one is left (the other was lost to a
    time-out), there is nothing to compare."""
    if len(chain) < 2 or chain[0].sha256 != pair[0] or chain[-1].sha256 != pair[1]:
        return
    answers = [_answers(judgement) for judgement in chain]
    for what, name in dict.fromkeys([*answers[0], *answers[-1]]):
        steps = [
            (judgement, told.get((what, name), _NOTHING))
            for judgement, told in zip(chain, answers, strict=True)
            if what is What.FINDING or (what, name) in told
        ]
        # An answer that one side does not have at all was not asked for there.
        if len(steps) < 2 or steps[0][0] is not chain[0] or steps[-1][0] is not chain[-1]:
            continue
        first, last = steps[0][1], steps[-1][1]
        if first.value != last.value:
            told = last if last.value is not None else first
            yield Flip(what, name, first.value, last.value, _causes(steps), *pair, holders, told.severity, told.text)


def _found_again(
    old: Snapshot,
    new: Snapshot,
    pairs: Mapping[Pair, tuple[Holder, ...]],
    chains: Mapping[Pair, Sequence[Judgement]],
) -> Iterator[Flip]:
    """Templates that were lost to a time-out or a dead worker before, or now: of one of the scans only the outcome is
    left, because the later analysis took the place of the earlier one."""
    before, after = _outcomes(old), _outcomes(new)
    for pair, holders in pairs.items():
        was, now = before[pair[0]], after[pair[1]]
        told = was is not now and Outcome.SKIPPED not in (was, now)
        if told and pair[0] == pair[1] and len(chains[pair]) < 2:
            yield Flip(What.OUTCOME, "", was, now, (Cause.AGAIN,), *pair, holders)


def _outcomes(snapshot: Snapshot) -> dict[str, Outcome]:
    """What became of each template, by SHA-256."""
    return {seen.sha256: seen.outcome for seen in snapshot.sightings if seen.sha256 is not None}


def _causes(steps: Sequence[tuple[Judgement, _Answer]]) -> tuple[Cause, ...]:
    """What differs between the analyses at the steps where the answer does."""
    found = {
        cause
        for (judgement, answer), (following, next_answer) in pairwise(steps)
        if answer.value != next_answer.value
        for cause in _differing(judgement, following)
    }
    return tuple(cause for cause in Cause if cause in found)


def _differing(one: Judgement, other: Judgement) -> Iterator[Cause]:
    differs = {
        Cause.TEMPLATE: one.sha256 != other.sha256,
        Cause.PROFILE: one.profile != other.profile,
        Cause.CAPSCAN: _version(one) != _version(other),
    }
    yield from [cause for cause, holds in differs.items() if holds] or [Cause.AGAIN]


def _version(judgement: Judgement) -> tuple[str, int]:
    return judgement.capscan_version, judgement.analysis_version


def _answers(judgement: Judgement) -> _Answers:
    """Everything that can flip. What was not examined is left out: nothing is known to have changed there."""
    told: dict[tuple[What, str], _Answer] = {(What.OUTCOME, ""): _Answer(judgement.outcome, text=judgement.reason)}
    if judgement.server_starts is not None:
        told[What.START, ""] = _Answer(_yes_or_no(judgement.server_starts))
    if judgement.handler is not None:
        told[What.HANDLER, ""] = _Answer(judgement.handler)
    if judgement.claims is not None:
        flags = {name: getattr(judgement.claims, name) for name in CAPABILITIES}
        told |= {(What.CLAIMED, name): _Answer(_yes_or_no(flag, "no such flag")) for name, flag in flags.items()}
    told |= {(What.OBSERVED, name): _Answer(_yes_or_no(seen, "not told")) for name, seen in judgement.observed.items()}
    told |= {(What.BEHAVIOUR, key): _Answer(outcome) for key, outcome in judgement.behaviours.items()}
    told |= {(What.EFFORT, word or "(unset)"): _Answer(outcome) for word, outcome in judgement.efforts.items()}
    if judgement.free_text_effort is not None:
        told[What.EFFORT, "(any other word)"] = _Answer(judgement.free_text_effort)
    return {**told, **_finding_answers(judgement.findings)}


def _finding_answers(findings: Iterable[Finding]) -> dict[tuple[What, str], _Answer]:
    """Rules are compared by how often they hold; how a finding is worded is no change."""
    found = list(findings)
    counts = Counter(finding.rule for finding in found)
    first = {finding.rule: finding for finding in reversed(found)}
    return {
        (What.FINDING, rule): _Answer(_counted(first[rule].severity, count), first[rule].severity, first[rule].text)
        for rule, count in counts.items()
    }


def _counted(severity: Severity, count: int) -> str:
    return str(severity) if count == 1 else f"{severity}, {count} times"


def _yes_or_no(flag: bool | None, unknown: str = "") -> str:
    return unknown if flag is None else "yes" if flag else "no"


def _file_flips(
    old: Snapshot,
    new: Snapshot,
    files: Iterable[FileChange],
    pairs: Mapping[Pair, tuple[Holder, ...]],
    chains: Mapping[Pair, Sequence[Judgement]],
) -> Iterator[Flip]:
    """The findings about files as a whole, of the files that both scans saw."""
    rewritten = {change.path for change in files if change.change is Came.CHANGED}
    causes: defaultdict[str, set[Cause]] = defaultdict(set)
    for pair, holders in pairs.items():
        chain = chains[pair]
        differing = set(_differing(chain[0], chain[-1])) if len(chain) > 1 else set()
        for holder in holders:
            causes[holder.path] |= differing - {Cause.AGAIN}
    seen = {sighting.path for sighting in old.sightings} & {sighting.path for sighting in new.sightings}
    for path in sorted(seen & (old.file_findings.keys() | new.file_findings.keys())):
        was = _finding_answers(old.file_findings.get(path, ()))
        now = _finding_answers(new.file_findings.get(path, ()))
        told = _file_causes(old.scan, new.scan, causes[path], is_rewritten=path in rewritten)
        for what, rule in dict.fromkeys([*was, *now]):
            first, last = was.get((what, rule), _NOTHING), now.get((what, rule), _NOTHING)
            if first.value != last.value:
                shown = last if last.value is not None else first
                yield Flip(
                    what, rule, first.value, last.value, told, None, None, (Holder(path),), shown.severity, shown.text
                )


def _file_causes(
    old: ScanRecord, new: ScanRecord, of_templates: set[Cause], *, is_rewritten: bool
) -> tuple[Cause, ...]:
    found = set(of_templates)
    if is_rewritten and Cause.TEMPLATE not in found:
        found.add(Cause.FILE)
    if old.profile != new.profile:
        found.add(Cause.PROFILE)
    if old.capscan_version != new.capscan_version:
        found.add(Cause.CAPSCAN)
    return tuple(cause for cause in Cause if cause in (found or {Cause.AGAIN}))


def _versions(chains: Iterable[Sequence[Judgement]], old: ScanRecord, new: ScanRecord) -> tuple[str, str] | None:
    """The versions of Capscan on both sides, with those of the analysis where the first are alike."""
    if old.capscan_version != new.capscan_version:
        return old.capscan_version, new.capscan_version
    for chain in chains:
        if len(chain) > 1 and _version(chain[0]) != _version(chain[-1]):
            one, other = chain[0], chain[-1]
            if one.capscan_version != other.capscan_version:
                return one.capscan_version, other.capscan_version
            return f"analysis {one.analysis_version}", f"analysis {other.analysis_version}"
    return None


def _flip_order(flip: Flip) -> tuple[object, ...]:
    """By cause, then the kind, then the place."""
    causes = [list(Cause).index(cause) for cause in flip.causes]
    return causes, list(What).index(flip.what), flip.name, _holder_order(flip.holders[0]), flip.new or ""
