"""`capscan scan`: files and folders into the database, and what was found."""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from scanner import answers
from scanner.commands.db import oldest, pruned_lines
from scanner.commands.diff import CHANGE, changes_since_last
from scanner.commands.options import (
    EXIT_FAILED,
    EXIT_FINDINGS,
    Finite,
    database_hint,
    database_option,
    format_option,
    max_age_option,
    now_option,
    print_json,
    print_lines,
    profile_option,
    profiles_of,
    wait_option,
)
from scanner.commands.report import write_report_of
from scanner.commands.scan_summary import Account, Ending, Found, SummaryFile, ending_of, read_found
from scanner.commands.sources import ALL, is_store, is_there, store_option, stores_of
from scanner.console import Bar, visible
from scanner.errors import UsageError
from scanner.judge import ALL_RULES
from scanner.results import Severity
from scanner.silence import load as load_silences
from scanner.silence import reaches

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from scanner.scan import Begun, ScanOptions
    from scanner.store.lock import DatabaseLock
    from scanner.stores import StoreSource


EVERY_STORE = "all stores"
"""What a scan of `--store all` is known by: stores come and go, and the next scan is compared with it all the same."""


@dataclass(frozen=True, slots=True)
class Request:
    """What the command line asks for, besides how to scan. `every_store`: `--store all`, whatever stores that are."""

    sources: tuple[str | StoreSource, ...]
    every_store: bool
    database: str
    form: str
    fail_on: tuple[str, ...]
    quiet: bool
    wait: float
    report: Path | None
    prune: bool
    max_age: float | None
    summary: SummaryFile

    @property
    def is_told(self) -> bool:
        """Whether a person reads standard output; else it is JSON and nothing else."""
        return self.form == "table" and not self.summary.is_stdout


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@store_option
@database_option
@profile_option
@now_option
@format_option("table", "json")
@click.option("--workers", type=click.IntRange(1, 256), default=os.cpu_count() or 1, show_default=True)
@click.option(
    "--timeout",
    type=Finite(min=0.1),
    default=30.0,
    show_default=True,
    help="Seconds for one file or template.",
)
@click.option("--memory", type=click.IntRange(min=256), default=2048, show_default=True, help="MiB for one worker.")
@click.option(
    "--fail-on",
    "fail_on",
    multiple=True,
    metavar="error|warning|note|RULE|change",
    help="Exit with 1 on findings of this severity or worse, or of this rule; change: on any since the last scan. May "
    "be given several times.",
)
@wait_option
@click.option(
    "--report",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write the report, as `capscan report` does.",
)
@click.option("--prune", is_flag=True, help="Remove old scans afterwards, as `capscan db prune` does.")
@max_age_option
@click.option(
    "--summary-json",
    "summary_json",
    metavar="FILE|-",
    help="Write one line of JSON about the scan, however it ends; to standard output, it is all that is written there.",
)
@click.option("--quiet", is_flag=True, help="No progress bar (as where standard error is no terminal).")
def scan(
    paths: tuple[str, ...],
    stores: tuple[str, ...],
    database: str,
    profile: str,
    clock: float | None,
    form: str,
    workers: int,
    timeout: float,
    memory: int,
    fail_on: tuple[str, ...],
    wait: float,
    report: Path | None,
    prune: bool,
    max_age: float | None,
    summary_json: str | None,
    quiet: bool,
) -> int:
    """Scan files, folders and stores of models into the database and say what was found.

    Files that have not changed since the last scan are not opened again. A scan that was interrupted or killed is
    completed by the next one. One scan at a time works on a database.
    """
    from scanner.pool import TaskLimits
    from scanner.scan import ScanOptions

    summary = SummaryFile(summary_json)
    summary.check()
    sources: tuple[str | StoreSource, ...] = (*stores_of(stores, os.environ, Path.home()), *paths)
    if not sources:
        raise UsageError("nothing to scan: give a PATH or --store")
    request = Request(sources, ALL in stores, database, form, fail_on, quiet, wait, report, prune, max_age, summary)
    options = ScanOptions(workers, profiles_of(profile), clock, TaskLimits(timeout, memory * 1024**2))
    account = Account([str(source) for source in sources], options.profiles[0])
    try:
        with _sigterm_as_interrupt():
            ending = _run(request, options, account)
    except BaseException as error:
        # A file that cannot be written must not hide what went wrong.
        with suppress(OSError):
            summary.end(account, ending_of(error))
        raise
    finally:
        # SQLite then takes the log into the file, which may be read where nothing can be written.
        if account.engine is not None:
            account.engine.dispose()
    summary.end(account, ending)
    return ending.exit_code


