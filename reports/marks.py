"""The nine capability marks: what each says, always in the order of CAPABILITIES."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from reports.words import LABELS
from scanner.results import CAPABILITIES, Capabilities


class Mark(StrEnum):
    """One capability's mark. OVER and UNDER are disagreements of what is claimed and what was observed."""

    YES = "yes"
    NO = "no"
    OVER = "over"
    UNDER = "under"
    UNKNOWN = "unknown"


MARK_WORDS: Mapping[Mark, str] = {
    Mark.YES: "yes",
    Mark.NO: "no",
    Mark.OVER: "claimed, not really",
    Mark.UNDER: "really, not claimed",
    Mark.UNKNOWN: "not known",
}

_LETTERS: Mapping[Mark, str] = {
    Mark.YES: "y",
    Mark.NO: "n",
    Mark.OVER: "o",
    Mark.UNDER: "u",
    Mark.UNKNOWN: "x",
}
_MARKS: Mapping[str, Mark] = {letter: mark for mark, letter in _LETTERS.items()}


@dataclass(frozen=True, slots=True)
class Flags:
    """Nine marks. `key` is one letter each (y yes, n no, o over, u under, x unknown), `words` says the same."""

    key: str
    words: str

    @property
    def marks(self) -> tuple[Mark, ...]:
        """The marks, in the order of CAPABILITIES."""
        return tuple(_MARKS[letter] for letter in self.key)

    @property
    def claimed(self) -> str:
        """The key of what is claimed alone."""
        return self.key.replace("o", "y").replace("u", "n")


def mark_of(claimed: bool | None, observed: bool | None = None) -> Mark:
    """The mark of one capability; what was not observed (None) disagrees with nothing."""
    if claimed is None:
        return Mark.UNKNOWN
    if observed is None or observed == claimed:
        return Mark.YES if claimed else Mark.NO
    return Mark.OVER if claimed else Mark.UNDER


def flags_of(
    claimed: Capabilities | Mapping[str, bool | None] | None, observed: Mapping[str, bool | None] | None = None
) -> Flags:
    """The marks of a template's claims, beside what was observed; None: nothing is known."""
    if claimed is None:
        return _flags("x" * len(CAPABILITIES))
    values = claimed if isinstance(claimed, Mapping) else {name: getattr(claimed, name) for name in CAPABILITIES}
    really = observed or {}
    return _flags("".join(_LETTERS[mark_of(values.get(name), really.get(name))] for name in CAPABILITIES))


def legend_of(flags: Iterable[Flags]) -> tuple[Flags, ...]:
    """Each set of marks once, in a fixed order: a page draws it once, however many rows show it."""
    return tuple(sorted(set(flags), key=lambda one: one.key, reverse=True))


@lru_cache(maxsize=1024)
def _flags(key: str) -> Flags:
    said = []
    for mark, word in MARK_WORDS.items():
        names = [LABELS[name] for name, letter in zip(CAPABILITIES, key, strict=True) if letter == _LETTERS[mark]]
        if names:
            said.append(f"{word}: {', '.join(names)}")
    return Flags(key, "; ".join(said))
