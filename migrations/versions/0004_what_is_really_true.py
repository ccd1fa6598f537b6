"""What is really true of a template beside what is claimed: observations, behaviours, and views that count them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

INT64 = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

CAPABILITIES = (
    "tools",
    "tool_calls",
    "parallel_tool_calls",
    "system_role",
    "string_content",
    "typed_content",
    "object_arguments",
    "preserve_reasoning",
    "reasoning_effort",
)

NEWEST_ANALYSES = "SELECT MAX(id) AS id FROM analyses GROUP BY template_id, profile"


def newest(flags: tuple[str, ...]) -> str:
    """The newest analyses with these columns. All columns would tie the views to those that an older revision drops."""
    columns = ", ".join(("id", "template_id", "profile", *flags))
    return f"SELECT {columns} FROM analyses WHERE id IN ({NEWEST_ANALYSES})"  # noqa: S608 - made of constants


def latest_files(flags: tuple[str, ...]) -> str:
    """Each model file as the newest finished scan saw it in which it was seen, else as an interrupted one did: a row a
    variant. `flags` are the columns of the template's newest analysis."""
    return f"""
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
newest AS ({newest(flags)})
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
    {", ".join(f"newest.{flag}" for flag in flags)}
FROM seen
JOIN appearances ON appearances.model_file_id = seen.model_file_id AND appearances.scan_id = seen.scan_id
JOIN scans ON scans.id = seen.scan_id
JOIN model_files ON model_files.id = seen.model_file_id
LEFT JOIN templates ON templates.id = appearances.template_id
LEFT JOIN newest ON newest.template_id = appearances.template_id AND newest.profile = scans.profile
"""  # noqa: S608 - made of constants


CLAIMS = tuple(f"supports_{name}" for name in CAPABILITIES)
OBSERVED = tuple(f"observed_{name}" for name in CAPABILITIES)

# How many templates and files claim each capability, and really have it, of how many that have a verdict, and where
# the two disagree, for every profile.
COUNTED = {
    "claiming": "claimed",
    "analysed": "claimed IS NOT NULL",
    "observed": "observed",
    "judged": "observed IS NOT NULL",
    "overclaiming": "claimed AND NOT observed",
    "underclaiming": "NOT claimed AND observed",
}
FLAG_DISTRIBUTION = f"""
CREATE VIEW flag_distribution AS
WITH held AS (SELECT DISTINCT model_file_id, template_id FROM latest_files WHERE template_id IS NOT NULL),
newest AS ({newest((*CLAIMS, *OBSERVED))}),
claims AS (
    {
    " UNION ALL ".join(
        f"SELECT newest.profile, '{name}' AS capability, held.template_id, held.model_file_id, "
        f"newest.supports_{name} AS claimed, newest.observed_{name} AS observed "
        "FROM held JOIN newest ON newest.template_id = held.template_id"
        for name in CAPABILITIES
    )
}
)
SELECT
    profile,
    capability,
    {
    ", ".join(
        f"COUNT(DISTINCT CASE WHEN {condition} THEN {key} END) AS {what}_{word}"
        for what, key in (("templates", "template_id"), ("files", "model_file_id"))
        for word, condition in COUNTED.items()
    )
}
FROM claims
GROUP BY profile, capability
"""  # noqa: S608 - made of the constants above

