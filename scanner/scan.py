"""One scan: discover → extract → unique templates → analyse → store. The parent process writes, workers compute."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Protocol

from sqlalchemy import Engine

from scanner import __version__
from scanner.discover import discover
from scanner.judge import FileFacts, VariantFacts, judge_file
from scanner.pipeline import ANALYSIS_VERSION, analyse_file, analyse_template, not_examined
from scanner.pool import DEFAULT_LIMITS, Lost, TaskLimits, WorkerPool
from scanner.results import FileResult, ModelFile, Outcome, PassedOver, TemplateResult
from scanner.store import queries
from scanner.store.migrate import ensure_current
from scanner.store.writer import ScanWriter


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
    """How to scan. `workers`: processes; `clock`: what the templates take for now, in seconds since the epoch."""

    workers: int
    profile: str
    clock: float | None = None
    limits: TaskLimits = DEFAULT_LIMITS


def utc_now() -> datetime:
    """The clock of the scans."""
    return datetime.now(UTC)


def run_scan(
    engine: Engine,
    paths: Sequence[str],
    options: ScanOptions,
    *,
    now: Callable[[], datetime] = utc_now,
    progress: Progress | None = None,
) -> int:
    """Scan `paths` into a database, which is created or upgraded first. Gives the number of the scan.

    After KeyboardInterrupt what was done is in the database, the scan is marked as interrupted, and the exception goes
    on. Raises DatabaseError where the database refuses.
    """
    ensure_current(engine, create=True)
    with ScanWriter(
        engine, now=now, version=__version__, profile=options.profile, analysis_version=ANALYSIS_VERSION
    ) as writer:
        scan = writer.begin(paths)
        try:
            with WorkerPool(options.workers, options.limits) as pool:
                Scan(writer, pool, engine, options, progress or NoProgress()).run(paths)
        except KeyboardInterrupt:
            writer.finish("interrupted")
            raise
        writer.finish("finished")
    return scan


class Scan:
    """The stages of one scan."""

    def __init__(
        self, writer: ScanWriter, pool: WorkerPool, engine: Engine, options: ScanOptions, progress: Progress
    ) -> None:
        self.writer = writer
        self.pool = pool
        self.engine = engine
        self.options = options
        self.progress = progress
        self.to_judge: list[FileResult] = []

    def run(self, paths: Sequence[str]) -> None:
        """All stages, in order."""
        self.progress.stage("files")
        for file, result in self.pool.map(analyse_file, self.changed_files(discover(paths))):
            self.keep_file(_file_result(file, result))
        self.progress.stage("templates")
        analyse = partial(_analyse, profile=self.options.profile, clock=self.options.clock)
        for (sha256, _), analysis in self.pool.map(analyse, self.writer.templates_without_analysis()):
            self.writer.add_analysis(_template_result(sha256, self.options.profile, analysis))
            self.progress.step()
        self.judge_files()

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
        """Record a file; one that a rule may have something to say about is judged at the end."""
        self.writer.add_file(result)
        self.progress.step()
        if len(result.templates) > 1 or result.outcome is Outcome.NO_TEMPLATE:
            self.to_judge.append(result)

    def judge_files(self) -> None:
        """The rules about files, now that their templates are analysed."""
        self.writer.flush()
        for result in self.to_judge:
            variants = [
                VariantFacts(template, queries.claims_of(self.engine, template.sha256, self.options.profile))
                for template in result.templates
            ]
            findings = judge_file(FileFacts(result.outcome, variants))
            if findings:
                self.writer.add_file_findings(result.file.path, findings)


def _analyse(task: tuple[str, bytes], *, profile: str, clock: float | None) -> TemplateResult:
    return analyse_template(task[1], profile=profile, now=clock)


def _file_result(file: ModelFile, result: FileResult | Lost) -> FileResult:
    if isinstance(result, Lost):
        return FileResult(file, Outcome.UNREADABLE, reason=f"not examined: reading it {result.reason}")
    return result


def _template_result(sha256: str, profile: str, result: TemplateResult | Lost) -> TemplateResult:
    if isinstance(result, Lost):
        return not_examined(sha256, profile, f"the analysis {result.reason}")
    return result
