"""What stores call a model file, what a file is that is no model of its own, and Go templates beside Jinja ones."""

from __future__ import annotations

from importlib import import_module

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

INT64 = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

# A migration is a record of what was, and so is the one that made these views last.
FORMER = import_module("migrations.versions.0004_what_is_really_true")

FLAGS = (*FORMER.CLAIMS, *FORMER.OBSERVED)

# Each model file as the newest finished scan saw it in which it was seen, else as an interrupted one did: a row a
# variant. `name` and `repository` are those of the first of its names in that scan.
LATEST_FILES = f"""
CREATE VIEW latest_files AS
WITH seen AS (
    SELECT
        appearances.model_file_id,
        COALESCE(
            MAX(CASE WHEN scans.status = 'finished' THEN appearances.scan_id END),
            MAX(appearances.scan_id)
        ) AS scan_id
    FROM appearances
    JOIN scans ON scans.id = appearances.scan_id
    WHERE scans.status IN ('finished', 'interrupted')
    GROUP BY appearances.model_file_id
),
newest AS ({FORMER.newest(FLAGS)})
SELECT
    appearances.model_file_id,
    appearances.scan_id,
    appearances.template_id,
    model_files.path,
    appearances.variant,
    templates.sha256,
    appearances.outcome,
    appearances.reason,
    appearances.byte_offset,
    appearances.expected,
    model_files.kind,
    model_files.size,
    model_files.architecture,
    model_files.file_type,
    model_files.quantized_by,
    scans.profile,
    {", ".join(f"newest.{flag}" for flag in FLAGS)},
    model_names.name,
    model_names.repository,
    model_files.role
FROM seen
JOIN appearances ON appearances.model_file_id = seen.model_file_id AND appearances.scan_id = seen.scan_id
JOIN scans ON scans.id = seen.scan_id
JOIN model_files ON model_files.id = seen.model_file_id
LEFT JOIN templates ON templates.id = appearances.template_id
LEFT JOIN newest ON newest.template_id = appearances.template_id AND newest.profile = scans.profile
LEFT JOIN model_names ON model_names.scan_id = seen.scan_id
    AND model_names.model_file_id = seen.model_file_id
    AND model_names.position = 0
"""  # noqa: S608 - made of constants

VIEWS = (LATEST_FILES, FORMER.FLAG_DISTRIBUTION, FORMER.OUTLIERS)


def upgrade() -> None:
    """Adds the table and the columns, and makes the views anew. Templates that are there already are Jinja ones."""
    _drop_views()
    op.create_table(
        "model_names",
        sa.Column("scan_id", INT64, nullable=False),
        sa.Column("model_file_id", INT64, nullable=False),
        sa.Column("position", INT64, autoincrement=False, nullable=False),
        sa.Column("store", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("repository", sa.Text(), nullable=True),
        sa.Column("revision", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["scan_id"], ["scans.id"], name=op.f("fk_model_names_scan_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["model_file_id"], ["model_files.id"], name=op.f("fk_model_names_model_file_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("scan_id", "model_file_id", "position", name=op.f("pk_model_names")),
    )
    op.create_index(op.f("ix_model_names_model_file_id"), "model_names", ["model_file_id"])
    op.create_index(op.f("ix_model_names_name"), "model_names", ["name"])
    with op.batch_alter_table("model_files", recreate="never") as batch:
        batch.add_column(sa.Column("role", sa.Text(), nullable=True))
    with op.batch_alter_table("templates", recreate="never") as batch:
        batch.add_column(sa.Column("kind", sa.Text(), nullable=False, server_default="jinja"))
    for statement in VIEWS:
        op.execute(statement)


def downgrade() -> None:
    """Takes all of it back. A Go template becomes one that is not analysed: nothing else could be said of it."""
    _drop_views()
    with op.batch_alter_table("templates", recreate="never") as batch:
        batch.drop_column("kind")
    with op.batch_alter_table("model_files", recreate="never") as batch:
        batch.drop_column("role")
    op.drop_index(op.f("ix_model_names_name"), table_name="model_names")
    op.drop_index(op.f("ix_model_names_model_file_id"), table_name="model_names")
    op.drop_table("model_names")
    for statement in FORMER.VIEWS:
        op.execute(statement)


def _drop_views() -> None:
    for name in ("outliers", "flag_distribution", "latest_files"):
        op.execute(f"DROP VIEW {name}")
