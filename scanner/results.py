"""What the stages hand to each other. Frozen, picklable values: they cross process borders and reach the database."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

CAPABILITIES: tuple[str, ...] = (
    "tools",
    "tool_calls",
    "parallel_tool_calls",
    "system_role",
    "string_content",
    "typed_content",
    "object_arguments",
    "preserve_reasoning",
    "reasoning_effort",
)
"""Short names, in the order a person reads them. llama.cpp's own name of each is `supports_` + short name."""


class Outcome(StrEnum):
    """What became of one file or one template. Kept apart everywhere: "not examined" is never shown as "fine"."""

    ANALYSED = "analysed"
    NO_TEMPLATE = "no template"
    NOT_PARSEABLE = "not parseable"
    LIMIT_EXCEEDED = "limit exceeded"
    UNREADABLE = "unreadable"
    NOT_A_MODEL = "not a model file"
    SKIPPED = "skipped"


class Role(StrEnum):
    """What a file is that is no model of its own; a model has none."""

    PROJECTOR = "projector"
    ADAPTER = "adapter"
    DRAFT = "draft"
    VOCABULARY = "vocabulary"
    IMATRIX = "imatrix"


class SourceKind(StrEnum):
    """What a model file is, and so which extractor opens it."""

    GGUF = "gguf"
    HUGGINGFACE = "huggingface"
    JINJA = "jinja"


class Severity(StrEnum):
    """How bad a finding is, worst first."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class ModelName:
    """What a tool calls a model file: `store` is the tool's (`ollama`, `huggingface`, `llama.cpp`, `lmstudio`), `name`
    what a person types or reads there, `repository` where the file comes from and `revision` which state of that, as
    far as the store says."""

    store: str
    name: str
    repository: str | None = None
    revision: str | None = None


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One thing that may hold chat templates: a file, or the directory of a model.

    `path` is absolute; `source` is the path the person gave. `size` (bytes) and `mtime_ns` are those of the file, for a
    directory the sum and the newest of the files that matter. `fingerprint` changes whenever any of these files
    changes in size, mtime or inode. `shards` are the names of the files of a split model, in its folder, by their
    numbers; `path` is that of the first, `size` the sum.

    `names` are those that tools know it by; they say nothing of what is in it, so no change of them changes the
    fingerprint. `layers` are the paths of Go templates that Ollama keeps beside it (they do count for the fingerprint;
    the database keeps the templates, not these paths).
    """

    path: str
    source: str
    kind: SourceKind
    size: int
    mtime_ns: int
    fingerprint: str
    shards: tuple[str, ...] = ()
    names: tuple[ModelName, ...] = ()
    layers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PassedOver:
    """A path that discovery did not take, and why (a link loop, an unreadable folder, a path that does not exist)."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class SpecialToken:
    """A beginning- or end-of-sequence token. `id` is None where a source names only the text, `text` is None where it
    names only the id; `added` says whether the tokenizer adds it itself (None: the source does not say)."""

    id: int | None = None
    text: str | None = None
    added: bool | None = None


@dataclass(frozen=True, slots=True)
class ModelMetadata:
    """What a model file says of itself, besides its templates. None: it does not say. `role` is a `Role` where the file
    is no model of its own."""

    architecture: str | None = None
    name: str | None = None
    basename: str | None = None
    size_label: str | None = None
    file_type: str | None = None
    quantized_by: str | None = None
    license: str | None = None
    repo_url: str | None = None
    tokenizer_pre: str | None = None
    block_count: int | None = None
    split_no: int | None = None
    split_count: int | None = None
    bos: SpecialToken = SpecialToken()
    eos: SpecialToken = SpecialToken()
    role: str | None = None


JINJA, GO = "jinja", "go"
"""Kinds of templates: llama.cpp's, and Ollama's own, which is never parsed as Jinja."""

GO_TEMPLATE = "a Go template of Ollama's: llama.cpp does not read it"
"""Why a Go template is skipped."""


@dataclass(frozen=True, slots=True)
class ChatTemplate:
    """One chat template as a file carries it: `variant` is `default`, `tool_use` or another name; `origin` says where
    in the file it stands (`tokenizer.chat_template`, `chat_template.jinja`, …); `kind` is JINJA or GO."""

    variant: str
    source: bytes
    origin: str
    kind: str = JINJA

    @property
    def sha256(self) -> str:
        """The template's identity: SHA-256 of its bytes, in hexadecimal."""
        return hashlib.sha256(self.source).hexdigest()


NOT_LOADED = "llama.cpp does not load this model: "
"""How a note of a file begins that says why a split model is none: a shard is missing, or not what its name says."""


