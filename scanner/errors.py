"""The errors a person can meet. Each has a slug; none of them reaches a person as a traceback."""

from __future__ import annotations

from typing import ClassVar


class CapscanError(Exception):
    """Something Capscan could not do, said in one line that names the thing and what to do about it."""

    slug: ClassVar[str] = "error"


class UsageError(CapscanError):
    """The command line asks for something that makes no sense (exit code 2)."""

    slug: ClassVar[str] = "usage"


class DatabaseError(CapscanError):
    """The database cannot be opened, read or written as it is."""

    slug: ClassVar[str] = "database"


class RevisionError(DatabaseError):
    """The database has another schema revision than this Capscan; the message holds the command to run."""

    slug: ClassVar[str] = "revision"


class UnreadableError(CapscanError):
    """A file is not what its format says it should be.

    `offset` is the byte where the expectation failed (None where no single byte did), `expected` what should have
    been there.
    """

    slug: ClassVar[str] = "unreadable"

    def __init__(self, message: str, *, offset: int | None = None, expected: str | None = None) -> None:
        super().__init__(message)
        self.offset = offset
        self.expected = expected
