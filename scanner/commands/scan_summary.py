"""`capscan scan --summary-json`: one line of JSON for whatever started the scan. `docs/scheduled.md` describes it."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from scanner import __version__
from scanner.commands.options import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE, write
from scanner.errors import CapscanError, UsageError
from scanner.results import Outcome, Severity
from scanner.silence import FoundIn, Sifted, Silences

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from scanner.scan import Begun
    from scanner.store.prune import Pruned
    from scanner.summary import Summary

FORMAT = 1
"""Grows when a key goes or comes to mean something else; new keys do not change it."""

CHANGES = ("appeared", "gone", "replaced")

STDOUT = "-"


@dataclass(frozen=True, slots=True)
class Found:
    """What a scan found, and its findings, parted into those that count and those that are silenced."""

    summary: Summary
    sifted: Sifted


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended; `why`: one line, None where all is well."""

    exit_code: int
    why: str | None = None


@dataclass(slots=True)
class Account:
    """A run of `capscan scan` as far as it has come."""

    sources: Sequence[str]
    profile: str
    silences: Silences = field(default_factory=lambda: Silences(""))
    engine: Engine | None = None
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    clock: float = field(default_factory=time.perf_counter)
    begun: Begun | None = None
    finished: bool = False
    found: Found | None = None
    pruned: Pruned | None = None
    report: Path | None = None

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        return time.perf_counter() - self.clock


def read_found(engine: Engine, scan: int, silences: Silences) -> Found:
    """What a scan found, from the database. Raises DatabaseError."""
    from scanner.store import queries
    from scanner.summary import read_summary

    held = queries.findings_of_scan(engine, scan)
    sifted = silences.sift(FoundIn(one.rule, one.severity, one.path, one.sha256) for one in held)
    return Found(read_summary(engine, scan), sifted)


def ending_of(error: BaseException) -> Ending:
    """How a run ends that this error ends."""
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return Ending(EXIT_INTERRUPTED, "interrupted; what was done is kept")
    if isinstance(error, UsageError | click.UsageError):
        return Ending(EXIT_USAGE, str(error))
    if isinstance(error, BrokenPipeError):
        return Ending(0)
    said = " ".join(str(error).split())
    known = isinstance(error, CapscanError | OSError)
    return Ending(EXIT_FAILED, said if known else f"{type(error).__name__}: {said}")


def document(account: Account, ending: Ending | None) -> dict[str, object]:
    """The summary as JSON-compatible data: always the same keys, null where a thing is not known, or not yet
    (`ending` None: the scan has only begun)."""
    from scanner.store.session import database_name

    return {
        "format": FORMAT,
        "capscan": __version__,
        "status": _status(account, ending),
        "exit_code": None if ending is None else ending.exit_code,
        "why": None if ending is None else ending.why,
        "database": None if account.engine is None else database_name(account.engine),
        "sources": list(account.sources),
        "profile": account.profile,
        "scan": None if account.begun is None else account.begun.scan,
        "resumed": [] if account.begun is None else list(account.begun.killed),
        "started": _iso(account.started),
        "finished": None if ending is None else _iso(datetime.now(UTC)),
        "seconds": round(account.seconds, 3),
        **_contents(account, ending),
        "pruned": None if account.pruned is None else _pruned(account.pruned),
        "report": None if account.report is None else str(account.report),
    }


def _status(account: Account, ending: Ending | None) -> str:
    if account.finished:
        return "finished"
    if account.begun is None:
        return "failed"
    return "running" if ending is None else "interrupted"


def _contents(account: Account, ending: Ending | None) -> dict[str, object]:
    """What is in the database of the scan; after an error it may not be there to be read."""
    found = account.found
    if found is None and ending is not None and account.begun is not None and account.engine is not None:
        with suppress(CapscanError):
            found = read_found(account.engine, account.begun.scan, account.silences)
    keys = ("files", "unchanged", "passed_over", "templates", "new_templates", "outcomes", "findings", "changes")
    if found is None:
        return dict.fromkeys(keys)
    seen = found.summary.scan
    severities = Counter({row.finding: row.severity for row in found.sifted.kept}.values())
    silenced = {one.row.finding for one in found.sifted.silenced}
    changes = Counter(change.change for change in found.summary.changes)
    values = (
        seen.scan.files_seen,
        seen.scan.files_unchanged,
        len(seen.scan.passed_over),
        seen.templates,
        seen.new_templates,
        {str(outcome): seen.files_by_outcome.get(outcome, 0) for outcome in Outcome},
        {**{str(one): severities[one] for one in Severity}, "silenced": len(silenced)},
        {**dict.fromkeys(CHANGES, 0), **changes},
    )
    return dict(zip(keys, values, strict=True))


def _pruned(pruned: Pruned) -> dict[str, int]:
    return {
        "scans": len(pruned.scans),
        "files": pruned.files,
        "templates": pruned.templates,
        "analyses": pruned.analyses,
    }


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


# -- where it goes -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SummaryFile:
    """`FILE`, `-` for standard output, or None for nowhere."""

    target: str | None

    @property
    def is_stdout(self) -> bool:
        """Whether the line is all that goes to standard output."""
        return self.target == STDOUT

    def check(self) -> None:
        """Raises UsageError where the file cannot be: better than after an hour."""
        if self.target in (None, STDOUT):
            return
        file = Path(self.target or "")
        if file.is_dir():
            raise UsageError(f"--summary-json {file}: this is a folder; name a file in it")
        if not file.parent.is_dir():
            raise UsageError(f"--summary-json {file}: the folder {file.parent} does not exist; make it first")

    def begin(self, account: Account) -> None:
        """Say in the file that the scan is running: if it is killed, nothing else will be said."""
        if not self.is_stdout:
            self._put(account, None)

    def end(self, account: Account, ending: Ending) -> None:
        """Say how it ended. Raises OSError."""
        self._put(account, ending)

    def _put(self, account: Account, ending: Ending | None) -> None:
        if self.target is None:
            return
        line = json.dumps(document(account, ending)) + "\n"
        if self.is_stdout:
            write(line)
        else:
            write_whole(Path(self.target), line)


def write_whole(file: Path, text: str) -> None:
    """Writes a file so that whoever reads it sees the old text or the new, never half of one. Raises OSError."""
    if file.exists() and not file.is_file():
        # A pipe or a device: there is nothing to put in its place.
        file.write_text(text, encoding="utf-8")
        return
    real = Path(os.path.realpath(file))
    unfinished = real.with_name(f".{real.name}.{os.getpid()}")
    try:
        with unfinished.open("w", encoding="utf-8") as opened:
            opened.write(text)
            opened.flush()
            os.fsync(opened.fileno())
        unfinished.replace(real)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
