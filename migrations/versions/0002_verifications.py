"""What the real llama.cpp said of a template."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

INT64 = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Makes the table."""
    op.create_table(
        "verifications",
        sa.Column("id", INT64, nullable=False),
        sa.Column("template_id", INT64, nullable=False),
        sa.Column("profile", sa.Text(), nullable=False),
        sa.Column("capscan_version", sa.Text(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("differences", sa.Text(), nullable=False),
        sa.Column("verified_at", sa.DateTime(), nullable=False),
        sa.CheckConstraint(
            "verdict IN ('equal', 'different', 'not comparable')", name=op.f("ck_verifications_verdict")
        ),
        sa.ForeignKeyConstraint(
            ["template_id"], ["templates.id"], name=op.f("fk_verifications_template_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_verifications")),
        sa.UniqueConstraint("template_id", "profile", name=op.f("uq_verifications_template_id_profile")),
    )


def downgrade() -> None:
    """Drops it."""
    op.drop_table("verifications")
