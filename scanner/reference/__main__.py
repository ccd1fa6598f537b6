"""The child of `ReferenceProcess`: `python -m scanner.reference SECONDS MEMORY`.

It reads requests from standard input until that closes, and answers on what was its standard output.
"""

from __future__ import annotations

import math
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator

from scanner.reference import wire
from scanner.reference.environment import environment
from scanner.reference.renderer import ReferenceSyntaxError, ReferenceTemplate
from scanner.reference.result import ErrorKind, ReferenceResult

_COMPILED = ReferenceResult(True)
_NO_MEMORY = ReferenceResult.failed(ErrorKind.LIMIT, "out of memory")


def main() -> None:
    """Serve until standard input closes."""
    seconds, memory = float(sys.argv[1]), int(sys.argv[2])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    answers = _private_output()
    environment()  # before the first template's time begins
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_AS, memory)
    os.write(answers, wire.READY)
    for line in sys.stdin.buffer:
        _limit_processor_time(seconds)
        for result in _results(wire.read_request(line)):
            _send(answers, result)
            _limit_processor_time(seconds)


def _private_output() -> int:
    """Move standard output to a descriptor that nothing else writes to."""
    answers = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return answers


def _limit(what: int, amount: int) -> None:
    """Set a limit of this process; one that came from outside and is lower stays."""
    hard = resource.getrlimit(what)[1]
    resource.setrlimit(what, (amount if hard == resource.RLIM_INFINITY else min(amount, hard), hard))


def _limit_processor_time(seconds: float) -> None:
    """For when the parent is gone while a template runs: it would have ended this process earlier."""
    _limit(resource.RLIMIT_CPU, math.ceil(time.process_time() + seconds) + 1)


def _results(request: wire.Request) -> Iterator[ReferenceResult]:
    """The outcome of the compilation, then of each render."""
    try:
        template = ReferenceTemplate(request.source)
    except ReferenceSyntaxError as error:
        yield ReferenceResult.failed(error.kind, error.message, error.line)
        return
    yield _COMPILED
    for conversation in request.conversations:
        yield template.render(conversation, now=request.now)


def _send(answers: int, result: ReferenceResult) -> None:
    try:
        line = wire.write_result(result)
    except MemoryError:
        line = wire.write_result(_NO_MEMORY)
    while line:
        line = line[os.write(answers, line) :]


if __name__ == "__main__":
    main()
