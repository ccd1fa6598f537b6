"""One piece of work at a time on each database, by a lock that the system takes back from a process that dies.

SQLite: `flock` on the file `<database>.lock` beside the database. The file stays when the lock is released; what is in
it only says who holds the lock. PostgreSQL: an advisory lock of a session that lasts as long as the work. A database in
memory is nobody else's; other systems than these two have no lock here.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import socket
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from scanner.errors import DatabaseError
from scanner.store.session import (
    connection_scope,
    database_name,
    ensure_sqlite,
    one_line,
    sqlite_file,
    translated,
)

POLL_SECONDS = 0.2
"""How often a lock is asked for again by one who waits."""

ADVISORY_KEY = 0x43415053
"""The first half of our key for PostgreSQL ("CAPS"); the second half tells schemas of one database apart."""

_HOST_LENGTH = 24
"""Of a host's name so much goes to PostgreSQL, which keeps 63 bytes of what a session calls itself."""


class LockedError(DatabaseError):
    """Another process works on the database, and it was not waited for, or not long enough."""

    slug: ClassVar[str] = "locked"


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a lock, for a message and nothing else. `work`: the command; `since`: an ISO time in UTC."""

    work: str
    pid: int
    host: str
    since: str


@dataclass(frozen=True, slots=True)
class DatabaseLock:
    """Shows that the lock is held."""

    holder: Holder


@contextmanager
def database_lock(
    engine: Engine,
    work: str,
    *,
    wait: float = 0.0,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Iterator[DatabaseLock]:
    """Holds the lock of a database, whose file need not be there yet, for the command `work`.

    Raises LockedError when another process still holds it after `wait` seconds, and DatabaseError where there can be
    no lock: in a folder that cannot be written to, on a file system without locks, beside a file of another kind.
    """
    mine = Holder(work, os.getpid(), socket.gethostname(), now().astimezone(UTC).isoformat(timespec="seconds"))
    if engine.dialect.name == "postgresql":
        with _session_lock(engine, mine, wait):
            yield DatabaseLock(mine)
        return
    file = sqlite_file(engine)
    if file is None:
        yield DatabaseLock(mine)
        return
    ensure_sqlite(engine)
    with _file_lock(lock_file(file), mine, wait, database_name(engine)):
        yield DatabaseLock(mine)


def lock_file(database: Path) -> Path:
    """The lock of an SQLite file, the same under every link to it."""
    return Path(f"{os.path.realpath(database)}.lock")


def _keep_trying(attempt: Callable[[], bool], holder: Callable[[], Holder | None], wait: float, name: str) -> None:
    deadline = time.monotonic() + wait
    while not attempt():
        left = deadline - time.monotonic()
        if left <= 0:
            raise LockedError(_refusal(holder(), wait, name))
        time.sleep(min(POLL_SECONDS, left))


def _refusal(holder: Holder | None, wait: float, name: str) -> str:
    who = (
        "another process is at work on it"
        if holder is None
        else f"`capscan {holder.work}` is at work on it: process {holder.pid} on {holder.host}, "
        f"since {holder.since.replace('T', ' ').replace('+00:00', ' UTC')}"
    )
    advice = f"it was waited for {wait:g} s" if wait else "--wait SECONDS waits for it"
    return f"{name}: {who}; {advice}"


# -- SQLite ------------------------------------------------------------------------------------------------------------


@contextmanager
def _file_lock(path: Path, mine: Holder, wait: float, name: str) -> Iterator[None]:
    taken: list[int] = []

    def attempt() -> bool:
        descriptor = _try_file(path, name)
        if descriptor is None:
            return False
        taken.append(descriptor)
        return True

    _keep_trying(attempt, lambda: _holder_in(path), wait, name)
    (descriptor,) = taken
    try:
        _describe(descriptor, asdict(mine))
        yield
    finally:
        _describe(descriptor, None)
        os.close(descriptor)


def _try_file(path: Path, name: str) -> int | None:
    """The open and locked file; None while another process has it."""
    descriptor = _open(path, name)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_at(descriptor, path):
            return descriptor
    except BlockingIOError:
        pass
    except OSError as error:
        os.close(descriptor)
        raise DatabaseError(
            f"{name}: its file system has no locks ({_words(error)}): put the database on a local disk, "
            "or use PostgreSQL"
        ) from error
    os.close(descriptor)
    return None


def _open(path: Path, name: str) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o666)
    except FileNotFoundError as error:
        raise DatabaseError(f"{name}: the folder {path.parent} does not exist; make it first") from error
    except OSError as error:
        # The lock of another user, who shares the database, can be taken without writing to it.
        with suppress(OSError):
            return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise DatabaseError(
                f"{name}: the folder {path.parent} cannot be written to, and the lock of a scan ({path.name}) is kept "
                "there; choose another database with --db"
            ) from error
        raise DatabaseError(f"{name}: its lock {path} cannot be opened: {_words(error)}") from error


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether the locked file is still the one at the path: somebody may have removed it in between."""
    try:
        found = path.stat(follow_symlinks=False)
    except OSError:
        return False
    return os.path.samestat(os.fstat(descriptor), found)


