"""Real processes of the command line: started in a group of their own, watched through the database, and killed."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

PATIENCE = 120.0
"""Seconds that something which has to happen may take: the machine may be busy."""

ROOT = Path(__file__).resolve().parent.parent


def start(*arguments: str, cwd: Path | None = None, **options: object) -> subprocess.Popen[str]:
    """`capscan ARGUMENTS…`, in a session of its own."""
    return subprocess.Popen(  # type: ignore[call-overload, no-any-return]  # options of any kind
        [sys.executable, "-P", "-m", "scanner", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env=environment(),
        start_new_session=True,
        **options,
    )


def environment() -> Mapping[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def kill_group(process: subprocess.Popen[str]) -> None:
    """SIGKILL for the process and all that it started."""
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=PATIENCE)


def until(
    condition: Callable[[], object], process: subprocess.Popen[str] | None = None, *, seconds: float = PATIENCE
) -> None:
    """Wait for a condition; fail when it takes too long, or when the process ends before."""
    deadline = time.monotonic() + seconds
    while not condition():
        if process is not None and process.poll() is not None:
            said = process.communicate()
            raise AssertionError(f"ended early with {process.returncode}: {said}")
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def ask(database: Path, sql: str) -> list[tuple[object, ...]]:
    """Rows of a database that may be in use, or not be there yet."""
    if not database.exists():
        return []
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
        try:
            return connection.execute(sql).fetchall()
        except sqlite3.OperationalError:
            return []


def descendants(pid: int) -> list[int]:
    """The processes that a process has started, and those that they have."""
    children = [
        int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    ]
    return [*children, *[below for child in children for below in descendants(child)]]


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be buried does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in ("Z", "X")
