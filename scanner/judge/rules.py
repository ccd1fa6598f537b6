"""The rules that turn facts into findings (`behaviours.md` section 4). A rule is data; it sees no syntax tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from scanner.judge.verdicts import STARTING_CONVERSATIONS, first_line
from scanner.results import (
    CAPABILITIES,
    Capabilities,
    ChatTemplate,
    Finding,
    Outcome,
    ParseError,
    ProbeRun,
    Severity,
    StartCheck,
)


@dataclass(frozen=True, slots=True)
class TemplateFacts:
    """What the rules may look at: one analysed template. `start` is None also for one that does not parse."""

    source: bytes
    outcome: Outcome
    parse_error: ParseError | None
    capabilities: Capabilities | None
    probes: Sequence[ProbeRun]
    patches: Sequence[str]
    outdated_gemma4: bool
    reason: str | None = None
    start: StartCheck | None = None
    by_profile: Mapping[str, Capabilities] = field(default_factory=dict)

    def probe(self, name: str) -> ProbeRun | None:
        """The run of a probe; None where it did not run."""
        return next((run for run in self.probes if run.name == name), None)


@dataclass(frozen=True, slots=True)
class VariantFacts:
    """What the rules about a file look at: one of its variants, and what was found out about it."""

    template: ChatTemplate
    outcome: Outcome
    capabilities: Capabilities | None


@dataclass(frozen=True, slots=True)
class FileFacts:
    """A model file and its variants; `outcome` is that of its extraction."""

    outcome: Outcome
    variants: Sequence[VariantFacts]


Facts = TypeVar("Facts", TemplateFacts, FileFacts)


@dataclass(frozen=True, slots=True)
class Match:
    """One hit of a rule: the line a person reads, what it rests on, and the template's line if there is one."""

    text: str
    evidence: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Rule(Generic[Facts]):
    """A rule: `when` yields its hits in some facts; `meaning` and `remedy` explain it to a person."""

    slug: str
    severity: Severity
    meaning: str
    remedy: str
    when: Callable[[Facts], Iterator[Match]]

    def findings(self, facts: Facts) -> Iterator[Finding]:
        """The rule's hits as findings."""
        for match in self.when(facts):
            yield Finding(self.slug, self.severity, match.text, match.evidence, match.line)


def judge(facts: TemplateFacts) -> tuple[Finding, ...]:
    """All findings about a template, in the order of the rules."""
    return tuple(finding for rule in RULES for finding in rule.findings(facts))


def judge_file(facts: FileFacts) -> tuple[Finding, ...]:
    """All findings about a model file."""
    return tuple(finding for rule in FILE_RULES for finding in rule.findings(facts))


# -- conditions --------------------------------------------------------------------------------------------------------


def not_parseable(facts: TemplateFacts) -> Iterator[Match]:
    error = facts.parse_error
    if facts.outcome is Outcome.NOT_PARSEABLE and error is not None:
        yield Match(f"llama.cpp cannot parse it: {first_line(error.message)}", f"{error.kind} error", error.line)


def start_fails(facts: TemplateFacts) -> Iterator[Match]:
    """A template that parses; of others `not-parseable` speaks, and the rule about files."""
    if facts.start is not None and not facts.start.ok:
        yield from _start_failure("llama-server would not start", facts.start)


def logged_start_fails(facts: TemplateFacts) -> Iterator[Match]:
    if facts.start is not None and facts.start.ok:
        yield from _start_failure("llama-server -lv 4 would not start", facts.start)


def _start_failure(what: str, start: StartCheck) -> Iterator[Match]:
    if start.error is None or start.conversation is None:
        return
    conversation = STARTING_CONVERSATIONS.get(start.conversation, start.conversation)
    text = f"{what}: {first_line(start.error.message)} ({conversation})"
    yield Match(text, f"start-up conversation {start.conversation}", start.error.line)


