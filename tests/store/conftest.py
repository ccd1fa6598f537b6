"""Databases to test on: always SQLite, and PostgreSQL where `$CAPSCAN_TEST_POSTGRES` names one that may be emptied."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, make_url, text

from scanner.store import migrate
from scanner.store.session import open_database


@pytest.fixture
def sqlite_engine(tmp_path: Path) -> Iterator[Engine]:
    """An empty Capscan database in a file."""
    engine = open_database(str(tmp_path / "capscan.sqlite"))
    migrate.ensure_current(engine, create=True)
    yield engine
    engine.dispose()


@pytest.fixture(scope="session")
def postgresql_url() -> str:
    """A database of this worker's own in PostgreSQL, beside the one that is named: tests run side by side."""
    given = os.environ.get("CAPSCAN_TEST_POSTGRES")
    if not given:
        pytest.skip("CAPSCAN_TEST_POSTGRES is not set")
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    url = make_url(given)
    name = f"{url.database}_{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}"
    admin = create_engine(url, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'))
        connection.execute(text(f'CREATE DATABASE "{name}"'))
    admin.dispose()
    return url.set(database=name).render_as_string(hide_password=False)


@pytest.fixture
def postgresql_engine(postgresql_url: str) -> Iterator[Engine]:
    """An empty Capscan database in PostgreSQL."""
    engine = open_database(postgresql_url)
    if migrate.current(engine) is not None:
        migrate.downgrade(engine, "base")
    migrate.ensure_current(engine, create=True)
    yield engine
    engine.dispose()


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest) -> Engine:
    """An empty Capscan database, on each system."""
    found = request.getfixturevalue(f"{request.param}_engine")
    assert isinstance(found, Engine)
    return found
