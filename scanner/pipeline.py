"""One template → its analysis, one file → its templates. Nothing here raises for what a file or template holds."""

from __future__ import annotations

import time

from scanner.chat.handlers import detect, is_outdated_gemma4
from scanner.chat.patches import patch
from scanner.dialect import DEFAULT_LIMITS, Limits, SyntaxKind, Template, TemplateSyntaxError
from scanner.extract import extract
from scanner.judge import TemplateFacts, judge
from scanner.probe.capabilities import probe
from scanner.probe.profiles import CURRENT, PROFILES
from scanner.results import (
    Capabilities,
    ChatTemplate,
    FileResult,
    ModelFile,
    Outcome,
    ParseError,
    ProbeRun,
    TemplateResult,
)

ANALYSIS_VERSION = 1
"""Raised whenever an analysis would come out differently; the database then analyses again."""


def analyse_file(model_file: ModelFile) -> FileResult:
    """Take the templates out of a model file."""
    return extract(model_file)


def analyse_template(
    source: bytes, *, profile: str = CURRENT.name, now: float | None = None, limits: Limits = DEFAULT_LIMITS
) -> TemplateResult:
    """Everything Capscan finds out about a template under an engine profile.

    `now`: the clock of the renders, in seconds since the epoch. Raises `KeyError` for an unknown profile only.
    """
    started = time.perf_counter()
    chosen = PROFILES[profile]
    patched = patch(source)
    outcome, reason = Outcome.ANALYSED, None
    parse_error: ParseError | None = None
    capabilities: Capabilities | None = None
    probes: tuple[ProbeRun, ...] = ()
    try:
        template = Template(source, limits=limits)
        capabilities, probes = probe(template, chosen, now=now)
        if patched.names:
            capabilities, probes = _as_patched(
                (capabilities, probes), probe(Template(patched.source, limits=limits), chosen, now=now)
            )
    except TemplateSyntaxError as error:
        parse_error = ParseError(str(error.kind), error.message, error.line, error.column, error.offset)
        limited = error.kind is SyntaxKind.LIMIT
        outcome = Outcome.LIMIT_EXCEEDED if limited else Outcome.NOT_PARSEABLE
        reason = error.message
    exceeded = next((run for run in probes if run.error is not None and run.error.kind == "limit"), None)
    if exceeded is not None and exceeded.error is not None:
        outcome, capabilities, reason = Outcome.LIMIT_EXCEEDED, None, exceeded.error.message
    facts = TemplateFacts(source, outcome, parse_error, capabilities, probes, patched.names, is_outdated_gemma4(source))
    return TemplateResult(
        sha256=ChatTemplate("", source, "").sha256,
        profile=profile,
        outcome=outcome,
        parse_error=parse_error,
        capabilities=capabilities,
        probes=probes,
        findings=judge(facts),
        handler=detect(source),
        patches=patched.names,
        reason=reason,
        duration=time.perf_counter() - started,
    )


Probed = tuple[Capabilities, tuple[ProbeRun, ...]]


def _as_patched(published: Probed, patched: Probed) -> Probed:
    """llama.cpp probes the patched text, so its flags count. The runs kept are those of the text as published, whose
    places a person can look up, unless the patch changes a flag: then they would explain something else."""
    return published if published[0] == patched[0] else patched
