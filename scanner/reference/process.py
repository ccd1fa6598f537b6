"""Reference renders in a process of their own: what a hostile template takes down is that process, and little time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from scanner.errors import CapscanError
from scanner.reference import wire
from scanner.reference.child import Child, ChildEndedError
from scanner.reference.result import ErrorKind, ReferenceResult

_START_SECONDS = 30.0
_LIMITS = 2
"""So many renders of one template may meet a limit, then the others are not tried."""
_TOGETHER = 3
"""All renders of one template may take this many times the time of one."""


class ReferenceProcessError(CapscanError):
    """The child process does not start."""

    slug = "reference"


class ReferenceProcess:
    """Renders templates in one long-lived child process; a context manager, leaving it ends the child.

    `seconds`: what the compilation, and each render, may take. `memory`: bytes of address space that the child may use,
    its interpreter (about 30 MiB) included. The child starts with the first template, and anew after a limit was met.
    """

    def __init__(self, seconds: float = 2.0, memory: int = 512 * 1024**2) -> None:
        self.seconds = seconds
        self.memory = memory
        self._child: Child | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the child. Another render would start a new one."""
        if self._child is not None:
            self._child.end()
            self._child = None

    def render_all(
        self, source: bytes, conversations: Sequence[Mapping[str, Any]], *, now: float | None = None
    ) -> tuple[ReferenceResult, ...]:
        """A result for each conversation (variables of JSON-like data), in their order; nothing a template does raises.

        `now`: seconds since the epoch for `strftime_now` (default: the clock). A render that meets a limit costs
        itself; after a second one, or three times `seconds` for all together, the others are not tried: they get the
        kind LIMIT and a message that says so. Raises ReferenceProcessError when no child can be started, TypeError or
        ValueError where the variables are no data that JSON can hold.
        """
        results: list[ReferenceResult] = []
        limits = 0
        deadline = time.monotonic() + _TOGETHER * self.seconds
        while len(results) < len(conversations) and limits < _LIMITS and time.monotonic() < deadline:
            results += self._attempt(wire.Request(source, conversations[len(results) :], now), deadline)
            limits += _met_limit(results[-1])
        untried = len(conversations) - len(results)
        reason = f"{_LIMITS} renders met a limit" if limits >= _LIMITS else "the renders before took too long"
        return (*results, *[_limited(f"not tried: {reason}")] * untried)

    def _attempt(self, request: wire.Request, deadline: float) -> list[ReferenceResult]:
        """Results of the first conversations, at least one: up to the end, or to one that met a limit."""
        line = wire.write_request(request)
        try:
            child = self._running_child()
            child.send(line)
            compiled = self._answer(child, "compiling", deadline)
            if not compiled.ok:
                return [compiled] * len(request.conversations)
            return list(self._renders(child, len(request.conversations), deadline))
        except BaseException:
            # Answers that nobody read would be taken for those of the next template.
            self.close()
            raise

    def _renders(self, child: Child, count: int, deadline: float) -> Iterator[ReferenceResult]:
        for _ in range(count):
            result = self._answer(child, "rendering", deadline)
            yield result
            if _met_limit(result):
                return

    def _answer(self, child: Child, doing: str, deadline: float) -> ReferenceResult:
        """The child's next answer. A limit ends the child: what the template left in it could disturb others."""
        own_deadline = time.monotonic() + self.seconds
        try:
            result = wire.read_result(child.receive(min(own_deadline, deadline)))
        except TimeoutError:
            alone = own_deadline <= deadline
            result = _limited(
                f"{doing} took longer than {self.seconds:g} s"
                if alone
                else f"all renders together took longer than {_TOGETHER * self.seconds:g} s"
            )
        except ChildEndedError as error:
            result = _limited(f"{doing} ended the process ({error})")
        if _met_limit(result):
            self.close()
        return result

    def _running_child(self) -> Child:
        if self._child is None or not self._child.alive:
            self.close()
            self._child = self._started_child()
        return self._child

    def _started_child(self) -> Child:
        try:
            child = Child("scanner.reference", str(self.seconds), str(self.memory))
        except OSError as error:
            raise ReferenceProcessError(f"the process for reference renders cannot be started: {error}") from error
        try:
            child.receive(time.monotonic() + _START_SECONDS)
        except (TimeoutError, ChildEndedError) as error:
            child.end()
            how = str(error) or f"not ready after {_START_SECONDS:g} s"
            raise ReferenceProcessError(f"the process for reference renders does not start: {how}") from error
        except BaseException:
            child.end()
            raise
        return child


def _met_limit(result: ReferenceResult) -> bool:
    return result.error is not None and result.error.kind is ErrorKind.LIMIT


def _limited(message: str) -> ReferenceResult:
    return ReferenceResult.failed(ErrorKind.LIMIT, message)
