"""The first schema: tables, and views for people."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

INT64 = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

# A migration is a record of what was, so nothing here is taken from the code of today.
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

# The newest analysis of every template under every profile. Numbers of analyses grow with time.
NEWEST_ANALYSES = "SELECT MAX(id) AS id FROM analyses GROUP BY template_id, profile"

# Each model file as the newest finished scan saw it in which it was seen, else as an interrupted one did: a row a
# variant.
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
newest AS (SELECT * FROM analyses WHERE id IN ({NEWEST_ANALYSES}))
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
    {", ".join(f"newest.supports_{name}" for name in CAPABILITIES)}
FROM seen
JOIN appearances ON appearances.model_file_id = seen.model_file_id AND appearances.scan_id = seen.scan_id
JOIN scans ON scans.id = seen.scan_id
JOIN model_files ON model_files.id = seen.model_file_id
LEFT JOIN templates ON templates.id = appearances.template_id
LEFT JOIN newest ON newest.template_id = appearances.template_id AND newest.profile = scans.profile
"""  # noqa: S608 - made of the constants above

# How many templates and files claim each capability, of how many that have a verdict, for every profile.
FLAG_DISTRIBUTION = f"""
CREATE VIEW flag_distribution AS
WITH held AS (SELECT DISTINCT model_file_id, template_id FROM latest_files WHERE template_id IS NOT NULL),
newest AS (SELECT * FROM analyses WHERE id IN ({NEWEST_ANALYSES})),
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

# Templates of the latest files with an error or a warning; `text` is that of the first of the worst findings.
OUTLIERS = f"""
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

# Templates that came, went or were replaced at a path and variant, between the two newest finished scans.
CHANGES = """
CREATE VIEW changes AS
WITH new_scan AS (SELECT MAX(id) AS id FROM scans WHERE status = 'finished'),
old_scan AS (
    SELECT MAX(id) AS id
    FROM scans
    WHERE status = 'finished'
        AND id < (SELECT id FROM new_scan)
        AND sources = (SELECT sources FROM scans WHERE id = (SELECT id FROM new_scan))
)
SELECT
    CASE WHEN held.template_id IS NULL THEN 'appeared' ELSE 'replaced' END AS change,
    model_files.path,
    holds.variant,
    old_template.sha256 AS old_sha256,
    new_template.sha256 AS new_sha256,
    old_scan.id AS old_scan_id,
    new_scan.id AS new_scan_id
FROM old_scan
CROSS JOIN new_scan
JOIN appearances AS holds ON holds.scan_id = new_scan.id AND holds.template_id IS NOT NULL
LEFT JOIN appearances AS held
    ON held.scan_id = old_scan.id AND held.model_file_id = holds.model_file_id AND held.variant = holds.variant
JOIN model_files ON model_files.id = holds.model_file_id
JOIN templates AS new_template ON new_template.id = holds.template_id
LEFT JOIN templates AS old_template ON old_template.id = held.template_id
WHERE old_scan.id IS NOT NULL AND (held.template_id IS NULL OR held.template_id <> holds.template_id)
UNION ALL
SELECT
    'gone',
    model_files.path,
    held.variant,
    old_template.sha256,
    NULL,
    old_scan.id,
    new_scan.id
FROM old_scan
CROSS JOIN new_scan
JOIN appearances AS held ON held.scan_id = old_scan.id AND held.template_id IS NOT NULL
LEFT JOIN appearances AS holds
    ON holds.scan_id = new_scan.id AND holds.model_file_id = held.model_file_id AND holds.variant = held.variant
JOIN model_files ON model_files.id = held.model_file_id
JOIN templates AS old_template ON old_template.id = held.template_id
WHERE holds.template_id IS NULL
"""

VIEWS = {
    "latest_files": LATEST_FILES,
    "flag_distribution": FLAG_DISTRIBUTION,
    "outliers": OUTLIERS,
    "changes": CHANGES,
}


