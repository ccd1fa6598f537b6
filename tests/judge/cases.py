"""A case in which each rule holds, and one, as near to it as may be, in which it does not.

They are small templates of our own and go through the whole analysis; those of the first kind are the examples of
`docs/rules.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scanner.judge import FileFacts, VariantFacts, judge_file
from scanner.pipeline import analyse_profiles, analyse_template
from scanner.probe.profiles import CURRENT, PROFILES
from scanner.results import CAPABILITIES, NOT_LOADED, ChatTemplate, Finding, Outcome, SpecialToken, TemplateResult

NOW = 1_796_000_000.0
"""The clock of all cases: 2026-11-30."""


@dataclass(frozen=True, slots=True)
class Case:
    """A template, or a file that holds `default` and perhaps `tool_use`.

    `default` None: the file holds no template. `as_file`: the findings are those about the file. `profiles`: analysed
    under all of them. `bos`: the file's token. `notes`: those of its extraction.
    """

    default: str | None
    tool_use: str | None = None
    as_file: bool = False
    profiles: tuple[str, ...] = (CURRENT.name,)
    bos: SpecialToken = field(default_factory=SpecialToken)
    notes: tuple[str, ...] = ()

    def findings(self) -> tuple[Finding, ...]:
        """What the rules say of it."""
        if self.as_file:
            return self._of_file()
        source = (self.default or "").encode()
        return analyse_profiles(source, self.profiles, now=NOW)[0].findings

    def _of_file(self) -> tuple[Finding, ...]:
        sources = {"default": self.default, "tool_use": self.tool_use}
        variants = [_variant(name, source) for name, source in sources.items() if source is not None]
        outcome = Outcome.ANALYSED if variants else Outcome.NO_TEMPLATE
        return judge_file(FileFacts(outcome, variants, self.bos, self.notes))

    def rules(self) -> set[str]:
        """The slugs of the findings."""
        return {finding.rule for finding in self.findings()}


def _variant(name: str, source: str) -> VariantFacts:
    result: TemplateResult = analyse_template(source.encode(), now=NOW)
    bos = next((one for one in result.behaviours if one.key == "bos"), None)
    return VariantFacts(ChatTemplate(name, source.encode(), ""), result.outcome, result.capabilities, bos)


@dataclass(frozen=True, slots=True)
class Pair:
    """Where a rule holds, and where it does not."""

    holds: Case
    silent: Case


def pair(holds: str, silent: str) -> Pair:
    """Two templates."""
    return Pair(Case(holds), Case(silent))


PLAIN = """\
{%- for m in messages %}
<|{{ m.role }}|>{{ m.content }}
{%- endfor %}
{%- if add_generation_prompt %}
<|assistant|>
{%- endif %}
"""
"""Prints every message and reads nothing else. No rule holds of it."""
TOOLS = "{%- if tools %}<tools>{% for t in tools %}{{ t.function.name }} {% endfor %}</tools>{% endif %}"


def with_calls(call: str, before: str = TOOLS) -> str:
    """A template that prints the calls of a message behind its content; `c` is a call's function."""
    return (
        before
        + """
{%- for m in messages %}
<|{{ m.role }}|>{{ m.content }}
{%- for call in m.tool_calls or [] %}{% set c = call.function %}
"""
        + call
        + """
{%- endfor %}
{%- endfor %}
{%- if add_generation_prompt %}
<|assistant|>
{%- endif %}
"""
    )


AS_JSON = '{"name": "{{ c.name }}", "arguments": {{ c.arguments if c.arguments is string else c.arguments|tojson }}}'
CALLS = with_calls(AS_JSON)
"""Takes tools and calls as it should. No rule holds of it."""
BY_KEY = "{% set known = c.arguments.arg %}"
"""Reads one argument by its name, so that llama.cpp hands over an object."""


def only_probed(text: str) -> str:
    """Text that the probes see and a request without tools does not."""
    return "{% if tools is defined %}" + text + "{% endif %}"


def raises_in_a_probe(test: str) -> str:
    """Raises where a test holds, in the probes only, which have no BOS."""
    return "{%- if not bos_token and (" + test + ") %}{{ raise_exception('Where is the BOS?') }}{% endif %}"


