"""Asking the database: named queries with parameters, in every format, and by other tools."""

from __future__ import annotations

import csv
import io
import json
import shutil
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest

from scanner.cli import run
from scanner.console import FORMS, rows_as
from scanner.results import CAPABILITIES
from scanner.store import queries
from scanner.store.described import TABLES, VIEWS
from scanner.store.models import VIEWS as VIEW_TABLES
from scanner.store.models import Base
from tests.gguf_builder import write_gguf
from tests.nights import BROKEN, TALK, TOOLS, Nights
from tests.write_docs import DOCS, PAGES

HOSTILE = "a|b`*<x>\x1b[31m\n"


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Nights:
    """Three scans: a template is replaced before the second, and another comes before the third."""
    made = Nights(tmp_path_factory.mktemp("nights"))
    made.write("a.jinja", TALK)
    made.write("c.jinja", TOOLS)
    made.write("broken.jinja", BROKEN)
    write_gguf(made.models / "m.gguf", TALK, variants={"tool_use": TOOLS})
    (made.models / "short.gguf").write_bytes(b"GGUF")
    made.scan()
    made.write("a.jinja", TOOLS)
    made.scan()
    made.write("d.jinja", TALK)
    made.scan()
    return made


def ask(nights: Nights, *arguments: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    assert run(["query", *arguments, "--db", str(nights.database), "--format", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert isinstance(answer, list)
    return answer


def names(rows: list[dict[str, Any]]) -> list[str]:
    return [Path(row["path"]).name for row in rows]


def test_parameters_choose_rows(nights: Nights, capsys: pytest.CaptureFixture[str]) -> None:
    tools = ask(nights, "files", "capability=tools", capsys=capsys)
    assert names(tools) == ["a.jinja", "c.jinja", "m.gguf"]
    assert names(ask(nights, "files", "--param", "path=m.gg", capsys=capsys)) == ["m.gguf", "m.gguf"]
    # A parameter is a value: not SQL, and no pattern.
    assert ask(nights, "files", "path=%", capsys=capsys) == []
    assert ask(nights, "files", "path=' OR 1=1 --", capsys=capsys) == []
    sha256 = tools[0]["sha256"]
    places = ask(nights, "template", f"sha256={sha256[:10].upper()}", capsys=capsys)
    assert names(places) == ["a.jinja", "c.jinja", "m.gguf"]
    errors = ask(nights, "findings", "severity=error", "rule=not-parseable", capsys=capsys)
    assert names(errors) == ["broken.jinja"]
    assert {row["word"] for row in ask(nights, "effort", "word=high", capsys=capsys)} == {"high"}
    assert {row["outcome"] for row in ask(nights, "failures", "outcome=unreadable", capsys=capsys)} == {"unreadable"}


def test_without_parameters_there_is_everything(nights: Nights, capsys: pytest.CaptureFixture[str]) -> None:
    everything = ask(nights, "files", capsys=capsys)
    assert ask(nights, "files", "capability=", capsys=capsys) == everything
    assert len(everything) == 7


def test_the_changes_of_any_scan(nights: Nights, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(nights, "changes", "scan=1", capsys=capsys) == []
    for scan in (2, 3):
        told = [
            (row["change"], row["path"], row["variant"], row["old_sha256"], row["new_sha256"])
            for row in ask(nights, "changes", f"scan={scan}", capsys=capsys)
        ]
        records = queries.changes_of_scan(nights.engine, scan)
        assert told == [(one.change, one.path, one.variant, one.old_sha256, one.new_sha256) for one in records]
    view = ask(nights, "--sql", "SELECT change, path, variant, old_sha256, new_sha256 FROM changes", capsys=capsys)
    assert ask(nights, "changes", capsys=capsys) == view


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["files", "colour=red"], "no parameter 'colour': it takes capability"),
        (["files", "capability=telepathy"], "choose one of tools"),
        (["changes", "scan=last"], "give a number"),
        (["files", "tools"], "write KEY=VALUE"),
        (["nonsense", "a=b"], "there is no query"),
    ],
)
def test_a_wrong_parameter_is_said(
    nights: Nights, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["query", *arguments, "--db", str(nights.database)]) == 2
    assert said in capsys.readouterr().err


def test_sql_of_ones_own_takes_parameters(nights: Nights, capsys: pytest.CaptureFixture[str]) -> None:
    sql = "SELECT path FROM latest_files WHERE variant = :variant AND path NOT LIKE '%:variant'"
    assert names(ask(nights, "--sql", sql, "variant=tool_use", capsys=capsys)) == ["m.gguf"]
    assert run(["query", "--sql", sql, "--db", str(nights.database)]) == 2


def test_the_list_and_the_sql(nights: Nights, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["query", "--list"]) == 0
    assert "changes" in capsys.readouterr().out
    assert run(["query", "--list", "--format", "json"]) == 0
    listed = {row["name"]: row["parameters"] for row in json.loads(capsys.readouterr().out)}
    assert listed["changes"][0]["name"] == "scan"
    assert run(["query", "scans", "--show-sql"]) == 0
    shown = capsys.readouterr().out
    assert "ORDER BY id DESC" in shown
    assert {row["id"] for row in ask(nights, "--sql", shown, "status=finished", capsys=capsys)} == {1, 2, 3}


# -- formats


def test_every_format_says_the_same() -> None:
    headers, rows = ["name", "count"], [("one", 1), (HOSTILE, None)]
    expected = [{"name": "one", "count": 1}, {"name": HOSTILE, "count": None}]
    assert json.loads(rows_as("json", headers, rows)) == expected
    assert [json.loads(line) for line in rows_as("jsonl", headers, rows).split("\n")] == expected
    assert list(csv.reader(io.StringIO(rows_as("csv", headers, rows)))) == [headers, ["one", "1"], [HOSTILE, ""]]
    markdown = rows_as("markdown", headers, rows).split("\n")
    assert markdown[:3] == ["| name | count |", "| --- | ---: |", "| one | 1 |"]
    assert markdown[3] == "| a\\|b\\`\\*&lt;x&gt;⟨U+001B⟩\\[31m⟨U+000A⟩ |  |"


def test_no_format_drives_the_terminal() -> None:
    for form in FORMS:
        shown = rows_as(form, ["name"], [(HOSTILE,)], escaped=True)
        assert "\x1b[31m" not in shown, form


def test_every_named_query_in_every_format(nights: Nights, capsys: pytest.CaptureFixture[str]) -> None:
    for form in FORMS:
        assert run(["query", "findings", "--db", str(nights.database), "--format", form]) == 0
        assert "not-parseable" in capsys.readouterr().out.replace("\\", "")


# -- the pages, and other tools


@pytest.mark.parametrize("page", PAGES)
def test_the_pages_are_what_the_code_says(page: str) -> None:
    assert (DOCS / page).read_text(encoding="utf-8") == PAGES[page](), "python -m tests.write_docs"


@pytest.mark.parametrize(
    ("described", "schema"), [(TABLES, Base.metadata.tables), (VIEWS, VIEW_TABLES.tables)], ids=["tables", "views"]
)
def test_every_column_is_described(described: Any, schema: Any) -> None:
    assert described.keys() == schema.keys()
    for name, table in schema.items():
        assert described[name].columns.keys() == {column.name for column in table.columns}, name
        assert all(meaning for meaning in described[name].columns.values()), name


def test_every_parameter_is_used_and_described() -> None:
    for query in queries.NAMED.values():
        for parameter in query.parameters:
            assert f":{parameter.name}" in query.sql, query.name
            assert parameter.description.endswith(".")
            assert not parameter.choices or parameter.example in parameter.choices
    assert queries.NAMED["files"].parameters[0].choices == CAPABILITIES


@pytest.mark.parametrize("value", [None, ""])
def test_queries_run_where_parameters_are_null_or_empty(nights: Nights, value: str | None) -> None:
    """As in the `sqlite3` program (null) and in Datasette (empty)."""
    connection = sqlite3.connect(nights.database)
    for query in queries.NAMED.values():
        rows = connection.execute(query.sql, {parameter.name: value for parameter in query.parameters}).fetchall()
        assert len(rows) == len(list(queries.run_named(nights.engine, query.name).rows)), query.name


def test_the_sqlite3_program_reads_everything(nights: Nights) -> None:
    program = shutil.which("sqlite3")
    if program is None:
        pytest.skip("the program sqlite3 is not installed")
    statements = [f"SELECT COUNT(*) FROM {view};" for view in VIEWS]  # noqa: S608 - names of the schema
    for query in queries.NAMED.values():
        statements += [".parameter clear", ".parameter init"]
        statements += [f".parameter set :{one.name} \"'{one.example}'\"" for one in query.parameters]
        statements += [f"{query.sql};", ".parameter clear", f"{query.sql};"]
    done = subprocess.run(
        [program, "-batch", "-bail", str(nights.database)],
        input="\n".join(statements),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0].isdecimal()
