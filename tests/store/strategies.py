"""Arbitrary results, as hostile as files can make them."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from hypothesis import strategies as st

from scanner.results import (
    CAPABILITIES,
    GO,
    JINJA,
    Agreement,
    Behaviour,
    Capabilities,
    ChatTemplate,
    Effort,
    EffortOutcome,
    FileResult,
    Finding,
    ModelFile,
    ModelMetadata,
    ModelName,
    Observation,
    Outcome,
    ParseError,
    Part,
    ProbeRun,
    Read,
    Role,
    RunError,
    Severity,
    SourceKind,
    SpecialToken,
    StandardRender,
    StartCheck,
    TemplateResult,
)

texts = st.text(
    st.one_of(st.characters(exclude_categories=()), st.sampled_from("\0\ud83d\ude00\udcff␛0AF'\\")), max_size=12
)
maybe_text = st.none() | texts
numbers = st.integers(-(2**63), 2**63 - 1)
maybe_number = st.none() | numbers
maybe_bool = st.none() | st.booleans()
seconds = st.floats(0, 1e6)

json_data = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


T = TypeVar("T")


def several(of: st.SearchStrategy[T]) -> st.SearchStrategy[tuple[T, ...]]:
    return st.lists(of, max_size=3).map(tuple)


files = st.builds(
    ModelFile,
    path=texts.map("/models/".__add__),
    source=texts,
    kind=st.sampled_from(SourceKind),
    size=numbers,
    mtime_ns=numbers,
    fingerprint=texts,
    names=several(st.builds(ModelName, store=texts, name=texts, repository=maybe_text, revision=maybe_text)),
)
tokens = st.builds(SpecialToken, id=maybe_number, text=maybe_text, added=maybe_bool)
metadata = st.builds(
    ModelMetadata,
    architecture=maybe_text,
    name=maybe_text,
    basename=maybe_text,
    size_label=maybe_text,
    file_type=maybe_text,
    quantized_by=maybe_text,
    license=maybe_text,
    repo_url=maybe_text,
    tokenizer_pre=maybe_text,
    block_count=maybe_number,
    split_no=maybe_number,
    split_count=maybe_number,
    bos=tokens,
    eos=tokens,
    role=st.none() | st.sampled_from(Role),
)


def held(*kinds: str) -> st.SearchStrategy[tuple[ChatTemplate, ...]]:
    """Templates, the first of the first kind; a text may be there as more than one."""
    several_of = st.builds(
        ChatTemplate, variant=texts, source=st.binary(max_size=20), origin=texts, kind=st.sampled_from(kinds)
    )
    first = st.builds(ChatTemplate, variant=texts, source=st.binary(max_size=20), origin=texts, kind=st.just(kinds[0]))
    return st.tuples(first, st.lists(several_of, max_size=2)).map(
        lambda drawn: tuple({one.variant: one for one in (*drawn[1], drawn[0])}.values())
    )


templates = held(JINJA, GO)
file_results = st.one_of(
    st.builds(
        FileResult,
        file=files,
        outcome=st.just(Outcome.ANALYSED),
        templates=templates,
        metadata=metadata,
        notes=several(texts),
    ),
    st.builds(
        FileResult,
        file=files,
        outcome=st.sampled_from([outcome for outcome in Outcome if outcome is not Outcome.ANALYSED]),
        templates=st.just(()) | held(GO),
        metadata=metadata,
        reason=maybe_text,
        offset=maybe_number,
        expected=maybe_text,
        notes=several(texts),
    ),
)

lines = st.sets(st.integers(1, 40) | numbers).map(lambda found: tuple(sorted(found)))
reads = st.builds(Read, path=texts, used=st.booleans(), ops=several(texts), line=maybe_number, column=maybe_number)
run_errors = st.builds(
    RunError, kind=texts, message=texts, node=maybe_text, offset=maybe_number, line=maybe_number, column=maybe_number
)
probe_runs = st.builds(
    ProbeRun,
    name=texts,
    ok=st.booleans(),
    output=texts,
    parts=several(st.builds(Part, text=texts, is_input=st.booleans())),
    error=st.none() | run_errors,
    reads=several(reads),
    variables=st.dictionaries(texts, json_data, max_size=3),
    duration=seconds,
    lines=lines,
)
starts = st.one_of(
    st.builds(StartCheck, ok=st.just(True), enable_thinking=maybe_bool),
    st.builds(
        StartCheck,
        ok=st.booleans(),
        enable_thinking=maybe_bool,
        conversation=texts,
        error=run_errors,
        log=maybe_text,
    ),
)
findings = st.builds(
    Finding, rule=texts, severity=st.sampled_from(Severity), text=texts, evidence=texts, line=maybe_number
)


def _observed(observation: Observation) -> Observation:
    """Its run is named after the capability, and without reads and lines."""
    if observation.run is None:
        return observation
    return replace(observation, run=replace(observation.run, name=observation.capability, reads=(), lines=()))


observations = st.builds(
    Observation,
    capability=st.sampled_from(CAPABILITIES),
    verdict=maybe_bool,
    reason=texts,
    agreement=st.none() | st.sampled_from(Agreement),
    run=st.none() | probe_runs,
).map(_observed)
efforts = st.builds(
    Effort,
    word=maybe_text,
    outcome=st.sampled_from(EffortOutcome),
    message=maybe_text,
    line=maybe_number,
    group=maybe_number,
    prints_word=st.booleans(),
    equals_unset=st.booleans(),
)
behaviours = st.builds(Behaviour, key=texts, outcome=texts, detail=texts, evidence=texts, line=maybe_number)
ranges = st.none() | st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), max_size=3).map(tuple)
renders = st.builds(StandardRender, engine=texts, scenario=texts, output=texts, error=maybe_text, inputs=ranges)


def template_results(sha256: str) -> st.SearchStrategy[TemplateResult]:
    """Results for the one template that a test has stored."""
    return st.builds(
        TemplateResult,
        sha256=st.just(sha256),
        profile=texts,
        outcome=st.sampled_from(Outcome),
        parse_error=st.none()
        | st.builds(ParseError, kind=texts, message=texts, line=maybe_number, column=maybe_number, offset=maybe_number),
        capabilities=st.none() | st.builds(Capabilities),
        probes=several(probe_runs),
        findings=several(findings),
        handler=maybe_text,
        patches=several(texts),
        reason=maybe_text,
        start=st.none() | starts,
        observations=several(observations),
        efforts=several(efforts),
        free_text_effort=maybe_text,
        behaviours=several(behaviours),
        renders=several(renders),
        duration=seconds,
        lines=lines,
    )
