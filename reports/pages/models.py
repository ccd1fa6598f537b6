"""The list of all model files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reports.marks import Flags, flags_of, legend_of
from reports.overview import AllNotes, Overview
from reports.pages.chosen import chosen_profiles, chosen_templates, shown_profiles
from reports.pages.rows import distinct_files, page_if
from scanner.results import Finding, Outcome, Severity
from scanner.store.queries import FileFinding


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One variant of one model file. `starts`: whether llama-server starts with the file, on the variant that decides
    it (None: another decides, or not examined). `found` is the place of its findings in `ModelsPage.found`, None where
    there are none."""

    path: str
    variant: str
    outcome: Outcome
    starts: bool | None
    page: str | None
    architecture: str | None
    quantization: str | None
    quantizer: str | None
    found: int | None
    flags: Flags
    place: str | None = None
    """Its path, where `path` is the name that a store has for it."""
    role: str | None = None
    """What the file is, where it is no model of its own."""


@dataclass(frozen=True, slots=True)
class FoundRule:
    """A rule that found something."""

    rule: str
    severity: Severity


@dataclass(frozen=True, slots=True)
class FoundSet:
    """What was found in rows alike: in their template, in the file itself, or in both. `in_template` says whether the
    template's page tells any of it. `rules` has each rule once, the worst first."""

    total: int
    in_template: bool
    rules: tuple[FoundRule, ...]


@dataclass(frozen=True, slots=True)
class ModelsPage:
    """Every variant of every model file. Thousands of rows share few sets of findings: each is told once, in `found`,
    the worst first."""

    root: str
    profiles: tuple[str, ...]
    files: int
    rows: tuple[ModelRow, ...]
    found: tuple[FoundSet, ...]
    legend: tuple[Flags, ...]


def models_page(overview: Overview, notes: AllNotes) -> ModelsPage:
    """The list of all files."""
    templates = {template.sha256: template for template in chosen_templates(overview)}
    flags = {sha256: flags_of(one.capabilities, one.observed) for sha256, one in templates.items()}
    known = overview.sha256s
    sets = _found_sets(overview, notes)
    found = tuple(sorted({one for one in sets if one is not None}, key=_worst_first))
    places = {one: place for place, one in enumerate(found)}
    rows = tuple(
        ModelRow(
            path=overview.shown(file.path),
            variant=file.variant,
            outcome=file.outcome,
            starts=overview.starts.get((file.path, file.variant)),
            page=page_if(file.sha256, known),
            architecture=file.architecture,
            quantization=file.file_type and file.file_type.removeprefix("MOSTLY_"),
            quantizer=file.quantized_by,
            found=None if one is None else places[one],
            flags=flags.get(file.sha256 or "", flags_of(None)),
            place=overview.place(file.path),
            role=file.role,
        )
        for file, one in zip(overview.files, sets, strict=True)
    )
    return ModelsPage(
        root=overview.root,
        profiles=shown_profiles(overview),
        files=distinct_files(overview.files),
        rows=rows,
        found=found,
        legend=legend_of(row.flags for row in rows),
    )


def _found_sets(overview: Overview, notes: AllNotes) -> list[FoundSet | None]:
    """What was found in each of the overview's files."""
    chosen = chosen_profiles(overview)
    in_templates = {
        sha256: [_rule(one) for one in noted.findings]
        for (sha256, profile), noted in notes.items()
        if chosen.get(sha256) == profile
    }
    in_files: dict[str, list[FoundRule]] = {}
    for finding in overview.file_findings:
        in_files.setdefault(finding.path, []).append(_rule(finding))
    return [_found_set(in_templates.get(file.sha256 or "", ()), in_files.get(file.path, ())) for file in overview.files]


def _found_set(in_template: Sequence[FoundRule], in_file: Sequence[FoundRule]) -> FoundSet | None:
    found = [*in_template, *in_file]
    rules = sorted(set(found), key=lambda one: (_ORDER[one.severity], one.rule))
    return FoundSet(len(found), bool(in_template), tuple(rules)) if found else None


def _rule(finding: Finding | FileFinding) -> FoundRule:
    return FoundRule(finding.rule, finding.severity)


def _worst_first(found: FoundSet) -> tuple[object, ...]:
    """By the worst severity, then by how much was found."""
    severity = found.rules[0].severity
    return _ORDER[severity], -found.total, [one.rule for one in found.rules], found.in_template


_ORDER = {severity: place for place, severity in enumerate(Severity)}