def limit_exceeded(facts: TemplateFacts) -> Iterator[Match]:
    if facts.outcome is not Outcome.LIMIT_EXCEEDED or any(_stops_engine(run) for run in facts.probes):
        return
    if facts.parse_error is not None:
        yield Match(f"not examined: {facts.parse_error.message}", "parser", facts.parse_error.line)
        return
    limited = next((run for run in facts.probes if run.error is not None and run.error.kind == "limit"), None)
    yield Match(f"not examined: {facts.reason}", f"probe {limited.name}" if limited is not None else "analysis")


def crashes_engine(facts: TemplateFacts) -> Iterator[Match]:
    for run in facts.probes:
        if _stops_engine(run) and run.error is not None:
            yield Match(f"llama-server would crash: {run.error.message}", f"probe {run.name}", run.error.line)
            return


def _stops_engine(run: ProbeRun) -> bool:
    return run.error is not None and run.error.stops_engine


def plain_chat_raises(facts: TemplateFacts) -> Iterator[Match]:
    run = facts.probe("typed_content")
    claims = facts.capabilities
    if run is None or run.error is None or claims is None or claims.typed_content or run.error.kind == "limit":
        return
    if run.variables.get("tools"):
        # An old build's probe sends a null for a tool, which is no plain chat.
        return
    yield Match(f"a single user message fails: {_shown(run)}", "probe typed_content", run.error.line)


def no_content_form(facts: TemplateFacts) -> Iterator[Match]:
    claims = facts.capabilities
    if claims is not None and not claims.string_content and not claims.typed_content:
        yield Match("neither text nor typed parts count as supported content", "string_content, typed_content")


def calls_without_tools(facts: TemplateFacts) -> Iterator[Match]:
    claims = facts.capabilities
    if claims is not None and claims.tool_calls and not claims.tools:
        yield Match("takes tool calls but never reads the tools it is given", "tool_calls without tools")


def system_raises(facts: TemplateFacts) -> Iterator[Match]:
    run, plain = facts.probe("system_role"), facts.probe("typed_content")
    if run is None or run.error is None or run.error.kind == "limit" or plain is None or not plain.ok:
        return
    yield Match(f"a system message fails: {_shown(run)}", "probe system_role", run.error.line)


def probe_threw(facts: TemplateFacts) -> Iterator[Match]:
    """Flags that are false because their probe failed, in templates that do mention the field; one hit an error."""
    claims = facts.capabilities
    if claims is None:
        return
    blamed: dict[str, list[str]] = {}
    runs: dict[str, ProbeRun] = {}
    for capability, (name, wanted) in DECIDED_BY_FAILURE.items():
        run = facts.probe(name)
        if getattr(claims, capability) or run is None or run.error is None or run.error.kind == "limit":
            continue
        if wanted in facts.source:
            blamed.setdefault(run.error.message, []).append(capability)
            runs.setdefault(run.error.message, run)
    for message, capabilities in blamed.items():
        run = runs[message]
        count = "flag" if len(capabilities) == 1 else "flags"
        text = f"{count} {', '.join(capabilities)} off because the probe failed: {_shown(run)}"
        yield Match(text, f"probe {run.name}", run.error.line if run.error is not None else None)


DECIDED_BY_FAILURE = {
    "tools": ("tool_string_arguments", b"tools"),
    "tool_calls": ("tool_string_arguments", b"tool_calls"),
    "parallel_tool_calls": ("parallel_tool_calls", b"tool_calls"),
    "object_arguments": ("tool_object_arguments", b"arguments"),
    "string_content": ("typed_content", b"content"),
}
"""The probe whose failure alone turns a capability off, and the field it looks for."""


def flags_change_with_build(facts: TemplateFacts) -> Iterator[Match]:
    """Only where the template was analysed under several profiles."""
    changing = []
    for name in CAPABILITIES:
        flags = {profile: getattr(flags, name) for profile, flags in facts.by_profile.items()}
        known = {profile: holds for profile, holds in flags.items() if holds is not None}
        if len(set(known.values())) > 1:
            values = ", ".join(f"{profile} {'yes' if holds else 'no'}" for profile, holds in known.items())
            changing.append(f"{name} ({values})")
    if changing:
        yield Match(f"flags depend on the build: {'; '.join(changing)}", f"profiles {', '.join(facts.by_profile)}")


