"""The list of all model files."""

from __future__ import annotations

from dataclasses import dataclass

from reports.marks import Flags, flags_of, legend_of
from reports.overview import Overview
from reports.pages.rows import distinct_files, page_if
from scanner.results import Outcome


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One variant of one model file. `starts`: whether llama-server starts with the file, on the variant that decides
    it (None: another decides, or not examined)."""

    path: str
    variant: str
    outcome: Outcome
    starts: bool | None
    page: str | None
    architecture: str | None
    quantization: str | None
    quantizer: str | None
    flags: Flags


@dataclass(frozen=True, slots=True)
class ModelsPage:
    """Every variant of every model file."""

    root: str
    profiles: tuple[str, ...]
    files: int
    rows: tuple[ModelRow, ...]
    legend: tuple[Flags, ...]


def models_page(overview: Overview) -> ModelsPage:
    """The list of all files."""
    known = {template.sha256 for template in overview.templates}
    rows = tuple(
        ModelRow(
            path=overview.shown(file.path),
            variant=file.variant,
            outcome=file.outcome,
            starts=overview.starts.get((file.path, file.variant)),
            page=page_if(file.sha256, known),
            architecture=file.architecture,
            quantization=file.file_type,
            quantizer=file.quantized_by,
            flags=flags_of(file.capabilities, file.observed),
        )
        for file in overview.files
    )
    return ModelsPage(
        root=overview.root,
        profiles=overview.profiles,
        files=distinct_files(overview.files),
        rows=rows,
        legend=legend_of(row.flags for row in rows),
    )
