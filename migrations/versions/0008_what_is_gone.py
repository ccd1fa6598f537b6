"""Files that are gone leave the view of the latest ones, and which text of a standard prompt came from the request."""

from __future__ import annotations

from importlib import import_module

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

# A migration is a record of what was, and so is the one that made these views last.
FORMER = import_module("migrations.versions.0006_names_of_models")

# As before, without the files that are gone: a newer scan of the same sources came to its end and did not see them.
_NEWEST = "newest_scans AS (SELECT sources, MAX(id) AS id FROM scans WHERE status = 'finished' GROUP BY sources)"
_JOINED = "LEFT JOIN newest_scans ON newest_scans.sources = scans.sources"
_CONDITION = "WHERE newest_scans.id IS NULL OR newest_scans.id <= seen.scan_id"
LATEST_FILES = "\n".join(
    (FORMER.LATEST_FILES.replace("newest AS (", f"{_NEWEST},\nnewest AS (", 1).rstrip(), _JOINED, _CONDITION)
)

VIEWS = (LATEST_FILES, *FORMER.VIEWS[1:])


def upgrade() -> None:
    """Makes the views anew; the column is null in what is there already."""
    _remake(VIEWS)
    with op.batch_alter_table("renders", recreate="never") as batch:
        batch.add_column(sa.Column("inputs", sa.Text(), nullable=True))


def downgrade() -> None:
    """Takes both back."""
    with op.batch_alter_table("renders", recreate="never") as batch:
        batch.drop_column("inputs")
    _remake(FORMER.VIEWS)


def _remake(views: tuple[str, ...]) -> None:
    for name in ("outliers", "flag_distribution", "latest_files"):
        op.execute(f"DROP VIEW {name}")
    for statement in views:
        op.execute(statement)