def outdated_gemma4(facts: TemplateFacts) -> Iterator[Match]:
    if facts.outdated_gemma4:
        yield Match("an outdated Gemma 4 template: llama.cpp rewrites tool turns for it", "handler Gemma 4")


def patched(facts: TemplateFacts) -> Iterator[Match]:
    for name in facts.patches:
        yield Match(f"llama.cpp changes the text before it parses it ({name})", f"patch {name}")


def python_internals(facts: TemplateFacts) -> Iterator[Match]:
    for sign in (b"__class__", b"__globals__", b"__init__", b"__subclasses__", b"__mro__", b"__builtins__"):
        at = facts.source.find(sign)
        if at >= 0:
            line = facts.source.count(b"\n", 0, at) + 1
            yield Match(f"uses {sign.decode()}, which reaches into Python", f"line {line}", line)


def no_template(facts: FileFacts) -> Iterator[Match]:
    if facts.outcome is Outcome.NO_TEMPLATE:
        yield Match("no chat template: llama.cpp falls back to one of its own", "file")


def default_does_not_parse(facts: FileFacts) -> Iterator[Match]:
    """A default that does parse and fails is found with its template, once for all files that hold it."""
    for variant in facts.variants:
        if variant.template.variant == "default" and variant.outcome is Outcome.NOT_PARSEABLE:
            yield Match("llama-server would not start: the default template does not parse", "variant default")


def tool_use_ignored(facts: FileFacts) -> Iterator[Match]:
    for variant in facts.variants:
        if variant.template.variant == "tool_use" and variant.outcome is Outcome.NOT_PARSEABLE:
            yield Match("llama.cpp ignores the tool_use template, which does not parse", "variant tool_use")


def variants_disagree(facts: FileFacts) -> Iterator[Match]:
    named = {variant.template.variant: variant.capabilities for variant in facts.variants}
    default, tool_use = named.get("default"), named.get("tool_use")
    # Without flags there is nothing to compare; other rules speak of that.
    if default is None or tool_use is None or default == tool_use:
        return
    claims, others = default.as_llama_cpp(), tool_use.as_llama_cpp()
    differing = [name.removeprefix("supports_") for name in claims if claims[name] != others[name]]
    text = f"default and tool_use differ in {', '.join(differing)}; llama-server reports those of tool_use"
    yield Match(text, "variants default, tool_use")


def _shown(run: ProbeRun) -> str:
    return first_line(run.error.message) if run.error is not None else ""


SERVER_DOES_NOT_START = (
    "server-does-not-start",
    Severity.ERROR,
    "llama-server would not start with it as a model's default template: it does not parse, or the conversation fails "
    "that every server renders before it listens, one user message with thinking on. Whether llama.cpp's autoparser "
    "makes sense of the template, without which the server does not start either, is not examined.",
    "Mend the template at the line shown, or pass another with --chat-template-file.",
)
"""One rule in two places: found with a template that fails, and with a file whose default does not parse."""

