"""SQL of a person's own, which can read and nothing else, and not for ever."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from sqlalchemy import Engine, func, select

from scanner.errors import DatabaseError, UsageError
from scanner.store.session import database_name, one_line, read_only_uri, sqlite_file, translated

_PAGE = 500


class Rows(NamedTuple):
    """The answer of a query: column names, and rows as they come. Text is as stored (`models.SafeText`). Closing
    `rows`, or reading it to its end, lets the database go."""

    columns: tuple[str, ...]
    rows: Iterator[tuple[object, ...]]


Values = Mapping[str, str | None]
"""What stands for the parameters of a statement, by name."""


def run_sql(engine: Engine, sql: str, *, seconds: float, values: Values | None = None) -> Rows:
    """Runs one statement of a person's own, which the database itself keeps from writing, for at most `seconds`.

    A parameter in the SQL is `:name`; the driver binds its value, which never becomes part of the SQL. The time is what
    the database works; what the caller does between rows does not count. Raises UsageError, here or while rows are
    read, with the database's message: wrong SQL, a statement that would write, time is up.
    """
    if engine.dialect.name == "sqlite":
        stream = _sqlite_rows(engine, sql, seconds, values or {})
    elif engine.dialect.name == "postgresql":
        stream = _postgresql_rows(engine, sql, seconds, values or {})
    else:
        raise UsageError(f"queries are offered on SQLite and PostgreSQL, not on {engine.dialect.name}")
    return Rows(columns=tuple(str(name) for name in next(stream)), rows=stream)


class _TimeLimit:
    """Time that the database may work; it stops counting while nobody waits for it."""

    def __init__(self, seconds: float) -> None:
        self._left = seconds
        self._started: float | None = None

    @contextmanager
    def counting(self) -> Iterator[None]:
        self._started = time.monotonic()
        try:
            yield
        finally:
            self._left -= time.monotonic() - self._started
            self._started = None

    def is_over(self) -> bool:
        running = 0.0 if self._started is None else time.monotonic() - self._started
        return running >= self._left


_READING_ACTIONS = frozenset(
    (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
)
_READING_PRAGMAS = frozenset(
    ("table_info", "table_xinfo", "table_list", "index_list", "index_info", "foreign_key_list")
)
_STEPS_BETWEEN_CHECKS = 10_000


def _authorize(action: int, first: str | None, *_rest: str | None) -> int:
    """Allows what reads this one database. ATTACH would open other files, and a pragma could lift `query_only`."""
    reads = action in _READING_ACTIONS or (action == sqlite3.SQLITE_PRAGMA and first in _READING_PRAGMAS)
    return sqlite3.SQLITE_OK if reads else sqlite3.SQLITE_DENY


def _open_read_only(engine: Engine, is_over: Callable[[], bool]) -> sqlite3.Connection:
    file = sqlite_file(engine)
    if file is None:
        raise UsageError("queries need a database that is a file, not one in memory")
    try:
        connection = sqlite3.connect(read_only_uri(file), uri=True, isolation_level=None)
    except sqlite3.Error as error:
        raise DatabaseError(f"{database_name(engine)}: {one_line(error)}") from error
    connection.text_factory = lambda data: str(data, "utf-8", "replace")
    connection.execute("PRAGMA query_only = ON")
    connection.set_authorizer(_authorize)
    connection.set_progress_handler(is_over, _STEPS_BETWEEN_CHECKS)
    return connection


def _sqlite_rows(engine: Engine, sql: str, seconds: float, values: Values) -> Iterator[tuple[object, ...]]:
    """First the names of the columns, then the rows."""
    limit = _TimeLimit(seconds)
    connection = _open_read_only(engine, limit.is_over)
    try:
        with _sqlite_refusals(limit, seconds), limit.counting():
            cursor = connection.execute(sql, dict(values))
        yield _column_names(cursor)
        while True:
            with _sqlite_refusals(limit, seconds), limit.counting():
                rows = cursor.fetchmany(_PAGE)
            if not rows:
                return
            yield from rows
    finally:
        connection.close()


@contextmanager
def _sqlite_refusals(limit: _TimeLimit, seconds: float) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
        # ValueError: the SQL holds what no SQL can, such as a lone surrogate.
        if limit.is_over():
            raise UsageError(f"the query was stopped after {seconds:g} s") from error
        raise UsageError(f"the query was refused: {one_line(error)}") from error


def _postgresql_rows(engine: Engine, sql: str, seconds: float, values: Values) -> Iterator[tuple[object, ...]]:
    """First the names of the columns, then the rows."""
    # Never committed: what a statement set for the session must not outlive it.
    reading = engine.execution_options(postgresql_readonly=True)
    with translated(engine), reading.connect() as connection:
        milliseconds = max(1, int(seconds * 1000))
        connection.execute(select(func.set_config("statement_timeout", str(milliseconds), True)))
        driver: Any = connection.connection.driver_connection
        with driver.cursor() as cursor:
            try:
                # As a prepared statement it can be but one: a second, after COMMIT, would be free to write.
                cursor.execute(*_for_psycopg(sql, values), prepare=True)
            except (engine.dialect.loaded_dbapi.Error, ValueError) as error:
                raise UsageError(f"the query was refused: {one_line(error)}") from error
            yield _column_names(cursor)
            yield from cursor


def _for_psycopg(sql: str, values: Values) -> tuple[str, Values | None]:
    """The SQL with the parameters that have a value as psycopg writes them (`%(name)s`), for which a `%` is two; as it
    is where there are none. What looks like one behind another colon is a cast."""
    if not values:
        return sql, None
    names = "|".join(map(re.escape, values))
    return re.sub(rf"(?<![:\w]):({names})\b", r"%(\1)s", sql.replace("%", "%%")), values


def _column_names(cursor: Any) -> tuple[str, ...]:
    if cursor.description is None:
        raise UsageError("the query gives no table: it must be one SELECT")
    return tuple(str(column[0]) for column in cursor.description)
