"""What worker processes of every kind do first: they do not outlive their parent, and spare Python's collector."""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import signal
import sys
import threading


def calm_collector() -> None:
    """Let Python look for reference cycles less often. A template becomes thousands of small objects, none of them in
    a cycle, and at the usual rate the collector takes a third of the time to walk them again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 50)


_PR_SET_PDEATHSIG = 1


def end_with_parent(parent: int) -> None:
    """The kernel ends this process with its parent. Elsewhere than on Linux a thread does, as soon as the task lets it
    run."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            # It died before that was asked for.
            os._exit(1)
    else:
        threading.Thread(target=_await_end_of_parent, daemon=True).start()


def _await_end_of_parent() -> None:
    started_by = multiprocessing.parent_process()
    if started_by is not None:
        started_by.join()
        os._exit(1)
