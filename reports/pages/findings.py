"""All findings, by rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reports.overview import AllNotes, Overview, page_id
from reports.pages.chosen import chosen_templates
from reports.pages.rows import severity_counts
from scanner.judge.rules import ALL_RULES
from scanner.results import Severity


@dataclass(frozen=True, slots=True)
class FoundAt:
    """One finding: of a template (`page` names it) or of a whole file (`page` is None)."""

    page: str | None
    profile: str
    path: str
    variant: str
    files: int
    line: int | None
    text: str
    evidence: str


@dataclass(frozen=True, slots=True)
class RuleGroup:
    """A rule and everything it found: in how many templates (0 where it looks at files), and what number of files is
    concerned."""

    rule: str
    severity: Severity
    meaning: str
    remedy: str
    templates: int
    files: int
    found: tuple[FoundAt, ...]


@dataclass(frozen=True, slots=True)
class FindingsPage:
    """All findings by rule, worst first."""

    root: str
    totals: Mapping[Severity, int]
    rules: tuple[RuleGroup, ...]


def findings_page(overview: Overview, notes: AllNotes) -> FindingsPage:
    """All findings, by severity, then in the order of the rules."""
    found = _found_by_rule(overview, notes)
    worst_first, order = list(Severity), list(_TEXTS)
    keys = sorted(
        found,
        key=lambda key: (worst_first.index(key[0]), order.index(key[1]) if key[1] in _TEXTS else len(order), key[1]),
    )
    holders = {
        page_id(sha256): {overview.shown(path) for path, _variant in held} for sha256, held in overview.held.items()
    }
    return FindingsPage(
        root=overview.root,
        totals=severity_counts(overview),
        rules=tuple(_rule_group(severity, rule, found[severity, rule], holders) for severity, rule in keys),
    )


def _rule_group(severity: Severity, rule: str, found: Sequence[FoundAt], holders: Mapping[str, set[str]]) -> RuleGroup:
    meaning, remedy = _TEXTS.get(rule, ("A rule that this version of Capscan does not know.", ""))
    pages = {one.page for one in found if one.page is not None}
    files = {one.path for one in found if one.page is None}.union(*(holders.get(page, set()) for page in pages))
    return RuleGroup(rule, severity, meaning, remedy, len(pages), len(files), tuple(found))


def _found_by_rule(overview: Overview, notes: AllNotes) -> dict[tuple[Severity, str], list[FoundAt]]:
    found: dict[tuple[Severity, str], list[FoundAt]] = {}
    for template in chosen_templates(overview):
        noted = notes.get((template.sha256, template.profile))
        for finding in noted.findings if noted is not None else ():
            at = FoundAt(
                page=page_id(template.sha256),
                profile=template.profile,
                path=overview.shown(template.path),
                variant=overview.variant(template.sha256, template.path),
                files=template.files,
                line=finding.line,
                text=finding.text,
                evidence=finding.evidence,
            )
            found.setdefault((finding.severity, finding.rule), []).append(at)
    for whole in overview.file_findings:
        path = overview.shown(whole.path)
        at = FoundAt(None, overview.scan.scan.profile, path, "", 1, None, whole.text, whole.evidence)
        found.setdefault((whole.severity, whole.rule), []).append(at)
    return found


_TEXTS = {rule.slug: (rule.meaning, rule.remedy) for rule in ALL_RULES}
"""What each rule means, and its remedy, in the order of the rules."""
