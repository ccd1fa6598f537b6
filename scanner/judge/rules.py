"""The table of the rules that turn facts into findings (`behaviours.md` section 4).

What a rule is stands in `rule`, when it holds in `conditions`, what a person may read about it here and, with examples,
in `docs/rules.md`, which is written from this table (`python -m tests.judge.write_docs`).
"""

from __future__ import annotations

from scanner.judge.conditions import (
    calls,
    contents,
    efforts,
    engines,
    files,
    flags,
    history,
    loading,
    roles,
)
from scanner.judge.rule import FileFacts, Match, Rule, TemplateFacts, VariantFacts
from scanner.judge.verdicts import EFFECTS
from scanner.results import Agreement, Finding, Severity

__all__ = [
    "ALL_RULES",
    "FILE_RULES",
    "RULES",
    "AnyRule",
    "FileFacts",
    "Match",
    "Rule",
    "TemplateFacts",
    "VariantFacts",
    "judge",
    "judge_file",
]

PROMPT_SHOWS = {
    "tools": "the name of a tool",
    "tool_calls": "the name and the argument of a tool call",
    "parallel_tool_calls": "both calls of a message with two of them",
    "system_role": "the text of a system message",
    "string_content": "a user's text, handed over as a string",
    "typed_content": "a user's text, handed over as a list of parts",
    "object_arguments": "key and value of an argument, handed over as an object",
    "preserve_reasoning": "the reasoning of an earlier answer",
    "reasoning_effort": "a difference between two reasoning efforts",
}
"""What has to be seen in a prompt for a capability to be there (`behaviours.md` section 1)."""


def _overclaims(capability: str) -> Rule[TemplateFacts]:
    """The rule that a flag is set and the prompt does not show it."""
    special = " Where every accepted word gives one output, `effort-inert` says so." if "effort" in capability else ""
    return Rule(
        f"overclaims-{capability}",
        Severity.WARNING,
        f"llama.cpp reports supports_{capability}, but the prompt does not show {PROMPT_SHOWS[capability]}.{special}",
        f"A field that is read and never printed sets the flag. Because of it llama.cpp {EFFECTS[capability][0]}; what "
        "was sent is lost without a warning.",
        "Author: print what is read, or do not read it. Serving: do not rely on the flag; try a request with capscan "
        "render.",
        flags.disagrees(capability, Agreement.OVERCLAIMS),
    )


def _underclaims(capability: str) -> Rule[TemplateFacts]:
    """The rule that a flag is not set and the prompt does show it."""
    return Rule(
        f"underclaims-{capability}",
        Severity.WARNING,
        f"llama.cpp does not report supports_{capability}, but the prompt shows {PROMPT_SHOWS[capability]}.",
        "The probe does not see a field that is read through get() or items(), and what fails in the probe may work in "
        f"a request. Because of it llama.cpp {EFFECTS[capability][1]}.",
        "Author: read the field directly (message.field), and let the probe's conversation pass. Serving: clients that "
        "trust the flag do without something that works.",
        flags.disagrees(capability, Agreement.UNDERCLAIMS),
    )


SERVER_DOES_NOT_START = (
    "server-does-not-start",
    Severity.ERROR,
    "llama-server would not start with it as a model's default template: it does not parse, a probe crashes the "
    "process, or the conversation fails that every server renders before it listens, one user message with thinking "
    "on, or its autoparser cannot read a call (see `calls-not-json`; what else it makes of the template is not known).",
    "The model cannot be served at all.",
    "Author: mend the template at the line shown. Serving: pass another one with --chat-template-file.",
)
"""One rule in two places: found with a template that fails, and with a file whose default does not parse."""

