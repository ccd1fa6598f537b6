"""What a template read: all marking of `used` and `ops` (`dialect.md` section 8).

Only values given to a run are followed. They stay alive as long as the run, so their identity is a safe key; values
that the template makes itself carry no marks and cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from scanner.dialect.values import Array, Object, Value
from scanner.dialect.walks import Work, check_nesting, children


class Mark:
    """The marks of one given value, and where it stands in what was given."""

    __slots__ = ("key", "offset", "ops", "parent", "used", "value")

    def __init__(self, value: Value, parent: Mark | None, key: str) -> None:
        self.value = value
        self.parent = parent
        self.key = key
        self.used = False
        self.ops: set[str] = set()
        self.offset: int | None = None

    def path(self) -> str:
        """The value's path, as in `messages[0].content`."""
        return (self.parent.path() if self.parent else "") + self.key


@dataclass(frozen=True, slots=True)
class ValueRead:
    """A value that was read: its path, marks, and the byte offset of the first read."""

    path: str
    used: bool
    ops: tuple[str, ...]
    offset: int | None


class Trace:
    """The marks of one run. An empty one, for runs without statistics, ignores everything."""

    __slots__ = ("marks",)

    def __init__(self) -> None:
        self.marks: dict[int, Mark] = {}

    def follow(self, name: str, value: Value) -> None:
        """Keep marks for a variable and all it holds, under paths that start with `name`. The first name wins."""
        self._follow(value, None, name, 0)

    def _follow(self, value: Value, parent: Mark | None, key: str, depth: int) -> None:
        if id(value) in self.marks:
            return
        check_nesting(depth)
        mark = self.marks[id(value)] = Mark(value, parent, key)
        if isinstance(value, Array):
            for index, item in enumerate(value.items):
                self._follow(item, mark, f"[{index}]", depth + 1)
        elif isinstance(value, Object):
            for name, item in value.entries.items():
                shown = name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)
                self._follow(item, mark, f".{shown}", depth + 1)

    def use(self, value: Value, offset: int) -> None:
        """Mark a value as used at a byte offset."""
        mark = self.marks.get(id(value))
        if mark is not None:
            mark.used = True
            if mark.offset is None:
                mark.offset = offset

    def add(self, value: Value, operation: str, offset: int) -> None:
        """Mark a value as used, by an operation."""
        mark = self.marks.get(id(value))
        if mark is not None:
            mark.used = True
            mark.ops.add(operation)
            if mark.offset is None:
                mark.offset = offset

    def use_all(self, work: Work, value: Value, offset: int, depth: int = 0) -> None:
        """Mark a value and everything inside it as used."""
        if not self.marks:
            return
        check_nesting(depth)
        work.charge(1)
        self.use(value, offset)
        for child in children(value):
            self.use_all(work, child, offset, depth + 1)

    def reads(self) -> Iterator[ValueRead]:
        """The values that have a mark, in the order they were given."""
        for mark in self.marks.values():
            if mark.used or mark.ops:
                yield ValueRead(mark.path(), mark.used, tuple(sorted(mark.ops)), mark.offset)
