"""Tasks for worker processes that behave badly."""

from __future__ import annotations

import os
import signal
import time


def double(number: int) -> int:
    return 2 * number


def misbehave(how: str) -> str:
    """Hang, die, or eat memory, as told; anything else comes back."""
    if how == "hang":
        time.sleep(60)
    if how == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "exit":
        os._exit(7)
    if how == "eat":
        return "x" * (8 * 1024**3)
    return how
