"""The input of a run: case I of seed S is the same wherever and whenever it is made.

The programs come from rules asked of `random.Random`, not from Hypothesis: outside a test Hypothesis gives examples
only through `.example()`, which cannot be seeded, or all at once through a `given` function, where one seed gives other
examples with every release of Hypothesis and no case can be made again by its number. It also wants an answer to each
example before the next; the real engine is asked about sixty at once. Hypothesis drives the same rules in
`tests/test_differential.py` (`st.randoms()`), where no engine is needed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import TypeAlias

from scanner.demo import collection
from scanner.dialect import Template, TemplateSyntaxError
from tests import cases_format
from tests.differential.chat import ChatGrammar
from tests.differential.mutate import mutate
from tests.shared_data import REPOSITORY

Make: TypeAlias = Callable[[int, int], str]
"""Seed and number → source."""

_MUTANTS = 0.5
"""The part of templates that are mutants."""
_OF_CASES = 0.15
"""The part of mutants that are made from our test cases."""


def template(seed: int, number: int) -> str:
    """A chat template: by rules, or a mutant of an existing one."""
    random = Random(f"template {seed} {number}")  # noqa: S311 - not for secrets
    if random.random() >= _MUTANTS:
        return ChatGrammar(random).template()
    existing = case_templates() if random.random() < _OF_CASES else chat_templates()
    return _mutant(existing, random)


def snippet(seed: int, number: int) -> str:
    """A small program: by rules, now and then a mutant of one."""
    random = Random(f"snippet {seed} {number}")  # noqa: S311 - not for secrets
    source = ChatGrammar(random).snippet()
    if random.random() < 0.1:
        return mutate(source, [ChatGrammar(random).snippet()], random)
    if random.random() < 0.05:
        return _mutant(case_templates(), random)
    return source


def _mutant(existing: Sequence[str], random: Random) -> str:
    """A mutant of one of these. Most changes break a template, so several are tried: four in five should parse."""
    mutant = mutate(random.choice(existing), existing, random)
    for _ in range(0 if random.random() < 0.2 else 5):
        if _parses(mutant):
            break
        mutant = mutate(random.choice(existing), existing, random)
    return mutant


def _parses(source: str) -> bool:
    try:
        Template(source)
    except TemplateSyntaxError:
        return False
    return True


def cases(make: Make, seed: int, count: int) -> Iterator[str]:
    """The first `count` cases of a seed."""
    return (make(seed, number) for number in range(count))


@cache
def chat_templates() -> Sequence[str]:
    """Our demo templates, and the real ones of the shared corpus where it is present, in name order."""
    root = Path(os.environ.get("CAPSCAN_SHARED") or REPOSITORY.parent / "shared")
    real = sorted(path for path in (root / "corpus" / "templates").glob("*") if path.is_file())
    ours = [source for name, source in collection.templates().items() if name not in collection.NOT_FOR_THE_ENGINE]
    return [source.decode(errors="surrogateescape") for source in [*ours, *(path.read_bytes() for path in real)]]


@cache
def case_templates() -> Sequence[str]:
    """The templates of our test cases."""
    paths = sorted(cases_format.FOLDER.glob("*.txt"))
    return [case.template for path in paths for case in cases_format.load(path)]
