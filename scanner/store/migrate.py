"""Bringing a database to the schema that this Capscan knows, or saying clearly why it is not there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, inspect

import migrations
from scanner.errors import DatabaseError, RevisionError
from scanner.store.session import connection_scope, database_name, for_writing, sqlite_file, translated


def head() -> str:
    """The schema revision that this Capscan reads and writes."""
    revision = ScriptDirectory.from_config(_config()).get_current_head()
    if revision is None:
        raise DatabaseError("this installation of Capscan has no migrations; install it again")
    return revision


def current(engine: Engine) -> str | None:
    """The schema revision of the database; None when it has none. Raises DatabaseError when it cannot be read."""
    with connection_scope(engine) as connection:
        return MigrationContext.configure(connection).get_current_revision()


def upgrade(engine: Engine) -> None:
    """Brings the database to `head()` in one transaction, making the file if there is none. Raises DatabaseError."""
    with translated(engine), for_writing(engine).connect() as connection, _foreign_keys_off(connection):
        config = _config()
        config.attributes["connection"] = connection
        with connection.begin():
            command.upgrade(config, "head")
            _check_foreign_keys(connection)
    _use_write_ahead_log(engine)


def downgrade(engine: Engine, revision: str) -> None:
    """Takes the database back to `revision`, `base` for none: for developers and tests. Raises DatabaseError."""
    with translated(engine), for_writing(engine).connect() as connection, _foreign_keys_off(connection):
        config = _config()
        config.attributes["connection"] = connection
        with connection.begin():
            command.downgrade(config, revision)
            _check_foreign_keys(connection)


def ensure_current(engine: Engine, *, create: bool) -> None:
    """Returns when the database has the revision `head()`.

    With `create` (what a scan wants) an empty or missing database is made, and an older one upgraded. Without it,
    these raise DatabaseError and RevisionError that name the command to run. A database that is not Capscan's, is
    not a database, or comes from a newer Capscan raises DatabaseError either way.
    """
    name = database_name(engine)
    file = sqlite_file(engine)
    if file is not None and not file.exists() and not create:
        raise DatabaseError(f"{name} does not exist: run `capscan scan PATH… --db {name}` first")
    revision = current(engine)
    if revision is None:
        _ensure_empty(engine)
        if not create:
            raise DatabaseError(f"{name} is empty: run `capscan scan PATH… --db {name}` first")
    elif revision == head():
        return
    elif revision not in _known_revisions():
        raise DatabaseError(
            f"{name} has the schema revision {revision}, which this Capscan does not know (it knows up to {head()}): "
            "a newer Capscan wrote it, upgrade Capscan to use it"
        )
    elif not create:
        raise RevisionError(
            f"{name} has the schema revision {revision}, this Capscan needs {head()}: "
            f"run `capscan db upgrade --db {name}`"
        )
    upgrade(engine)


def _config() -> Config:
    config = Config()
    # The configuration interpolates percent signs, which a path may hold.
    config.set_main_option("script_location", _migrations_folder().replace("%", "%%"))
    return config


def _migrations_folder() -> str:
    if migrations.__file__ is None:
        raise DatabaseError("this installation of Capscan has no migrations; install it again")
    return str(Path(migrations.__file__).parent)


def _known_revisions() -> set[str]:
    return {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}


def _ensure_empty(engine: Engine) -> None:
    with connection_scope(engine) as connection:
        tables = sorted(set(inspect(connection).get_table_names()) - {"alembic_version"})
    if tables:
        raise DatabaseError(
            f"{database_name(engine)} is not a Capscan database: it has other tables ({', '.join(tables[:3])}"
            f"{', …' if len(tables) > 3 else ''}); choose another with --db"
        )


@contextmanager
def _foreign_keys_off(connection: Connection) -> Iterator[None]:
    """SQLite changes a table by copying and dropping it, and dropping would delete all rows that refer to it.

    The pragma works only outside a transaction, so it goes past SQLAlchemy, which would begin one.
    """
    if connection.dialect.name != "sqlite":
        yield
        return
    driver = connection.connection.driver_connection
    assert driver is not None, "an open connection has its driver's connection"  # noqa: S101 - narrows the type
    driver.execute("PRAGMA foreign_keys = OFF")
    try:
        yield
    finally:
        driver.execute("PRAGMA foreign_keys = ON")


def _check_foreign_keys(connection: Connection) -> None:
    if connection.dialect.name != "sqlite":
        return
    broken = connection.exec_driver_sql("PRAGMA foreign_key_check").first()
    if broken is not None:
        raise DatabaseError(
            f"the migration would leave rows of {broken[0]} without what they refer to; nothing changed"
        )


def _use_write_ahead_log(engine: Engine) -> None:
    """Readers then never wait for a writer. Kept in the file, so it is set where the file is made, not on connecting:
    a reader must not change a file that may not even be Capscan's."""
    if sqlite_file(engine) is None:
        return
    with translated(engine):
        raw = engine.raw_connection()
        try:
            raw.cursor().execute("PRAGMA journal_mode = WAL")
        finally:
            raw.close()
