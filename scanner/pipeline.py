"""One template → its analysis, one file → its templates. Nothing here raises for what a file or template holds."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from scanner.chat.handlers import detect, is_outdated_gemma4
from scanner.chat.patches import Patched, patch
from scanner.chat.selection import counts_as_none
from scanner.dialect import DEFAULT_LIMITS, Limits, SyntaxKind, Template, TemplateSyntaxError
from scanner.extract import extract
from scanner.judge import TemplateFacts, judge
from scanner.probe.capabilities import probe
from scanner.probe.profiles import CURRENT, PROFILES, Profile
from scanner.results import (
    Capabilities,
    FileResult,
    Finding,
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
    loaded = patch(source)
    result = TemplateResult(
        sha256=hashlib.sha256(source).hexdigest(),
        profile=profile,
        outcome=Outcome.ANALYSED,
        handler=detect(source),
        patches=loaded.names,
    )
    none = counts_as_none(source)
    try:
        if none is None:
            capabilities, probes = _probe(source, loaded, PROFILES[profile], now, limits)
            result = _probed(result, capabilities, probes)
        else:
            result = replace(result, outcome=Outcome.NO_TEMPLATE, reason=f"{none}: llama.cpp uses ChatML instead")
    except TemplateSyntaxError as error:
        result = _unparsed(result, error)
    findings = _judge(result, source)
    return replace(result, findings=findings, duration=time.perf_counter() - started)


def analyse_profiles(
    source: bytes, profiles: Sequence[str], *, now: float | None = None, limits: Limits = DEFAULT_LIMITS
) -> tuple[TemplateResult, ...]:
    """A template under several engine profiles, in their order; what depends on the build is a finding of the first."""
    first, *others = [analyse_template(source, profile=profile, now=now, limits=limits) for profile in profiles]
    if not others:
        return (first,)
    by_profile = {result.profile: result.capabilities for result in (first, *others) if result.capabilities is not None}
    return replace(first, findings=_judge(first, source, by_profile)), *others


def not_examined(sha256: str, profile: str, reason: str) -> TemplateResult:
    """The result of a template whose analysis gave none: it took too long, too much memory, or killed its worker."""
    result = TemplateResult(sha256, profile, Outcome.LIMIT_EXCEEDED, reason=reason)
    return replace(result, findings=_judge(result, b""))


def _probe(
    source: bytes, loaded: Patched, profile: Profile, now: float | None, limits: Limits
) -> tuple[Capabilities, tuple[ProbeRun, ...]]:
    """llama.cpp probes the patched text, so its flags count. The runs kept are those of the text as published, whose
    places a person can look up, unless the patch changes a flag: then they would explain something else."""
    as_loaded = probe(Template(loaded.source, limits=limits), profile, now=now)
    if loaded.source == source:
        return as_loaded
    as_published = probe(Template(source, limits=limits), profile, now=now)
    return as_published if as_published[0] == as_loaded[0] else as_loaded


def _probed(result: TemplateResult, capabilities: Capabilities, probes: tuple[ProbeRun, ...]) -> TemplateResult:
    """The flags, unless a run used up a budget of ours: then nothing is claimed of llama.cpp."""
    exceeded = next((run.error for run in probes if run.error is not None and run.error.kind == "limit"), None)
    if exceeded is None:
        return replace(result, capabilities=capabilities, probes=probes)
    return replace(result, outcome=Outcome.LIMIT_EXCEEDED, reason=exceeded.message, probes=probes)


def _unparsed(result: TemplateResult, error: TemplateSyntaxError) -> TemplateResult:
    limited = error.kind is SyntaxKind.LIMIT
    return replace(
        result,
        outcome=Outcome.LIMIT_EXCEEDED if limited else Outcome.NOT_PARSEABLE,
        reason=error.message,
        parse_error=ParseError(str(error.kind), error.message, error.line, error.column, error.offset),
    )


def _judge(
    result: TemplateResult, source: bytes, by_profile: Mapping[str, Capabilities] | None = None
) -> tuple[Finding, ...]:
    return judge(
        TemplateFacts(
            source=source,
            outcome=result.outcome,
            parse_error=result.parse_error,
            capabilities=result.capabilities,
            probes=result.probes,
            patches=result.patches,
            outdated_gemma4=is_outdated_gemma4(source),
            reason=result.reason,
            by_profile=by_profile or {},
        )
    )