ERRORS: tuple[Rule[TemplateFacts], ...] = (
    Rule(
        "not-parseable",
        Severity.ERROR,
        "llama.cpp cannot lex or parse the template.",
        "As a model's default it keeps the server from starting; as its tool_use template it is ignored; others are "
        "never looked at.",
        "Author: rewrite the construct at the line shown; the dialect has no raw, with, do, include, ** or //. "
        "Serving: pass another template with --chat-template-file.",
        loading.not_parseable,
    ),
    Rule(*SERVER_DOES_NOT_START, loading.start_fails),
    Rule(
        "limit-exceeded",
        Severity.ERROR,
        "A probe used up a budget of Capscan's, so the template was not examined.",
        "llama.cpp has no budgets: it would run on, or run out of memory.",
        "Author: look for an endless loop, recursion or growing text. Serving: raise the budget only for a template "
        "you trust.",
        loading.limit_exceeded,
    ),
    Rule(
        "plain-chat-raises",
        Severity.ERROR,
        "A request of one plain user message fails, or one of user, assistant and user.",
        "No conversation can be held with the model.",
        "Author: mend the template at the line shown. Serving: pass another one with --chat-template-file.",
        loading.plain_chat_raises,
    ),
    Rule(
        "no-content-form",
        Severity.ERROR,
        "Neither string nor typed content counts as supported.",
        "llama.cpp warns and passes content on as it came, so it depends on the client what the template meets.",
        "Author: print message content, as a string or by walking its parts, and let the first probe pass. Serving: "
        "find out why the probe fails with capscan probe --trace typed_content.",
        flags.no_content_form,
    ),
)

ABOUT_FLAGS: tuple[Rule[TemplateFacts], ...] = (
    *map(_overclaims, PROMPT_SHOWS),
    *map(_underclaims, PROMPT_SHOWS),
    Rule(
        "effort-rejected",
        Severity.WARNING,
        'The effort probe of llama.cpp passes, since it only tries "low", and the template raises for a word that '
        "clients send.",
        "Clients read that efforts are supported, and their requests fail.",
        "Author: map words you do not know to the nearest you do. Serving: tell clients which words are accepted, or "
        "map them before the server.",
        efforts.effort_rejected,
    ),
    Rule(
        "effort-inert",
        Severity.WARNING,
        "llama.cpp reports supports_reasoning_effort, and every accepted word gives the same output.",
        "Clients let a person choose an effort that changes nothing.",
        "Author: print the effort, or do not read it. Serving: do not offer a choice of efforts.",
        efforts.effort_inert,
    ),
    Rule(
        "probe-threw",
        Severity.WARNING,
        "A flag is false only because the probe's render failed, not because the template does not read the field.",
        "The feature itself may work; clients that trust the flag do without it.",
        "Author: read the error; it is often the probe's short history or its ids that the template refuses. Serving: "
        "try a request of your own with capscan render.",
        flags.probe_threw,
    ),
    Rule(
        "flags-change-with-build",
        Severity.WARNING,
        "Another build of llama.cpp reports other flags for the same template (seen when a scan analyses several "
        "profiles).",
        "The same request becomes another prompt when the server is updated.",
        "Author: write the template so that every build reads the same fields. Serving: pin the build of your servers.",
        flags.flags_change_with_build,
    ),
)