OVERCLAIMS: Mapping[str, Pair] = {
    "tools": pair("{%- if tools and tools[0].function.name %}There are tools.{% endif %}" + PLAIN, TOOLS + PLAIN),
    "tool_calls": pair(
        TOOLS
        + "{%- for m in messages %}{% if m.tool_calls %}(called){% else %}<{{ m.content }}>{% endif %}{% endfor %}",
        CALLS,
    ),
    "parallel_tool_calls": pair(
        with_calls("{%- if loop.first %}" + AS_JSON + "{% endif %}").replace(
            "c = call.function", "c = call['function']"
        ),
        CALLS,
    ),
    "system_role": pair(
        "{%- for m in messages %}\n{%- if m.role == 'system' %}{% set ignored = m.content %}"
        "{%- else %}<{{ m.content }}>{% endif %}\n{%- endfor %}",
        PLAIN,
    ),
    "string_content": pair(
        "{%- for m in messages %}{% if bos_token %}{% for part in m.content %}{{ part.text }}{% endfor %}"
        "{% else %}{{ m.content }}{% endif %}{% endfor %}",
        PLAIN,
    ),
    "typed_content": pair(
        "{%- for m in messages %}{% set first = m.content[0] %}<{{ m.content }}>{% endfor %}",
        "{%- for m in messages %}{% for part in m.content %}<{{ part.text }}>{% endfor %}{% endfor %}",
    ),
    "object_arguments": pair(with_calls(BY_KEY + "{{ c.name }}({{ c.arguments|string }})"), CALLS),
    "preserve_reasoning": pair(
        PLAIN.replace("{{ m.content }}", only_probed("{{ m.reasoning_content }}") + "{{ m.content }}"),
        PLAIN.replace("{{ m.content }}", "{{ m.reasoning_content }}{{ m.content }}"),
    ),
    "reasoning_effort": pair(
        "{%- set effort = reasoning_effort|upper %}"
        "{%- if tools is not defined %}{{ raise_exception('Not without tools.') }}{% endif %}" + PLAIN,
        "Effort: {{ reasoning_effort }}" + PLAIN,
    ),
}
UNDERCLAIMS: Mapping[str, Pair] = {
    "tools": pair("{%- for t in tools or [] %}{{ t.function.get('name') }} {% endfor %}" + PLAIN, TOOLS + PLAIN),
    "tool_calls": pair(with_calls(raises_in_a_probe("true") + AS_JSON), CALLS),
    "parallel_tool_calls": pair(with_calls(raises_in_a_probe("m.tool_calls|length > 1") + AS_JSON), CALLS),
    "system_role": pair(PLAIN.replace("m.content", "m.get('content')"), PLAIN),
    "string_content": pair(
        PLAIN.replace("{{ m.content }}", only_probed("{{ raise_exception('No.') }}") + "{{ m.content }}"), PLAIN
    ),
    "typed_content": pair(
        "{%- for m in messages %}<{% if m.content is string or not bos_token %}{{ m.content }}{% else %}"
        "{% for part in m.content %}{{ part.text }}{% endfor %}{% endif %}>{% endfor %}",
        PLAIN,
    ),
    "object_arguments": pair(with_calls(raises_in_a_probe("c.arguments is mapping") + AS_JSON), CALLS),
    "preserve_reasoning": pair(
        PLAIN.replace("{{ m.content }}", "{% if bos_token %}{{ m.reasoning_content }}{% endif %}{{ m.content }}"), PLAIN
    ),
    "reasoning_effort": pair(
        "{%- if bos_token %}Effort: {{ reasoning_effort }}{% endif %}" + PLAIN, "Effort: {{ reasoning_effort }}" + PLAIN
    ),
}

ALTERNATES = (
    "{%- for m in messages %}{% if m.role != 'system' and (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Roles must alternate.') }}{% endif %}{% endfor %}"
)
FIRST_ONLY = "{%- if m.role == 'system' and not loop.first %}{{ raise_exception('System first.') }}{% endif %}"
ENDLESS = "{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}"
THINKS = (
    "{%- for m in messages %}<|{{ m.role }}|>{% if m.reasoning_content and loop.last %}"
    "<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}{% endfor %}"
    "{%- if add_generation_prompt %}<|assistant|><think>\n{% endif %}"
)

OLD_LINE = (
    "{%- for message in messages %}\n"
    '{%- if "<|channel|>analysis<|message|>" in message.content '
    'or "<|channel|>final<|message|>" in message.content %}\n'
    "{%- endif %}\n{%- endfor %}\n"
)

