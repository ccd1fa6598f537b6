"""SQL by hand: it reads, and the database keeps it from doing anything else."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from sqlalchemy import Engine

from scanner.errors import DatabaseError, UsageError
from scanner.store import migrate, queries
from scanner.store.queries import run_sql
from scanner.store.session import open_database
from tests.store import examples

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n"
COUNTING = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n LIMIT 2000"


def refused(engine: Engine, sql: str, seconds: float = 5) -> str:
    with pytest.raises(UsageError) as caught:
        list(run_sql(engine, sql, seconds=seconds).rows)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_rows_come_with_the_names_of_their_columns(engine: Engine) -> None:
    examples.record(engine, examples.without_template("/m/50%.gguf"))
    answer = run_sql(engine, "SELECT path, size AS bytes FROM model_files WHERE path LIKE '%50%'", seconds=5)
    assert answer.columns == ("path", "bytes")
    assert list(answer.rows) == [("/m/50%.gguf", 1000)]


def test_many_rows_come_in_order(engine: Engine) -> None:
    answer = run_sql(engine, COUNTING, seconds=5)
    assert [row[0] for row in answer.rows] == list(range(1, 2001))


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM scans",
        "INSERT INTO templates (sha256, source, size) VALUES ('x', '', 0)",
        "UPDATE scans SET profile = 'x'",
        "DROP TABLE reads",
        "DROP VIEW outliers",
        "CREATE TABLE t (i INTEGER)",
        "CREATE TEMP TABLE t (i INTEGER)",
        "WITH x AS (SELECT 1) DELETE FROM scans",
        "SELECT 1; DELETE FROM scans",
        "COMMIT; DELETE FROM scans",
        "COMMIT",
        "VACUUM",
        "",
        "-- nothing",
        "SELEC 1",
        "SELECT 1 FROM nowhere",
        "SELECT '\0'",
        "SELECT '\udcff'",
    ],
)
def test_what_does_not_read_is_refused(engine: Engine, sql: str) -> None:
    examples.record(engine, examples.without_template("/m"))
    refused(engine, sql)
    assert len(queries.scans(engine)) == 1
    assert queries.scan_summary(engine).scan.profile == examples.PROFILE


def test_sqlite_opens_no_other_file(sqlite_engine: Engine, tmp_path: Path) -> None:
    other = tmp_path / "other"
    refused(sqlite_engine, f"ATTACH '{other}' AS other")
    refused(sqlite_engine, f"VACUUM INTO '{other}'")
    assert not other.exists()


def test_sqlite_pragmas_only_tell(sqlite_engine: Engine) -> None:
    refused(sqlite_engine, "PRAGMA query_only = OFF")
    refused(sqlite_engine, "PRAGMA journal_mode = DELETE")
    answer = run_sql(sqlite_engine, "PRAGMA table_info(templates)", seconds=5)
    assert [row[1] for row in answer.rows] == ["id", "sha256", "source", "size", "kind"]


@pytest.mark.parametrize(
    "sql",
    ["DO $$ BEGIN DELETE FROM scans; END $$", "SET TRANSACTION READ WRITE", "SELECT nextval('scans_id_seq')"],
)
def test_postgresql_has_no_other_way_to_write(postgresql_engine: Engine, sql: str) -> None:
    refused(postgresql_engine, sql)


def test_postgresql_keeps_no_setting(postgresql_engine: Engine) -> None:
    changed = "SELECT set_config('application_name', 'changed', false)"
    assert list(run_sql(postgresql_engine, changed, seconds=5).rows) == [("changed",)]
    shown = list(run_sql(postgresql_engine, "SELECT current_setting('application_name')", seconds=5).rows)
    assert shown != [("changed",)]


def test_a_query_that_takes_too_long_is_stopped(engine: Engine) -> None:
    started = time.monotonic()
    message = refused(engine, ENDLESS, seconds=0.2)
    assert time.monotonic() - started < 5
    assert "stopped after 0.2 s" in message or "statement timeout" in message


def test_time_between_rows_does_not_count(sqlite_engine: Engine) -> None:
    answer = run_sql(sqlite_engine, COUNTING, seconds=1)
    next(answer.rows)
    time.sleep(1.1)
    assert len(list(answer.rows)) == 1999


def test_a_reader_may_stop_early(engine: Engine) -> None:
    rows = run_sql(engine, COUNTING, seconds=5).rows
    assert next(rows) == (1,)
    rows.close()  # type: ignore[attr-defined]  # a generator, as the documentation of Rows says
    migrate.downgrade(engine, "base")


def test_bytes_that_are_not_text_do_not_stop_a_query(sqlite_engine: Engine) -> None:
    assert list(run_sql(sqlite_engine, "SELECT CAST(x'41ff' AS TEXT)", seconds=5).rows) == [("A�",)]


def test_a_writer_does_not_wait_for_a_reader(sqlite_engine: Engine) -> None:
    rows = run_sql(sqlite_engine, COUNTING, seconds=5).rows
    next(rows)
    examples.record(sqlite_engine, examples.without_template("/m"))
    assert len(list(rows)) == 1999


def test_a_missing_file_is_a_database_error(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match="unable to open"):
        run_sql(open_database(str(tmp_path / "none")), "SELECT 1", seconds=5)


def test_a_database_in_memory_cannot_be_opened_again() -> None:
    with pytest.raises(UsageError, match="in memory"):
        run_sql(open_database("sqlite://"), "SELECT 1", seconds=5)
