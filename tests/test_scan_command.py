"""`capscan scan` as cron, systemd and Kubernetes run it: killed, resumed, refused, and accounted for."""

# The SQL here is made of names that stand in this file and in the schema.
# ruff: noqa: S608

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from scanner.cli import run
from scanner.commands.scan_summary import write_whole
from scanner.demo.collection import templates
from scanner.store.lock import database_lock
from scanner.store.session import open_database
from tests.gguf_builder import write_gguf
from tests.killing import PATIENCE, ask, descendants, is_alive, kill_group, start, until

SUMMARY_KEYS = [
    "format",
    "capscan",
    "status",
    "exit_code",
    "why",
    "database",
    "sources",
    "profile",
    "scan",
    "resumed",
    "started",
    "finished",
    "seconds",
    "files",
    "unchanged",
    "passed_over",
    "templates",
    "new_templates",
    "outcomes",
    "findings",
    "changes",
    "pruned",
    "report",
]

SOURCES = [templates()[name].decode() for name in ("turns", "plain-chatml", "header-ids")]


def make_models(folder: Path, count: int) -> Path:
    """So many models with a template each, none like another, and one that is no model."""
    folder.mkdir(exist_ok=True)
    for number in range(count):
        write_gguf(folder / f"{number:03}.gguf", f"{SOURCES[number % len(SOURCES)]}{{# {number} #}}")
    (folder / "broken.gguf").write_bytes(b"GGUF\x03\0\0\0")
    return folder


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_models(tmp_path_factory.mktemp("few") / "models", 3)


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def scan(*arguments: str | Path) -> int:
    return run(["scan", "--db", "c.db", "--workers", "1", "--now", "0", *map(str, arguments)])


def told(file: str = "s.json") -> dict[str, object]:
    """What the summary says: one line of JSON, with all its keys."""
    text = Path(file).read_text()
    assert text.endswith("\n")
    assert text.count("\n") == 1
    document = json.loads(text)
    assert list(document) == SUMMARY_KEYS
    assert isinstance(document, dict)
    return document


# -- killed and resumed ------------------------------------------------------------------------------------------------

NUMBERS_AND_TIMES = {
    *("id", "analysis_id", "template_id", "model_file_id", "scan_id", "probe_run_id"),
    *("created_at", "duration"),
}
OF_ANALYSES = ("behaviours", "efforts", "findings", "observations", "probe_runs", "renders")


def results(database: Path) -> dict[str, list[tuple[object, ...]]]:
    """All that the newest scan found, without numbers and times."""

    def columns(table: str) -> str:
        names = [str(row[1]) for row in connection.execute(f"PRAGMA table_info({table})")]
        return ", ".join(f'{table}."{name}"' for name in names if name not in NUMBERS_AND_TIMES)

    def rows(sql: str) -> list[tuple[object, ...]]:
        return sorted(connection.execute(sql), key=repr)

    with closing(sqlite3.connect(database)) as connection:
        newest = "(SELECT max(id) FROM scans)"
        analyses = "FROM analyses JOIN templates ON templates.id = analyses.template_id"
        files = f"JOIN model_files ON model_files.id = model_file_id WHERE scan_id = {newest}"
        return {
            "scan": rows(f"SELECT status, files_seen, profile FROM scans WHERE id = {newest}"),
            "appearances": rows(
                f"SELECT path, sha256, {columns('appearances')} FROM appearances "
                f"LEFT JOIN templates ON templates.id = appearances.template_id {files}"
            ),
            "file findings": rows(f"SELECT path, {columns('findings')} FROM findings {files}"),
            "analyses": rows(f"SELECT sha256, {columns('analyses')} {analyses}"),
            "reads": rows(
                f"SELECT sha256, name, {columns('reads')} {analyses} JOIN probe_runs ON analysis_id = analyses.id "
                "JOIN reads ON probe_run_id = probe_runs.id"
            ),
            **{
                table: rows(f"SELECT sha256, {columns(table)} {analyses} JOIN {table} ON analysis_id = analyses.id")
                for table in OF_ANALYSES
            },
        }


