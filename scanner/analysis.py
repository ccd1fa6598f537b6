"""The interface for notebooks and programs: a template, a file or a folder in, everything about it out.

    from scanner import analyze

    found = analyze("{% for m in messages %}{{ m.content }}{% endfor %}").template
    found.claimed["tools"], found.really["tools"], found.claim("tools").why

Nothing is written, no database is needed, and the templates run in this process, within Capscan's own budgets.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

from scanner.console import visible
from scanner.discover import discover
from scanner.errors import UsageError
from scanner.export import template_document
from scanner.extract import extract
from scanner.judge import FileFacts, VariantFacts, judge_file
from scanner.judge.verdicts import Claim, claims, really_word, yes_or_no
from scanner.pipeline import analyse_template
from scanner.probe.profiles import CURRENT, PROFILES
from scanner.rendering import bare_template
from scanner.results import ChatTemplate, FileResult, Finding, Outcome, PassedOver, TemplateResult

JINJA_SIGNS = ("{{", "{%", "{#", "\n")
"""What makes a text a template, and not the name of a file."""


@dataclass(frozen=True, slots=True)
class TemplateAnalysis:
    """One template of a file. `result` is all that was found out; the rest is for reading it with ease."""

    path: str
    template: ChatTemplate
    result: TemplateResult

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The nine flags: what llama.cpp claims, why, what is really true, and why."""
        return claims(self.result.capabilities, self.result.probes, self.result.observations)

    def claim(self, capability: str) -> Claim:
        """One of them. Raises KeyError for no capability."""
        told = {claim.capability: claim for claim in self.claims}
        return told[capability]

    @property
    def claimed(self) -> dict[str, bool | None]:
        """What llama.cpp claims, by capability; None without a verdict."""
        return {claim.capability: claim.claimed for claim in self.claims}

    @property
    def really(self) -> dict[str, bool | None]:
        """What is really true, by capability; None where that is not known."""
        return {claim.capability: claim.really for claim in self.claims}

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the rules found of it."""
        return self.result.findings

    def document(self) -> dict[str, object]:
        """Everything as JSON-compatible data, in the shape of `capscan probe --format json`."""
        return template_document(self.template, self.path, self.result)

    def row(self) -> dict[str, object]:
        """One row for a table, `pandas.DataFrame([one.row() for one in analysis.templates])` say."""
        return {
            "path": self.path,
            "variant": self.template.variant,
            "sha256": self.template.sha256,
            "outcome": str(self.result.outcome),
            **{f"supports_{name}": claimed for name, claimed in self.claimed.items()},
            **{f"observed_{name}": really for name, really in self.really.items()},
            "findings": len(self.findings),
        }

    def _repr_html_(self) -> str:
        """The nine flags as a table, as a notebook shows them."""
        return f"<p>{_html(_title(self))}</p>{_claims_html(self)}{_findings_html(self.findings)}"


@dataclass(frozen=True, slots=True)
class FileAnalysis:
    """One model file: what came of opening it, its templates in their order, and what was found of it as a whole."""

    result: FileResult
    templates: tuple[TemplateAnalysis, ...]
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Analysis:
    """What `analyze` was asked about: one file, several in a folder, or a template by itself, in a file named `-`."""

    profile: str
    files: tuple[FileAnalysis, ...]

    @property
    def templates(self) -> tuple[TemplateAnalysis, ...]:
        """The templates of all files."""
        return tuple(template for file in self.files for template in file.templates)

    @property
    def template(self) -> TemplateAnalysis:
        """The only template. Raises ValueError where there is none, or more than one."""
        found = self.templates
        if len(found) != 1:
            reasons = "".join([f": {file.result.reason}" for file in self.files if file.result.reason][:1])
            raise ValueError(f"there are {len(found)} templates, not one{reasons}; look at .templates")
        return found[0]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found of the templates, then of the files as a whole."""
        of_templates = [finding for template in self.templates for finding in template.findings]
        return (*of_templates, *[finding for file in self.files for finding in file.findings])

    def _repr_html_(self) -> str:
        """Its templates, as a notebook shows them."""
        shown = [template._repr_html_() for template in self.templates]
        empty = [
            f"<p>{_html(f'{file.result.file.path}: {file.result.outcome}: {file.result.reason}')}</p>"
            for file in self.files
            if not file.templates
        ]
        return "".join([*shown, *empty])


