"""What a reference render gives. Frozen, picklable values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ErrorKind(StrEnum):
    """Why there is no output: the template does not compile, it raised an error of its own making
    (`raise_exception`), Jinja2 or Python raised one, or a limit of ours was met (time, memory, output, nesting)."""

    SYNTAX = "syntax"
    RAISED = "raised"
    RUNTIME = "runtime"
    LIMIT = "limit"


@dataclass(frozen=True, slots=True)
class ReferenceError:  # noqa: A001 - Python's own of this name is about weak references, and nobody catches it here
    """Why a render failed. `message` is Jinja2's own text, led by the type where the error is not one of Jinja2's;
    `line` is the line of the template (from 1) that was running, None where nothing tells."""

    kind: ErrorKind
    message: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class ReferenceResult:
    """One render. When not `ok`, `output` is empty and `error` says why."""

    ok: bool
    output: str = ""
    error: ReferenceError | None = None

    @classmethod
    def failed(cls, kind: ErrorKind, message: str, line: int | None = None) -> ReferenceResult:
        """The result of a render that failed."""
        return cls(False, error=ReferenceError(kind, message, line))