def moments(database: Path) -> Iterator[tuple[str, Callable[[], bool]]]:
    """When to kill the next scan."""
    lock = Path(f"{database}.lock")

    def is_running() -> bool:
        return bool(ask(database, "SELECT 1 FROM scans WHERE status = 'running'"))

    def analysed() -> int:
        return int(str((ask(database, "SELECT count(*) FROM analyses") or [(0,)])[0][0]))

    yield "has the lock", lambda: lock.exists() and b"pid" in lock.read_bytes()
    yield "has begun", is_running
    newest = "(SELECT max(id) FROM scans WHERE status = 'running')"
    yield "has seen files", lambda: bool(ask(database, f"SELECT 1 FROM appearances WHERE scan_id = {newest} LIMIT 1"))
    for _ in range(2):
        known = analysed()
        yield f"has analysed more than {known} templates", lambda known=known: analysed() > known  # type: ignore[misc]


def test_a_scan_that_is_killed_again_and_again_is_completed_by_the_next(tmp_path: Path) -> None:
    models = make_models(tmp_path / "models", 90)
    database = tmp_path / "c.db"
    command = ("scan", "models", "--db", "c.db", "--workers", "1", "--now", "0", "--summary-json", "s.json")
    for when, has_come in moments(database):
        process = start(*command, cwd=tmp_path)
        until(has_come, process)
        workers = descendants(process.pid)
        kill_group(process)
        assert ask(database, "PRAGMA integrity_check") in ([("ok",)], []), when
        assert not any(map(is_alive, workers)), when
    assert told()["status"] == "running", "a killed scan cannot say more"
    (killed,) = [row[0] for row in ask(database, "SELECT id FROM scans WHERE status = 'running'")]
    done = ask(database, "SELECT id, template_id, created_at FROM analyses")
    seen = ask(database, f"SELECT DISTINCT model_file_id FROM appearances WHERE scan_id = {killed}")
    assert 0 < len(done) < 90
    assert len(seen) == 91

    assert scan(models, "--summary-json", "s.json") == 0
    summary = told()
    assert summary["status"] == "finished"
    assert summary["resumed"] == [killed]
    # The unreadable file lacks its end: that lies in the bytes, so it is not opened again either.
    assert summary["unchanged"] == 91
    assert set(done) <= set(ask(database, "SELECT id, template_id, created_at FROM analyses"))
    statuses = ask(database, "SELECT status, finished_at IS NULL, files_seen FROM scans ORDER BY id")
    assert statuses[-2:] == [("interrupted", 0, 91), ("finished", 0, 91)]
    assert not [status for status in statuses if status[0] == "running"]

    undisturbed = tmp_path / "undisturbed.db"
    assert run(["scan", str(models), "--db", str(undisturbed), "--workers", "2", "--now", "0"]) == 0
    disturbed_results, undisturbed_results = results(database), results(undisturbed)
    assert disturbed_results.keys() == undisturbed_results.keys()
    for table, rows in undisturbed_results.items():
        assert disturbed_results[table] == rows, table
        assert rows, table


def test_workers_do_not_survive_a_parent_that_is_killed_alone(tmp_path: Path) -> None:
    make_models(tmp_path / "models", 40)
    process = start("scan", "models", "--db", "c.db", "--workers", "2", cwd=tmp_path)
    until(lambda: ask(tmp_path / "c.db", "SELECT 1 FROM analyses LIMIT 1"), process)
    workers = descendants(process.pid)
    assert len(workers) >= 2
    process.kill()
    process.wait(PATIENCE)
    until(lambda: not any(map(is_alive, workers)))
    process.communicate(timeout=PATIENCE)
    assert scan(tmp_path / "models") == 0


def test_a_scan_that_is_interrupted_says_what_it_did(tmp_path: Path) -> None:
    make_models(tmp_path / "models", 40)
    process = start("scan", "models", "--db", "c.db", "--workers", "1", "--summary-json", "s.json", cwd=tmp_path)
    until(lambda: ask(tmp_path / "c.db", "SELECT 1 FROM analyses LIMIT 1"), process)
    assert told()["status"] == "running"
    assert told()["finished"] is None
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (130, "")
    assert err == "capscan: interrupted; what was done is kept\n"
    summary = told()
    assert summary["status"] == "interrupted"
    assert summary["exit_code"] == 130
    assert summary["files"] == 41
    assert scan("models", "--summary-json", "s.json") == 0
    assert told()["resumed"] == [], "it closed itself"
    assert told()["unchanged"] == 41