@dataclass(frozen=True, slots=True)
class FileResult:
    """One model file after extraction.

    `outcome` is ANALYSED when `templates` has a Jinja one, else NO_TEMPLATE, UNREADABLE, NOT_A_MODEL or SKIPPED, with
    `reason` in words; a Go template may be there whatever the outcome. `offset` is the byte where reading failed,
    `expected` what should have been there. `notes` are observations worth keeping (conflicting variants, names listed
    but absent).
    """

    file: ModelFile
    outcome: Outcome
    templates: tuple[ChatTemplate, ...] = ()
    metadata: ModelMetadata = ModelMetadata()
    reason: str | None = None
    offset: int | None = None
    expected: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def jinja(self) -> tuple[ChatTemplate, ...]:
        """The templates that llama.cpp might read."""
        return tuple(template for template in self.templates if template.kind == JINJA)


@dataclass(frozen=True, slots=True)
class Read:
    """One value of a request that a template read: its path, llama.cpp's marks, and the first place (1-based)."""

    path: str
    used: bool
    ops: tuple[str, ...]
    line: int | None
    column: int | None


STOPS_ENGINE = "stops llama.cpp itself"
"""In the message of a run's error: the dialect refuses what would end the real process."""


@dataclass(frozen=True, slots=True)
class RunError:
    """An error of a render. `kind`: `runtime`, `raised`, `not_implemented`, `loop_control` or `limit`. `node` and the
    place are None for errors that llama.cpp does not wrap. `offset` counts bytes, `line` and `column` start at 1."""

    kind: str
    message: str
    node: str | None = None
    offset: int | None = None
    line: int | None = None
    column: int | None = None

    @property
    def stops_engine(self) -> bool:
        """Whether the whole llama.cpp process would end here; no budget of ours is to blame then."""
        return self.kind == "limit" and STOPS_ENGINE in self.message


@dataclass(frozen=True, slots=True)
class ParseError:
    """Why llama.cpp cannot parse a template. `kind`: `lexer`, `parser`, or `limit` (a budget of ours)."""

    kind: str
    message: str
    line: int | None = None
    column: int | None = None
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of rendered text; `is_input`: it came from the request, not from the template."""

    text: str
    is_input: bool


@dataclass(frozen=True, slots=True)
class ProbeRun:
    """One probe as it ran: what was sent (`variables`, as JSON-compatible data), what came back, what was read.

    `ok` false: the render failed with `error` and `output` is empty. `duration` is in seconds. `lines`: those
    of the result's that ran; of observed runs none are kept.
    """

    name: str
    ok: bool
    output: str
    parts: tuple[Part, ...] = ()
    error: RunError | None = None
    reads: tuple[Read, ...] = ()
    variables: Mapping[str, object] = field(default_factory=dict)
    duration: float = 0.0
    lines: tuple[int, ...] = ()


EVERY_START, LOGGED_START = "thinking", "example"
"""The conversations that llama-server renders before it listens: always, and for its log only."""
AUTOPARSER_START = "autoparser"
"""In the place of a conversation: those come out, and llama.cpp's autoparser gives up on the template."""


@dataclass(frozen=True, slots=True)
class StartCheck:
    """Whether llama-server starts with a template as a model's default (`chat.md` section 6): whether the conversations
    that it renders before it listens come out. Of what its autoparser makes of a template one failure is known.

    `ok`: it starts with its usual settings, and `enable_thinking` is what a request gets that does not say. `error` is
    that of `conversation`, with its place in the text as llama.cpp loads it (patches keep the lines), and `log` what
    the server writes before it gives up. With EVERY_START none starts, nor with AUTOPARSER_START; with LOGGED_START,
    where all else is well, none that logs traces (`-lv 4`), so `ok` holds; without a conversation the template does not
    parse.
    """

    ok: bool
    enable_thinking: bool | None = None
    conversation: str | None = None
    error: RunError | None = None
    log: str | None = None


@dataclass(frozen=True, slots=True)
class Capabilities:
    """llama.cpp's nine booleans for one template (`caps.md`); `reasoning_effort` is None under a profile whose builds
    have no such flag."""

    tools: bool
    tool_calls: bool
    parallel_tool_calls: bool
    system_role: bool
    string_content: bool
    typed_content: bool
    object_arguments: bool
    preserve_reasoning: bool
    reasoning_effort: bool | None

    def as_llama_cpp(self) -> dict[str, bool]:
        """The map as `/props` reports it: full names, sorted; without a flag that the build does not have."""
        flags = {name: getattr(self, name) for name in sorted(CAPABILITIES)}
        return {f"supports_{name}": bool(holds) for name, holds in flags.items() if holds is not None}


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule found. `text` is one line for a person; `evidence` names the probe, place or value behind it; `line`
    is the template's line it points at, where there is one."""

    rule: str
    severity: Severity
    text: str
    evidence: str
    line: int | None = None


class Verdict(StrEnum):
    """What the real llama.cpp says of our result for a template."""

    EQUAL = "equal"
    DIFFERENT = "different"
    NOT_COMPARABLE = "not comparable"


