"""What changes from one build of llama.cpp to the next."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from reports.words import LABELS
from scanner.results import CAPABILITIES, Capabilities


@dataclass(frozen=True, slots=True)
class Flip:
    """A flag that a build answers otherwise than the build before it."""

    capability: str
    before: bool
    now: bool

    @property
    def words(self) -> str:
        """For a person: `typed content no → yes`."""
        return f"{LABELS[self.capability]} {_word(self.before)} → {_word(self.now)}"


def oldest_first(profiles: Iterable[str]) -> tuple[str, ...]:
    """Profiles by the number of their build."""
    return tuple(sorted(set(profiles), key=lambda profile: (int(re.sub(r"\D", "", profile) or "0"), profile)))


def flips(before: Capabilities | None, now: Capabilities | None) -> tuple[Flip, ...]:
    """The flags that differ, in the order of CAPABILITIES. A flag that one of two builds does not have is no flip,
    nor is a template that one of them could not examine."""
    found = []
    for name in CAPABILITIES:
        was: bool | None = getattr(before, name, None)
        holds: bool | None = getattr(now, name, None)
        if was is not None and holds is not None and was != holds:
            found.append(Flip(name, was, holds))
    return tuple(found)


def _word(holds: bool) -> str:
    return "yes" if holds else "no"
