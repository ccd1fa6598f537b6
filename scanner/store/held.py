"""What is held, for the statements that ask about it: the newest state of all files, or what one scan saw."""

from __future__ import annotations

from typing import Any

from sqlalchemy import FromClause, Select, Subquery, func, select

from scanner.store.models import (
    AnalysisRow,
    AppearanceRow,
    ModelFileRow,
    ModelNameRow,
    ScanRow,
    TemplateRow,
    latest_files,
)
from scanner.store.rows import newest_analyses, verdict_columns


def held(scan_id: int | None) -> FromClause:
    """What is held, a row a variant: the view `latest_files`, or the same columns of what one scan saw."""
    if scan_id is None:
        return latest_files
    return (
        select(
            AppearanceRow.model_file_id,
            AppearanceRow.scan_id,
            AppearanceRow.template_id,
            ModelFileRow.path,
            AppearanceRow.variant,
            TemplateRow.sha256,
            AppearanceRow.outcome,
            AppearanceRow.reason,
            AppearanceRow.byte_offset,
            AppearanceRow.expected,
            ModelFileRow.kind,
            ModelFileRow.size,
            ModelFileRow.architecture,
            ModelFileRow.file_type,
            ModelFileRow.quantized_by,
            ScanRow.profile,
            *verdict_columns(),
            ModelNameRow.name.label("name"),
            ModelNameRow.repository,
            ModelFileRow.role,
        )
        .join(ScanRow, ScanRow.id == AppearanceRow.scan_id)
        .join(ModelFileRow, ModelFileRow.id == AppearanceRow.model_file_id)
        .outerjoin(TemplateRow, TemplateRow.id == AppearanceRow.template_id)
        .outerjoin(
            ModelNameRow,
            (ModelNameRow.scan_id == AppearanceRow.scan_id)
            & (ModelNameRow.model_file_id == AppearanceRow.model_file_id)
            & (ModelNameRow.position == 0),
        )
        .outerjoin(
            AnalysisRow,
            (AnalysisRow.template_id == AppearanceRow.template_id)
            & (AnalysisRow.profile == ScanRow.profile)
            & AnalysisRow.id.in_(newest_analyses()),
        )
        .where(AppearanceRow.scan_id == scan_id)
        .subquery("held")
    )


def holders_of(source: FromClause) -> Subquery:
    """The templates that are held: in how many files, and the first of these."""
    return (
        select(
            source.c.template_id,
            func.min(source.c.path).label("path"),
            func.count(source.c.model_file_id.distinct()).label("files"),
        )
        .where(source.c.template_id.is_not(None))
        .group_by(source.c.template_id)
        .subquery("holders")
    )


def analyses_of(holders: FromClause, *columns: Any) -> Select[Any]:
    """The newest analyses of the templates that are held, with their holders and these columns."""
    return (
        select(AnalysisRow.profile, TemplateRow.sha256, holders.c.path, holders.c.files, *columns)
        .select_from(AnalysisRow)
        .join(holders, holders.c.template_id == AnalysisRow.template_id)
        .join(TemplateRow, TemplateRow.id == AnalysisRow.template_id)
        .where(AnalysisRow.id.in_(newest_analyses()))
    )
