"""How many templates, and files, claim each capability, and really have it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from reports.overview import Overview
from reports.pages.chosen import chosen_templates, shown_profiles
from reports.words import CAPABILITY_MEANINGS, LABELS
from scanner.results import CAPABILITIES
from scanner.store.queries import TemplateSummary

Holdings = Mapping[frozenset[str], int]
"""How many times just these templates are held together, by their SHA-256."""


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
    """All capabilities, each template under the one of these profiles that it is shown under. `judged`: something was
    observed at all. `left_out` templates have no flags, for they could not be examined."""

    profiles: tuple[str, ...]
    judged: bool
    left_out: int
    flags: tuple[FlagCount, ...]


def distribution_of(overview: Overview) -> Distribution:
    """The flags of all templates, each under the profile that it is shown under."""
    templates = chosen_templates(overview)
    holdings = _holdings(overview)
    flags = tuple(
        FlagCount(
            capability=name,
            label=LABELS[name],
            meaning=CAPABILITY_MEANINGS[name],
            templates=_share(name, templates, _one_each(templates)),
            files=_share(name, templates, holdings),
        )
        for name in CAPABILITIES
    )
    analysed = max(flag.templates.analysed for flag in flags)
    return Distribution(
        profiles=shown_profiles(overview),
        judged=any(flag.templates.judged for flag in flags),
        left_out=len(templates) - analysed,
        flags=flags if analysed else (),
    )


def _holdings(overview: Overview) -> Holdings:
    """How many files hold just these templates, for every set of them that some file holds."""
    of_files: dict[str, set[str]] = {}
    for file in overview.files:
        if file.sha256 is not None:
            of_files.setdefault(file.path, set()).add(file.sha256)
    return Counter(map(frozenset, of_files.values()))


def _one_each(templates: Iterable[TemplateSummary]) -> Holdings:
    return {frozenset((one.sha256,)): 1 for one in templates}


def _share(name: str, templates: Iterable[TemplateSummary], holdings: Holdings) -> Share:
    """What is claimed beside what is true, over what holds a template, as the view `flag_distribution` counts it."""
    pairs = {one.sha256: (getattr(one.capabilities, name, None), one.observed.get(name)) for one in templates}

    def count(holds: Callable[[bool | None, bool | None], bool]) -> int:
        found = {sha256 for sha256, pair in pairs.items() if holds(*pair)}
        return sum(number for together, number in holdings.items() if not found.isdisjoint(together))

    return Share(
        claiming=count(lambda claimed, _really: claimed is True),
        analysed=count(lambda claimed, _really: claimed is not None),
        observed=count(lambda _claimed, really: really is True),
        judged=count(lambda _claimed, really: really is not None),
        over=count(lambda claimed, really: claimed is True and really is False),
        under=count(lambda claimed, really: claimed is False and really is True),
    )
