"""Worker processes. A task that hangs, eats memory or kills its worker costs itself and nothing else.

pebble gives each task a process that can be ended alone; `concurrent.futures` loses the whole pool with one worker.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import TimeoutError as TaskTimeout
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeVar

from pebble import ProcessExpired, ProcessFuture, ProcessPool
from pebble.pool.process import WORKERS_NAME

from scanner.processes import calm_collector, end_with_parent

Task = TypeVar("Task")
Result = TypeVar("Result")

WINDOW = 8
"""Tasks handed out ahead, for each worker: enough to keep it busy, few enough to keep memory flat."""


@dataclass(frozen=True, slots=True)
class TaskLimits:
    """What one task may use: seconds of time, bytes of address space."""

    seconds: float = 30.0
    memory: int = 2 * 1024**3


DEFAULT_LIMITS = TaskLimits()


@dataclass(frozen=True, slots=True)
class Lost:
    """A task that gave no result, and why."""

    reason: str


class WorkerPool:
    """A few worker processes, used as a context manager; leaving it ends them at once, whatever they do."""

    def __init__(self, workers: int, limits: TaskLimits = DEFAULT_LIMITS) -> None:
        self.workers = workers
        self.limits = limits
        self._others = multiprocessing.active_children()
        # A fresh interpreter a worker: a forked one would share the parent's database connections.
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPool(
            max_workers=workers, initializer=_prepare_worker, initargs=[limits.memory, os.getpid()], context=context
        )

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.stop()  # type: ignore[no-untyped-call]  # pebble types only a part of itself
        for process in multiprocessing.active_children():
            # One that is still starting would complain that the pool is gone.
            if process.name == WORKERS_NAME and process not in self._others:
                process.kill()
        self._pool.join()

    def map(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[tuple[Task, Result | Lost]]:
        """Each task with its result, in the order of the tasks. `function` must be importable by name."""
        waiting: deque[tuple[Task, ProcessFuture[Result]]] = deque()
        for task in tasks:
            waiting.append((task, self._pool.schedule(function, args=[task], timeout=self.limits.seconds)))
            if len(waiting) >= self.workers * WINDOW:
                done, future = waiting.popleft()
                yield done, self._outcome(future)
        for done, future in waiting:
            yield done, self._outcome(future)

    def _outcome(self, future: ProcessFuture[Any]) -> Any:
        """The task's own result, or a `Lost`."""
        try:
            return future.result()
        except TaskTimeout:
            return Lost(f"took longer than {self.limits.seconds:g} s")
        except ProcessExpired as error:
            return Lost(f"ended with its worker process (exit code {error.exitcode})")
        except MemoryError:
            return Lost(f"needed more than {self.limits.memory // 1024**2} MiB of memory")
        except Exception as error:
            return Lost(f"failed: {type(error).__name__}: {error}")


def _prepare_worker(memory: int, parent: int) -> None:
    """Ctrl-C is for the parent, which ends its workers itself; memory beyond the limit is refused. A worker ends with
    its parent, also with one that is killed: nobody else would end a task that takes too long."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent(parent)
    calm_collector()
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
