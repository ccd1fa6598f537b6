"""Writing: only what changed, only our own files, always the same bytes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlalchemy import Engine

from reports import write_report
from reports.folder import MANIFEST
from scanner.errors import UsageError
from tests.reports.conftest import PLAIN, Written, fill, sha_of
from tests.store import examples


def stamps(folder: Path) -> dict[str, tuple[int, int]]:
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != MANIFEST]
    return {str(path): (path.stat().st_ino, path.stat().st_mtime_ns) for path in files}


def test_unchanged_pages_are_not_written_again(empty_engine: Engine, tmp_path: Path) -> None:
    fill(empty_engine)
    clock = examples.Clock()
    first = write_report(empty_engine, tmp_path / "out", now=clock)
    before = stamps(tmp_path / "out")
    clock.move(3600)
    again = write_report(empty_engine, tmp_path / "out", now=clock)
    assert again.unchanged == again.pages == first.pages
    assert stamps(tmp_path / "out") == before


def test_a_new_scan_of_the_same_files_changes_only_the_index(empty_engine: Engine, tmp_path: Path) -> None:
    fill(empty_engine)
    write_report(empty_engine, tmp_path / "out", now=examples.Clock())
    fill(empty_engine)
    again = write_report(empty_engine, tmp_path / "out", now=examples.Clock())
    # The third is of the template that the second scan analysed anew: its runs took another time.
    assert again.pages - again.unchanged <= 1 + 4


def test_the_same_database_gives_the_same_bytes(report: Written, tmp_path: Path) -> None:
    write_report(report.engine, tmp_path / "other", now=examples.Clock())
    for path in report.folder.rglob("*.*"):
        assert (tmp_path / "other" / path.relative_to(report.folder)).read_bytes() == path.read_bytes()


def test_pages_that_are_no_longer_needed_are_removed_and_nothing_else(empty_engine: Engine, tmp_path: Path) -> None:
    out = tmp_path / "out"
    fill(empty_engine)
    write_report(empty_engine, out, now=examples.Clock())
    (out / "templates" / "mine.txt").write_text("mine")
    (tmp_path / "outside.html").write_text("outside")
    manifest = json.loads((out / MANIFEST).read_text())
    manifest["files"] += ["../outside.html", "templates/mine.txt", "/etc/hostname", 7]
    (out / MANIFEST).write_text(json.dumps(manifest))
    stale = out / "templates" / f"{sha_of(PLAIN)[:16]}.html"
    for path in ("/models/plain.gguf", "/models/again.gguf"):
        examples.record(empty_engine, examples.without_template(path))
    summary = write_report(empty_engine, out, now=examples.Clock())
    assert summary.removed == 2
    assert not stale.exists()
    assert not stale.with_suffix(".json").exists()
    assert (out / "templates" / "mine.txt").read_text() == "mine"
    assert (tmp_path / "outside.html").exists()


def test_nothing_is_removed_through_a_link(empty_engine: Engine, tmp_path: Path) -> None:
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "victim.html").write_text("precious")
    out.mkdir()
    (out / "capabilities").mkdir()
    (out / "static").symlink_to(elsewhere)
    (out / MANIFEST).write_text(json.dumps({"made_by": "capscan report", "files": ["static/victim.html"]}))
    fill(empty_engine)
    write_report(empty_engine, out, now=examples.Clock())
    assert (elsewhere / "victim.html").read_text() == "precious"


def test_a_file_of_someone_else_is_not_overwritten(empty_engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "index.html").write_text("my home page")
    fill(empty_engine)
    with pytest.raises(UsageError, match=r"index\.html was not written by a report"):
        write_report(empty_engine, tmp_path / "out", now=examples.Clock())
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["index.html"]


@pytest.mark.parametrize(
    "content", ["", "[]", '{"made_by": "capscan report", "files": 3}', '{"files": ["index.html"]}']
)
def test_a_manifest_that_makes_no_sense_claims_nothing(empty_engine: Engine, tmp_path: Path, content: str) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / MANIFEST).write_text(content)
    fill(empty_engine)
    assert write_report(empty_engine, tmp_path / "out", now=examples.Clock()).removed == 0


def test_without_a_scan_there_is_no_report(empty_engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no scan"):
        write_report(empty_engine, tmp_path / "out", now=examples.Clock())
    assert not (tmp_path / "out").exists()


def test_a_scan_that_found_nothing_has_a_report(empty_engine: Engine, tmp_path: Path) -> None:
    examples.record(empty_engine)
    summary = write_report(empty_engine, tmp_path / "out", now=examples.Clock())
    assert summary.pages == 18
    assert "0 model files" in summary.index.read_text()


def test_two_profiles_stand_side_by_side(empty_engine: Engine, tmp_path: Path) -> None:
    sha256 = sha_of(PLAIN)
    examples.record(
        empty_engine,
        examples.with_templates("/models/a.gguf", examples.template(PLAIN)),
        analyses=(examples.analysis(sha256, "tools"), examples.analysis(sha256, profile="b9000")),
    )
    write_report(empty_engine, tmp_path / "out", now=examples.Clock())
    page = (tmp_path / "out" / "templates" / f"{sha256[:16]}.html").read_text()
    assert "profile <b>b11549</b>" in page
    assert "Flags by build of llama.cpp" in page
    assert "b9000" in (tmp_path / "out" / "index.html").read_text()
