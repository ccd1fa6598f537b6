"""The summary of a scan, and what `show` says: from the store to lines of text and to JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from sqlalchemy import Engine

from scanner import answers
from scanner.console import clip, pad, severity, visible
from scanner.export import start_document, template_document
from scanner.judge.verdicts import difference_text
from scanner.probe.profiles import PROFILES
from scanner.results import ChatTemplate, FileResult, Outcome, PassedOver, Verdict
from scanner.store import queries

PASSED_OVER_SHOWN = 5
"""Paths passed over that a summary lists."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What a scan found, ready to be told."""

    scan: queries.ScanSummary
    outliers: tuple[queries.Outlier, ...]
    changes: tuple[queries.Change, ...]


def read_summary(engine: Engine, scan_id: int) -> Summary:
    """The summary of a scan."""
    found = queries.scan_summary(engine, scan_id)
    outliers = [outlier for outlier in queries.outlier_list(engine, scan_id) if outlier.profile == found.scan.profile]
    return Summary(found, tuple(outliers), queries.change_list(engine))


def summary_document(summary: Summary) -> dict[str, object]:
    """The summary as JSON-compatible data."""
    found = summary.scan
    return {
        "scan": found.scan.id,
        "profile": found.scan.profile,
        "files": found.scan.files_seen,
        "unchanged": found.scan.files_unchanged,
        "passed_over": [asdict(passed) for passed in found.scan.passed_over],
        "outcomes": {str(outcome): count for outcome, count in sorted(found.files_by_outcome.items())},
        "variants": dict(sorted(found.variants.items())),
        "templates": found.templates,
        "new_templates": found.new_templates,
        "claims": {
            claim.capability: {
                "templates": [claim.templates_claiming, claim.templates_analysed],
                "files": [claim.files_claiming, claim.files_analysed],
            }
            for claim in found.claims
        },
        "outliers": [
            {
                "template": outlier.sha256,
                "severity": str(outlier.severity),
                "files": outlier.files,
                "text": outlier.text,
            }
            for outlier in summary.outliers
        ],
        "changes": len(summary.changes),
    }


def summary_lines(summary: Summary, seconds: float, database_hint: str) -> Iterator[str]:
    """The summary as a person reads it after a scan that took `seconds`; `database_hint` goes behind the commands that
    are offered."""
    found = summary.scan
    scan = found.scan
    variants = sum(found.variants.values())
    yield " · ".join(
        [
            f"Scanned {scan.files_seen:,} model files",
            *([f"{scan.files_unchanged:,} unchanged"] if scan.files_unchanged else []),
            f"{variants:,} variants",
            f"{found.templates:,} distinct templates",
            f"{found.new_templates:,} new",
            f"{seconds:.1f} s",
            f"profile {scan.profile}",
        ]
    )
    yield _outcomes(found.files_by_outcome)
    yield answers.flags_table(
        [
            (c.capability, c.templates_claiming, c.templates_analysed, c.files_claiming, c.files_analysed)
            for c in found.claims
        ]
    )
    yield from _outlier_lines(summary.outliers, database_hint)
    yield from _passed_over_lines(scan.passed_over)
    if summary.changes:
        yield f"Since the last scan: {len(summary.changes):,} changes (capscan query changes{database_hint})"
    yield f"Report: capscan report{database_hint} -o report"


def _passed_over_lines(passed_over: Sequence[PassedOver]) -> Iterator[str]:
    if passed_over:
        yield f"Passed over ({len(passed_over):,})"
    for passed in passed_over[:PASSED_OVER_SHOWN]:
        yield f"  {clip(visible(passed.path), 58)}: {visible(passed.reason)}"
    if len(passed_over) > PASSED_OVER_SHOWN:
        yield f"  … {len(passed_over) - PASSED_OVER_SHOWN:,} more"


def _outcomes(counts: Mapping[Outcome, int]) -> str:
    parts = [f"{counts[outcome]:,} {outcome}" for outcome in Outcome if counts.get(outcome)]
    return "Files: " + (" · ".join(parts) or "none")


def _outlier_lines(outliers: tuple[queries.Outlier, ...], database_hint: str) -> Iterator[str]:
    if not outliers:
        return
    yield f"Outliers ({len(outliers):,} template{'' if len(outliers) == 1 else 's'}), worst first"
    for outlier in outliers[: answers.OUTLIERS_SHOWN]:
        more = f" +{outlier.files - 1:,}" if outlier.files > 1 else ""
        name = clip(visible(Path(outlier.path).name), 33 - len(more)) + more
        yield f"  {severity(outlier.severity)} {pad(name, 34)} {clip(visible(outlier.text), 54)}"
    if len(outliers) > answers.OUTLIERS_SHOWN:
        yield f"  … {len(outliers) - answers.OUTLIERS_SHOWN:,} more: capscan query outliers{database_hint}"


