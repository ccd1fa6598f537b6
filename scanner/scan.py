"""One scan: discover → extract → unique templates → analyse → store. The parent process writes, workers compute."""

from __future__ import annotations

import os.path
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Protocol

from sqlalchemy import Engine

from scanner import __version__
from scanner.discover import discover
from scanner.errors import DatabaseError
from scanner.judge import FileFacts, VariantFacts, judge_file
from scanner.pipeline import ANALYSIS_VERSION, analyse_file, analyse_profiles, not_examined
from scanner.pool import DEFAULT_LIMITS, Lost, TaskLimits, WorkerPool
from scanner.results import ChatTemplate, FileResult, ModelFile, Outcome, PassedOver, TemplateResult
from scanner.store import queries
from scanner.store.lock import DatabaseLock, database_lock
from scanner.store.migrate import ensure_current
from scanner.store.writer import ScanWriter, close_killed_scans
from scanner.stores import StoreSource


class Progress(Protocol):
    """Told how far a scan is."""

    def stage(self, name: str, total: int | None = None) -> None:
        """A stage begins; `total` steps, if known."""

    def step(self) -> None:
        """One file or template is done."""


class NoProgress:
    """Says nothing."""

    def stage(self, name: str, total: int | None = None) -> None:
        """Nothing."""

    def step(self) -> None:
        """Nothing."""


@dataclass(frozen=True, slots=True)
class ScanOptions:
    """How to scan. `workers`: processes; `profiles`: engine profiles, of which the scan's summary shows the first;
    `clock`: what the templates take for now, in seconds since the epoch."""

    workers: int
    profiles: tuple[str, ...]
    clock: float | None = None
    limits: TaskLimits = DEFAULT_LIMITS


def utc_now() -> datetime:
    """The clock of the scans."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Begun:
    """The number of a scan that has begun, and of those that had been killed: what they did is not done again."""

    scan: int
    killed: tuple[int, ...]


def run_scan(
    engine: Engine,
    sources: Sequence[str | StoreSource],
    options: ScanOptions,
    *,
    now: Callable[[], datetime] = utc_now,
    progress: Progress | None = None,
    lock: DatabaseLock | None = None,
    begun: Callable[[Begun], None] | None = None,
    asked: Sequence[str] | None = None,
    whole: bool = True,
) -> int:
    """Scan `sources` into a database, which is created or upgraded first. Gives the number of the scan.

    `asked` is what the scan is known by, where that is not the sources themselves: scans that were asked for the same
    are compared. Not `whole`: something is not there that was asked for, a disk perhaps that is not mounted, so what is
    not seen is not gone, and the scan counts as interrupted.

    `lock` shows that the caller holds the lock of the database; without it the scan takes it. `begun` is told as soon
    as the scan has a number.

    After KeyboardInterrupt what was done is in the database, the scan is marked as interrupted, and the exception goes
    on. A scan that was killed is marked so by the next one. Raises DatabaseError where the database refuses, and
    LockedError while another process scans into it.
    """
    if lock is None:
        with database_lock(engine, "scan", now=now) as lock:
            return run_scan(
                engine,
                sources,
                options,
                now=now,
                progress=progress,
                lock=lock,
                begun=begun,
                asked=asked,
                whole=whole,
            )
    ensure_current(engine, create=True)
    killed = close_killed_scans(engine, now=now())
    with ScanWriter(
        engine, now=now, version=__version__, profile=options.profiles[0], analysis_version=ANALYSIS_VERSION
    ) as writer:
        scan = writer.begin(known_by(sources) if asked is None else asked)
        try:
            if begun is not None:
                begun(Begun(scan, killed))
            with WorkerPool(options.workers, options.limits) as pool:
                Scan(scan, writer, pool, engine, options, progress or NoProgress()).run(sources)
        except BaseException:
            # Whatever went wrong, it must not hide behind a second error.
            with suppress(DatabaseError):
                writer.finish("interrupted")
            raise
        writer.finish("finished" if whole else "interrupted")
    return scan


def known_by(sources: Iterable[str | StoreSource]) -> list[str]:
    """What a scan of these sources is known by: the same places are the same scan, in whatever order and from whatever
    folder they are given."""
    # The text of a path, which may be anything.
    return sorted({os.path.abspath(one) if isinstance(one, str) else str(one) for one in sources})  # noqa: PTH100


class Scan:
    """The stages of one scan."""

    def __init__(
        self,
        number: int,
        writer: ScanWriter,
        pool: WorkerPool,
        engine: Engine,
        options: ScanOptions,
        progress: Progress,
    ) -> None:
        self.number = number
        self.writer = writer
        self.pool = pool
        self.engine = engine
        self.options = options
        self.progress = progress
        self.lost: set[str] = set()

    def run(self, sources: Sequence[str | StoreSource]) -> None:
        """All stages, in order."""
        self.progress.stage("files")
        for file, result in self.pool.map(analyse_file, self.changed_files(discover(sources))):
            self.keep_file(_file_result(file, result))
        self.progress.stage("templates")
        for profile in self.options.profiles:
            self.analyse_templates(profile)
        self.judge_files()

    def analyse_templates(self, profile: str) -> None:
        """All templates that lack an analysis under a profile, under every profile of the scan."""
        profiles = self.options.profiles
        analyse = partial(_analyse, profiles=profiles, clock=self.options.clock)
        waiting = (task for task in self.writer.templates_without_analysis(profile) if task[0] not in self.lost)
        for (sha256, _), results in self.pool.map(analyse, waiting):
            if isinstance(results, Lost):
                self.lost.add(sha256)
            for result in _template_results(sha256, profiles, results):
                self.writer.add_analysis(result)
            self.progress.step()

    def changed_files(self, found: Iterable[ModelFile | PassedOver]) -> Iterator[ModelFile]:
        """What has to be opened; what was passed over or has not changed is recorded on the way."""
        for item in found:
            if isinstance(item, PassedOver):
                self.writer.add_passed_over(item)
            elif self.writer.file_unchanged(item):
                self.progress.step()
            else:
                yield item

    def keep_file(self, result: FileResult) -> None:
        """Record a file."""
        self.writer.add_file(result)
        self.progress.step()

    def judge_files(self) -> None:
        """The rules about files, on all that this scan saw, now that their templates are analysed."""
        self.writer.flush()
        for held in queries.held_in_scan(self.engine, self.number, self.options.profiles[0]):
            variants = [
                VariantFacts(ChatTemplate(variant.variant, b"", ""), variant.outcome, variant.capabilities, variant.bos)
                for variant in held.variants
            ]
            self.writer.add_file_findings(
                held.path, judge_file(FileFacts(held.outcome, variants, held.bos, held.notes))
            )


def _analyse(task: tuple[str, bytes], *, profiles: tuple[str, ...], clock: float | None) -> tuple[TemplateResult, ...]:
    return analyse_profiles(task[1], profiles, now=clock)


def _file_result(file: ModelFile, result: FileResult | Lost) -> FileResult:
    if isinstance(result, Lost):
        return FileResult(file, Outcome.UNREADABLE, reason=f"not examined: reading it {result.reason}")
    return result


def _template_results(
    sha256: str, profiles: tuple[str, ...], results: tuple[TemplateResult, ...] | Lost
) -> tuple[TemplateResult, ...]:
    if isinstance(results, Lost):
        return tuple(not_examined(sha256, profile, f"the analysis {results.reason}") for profile in profiles)
    return results
