"""Which probes ran a line: a narrow gutter a probe beside the source, as coverage reports have it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from scanner.judge.verdicts import DECIDING_PROBES
from scanner.results import ProbeRun


@dataclass(frozen=True, slots=True)
class Gutter:
    """One way in which a line may have run: `key` has a digit a probe, in their order, 1 where it ran the line.
    `decides` are the capabilities that one of these probes decides; `words` says in which probes it ran."""

    key: str
    words: str
    decides: tuple[str, ...]

    @property
    def ran(self) -> bool:
        """Whether any probe ran the line."""
        return "1" in self.key


def lines_run(runs: Sequence[ProbeRun], lines: Iterable[int]) -> dict[int, str]:
    """The key of every line that holds something to run; `lines` are these."""
    ran = [frozenset(run.lines) for run in runs]
    return {line: "".join("1" if line in one else "0" for one in ran) for line in lines}


def gutters(keys: Iterable[str], runs: Sequence[ProbeRun]) -> tuple[Gutter, ...]:
    """Each key that occurs once, with its words: a page draws it once, however many lines show it."""
    return tuple(_gutter(key, [run.name for run in runs]) for key in sorted(set(keys), reverse=True))


def _gutter(key: str, probes: Sequence[str]) -> Gutter:
    ran = [probe for probe, digit in zip(probes, key, strict=True) if digit == "1"]
    decides = tuple(name for name, deciding in DECIDING_PROBES.items() if set(deciding) & set(ran))
    if not ran:
        return Gutter(key, "run in no probe", decides)
    return Gutter(key, "run in every probe" if len(ran) == len(probes) else f"run in {', '.join(ran)}", decides)


def by_key(found: Iterable[Gutter]) -> Mapping[str, Gutter]:
    """The gutters by their key."""
    return {gutter.key: gutter for gutter in found}
