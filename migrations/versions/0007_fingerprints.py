"""The fingerprint of a model file in each scan, so that two scans tell whether the file itself is another."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the column; null in what is there already, of which nobody knows it."""
    with op.batch_alter_table("appearances", recreate="never") as batch:
        batch.add_column(sa.Column("fingerprint", sa.Text(), nullable=True))


def downgrade() -> None:
    """Drops it, in place: the views that read this table would not outlive its being made anew."""
    with op.batch_alter_table("appearances", recreate="never") as batch:
        batch.drop_column("fingerprint")
