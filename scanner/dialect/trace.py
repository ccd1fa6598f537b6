"""What a template read: all marking of `used` and `ops` (`dialect.md` section 8).

Only values given to a run are followed. They stay alive as long as the run, so their identity is a safe key; values
that the template makes itself carry no marks and cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from scanner.dialect.values import Array, Object, Value
from scanner.dialect.walks import Work, check_nesting, children


class Mark:
    """The marks of one given value that was read."""

    __slots__ = ("offset", "ops")

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.ops: set[str] = set()


class ValueRead(NamedTuple):
    """A value that was read: its path, the operations on it, and the byte offset of the first read."""

    path: str
    ops: tuple[str, ...]
    offset: int


class Trace:
    """The marks of one run. An empty one, for runs without statistics, ignores everything."""

    __slots__ = ("given", "marks")

    def __init__(self) -> None:
        self.given: dict[int, tuple[Value, int | None, object]] = {}
        """By identity: the value (held, so that its identity stays its own), the identity of what holds it, and where
        in there it stands: a variable's name, an index, or a key."""
        self.marks: dict[int, Mark] = {}

    def follow(self, name: str, value: Value) -> None:
        """Keep marks for a variable and all it holds, under paths that start with `name`. The first name wins."""
        self._follow(value, None, name, 0)

    def _follow(self, value: Value, parent: int | None, key: object, depth: int) -> None:
        identity = id(value)
        if identity in self.given:
            return
        self.given[identity] = (value, parent, key)
        if isinstance(value, Array):
            check_nesting(depth)
            for index, item in enumerate(value.items):
                self._follow(item, identity, index, depth + 1)
        elif isinstance(value, Object):
            check_nesting(depth)
            for name, item in value.entries.items():
                self._follow(item, identity, name, depth + 1)

    def use(self, value: Value, offset: int) -> None:
        """Mark a value as used at a byte offset."""
        identity = id(value)
        if identity in self.given and identity not in self.marks:
            self.marks[identity] = Mark(offset)

    def add(self, value: Value, operation: str, offset: int) -> None:
        """Mark a value as used, by an operation."""
        identity = id(value)
        if identity in self.given:
            mark = self.marks.get(identity)
            if mark is None:
                mark = self.marks[identity] = Mark(offset)
            mark.ops.add(operation)

    def use_all(self, work: Work, value: Value, offset: int, depth: int = 0) -> None:
        """Mark a value and everything inside it as used."""
        if not self.given:
            return
        check_nesting(depth)
        work.charge(1)
        self.use(value, offset)
        for child in children(value):
            self.use_all(work, child, offset, depth + 1)

    def reads(self) -> Iterator[ValueRead]:
        """The values that have a mark, in the order they were given."""
        paths: dict[int, str] = {}
        for identity in self.given:
            mark = self.marks.get(identity)
            if mark is not None:
                yield ValueRead(self._path(identity, paths), tuple(sorted(mark.ops)), mark.offset)

    def _path(self, identity: int, known: dict[int, str]) -> str:
        path = known.get(identity)
        if path is None:
            path = known[identity] = self._new_path(identity, known)
        return path

    def _new_path(self, identity: int, known: dict[int, str]) -> str:
        _, parent, key = self.given[identity]
        if parent is None:
            return str(key)
        if isinstance(self.given[parent][0], Array):
            return f"{self._path(parent, known)}[{key}]"
        name = key.decode("utf-8", "replace") if isinstance(key, bytes) else str(key)
        return f"{self._path(parent, known)}.{name}"
