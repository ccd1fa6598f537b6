"""A page for each capability: who claims it, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reports.marks import Flags, legend_of
from reports.overview import AllNotes, Overview
from reports.pages.chosen import shown_profiles
from reports.pages.rows import TemplateRow, template_rows
from reports.words import CAPABILITY_MEANINGS, LABELS
from scanner.judge.verdicts import Claim, Place, disagreement_phrase
from scanner.results import CAPABILITIES, Agreement


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


def capability_pages(overview: Overview, notes: AllNotes) -> tuple[CapabilityPage, ...]:
    """A page for each capability, in the order of CAPABILITIES."""
    rows = template_rows(overview, notes)
    return tuple(_capability_page(name, overview, rows, notes) for name in CAPABILITIES)


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
        profiles=shown_profiles(overview),
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
