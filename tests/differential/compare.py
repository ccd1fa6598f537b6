"""What a comparison of the two engines gives, for templates and snippets alike."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

CPP_TYPE = re.compile(r"expected value of type \S+, got")
"""llama.cpp names the C++ class here; we name the type of the language."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One source put to both.

    `ours` and `theirs` are what was compared, in words; `incomparable` says why nothing was, None otherwise.
    """

    source: str
    ours: str = ""
    theirs: str = ""
    incomparable: str | None = None

    @property
    def differs(self) -> bool:
        """Whether both answered, and not the same."""
        return self.incomparable is None and self.ours != self.theirs


Compare: TypeAlias = Callable[[Sequence[str]], list[Comparison]]
"""Puts sources to both engines; a comparison for each, in order."""


def error_text(kind: str, message: str, node: str | None, offset: int | None) -> str:
    """An error in the words that both sides are compared in. `kind` is `lexer`, `parser` or `run`."""
    message = CPP_TYPE.sub("expected value of another type, got", message)
    place = "" if offset is None else f" at {node or 'byte'} {offset}"
    return f"{kind} error{place}: {message.removeprefix('lexer: ').removeprefix('parser: ')}"


def kind(comparison: Comparison) -> str:
    """A disagreement without its particulars, to count it under."""
    return f"{_shape(comparison.ours)}  ≠  {_shape(comparison.theirs)}"


def _shape(answer: str) -> str:
    if answer.startswith("output: "):
        return "output"
    first_line = answer.partition("\n")[0]
    return re.sub(r"'[^']*'|\"[^\"]*\"|\d+", "…", first_line)[:160]
