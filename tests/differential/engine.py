"""The real engine for thousands of questions: `scanner.oracle.ask_all`, in a third of the time.

The oracle starts a Python process for each question and loads the engine in it, which takes three times as long as the
server's start. Here a helper process (`python -m tests.differential.engine`) loads the engine once, and a fork of it
serves each question, so a server still has a process of its own. All the rest is the oracle's: what is asked, said, and
made of it.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType

from scanner import oracle
from scanner.oracle import Answer, Question
from tests.shared_data import REPOSITORY


def ask_all(questions: Iterable[Question], *, workers: int, timeout: int) -> Iterator[Answer]:
    """The answers to all questions, in their order; at most `workers` servers run at once, each for at most `timeout`
    seconds."""
    with ExitStack() as stack:
        helpers = SimpleQueue[Helper]()
        for _ in range(workers):
            helpers.put(stack.enter_context(Helper(timeout)))
        threads = stack.enter_context(ThreadPoolExecutor(workers))
        waiting: deque[Future[Answer]] = deque()
        for question in questions:
            waiting.append(threads.submit(_ask, question, helpers))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _ask(question: Question, helpers: SimpleQueue[Helper]) -> Answer:
    """Put a question to a helper that is free; there is one for each thread."""
    helper = helpers.get()
    try:
        return helper.ask(question)
    finally:
        helpers.put(helper)


class Helper:
    """A process that has the engine loaded; it ends when it is told no more folders."""

    def __init__(self, timeout: int) -> None:
        self.timeout = timeout
        command = [sys.executable, "-m", "tests.differential.engine", str(timeout)]
        self.process = subprocess.Popen(
            command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def __enter__(self) -> Helper:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.process.communicate()

    def ask(self, question: Question) -> Answer:
        """Put one question to a fork. A refusal, a crash and a time-out are answers."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with tempfile.TemporaryDirectory(prefix="capscan-differential-") as name:
            folder = Path(name)
            oracle.write_model(folder / "model.gguf", question)
            (folder / "requests").write_text(json.dumps(list(question.requests)), encoding="utf-8")
            self.process.stdin.write(f"{name}\n")
            code = int(self.process.stdout.readline())
            death = (
                f"timed out: no answer after {self.timeout} s" if code == -signal.SIGALRM else oracle.why_it_died(code)
            )
            return oracle.read_answer((folder / "answers").read_bytes(), (folder / "log").read_bytes(), death)


# --- the helper's side -----------------------------------------------------------------------------------------------


def _help(timeout: int) -> None:
    """Serve the question in each folder named on standard input, and print how its process ended."""
    import xllamacpp  # noqa: F401 - loaded here so that no fork need do it

    for line in sys.stdin:
        child = os.fork()
        if not child:
            _serve(Path(line.rstrip("\n")), timeout)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201 - the answer


def _serve(folder: Path, timeout: int) -> None:
    """In the fork: the oracle's own child, with files in place of its pipes. Does not return."""
    signal.alarm(timeout)
    sys.stdin = (folder / "requests").open(encoding="utf-8")
    for number, name in ((1, "answers"), (2, "log")):
        os.dup2(os.open(folder / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT), number)
    try:
        oracle.serve(str(folder / "model.gguf"))
    except BaseException:
        os._exit(70)
    # The engine's log is written by a thread, which only an orderly end waits for. Python's own end would go on to
    # serve the next folder.
    ctypes.CDLL(None).exit(0)


if __name__ == "__main__":
    _help(int(sys.argv[1]))
