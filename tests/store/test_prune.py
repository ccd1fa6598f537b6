"""Removing old scans: what is left says the same of the present."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import pytest
from sqlalchemy import Engine, text

from scanner.cli import run
from scanner.results import Severity
from scanner.store import queries
from scanner.store.prune import prune, vacuum
from scanner.store.session import connection_scope
from scanner.store.writer import ScanWriter
from tests.store.examples import PROFILE, VERSION, Clock, analysis, finding, template, with_templates

Rows = list[tuple[object, ...]]


class History:
    """Scans on one day after another."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.clock = Clock()
        # Before the present, by which the command line reckons.
        self.clock.moment = datetime(2020, 1, 1, tzinfo=UTC)

    def scan(
        self,
        files: Mapping[str, bytes],
        *,
        sources: Sequence[str] = ("/models",),
        status: Literal["finished", "interrupted"] = "finished",
        version: str = VERSION,
    ) -> int:
        """A scan that sees these files with these templates, a day after the one before."""
        self.clock.move(24 * 60 * 60)
        writer = ScanWriter(self.engine, now=self.clock, version=version, profile=PROFILE)
        number = writer.begin(list(sources))
        for path, source in files.items():
            fingerprint = hashlib.sha256(source).hexdigest()
            writer.add_file(with_templates(path, template(source), fingerprint=fingerprint))
        for sha256, _ in list(writer.templates_without_analysis()):
            writer.add_analysis(analysis(sha256, "tools", findings=(finding(Severity.WARNING, version),)))
        for path in files:
            writer.add_file_findings(path, [finding(Severity.NOTE, "of the file")])
        writer.finish(status)
        return number

    def days_ago(self, days: float) -> datetime:
        return self.clock.moment - timedelta(days=days)

    def rows(self, sql: str) -> Rows:
        with connection_scope(self.engine) as connection:
            return sorted((tuple(row) for row in connection.execute(text(sql))), key=repr)

    def numbers(self) -> list[int]:
        return [scan.id for scan in reversed(queries.scans(self.engine))]

    def present(self) -> dict[str, Rows]:
        """What the views for people say, and what the newest scans saw and found."""
        views = ("latest_files", "changes", "outliers", "flag_distribution")
        found = {view: self.rows(f"SELECT * FROM {view}") for view in views}  # noqa: S608 - names from above
        newest = self.numbers()[-1]
        found["findings"] = [(held,) for held in queries.findings_of_scan(self.engine, newest)]
        found["changes of the scan"] = [(change,) for change in queries.changes_of_scan(self.engine)]
        return found


@pytest.fixture
def history(engine: Engine) -> History:
    return History(engine)