RULES: tuple[Rule[TemplateFacts], ...] = (
    Rule(
        "not-parseable",
        Severity.ERROR,
        "llama.cpp cannot lex or parse the template. As a model's default it keeps the server from starting; as its "
        "tool_use template it is ignored; others are never looked at.",
        "Rewrite the construct at the line shown; the dialect has no raw, with, do, include, ** or //.",
        not_parseable,
    ),
    Rule(*SERVER_DOES_NOT_START, start_fails),
    Rule(
        "limit-exceeded",
        Severity.ERROR,
        "A render used up a budget of Capscan's; llama.cpp has none and would run on, or run out of memory.",
        "Look for an endless loop, recursion or growing text; raise the budget only for a template you trust.",
        limit_exceeded,
    ),
    Rule(
        "crashes-llama.cpp",
        Severity.ERROR,
        "The render reaches an operation that ends the whole llama.cpp process.",
        "Guard the operation in the template.",
        crashes_engine,
    ),
    Rule(
        "plain-chat-raises",
        Severity.ERROR,
        "A conversation of one plain user message fails, and typed parts are not taken either.",
        "Mend the template at the line shown; no request can be served with it.",
        plain_chat_raises,
    ),
    Rule(
        "no-content-form",
        Severity.ERROR,
        "Neither string nor typed content counts as supported, so llama.cpp passes content on as it came and warns.",
        "Print message content in the template, as a string or by walking its parts.",
        no_content_form,
    ),
    Rule(
        "calls-without-tools",
        Severity.WARNING,
        "The template renders tool calls but does not describe the tools; llama.cpp warns of a fallback.",
        "Use a template that lists the tools, or describe them in the system message.",
        calls_without_tools,
    ),
    Rule(
        "system-raises",
        Severity.WARNING,
        "A leading system message makes the template fail.",
        "Do not send system messages to this model, or merge them into the first user message.",
        system_raises,
    ),
    Rule(
        "logged-start-fails",
        Severity.WARNING,
        "A conversation of system, user, assistant and user fails. A llama-server that logs traces (-lv 4 and up) "
        "renders it for its log before it listens, and would not start.",
        "Mend the template at the line shown; requests of this kind fail at any log level.",
        logged_start_fails,
    ),
    Rule(
        "probe-threw",
        Severity.WARNING,
        "A flag is false only because the probe's render failed; the feature itself may work.",
        "Read the error: it is often the probe's short history or ids that the template refuses.",
        probe_threw,
    ),
    Rule(
        "flags-change-with-build",
        Severity.WARNING,
        "Another build of llama.cpp reports other flags for the same template, so the same request is rewritten "
        "differently (seen when a scan analyses several profiles).",
        "Pin the build of your servers, or write the template so that every build reads the same fields.",
        flags_change_with_build,
    ),
    Rule(
        "outdated-gemma4",
        Severity.NOTE,
        "llama.cpp detects an old Gemma 4 template and applies compatibility workarounds.",
        "Update to the current template of the model.",
        outdated_gemma4,
    ),
    Rule(
        "patched-by-llama.cpp",
        Severity.NOTE,
        "llama.cpp replaces a line of the template's text before parsing it.",
        "Nothing to do; prompts differ from those of other engines where the line would have held.",
        patched,
    ),
    Rule(
        "uses-python-internals",
        Severity.NOTE,
        "The template names dunder attributes; llama.cpp has none, and in Python they are an attack surface.",
        "Find out where the template comes from before serving it with Python.",
        python_internals,
    ),
)
FILE_RULES: tuple[Rule[FileFacts], ...] = (
    Rule(*SERVER_DOES_NOT_START, default_does_not_parse),
    Rule(
        "tool-use-ignored",
        Severity.WARNING,
        "The model's tool_use template does not parse; llama.cpp says so in its log and uses the default for all.",
        "Mend the tool_use template.",
        tool_use_ignored,
    ),
    Rule(
        "variants-disagree",
        Severity.WARNING,
        "The default and tool_use templates have different capabilities; /props shows those of tool_use only, while "
        "plain requests render with the default.",
        "Read both; clients that look at /props may be misled for requests without tools.",
        variants_disagree,
    ),
    Rule(
        "no-template",
        Severity.NOTE,
        "The model carries no chat template, or one that llama.cpp counts as none.",
        "Pass one with --chat-template-file, or accept llama.cpp's own (`capscan show` names it).",
        no_template,
    ),
)

AnyRule = Rule[TemplateFacts] | Rule[FileFacts]
_TEMPLATE_SLUGS = frozenset(rule.slug for rule in RULES)
ALL_RULES: tuple[AnyRule, ...] = (*RULES, *(rule for rule in FILE_RULES if rule.slug not in _TEMPLATE_SLUGS))
"""Every rule there is, each once, those about templates first."""
