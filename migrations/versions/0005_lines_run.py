"""Which lines of a template hold something to run, and which of them each probe ran."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

TABLES = ("analyses", "probe_runs")


def upgrade() -> None:
    """Adds the columns; null in what is there already, of which nobody knows the lines."""
    for table in TABLES:
        with op.batch_alter_table(table, recreate="never") as batch:
            batch.add_column(sa.Column("lines", sa.Text(), nullable=True))


def downgrade() -> None:
    """Drops them, in place: the views that read these tables would not outlive their being made anew."""
    for table in TABLES:
        with op.batch_alter_table(table, recreate="never") as batch:
            batch.drop_column("lines")
