"""What Alembic runs: with the connection Capscan hands over, or, for a developer, with the database `$CAPSCAN_DB`."""

from __future__ import annotations

import os
from typing import Any, Literal

from alembic import context
from alembic.autogenerate.api import AutogenContext
from alembic.util import CommandError
from sqlalchemy import Connection, TypeDecorator

from scanner.store.models import Base
from scanner.store.session import for_writing, open_database


def _render_item(kind: str, item: Any, autogen_context: AutogenContext) -> str | Literal[False]:  # noqa: ARG001 - the interface
    """Writes a type of ours as what it is in the database: a migration must not change when the models do."""
    if kind == "type" and isinstance(item, TypeDecorator):
        plain = item.impl
        while isinstance(plain, TypeDecorator):
            plain = plain.impl
        return f"sa.{plain!r}"
    return False


def _migrate(connection: Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        render_as_batch=connection.dialect.name == "sqlite",
        render_item=_render_item,
    )
    with context.begin_transaction():
        context.run_migrations()


def _migrate_own() -> None:
    engine = for_writing(open_database(os.environ.get("CAPSCAN_DB", "capscan.db")))
    with engine.begin() as connection:
        _migrate(connection)
    engine.dispose()


if context.is_offline_mode():
    raise CommandError("SQL scripts are not offered: a migration may read the data it changes")
if "connection" in context.config.attributes:
    _migrate(context.config.attributes["connection"])
else:
    _migrate_own()
