"""Opening a database, and short transactions whose errors a person can read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.orm import Session
from sqlalchemy.pool import ConnectionPoolEntry

from scanner.errors import DatabaseError

BUSY_TIMEOUT_MS = 10_000
"""How long SQLite waits for another writer before it gives up."""

# What drivers say, in small letters → what a person is told. The first that fits is taken.
_KNOWN_FAILURES = (
    ("database is locked", "another program is writing to it; try again when that has finished"),
    ("readonly database", "it cannot be written to: the file, its folder or the disk is read-only"),
    ("disk is full", "the disk is full"),
    ("no space left", "the disk is full"),
    ("not a database", "this is not a database"),
    ("malformed", "the database file is damaged"),
    ("unable to open database file", "the file cannot be opened: is its folder there, and may you use it?"),
    ("no such table", "it is not a Capscan database"),
)


def open_database(target: str) -> Engine:
    """The engine of a database: `target` is an SQLAlchemy URL, or else the path of an SQLite file.

    Nothing is connected to or created yet. Raises DatabaseError for a URL that makes no sense, or whose driver is not
    installed.
    """
    url = _url(target)
    try:
        engine = create_engine(url)
    except (ArgumentError, NoSuchModuleError) as error:
        raise DatabaseError(f"{_shown(url)}: {one_line(error)}") from error
    except ModuleNotFoundError as error:
        raise DatabaseError(
            f"{_shown(url)}: the driver {error.name} is not installed (for PostgreSQL: pip install 'capscan[postgres]')"
        ) from error
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _configure_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    return engine


def for_writing(engine: Engine) -> Engine:
    """The same engine, whose SQLite transactions take the write lock at once.

    A transaction that reads first and locks later cannot wait for another writer: SQLite must fail it, because what
    it read may be outdated.
    """
    return engine.execution_options(sqlite_begin="BEGIN IMMEDIATE")


def sqlite_file(engine: Engine) -> Path | None:
    """The file behind an SQLite engine; None for other databases and for one in memory."""
    name = engine.url.database
    if engine.dialect.name != "sqlite" or not name or name == ":memory:" or name.startswith("file:"):
        return None
    return Path(name)


def database_name(engine: Engine) -> str:
    """How to call the database in a message: the file, or the URL without its password."""
    return _shown(engine.url)


@contextmanager
def session_scope(engine: Engine) -> Iterator[Session]:
    """A session in one transaction: committed at the end, rolled back if anything was raised.

    Raises DatabaseError, in one line, for whatever the database refuses.
    """
    with translated(engine), Session(engine) as session, session.begin():
        yield session


@contextmanager
def connection_scope(engine: Engine) -> Iterator[Connection]:
    """A connection in one transaction; ends and fails as `session_scope` does."""
    with translated(engine), engine.begin() as connection:
        yield connection


@contextmanager
def translated(engine: Engine) -> Iterator[None]:
    """Turns errors of the database driver inside the block into DatabaseError."""
    try:
        yield
    except DBAPIError as error:
        raise DatabaseError(f"{database_name(engine)}: {_explained(error)}") from error


def one_line(error: BaseException) -> str:
    """The message of an error in one line."""
    return " ".join(str(error).split()) or type(error).__name__


def _url(target: str) -> URL:
    if "://" not in target:
        return URL.create("sqlite", database=target)
    try:
        url = make_url(target)
    except (ArgumentError, ValueError) as error:
        # The URL may hold a password, and so may the error's own message.
        raise DatabaseError(
            "the database URL cannot be understood (expected dialect://user:password@host/name)"
        ) from error
    if url.drivername in ("postgresql", "postgres"):
        # The only PostgreSQL driver that Capscan names as a dependency.
        return url.set(drivername="postgresql+psycopg")
    return url


def _shown(url: URL) -> str:
    if url.get_backend_name() == "sqlite":
        return url.database or ":memory:"
    return url.render_as_string(hide_password=True)


def _explained(error: DBAPIError) -> str:
    said = one_line(error.orig if error.orig is not None else error)
    return next((meaning for words, meaning in _KNOWN_FAILURES if words in said.lower()), said)


def _configure_sqlite(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    # Python's driver would begin transactions late, and never for a schema change; `_begin_sqlite` begins them.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
    cursor.execute("PRAGMA foreign_keys = ON")
    # With a write-ahead log a crash of the machine may lose the last commits, never the file.
    cursor.execute("PRAGMA synchronous = NORMAL")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get("sqlite_begin", "BEGIN"))