def test_the_present_stays_as_it_is(history: History) -> None:
    for day in range(10):
        history.scan({"/models/a": b"a%d" % (day // 2), "/models/b": b"b", "/models/1": b"c"})
        history.scan({"/other/a": b"a%d" % day}, sources=["/other"])
    history.scan({"/once": b"once"}, sources=["/once"])
    present = history.present()
    assert present["changes"] == []
    history.scan({"/models/a": b"other", "/models/c": b"b", "/models/1": b"c"})
    present = history.present()
    assert len(present["changes"]) == 3
    pruned = prune(history.engine, older_than=history.days_ago(0))
    # The last of /models and of /other with the ones before, and the only one of /once.
    assert history.numbers() == [18, 19, 20, 21, 22]
    assert pruned.scans == tuple(range(1, 18))
    assert pruned.files == 0
    assert history.present() == present


def test_only_what_is_too_old_goes(history: History) -> None:
    for _ in range(6):
        history.scan({"/models/a": b"a"})
    assert prune(history.engine, older_than=history.days_ago(100)).scans == ()
    assert prune(history.engine, older_than=history.days_ago(3.5)).scans == (1, 2)
    assert prune(history.engine, older_than=history.days_ago(0), keep=3).scans == (3,)
    assert prune(history.engine, older_than=history.days_ago(-1), keep=0).scans == (4,)
    assert history.numbers() == [5, 6]


def test_what_no_scan_knows_goes_with_the_scans(history: History) -> None:
    history.scan({"/models/a": b"old", "/models/gone": b"gone"})
    for _ in range(2):
        history.scan({"/models/a": b"new"})
    pruned = prune(history.engine, older_than=history.days_ago(0))
    assert (pruned.scans, pruned.files, pruned.templates, pruned.analyses) == ((1,), 1, 2, 2)
    assert history.rows("SELECT path FROM model_files") == [("/models/a",)]
    assert history.rows("SELECT sha256 FROM templates") == [(hashlib.sha256(b"new").hexdigest(),)]
    for table in ("findings", "probe_runs", "behaviours"):
        of_others = "WHERE analysis_id IS NOT NULL AND analysis_id NOT IN (SELECT id FROM analyses)"
        assert history.rows(f"SELECT * FROM {table} {of_others}") == []  # noqa: S608 - a name from above


def test_analyses_that_newer_ones_stand_for(history: History) -> None:
    history.scan({"/models/a": b"a"}, version="1")
    history.scan({"/models/a": b"a"}, version="2")
    history.scan({"/models/a": b"a"}, version="3")
    pruned = prune(history.engine, older_than=history.days_ago(0))
    assert (pruned.scans, pruned.templates, pruned.analyses) == ((1,), 0, 1)
    # The scan before says what it found by the version 2.
    assert history.rows("SELECT capscan_version FROM analyses") == [("2",), ("3",)]


def test_an_interrupted_scan_stays_while_the_next_one_needs_it(history: History) -> None:
    history.scan({"/models/a": b"a"}, status="interrupted")
    history.scan({"/models/a": b"a"}, status="interrupted")
    assert prune(history.engine, older_than=history.days_ago(-1)).scans == ()
    history.scan({"/models/a": b"a"})
    history.scan({"/models/a": b"a", "/models/b": b"b"}, status="interrupted")
    assert prune(history.engine, older_than=history.days_ago(-1)).scans == (1, 2)
    assert history.numbers() == [3, 4]


def test_a_file_that_two_sources_saw_is_not_taken_for_what_it_was(history: History) -> None:
    history.scan({"/models/sub/a": b"old"})
    history.scan({"/models/sub/a": b"new"}, sources=["/models/sub"])
    for _ in range(2):
        history.scan({"/models/sub/b": b"b"}, sources=["/models/sub"])
    present = history.present()
    assert prune(history.engine, older_than=history.days_ago(-1)).scans == ()
    assert history.present() == present


def test_a_dry_run_counts_and_keeps_all(history: History) -> None:
    for day in range(4):
        history.scan({"/models/a": b"a%d" % day})
    tables = ("scans", "appearances", "templates", "analyses", "findings", "model_files")
    before = [history.rows(f"SELECT * FROM {table}") for table in tables]  # noqa: S608 - names from above
    tried = prune(history.engine, older_than=history.days_ago(0), dry_run=True)
    assert [history.rows(f"SELECT * FROM {table}") for table in tables] == before  # noqa: S608 - as above
    assert tried == prune(history.engine, older_than=history.days_ago(0))
    assert tried.scans == (1, 2)


def test_room_is_given_back(history: History) -> None:
    for day in range(4):
        history.scan({"/models/a": b"%d" % day * 100_000})
    prune(history.engine, older_than=history.days_ago(0))
    present = history.present()
    vacuum(history.engine)
    assert history.present() == present


def test_the_command(sqlite_engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    history = History(sqlite_engine)
    for day in range(5):
        history.scan({"/models/a": b"%d" % day * 200_000, "/models/b": b"b"})
    database = str(sqlite_engine.url.database)
    sqlite_engine.dispose()
    size = Path(database).stat().st_size
    command = ["db", "prune", "--db", database, "--max-age", "0"]
    said = "remove 3 scans older than 0 days, and 3 templates, 3 analyses that no other scan knows"
    assert run([*command, "--dry-run", "--vacuum"]) == 0
    assert capsys.readouterr().out == f"Would {said}\n"
    assert Path(database).stat().st_size == size
    assert run([*command, "--vacuum"]) == 0
    assert capsys.readouterr().out == f"Removed{said.removeprefix('remove')}\n"
    assert Path(database).stat().st_size < size - 500_000
    assert run([*command, "--keep", "1"]) == 2
    capsys.readouterr()
    assert history.numbers() == [4, 5]
