"""llama.cpp's dialect of Jinja, on its own (`dialect.md`). The public face is `Template`."""

from __future__ import annotations

from scanner.dialect.errors import DialectError, ErrorKind, SyntaxKind, TemplateSyntaxError
from scanner.dialect.limits import DEFAULT_LIMITS, Limits
from scanner.dialect.template import RenderedPart, RenderError, RenderResult, Template, ValueAt
from scanner.dialect.values import Value, from_python

__all__ = [
    "DEFAULT_LIMITS",
    "DialectError",
    "ErrorKind",
    "Limits",
    "RenderError",
    "RenderResult",
    "RenderedPart",
    "SyntaxKind",
    "Template",
    "TemplateSyntaxError",
    "Value",
    "ValueAt",
    "from_python",
]
