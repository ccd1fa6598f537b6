"""Two templates beside each other: variants of one family, or the old and the new one of a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from reports.marks import MARK_WORDS, Flags, flags_of, legend_of
from reports.overview import Overview, page_id
from reports.pages.runs import SideBySide, side_by_side
from reports.words import BEHAVIOUR_QUESTIONS, LABELS
from scanner.results import CAPABILITIES, Behaviour, Effort, Outcome
from scanner.store.queries import Analysis


@dataclass(frozen=True, slots=True)
class Compared:
    """One of the two, as its own page (None: it has none in this report) and the lists name it. `path` is its first
    file."""

    page: str | None
    sha256: str
    profile: str
    path: str
    variant: str
    files: int
    size: int
    outcome: Outcome
    handler: str | None
    server_starts: bool | None
    flags: Flags


@dataclass(frozen=True, slots=True)
class Side:
    """What is compared of one template."""

    shown: Compared
    source: bytes
    behaviours: tuple[Behaviour, ...]
    efforts: tuple[Effort, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """What is compared, its `meaning` where it has one, and what each of the two says (nothing: not known)."""

    what: str
    meaning: str
    left: str
    right: str

    @property
    def differs(self) -> bool:
        """Whether the answers are not the same."""
        return self.left != self.right


@dataclass(frozen=True, slots=True)
class ComparePage:
    """Two templates, left and right; `relation` says why they are compared. Of the behaviours only those that differ
    are listed, beside how many are alike."""

    left: Compared
    right: Compared
    relation: str
    flags: tuple[Pair, ...]
    behaviours: tuple[Pair, ...]
    behaviours_alike: int
    efforts: tuple[Pair, ...]
    source: SideBySide
    legend: tuple[Flags, ...]


def compare_id(left: str, right: str) -> str:
    """The name of the page that compares two templates, by their SHA-256."""
    return f"{page_id(left)}-{page_id(right)}"


def side_of(overview: Overview, sha256: str, source: bytes, analysis: Analysis) -> Side:
    """What pages that compare need of one template, under the profile of this analysis."""
    result = analysis.result
    held = sorted(overview.held.get(sha256, ()))
    start = result.server_start
    shown = Compared(
        page=page_id(sha256) if held else None,
        sha256=sha256,
        profile=result.profile,
        path=overview.shown(held[0][0]) if held else "",
        variant=held[0][1] if held else "",
        files=len({path for path, _variant in held}),
        size=len(source),
        outcome=result.outcome,
        handler=result.handler,
        server_starts=None if start is None else start.ok,
        flags=flags_of(result.capabilities, analysis.observed),
    )
    return Side(shown, source, result.behaviours, result.efforts)


def compare_page(left: Side, right: Side, relation: str) -> ComparePage:
    """The page of two templates."""
    behaviours = _behaviours(left.behaviours, right.behaviours)
    efforts = _efforts(left.efforts, right.efforts)
    return ComparePage(
        left=left.shown,
        right=right.shown,
        relation=relation,
        flags=_flags(left.shown.flags, right.shown.flags),
        behaviours=tuple(pair for pair in behaviours if pair.differs),
        behaviours_alike=sum(not pair.differs for pair in behaviours),
        efforts=efforts if any(pair.differs for pair in efforts) else (),
        source=side_by_side(_decoded(left.source), _decoded(right.source)),
        legend=legend_of([left.shown.flags, right.shown.flags]),
    )


def _flags(left: Flags, right: Flags) -> tuple[Pair, ...]:
    return tuple(
        Pair(LABELS[name], "", MARK_WORDS[one], MARK_WORDS[other])
        for name, one, other in zip(CAPABILITIES, left.marks, right.marks, strict=True)
    )


def _behaviours(left: Iterable[Behaviour], right: Iterable[Behaviour]) -> tuple[Pair, ...]:
    return _pairs({one.key: _told(one) for one in left}, {one.key: _told(one) for one in right}, BEHAVIOUR_QUESTIONS)


def _told(behaviour: Behaviour) -> str:
    return f"{behaviour.outcome}: {behaviour.detail}" if behaviour.detail else behaviour.outcome


def _efforts(left: Iterable[Effort], right: Iterable[Effort]) -> tuple[Pair, ...]:
    return _pairs(dict(map(_effort, left)), dict(map(_effort, right)), {})


def _effort(effort: Effort) -> tuple[str, str]:
    same = " as unset" if effort.equals_unset and effort.word is not None else ""
    return effort.word or "unset", effort.outcome.value + same


def _pairs(left: Mapping[str, str], right: Mapping[str, str], questions: Mapping[str, str]) -> tuple[Pair, ...]:
    return tuple(
        Pair(key, questions.get(key, ""), left.get(key, ""), right.get(key, ""))
        for key in dict.fromkeys([*left, *right])
    )


def _decoded(source: bytes) -> str:
    return source.decode("utf-8", "surrogateescape")
