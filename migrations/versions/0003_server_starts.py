"""Whether llama-server starts with a template, and whether it thinks by default."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

INT64 = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def columns() -> tuple[sa.Column[object], ...]:
    """The new columns of `analyses`; all may be null, so that nothing has to be examined again at once."""
    return (
        sa.Column("server_starts", sa.Boolean(), nullable=True),
        sa.Column("thinks_by_default", sa.Boolean(), nullable=True),
        sa.Column("start_conversation", sa.Text(), nullable=True),
        sa.Column("start_error_kind", sa.Text(), nullable=True),
        sa.Column("start_error_message", sa.Text(), nullable=True),
        sa.Column("start_error_node", sa.Text(), nullable=True),
        sa.Column("start_error_offset", INT64, nullable=True),
        sa.Column("start_error_line", INT64, nullable=True),
        sa.Column("start_error_column", INT64, nullable=True),
        sa.Column("start_log", sa.Text(), nullable=True),
    )


def upgrade() -> None:
    """Adds them, and what is known already: a template that does not parse keeps a server from starting."""
    with op.batch_alter_table("analyses") as batch:
        for column in columns():
            batch.add_column(column)
    analyses = sa.table("analyses", sa.column("outcome", sa.Text), sa.column("server_starts", sa.Boolean))
    op.execute(analyses.update().where(analyses.c.outcome == "not parseable").values(server_starts=False))


def downgrade() -> None:
    """Drops them, in place: the views that read this table would not outlive its being made anew."""
    with op.batch_alter_table("analyses", recreate="never") as batch:
        for column in reversed(columns()):
            batch.drop_column(column.name)