def analyze(
    template_or_path: str | bytes | os.PathLike[str], *, profile: str = CURRENT.name, now: float | None = None
) -> Analysis:
    """Everything Capscan finds out about a template, a model file, or all model files in a folder.

    Bytes are a template. A path (`pathlib.Path`) is a file or a folder. A text is a template if it has a sign of Jinja
    in it (`{{`, `{%`, `{#`) or a line end, and the name of a file or folder otherwise; what is on the disk does not
    matter for that. `profile` is the llama.cpp build that is asked about, `now` what the templates take for the present
    time, in seconds since the epoch (None: the clock).

    Raises UsageError for a profile or a time that does not exist, for an empty text, and where there is no such file,
    or no model file in the folder. What is wrong with a file or a template is no exception but an outcome of the
    analysis.
    """
    if template_or_path == "":
        raise UsageError("an empty text is neither a template nor a path (an empty template has to be bytes)")
    if now is not None and not math.isfinite(now):
        raise UsageError(f"now is {now}, which is no time")
    if profile not in PROFILES:
        raise UsageError(f"there is no profile {profile!r}: choose one of {', '.join(PROFILES)}")
    known: dict[str, TemplateResult] = {}
    return Analysis(profile, tuple(_analysed(file, profile, now, known) for file in _files(template_or_path)))


def _files(given: str | bytes | os.PathLike[str]) -> Iterator[FileResult]:
    if isinstance(given, bytes):
        yield bare_template(given)
    elif isinstance(given, str) and any(sign in given for sign in JINJA_SIGNS):
        yield bare_template(given.encode("utf-8", "surrogatepass"))
    else:
        yield from _model_files(Path(given))


def _model_files(path: Path) -> Iterator[FileResult]:
    # Unlike `Path.exists`, never raises, whatever the name.
    if not os.path.exists(path):  # noqa: PTH110
        raise UsageError(f"{path}: there is no such file (a template without a sign of Jinja in it has to be bytes)")
    found = False
    for item in discover([str(path)]):
        if not isinstance(item, PassedOver):
            found = True
            yield extract(item)
    if not found:
        raise UsageError(f"{path}: there is no template and no model file in it")


def _analysed(file: FileResult, profile: str, now: float | None, known: dict[str, TemplateResult]) -> FileAnalysis:
    """A file with its templates; each template is analysed once, however many files hold it (`known`, by SHA-256)."""
    templates = []
    for template in file.jinja:
        if template.sha256 not in known:
            known[template.sha256] = analyse_template(template.source, profile=profile, now=now)
        templates.append(TemplateAnalysis(file.file.path, template, known[template.sha256]))
    return FileAnalysis(file, tuple(templates), tuple(_file_findings(file, templates)))


def _file_findings(file: FileResult, templates: list[TemplateAnalysis]) -> Iterator[Finding]:
    # As a scan does: of what could not be opened there is only something to judge if something was noted.
    if file.outcome not in (Outcome.ANALYSED, Outcome.NO_TEMPLATE) and not file.notes:
        return
    variants = [
        VariantFacts(
            one.template,
            one.result.outcome,
            one.result.capabilities,
            next((behaviour for behaviour in one.result.behaviours if behaviour.key == "bos"), None),
        )
        for one in templates
    ]
    yield from judge_file(FileFacts(file.outcome, variants, file.metadata.bos, file.notes))


# -- in a notebook -----------------------------------------------------------------------------------------------------


def _title(found: TemplateAnalysis) -> str:
    reason = f": {found.result.reason}" if found.result.reason else ""
    start = f"{found.path} ({found.template.variant}), {len(found.template.source):,} bytes, {found.result.profile}"
    return f"{start}, {found.result.outcome}{reason}"


def _claims_html(found: TemplateAnalysis) -> str:
    heads = "".join([f"<th>{head}</th>" for head in ("capability", "claimed", "really", "why")])
    rows = [
        "".join(
            [
                f"<td>{_html(cell)}</td>"
                for cell in (claim.capability, _word(claim.claimed), really_word(claim), claim.why)
            ]
        )
        for claim in found.claims
    ]
    return f"<table><tr>{heads}</tr>{''.join([f'<tr>{row}</tr>' for row in rows])}</table>"


def _findings_html(findings: tuple[Finding, ...]) -> str:
    items = [
        f"<li>{_html(f'{finding.severity} {finding.rule}: {finding.text}')}"
        f"{'' if finding.line is None else f' (line {finding.line})'}</li>"
        for finding in findings
    ]
    return f"<ul>{''.join(items)}</ul>" if items else ""


def _word(flag: bool | None) -> str:
    return "" if flag is None else yes_or_no(flag)


def _html(text: str) -> str:
    """Text of any origin, safe in a page."""
    return escape(visible(text))