ABOUT_ROLES: tuple[Rule[TemplateFacts], ...] = (
    Rule(
        "system-raises",
        Severity.WARNING,
        "The template fails at a leading system message.",
        "Where the flag system_role is off, llama.cpp puts the text before that of the next message, which other "
        "engines do not; where it is on, the request fails.",
        "Author: print the system message, or merge it yourself. Serving: do not send system messages to this model.",
        roles.system_raises,
    ),
    Rule(
        "late-system-raises",
        Severity.WARNING,
        "A system message after the first turn makes the request fail.",
        "No probe tries it. Clients that add instructions later, as agents do, get an error in the middle of a chat.",
        "Author: print system messages wherever they stand. Serving: have clients put all of it into the first "
        "message.",
        roles.late_system_raises,
    ),
    Rule(
        "late-system-dropped",
        Severity.WARNING,
        "A system message after the first turn is not in the prompt, and nothing says so.",
        "The model never sees the instruction.",
        "Author: print system messages wherever they stand, or raise. Serving: have clients put all of it into the "
        "first message.",
        roles.late_system_dropped,
    ),
    Rule(
        "second-system-dropped",
        Severity.WARNING,
        "Of two system messages at the start, one or both are not in the prompt, and nothing says so.",
        "Clients send several: one of their own, one of the user's.",
        "Author: print all of them, or raise. Serving: have clients join them to one.",
        roles.second_system_dropped,
    ),
    Rule(
        "roles-must-alternate",
        Severity.WARNING,
        "Two messages of one role in a row make the request fail.",
        "Clients that send a text in pieces, or repeat a request that was not answered, get an error.",
        "Author: join messages of one role, or print them one after the other. Serving: have clients join them.",
        roles.roles_must_alternate,
    ),
)

ABOUT_CALLS: tuple[Rule[TemplateFacts], ...] = (
    Rule(
        "calls-without-tools",
        Severity.WARNING,
        "The template renders tool calls but does not describe the tools.",
        "The model cannot know which tools there are; llama.cpp warns of a fallback at every request with tools.",
        "Author: list the tools. Serving: use a template that does, or describe them in the system message.",
        flags.calls_without_tools,
    ),
    Rule(
        "arguments-lost",
        Severity.WARNING,
        "The arguments of an earlier call, or nested ones, are not in the prompt.",
        "The model sees that it called, not with what. In llama.cpp {{ … }} prints an object as nothing, where Python "
        "prints a dict.",
        "Author: print arguments with |tojson, nested ones as well. Serving: do not use this template for agents.",
        calls.arguments_lost,
    ),
    Rule(
        "arguments-double-encoded",
        Severity.WARNING,
        "The arguments of a call are printed as JSON text inside of JSON text, with escaped quotation marks.",
        "The model learns from its own history to write arguments as a string, and tokens are wasted.",
        "Author: apply |tojson only to arguments that are no string; reading one of them (arguments.name) makes "
        "llama.cpp hand over an object. Serving: use another template for agents.",
        calls.arguments_double_encoded,
    ),
    Rule(
        "arguments-python-repr",
        Severity.WARNING,
        "Arguments of a call, or nested ones, are printed as Python prints them: None, True, 'key'.",
        "The model learns from its own history to write what no JSON parser takes.",
        "Author: print them with |tojson, lists and objects as well. Serving: use another template for agents.",
        calls.arguments_python_repr,
    ),
    Rule(
        "call-needs-null-content",
        Severity.WARNING,
        'A call is printed only when the content of its message is null; llama.cpp makes "" of null and of no content.',
        "Every earlier call is silently lost, with its flag.",
        "Author: test for the calls, not for the content: {% if message.tool_calls %}. Serving: use a template that "
        "does.",
        calls.call_needs_null_content,
    ),
    Rule(
        "calls-not-json",
        Severity.WARNING,
        "A call looks like a JSON object, with its name in double quotes, and does not parse as one when its arguments "
        "are an object.",
        "llama.cpp's autoparser tries just that before the server listens, also where arguments are handed over as "
        "text, and a server refuses to start where it fails: Unable to generate parser for this template.",
        "Author: print arguments with |tojson where they are no string, and close what is opened. Serving: pass "
        "another template with --chat-template-file.",
        calls.calls_not_json,
    ),
)