TEMPLATES: Mapping[str, Pair] = {
    "not-parseable": pair("{% raw %}x{% endraw %}" + PLAIN, PLAIN),
    "server-does-not-start": pair(
        PLAIN + "{% if messages[0].content == 'test' %}{{ raise_exception('No tests!') }}{% endif %}",
        PLAIN + "{% if messages[0].content == 'exam' %}{{ raise_exception('No exams!') }}{% endif %}",
    ),
    "partly-examined": pair(
        "{% for i in range(30000) %}{% set x = i %}{% endfor %}" + PLAIN,
        "{% for i in range(300) %}{% set x = i %}{% endfor %}" + PLAIN,
    ),
    "limit-exceeded": pair(ENDLESS + PLAIN, ENDLESS.replace("9999", "99") + PLAIN),
    "plain-chat-raises": pair(
        PLAIN + "{% if not tools %}{{ raise_exception('Only with tools.') }}{% endif %}",
        PLAIN + "{% if tools %}{{ raise_exception('Only without tools.') }}{% endif %}",
    ),
    "no-content-form": pair(
        PLAIN + "{% if messages|length == 1 %}{{ raise_exception('Too short.') }}{% endif %}",
        PLAIN + "{% if messages|length > 99 %}{{ raise_exception('Too long.') }}{% endif %}",
    ),
    "crashes-llama.cpp": pair(
        "{%- if messages|length is divisibleby(messages|length - 1) %}{% endif %}" + PLAIN,
        "{%- if messages|length is divisibleby(messages|length + 1) %}{% endif %}" + PLAIN,
    ),
    "logged-start-fails": pair(
        PLAIN + "{% if messages[2].content == 'Hi there' %}{{ raise_exception('No small talk!') }}{% endif %}", PLAIN
    ),
    **{f"overclaims-{capability}": OVERCLAIMS[capability] for capability in CAPABILITIES},
    **{f"underclaims-{capability}": UNDERCLAIMS[capability] for capability in CAPABILITIES},
    "effort-rejected": pair(
        "{%- if reasoning_effort == 'high' %}{{ raise_exception('Unexpected reasoning effort high.') }}{% endif %}"
        "Effort: {{ reasoning_effort }}" + PLAIN,
        "{%- if reasoning_effort == 'none' %}{{ raise_exception('Unexpected reasoning effort none.') }}{% endif %}"
        "Effort: {{ reasoning_effort }}" + PLAIN,
    ),
    "effort-inert": pair(
        "{%- if reasoning_effort|length > 0 %}{% set effort = 1 %}{% endif %}" + PLAIN, "{{ reasoning_effort }}" + PLAIN
    ),
    "probe-threw": pair(
        CALLS + "{% for m in messages if m.tool_calls %}{{ raise_exception('No calls, please.') }}{% endfor %}", CALLS
    ),
    "flags-change-with-build": Pair(
        Case(
            "{%- for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}"
            "{% for part in m.content %}{{ part.text }}{% endfor %}{% endif %}{% endfor %}",
            profiles=tuple(PROFILES),
        ),
        Case(PLAIN, profiles=tuple(PROFILES)),
    ),
    "system-raises": pair(
        "{%- if messages[0].role == 'system' %}{{ raise_exception('No system messages.') }}{% endif %}" + PLAIN, PLAIN
    ),
    "late-system-raises": pair(PLAIN.replace("<|{{ m.role", FIRST_ONLY + "<|{{ m.role"), PLAIN),
    "late-system-dropped": pair(
        "{%- for m in messages %}{% if m.role != 'system' or loop.first %}<|{{ m.role }}|>{{ m.content }}{% endif %}"
        "{%- endfor %}",
        "{%- for m in messages %}{% if m.role != 'nobody' or loop.first %}<|{{ m.role }}|>{{ m.content }}{% endif %}"
        "{%- endfor %}",
    ),
    "second-system-dropped": pair(
        "{%- set said = namespace(system='') %}{% for m in messages if m.role == 'system' %}"
        "{% set said.system = m.content %}{% endfor %}{{ said.system }}"
        "{%- for m in messages if m.role != 'system' %}<|{{ m.role }}|>{{ m.content }}{% endfor %}",
        "{%- for m in messages if m.role == 'system' %}{{ m.content }}{% endfor %}"
        "{%- for m in messages if m.role != 'system' %}<|{{ m.role }}|>{{ m.content }}{% endfor %}",
    ),
    "roles-must-alternate": pair(ALTERNATES + PLAIN, PLAIN),
    "calls-without-tools": pair(with_calls(AS_JSON, before=""), CALLS),
    "arguments-lost": pair(
        with_calls(BY_KEY + "{{ c.name }}: {{ c.arguments }}"),
        with_calls(BY_KEY + "{{ c.name }}: {{ c.arguments|tojson }}"),
    ),
    "arguments-double-encoded": pair(
        with_calls(
            '{"name": "{{ c.name }}", "arguments": {{ c.arguments|tojson if c.arguments is string else "{}" }}}'
        ),
        with_calls('{"name": "{{ c.name }}", "arguments": {{ c.arguments|tojson }}}'),
    ),
    "arguments-python-repr": pair(
        with_calls(BY_KEY + "<call name={{ c.name }}>{{ c.arguments|string }}</call>"),
        with_calls(BY_KEY + "<call name={{ c.name }}>{{ c.arguments|tojson }}</call>"),
    ),
    "call-needs-null-content": pair(
        CALLS.replace("in m.tool_calls or []", "in (m.tool_calls or [] if m.content is none else [])"), CALLS
    ),
    "calls-not-json": pair(
        with_calls('{"name": "{{ c.name }}", "arguments": {{ c.arguments|string }}}'),
        with_calls("{'name': '{{ c.name }}', 'arguments': {{ c.arguments|string }}}"),
    ),
    "content-lost": pair(
        CALLS.replace("{{ m.content }}", "{% if not m.tool_calls %}{{ m.content }}{% endif %}"), CALLS
    ),
    "history-breaks": pair(THINKS, THINKS.replace("<think>\n", "")),
    "reference-differs": pair("{{- messages[0] }}" + PLAIN, "{{- messages|length == 0 }}" + PLAIN),
    "default-system": pair(
        "{%- if messages[0].role != 'system' %}<|system|>You are a llama.{% endif %}" + PLAIN, PLAIN
    ),
    "clock-dependent": pair(
        "{%- if strftime_now is defined %}Today is {{ strftime_now('%Y-%m-%d') }}.{% endif %}" + PLAIN,
        "{%- if strftime_now is defined %}There is a clock.{% endif %}" + PLAIN,
    ),
    "typed-join-differs": pair(
        "{%- for m in messages %}<{% if m.content is string or not bos_token %}{{ m.content }}{% else %}"
        "{% for part in m.content %}{{ part.text }}{% endfor %}{% endif %}>{% endfor %}",
        PLAIN,
    ),
    "outdated-gemma4": pair(
        "{{- '<|tool_call>call:' if tools }}" + PLAIN,
        "{#- OpenAI Chat Completions: #}{{- '<|tool_call>call:' if tools }}" + PLAIN,
    ),
    "patched-by-llama.cpp": pair(OLD_LINE + PLAIN, OLD_LINE.replace("message.content", "message['content']") + PLAIN),
    "uses-python-internals": pair(
        "{{- messages.__class__ }}" + PLAIN, "{#- messages.__class__ #}__init__{{- messages.class }}" + PLAIN
    ),
    "unused-kwargs": pair(
        "{%- if custom_tools is defined %}{{ custom_tools }}{% endif %}" + PLAIN,
        "{%- set custom_tools = 1 %}{% if custom_tools is defined %}{{ custom_tools }}{% endif %}" + PLAIN,
    ),
}
"""For every rule about templates."""

