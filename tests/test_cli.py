"""The command line as a person or a script uses it."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from scanner.cli import run
from scanner.demo.collection import make_collection, templates
from scanner.results import CAPABILITIES
from scanner.store.migrate import head

WORDS = [name.replace("_", " ") for name in CAPABILITIES]


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("collection")
    make_collection(folder)
    return folder


@pytest.fixture(scope="module")
def scanned(collection: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    database = tmp_path_factory.mktemp("database") / "c.db"
    assert run(["scan", str(collection), "--db", str(database), "--quiet"]) == 0
    return database


def capscan(*arguments: str, cwd: Path | None = None, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "scanner", *arguments]
    return subprocess.run(command, capture_output=True, cwd=cwd, input=stdin, check=False, env=environment())


def environment() -> dict[str, str]:
    root = str(Path(__file__).resolve().parent.parent)
    return {**os.environ, "PYTHONPATH": root}


# -- probe


def test_probe_prints_one_object_a_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    files = []
    for name in ("turns", "plain-chatml"):
        files.append(tmp_path / f"{name}.jinja")
        files[-1].write_bytes(templates()[name])
    assert run(["probe", *map(str, files), "--format", "jsonl", "--now", "0"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [Path(line["template"]["source"]).name for line in lines] == [file.name for file in files]
    document = lines[0]
    assert set(document["template"]) == {"sha256", "bytes", "variant", "source"}
    assert document["profile"] == "b11549"
    assert document["parse_error"] is None
    assert list(document["capabilities"]) == sorted(f"supports_{name}" for name in CAPABILITIES)
    assert {"name", "ok", "output", "error", "reads"} == set(document["probes"][0])
    assert {"path", "used", "ops", "line", "column"} == set(document["probes"][0]["reads"][0])
    assert isinstance(document["findings"], list)


def test_probe_json_is_one_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.jinja").write_text("{% raw %}")
    assert run(["probe", str(tmp_path / "a.jinja"), "--format", "json"]) == 0
    (document,) = json.loads(capsys.readouterr().out)
    assert document["capabilities"] is None
    assert document["parse_error"] == {"kind": "parser", "message": "Unknown statement: raw", "line": 1, "column": 4}


def test_probe_explains_each_flag_to_a_person(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.jinja").write_text("{% for m in messages %}{{ m.content }}{% endfor %}")
    assert run(["probe", str(tmp_path / "a.jinja")]) == 0
    out = capsys.readouterr().out
    assert "system_role" in out
    assert "messages[0].content is read at 1:29" in out
    assert max(map(len, out.splitlines())) <= 110


def test_probe_shows_a_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.jinja").write_text("{{ reasoning_effort }}")
    assert run(["probe", str(tmp_path / "a.jinja"), "--trace", "reasoning_effort"]) == 0
    out = capsys.readouterr().out
    assert 'messages = [{"role": "user", "content": "User message"}]' in out
    assert "1:4" in out
    assert run(["probe", str(tmp_path / "a.jinja"), "--trace", "nosuch"]) == 2


def test_probe_reads_standard_input() -> None:
    done = capscan("probe", "-", "--format", "jsonl", stdin=b"{{ messages[0].content }}")
    assert done.returncode == 0
    assert json.loads(done.stdout)["template"]["source"] == "-"


def test_probe_takes_the_variants_of_a_model_file(collection: Path, capsys: pytest.CaptureFixture[str]) -> None:
    holders = [path for path in sorted(collection.rglob("*.gguf")) if b"chat_template.tool_use" in path.read_bytes()]
    assert run(["probe", str(holders[0]), "--format", "jsonl"]) == 0
    variants = [json.loads(line)["template"]["variant"] for line in capsys.readouterr().out.splitlines()]
    assert variants[0] == "default"
    assert "tool_use" in variants
    assert run(["probe", str(holders[0])]) == 0
    assert "llama-server reports the flags of tool_use" in capsys.readouterr().out


def test_the_clock_of_a_probe_can_be_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.jinja").write_text("{{ strftime_now('%Y') }}")
    for clock in ("0", "1970-06-01", "1970-06-01T12:00:00+02:00"):
        assert run(["probe", str(tmp_path / "a.jinja"), "--format", "jsonl", "--now", clock]) == 0
        assert json.loads(capsys.readouterr().out)["probes"][0]["output"] == "1970"
    assert run(["probe", str(tmp_path / "a.jinja"), "--now", "yesterday"]) == 2


# -- scan


def test_a_scan_says_what_it_found(
    collection: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["scan", str(collection), "--quiet"]) == 0
    out = capsys.readouterr().out
    assert all(word in out for word in WORDS)
    assert "1 not parseable · 1 limit exceeded · 1 unreadable · 2 skipped" in out
    assert max(map(len, out.splitlines())) <= 100


def test_a_second_scan_opens_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = str(tmp_path / "c.db")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "a.jinja").write_text("{{ messages[0].content }}")
    arguments = ["scan", str(tmp_path / "models"), "--db", database, "--format", "json", "--quiet"]
    documents = []
    for _ in range(2):
        assert run(arguments) == 0
        documents.append(json.loads(capsys.readouterr().out))
    assert [(d["files"], d["unchanged"], d["new_templates"]) for d in documents] == [(1, 0, 1), (1, 1, 0)]
    analyses = sqlite3.connect(database).execute("SELECT COUNT(*) FROM analyses").fetchone()
    assert analyses == (1,)
    (tmp_path / "models" / "a.jinja").write_text("{{ messages[0].role }}")
    assert run(arguments) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["unchanged"], document["new_templates"], document["changes"]) == (0, 1, 1)


def test_a_template_in_many_files_is_analysed_once(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.jinja").write_text("{{ messages[0].content }}")
    database = tmp_path / "c.db"
    assert run(["scan", str(tmp_path), "--db", str(database), "--quiet"]) == 0
    connection = sqlite3.connect(database)
    assert connection.execute("SELECT COUNT(*) FROM appearances").fetchone() == (3,)
    assert connection.execute("SELECT COUNT(*) FROM analyses").fetchone() == (1,)


def test_findings_set_the_exit_code(tmp_path: Path) -> None:
    plain = tmp_path / "plain.jinja"
    plain.write_text("{% for m in messages %}{{ m.content }}{% endfor %}")
    broken = tmp_path / "broken.jinja"
    broken.write_text("{% raw %}")
    base = ["--db", str(tmp_path / "a.db"), "--quiet"]
    assert run(["scan", str(plain), *base, "--fail-on", "note"]) == 0
    assert run(["scan", str(broken), *base, "--fail-on", "error"]) == 1
    assert run(["scan", str(broken), *base, "--fail-on", "not-parseable"]) == 1
    assert run(["scan", str(broken), *base, "--fail-on", "no-template"]) == 0
    assert run(["scan", str(broken), *base, "--fail-on", "nonsense"]) == 2


def test_a_path_that_is_not_there_is_passed_over_and_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["scan", str(tmp_path / "nowhere"), "--db", str(tmp_path / "c.db"), "--quiet"]) == 3
    assert "Passed over (1)" in capsys.readouterr().out


def test_an_interrupted_scan_keeps_what_was_done(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    endless = "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}"
    for number in range(40):
        (folder / f"{number}.jinja").write_text(f"{{# {number} #}}{endless}")
    database = tmp_path / "c.db"
    command = [sys.executable, "-m", "scanner", "scan", str(folder), "--db", str(database), "--workers", "1"]
    # Where the tests run in the background, Ctrl-C is ignored, and so it would be by their children.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    signal.signal(signal.SIGINT, before)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not stored(database, "analyses"):
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"interrupted" in stderr
    assert b"Traceback" not in stderr
    connection = sqlite3.connect(database)
    assert connection.execute("SELECT status FROM scans").fetchall() == [("interrupted",)]
    assert stored(database, "appearances") == 40
    assert 0 < stored(database, "analyses") < 40


def stored(database: Path, table: str) -> int:
    if not database.exists():
        return 0
    try:
        connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
        return int(connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])  # noqa: S608 - a name of ours
    except sqlite3.OperationalError:
        return 0


def test_fail_on_and_the_summary_speak_of_this_scan_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad, good = tmp_path / "bad.jinja", tmp_path / "good.jinja"
    bad.write_text("{% raw %}")
    good.write_text("{% for m in messages %}{{ m.content }}{% endfor %}")
    base = ["--db", str(tmp_path / "c.db"), "--quiet", "--fail-on", "warning"]
    assert run(["scan", str(bad), *base]) == 1
    capsys.readouterr()
    assert run(["scan", str(good), *base]) == 0
    out = capsys.readouterr().out
    assert "Outliers" not in out
    assert "Since the last scan" not in out


def test_all_profiles_are_kept_and_what_changes_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    walks = (
        "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}"
        "{% for part in m.content %}{{ part.text }}{% endfor %}{% endif %}{% endfor %}"
    )
    (tmp_path / "walks.jinja").write_text(walks)
    database = ["--db", str(tmp_path / "c.db")]
    assert run(["scan", str(tmp_path / "walks.jinja"), *database, "--quiet", "--profile", "all"]) == 0
    out = capsys.readouterr().out
    assert "Outliers (1 template)" in out
    assert "flags depend on the build: typed_content" in out
    assert run(["query", "builds", *database, "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["profile"]: row["supports_typed_content"] for row in rows} == {
        "b11549": 1,
        "b10809": 0,
        "b10229": 0,
        "b9713": 0,
    }
    assert run(["show", "walks.jinja", *database]) == 0
    assert "b9713" in capsys.readouterr().out
    assert run(["probe", str(tmp_path / "walks.jinja"), "--profile", "all", "--format", "jsonl"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4


def test_a_template_lost_to_a_time_out_is_tried_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Long enough for a tenth of a second, short enough for a minute.
    slow = "{% for a in range(500) %}{% for b in range(500) %}{{ a }}{% endfor %}{% endfor %}{{ messages[0].content }}"
    (tmp_path / "slow.jinja").write_text(slow)
    base = ["scan", str(tmp_path / "slow.jinja"), "--db", str(tmp_path / "c.db"), "--quiet", "--format", "json"]
    outcomes = []
    for seconds in ("0.1", "60"):
        assert run([*base, "--timeout", seconds]) == 0
        outcomes.append(json.loads(capsys.readouterr().out)["outcomes"])
    assert outcomes == [{"limit exceeded": 1}, {"analysed": 1}]


def test_a_files_name_cannot_drive_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "\x1b[31mred.gguf"
    path.write_bytes(b"GGUF")
    assert run(["probe", str(path)]) == 3
    assert "\x1b" not in capsys.readouterr().err


@pytest.mark.parametrize("clock", ["nan", "inf", "1e300", "-1e20"])
def test_a_clock_that_no_calendar_has_is_refused(clock: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["probe", "x.jinja", f"--now={clock}"]) == 2
    assert "neither seconds" in capsys.readouterr().err


# -- asking


def test_show_a_file_and_a_template(scanned: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = ["--db", str(scanned)]
    assert run(["query", "files", *database, "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    row = next(row for row in rows if row["variant"] == "tool_use")
    assert run(["show", row["path"], *database]) == 0
    out = capsys.readouterr().out
    assert "llama-server reports the flags of tool_use" in out
    assert run(["show", Path(row["path"]).name, *database, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["path"] == row["path"]
    assert run(["show", row["sha256"][:12], *database]) == 0
    assert row["path"] in capsys.readouterr().out
    assert run(["show", "nosuch.gguf", *database]) == 2


def test_query_in_every_format(scanned: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ask = ["query", "--db", str(scanned), "--sql", "SELECT 1 AS one, NULL AS empty_one, 'a,b' AS text"]
    assert run([*ask, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"one": 1, "empty_one": None, "text": "a,b"}]
    assert run([*ask, "--format", "csv"]) == 0
    assert list(csv.reader(capsys.readouterr().out.splitlines())) == [["one", "empty_one", "text"], ["1", "", "a,b"]]
    assert run(ask) == 0
    # A column without anything in it takes no room.
    assert capsys.readouterr().out.splitlines()[0].split() == ["one", "text"]


@pytest.mark.parametrize(
    "sql", ["DELETE FROM scans", "CREATE TABLE x (y)", "ATTACH 'x.db' AS x", "PRAGMA journal_mode=DELETE"]
)
def test_a_query_cannot_write(scanned: Path, sql: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["query", "--db", str(scanned), "--sql", sql]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_every_named_query_runs(scanned: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["query", "--list", "--format", "json"]) == 0
    names = [row["name"] for row in json.loads(capsys.readouterr().out)]
    assert {"files", "templates", "flags", "failures", "outliers"} <= set(names)
    for name in names:
        assert run(["query", name, "--db", str(scanned)]) == 0, name
        assert max(map(len, capsys.readouterr().out.splitlines()), default=0) <= 115


def test_rules_are_listed_and_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rules"]) == 0
    assert "not-parseable" in capsys.readouterr().out
    assert run(["rules", "not-parseable"]) == 0
    assert "What to do:" in capsys.readouterr().out
    assert run(["rules", "nosuch"]) == 2


def test_the_database_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = ["--db", str(tmp_path / "c.db")]
    assert run(["query", "files", *database]) == 3
    assert "capscan scan" in capsys.readouterr().err
    assert run(["db", "upgrade", *database]) == 0
    assert run(["db", "current", *database]) == 0
    assert f"revision {head()}" in capsys.readouterr().out
    (tmp_path / "text.db").write_text("this is not a database, whatever its name says")
    assert run(["query", "files", "--db", str(tmp_path / "text.db")]) == 3
    assert "not a database" in capsys.readouterr().err


def test_usage_errors_have_a_code_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 2 or "Usage" in capsys.readouterr().out
    assert run(["nosuch"]) == 2
    assert run(["probe"]) == 2
    assert run(["probe", "/nowhere/at/all.jinja"]) == 2
    assert run(["--version"]) == 0


# -- report and demo


def test_the_demo_needs_only_a_folder(tmp_path: Path) -> None:
    done = capscan("demo", "here", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "here" / "report" / "index.html").is_file()
    assert b"Open here/report/index.html" in done.stdout
    assert b"Traceback" not in done.stderr


# -- what is really true


SLOW = "{% for i in range(30000) %}{% set x = i %}{% endfor %}{% for m in messages %}{{ m.content }}{% endfor %}"


def test_a_slow_template_keeps_its_flags_and_the_summary_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "slow.jinja").write_text(SLOW)
    database = ["--db", str(tmp_path / "c.db")]
    assert run(["scan", str(tmp_path / "slow.jinja"), *database, "--quiet"]) == 0
    text = capsys.readouterr().out
    assert re.search(r"string content +1\n", text)
    assert "Examined in part: 1 template, the flags only (finding partly-examined)" in text
    assert run(["probe", str(tmp_path / "slow.jinja"), "--format", "jsonl"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["capabilities"]["supports_string_content"] is True
    assert document["observed"]["string_content"]["verdict"] is None
    assert {behaviour["outcome"] for behaviour in document["behaviours"].values()} == {"not examined"}
    assert [finding["severity"] for finding in document["findings"]] == ["note"]


def test_a_scan_that_fails_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.jinja").write_text(
            "{% for m in messages %}{{ strftime_now('%d') }}{{ m.content }}{% endfor %}"
        )
    base = ["scan", str(tmp_path), "--db", str(tmp_path / "c.db"), "--quiet", "--fail-on", "clock-dependent"]
    assert run(base) == 1
    captured = capsys.readouterr()
    assert "capscan: 1 finding at or above --fail-on clock-dependent:" in captured.err
    assert "clock-dependent  " + str(tmp_path / "a.jinja") + " +1" in captured.err


def test_what_is_silenced_does_not_fail_a_scan_and_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.jinja").write_text("{% for m in messages %}{{ strftime_now('%d') }}{{ m.content }}{% endfor %}")
    Path(".capscan.toml").write_text('[[silence]]\nrule = "clock-dependent"\npath = "*.jinja"\nreason = "known"\n')
    assert run(["scan", "a.jinja", "--quiet", "--fail-on", "clock-dependent"]) == 0
    assert "1 finding silenced (.capscan.toml)" in capsys.readouterr().out
    Path(".capscan.toml").write_text('[[silence]]\nrule = "clock-dependent"\n')
    assert run(["scan", "a.jinja", "--quiet"]) == 2
    assert "no reason" in capsys.readouterr().err


@pytest.mark.parametrize("option", [["--explain", "all"], ["--behaviours"], ["--trace", "tools"]])
def test_a_template_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str], option: list[str]) -> None:
    file = tmp_path / "t.jinja"
    file.write_bytes(templates()["strict-effort"])
    assert run(["probe", str(file), *option]) == 0
    assert capsys.readouterr().out


def test_a_rule_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rules", "effort-rejected"]) == 0
    text = capsys.readouterr().out
    for part in ("Means: ", "Why it matters: ", "What to do: ", "docs/rules.md#effort-rejected"):
        assert part in text
