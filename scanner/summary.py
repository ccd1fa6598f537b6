"""The summary of a scan, and what `show` says: from the store to lines of text and to JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from sqlalchemy import Engine

from scanner import answers
from scanner.console import WIDTH, clip, pad, severity, visible
from scanner.export import start_document, template_document
from scanner.judge.verdicts import difference_text, disagreement_phrase
from scanner.probe.profiles import PROFILES
from scanner.results import (
    GO,
    GO_TEMPLATE,
    Agreement,
    ChatTemplate,
    FileResult,
    ModelName,
    Outcome,
    PassedOver,
    Severity,
    Verdict,
)
from scanner.store import queries

PASSED_OVER_SHOWN = 3
"""Paths passed over that a summary lists."""

NOT_EXAMINED_SHOWN = 4
"""Files that could not be examined that a summary lists."""

NAME_WIDTH = 32
"""Columns of a file's name in a list."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What a scan found, ready to be told."""

    scan: queries.ScanSummary
    disagreements: tuple[queries.Disagreement, ...]
    outliers: tuple[queries.Outlier, ...]
    not_examined: tuple[queries.Failure, ...]
    changes: tuple[queries.Change, ...]
    names: Mapping[str, str] = field(default_factory=dict)
    """What stores call files, by path."""

    def shown(self, path: str) -> str:
        """How lists name a file: as its store does, else by the end of its path."""
        return self.names.get(path) or Path(path).name


def read_summary(engine: Engine, scan_id: int) -> Summary:
    """The summary of a scan."""
    found = queries.scan_summary(engine, scan_id)
    outliers = [outlier for outlier in queries.outlier_list(engine, scan_id) if outlier.profile == found.scan.profile]
    return Summary(
        found,
        queries.disagreement_list(engine, scan_id),
        tuple(outliers),
        queries.not_examined(engine, scan_id, NOT_EXAMINED_SHOWN),
        queries.changes_of_scan(engine, scan_id),
        queries.first_names(engine, scan_id),
    )


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
        "roles": dict(found.roles),
        "not_loaded": found.not_loaded,
        "variants": dict(sorted(found.variants.items())),
        "templates": found.templates,
        "new_templates": found.new_templates,
        "go_templates": found.go_templates,
        "claims": {
            claim.capability: {
                "templates": [claim.templates_claiming, claim.templates_analysed],
                "files": [claim.files_claiming, claim.files_analysed],
            }
            for claim in found.claims
        },
        "observed": {
            claim.capability: {
                "templates": [claim.templates_observed, claim.templates_judged],
                "files": [claim.files_observed, claim.files_judged],
                "overclaims": [claim.templates_overclaiming, claim.files_overclaiming],
                "underclaims": [claim.templates_underclaiming, claim.files_underclaiming],
            }
            for claim in found.claims
        },
        "disagreements": [
            {
                "template": one.sha256,
                "path": one.path,
                "name": summary.names.get(one.path),
                "files": one.files,
                "capability": one.capability,
                "agreement": str(one.agreement),
                "reason": one.reason,
            }
            for one in summary.disagreements
        ],
        "outliers": [
            {
                "template": outlier.sha256,
                "path": outlier.path,
                "name": summary.names.get(outlier.path),
                "severity": str(outlier.severity),
                "files": outlier.files,
                "rule": outlier.rule,
                "text": outlier.text,
                "templates_alike": outlier.alike,
            }
            for outlier in summary.outliers
        ],
        "changes": len(summary.changes),
    }


def summary_lines(
    summary: Summary, seconds: float, database_hint: str, *, silenced: str | None = None, offers_report: bool = True
) -> Iterator[str]:
    """The summary as a person reads it after a scan that took `seconds`; `database_hint` goes behind the commands that
    are offered (a report among them, unless one is being written), `silenced` says how many findings do not count."""
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
    roles = answers.roles_line(found.roles)
    if roles:
        yield roles
    yield from claim_lines(found.claims, summary.disagreements)
    yield from _outlier_lines(summary, database_hint)
    if silenced:
        yield silenced
    yield from _not_examined_lines(summary, database_hint)
    if found.not_loaded:
        yield f"Split models that llama.cpp does not load: {found.not_loaded:,} (finding {queries.INCOMPLETE_SPLIT})"
    yield from _passed_over_lines(scan.passed_over)
    if summary.changes:
        counts = Counter(change.change for change in summary.changes)
        said = ", ".join(f"{count:,} {change}" for change, count in sorted(counts.items()))
        yield f"Since the last scan: {said} (capscan diff{database_hint})"
    if offers_report:
        yield f"Report: capscan report{database_hint} -o report"


