"""`capscan scan`: files and folders into the database, and what was found."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import click

from scanner import answers
from scanner.commands.options import (
    EXIT_FAILED,
    EXIT_FINDINGS,
    database_hint,
    database_option,
    format_option,
    now_option,
    print_json,
    print_lines,
    profile_option,
    profiles_of,
)
from scanner.console import Bar
from scanner.errors import UsageError
from scanner.judge import ALL_RULES
from scanner.results import Severity
from scanner.silence import FoundIn, Sifted, Silences, reaches
from scanner.silence import load as load_silences


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@database_option
@profile_option
@now_option
@format_option("table", "json")
@click.option("--workers", type=click.IntRange(1, 256), default=os.cpu_count() or 1, show_default=True)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.1),
    default=30.0,
    show_default=True,
    help="Seconds for one file or template.",
)
@click.option("--memory", type=click.IntRange(min=256), default=2048, show_default=True, help="MiB for one worker.")
@click.option(
    "--fail-on",
    "fail_on",
    metavar="error|warning|note|RULE",
    help="Exit with 1 on findings of this severity or worse, or of this rule.",
)
@click.option("--quiet", is_flag=True, help="No progress bar.")
def scan(
    paths: tuple[str, ...],
    database: str,
    profile: str,
    clock: float | None,
    form: str,
    workers: int,
    timeout: float,
    memory: int,
    fail_on: str | None,
    quiet: bool,
) -> int:
    """Scan files and folders into the database and say what was found.

    Files that have not changed since the last scan are not opened again.
    """
    from scanner.pool import TaskLimits
    from scanner.scan import ScanOptions, run_scan
    from scanner.store.session import open_database

    _check_fail_on(fail_on)
    silences = load_silences(Path.cwd())
    options = ScanOptions(workers, profiles_of(profile), clock, TaskLimits(timeout, memory * 1024**2))
    engine = open_database(database)
    bar = Bar(quiet=quiet)
    started = time.perf_counter()
    try:
        with _sigterm_as_interrupt():
            number = run_scan(engine, paths, options, progress=bar)
    finally:
        bar.close()
    sifted = _sifted(database, number, silences)
    missing = _print_summary(database, number, form, time.perf_counter() - started, sifted)
    if missing:
        return EXIT_FAILED
    reaching = [row for row in sifted.kept if fail_on and reaches([row], fail_on)]
    print_lines(answers.failing_lines(fail_on or "", reaching), err=True)
    return EXIT_FINDINGS if reaching else 0


@contextmanager
def _sigterm_as_interrupt() -> Iterator[None]:
    """A service manager ends a scan with SIGTERM: like Ctrl-C, that keeps what was done."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _check_fail_on(fail_on: str | None) -> None:
    known = {*Severity, *[rule.slug for rule in ALL_RULES]}
    if fail_on is not None and fail_on not in known:
        raise UsageError(f"--fail-on {fail_on}: neither error, warning, note nor a rule (capscan rules lists them)")


def _sifted(database: str, scan: int, silences: Silences) -> Sifted:
    """The findings in the scan's own files, parted into those that count and those that are silenced."""
    from scanner.store import queries
    from scanner.store.session import open_database

    found = queries.findings_of_scan(open_database(database), scan)
    return silences.sift(FoundIn(held.rule, held.severity, held.path, held.sha256) for held in found)


def _print_summary(database: str, number: int, form: str, seconds: float, sifted: Sifted) -> bool:
    """Print the summary; gives whether a path that was asked for does not exist."""
    from scanner.store.session import open_database
    from scanner.summary import read_summary, summary_document, summary_lines

    summary = read_summary(open_database(database), number)
    if form == "json":
        silenced = [{**asdict(one.row), "reason": one.reason} for one in sifted.silenced]
        print_json({**summary_document(summary), "silenced": silenced})
    else:
        print_lines(summary_lines(summary, seconds, database_hint(database), silenced=sifted.line()))
    given = summary.scan.scan.sources
    return any(not Path(path).exists() for path in given)
