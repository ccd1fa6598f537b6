"""What parent and child say to each other: lines of JSON.

A request is one line. The child answers with one line for the compilation and, if that is well, with one for each
conversation in its order.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scanner.reference.result import ErrorKind, ReferenceResult

READY = b"ready\n"
"""The child's first line."""


@dataclass(frozen=True, slots=True)
class Request:
    """A template, the variables of each of its renders, and the time that `strftime_now` shows (None: the clock)."""

    source: bytes
    conversations: Sequence[Mapping[str, Any]]
    now: float | None = None


def write_request(request: Request) -> bytes:
    """The line of a request. Raises TypeError or ValueError where the variables are not JSON-like."""
    source = base64.b64encode(request.source).decode()
    return _line([source, list(request.conversations), request.now])


def read_request(line: bytes) -> Request:
    """What `write_request` wrote."""
    source, conversations, now = _data(line)
    return Request(base64.b64decode(source), conversations, now)


def write_result(result: ReferenceResult) -> bytes:
    """The line of a result."""
    error = result.error
    return _line([result.output] if error is None else [error.kind, error.message, error.line])


def read_result(line: bytes) -> ReferenceResult:
    """What `write_result` wrote."""
    match _data(line):
        case [output]:
            return ReferenceResult(True, output)
        case [kind, message, number]:
            return ReferenceResult.failed(ErrorKind(kind), message, number)
    raise ValueError(f"not a result: {line[:80]!r}")


# Lone surrogates survive, also where two that stand side by side would be one character in JSON's own escapes.


def _line(data: object) -> bytes:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"


def _data(line: bytes) -> Any:
    return json.loads(line.decode("utf-8", "surrogatepass"))
