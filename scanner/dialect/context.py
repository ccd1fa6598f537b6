"""The state of one run: variables, output, budgets, marks, clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from scanner.dialect.errors import LimitFault
from scanner.dialect.limits import BYTES_PER_STEP, SLOW_BYTES_PER_STEP, Limits
from scanner.dialect.strings import Piece
from scanner.dialect.trace import Trace
from scanner.dialect.values import Array, Boolean, Float, Integer, String, Value, string_of
from scanner.dialect.walks import check_nesting

Scope: TypeAlias = dict[str, Value]
"""The variables in sight. An inner scope starts as a copy, so what is set inside stays inside."""

NAMES_PER_STEP = 16
"""Variables copied into an inner scope for one step."""

Output: TypeAlias = "list[Piece | Array]"
"""What a body has printed. Arrays stay as they are until the body ends, since they may still change."""


class Run:
    """One run of a template; made for it and thrown away after it."""

    __slots__ = ("calls", "limits", "now", "out", "place", "reached", "steps", "trace", "unsettled")

    def __init__(self, *, limits: Limits, trace: Trace, now: float) -> None:
        self.limits = limits
        self.trace = trace
        self.now = now
        self.out: Output = []
        self.steps = limits.steps
        self.calls = 0
        self.unsettled = 0
        self.place = 0
        self.reached: dict[int, int] = {}
        """Of each body that ran, by `coverage.body_key`, how many of its statements it came to at most."""

    # -- budgets ---------------------------------------------------------------------------------------------------

    def charge(self, steps: int) -> None:
        """Pay for work. Raises `LimitFault` when the budget is used up."""
        self.steps -= steps
        if self.steps < 0:
            raise LimitFault(f"more than {self.limits.steps} steps")

    def charge_text(self, size: int) -> None:
        """Pay for handling `size` bytes, and refuse text beyond the size limit before it is made."""
        if size > self.limits.output_bytes:
            raise LimitFault(f"text longer than {self.limits.output_bytes} bytes")
        self.charge(size // BYTES_PER_STEP)

    def charge_bytewise(self, size: int) -> None:
        """Pay for work that looks at `size` bytes one by one."""
        self.charge(size // SLOW_BYTES_PER_STEP)

    def charge_items(self, count: int) -> None:
        """Pay for handling `count` items, and refuse sequences beyond the length limit before they are made."""
        if count > self.limits.sequence_items:
            raise LimitFault(f"a sequence longer than {self.limits.sequence_items} items")
        self.charge(count)

    def enter_call(self) -> None:
        """Go one call deeper; `leave_call` goes back."""
        self.calls += 1
        if self.calls > self.limits.call_depth:
            raise LimitFault(f"calls nested deeper than {self.limits.call_depth} levels")

    def leave_call(self) -> None:
        """The call is over."""
        self.calls -= 1

    def inner(self, scope: Scope) -> Scope:
        """A scope inside another, paid for by its size."""
        self.charge(len(scope) // NAMES_PER_STEP)
        return dict(scope)

    # -- output ----------------------------------------------------------------------------------------------------

    def print(self, value: Value) -> None:
        """Print a value as `{{ }}` does: what is not a string, number, boolean or array prints nothing."""
        if isinstance(value, String):
            self.out.extend(value.parts)
        elif isinstance(value, Integer | Float | Boolean):
            self.out.append((value.text(), False))
        elif isinstance(value, Array):
            self.out.append(value)
            self.unsettled += 1

    def settle(self, start: int) -> None:
        """A body ends: turn the arrays it printed (from `start` on) into the text they hold now."""
        if not self.unsettled:
            return
        pieces: list[Piece] = []
        for item in self.out[start:]:
            if isinstance(item, Array):
                self.unsettled -= 1
                self._flatten(item, pieces, 0)
            else:
                pieces.append(item)
        self.out[start:] = pieces

    def _flatten(self, array: Array, pieces: list[Piece], depth: int) -> None:
        check_nesting(depth)
        self.charge_items(len(array.items))
        for item in array.items:
            if isinstance(item, Array):
                self._flatten(item, pieces, depth + 1)
            elif isinstance(item, String):
                pieces.extend(item.parts)
            elif isinstance(item, Integer | Float | Boolean):
                pieces.append((item.text(), False))

    def drop(self, start: int) -> None:
        """A body was left by `break`, `continue` or an error: what it printed is lost."""
        if self.unsettled:
            self.unsettled -= sum(isinstance(item, Array) for item in self.out[start:])
        del self.out[start:]

    def collect(self) -> String:
        """Everything printed so far, as a value. Refuses text beyond the size limit before it is made."""
        self.settle(0)
        pieces: Sequence[Piece] = self.out  # type: ignore[assignment]  # settled: no arrays are left
        value = string_of(pieces)
        self.charge_text(value.size)
        self.charge(len(pieces) // 16)
        return value