ABOUT_TEXTS: tuple[Rule[TemplateFacts], ...] = (
    Rule(
        "content-lost",
        Severity.WARNING,
        "A text of an ordinary conversation is not in the prompt: what one of the two said, the text beside a tool "
        "call, or the results of tools.",
        "The model continues a conversation of which it does not see all, and nothing says so.",
        "Author: print the content of every message, also of one with tool calls. Serving: have clients send such "
        "texts as messages of their own, or use another template.",
        contents.content_lost,
    ),
    Rule(
        "history-breaks",
        Severity.WARNING,
        "A conversation's next prompt does not begin with the one before. Not counted where a template that can keep "
        "reasoning breaks only for want of it: llama-server asks it to by default, and clients may send it back.",
        "A server keeps what it computed for a prompt and goes on from there. Behind the first byte that differs it "
        "computes everything again, at every such turn; models with recurrent layers may have to start from nothing.",
        "Author: keep earlier turns as they were sent, reasoning included. Serving: expect the time of the text behind "
        "the byte shown; keep turns with tools short.",
        history.history_breaks,
    ),
    Rule(
        "reference-differs",
        Severity.WARNING,
        "Standard conversations become another prompt in llama.cpp than in Python's Jinja2 as transformers sets it up, "
        "or fail in llama.cpp only.",
        "The model was trained and tested with the other prompt.",
        "Author: look at both with capscan render --engine both, and write what both engines read alike. Serving: "
        "judge the difference before you compare results.",
        engines.reference_differs,
    ),
)

WARNINGS: tuple[Rule[TemplateFacts], ...] = (
    Rule(
        "crashes-llama.cpp",
        Severity.WARNING,
        "The render reaches an operation that ends the whole llama.cpp process, such as a division by zero in "
        "divisibleby. Endless recursion does so, too; that is told as `limit-exceeded`: no budget knows it from deep.",
        "One request takes the server down, with all that it serves. Where a probe reaches it, the server does not "
        "even start (`server-does-not-start`).",
        "Author: guard the operation. Serving: do not serve it to anybody you do not trust.",
        loading.crashes_engine,
    ),
    Rule(
        "logged-start-fails",
        Severity.WARNING,
        "A conversation of system, user, assistant and user fails, which a llama-server that logs traces (-lv 4 and "
        "up) renders for its log before it listens.",
        "Such a server does not start; requests of this kind fail at any log level.",
        "Author: mend the template at the line shown. Serving: do not log traces.",
        loading.logged_start_fails,
    ),
    *ABOUT_FLAGS,
    *ABOUT_ROLES,
    *ABOUT_CALLS,
    *ABOUT_TEXTS,
)

NOTES: tuple[Rule[TemplateFacts], ...] = (
    Rule(
        "default-system",
        Severity.NOTE,
        "Without a system message the template adds words of its own before the first user message.",
        "The model is told something that no request said, such as a name or a knowledge cutoff.",
        "Author: leave it to who serves the model. Serving: send a system message of your own.",
        contents.default_system,
    ),
    Rule(
        "partly-examined",
        Severity.NOTE,
        "The flags are known, but a budget of Capscan's ran out for what is really true of the template.",
        "Nothing is known of what the finding names: neither that it is well nor that it is not.",
        "Author: look for loops that go on for long. Serving: try the requests that you need with `capscan render`.",
        loading.partly_examined,
    ),
    Rule(
        "clock-dependent",
        Severity.NOTE,
        "The template prints the date.",
        "The same request gives another prompt every day: nothing of it can be repeated exactly, and a prompt that a "
        "server has in its cache is of no use the day after.",
        "Author: leave the date to the request. Serving: nothing to do; set --clock where you compare.",
        contents.clock_dependent,
    ),
    Rule(
        "typed-join-differs",
        Severity.NOTE,
        "Two text parts of a message have another text between them in llama.cpp than in transformers.",
        "llama.cpp joins text parts by a newline before the template sees them, where the template takes strings.",
        "Author: nothing to do. Serving: send one text part, or a string.",
        contents.typed_join_differs,
    ),
    Rule(
        "outdated-gemma4",
        Severity.NOTE,
        "llama.cpp detects an old Gemma 4 template and applies compatibility workarounds.",
        "Tool turns are merged before the template sees them; the text beside a call is lost.",
        "Author: publish the current template. Serving: update to it.",
        engines.outdated_gemma4,
    ),
    Rule(
        "patched-by-llama.cpp",
        Severity.NOTE,
        "llama.cpp replaces a part of the template's text before parsing it.",
        "Prompts differ from those of other engines where that part would have held.",
        "Author: nothing to do. Serving: nothing to do.",
        engines.patched,
    ),
    Rule(
        "uses-python-internals",
        Severity.NOTE,
        "The template names dunder attributes, which reach into Python.",
        "llama.cpp has none of them. In Python they are how a template attacks its host.",
        "Author: remove them. Serving: find out where the template comes from before you render it with Python.",
        engines.python_internals,
    ),
    Rule(
        "unused-kwargs",
        Severity.NOTE,
        "The template reads variables that no field of a request sets.",
        "What they switch is never on unless a client sends chat_template_kwargs or the server is started with them.",
        "Author: document them. Serving: set them with --chat-template-kwargs where you want what they do.",
        engines.unused_kwargs,
    ),
)

