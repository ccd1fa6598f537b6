"""Which lines of a template hold something to run, and which of them a run came to.

A run only notes how far it came in each body, which is next to nothing beside what the statements in it cost. The
lines that this makes are worked out afterwards. Expressions inside a statement are not followed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from scanner.dialect import nodes
from scanner.dialect.source import Lines

EMPTY = -1
"""The key of every body without statements."""

# Tuples, as a union of classes is made anew each time that `isinstance` is given one.
BRANCHING = (nodes.If, nodes.For)
WITH_BODY = (nodes.Set, nodes.Macro, nodes.CallBlock, nodes.FilterBlock)

Body: TypeAlias = Sequence[nodes.Statement]


def body_key(body: Body) -> int:
    """What a run notes a body by: where its first statement stands, as no other body starts there."""
    return body[0].offset if body else EMPTY


class Coverage:
    """The lines of a parsed template, by body: those of its own statements, without what is inside these."""

    def __init__(self, text: bytes, lines: Lines, template: Body) -> None:
        self._text = text
        self._starts = [*lines.starts, len(text) + 1]
        self._bodies = {body_key(body): body for body in _bodies(template)}
        self._lines = {key: self._numbers(body) for key, body in self._bodies.items()}
        self.lines = _sorted(self._lines.values())
        """All lines that hold something to run, from 1."""

    def of_run(self, reached: Mapping[int, int]) -> tuple[int, ...]:
        """The lines of a run that came to so many statements of these bodies, by key."""
        return _sorted([self._up_to(key, count) for key, count in reached.items()])

    def _up_to(self, key: int, count: int) -> list[int]:
        body = self._bodies[key]
        return self._lines[key] if count == len(body) else self._numbers(body[:count])

    def _numbers(self, statements: Body) -> list[int]:
        """The lines of statements: of each its tag, the first of them where a body follows; or its text."""
        starts = self._starts
        numbers: list[int] = []
        for statement in statements:
            if isinstance(statement, nodes.Tag):
                first = bisect_right(starts, self._opening(statement))
                numbers.append(first)
                if statement.end >= starts[first]:
                    numbers += range(first + 1, bisect_right(starts, statement.end) + 1)
            elif isinstance(statement, nodes.Text) and not statement.value.isspace():
                numbers += self._printing(statement)
        return numbers

    def _opening(self, statement: nodes.Tag) -> int:
        """Where a tag opens. The offset of its statement, for errors, is that of the word behind `{%`, if not of `{{`,
        or of the `{%` of an `elif`."""
        offset = statement.offset
        return offset if isinstance(statement, nodes.Print) else self._text.rfind(b"{%", 0, offset + 2)

    def _printing(self, statement: nodes.Text) -> list[int]:
        """The lines of a text that are more than white space. Nothing else was stripped from behind its offset."""
        first = bisect_right(self._starts, self._text.find(statement.value, statement.offset))
        lines = statement.value.split(b"\n")
        return [number for number, line in enumerate(lines, first) if line and not line.isspace()]


def _bodies(template: Body) -> Iterator[Body]:
    """The template itself and all bodies in it; not by recursion, as a chain of `elif` may be long."""
    waiting = [template]
    while waiting:
        body = waiting.pop()
        yield body
        for statement in body:
            if isinstance(statement, BRANCHING):
                waiting += (statement.body, statement.otherwise)
            elif isinstance(statement, WITH_BODY):
                waiting.append(statement.body)


def _sorted(parts: Iterable[Iterable[int]]) -> tuple[int, ...]:
    return tuple(sorted(set().union(*parts)))
