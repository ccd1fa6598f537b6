"""Flags by build of llama.cpp: how many templates claim each, and which change from one build to the next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from reports.builds import flips, oldest_first
from reports.overview import Overview, page_id
from reports.words import LABELS
from scanner.results import CAPABILITIES
from scanner.store.queries import TemplateSummary


@dataclass(frozen=True, slots=True)
class BuildCount:
    """Under one build so many of `analysed` templates claim a capability; of 0 where the build has no such flag."""

    claiming: int
    analysed: int


@dataclass(frozen=True, slots=True)
class Turn:
    """How many templates claim a capability that they did not claim under the build before, and the other way round."""

    gained: int
    lost: int


@dataclass(frozen=True, slots=True)
class BuildFlags:
    """One capability: a count for each build, and a turn between each two."""

    capability: str
    label: str
    counts: tuple[BuildCount, ...]
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class Turned:
    """A template whose flag changes."""

    page: str
    path: str
    variant: str
    files: int


@dataclass(frozen=True, slots=True)
class TurnGroup:
    """The templates whose flag turns to `now`."""

    capability: str
    label: str
    now: bool
    templates: tuple[Turned, ...]


@dataclass(frozen=True, slots=True)
class BuildStep:
    """From one build to the next: how many templates change, of so many that both could examine, and which."""

    before: str
    now: str
    changed: int
    compared: int
    groups: tuple[TurnGroup, ...]


@dataclass(frozen=True, slots=True)
class FlagBuilds:
    """The builds, oldest first; `flags` and `steps` are empty where there is but one."""

    profiles: tuple[str, ...]
    flags: tuple[BuildFlags, ...]
    steps: tuple[BuildStep, ...]


Analysed = Mapping[str, TemplateSummary]
"""The templates under one profile, by SHA-256."""


def flag_builds(overview: Overview) -> FlagBuilds:
    """The flags under every profile that the database knows of these templates."""
    profiles = oldest_first(one.profile for one in overview.templates)
    if len(profiles) < 2:
        return FlagBuilds(profiles, (), ())
    analysed = {
        profile: {one.sha256: one for one in overview.templates if one.profile == profile} for profile in profiles
    }
    steps = tuple(_step(overview, before, now, analysed) for before, now in pairwise(profiles))
    flags = tuple(
        BuildFlags(
            name,
            LABELS[name],
            tuple(_count(name, analysed[profile]) for profile in profiles),
            tuple(_turn(name, step) for step in steps),
        )
        for name in CAPABILITIES
    )
    return FlagBuilds(profiles, flags, steps)


def _count(name: str, analysed: Analysed) -> BuildCount:
    flags = [getattr(one.capabilities, name) for one in analysed.values() if one.capabilities is not None]
    return BuildCount(flags.count(True), len(flags) - flags.count(None))


def _turn(name: str, step: BuildStep) -> Turn:
    sizes = {group.now: len(group.templates) for group in step.groups if group.capability == name}
    return Turn(sizes.get(True, 0), sizes.get(False, 0))


def _step(overview: Overview, before: str, now: str, analysed: Mapping[str, Analysed]) -> BuildStep:
    turned: dict[tuple[str, bool], list[Turned]] = {}
    pairs = [(one, analysed[now].get(sha256)) for sha256, one in analysed[before].items()]
    compared = [
        (old, old.capabilities, new.capabilities)
        for old, new in pairs
        if new is not None and old.capabilities is not None and new.capabilities is not None
    ]
    changed = 0
    for one, old_flags, new_flags in compared:
        found = flips(old_flags, new_flags)
        changed += bool(found)
        for flip in found:
            turned.setdefault((flip.capability, flip.now), []).append(_turned(overview, one))
    return BuildStep(before, now, changed, len(compared), _groups(turned))


def _turned(overview: Overview, one: TemplateSummary) -> Turned:
    variant = overview.variant(one.sha256, one.path)
    return Turned(page_id(one.sha256), overview.shown(one.path), variant, one.files)


def _groups(turned: Mapping[tuple[str, bool], list[Turned]]) -> tuple[TurnGroup, ...]:
    return tuple(
        TurnGroup(name, LABELS[name], now, tuple(turned[name, now]))
        for name in CAPABILITIES
        for now in (True, False)
        if (name, now) in turned
    )