def claim_lines(counts: Sequence[queries.ClaimCount], disagreements: Sequence[queries.Disagreement]) -> Iterator[str]:
    """How many templates claim each flag and really have it, and how often and why the two disagree. The base stands in
    the first row, and where it is another."""
    judged = any(count.templates_judged for count in counts)
    yield f"{'':22}{'claimed':12}" + (f"{'really':12}disagree" if judged else "")
    sides = [_sides(count) for count in counts]
    room = max(map(len, sides), default=0)
    bases: dict[str, int] = {}
    for count, side in zip(counts, sides, strict=True):
        cells = [
            f"  {answers.words(count.capability):20}",
            f"{_with_base(bases, 'claimed', count.templates_claiming, count.templates_analysed):12}",
        ]
        if judged:
            cells.append(f"{_with_base(bases, 'really', count.templates_observed, count.templates_judged):12}")
            cells.append(f"{side:{room}}{_reasons(count.capability, disagreements)}")
        yield clip("".join(cells).rstrip(), WIDTH)


def _with_base(bases: dict[str, int], column: str, count: int, base: int) -> str:
    said = f"{count:,}" if bases.get(column) == base else answers.count_of(count, base)
    bases.setdefault(column, base)
    return said


def _sides(count: queries.ClaimCount) -> str:
    """`3 under` or `2 over, 1 under`."""
    sides = {
        Agreement.OVERCLAIMS: count.templates_overclaiming,
        Agreement.UNDERCLAIMS: count.templates_underclaiming,
    }
    return ", ".join([f"{number:,} {answers.SIDES[side]}" for side, number in sides.items() if number])


def _reasons(capability: str, disagreements: Sequence[queries.Disagreement]) -> str:
    """Why a claim and what is true disagree, commonest first, behind an arrow."""
    reasons = Counter(
        disagreement_phrase(one.agreement, one.reason) for one in disagreements if one.capability == capability
    )
    return f"  ← {visible('; '.join([reason for reason, _ in reasons.most_common()]))}" if reasons else ""


def _passed_over_lines(passed_over: Sequence[PassedOver]) -> Iterator[str]:
    if passed_over:
        yield f"Passed over ({len(passed_over):,})"
    for passed in passed_over[:PASSED_OVER_SHOWN]:
        yield f"  {clip(visible(passed.path), 58)}: {visible(passed.reason)}"
    if len(passed_over) > PASSED_OVER_SHOWN:
        yield f"  … {len(passed_over) - PASSED_OVER_SHOWN:,} more"


def _not_examined_lines(summary: Summary, database_hint: str) -> Iterator[str]:
    """What could not be examined, by outcome, and the worst of it by name."""
    found, failures = summary.scan, summary.not_examined
    counts, partly = found.files_by_outcome, found.partly_examined
    if found.go_templates:
        files = "1 file" if found.go_files == 1 else f"{found.go_files:,} files"
        yield f"Not examined: {_templates(found.go_templates, 'Go ')} of Ollama's in {files} (llama.cpp reads none)"
    if partly:
        count = _templates(partly)
        yield f"Examined in part: {count}, the flags only (finding {queries.PARTLY_EXAMINED})"
    failed = {one: counts[one] for one in Outcome if one is not Outcome.ANALYSED and counts.get(one)}
    if not failed:
        return
    hint = "" if failures else f" (capscan query failures{database_hint})"
    yield f"Not examined: {' · '.join([f'{count:,} {one}' for one, count in failed.items()])}{hint}"
    for failure in failures:
        yield _failure_line(failure, summary)
    left = sum(failed.values()) - len(failures)
    if failures and left > 0:
        yield f"  … {left:,} more: capscan query failures{database_hint}"


def _templates(count: int, kind: str = "") -> str:
    return f"1 {kind}template" if count == 1 else f"{count:,} {kind}templates"


def _failure_line(failure: queries.Failure, summary: Summary) -> str:
    name = summary.shown(failure.path)
    variant = f" ({failure.variant})" if failure.variant not in ("", "default") else ""
    shown = clip(visible(name), NAME_WIDTH - len(variant)) + visible(variant)
    reason = (failure.reason or "no reason is known").removeprefix(f"{Path(failure.path).name}: ")
    place = f" at byte {failure.offset:,}" if failure.offset is not None and "at byte" not in reason else ""
    return clip(f"  {pad(shown, NAME_WIDTH)}  {failure.outcome}{place}: {visible(reason)}", WIDTH)


def _outlier_lines(summary: Summary, database_hint: str) -> Iterator[str]:
    """The outliers, those with the same to say in one line: the worst by name, and how many other files it is true of.
    Of one severity flags that mislead come first, then what is true of more files."""
    outliers = summary.outliers
    if not outliers:
        return
    yield f"Outliers ({len(outliers):,} template{'' if len(outliers) == 1 else 's'}), worst first"
    alike: dict[tuple[Severity, str], list[queries.Outlier]] = {}
    for outlier in outliers:
        alike.setdefault((outlier.severity, outlier.text), []).append(outlier)
    severities = list(Severity)
    groups = sorted(
        alike.values(),
        key=lambda group: (severities.index(group[0].severity), not queries.misleads(group[0]), -_files(group)),
    )
    for group in groups[: answers.OUTLIERS_SHOWN]:
        yield _outlier_line(group[0], _files(group), summary)
    left = sum(len(group) for group in groups[answers.OUTLIERS_SHOWN :])
    if left:
        yield f"  … {left:,} more: capscan query outliers{database_hint}"