# -- one at a time -----------------------------------------------------------------------------------------------------


def test_a_second_scan_is_refused(few: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with database_lock(open_database("c.db"), "scan"):
        assert scan(few, "--summary-json", "s.json") == 3
        err = capsys.readouterr().err
        assert err.startswith(f"capscan: c.db: `capscan scan` is at work on it: process {os.getpid()} on ")
        assert err.count("\n") == 1
        assert not Path("c.db").exists()
        summary = told()
        assert (summary["status"], summary["exit_code"], summary["scan"]) == ("failed", 3, None)
        assert f"capscan: {summary['why']}\n" == err
        for command in (["db", "prune"], ["db", "upgrade"]):
            assert run([*command, "--db", "c.db"]) == 3
    assert scan(few) == 0


def test_two_scans_at_once_follow_each_other(few: Path, tmp_path: Path) -> None:
    command = ("scan", str(few), "--db", "c.db", "--workers", "1", "--wait", str(PATIENCE), "--format", "json")
    processes = [start(*command, cwd=tmp_path) for _ in range(2)]
    answers = [process.communicate(timeout=PATIENCE) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], answers
    assert sorted(json.loads(out)["unchanged"] for out, _ in answers) == [0, 4]


# -- what is said ------------------------------------------------------------------------------------------------------


def test_without_a_terminal_there_is_the_summary_and_nothing_else(few: Path, tmp_path: Path) -> None:
    for unchanged in ("", " · 4 unchanged"):
        process = start("scan", str(few), "--db", "c.db", cwd=tmp_path)
        out, err = process.communicate(timeout=PATIENCE)
        assert err == ""
        assert out.startswith(f"Scanned 4 model files{unchanged} · ")


def test_the_summary_of_a_scan_with_findings(few: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert scan(few, "--summary-json", "s.json", "--fail-on", "note") == 1
    summary = told()
    assert summary["why"] == f"findings at or above --fail-on note: {sum(counts(summary, 'findings').values())}"
    assert (summary["format"], summary["status"], summary["scan"]) == (1, "finished", 1)
    assert summary["sources"] == [str(few)]
    assert summary["database"] == "c.db"
    assert (summary["files"], summary["unchanged"], summary["templates"], summary["new_templates"]) == (4, 0, 3, 3)
    assert counts(summary, "outcomes")["unreadable"] == 1
    assert set(counts(summary, "findings")) == {"error", "warning", "note", "silenced"}
    assert counts(summary, "changes") == {"appeared": 0, "gone": 0, "replaced": 0}
    assert summary["pruned"] is None
    assert summary["report"] is None
    capsys.readouterr()


def counts(summary: dict[str, object], key: str) -> dict[str, int]:
    found = summary[key]
    assert isinstance(found, dict)
    return found


def test_a_summary_on_standard_output_is_alone_there(few: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert scan(few, "--summary-json", "-", "--report", "r", "--prune") == 0
    Path("s.json").write_text(capsys.readouterr().out)
    assert told()["report"] == "r/index.html"
    assert told()["pruned"] == {"scans": 0, "files": 0, "templates": 0, "analyses": 0}
    assert scan(few, "--format", "json", "--report", "r", "--prune") == 0
    assert json.loads(capsys.readouterr().out)["scan"] == 2


def test_a_report_in_the_same_run(few: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert scan(few, "--report", "r") == 0
    out = capsys.readouterr().out
    assert out.startswith("Scanned 4 model files")
    assert out.endswith("r/index.html\n")
    assert "capscan report" not in out, "what was just done is not offered"
    assert Path("r/index.html").is_file()


def test_a_report_that_cannot_be_written(few: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("file").touch()
    assert scan(few, "--report", "file/r", "--summary-json", "s.json") == 3
    assert "file" in capsys.readouterr().err
    assert (told()["status"], told()["exit_code"]) == ("finished", 3)


def test_a_path_that_is_not_there(few: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(4):
        assert scan(few, "nowhere", "--summary-json", "s.json", "--prune", "--max-age", "0") == 3
    assert capsys.readouterr().err.splitlines()[-1] == "capscan: nowhere: there is no such file or folder"
    assert told()["why"] == "nowhere: there is no such file or folder"
    assert told()["pruned"] is None, "an empty mount must not cost what is known"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--max-age", "3"], "--max-age needs --prune"),
        (["--summary-json", "-", "--format", "json"], "both want standard output"),
        (["--summary-json", "nowhere/s.json"], "the folder nowhere does not exist"),
        (["--summary-json", "."], "this is a folder"),
        (["--fail-on", "nonsense"], "neither error"),
    ],
)
def test_options_that_make_no_sense(
    arguments: list[str], said: str, few: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert scan(few, *arguments) == 2
    assert said in capsys.readouterr().err
    assert not Path("c.db").exists()


def test_a_usage_error_is_told_too(few: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert scan(few, "--fail-on", "nonsense", "--summary-json", "s.json") == 2
    assert (told()["status"], told()["exit_code"]) == ("failed", 2)
    capsys.readouterr()


def test_old_scans_are_removed_on_the_way(few: Path, capsys: pytest.CaptureFixture[str]) -> None:
    models = shutil.copytree(few, "models")
    for _ in range(3):
        assert scan(models) == 0
    capsys.readouterr()
    assert scan(models, "--prune", "--max-age", "0", "--summary-json", "s.json") == 0
    assert "Removed 2 scans older than 0 days\n" in capsys.readouterr().out
    assert counts(told(), "pruned")["scans"] == 2
    assert ask(Path("c.db").absolute(), "SELECT id FROM scans") == [(3,), (4,)]


def test_a_file_is_written_whole(tmp_path: Path) -> None:
    target = tmp_path / "real" / "s.json"
    target.parent.mkdir()
    link = tmp_path / "link"
    link.symlink_to(target)
    for text in ("one\n", "two\n"):
        write_whole(link, text)
        assert target.read_text() == text
    assert link.is_symlink()
    assert [path.name for path in target.parent.iterdir()] == ["s.json"]
    assert target.stat().st_mode & 0o044, "a monitor may read it"
    write_whole(Path(os.devnull), "three\n")
    assert Path(os.devnull).is_char_device()


def test_the_same_place_is_the_same_scan_however_it_is_given(
    few: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert scan(few) == 0
    monkeypatch.setenv("CAPSCAN_DB", str(Path("c.db").absolute()))
    monkeypatch.chdir(few.parent)
    assert run(["scan", "./models/", "models", "--now", "0", "--fail-on", "change"]) == 0
    capsys.readouterr()
    assert run(["diff"]) == 0
    assert "first of its sources" not in capsys.readouterr().out


def test_what_is_below_a_path_that_is_not_there_is_not_gone(few: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = make_models(Path("other"), 1)
    assert scan(few, other) == 0
    other.rename("unmounted")
    assert scan(few, other) == 3
    assert "gone" not in capsys.readouterr().out
    assert run(["query", "files", "--db", "c.db", "--format", "csv"]) == 0
    assert str(other.absolute()) in capsys.readouterr().out
    Path("unmounted").rename(other)
    assert scan(few, other, "--fail-on", "change") == 0


@pytest.mark.parametrize("database", ["", ":memory:", "sqlite://"])
def test_a_database_that_is_not_kept_is_refused(few: Path, database: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["scan", str(few), "--db", database]) == 2
    assert "names no database that is kept" in capsys.readouterr().err


@pytest.mark.parametrize("number", ["nan", "inf"])
def test_numbers_that_are_none_are_refused(few: Path, number: str) -> None:
    assert scan(few, "--wait", number) == 2
    assert scan(few, "--prune", "--max-age", number) == 2


def test_a_scan_may_fail_on_several_things(few: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert scan(few, "--fail-on", "error", "--fail-on", "change") == 0
    assert scan(few, "--fail-on", "note", "--fail-on", "change") == 1
    assert "--fail-on note" in capsys.readouterr().err
    (few / "another.jinja").write_text("{{ messages[0].content }} another")
    try:
        assert scan(few, "--fail-on", "error", "--fail-on", "change") == 1
    finally:
        (few / "another.jinja").unlink()
    assert "--fail-on change" in capsys.readouterr().err