ADDED = SpecialToken(1, "<s>", added=True)
BROKEN = "{% raw %}"
FILES: Mapping[str, Pair] = {
    "server-does-not-start": Pair(Case(BROKEN, as_file=True), Case(PLAIN, tool_use=BROKEN, as_file=True)),
    "incomplete-split": Pair(
        Case(PLAIN, as_file=True, notes=(f"{NOT_LOADED}2 of 3 shards are missing: 00002, 00003",)),
        Case(PLAIN, as_file=True, notes=("a shard 00004 of 3 is there, which llama.cpp does not look at",)),
    ),
    "tool-use-ignored": Pair(Case(PLAIN, tool_use=BROKEN, as_file=True), Case(PLAIN, tool_use=CALLS, as_file=True)),
    "variants-disagree": Pair(Case(PLAIN, tool_use=CALLS, as_file=True), Case(PLAIN, tool_use=PLAIN, as_file=True)),
    "no-template": Pair(Case(None, as_file=True), Case(PLAIN, as_file=True)),
    "double-bos": Pair(
        Case("{{- bos_token }}" + PLAIN, as_file=True, bos=ADDED),
        Case("{{- bos_token }}" + PLAIN, as_file=True, bos=SpecialToken(1, "<s>", added=False)),
    ),
}
"""For every rule about files."""
