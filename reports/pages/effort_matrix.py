"""Reasoning efforts: what each template makes of each word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from reports.overview import AllNotes, Overview, page_id
from reports.pages.chosen import chosen_templates
from scanner.results import Effort, EffortOutcome
from scanner.store.queries import TemplateSummary

COLUMNS = 12
"""The most columns; a collection of one template may know any number of words."""


class EffortState(StrEnum):
    """What a word does. INERT: every word that is accepted gives the same prompt."""

    ACCEPTED = "accepted"
    UNSET = "as unset"
    INERT = "inert"
    RAISES = "raises"


EFFORT_MEANINGS: Mapping[EffortState, str] = {
    EffortState.ACCEPTED: "makes a prompt of its own, or the same as another word",
    EffortState.UNSET: "makes the same prompt as no effort at all",
    EffortState.INERT: "accepted, but no word makes a difference",
    EffortState.RAISES: "the template fails",
}
EFFORT_SHAPES: Mapping[EffortState, str] = {
    EffortState.ACCEPTED: "●",
    EffortState.UNSET: "○",
    EffortState.INERT: "=",
    EffortState.RAISES: "✕",
}


@dataclass(frozen=True, slots=True)
class EffortCell:
    """One word. `alike` is an earlier word that gives the same prompt, `line` and `message` are those of its error."""

    word: str | None
    state: EffortState
    alike: str | None = None
    line: int | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class EffortRow:
    """One template: a cell for each column (None: not tried), and the words that only few templates know."""

    page: str
    path: str
    variant: str
    files: int
    cells: tuple[EffortCell | None, ...]
    others: tuple[EffortCell, ...]


@dataclass(frozen=True, slots=True)
class EffortMatrix:
    """The templates for which efforts matter: the outcomes or the prompts differ, or llama.cpp believes so. Those that
    raise come first. `words` are the columns (None: unset), `alike` templates make no difference, and of `untried` it
    is not known."""

    words: tuple[str | None, ...]
    rows: tuple[EffortRow, ...]
    alike: int
    untried: int


def effort_matrix(overview: Overview, notes: AllNotes) -> EffortMatrix:
    """The matrix of templates and words."""
    templates = chosen_templates(overview)
    noted = [(one, notes.get((one.sha256, one.profile))) for one in templates]
    tried = [(one, found.efforts) for one, found in noted if found is not None and found.efforts]
    differing = [(one, efforts) for one, efforts in tried if _matters(one, efforts)]
    words = _columns([efforts for _one, efforts in tried])
    rows = sorted((_row(overview, one, efforts, words) for one, efforts in differing), key=_order)
    return EffortMatrix(words, tuple(rows), len(tried) - len(differing), len(templates) - len(tried))


def _matters(template: TemplateSummary, efforts: Sequence[Effort]) -> bool:
    claimed = template.capabilities is not None and template.capabilities.reasoning_effort
    return bool(claimed) or len({(effort.outcome, effort.group) for effort in efforts}) > 1


def _columns(tried: Sequence[Sequence[Effort]]) -> tuple[str | None, ...]:
    """The words that every template was tried with; some know words of their own."""
    if not tried:
        return ()
    shared = set.intersection(*({effort.word for effort in efforts} for efforts in tried))
    return tuple(effort.word for effort in tried[0] if effort.word in shared)[:COLUMNS]


def _row(
    overview: Overview, template: TemplateSummary, efforts: Sequence[Effort], words: Sequence[str | None]
) -> EffortRow:
    cells = {cell.word: cell for cell in _cells(efforts)}
    return EffortRow(
        page=page_id(template.sha256),
        path=overview.shown(template.path),
        variant=overview.variant(template.sha256, template.path),
        files=template.files,
        cells=tuple(cells.get(word) for word in words),
        others=tuple(cell for word, cell in cells.items() if word not in words),
    )


def _cells(efforts: Sequence[Effort]) -> tuple[EffortCell, ...]:
    groups = {effort.group for effort in efforts if effort.outcome is EffortOutcome.ACCEPTED}
    first: dict[int | None, str | None] = {}
    for effort in efforts:
        if effort.word is not None:
            first.setdefault(effort.group, effort.word)
    return tuple(_cell(effort, inert=len(groups) == 1, first=first.get(effort.group)) for effort in efforts)


def _cell(effort: Effort, *, inert: bool, first: str | None) -> EffortCell:
    if effort.outcome is EffortOutcome.RAISES:
        return EffortCell(effort.word, EffortState.RAISES, line=effort.line, message=effort.message)
    if inert:
        return EffortCell(effort.word, EffortState.INERT)
    if effort.equals_unset:
        return EffortCell(effort.word, EffortState.UNSET)
    return EffortCell(effort.word, EffortState.ACCEPTED, alike=first if first != effort.word else None)


def _order(row: EffortRow) -> tuple[object, ...]:
    states = [cell.state for cell in (*row.cells, *row.others) if cell is not None]
    inert = EffortState.INERT in states
    return (-states.count(EffortState.RAISES), not inert, -row.files, row.path, row.page)