# Templates of the latest files with an error or a warning, or whose set of flags fewer than 2 % of the templates have,
# where these are at least 50. `alike` is how many have that set (null without flags), of `templates`. `rule`, `line`
# and `text` are those of the first of the worst findings; of a rare set of flags alone there is the text.
OUTLIERS = f"""
CREATE VIEW outliers AS
WITH held AS (
    SELECT template_id, MIN(path) AS path, COUNT(DISTINCT model_file_id) AS files
    FROM latest_files
    WHERE template_id IS NOT NULL
    GROUP BY template_id
),
analysed AS (
    SELECT newest.*, held.path, held.files
    FROM ({newest(CLAIMS)}) AS newest
    JOIN held ON held.template_id = newest.template_id
),
compared AS (
    SELECT
        id,
        COUNT(*) OVER (PARTITION BY profile, {", ".join(CLAIMS)}) AS alike,
        COUNT(*) OVER (PARTITION BY profile) AS templates
    FROM analysed
    WHERE {" OR ".join(f"{flag} IS NOT NULL" for flag in CLAIMS)}
),
ranked AS (
    SELECT
        analysis_id,
        rule,
        line,
        text,
        SUM(CASE WHEN severity = 'error' THEN 1 ELSE 0 END) OVER (PARTITION BY analysis_id) AS errors,
        SUM(CASE WHEN severity = 'warning' THEN 1 ELSE 0 END) OVER (PARTITION BY analysis_id) AS warnings,
        ROW_NUMBER() OVER (
            PARTITION BY analysis_id
            ORDER BY CASE severity WHEN 'error' THEN 0 ELSE 1 END, position
        ) AS place
    FROM findings
    WHERE severity IN ('error', 'warning') AND analysis_id IN ({NEWEST_ANALYSES})
)
SELECT
    analysed.profile,
    templates.sha256,
    analysed.path,
    analysed.files,
    CASE WHEN ranked.errors > 0 THEN 'error' WHEN ranked.warnings > 0 THEN 'warning' ELSE 'note' END AS severity,
    COALESCE(ranked.errors, 0) AS errors,
    COALESCE(ranked.warnings, 0) AS warnings,
    ranked.rule,
    ranked.line,
    COALESCE(
        ranked.text,
        'a rare set of flags: '
        || CASE compared.alike WHEN 1 THEN 'no other of ' ELSE 'only ' || compared.alike || ' of ' END
        || compared.templates
        || CASE compared.alike WHEN 1 THEN ' templates has it' ELSE ' templates have it' END
    ) AS text,
    compared.alike,
    compared.templates
FROM analysed
JOIN templates ON templates.id = analysed.template_id
LEFT JOIN compared ON compared.id = analysed.id
LEFT JOIN ranked ON ranked.analysis_id = analysed.id AND ranked.place = 1
WHERE ranked.analysis_id IS NOT NULL OR (compared.templates >= 50 AND compared.alike * 50 < compared.templates)
"""  # noqa: S608 - made of the constants above

FORMER_FLAG_DISTRIBUTION = f"""
CREATE VIEW flag_distribution AS
WITH held AS (SELECT DISTINCT model_file_id, template_id FROM latest_files WHERE template_id IS NOT NULL),
newest AS ({newest(CLAIMS)}),
claims AS (
    {
    " UNION ALL ".join(
        f"SELECT newest.profile, '{name}' AS capability, held.template_id, held.model_file_id, "
        f"newest.supports_{name} AS claimed FROM held JOIN newest ON newest.template_id = held.template_id"
        for name in CAPABILITIES
    )
}
)
SELECT
    profile,
    capability,
    COUNT(DISTINCT CASE WHEN claimed THEN template_id END) AS templates_claiming,
    COUNT(DISTINCT CASE WHEN claimed IS NOT NULL THEN template_id END) AS templates_analysed,
    COUNT(DISTINCT CASE WHEN claimed THEN model_file_id END) AS files_claiming,
    COUNT(DISTINCT CASE WHEN claimed IS NOT NULL THEN model_file_id END) AS files_analysed
FROM claims
GROUP BY profile, capability
"""  # noqa: S608 - made of the constants above

