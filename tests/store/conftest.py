"""Databases to test on: always SQLite, and PostgreSQL where `$CAPSCAN_TEST_POSTGRES` names one that may be emptied."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from scanner.store import migrate
from scanner.store.session import open_database


@pytest.fixture
def sqlite_engine(tmp_path: Path) -> Iterator[Engine]:
    """An empty Capscan database in a file."""
    engine = open_database(str(tmp_path / "capscan.sqlite"))
    migrate.ensure_current(engine, create=True)
    yield engine
    engine.dispose()


@pytest.fixture
def postgresql_engine() -> Iterator[Engine]:
    """An empty Capscan database in PostgreSQL."""
    url = os.environ.get("CAPSCAN_TEST_POSTGRES")
    if not url:
        pytest.skip("CAPSCAN_TEST_POSTGRES is not set")
    engine = open_database(url)
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