RULES: tuple[Rule[TemplateFacts], ...] = (*ERRORS, *WARNINGS, *NOTES)
"""The rules about templates, worst first."""

FILE_RULES: tuple[Rule[FileFacts], ...] = (
    Rule(*SERVER_DOES_NOT_START, files.default_does_not_parse),
    Rule(
        "incomplete-split",
        Severity.ERROR,
        "The model is split into several files, and one of them is missing, or is not what its name says "
        "(`NAME-00001-of-00003.gguf` and so on; llama.cpp finds them by these names, and holds `split.no` and "
        "`split.tensors.count` against them).",
        "The model cannot be loaded, by llama-server or anything else that is built on llama.cpp.",
        "Author: publish all files of one split under the names that llama-gguf-split gave them. Serving: fetch what "
        "is missing, or what was fetched in part, again, and keep the names.",
        files.incomplete_split,
    ),
    Rule(
        "tool-use-ignored",
        Severity.WARNING,
        "The model's tool_use template does not parse.",
        "llama.cpp says so in its log only, and uses the default template for requests with tools too.",
        "Author: mend the tool_use template. Serving: pass a template that takes tools with --chat-template-file.",
        files.tool_use_ignored,
    ),
    Rule(
        "variants-disagree",
        Severity.WARNING,
        "The default and tool_use templates have different flags.",
        "/props shows those of tool_use only, while requests without tools render with the default.",
        "Author: let both take the same. Serving: tell clients that look at /props.",
        files.variants_disagree,
    ),
    Rule(
        "no-template",
        Severity.NOTE,
        "The model carries no chat template, or one that llama.cpp counts as none.",
        "llama.cpp falls back to ChatML, whatever the model was trained with.",
        "Author: publish the template. Serving: pass one with --chat-template-file, or accept llama.cpp's own "
        "(capscan show names it).",
        files.no_template,
    ),
    Rule(
        "double-bos",
        Severity.NOTE,
        "The default template prints the BOS token, and the file's tokenizer adds one as well.",
        "llama.cpp cuts the template's; engines that do not give the model two.",
        "Author: set add_bos_token to false, or do not print it. Serving: nothing to do with llama.cpp.",
        files.double_bos,
    ),
)

AnyRule = Rule[TemplateFacts] | Rule[FileFacts]
_TEMPLATE_SLUGS = frozenset(rule.slug for rule in RULES)
ALL_RULES: tuple[AnyRule, ...] = (*RULES, *(rule for rule in FILE_RULES if rule.slug not in _TEMPLATE_SLUGS))
"""Every rule there is, each once, those about templates first."""


def judge(facts: TemplateFacts) -> tuple[Finding, ...]:
    """All findings about a template, in the order of the rules."""
    return tuple(finding for rule in RULES for finding in rule.findings(facts))


def judge_file(facts: FileFacts) -> tuple[Finding, ...]:
    """All findings about a model file."""
    return tuple(finding for rule in FILE_RULES for finding in rule.findings(facts))