FORMER_OUTLIERS = f"""
CREATE VIEW outliers AS
WITH held AS (
    SELECT template_id, MIN(path) AS path, COUNT(DISTINCT model_file_id) AS files
    FROM latest_files
    WHERE template_id IS NOT NULL
    GROUP BY template_id
),
judged AS (
    SELECT
        analysis_id,
        SUM(CASE WHEN severity = 'error' THEN 1 ELSE 0 END) AS errors,
        SUM(CASE WHEN severity = 'warning' THEN 1 ELSE 0 END) AS warnings
    FROM findings
    WHERE severity IN ('error', 'warning') AND analysis_id IN ({NEWEST_ANALYSES})
    GROUP BY analysis_id
)
SELECT
    analyses.profile,
    templates.sha256,
    held.path,
    held.files,
    CASE WHEN judged.errors > 0 THEN 'error' ELSE 'warning' END AS severity,
    judged.errors,
    judged.warnings,
    (
        SELECT findings.text
        FROM findings
        WHERE findings.analysis_id = judged.analysis_id
            AND findings.severity = CASE WHEN judged.errors > 0 THEN 'error' ELSE 'warning' END
        ORDER BY findings.position
        LIMIT 1
    ) AS text
FROM judged
JOIN analyses ON analyses.id = judged.analysis_id
JOIN templates ON templates.id = analyses.template_id
JOIN held ON held.template_id = analyses.template_id
"""  # noqa: S608 - made of the constants above

VIEWS = (latest_files((*CLAIMS, *OBSERVED)), FLAG_DISTRIBUTION, OUTLIERS)
FORMER_VIEWS = (latest_files(CLAIMS), FORMER_FLAG_DISTRIBUTION, FORMER_OUTLIERS)


def upgrade() -> None:
    """Adds the tables and columns, and makes the views anew."""
    _drop_views()
    op.create_table(
        "observations",
        sa.Column("analysis_id", INT64, nullable=False),
        sa.Column("position", INT64, autoincrement=False, nullable=False),
        sa.Column("capability", sa.Text(), nullable=False),
        sa.Column("verdict", sa.Boolean(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("agreement", sa.Text(), nullable=True),
        sa.Column("ok", sa.Boolean(), nullable=True),
        sa.Column("variables", sa.Text(), nullable=True),
        sa.Column("output", sa.Text(), nullable=True),
        sa.Column("parts", sa.Text(), nullable=True),
        sa.Column("duration", sa.Double(), nullable=True),
        sa.Column("error_kind", sa.Text(), nullable=True),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column("error_node", sa.Text(), nullable=True),
        sa.Column("error_offset", INT64, nullable=True),
        sa.Column("error_line", INT64, nullable=True),
        sa.Column("error_column", INT64, nullable=True),
        sa.CheckConstraint(
            "agreement IN ('agrees', 'overclaims', 'underclaims')", name=op.f("ck_observations_agreement")
        ),
        sa.ForeignKeyConstraint(
            ["analysis_id"], ["analyses.id"], name=op.f("fk_observations_analysis_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("analysis_id", "position", name=op.f("pk_observations")),
    )
    op.create_table(
        "behaviours",
        sa.Column("analysis_id", INT64, nullable=False),
        sa.Column("position", INT64, autoincrement=False, nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("evidence", sa.Text(), nullable=False),
        sa.Column("line", INT64, nullable=True),
        sa.ForeignKeyConstraint(
            ["analysis_id"], ["analyses.id"], name=op.f("fk_behaviours_analysis_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("analysis_id", "position", name=op.f("pk_behaviours")),
    )
    op.create_index(op.f("ix_behaviours_key"), "behaviours", ["key"])
    with op.batch_alter_table("efforts", recreate="never") as batch:
        batch.add_column(sa.Column("line", INT64, nullable=True))
    with op.batch_alter_table("analyses", recreate="never") as batch:
        batch.add_column(sa.Column("free_text_effort", sa.Text(), nullable=True))
    for statement in VIEWS:
        op.execute(statement)


def downgrade() -> None:
    """Takes all of it back."""
    _drop_views()
    with op.batch_alter_table("analyses", recreate="never") as batch:
        batch.drop_column("free_text_effort")
    with op.batch_alter_table("efforts", recreate="never") as batch:
        batch.drop_column("line")
    op.drop_index(op.f("ix_behaviours_key"), table_name="behaviours")
    op.drop_table("behaviours")
    op.drop_table("observations")
    for statement in FORMER_VIEWS:
        op.execute(statement)


def _drop_views() -> None:
    for name in ("outliers", "flag_distribution", "latest_files"):
        op.execute(f"DROP VIEW {name}")