def _describe(descriptor: int, holder: dict[str, object] | None) -> None:
    """Say in the file who holds it, or that nobody does. Where that cannot be written, the lock is as good."""
    with suppress(OSError):
        os.ftruncate(descriptor, 0)
        if holder is not None:
            os.pwrite(descriptor, json.dumps(holder).encode() + b"\n", 0)


def _holder_in(path: Path) -> Holder | None:
    try:
        said = json.loads(path.read_bytes()[:4096])
        return Holder(str(said["work"]), int(said["pid"]), str(said["host"]), str(said["since"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _words(error: OSError) -> str:
    return error.strerror or one_line(error)


# -- PostgreSQL --------------------------------------------------------------------------------------------------------


@contextmanager
def _session_lock(engine: Engine, mine: Holder, wait: float) -> Iterator[None]:
    """A connection of its own, without a transaction: one that stays open for hours would keep the server from tidying
    up. It is closed, not given back to the pool, which would keep the session and its lock."""
    with translated(engine), engine.connect() as opened:
        connection = opened.execution_options(isolation_level="AUTOCOMMIT")
        try:
            schema = connection.execute(text("SELECT current_schema()")).scalar() or ""
            keys = {"first": ADVISORY_KEY, "second": zlib.crc32(schema.encode()) & 0x7FFFFFFF}
            _prepare_session(connection, mine)
            _keep_trying(
                lambda: bool(connection.execute(_TRY, keys).scalar()),
                lambda: _holder_of(engine, keys),
                wait,
                database_name(engine),
            )
            try:
                yield
            finally:
                # The end of the session would do, but the server takes a moment to notice it.
                with suppress(DBAPIError):
                    connection.execute(_LEAVE, keys)
        finally:
            connection.invalidate()


_TRY = text("SELECT pg_try_advisory_lock(CAST(:first AS integer), CAST(:second AS integer))")

_LEAVE = text("SELECT pg_advisory_unlock(CAST(:first AS integer), CAST(:second AS integer))")

_WHO = text(
    "SELECT activity.application_name FROM pg_locks JOIN pg_stat_activity AS activity ON activity.pid = pg_locks.pid "
    "WHERE locktype = 'advisory' AND granted AND objsubid = 2 "
    "AND classid = CAST(CAST(:first AS bigint) AS oid) AND objid = CAST(CAST(:second AS bigint) AS oid) "
    "AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


def _prepare_session(connection: Connection, mine: Holder) -> None:
    """Says who we are, keeps the idle connection from being cut, and lets the server notice a machine that is gone."""
    settings = {
        "application_name": f"capscan {mine.work} {mine.pid}@{mine.host[:_HOST_LENGTH]} {mine.since[:19]}",
        "tcp_keepalives_idle": "60",
        "tcp_keepalives_interval": "15",
        "tcp_keepalives_count": "4",
    }
    if (connection.dialect.server_version_info or (0,)) >= (14,):
        settings["idle_session_timeout"] = "0"
    for setting, value in settings.items():
        connection.execute(text("SELECT set_config(:setting, :value, false)"), {"setting": setting, "value": value})


_NAMED = re.compile(r"capscan (?P<work>[a-z ]+) (?P<pid>\d+)@(?P<host>\S+) (?P<since>\S+)")


def _holder_of(engine: Engine, keys: dict[str, int]) -> Holder | None:
    with connection_scope(engine) as connection:
        found = _NAMED.fullmatch(str(connection.execute(_WHO, keys).scalar()))
    if found is None:
        return None
    return Holder(found["work"], int(found["pid"]), found["host"], f"{found['since']}+00:00")
