"""Opening a database, and short transactions whose errors a person can read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from sqlalchemy import URL, Connection, Dialect, Engine, create_engine, event, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.orm import Session
from sqlalchemy.pool import ConnectionPoolEntry

from scanner.errors import DatabaseError

BUSY_TIMEOUT_MS = 10_000
"""How long SQLite waits for another writer before it gives up."""

_FULL = "the disk is full; what was written before is kept, so make room and run it again"

# What drivers say, in small letters → what a person is told. The first that fits is taken.
_KNOWN_FAILURES = (
    ("database is locked", "another program is writing to it; try again when that has finished"),
    ("readonly database", "it cannot be written to: the file, its folder or the disk is read-only"),
    ("disk is full", _FULL),
    ("no space left", _FULL),
    (
        "disk i/o error",
        "its disk does not take or give the data (a quota or a limit on the size of files? a broken disk?); "
        "what was written before is kept",
    ),
    ("not a database", "this is not a database; choose another with --db"),
    ("malformed", "the database file is damaged; `sqlite3 FILE .recover` saves what it can, or restore a copy"),
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
        event.listen(engine, "do_connect", _open_sqlite)
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
    if engine.dialect.name != "sqlite" or not name or name == ":memory:":
        return None
    if not name.startswith("file:"):
        return Path(name)
    in_memory = engine.url.query.get("mode") == "memory" or name == "file::memory:"
    return None if in_memory else Path(unquote(name.removeprefix("file:").removeprefix("//")))


def read_only_uri(file: Path) -> str:
    """How SQLite opens a file to read it only."""
    rest = "&immutable=1" if _is_at_rest(file) else ""
    return f"file:{quote(os.fsencode(file.absolute()))}?mode=ro{rest}"


def ensure_sqlite(engine: Engine) -> None:
    """Returns where the file of an engine is an SQLite database, empty, or not there: before anything is put beside it.
    Raises DatabaseError for a folder and for another kind of file."""
    file = sqlite_file(engine)
    if file is None or not file.exists():
        return
    _refuse_folder(file)
    try:
        with file.open("rb") as opened:
            start = opened.read(len(_SQLITE_MAGIC))
    except OSError as error:
        raise DatabaseError(f"{file}: the database cannot be read: {error.strerror or one_line(error)}") from error
    if start and start != _SQLITE_MAGIC:
        raise DatabaseError(f"{file}: this is not a database; choose another with --db")


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


_SQLITE_MAGIC = b"SQLite format 3\0"
_HEADER_BYTES = 20
_WAL_VERSIONS = b"\x02\x02"
"""The bytes 18 and 19 of a database with a write-ahead log."""


def _open_sqlite(_dialect: Dialect, _entry: ConnectionPoolEntry, arguments: list[Any], options: dict[str, Any]) -> None:
    """A folder is refused by name; a file that is at rest where nothing can be written is opened as immutable."""
    name = arguments[0] if arguments else ""
    if not isinstance(name, str) or name.startswith("file:"):
        return
    file = Path(name)
    _refuse_folder(file)
    _refuse_log_alone(file)
    if _is_at_rest(file):
        arguments[0] = read_only_uri(file)
        options["uri"] = True


def _refuse_folder(file: Path) -> None:
    if file.is_dir():
        raise DatabaseError(f"{file}: this is a folder; name a file in it: --db {file / 'capscan.db'}")


def _refuse_log_alone(file: Path) -> None:
    """What a killed process left in the log can be read only where SQLite may write its index."""
    log, index = Path(f"{file}-wal"), Path(f"{file}-shm")
    if os.access(file.parent, os.W_OK) or index.exists() or not (log.exists() and log.stat().st_size):
        return
    raise DatabaseError(
        f"{file}: a part of it is still in its log {log.name}, and its folder cannot be written to: run "
        "`capscan db current` once where it can be, or copy both files into another folder"
    )


def _is_at_rest(file: Path) -> bool:
    """Whether a database with a write-ahead log lies in a folder that cannot be written to, and no log is beside it.

    SQLite would want to make the log and its index even to read, and fail. Without a log everything is in the file, and
    nobody is writing to it: whoever does has the log there. (Should another user begin to write while it is read, an
    answer may be wrong, or fail; the next one is right.)
    """
    if os.access(file.parent, os.W_OK):
        return False
    try:
        log = Path(f"{file}-wal")
        if log.exists() and log.stat().st_size:
            return False
        with file.open("rb") as opened:
            header = opened.read(_HEADER_BYTES)
    except OSError:
        return False
    return header.startswith(_SQLITE_MAGIC) and header[18:20] == _WAL_VERSIONS


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
