"""Worker processes that do not outlive their parent, also one that is killed."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import threading

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