@dataclass(frozen=True, slots=True)
class FlagDifference:
    """One flag that the real llama.cpp reports otherwise, and the probe that decides it."""

    capability: str
    ours: bool
    engine: bool
    probe: str


@dataclass(frozen=True, slots=True)
class Verification:
    """One template put to the real llama.cpp of a profile; `reason` says in words what no flag difference does."""

    sha256: str
    profile: str
    verdict: Verdict
    reason: str | None = None
    differences: tuple[FlagDifference, ...] = ()


class Agreement(StrEnum):
    """A claimed flag beside what the rendered text shows (`behaviours.md` section 1)."""

    AGREES = "agrees"
    OVERCLAIMS = "overclaims"
    UNDERCLAIMS = "underclaims"


@dataclass(frozen=True, slots=True)
class Observation:
    """What the output of one conversation of our own says about a capability.

    `verdict` None: it could not be told. `reason`: `printed`, `absent`, `dumped`, `python repr`, `raised: …`, `same for
    every effort`, or why nothing could be told. `run` is the conversation as it ran (no reads), None where nothing was
    rendered. `agreement` is None where either side has no verdict.
    """

    capability: str
    verdict: bool | None
    reason: str
    agreement: Agreement | None = None
    run: ProbeRun | None = None


class EffortOutcome(StrEnum):
    """What a template does with a reasoning effort."""

    ACCEPTED = "accepted"
    RAISES = "raises"


@dataclass(frozen=True, slots=True)
class Effort:
    """One reasoning effort as it was tried (`behaviours.md` section 2); `word` None: unset.

    `message` and `line` are those of the error. Accepted words with equal outputs share a `group`, counted from 1 in
    the order of the words. `prints_word`: the word stands in the output, whole, more often than when unset.
    """

    word: str | None
    outcome: EffortOutcome
    message: str | None = None
    line: int | None = None
    group: int | None = None
    prints_word: bool = False
    equals_unset: bool = False


@dataclass(frozen=True, slots=True)
class Behaviour:
    """One answer of `behaviours.md` section 3: a stable key, an outcome from the key's closed list, the rest of the
    answer in words, and the render or error that it rests on."""

    key: str
    outcome: str
    detail: str = ""
    evidence: str = ""
    line: int | None = None


@dataclass(frozen=True, slots=True)
class StandardRender:
    """A standard conversation (`scenario`) as one `engine` renders it: `llama.cpp` or `jinja2`. `error` is None when it
    gave an output. `inputs` are the ranges of its characters that came from the request (None: the engine does not
    tell)."""

    engine: str
    scenario: str
    output: str = ""
    error: str | None = None
    inputs: tuple[tuple[int, int], ...] | None = None


@dataclass(frozen=True, slots=True)
class TemplateResult:
    """One template under one engine profile.

    `outcome`: ANALYSED, NOT_PARSEABLE or LIMIT_EXCEEDED (`reason` says which). `capabilities` is None unless ANALYSED.
    `handler` is the llama.cpp parser that would read the model's answers (`chat.md` section 5). `patches` names the
    text patches llama.cpp applies before parsing (`chat.md` section 2). `start` is what the server's own conversations
    gave, None where they were not rendered; `server_start` is what to show. `lines` are the lines, from 1, that hold
    something to run, in the text that the probes ran; without any, it is not known of the probes which they ran.

    What is really true of it (`behaviours.md`), under the current profile only, else empty: `observations` for each
    capability, `efforts` as they were tried, whether a made-up effort is `printed`, `ignored` or `raises`
    (`free_text_effort`), `behaviours` in a fixed order, and the standard conversations under both engines (`renders`).
    """

    sha256: str
    profile: str
    outcome: Outcome
    parse_error: ParseError | None = None
    capabilities: Capabilities | None = None
    probes: tuple[ProbeRun, ...] = ()
    findings: tuple[Finding, ...] = ()
    handler: str | None = None
    patches: tuple[str, ...] = ()
    reason: str | None = None
    start: StartCheck | None = None
    observations: tuple[Observation, ...] = ()
    efforts: tuple[Effort, ...] = ()
    free_text_effort: str | None = None
    behaviours: tuple[Behaviour, ...] = ()
    renders: tuple[StandardRender, ...] = ()
    duration: float = 0.0
    lines: tuple[int, ...] = ()

    @property
    def server_start(self) -> StartCheck | None:
        """Whether llama-server starts with the template as a model's default; None: not examined. What does not parse
        keeps it from starting too, and the parse error is the reason."""
        if self.outcome is not Outcome.NOT_PARSEABLE or self.parse_error is None:
            return self.start
        error = self.parse_error
        return StartCheck(
            ok=False,
            error=RunError(error.kind, error.message, offset=error.offset, line=error.line, column=error.column),
        )
