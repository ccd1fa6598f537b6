"""What several commands share: exit codes, options, and how they read their arguments and print their answers."""

from __future__ import annotations

import json
import math
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import click

from scanner.clock import seconds_of
from scanner.discover import discover
from scanner.errors import UsageError
from scanner.extract import extract
from scanner.probe.profiles import CURRENT, PROFILES
from scanner.rendering import bare_template
from scanner.results import FileResult, PassedOver

Command = TypeVar("Command", bound=Callable[..., object])

EXIT_FINDINGS = 1
EXIT_USAGE = 2
EXIT_FAILED = 3
EXIT_INTERRUPTED = 130


DEFAULT_DATABASE = "capscan.db"

DEFAULT_MAX_AGE = 90
"""Days."""


def _kept(_context: click.Context, _parameter: click.Parameter, database: str) -> str:
    """Refuses a database that nothing would be left of. Raises UsageError."""
    if database in ("", ":memory:", "sqlite://", "sqlite:///:memory:"):
        raise UsageError(f"--db {database!r} names no database that is kept: give a file or an SQLAlchemy URL")
    return database


class Finite(click.FloatRange):
    """A number of a range; infinity and what is no number are in none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number, or a usage error."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


database_option = click.option(
    "--db",
    "database",
    callback=_kept,
    envvar="CAPSCAN_DB",
    default=DEFAULT_DATABASE,
    show_default=True,
    metavar="URL|FILE",
    help="Database: a file, or an SQLAlchemy URL. Also $CAPSCAN_DB.",
)


ALL = "all"

profile_option = click.option(
    "--profile",
    type=click.Choice([*PROFILES, ALL]),
    default=CURRENT.name,
    show_default=True,
    help="Engine profile: the llama.cpp build whose flags are computed; all shows what changes between builds.",
)


def profiles_of(profile: str) -> tuple[str, ...]:
    """The profiles that `--profile` means, newest first."""
    return tuple(PROFILES) if profile == ALL else (profile,)


def database_hint(database: str) -> str:
    """What has to be added to the next command for the same database."""
    usual = database == DEFAULT_DATABASE or os.environ.get("CAPSCAN_DB") == database
    return "" if usual else f" --db {shlex.quote(database)}"


wait_option = click.option(
    "--wait",
    type=Finite(min=0),
    default=0.0,
    metavar="SECONDS",
    help="Wait so long for another process that works on the database; without it, give up at once (exit code 3).",
)

max_age_option = click.option(
    "--max-age",
    "max_age",
    type=Finite(0, 1_000_000),
    metavar="DAYS",
    help=f"Scans older than this are removed.  [default: {DEFAULT_MAX_AGE}]",
)


def format_option(*forms: str) -> Callable[[Command], Command]:
    """`--format` with these choices, the first of them the default."""
    return click.option("--format", "form", type=click.Choice(forms), default=forms[0], show_default=True)


class Clock(click.ParamType[float]):
    """`--now`: seconds since the epoch, or an ISO date and time."""

    name = "EPOCH|ISO"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The time in seconds since the epoch."""
        try:
            return seconds_of(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


now_option = click.option("--now", "clock", type=Clock(), help="What the templates take for the present time.")


def model_files(paths: Sequence[str]) -> Iterator[FileResult]:
    """Each path's model files, opened, in the order given."""
    for path in paths:
        if path == "-":
            yield _standard_input()
            continue
        found = False
        for item in discover([path]):
            if isinstance(item, PassedOver):
                raise UsageError(f"{item.path}: {item.reason}")
            found = True
            yield extract(item)
        if not found:
            raise UsageError(f"{path}: there is no template and no model file in it")


def _standard_input() -> FileResult:
    return bare_template(read_standard_input())


def read_standard_input() -> bytes:
    """All of standard input."""
    # Python has no standard input where the shell closed it.
    return sys.stdin.buffer.read() if sys.stdin is not None else b""


def print_lines(lines: Iterator[str], *, err: bool = False) -> None:
    """Print an answer line by line; `err`: on standard error."""
    for line in lines:
        click.echo(line, err=err)


def is_terminal() -> bool:
    """Whether a person looks at standard output."""
    return sys.stdout is not None and sys.stdout.isatty()


def write(text: str) -> None:
    """Write text to standard output as it is: not through click, which takes colours out of what goes into a file."""
    # Python has no standard output where the shell closed it.
    if sys.stdout is not None:
        sys.stdout.write(text)


def print_json(document: object) -> None:
    """Print a document, with escapes for all but ASCII where a person looks: a text must not drive the terminal."""
    write(json.dumps(document, ensure_ascii=is_terminal(), indent=2) + "\n")
