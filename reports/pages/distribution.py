"""How many templates, and files, claim each capability, and really have it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reports.overview import Overview
from reports.words import CAPABILITY_MEANINGS, LABELS
from scanner.store.queries import ClaimCount


@dataclass(frozen=True, slots=True)
class Share:
    """Of `analysed` so many are `claiming` a capability, of `judged` so many really have it (`observed`). The claim is
    wrong for `over` that claim what is not true, and for `under` that do not claim what is."""

    claiming: int
    analysed: int
    observed: int
    judged: int
    over: int
    under: int

    @property
    def wrong(self) -> str:
        """For a person: `1 too much, 3 too little`."""
        sides = {"too much": self.over, "too little": self.under}
        return ", ".join([f"{count:,} {side}" for side, count in sides.items() if count]) or "none"


@dataclass(frozen=True, slots=True)
class FlagCount:
    """One capability, over templates and over the files that hold them."""

    capability: str
    label: str
    meaning: str
    templates: Share
    files: Share


@dataclass(frozen=True, slots=True)
class Distribution:
    """All capabilities under one profile. `judged`: something was observed at all. `left_out` templates have no flags
    under it, for they could not be examined, or not under this profile."""

    profile: str
    judged: bool
    left_out: int
    flags: tuple[FlagCount, ...]


def distribution_of(overview: Overview) -> Distribution:
    """The flags under the profile of the report's scan."""
    profile = overview.scan.scan.profile
    counts = [count for count in overview.claim_counts if count.profile == profile]
    analysed = max((count.templates_analysed for count in counts), default=0)
    return Distribution(
        profile=profile,
        judged=any(count.templates_judged for count in counts),
        left_out=len({one.sha256 for one in overview.templates}) - analysed,
        flags=_flags(counts) if analysed else (),
    )


def _flags(counts: Sequence[ClaimCount]) -> tuple[FlagCount, ...]:
    return tuple(
        FlagCount(
            capability=count.capability,
            label=LABELS[count.capability],
            meaning=CAPABILITY_MEANINGS[count.capability],
            templates=Share(
                count.templates_claiming,
                count.templates_analysed,
                count.templates_observed,
                count.templates_judged,
                count.templates_overclaiming,
                count.templates_underclaiming,
            ),
            files=Share(
                count.files_claiming,
                count.files_analysed,
                count.files_observed,
                count.files_judged,
                count.files_overclaiming,
                count.files_underclaiming,
            ),
        )
        for count in counts
    )
