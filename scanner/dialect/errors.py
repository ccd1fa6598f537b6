"""What can go wrong with a template (`dialect.md` section 9).

A `SyntaxFault` leaves the lexer or the parser, a `RunFault` the interpreter. Both know where they happened as a byte
offset; the public face (`Template`) turns them into values with a line and a column.
"""

from __future__ import annotations

from enum import StrEnum


class ErrorKind(StrEnum):
    """The kinds of run-time errors, as `capscan probe` prints them."""

    RUNTIME = "runtime"
    RAISED = "raised"
    NOT_IMPLEMENTED = "not_implemented"
    LOOP_CONTROL = "loop_control"
    LIMIT = "limit"


class SyntaxKind(StrEnum):
    """Who refused the source: the lexer, the parser, or a budget of ours (`limit`, never llama.cpp's verdict)."""

    LEXER = "lexer"
    PARSER = "parser"
    LIMIT = "limit"


class DialectError(Exception):
    """Base of everything the dialect raises."""


class TemplateSyntaxError(DialectError):
    """The source does not lex or parse.

    `message` is llama.cpp's text without the excerpt, `engine_text` the whole text as llama.cpp writes it. `offset`
    counts bytes of the normalised source (`dialect.md` section 2); `line` and `column` start at 1.
    """

    def __init__(
        self, kind: SyntaxKind, message: str, *, engine_text: str, offset: int, line: int, column: int
    ) -> None:
        super().__init__(f"line {line}, column {column}: {message}")
        self.kind = kind
        self.message = message
        self.engine_text = engine_text
        self.offset = offset
        self.line = line
        self.column = column


class SyntaxFault(DialectError):
    """A syntax error on its way out. `excerpt`: llama.cpp shows the source around this one."""

    def __init__(self, kind: SyntaxKind, message: str, offset: int, *, excerpt: bool = False) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.offset = offset
        self.excerpt = excerpt


class RunFault(DialectError):
    """A run-time error on its way out of the interpreter.

    `node` and `offset` name the innermost statement or expression; they are set once, by the first node that sees the
    fault, and stay None for the kinds that llama.cpp never wraps.
    """

    wrapped = True
    kind = ErrorKind.RUNTIME

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        self.node: str | None = None
        self.offset: int | None = None

    def at(self, node: str, offset: int) -> RunFault:
        """This fault, placed at `node` unless a node further in has placed it already."""
        if self.wrapped and self.node is None:
            self.node = node
            self.offset = offset
        return self


class RaisedFault(RunFault):
    """The template's own `raise_exception`."""

    kind = ErrorKind.RAISED


class NotImplementedFault(RunFault):
    """Something llama.cpp parses and knows, and does not do."""

    wrapped = False
    kind = ErrorKind.NOT_IMPLEMENTED

    def __init__(self, message: str) -> None:
        super().__init__(f"NotImplemented: {message}")


class LimitFault(RunFault):
    """A budget of ours is used up; the real engine has no such limit and would go on, or die."""

    wrapped = False
    kind = ErrorKind.LIMIT


class LoopControl(RunFault):
    """`break` and `continue` travel as faults, as they do in llama.cpp: outside a loop they are the error."""

    wrapped = False
    kind = ErrorKind.LOOP_CONTROL


class BreakSignal(LoopControl):
    """`{% break %}`"""

    def __init__(self) -> None:
        super().__init__("Break statement executed")


class ContinueSignal(LoopControl):
    """`{% continue %}`"""

    def __init__(self) -> None:
        super().__init__("Continue statement executed")
