"""One template → its analysis, one file → its templates. Nothing here raises for what a file or template holds."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from scanner.chat.handlers import detect, is_outdated_gemma4
from scanner.chat.patches import patch
from scanner.chat.prompt import PromptError
from scanner.chat.selection import counts_as_none
from scanner.chat.server import USUAL, Loaded, Server
from scanner.chat.start import Start, start
from scanner.dialect import DEFAULT_LIMITS, ErrorKind, Limits, SyntaxKind, Template, TemplateSyntaxError
from scanner.extract import extract
from scanner.judge import TemplateFacts, judge
from scanner.probe.autoparser import call_error
from scanner.probe.capabilities import limit_of, probe
from scanner.probe.profiles import CURRENT, PROFILES, Profile
from scanner.results import (
    AUTOPARSER_START,
    EVERY_START,
    LOGGED_START,
    Capabilities,
    FileResult,
    Finding,
    ModelFile,
    Outcome,
    ParseError,
    ProbeRun,
    RunError,
    StartCheck,
    TemplateResult,
)
from scanner.truth import START_STEPS, find_truth, share

ANALYSIS_VERSION = 5
"""Raised whenever an analysis would come out differently; the database then analyses again."""


def analyse_file(model_file: ModelFile) -> FileResult:
    """Take the templates out of a model file."""
    return extract(model_file)


def analyse_template(
    source: bytes, *, profile: str = CURRENT.name, now: float | None = None, limits: Limits = DEFAULT_LIMITS
) -> TemplateResult:
    """Everything Capscan finds out about a template, taken as a model's default, under an engine profile.

    `now`: the clock of the renders, in seconds since the epoch. Raises `KeyError` for an unknown profile only.
    """
    started = time.perf_counter()
    loaded = patch(source)
    result = TemplateResult(
        sha256=hashlib.sha256(source).hexdigest(),
        profile=profile,
        outcome=Outcome.ANALYSED,
        handler=detect(loaded.source),
        patches=loaded.names,
    )
    none = counts_as_none(source)
    try:
        if none is None:
            result = _examined(result, source, Template(loaded.source, limits=limits), PROFILES[profile], now)
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


def _examined(
    result: TemplateResult, source: bytes, template: Template, profile: Profile, now: float | None
) -> TemplateResult:
    """The result with what the runs of a template show; `template` is the source as llama.cpp loads it. Only of the
    current build is it known what a server does around a template."""
    capabilities, runs = probe(template, profile, now=now, lines=True)
    lines = template.lines
    if template.source != source:
        runs, lines = _as_published(source, capabilities, profile, now, template.limits) or (runs, lines)
    result = _probed(replace(result, lines=lines), capabilities, runs)
    if result.capabilities is None or profile is not CURRENT:
        return result
    server = Server(Loaded(template, capabilities), vocabulary=USUAL)
    clock = time.time() if now is None else now
    started = start(server, now=clock, limits=share(template.limits, START_STEPS))
    server = replace(server, enable_thinking=started.enable_thinking is not False)
    truth = find_truth(server, started, source, now=clock)
    unread = call_error(server.default.handler, capabilities, truth.observations)
    return replace(
        result,
        start=_with_autoparser(_start_check(started), unread),
        observations=truth.observations,
        efforts=truth.efforts,
        free_text_effort=truth.free_text_effort,
        behaviours=truth.behaviours,
        renders=truth.renders,
    )


def _as_published(
    source: bytes, capabilities: Capabilities, profile: Profile, now: float | None, limits: Limits
) -> tuple[tuple[ProbeRun, ...], tuple[int, ...]] | None:
    """The runs of the text as published, whose places a person can look up, and its lines that hold something to run.
    None where the patches of llama.cpp, which probes the patched text, change a flag, or make the text one that parses:
    these runs would explain something else.
    """
    try:
        template = Template(source, limits=limits)
    except TemplateSyntaxError:
        return None
    found, runs = probe(template, profile, now=now, lines=True)
    return (runs, template.lines) if found == capabilities else None


def _start_check(found: Start) -> StartCheck | None:
    """Whether a server starts with the template alone. None where a budget of ours ran out: the server has none."""
    if found.error is None:
        logged = None if found.example_error is None else _failed_start(LOGGED_START, found.example_error)
        check = logged or StartCheck(ok=True)
        return replace(check, ok=True, enable_thinking=found.enable_thinking)
    return _failed_start(EVERY_START, found.error)


def _with_autoparser(check: StartCheck | None, error: str | None) -> StartCheck | None:
    """The check of a template whose calls the autoparser cannot read, if it fails for nothing else."""
    if error is None or check is None or not check.ok:
        return check
    text = f"the autoparser takes a call for JSON, and it is none ({error})"
    return StartCheck(ok=False, conversation=AUTOPARSER_START, error=RunError(str(ErrorKind.RUNTIME), text))


def _failed_start(conversation: str, failure: PromptError) -> StartCheck | None:
    error = _run_error(failure)
    if error.kind == ErrorKind.LIMIT and not error.stops_engine:
        return None
    # A server that dies writes nothing.
    log = None if error.stops_engine else failure.text
    return StartCheck(ok=False, conversation=conversation, error=error, log=log)


def _run_error(error: PromptError) -> RunError:
    """Why a conversation gave no prompt. Where the server refused it before any template ran there is no place."""
    run = error.run
    if run is None:
        return RunError(str(ErrorKind.RUNTIME), error.message, line=error.line, column=error.column)
    return RunError(str(run.kind), run.message, run.node, run.offset, run.line, run.column)


def _probed(result: TemplateResult, capabilities: Capabilities, probes: tuple[ProbeRun, ...]) -> TemplateResult:
    """The flags, unless a run used up a budget of ours: then nothing is claimed of llama.cpp."""
    exceeded = limit_of(probes)
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
    outdated = is_outdated_gemma4(patch(source).source)
    return judge(TemplateFacts(source, result, outdated_gemma4=outdated, by_profile=by_profile or {}))
