"""The prompts of the standard conversations, as llama.cpp and as the reference render them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from reports.pages.runs import SideBySide, shortened, side_by_side
from reports.words import SCENARIO_TITLES
from scanner.results import Part, StandardRender

LLAMA_CPP, REFERENCE = "llama.cpp", "jinja2"
"""The engines of a `StandardRender`."""

ENGINES = {LLAMA_CPP: "llama.cpp", REFERENCE: "the reference"}
"""How pages call them."""


@dataclass(frozen=True, slots=True)
class Side:
    """What one engine, or both of them alike, made of a conversation; `cut` characters are not shown."""

    engine: str
    error: str | None
    output: bool
    parts: tuple[Part, ...]
    cut: int


@dataclass(frozen=True, slots=True)
class PromptPair:
    """One standard conversation under both engines. `equal`: they agree. `difference` is there where both gave a prompt
    and these differ, else `sides` has one entry (both gave the same prompt) or two."""

    scenario: str
    title: str
    word: str
    equal: bool
    sides: tuple[Side, ...]
    difference: SideBySide | None


def prompt_pairs(renders: Iterable[StandardRender]) -> tuple[PromptPair, ...]:
    """The conversations that both engines were given, in the order of the renders."""
    by_scenario: dict[str, dict[str, StandardRender]] = {}
    for render in renders:
        by_scenario.setdefault(render.scenario, {})[render.engine] = render
    return tuple(
        _pair(scenario, engines[LLAMA_CPP], engines[REFERENCE])
        for scenario, engines in by_scenario.items()
        if engines.keys() == ENGINES.keys()
    )


def _pair(scenario: str, ours: StandardRender, reference: StandardRender) -> PromptPair:
    title = SCENARIO_TITLES.get(scenario, "")
    failed = (ours.error is not None, reference.error is not None)
    if failed == (False, False):
        if ours.output != reference.output:
            difference = side_by_side(ours.output, reference.output)
            return PromptPair(scenario, title, "differs", False, (), difference)
        return PromptPair(scenario, title, "equal", True, (_side(ours, "Both engines"),), None)
    word = {(True, True): "both fail", (True, False): "only llama.cpp fails"}.get(failed, "only the reference fails")
    sides = tuple(_side(one, ENGINES[one.engine]) for one in (ours, reference))
    return PromptPair(scenario, title, word, failed[0] == failed[1], sides, None)


def _side(render: StandardRender, engine: str) -> Side:
    parts, cut = shortened(_parts(render))
    return Side(engine, render.error, bool(render.output), parts, cut)


def _parts(render: StandardRender) -> Iterator[Part]:
    """The output, cut where text from the request begins and ends."""
    at = 0
    for first, end in render.inputs or ():
        yield Part(render.output[at:first], False)
        yield Part(render.output[first:end], True)
        at = end
    yield Part(render.output[at:], False)
