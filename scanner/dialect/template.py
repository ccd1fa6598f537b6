"""A parsed template: the dialect's public face."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, partial
from typing import NamedTuple

from scanner.dialect import interpreter, lexer, parser, source
from scanner.dialect.context import Run, Scope
from scanner.dialect.coverage import Coverage
from scanner.dialect.errors import ErrorKind, LimitFault, RunFault, SyntaxFault, SyntaxKind, TemplateSyntaxError
from scanner.dialect.limits import DEFAULT_LIMITS, Limits
from scanner.dialect.strings import merged
from scanner.dialect.trace import Trace
from scanner.dialect.values import FALSE, NULL, TRUE, from_python

FRAMES = 24_000
"""Python frames that the deepest permitted nesting needs; beyond them the verdict is a limit, not a crash."""

CONSTANTS: Scope = {"true": TRUE, "True": TRUE, "false": FALSE, "False": FALSE, "none": NULL, "None": NULL}
"""Ordinary variables of every context."""


@dataclass(frozen=True, slots=True)
class RenderedPart:
    """A run of output bytes, and whether it came from the request."""

    text: bytes
    is_input: bool


@dataclass(frozen=True, slots=True)
class RenderError:
    """Why a run failed. `node` is the syntax node that llama.cpp names, None for errors it does not wrap; `offset`
    counts bytes of the normalised source, `line` and `column` start at 1."""

    kind: ErrorKind
    message: str
    node: str | None
    offset: int | None
    line: int | None
    column: int | None

    @property
    def engine_text(self) -> str:
        """The error as llama.cpp writes it where it has no source at hand (`dialect.md` section 9)."""
        if self.node is None:
            return self.message
        return f"\nError executing {self.node} at position {self.offset}: {self.message}"


class ValueAt(NamedTuple):
    """A value of the request that was read: its path, marks, and the place of the first read."""

    path: str
    used: bool
    ops: tuple[str, ...]
    offset: int
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class RenderResult:
    """What a run gave. When not `ok`, `output` is empty and `error` says why; the reads and lines up to there are kept.
    `steps` is what it took of the budget of that name."""

    ok: bool
    output: bytes
    parts: tuple[RenderedPart, ...]
    error: RenderError | None
    reads: tuple[ValueAt, ...]
    steps: int = 0
    _find_lines: Callable[[], tuple[int, ...]] = field(default=tuple, repr=False, compare=False)

    @property
    def lines(self) -> tuple[int, ...]:
        """Those of `Template.lines` that ran. Worked out when asked for, as few ask."""
        return self._find_lines()


class Template:
    """A template as llama.cpp understands it; parsed once, run as often as wanted.

    `source` is the template's bytes (text is taken as UTF-8). Raises `TemplateSyntaxError`.
    """

    def __init__(self, source_text: bytes | str, *, limits: Limits = DEFAULT_LIMITS) -> None:
        if isinstance(source_text, str):
            source_text = source_text.encode("utf-8", "surrogateescape")
        self.source = source_text
        self.text = source.normalise(source_text)
        self._lines = source.Lines(self.text)
        self.limits = limits
        _make_room()
        try:
            self.nodes = parser.parse(lexer.tokenise(self.text), limits)
            self._body = interpreter.compile_body(self.nodes)
        except SyntaxFault as fault:
            raise self._syntax_error(fault) from None
        except RecursionError:
            raise self._syntax_error(SyntaxFault(SyntaxKind.LIMIT, "nested too deep", 0)) from None

    def run(
        self,
        variables: Mapping[str, object],
        *,
        statistics: bool = True,
        mark_input: bool = True,
        now: float | datetime | None = None,
        limits: Limits | None = None,
    ) -> RenderResult:
        """Render with these variables (JSON-like data, or values made by `from_python`). Never raises for what the
        template does.

        `statistics`: keep the reads; `mark_input`: strings of the variables count as coming from the request; `now`:
        seconds since the epoch, or a date and time, for `strftime_now` (default: the clock).
        """
        trace = Trace()
        scope = dict(CONSTANTS)
        for name, data in variables.items():
            value = scope[name] = from_python(data, mark_input=mark_input)
            if statistics:
                trace.follow(name, value)
        run = Run(limits=limits or self.limits, trace=trace, now=_seconds(now))
        error = self._execute(scope, run)
        reads = self._reads(trace)
        lines = partial(self._lines_of, run.reached)
        steps = run.limits.steps - run.steps
        if error is not None:
            return RenderResult(False, b"", (), error, reads, steps, lines)
        pieces = merged(run.out)  # type: ignore[arg-type]  # settled: no arrays are left
        parts = tuple([RenderedPart(text, is_input) for text, is_input in pieces])
        return RenderResult(True, b"".join([part.text for part in parts]), parts, None, reads, steps, lines)

    @property
    def lines(self) -> tuple[int, ...]:
        """The lines (from 1) that hold something to run: the tags of statements, `elif` among them, and text that is
        more than white space. Comments, `else` and the ends of blocks run nothing."""
        return self._coverage.lines

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column (from 1, in bytes) of an offset."""
        return self._lines.place(offset)

    def error_text(self, error: RenderError) -> str:
        """An error of a run as llama.cpp's server writes it, with the source around its place (`chat.md` section 3)."""
        if error.node is None or error.offset is None:
            return error.message
        shown = source.excerpt(self.text, error.offset)
        place = f"line {error.line}, column {error.column}"
        return f"\n------------\nWhile executing {error.node} at {place} in source:\n{shown}\nError: {error.message}"

    def _execute(self, scope: Scope, run: Run) -> RenderError | None:
        _make_room()
        try:
            self._body(scope, run)
            run.collect()
        except RunFault as fault:
            return self._run_error(fault)
        except (RecursionError, MemoryError) as error:
            return self._run_error(
                LimitFault("nested too deep" if isinstance(error, RecursionError) else "out of memory")
            )
        return None

    def _run_error(self, fault: RunFault) -> RenderError:
        line, column = self.place(fault.offset) if fault.offset is not None else (None, None)
        return RenderError(fault.kind, fault.message, fault.node, fault.offset, line, column)

    def _reads(self, trace: Trace) -> tuple[ValueAt, ...]:
        return tuple(
            [ValueAt(read.path, True, read.ops, read.offset, *self.place(read.offset)) for read in trace.reads()]
        )

    def _lines_of(self, reached: dict[int, int]) -> tuple[int, ...]:
        return self._coverage.of_run(reached)

    @cached_property
    def _coverage(self) -> Coverage:
        return Coverage(self.text, self._lines, self.nodes)

    def _syntax_error(self, fault: SyntaxFault) -> TemplateSyntaxError:
        text = self.text
        # The lexer of llama.cpp shows the source before the last line end is dropped, its parser the source after.
        shown = text + b"\n" if fault.kind is SyntaxKind.LEXER and self.source.endswith(b"\n") else text
        engine_text = fault.message + ("\n" + source.excerpt(shown, fault.offset) if fault.excerpt else "")
        line, column = self.place(fault.offset)
        return TemplateSyntaxError(
            fault.kind, fault.message, engine_text=engine_text, offset=fault.offset, line=line, column=column
        )


def _seconds(now: float | datetime | None) -> float:
    if now is None:
        return time.time()
    return now.timestamp() if isinstance(now, datetime) else float(now)


def _make_room() -> None:
    """Let Python go as deep as the depth budgets allow; calls between Python functions need no machine stack."""
    if sys.getrecursionlimit() < FRAMES:
        sys.setrecursionlimit(FRAMES)
