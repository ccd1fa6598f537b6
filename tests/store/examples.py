"""Small, valid values to store."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from sqlalchemy import Engine

from scanner.results import (
    CAPABILITIES,
    GO,
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
from scanner.store.writer import ScanWriter

VERSION = "0.1.0"
PROFILE = "b11549"


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.moment

    def move(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)


def model_file(path: str, fingerprint: str = "1") -> ModelFile:
    return ModelFile(path, "/models", SourceKind.GGUF, 1000, 1_700_000_000_123_456_789, fingerprint)


def template(source: bytes, variant: str = "default") -> ChatTemplate:
    return ChatTemplate(variant, source, "tokenizer.chat_template")


def with_templates(path: str, *templates: ChatTemplate, fingerprint: str = "1") -> FileResult:
    metadata = ModelMetadata(architecture="qwen3", file_type="Q4_K_M", quantized_by="somebody")
    return FileResult(model_file(path, fingerprint), Outcome.ANALYSED, templates, metadata)


def without_template(path: str) -> FileResult:
    return FileResult(model_file(path), Outcome.NO_TEMPLATE, reason="no tokenizer.chat_template")


def unreadable(path: str, *, offset: int | None = 24) -> FileResult:
    return FileResult(
        model_file(path), Outcome.UNREADABLE, reason="the file ends early", offset=offset, expected="a key of 17 bytes"
    )


def capabilities(*claimed: str) -> Capabilities:
    return Capabilities(**{name: name in claimed for name in CAPABILITIES})


def finding(severity: Severity, text: str = "something is wrong", rule: str = "some-rule") -> Finding:
    return Finding(rule, severity, text, "probe tools", 3)


def analysis(sha256: str, *claimed: str, findings: tuple[Finding, ...] = (), profile: str = PROFILE) -> TemplateResult:
    return TemplateResult(sha256, profile, Outcome.ANALYSED, capabilities=capabilities(*claimed), findings=findings)


def observed(
    sha256: str, claimed: tuple[str, ...], really: tuple[str, ...], *, reason: str = "absent", profile: str = PROFILE
) -> TemplateResult:
    """An analysis with verdicts on all capabilities: `really` are true, the others false for this reason."""
    seen = []
    for name in CAPABILITIES:
        pair = (name in claimed, name in really)
        agreement = (
            Agreement.AGREES if len(set(pair)) == 1 else Agreement.OVERCLAIMS if pair[0] else Agreement.UNDERCLAIMS
        )
        seen.append(Observation(name, pair[1], "printed" if pair[1] else reason, agreement))
    return replace(analysis(sha256, *claimed, profile=profile), observations=tuple(seen))


def raising(word: str | None, line: int = 3) -> Effort:
    return Effort(word, EffortOutcome.RAISES, f"Jinja Exception: Unexpected reasoning effort {word}.", line)


def accepted(word: str | None, group: int, *, prints_word: bool = False, equals_unset: bool = False) -> Effort:
    return Effort(word, EffortOutcome.ACCEPTED, None, None, group, prints_word, equals_unset)


EFFORTS = (
    accepted(None, 1, equals_unset=True),
    raising("none"),
    accepted("low", 2, prints_word=True),
    raising("high"),
    accepted("xhigh", 1, equals_unset=True),
)
"""As a template that knows two words."""


def not_parseable(sha256: str) -> TemplateResult:
    return TemplateResult(
        sha256,
        PROFILE,
        Outcome.NOT_PARSEABLE,
        parse_error=ParseError("parser", "Expected end of statement", 1, 4, 3),
        reason="Expected end of statement",
        findings=(finding(Severity.ERROR, "llama-server would not start", "not-parseable"),),
    )


def not_starting(message: str) -> StartCheck:
    error = RunError("raised", message, "CallExpression", 20, 2, 7)
    return StartCheck(False, None, "thinking", error, f"While executing CallExpression\n{message}")


def whole_analysis(sha256: str) -> TemplateResult:
    """An analysis that uses every field."""
    return TemplateResult(
        sha256=sha256,
        profile=PROFILE,
        outcome=Outcome.ANALYSED,
        capabilities=capabilities("system_role", "string_content"),
        probes=(
            ProbeRun(
                "typed_content",
                True,
                "<|user|>\0\ud800␛",
                (Part("<|user|>", False), Part("\0\ud800␛", True)),
                None,
                (
                    Read("messages[0].content", True, ("selectattr", "test_is_string"), 7, 3),
                    Read("messages", True, (), None, None),
                ),
                {"messages": [{"role": "user", "content": "STRING_MARKER"}], "add_generation_prompt": True},
                0.002,
                (1, 2, 3, 7),
            ),
            ProbeRun(
                "tools",
                False,
                "",
                error=RunError("raised", "no tools", "CallExpression", 120, 4, 5),
                lines=(1, 4),
            ),
        ),
        findings=(finding(Severity.NOTE, "first"), finding(Severity.WARNING, "second")),
        handler="Hermes 2 Pro",
        patches=("strip_last",),
        start=not_starting("Jinja Exception: roles must alternate"),
        observations=(
            Observation(
                "system_role",
                False,
                "absent",
                Agreement.OVERCLAIMS,
                ProbeRun(
                    "system_role",
                    True,
                    "<|user|>\0\ud800␛",
                    (Part("<|user|>", False), Part("\0\ud800␛", True)),
                    variables={"messages": [{"role": "system", "content": "CAPSCAN_SYSTEM"}]},
                    duration=0.001,
                ),
            ),
            Observation(
                "tools",
                False,
                "raised: no tools",
                Agreement.AGREES,
                ProbeRun("tools", False, "", error=RunError("raised", "no tools", "CallExpression", 120, 4, 5)),
            ),
            Observation("reasoning_effort", None, "no effort was tried"),
        ),
        efforts=EFFORTS,
        free_text_effort="raises",
        behaviours=(
            Behaviour("late_system", "raises", "only at the start", "Jinja Exception: only\0 at the start", 3),
            Behaviour("clock", "same"),
        ),
        renders=(
            StandardRender("llama.cpp", "plain", "<|user|>\udcff", inputs=((8, 9),)),
            StandardRender("jinja2", "plain", "", "UndefinedError: 'x' is undefined"),
        ),
        duration=0.03,
        lines=(1, 2, 3, 4, 7, 9),
    )


def whole_file(path: str, source: bytes) -> FileResult:
    """A file result that uses every field that a file with templates can."""
    return FileResult(
        file=model_file(path),
        outcome=Outcome.ANALYSED,
        templates=(template(source), ChatTemplate("tool_use", source + b"!", "tokenizer.chat_template.tool_use")),
        metadata=ModelMetadata(
            architecture="llama",
            name="A Model",
            basename="model",
            size_label="8B",
            file_type="Q4_K_M",
            quantized_by="somebody",
            license="mit",
            repo_url="https://example.org/model",
            tokenizer_pre="llama-bpe",
            block_count=32,
            split_no=0,
            split_count=2,
            bos=SpecialToken(1, "<s>", True),
            eos=SpecialToken(2, None, False),
        ),
        notes=("the tool_use variant is listed twice",),
    )


def named_file(path: str) -> FileResult:
    """A file with names in a store, and a template of another kind."""
    names = (
        ModelName("ollama", "one:latest", "ollama.com/library/one", "latest"),
        ModelName("ollama", "two:latest", None, None),
    )
    projector = with_templates(path, ChatTemplate("ollama", b"{{ .Prompt }}", "blobs/sha256-02", GO))
    return replace(
        projector,
        file=replace(projector.file, names=names),
        outcome=Outcome.SKIPPED,
        metadata=ModelMetadata(role=Role.PROJECTOR),
        reason="a projector",
    )


def writer(engine: Engine, clock: Clock | None = None, version: str = VERSION, profile: str = PROFILE) -> ScanWriter:
    return ScanWriter(engine, now=clock or Clock(), version=version, profile=profile)


def record(
    engine: Engine,
    *results: FileResult,
    analyses: tuple[TemplateResult, ...] = (),
    sources: tuple[str, ...] = ("/models",),
) -> int:
    """One whole scan; returns its number."""
    writing = writer(engine)
    scan = writing.begin(sources)
    for result in results:
        writing.add_file(result)
    for made in analyses:
        writing.add_analysis(made)
    writing.finish("finished")
    return scan