def _run(request: Request, options: ScanOptions, account: Account) -> Ending:
    from scanner.store.lock import database_lock
    from scanner.store.session import open_database

    _check_options(request)
    account.silences = load_silences(Path.cwd())
    engine = account.engine = open_database(request.database)
    with database_lock(engine, "scan", wait=request.wait) as lock:
        number = _scan(engine, request, options, account, lock)
        account.finished = True
        found = account.found = read_found(engine, number, account.silences)
        _print_summary(request, found, account)
        missing = [str(source) for source in request.sources if not is_there(source)]
        _follow_up(engine, request, account, prune=request.prune and not missing)
    print_lines((f"capscan: {visible(path)}: there is no such file or folder" for path in missing), err=True)
    if missing:
        return Ending(EXIT_FAILED, f"{missing[0]}: there is no such file or folder")
    endings = [_differing(engine, number) if word == CHANGE else _judged(word, found) for word in request.fail_on]
    return next((ending for ending in endings if ending.exit_code), Ending(0))


def _check_options(request: Request) -> None:
    """Raises UsageError."""
    known = {*Severity, CHANGE, *[rule.slug for rule in ALL_RULES]}
    if unknown := sorted(set(request.fail_on) - known):
        raise UsageError(
            f"--fail-on {unknown[0]}: neither error, warning, note, change nor a rule (capscan rules lists them)"
        )
    if request.max_age is not None and not request.prune:
        raise UsageError("--max-age needs --prune")
    if request.summary.is_stdout and request.form != "table":
        raise UsageError(f"--summary-json - and --format {request.form} both want standard output")


def _scan(engine: Engine, request: Request, options: ScanOptions, account: Account, lock: DatabaseLock) -> int:
    from scanner.scan import known_by, run_scan

    def begun(what: Begun) -> None:
        account.begun = what
        request.summary.begin(account)

    bar = Bar(quiet=request.quiet)
    try:
        asked = known_by(one for one in request.sources if not (request.every_store and is_store(one)))
        return run_scan(
            engine,
            request.sources,
            options,
            progress=bar,
            lock=lock,
            begun=begun,
            asked=[*([EVERY_STORE] if request.every_store else ()), *asked],
            whole=all(is_there(source) for source in request.sources),
        )
    finally:
        bar.close()


def _follow_up(engine: Engine, request: Request, account: Account, *, prune: bool) -> None:
    """Remove old scans and write the report, while no other scan can begin."""
    from scanner.store.prune import prune as prune_scans

    if prune:
        account.pruned = prune_scans(engine, older_than=oldest(request.max_age))
        if request.is_told:
            print_lines(pruned_lines(account.pruned, request.max_age))
    if request.report is not None:
        with nullcontext() if request.is_told else redirect_stdout(io.StringIO()):
            account.report = write_report_of(request.database, request.report)


def _differing(engine: Engine, number: int) -> Ending:
    """Whether this scan differs from the one before it of the same sources; says how."""
    changes = changes_since_last(engine, number)
    if changes is None:
        return Ending(0)
    click.echo(f"capscan: --fail-on {CHANGE}: {changes} (capscan diff)", err=True)
    return Ending(EXIT_FINDINGS, f"changed since the last scan: {changes}")


def _judged(fail_on: str, found: Found) -> Ending:
    """Whether there are findings that one word of `--fail-on` is about; says which."""
    reaching = [row for row in found.sifted.kept if reaches([row], fail_on)]
    print_lines(answers.failing_lines(fail_on, reaching), err=True)
    if not reaching:
        return Ending(0)
    count = len({row.finding for row in reaching})
    return Ending(EXIT_FINDINGS, f"findings at or above --fail-on {fail_on}: {count}")


@contextmanager
def _sigterm_as_interrupt() -> Iterator[None]:
    """A service manager ends a scan with SIGTERM: like Ctrl-C, that keeps what was done."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _print_summary(request: Request, found: Found, account: Account) -> None:
    from scanner.summary import summary_document, summary_lines

    if request.form == "json":
        silenced = [{**asdict(one.row), "reason": one.reason} for one in found.sifted.silenced]
        print_json({**summary_document(found.summary), "silenced": silenced})
    elif request.is_told:
        print_lines(_resumed_lines(account))
        hint = database_hint(request.database)
        lines = summary_lines(
            found.summary,
            account.seconds,
            hint,
            silenced=found.sifted.line(),
            offers_report=request.report is None,
        )
        print_lines(lines)


def _resumed_lines(account: Account) -> Iterator[str]:
    for number in account.begun.killed if account.begun is not None else ():
        yield f"Scan {number} had been killed: what it did is kept, and was not done again"