def show_template(engine: Engine, sha256: str, form: str) -> Iterator[str]:
    """One template: who holds it, and the whole analysis."""
    detail = queries.template_detail(engine, sha256)
    first = detail.appearances[0] if detail.appearances else None
    template = ChatTemplate(first.variant if first else "default", detail.source, "")
    source = first.path if first else detail.sha256
    if form == "json":
        documents = [template_document(template, source, analysis.result) for analysis in detail.analyses]
        yield json.dumps(documents, ensure_ascii=False, indent=2)
        return
    yield from _analysis_lines(template, source, detail)
    for found in detail.verifications:
        result = found.verification
        asked = f"llama.cpp {result.profile}, {found.verified_at:%Y-%m-%d}"
        if result.verdict is Verdict.EQUAL:
            yield f"verified against {asked}"
        else:
            yield f"{result.verdict} ({asked}): {visible(difference_text(result))}"
    yield f"held by {len(detail.appearances):,}"
    for appearance in detail.appearances[:20]:
        yield f"  {visible(appearance.path)} ({visible(appearance.variant)})"
    if len(detail.appearances) > 20:
        yield f"  … {len(detail.appearances) - 20:,} more"


def _analysis_lines(template: ChatTemplate, source: str, detail: queries.TemplateDetail) -> Iterator[str]:
    """The analysis under the newest profile in full, the others by their flags."""
    results = sorted(
        [analysis.result for analysis in detail.analyses], key=lambda result: list(PROFILES).index(result.profile)
    )
    if results:
        yield from answers.template_answer(template, source, results[0])
    yield from answers.builds_answer(results)


def show_file(engine: Engine, name: str, form: str) -> Iterator[str]:
    """One model file: what it says of itself, its variants, and what a server would use."""
    detail = queries.file_detail(engine, name)
    result = detail.result
    if form == "json":
        yield json.dumps(_file_document(detail), ensure_ascii=False, indent=2)
        return
    yield f"{visible(result.file.path)} · {result.file.kind} · {result.file.size:,} bytes · {result.outcome}"
    if result.reason:
        yield f"  {visible(result.reason)}"
    yield from _metadata_lines(result)
    for note in result.notes:
        yield f"  note: {visible(note)}"
    for variant in detail.variants:
        if variant.sha256 is not None:
            yield f"  {visible(variant.variant)}: template {variant.sha256[: answers.SHOWN_HASH]} · {variant.outcome}"
    for finding in detail.findings:
        yield f"{severity(finding.severity)} {finding.rule}: {visible(finding.text)}"
    if _is_served(result):
        unparseable = _unparseable(detail)
        line = answers.selection_line(result, unparseable)
        if line:
            yield f"  {line}"
        yield f"  {answers.start_line(answers.start_of_file(result, unparseable, detail.starts))}"
    for template in result.templates:
        yield ""
        found = queries.template_detail(engine, template.sha256)
        yield from _analysis_lines(template, result.file.path, found)


def _is_served(result: FileResult) -> bool:
    """Whether it is known what a server would make of a file."""
    return bool(result.templates) or result.outcome is Outcome.NO_TEMPLATE


def _unparseable(detail: queries.FileDetail) -> list[str]:
    return [held.variant for held in detail.variants if held.outcome is Outcome.NOT_PARSEABLE]


def _metadata_lines(result: FileResult) -> Iterator[str]:
    metadata = result.metadata
    facts = {
        "architecture": metadata.architecture,
        "name": metadata.name,
        "size": metadata.size_label,
        "file type": metadata.file_type,
        "quantized by": metadata.quantized_by,
        "license": metadata.license,
        "repository": metadata.repo_url,
        "BOS": metadata.bos.text,
        "EOS": metadata.eos.text,
    }
    shown = [f"{label} {visible(value)}" for label, value in facts.items() if value]
    if shown:
        yield "  " + " · ".join(shown)


def _file_document(detail: queries.FileDetail) -> dict[str, object]:
    result = detail.result
    return {
        "path": result.file.path,
        "kind": str(result.file.kind),
        "size": result.file.size,
        "outcome": str(result.outcome),
        "reason": result.reason,
        "offset": result.offset,
        "expected": result.expected,
        "metadata": asdict(result.metadata),
        "notes": list(result.notes),
        "variants": [
            {
                "variant": variant.variant,
                "sha256": variant.sha256,
                "outcome": str(variant.outcome),
                "capabilities": None if variant.capabilities is None else variant.capabilities.as_llama_cpp(),
            }
            for variant in detail.variants
        ],
        "start": _start_of_file(detail),
        "findings": [
            {"rule": f.rule, "severity": str(f.severity), "message": f.text, "evidence": f.evidence}
            for f in detail.findings
        ],
    }


def _start_of_file(detail: queries.FileDetail) -> dict[str, object] | None:
    if not _is_served(detail.result):
        return None
    return start_document(answers.start_of_file(detail.result, _unparseable(detail), detail.starts))
