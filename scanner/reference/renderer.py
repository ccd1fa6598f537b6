"""A compiled template and its renders, in this process. Neither time nor memory is limited here."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any

from jinja2 import Template
from jinja2.exceptions import TemplateError, TemplateSyntaxError
from jinja2.runtime import Context

from scanner.reference.environment import RaisedByTemplateError, environment, strftime_at
from scanner.reference.result import ErrorKind, ReferenceResult

MAX_OUTPUT = 16 * 1024**2
"""Bytes of UTF-8 that a render may print."""

MAX_MESSAGE = 4096
"""Characters of an error's text that are kept."""


class ReferenceSyntaxError(Exception):
    """A template that does not compile. `line` is the line of the template, None where nothing tells; `kind` is LIMIT
    where it is nested too deep, or a constant in it too large, to find out."""

    def __init__(self, message: str, line: int | None = None, kind: ErrorKind = ErrorKind.SYNTAX) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.kind = kind


class OutputLimitError(Exception):
    """More output than permitted."""


class ReferenceTemplate:
    """A template as Python Jinja2 understands it; compiled once, rendered as often as wanted.

    `source` is the template's bytes or text. Bytes that are not UTF-8 are a syntax error: transformers cannot load such
    a template either. Raises `ReferenceSyntaxError`.
    """

    def __init__(self, source: bytes | str) -> None:
        text = source if isinstance(source, str) else _decoded(source)
        try:
            self._template: Template = environment().from_string(text)
        except Exception as error:
            raise _syntax_error(error) from None
        self._globals = self._template.root_render_func.__globals__

    def render(self, variables: Mapping[str, object], *, now: float | None = None) -> ReferenceResult:
        """Render with these variables (JSON-like data). Never raises for what the template does.

        `now`: seconds since the epoch for `strftime_now` (default: the clock).
        """
        context = self._template.new_context({"strftime_now": strftime_at(now), **variables})
        try:
            return ReferenceResult(True, self._output(context))
        except Exception as error:
            kind, message = _described(error)
            return ReferenceResult.failed(kind, message, self._line(error.__traceback__))

    def _output(self, context: Context) -> str:
        # `Template.render` would first write the traceback of an error anew, and has no place to stop.
        pieces: list[str] = []
        size = 0
        for piece in self._template.root_render_func(context):
            pieces.append(piece)
            size += len(piece)
            if size > MAX_OUTPUT:
                raise OutputLimitError
        output = "".join(pieces)
        if not output.isascii() and len(output.encode("utf-8", "surrogatepass")) > MAX_OUTPUT:
            raise OutputLimitError
        return output

    def _line(self, trace: TracebackType | None) -> int | None:
        """The line of the innermost frame that is the template's."""
        line = None
        while trace is not None:
            if trace.tb_frame.f_globals is self._globals:
                line = self._template.get_corresponding_lineno(trace.tb_lineno)
            trace = trace.tb_next
        return line


def _decoded(source: bytes) -> str:
    try:
        return source.decode()
    except UnicodeDecodeError as error:
        line = source.count(b"\n", 0, error.start) + 1
        raise ReferenceSyntaxError(f"not UTF-8: {error.reason} at byte {error.start}", line) from None


def _syntax_error(error: Exception) -> ReferenceSyntaxError:
    match error:
        case TemplateSyntaxError():
            return ReferenceSyntaxError(_shortened(error.message or ""), error.lineno)
        case SyntaxError():
            # Python's own complaint about the code that Jinja2 made; its line is of that code.
            return ReferenceSyntaxError(f"SyntaxError: {error.msg}")
    kind, message = _described(error)
    return ReferenceSyntaxError(message, kind=ErrorKind.LIMIT if kind is ErrorKind.LIMIT else ErrorKind.SYNTAX)


def _described(error: Exception) -> tuple[ErrorKind, str]:
    match error:
        case OutputLimitError():
            return ErrorKind.LIMIT, f"printed more than {MAX_OUTPUT // 1024**2} MiB"
        case RecursionError():
            return ErrorKind.LIMIT, "nested too deep"
        case MemoryError():
            return ErrorKind.LIMIT, "out of memory"
        case RaisedByTemplateError():
            return ErrorKind.RAISED, _text(error)
        case TemplateError():
            return ErrorKind.RUNTIME, _text(error)
    return ErrorKind.RUNTIME, _shortened(f"{type(error).__name__}: {_text(error)}")


def _text(error: Any) -> str:
    try:
        return _shortened(str(error))
    except Exception:
        # The template chose what the text is made of: it may be too large or too deep to be written.
        return "an error without a text"


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_MESSAGE else text[:MAX_MESSAGE] + "…"