def upgrade() -> None:
    """Makes everything."""
    op.create_table(
        "scans",
        sa.Column("id", INT64, nullable=False),
        sa.Column("started_at", sa.DateTime(), nullable=False),
        sa.Column("finished_at", sa.DateTime(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("sources", sa.Text(), nullable=False),
        sa.Column("capscan_version", sa.Text(), nullable=False),
        sa.Column("profile", sa.Text(), nullable=False),
        sa.Column("files_seen", INT64, nullable=False),
        sa.Column("files_unchanged", INT64, nullable=False),
        sa.Column("passed_over", sa.Text(), nullable=False),
        sa.CheckConstraint("status IN ('running', 'finished', 'interrupted')", name=op.f("ck_scans_status")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_scans")),
    )
    op.create_table(
        "templates",
        sa.Column("id", INT64, nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("source", sa.LargeBinary(), nullable=False),
        sa.Column("size", INT64, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_templates")),
        sa.UniqueConstraint("sha256", name=op.f("uq_templates_sha256")),
    )
    op.create_table(
        "analyses",
        sa.Column("id", INT64, nullable=False),
        sa.Column("template_id", INT64, nullable=False),
        sa.Column("profile", sa.Text(), nullable=False),
        sa.Column("capscan_version", sa.Text(), nullable=False),
        sa.Column("analysis_version", INT64, nullable=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.Column("duration", sa.Double(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("handler", sa.Text(), nullable=True),
        sa.Column("patches", sa.Text(), nullable=False),
        sa.Column("parse_error_kind", sa.Text(), nullable=True),
        sa.Column("parse_error_message", sa.Text(), nullable=True),
        sa.Column("parse_error_line", INT64, nullable=True),
        sa.Column("parse_error_column", INT64, nullable=True),
        sa.Column("parse_error_offset", INT64, nullable=True),
        sa.Column("supports_tools", sa.Boolean(), nullable=True),
        sa.Column("supports_tool_calls", sa.Boolean(), nullable=True),
        sa.Column("supports_parallel_tool_calls", sa.Boolean(), nullable=True),
        sa.Column("supports_system_role", sa.Boolean(), nullable=True),
        sa.Column("supports_string_content", sa.Boolean(), nullable=True),
        sa.Column("supports_typed_content", sa.Boolean(), nullable=True),
        sa.Column("supports_object_arguments", sa.Boolean(), nullable=True),
        sa.Column("supports_preserve_reasoning", sa.Boolean(), nullable=True),
        sa.Column("supports_reasoning_effort", sa.Boolean(), nullable=True),
        sa.Column("observed_tools", sa.Boolean(), nullable=True),
        sa.Column("observed_tool_calls", sa.Boolean(), nullable=True),
        sa.Column("observed_parallel_tool_calls", sa.Boolean(), nullable=True),
        sa.Column("observed_system_role", sa.Boolean(), nullable=True),
        sa.Column("observed_string_content", sa.Boolean(), nullable=True),
        sa.Column("observed_typed_content", sa.Boolean(), nullable=True),
        sa.Column("observed_object_arguments", sa.Boolean(), nullable=True),
        sa.Column("observed_preserve_reasoning", sa.Boolean(), nullable=True),
        sa.Column("observed_reasoning_effort", sa.Boolean(), nullable=True),
        sa.ForeignKeyConstraint(
            ["template_id"], ["templates.id"], name=op.f("fk_analyses_template_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_analyses")),
        sa.UniqueConstraint(
            "template_id", "profile", "analysis_version", "capscan_version", name="uq_analyses_identity"
        ),
    )
    op.create_table(
        "model_files",
        sa.Column("id", INT64, nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("size", INT64, nullable=False),
        sa.Column("mtime_ns", INT64, nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("first_seen_scan_id", INT64, nullable=True),
        sa.Column("last_seen_scan_id", INT64, nullable=True),
        sa.Column("capscan_version", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("byte_offset", INT64, nullable=True),
        sa.Column("expected", sa.Text(), nullable=True),
        sa.Column("notes", sa.Text(), nullable=False),
        sa.Column("architecture", sa.Text(), nullable=True),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("basename", sa.Text(), nullable=True),
        sa.Column("size_label", sa.Text(), nullable=True),
        sa.Column("file_type", sa.Text(), nullable=True),
        sa.Column("quantized_by", sa.Text(), nullable=True),
        sa.Column("license", sa.Text(), nullable=True),
        sa.Column("repo_url", sa.Text(), nullable=True),
        sa.Column("tokenizer_pre", sa.Text(), nullable=True),
        sa.Column("block_count", INT64, nullable=True),
        sa.Column("split_no", INT64, nullable=True),
        sa.Column("split_count", INT64, nullable=True),
        sa.Column("bos_id", INT64, nullable=True),
        sa.Column("bos_text", sa.Text(), nullable=True),
        sa.Column("adds_bos", sa.Boolean(), nullable=True),
        sa.Column("eos_id", INT64, nullable=True),
        sa.Column("eos_text", sa.Text(), nullable=True),
        sa.Column("adds_eos", sa.Boolean(), nullable=True),
        sa.ForeignKeyConstraint(
            ["first_seen_scan_id"], ["scans.id"], name=op.f("fk_model_files_first_seen_scan_id"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["last_seen_scan_id"], ["scans.id"], name=op.f("fk_model_files_last_seen_scan_id"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_model_files")),
        sa.UniqueConstraint("path", name=op.f("uq_model_files_path")),
    )
    op.create_table(
        "appearances",
        sa.Column("scan_id", INT64, nullable=False),
        sa.Column("model_file_id", INT64, nullable=False),
        sa.Column("position", INT64, autoincrement=False, nullable=False),
        sa.Column("variant", sa.Text(), nullable=False),
        sa.Column("template_id", INT64, nullable=True),
        sa.Column("origin", sa.Text(), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("byte_offset", INT64, nullable=True),
        sa.Column("expected", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["model_file_id"], ["model_files.id"], name=op.f("fk_appearances_model_file_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["scan_id"], ["scans.id"], name=op.f("fk_appearances_scan_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["template_id"], ["templates.id"], name=op.f("fk_appearances_template_id")),
        sa.PrimaryKeyConstraint("scan_id", "model_file_id", "position", name=op.f("pk_appearances")),
    )
    op.create_index(op.f("ix_appearances_model_file_id_scan_id"), "appearances", ["model_file_id", "scan_id"])
    op.create_index(op.f("ix_appearances_template_id_scan_id"), "appearances", ["template_id", "scan_id"])
    op.create_table(
        "efforts",
        sa.Column("analysis_id", INT64, nullable=False),
        sa.Column("position", INT64, autoincrement=False, nullable=False),
        sa.Column("word", sa.Text(), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("group_number", INT64, nullable=True),
        sa.Column("prints_word", sa.Boolean(), nullable=True),
        sa.Column("equals_unset", sa.Boolean(), nullable=True),
        sa.ForeignKeyConstraint(
            ["analysis_id"], ["analyses.id"], name=op.f("fk_efforts_analysis_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("analysis_id", "position", name=op.f("pk_efforts")),
    )
    op.create_table(
        "findings",
        sa.Column("id", INT64, nullable=False),
        sa.Column("analysis_id", INT64, nullable=True),
        sa.Column("model_file_id", INT64, nullable=True),
        sa.Column("scan_id", INT64, nullable=True),
        sa.Column("position", INT64, nullable=False),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.Column("severity", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("evidence", sa.Text(), nullable=False),
        sa.Column("line", INT64, nullable=True),
        sa.CheckConstraint("severity IN ('error', 'warning', 'note')", name=op.f("ck_findings_severity")),
        sa.ForeignKeyConstraint(
            ["analysis_id"], ["analyses.id"], name=op.f("fk_findings_analysis_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["model_file_id"], ["model_files.id"], name=op.f("fk_findings_model_file_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["scan_id"], ["scans.id"], name=op.f("fk_findings_scan_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_findings")),
    )
    op.create_index(op.f("ix_findings_analysis_id"), "findings", ["analysis_id"])
    op.create_index(op.f("ix_findings_model_file_id_scan_id"), "findings", ["model_file_id", "scan_id"])
    op.create_index(op.f("ix_findings_rule"), "findings", ["rule"])
    op.create_index(op.f("ix_findings_scan_id"), "findings", ["scan_id"])
    op.create_table(
        "probe_runs",
        sa.Column("id", INT64, nullable=False),
        sa.Column("analysis_id", INT64, nullable=False),
        sa.Column("position", INT64, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("ok", sa.Boolean(), nullable=False),
        sa.Column("output", sa.Text(), nullable=False),
        sa.Column("parts", sa.Text(), nullable=False),
        sa.Column("variables", sa.Text(), nullable=False),
        sa.Column("duration", sa.Double(), nullable=False),
        sa.Column("error_kind", sa.Text(), nullable=True),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column("error_node", sa.Text(), nullable=True),
        sa.Column("error_offset", INT64, nullable=True),
        sa.Column("error_line", INT64, nullable=True),
        sa.Column("error_column", INT64, nullable=True),
        sa.ForeignKeyConstraint(
            ["analysis_id"], ["analyses.id"], name=op.f("fk_probe_runs_analysis_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_probe_runs")),
        sa.UniqueConstraint("analysis_id", "position", name=op.f("uq_probe_runs_analysis_id_position")),
    )
    op.create_table(
        "renders",
        sa.Column("analysis_id", INT64, nullable=False),
        sa.Column("position", INT64, autoincrement=False, nullable=False),
        sa.Column("engine", sa.Text(), nullable=False),
        sa.Column("scenario", sa.Text(), nullable=False),
        sa.Column("output", sa.Text(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["analysis_id"], ["analyses.id"], name=op.f("fk_renders_analysis_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("analysis_id", "position", name=op.f("pk_renders")),
    )
    op.create_table(
        "reads",
        sa.Column("probe_run_id", INT64, nullable=False),
        sa.Column("position", INT64, autoincrement=False, nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("used", sa.Boolean(), nullable=False),
        sa.Column("ops", sa.Text(), nullable=False),
        sa.Column("line", INT64, nullable=True),
        sa.Column("column", INT64, nullable=True),
        sa.ForeignKeyConstraint(
            ["probe_run_id"], ["probe_runs.id"], name=op.f("fk_reads_probe_run_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("probe_run_id", "position", name=op.f("pk_reads")),
    )
    op.create_index(op.f("ix_reads_path"), "reads", ["path"])
    for statement in VIEWS.values():
        op.execute(statement)


def downgrade() -> None:
    """Drops everything."""
    for name in reversed(VIEWS):
        op.execute(f"DROP VIEW {name}")
    for table in (
        "reads",
        "renders",
        "probe_runs",
        "findings",
        "efforts",
        "appearances",
        "model_files",
        "analyses",
        "templates",
        "scans",
    ):
        op.drop_table(table)
