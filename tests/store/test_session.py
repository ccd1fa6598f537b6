"""Opening databases, transactions, and the errors a person sees."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import Engine, select

from scanner.errors import DatabaseError
from scanner.store import migrate, session
from scanner.store.models import TemplateRow
from scanner.store.session import database_name, open_database, session_scope


def add_template(engine: Engine, sha256: str = "a" * 64) -> None:
    with session_scope(engine) as opened:
        opened.add(TemplateRow(sha256=sha256, source=b"\xff", size=1))


def stored(engine: Engine) -> list[str]:
    with session_scope(engine) as opened:
        return list(opened.scalars(select(TemplateRow.sha256)))


def test_a_scope_commits(engine: Engine) -> None:
    add_template(engine)
    assert stored(engine) == ["a" * 64]


def test_a_scope_rolls_back(engine: Engine) -> None:
    with pytest.raises(KeyError), session_scope(engine) as opened:
        opened.add(TemplateRow(sha256="a" * 64, source=b"", size=0))
        opened.flush()
        raise KeyError
    assert stored(engine) == []


def test_a_refused_row_is_a_database_error_in_one_line(engine: Engine) -> None:
    add_template(engine)
    with pytest.raises(DatabaseError) as caught:
        add_template(engine)
    assert "\n" not in str(caught.value)
    assert database_name(engine) in str(caught.value)


def test_a_locked_database(sqlite_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "BUSY_TIMEOUT_MS", 10)
    sqlite_engine.dispose()
    other = sqlite3.connect(str(sqlite_engine.url.database), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(DatabaseError, match="another program is writing to it"):
        add_template(sqlite_engine)
    other.close()


def test_a_read_only_database(sqlite_engine: Engine) -> None:
    reader = open_database(f"sqlite:///file:{sqlite_engine.url.database}?mode=ro&uri=true")
    with pytest.raises(DatabaseError, match="read-only"):
        add_template(reader)
    reader.dispose()


def test_a_full_disk(sqlite_engine: Engine) -> None:
    with pytest.raises(DatabaseError, match="the disk is full"), session_scope(sqlite_engine) as opened:
        # SQLite says the same when the file meets a limit as when the disk is full.
        opened.connection().exec_driver_sql("PRAGMA max_page_count = 1")
        opened.add(TemplateRow(sha256="a" * 64, source=bytes(1_000_000), size=1_000_000))
        opened.flush()


def test_a_database_that_is_not_capscans(tmp_path: Path) -> None:
    engine = open_database(str(tmp_path / "empty.sqlite"))
    with pytest.raises(DatabaseError, match="not a Capscan database"):
        stored(engine)


def test_a_path_may_hold_anything(tmp_path: Path) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/50%40 ?x=1#\xff.db")
    engine = open_database(path)
    migrate.ensure_current(engine, create=True)
    assert Path(path).is_file()
    engine.dispose()


def test_postgresql_urls_take_the_driver_that_capscan_names() -> None:
    pytest.importorskip("psycopg", reason="the driver for PostgreSQL is not installed")
    assert open_database("postgresql://me@nowhere/db").url.drivername == "postgresql+psycopg"


def test_passwords_are_not_shown() -> None:
    pytest.importorskip("psycopg", reason="the driver for PostgreSQL is not installed")
    assert "secret" not in database_name(open_database("postgresql://me:secret@nowhere/db"))


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("nonsense://x", "nonsense"),
        ("mysql+pymysql://x/y", "pymysql is not installed"),
        ("://secret", "cannot be understood"),
        ("postgresql://me:secret@host:port/x", "cannot be understood"),
    ],
)
def test_urls_that_make_no_sense(target: str, message: str) -> None:
    with pytest.raises(DatabaseError, match=message) as caught:
        open_database(target)
    assert "secret" not in str(caught.value)
