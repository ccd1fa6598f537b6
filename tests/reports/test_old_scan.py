"""A report of a scan that is not the newest."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Engine

from reports import write_report
from reports.overview import page_id, read_overview
from scanner.cli import run
from scanner.demo.collection import templates
from scanner.errors import UsageError
from scanner.results import Severity, StartCheck, Verdict, Verification
from scanner.store.writer import store_verifications
from tests.store import examples
from tests.store.examples import analysis, finding, template, unreadable, with_templates

FIRST = template(b"{{ messages[0].content }}")
SECOND = template(b"{{ messages[0].role }}")


@pytest.fixture
def two_scans(empty_engine: Engine) -> Engine:
    """Between the scans one file is replaced, one is gone, one has come, and one was torn."""
    found = finding(Severity.WARNING, "the old finding of a file", "no-template")
    starts = replace(analysis(FIRST.sha256), start=StartCheck(True, True))
    fails = replace(analysis(SECOND.sha256), start=examples.not_starting("no greetings"))
    first = [with_templates(f"/m/{name}.gguf", FIRST) for name in ("kept", "replaced", "gone", "torn")]
    writer = examples.writer(empty_engine)
    writer.begin(["/m"])
    for result in first:
        writer.add_file(result)
    writer.add_analysis(starts)
    writer.add_file_findings("/m/gone.gguf", [found])
    writer.finish("finished")
    writer.begin(["/m"])
    for result in (
        first[0],
        with_templates("/m/replaced.gguf", SECOND, fingerprint="2"),
        with_templates("/m/come.gguf", SECOND),
        unreadable("/m/torn.gguf"),
    ):
        writer.add_file(result)
    writer.add_analysis(fails)
    writer.finish("finished")
    return empty_engine


def test_the_overview_is_of_the_scan(two_scans: Engine) -> None:
    told = [Verification(held.sha256, examples.PROFILE, Verdict.EQUAL) for held in (FIRST, SECOND)]
    store_verifications(two_scans, told, now=examples.Clock()(), version="1")
    old, new = read_overview(two_scans, 1), read_overview(two_scans, 2)
    assert (old.scan.scan.id, old.newest) == (1, 2)
    assert (new.scan.scan.id, new.newest) == (2, None)
    names = ("gone", "kept", "replaced", "torn")
    assert old.held == {FIRST.sha256: frozenset((f"/m/{name}.gguf", "default") for name in names)}
    assert new.held == {
        FIRST.sha256: frozenset({("/m/kept.gguf", "default")}),
        SECOND.sha256: frozenset({("/m/come.gguf", "default"), ("/m/replaced.gguf", "default")}),
    }
    assert old.starts == {(f"/m/{name}.gguf", "default"): True for name in names}
    assert new.starts == {
        ("/m/kept.gguf", "default"): True,
        ("/m/come.gguf", "default"): False,
        ("/m/replaced.gguf", "default"): False,
    }
    assert (old.verified, new.verified) == ({"equal": 1}, {"equal": 2})
    assert ([one.path for one in old.file_findings], new.file_findings) == (["/m/gone.gguf"], ())
    assert old.changes == ()
    assert [(change.change, change.path) for change in new.changes] == [
        ("appeared", "/m/come.gguf"),
        ("gone", "/m/gone.gguf"),
        ("replaced", "/m/replaced.gguf"),
        ("gone", "/m/torn.gguf"),
    ]


def test_the_newest_state_is_of_all_sources_and_without_what_is_gone(two_scans: Engine) -> None:
    examples.record(two_scans, with_templates("/o/other.gguf", FIRST), sources=("/o",))
    newest = read_overview(two_scans)
    assert newest.newest is None
    places = {file.path: file.scan_id for file in newest.files}
    assert (places["/m/kept.gguf"], places["/o/other.gguf"]) == (2, 3)
    assert "/m/gone.gguf" not in places
    assert {file.path for file in read_overview(two_scans, 3).files} == {"/o/other.gguf"}


def test_a_scan_that_did_not_finish_has_a_report(two_scans: Engine, tmp_path: Path) -> None:
    writer = examples.writer(two_scans)
    running = writer.begin(["/m"])
    writer.add_file(with_templates("/m/come.gguf", FIRST, fingerprint="3"))
    writer.flush()
    for status in ("running", "interrupted"):
        if status == "interrupted":
            writer.finish("interrupted")
        overview = read_overview(two_scans, running)
        assert (overview.scan.scan.status, overview.newest) == (status, None)
        assert [(change.change, change.path) for change in overview.changes] == [("replaced", "/m/come.gguf")]
        summary = write_report(two_scans, tmp_path / status, now=examples.Clock(), scan_id=running)
        assert status in summary.index.read_text()


def test_the_pages_are_of_the_scan(two_scans: Engine, tmp_path: Path) -> None:
    pages = {}
    for scan in (1, 2):
        folder = tmp_path / str(scan)
        write_report(two_scans, folder, now=examples.Clock(), scan_id=scan)
        pages[scan] = {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*.html")}
    first, second = (f"templates/{page_id(held.sha256)}.html" for held in (FIRST, SECOND))
    assert [name in pages[1] for name in (first, second)] == [True, False]
    assert [name in pages[2] for name in (first, second)] == [True, True]
    assert "gone.gguf" in pages[1]["models.html"]
    assert "come.gguf" not in pages[1]["models.html"]
    assert "come.gguf" in pages[2]["models.html"]
    assert "gone.gguf" not in pages[2]["models.html"]
    assert "torn.gguf" in pages[2]["failures.html"]
    assert "torn.gguf" not in pages[1]["failures.html"]
    assert "the old finding of a file" in pages[1]["findings.html"]
    assert "the old finding of a file" not in pages[2]["findings.html"]
    assert "replaced.gguf" in pages[2]["changes.html"]
    assert "replaced.gguf" not in pages[1]["changes.html"]


def test_a_template_page_says_nothing_of_later_scans(two_scans: Engine, tmp_path: Path) -> None:
    examples.record(two_scans, with_templates("/m/later.gguf", FIRST))
    page = Path("templates", f"{page_id(FIRST.sha256)}.html")
    write_report(two_scans, tmp_path / "old", now=examples.Clock(), scan_id=2)
    write_report(two_scans, tmp_path / "new", now=examples.Clock())
    assert "later.gguf" not in (tmp_path / "old" / page).read_text()
    assert "later.gguf" in (tmp_path / "new" / page).read_text()
    # What held it before is told.
    assert "replaced.gguf" in (tmp_path / "old" / page).read_text()


def test_a_scan_that_is_not_there_has_no_report(two_scans: Engine, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no scan 7"):
        write_report(two_scans, tmp_path / "out", now=examples.Clock(), scan_id=7)
    assert not (tmp_path / "out").exists()


def test_the_command_line_reports_an_old_scan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    models, database = tmp_path / "models", str(tmp_path / "c.db")
    models.mkdir()
    sources = templates()
    for name in ("turns", "plain-chatml"):
        (models / f"{name}.jinja").write_bytes(sources[name])
    assert run(["scan", str(models), "--db", database, "--quiet"]) == 0
    (models / "turns.jinja").unlink()
    assert run(["scan", str(models), "--db", database, "--quiet"]) == 0
    for scan in ("1", "2"):
        assert run(["report", "--db", database, "--scan", scan, "-o", str(tmp_path / scan)]) == 0
    held = [(tmp_path / scan / "models.json").read_text() for scan in ("1", "2")]
    assert ["turns.jinja" in one for one in held] == [True, False]
    assert ["plain-chatml.jinja" in one for one in held] == [True, True]
    capsys.readouterr()
    for scan, said in (("3", "there is no scan 3"), ("0", "--scan"), ("9" * 30, "--scan"), ("one", "--scan")):
        assert run(["report", "--db", database, "--scan", scan, "-o", str(tmp_path / "none")]) == 2
        assert said in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_every_page_of_an_old_scan_says_so(two_scans: Engine, tmp_path: Path) -> None:
    write_report(two_scans, tmp_path / "old", now=examples.Clock(), scan_id=1)
    write_report(two_scans, tmp_path / "new", now=examples.Clock())
    for page in (tmp_path / "old").rglob("*.html"):
        assert page.read_text().count("This is scan 1 of 2026-11-29 12:00 UTC; the newest is scan 2.") == 1, page
    for page in (tmp_path / "new").rglob("*.html"):
        assert "the newest is scan" not in page.read_text(), page


def test_the_data_of_every_page_of_an_old_scan_says_so(two_scans: Engine, tmp_path: Path) -> None:
    write_report(two_scans, tmp_path / "old", now=examples.Clock(), scan_id=1)
    write_report(two_scans, tmp_path / "new", now=examples.Clock())
    told = {"id": 1, "started_at": "2026-11-29T12:00:00+00:00", "newest": 2}
    for page in (tmp_path / "old").rglob("*.html"):
        assert json.loads(page.with_suffix(".json").read_text())["old_scan"] == told, page
    for page in (tmp_path / "new").rglob("*.html"):
        assert "old_scan" not in json.loads(page.with_suffix(".json").read_text()), page