def _files(group: Sequence[queries.Outlier]) -> int:
    return sum(outlier.files for outlier in group)


def _outlier_line(outlier: queries.Outlier, files: int, summary: Summary) -> str:
    more = f" +{files - 1:,}" if files > 1 else ""
    name = clip(visible(summary.shown(outlier.path)), NAME_WIDTH - len(more)) + more
    place = f" (line {outlier.line:,})" if outlier.line is not None and "(line " not in outlier.text else ""
    room = WIDTH - NAME_WIDTH - 13 - len(place)
    return f"  {severity(outlier.severity)} {pad(name, NAME_WIDTH)}  {clip(visible(outlier.text), room)}{place}"


def show_template(engine: Engine, sha256: str, form: str, *, everything: bool = False) -> Iterator[str]:
    """One template: who holds it, and the whole analysis; `everything`: also the behaviours that are usual."""
    detail = queries.template_detail(engine, sha256)
    first = detail.appearances[0] if detail.appearances else None
    template = ChatTemplate(first.variant if first else "default", detail.source, "")
    source = first.path if first else detail.sha256
    if form == "json":
        documents = [template_document(template, source, analysis.result) for analysis in detail.analyses]
        yield json.dumps(documents, ensure_ascii=False, indent=2)
        return
    if detail.kind == GO:
        yield f"{visible(source)}: {GO_TEMPLATE}"
        yield from (f"  {visible(line)}" for line in detail.source.decode("utf-8", errors="replace").split("\n"))
    yield from _analysis_lines(template, source, detail, everything)
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


def _analysis_lines(
    template: ChatTemplate, source: str, detail: queries.TemplateDetail, everything: bool
) -> Iterator[str]:
    """The analysis under the newest profile in full, the others by their flags."""
    results = sorted(
        [analysis.result for analysis in detail.analyses], key=lambda result: list(PROFILES).index(result.profile)
    )
    if results:
        yield from answers.template_answer(template, source, results[0], everything=everything)
    yield from answers.builds_answer(results)


def show_file(engine: Engine, name: str, form: str, *, everything: bool = False) -> Iterator[str]:
    """One model file: what it says of itself, its variants, and what a server would use; `everything` as above."""
    detail = queries.file_detail(engine, name)
    result = detail.result
    if form == "json":
        yield json.dumps(_file_document(detail), ensure_ascii=False, indent=2)
        return
    yield f"{visible(result.file.path)} · {result.file.kind} · {result.file.size:,} bytes · {result.outcome}"
    for called in detail.names:
        yield f"  {called.store}: {visible(_called(called))}"
    if result.reason:
        yield f"  {visible(result.reason)}"
    remark = answers.role_remark(result)
    if remark is not None:
        yield f"  {remark}"
    yield from _metadata_lines(result)
    for note in result.notes:
        yield f"  note: {visible(note)}"
    for variant in detail.variants:
        if variant.sha256 is not None:
            yield f"  {visible(variant.variant)}: template {variant.sha256[: answers.SHOWN_HASH]} · {variant.outcome}"
    for finding in detail.findings:
        yield f"{severity(finding.severity)} {finding.rule}: {visible(finding.text)}"
    if answers.is_served(result):
        unparseable = _unparseable(detail)
        line = answers.selection_line(result, unparseable)
        if line:
            yield f"  {line}"
        yield f"  {answers.start_line(answers.start_of_file(result, unparseable, detail.starts))}"
    for template in result.templates:
        if template.kind == GO:
            yield f"  {visible(template.variant)}: {GO_TEMPLATE}"
    for template in result.jinja:
        yield ""
        found = queries.template_detail(engine, template.sha256)
        yield from _analysis_lines(template, result.file.path, found, everything)


def _called(name: ModelName) -> str:
    """A name and where it comes from, as far as the name does not say that."""
    revision = f" at {name.revision}" if name.revision and f":{name.revision}" not in name.name else ""
    return f"{name.name}{revision}"


def _unparseable(detail: queries.FileDetail) -> list[str]:
    return [held.variant for held in detail.variants if held.outcome is Outcome.NOT_PARSEABLE]


def _metadata_lines(result: FileResult) -> Iterator[str]:
    metadata = result.metadata
    facts = {
        "role": answers.ROLES.get(metadata.role or "", (metadata.role,))[0],
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
        "names": [asdict(name) for name in detail.names],
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
    if not answers.is_served(detail.result):
        return None
    return start_document(answers.start_of_file(detail.result, _unparseable(detail), detail.starts))
