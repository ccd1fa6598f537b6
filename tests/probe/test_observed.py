"""The observed verdicts: what a template prints, whatever it claims by what it reads."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from functools import cache

import pytest

from scanner.dialect import Limits, Template
from scanner.probe.capabilities import probe
from scanner.probe.efforts import try_efforts
from scanner.probe.markers import Sight, marker, sight
from scanner.probe.observed import NO_EFFORT, REASON_LENGTH, agreement_of, observe, observe_efforts
from scanner.probe.profiles import PROFILES
from scanner.results import CAPABILITIES, Agreement, Capabilities, Effort, EffortOutcome, Observation
from tests.shared_data import shared_path

NOW = 86_400.0

STRINGS_ONLY = Capabilities(
    tools=False,
    tool_calls=False,
    parallel_tool_calls=False,
    system_role=False,
    string_content=True,
    typed_content=False,
    object_arguments=False,
    preserve_reasoning=False,
    reasoning_effort=False,
)
OBJECTS = replace(STRINGS_ONLY, object_arguments=True)
PARTS_ONLY = replace(STRINGS_ONLY, string_content=False, typed_content=True)

CHATML = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
JOINED = "{% for m in messages %}[{{ m.role }}]{{ '' + m.content }}{% endfor %}"
WALKS = (
    "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}"
    "{% for part in m.content %}{{ part.text if part.type == 'text' }}{% endfor %}{% endif %}{% endfor %}"
)
PARTS = "{% for m in messages %}{% for part in m.content %}{{ part.text }}{% endfor %}{% endfor %}"
CALLS = "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls %}BODY{% endfor %}{% endfor %}"
ALTERNATES = (
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}{{ m.content }}{% endfor %}"
)


def calls(body: str) -> str:
    """A template that prints each call in this way."""
    return CALLS.replace("BODY", body)


XML_CALL = calls(
    "<function={{ c.function.name }}>{% for k, v in c.function.arguments.items() %}"
    "<parameter={{ k }}>{{ v }}</parameter>{% endfor %}</function>"
)
PYTHONIC_CALL = calls(
    "{{ c.function.name }}({% for k, v in c.function.arguments.items() %}{{ k }}='{{ v }}'{% endfor %})"
)
JSON_CALL = calls("{{ c.function.name }}{{ c.function.arguments | tojson }}")
REPR_CALL = calls("{{ c.function.name }}{{ c.function.arguments | string }}")
TEXT_CALL = calls("{{ c.function.name ~ c.function.arguments if c.function.arguments is string }}")
FIRST_CALL_ONLY = (
    "{% for m in messages %}{% if m.tool_calls %}{{ m.tool_calls[0].function | tojson }}{% endif %}{% endfor %}"
)
NULL_CALL = "{% for m in messages %}{% if m.content is none %}{{ m.tool_calls | tojson }}{% endif %}{% endfor %}"
TOOL_LIST = "{% if tools %}{{ tools | tojson }}{% endif %}" + CHATML


def look(source: str, claims: Capabilities = STRINGS_ONLY, limits: Limits | None = None) -> dict[str, Observation]:
    found = observe(Template(source), claims, (), now=NOW, limits=limits)
    return {observation.capability: observation for observation in found}


def test_every_capability_has_a_verdict_in_the_order_of_the_capabilities() -> None:
    found = observe(Template(CHATML), STRINGS_ONLY, (), now=NOW)
    assert tuple(observation.capability for observation in found) == CAPABILITIES
    for observation in found[:-1]:
        assert observation.run is not None
        assert (observation.run.name, observation.run.reads) == (observation.capability, ())
        assert observation.run.duration > 0


@pytest.mark.parametrize(
    ("capability", "source", "claims", "verdict", "reason"),
    [
        ("string_content", CHATML, STRINGS_ONLY, True, "printed"),
        ("string_content", "{{ messages | length }}", STRINGS_ONLY, False, "absent"),
        ("string_content", "{{ messages[0].content | lower }}", STRINGS_ONLY, True, "printed"),
        ("string_content", "{{ messages[0].content | title }}", STRINGS_ONLY, True, "printed"),
        ("string_content", r"{{ messages[0].content | replace('_', '\\_') }}", STRINGS_ONLY, True, "printed"),
        ("string_content", "{{ messages | tojson }}", STRINGS_ONLY, True, "printed"),
        ("string_content", "{{ [{'text': messages[0].content}] | tojson }}", STRINGS_ONLY, False, "dumped"),
        ("string_content", PARTS, PARTS_ONLY, False, "raised: "),
        ("typed_content", WALKS, STRINGS_ONLY, True, "printed"),
        ("typed_content", PARTS, PARTS_ONLY, True, "printed"),
        ("typed_content", CHATML, STRINGS_ONLY, False, "absent"),
        ("typed_content", JOINED, STRINGS_ONLY, False, "dumped"),
        ("typed_content", "{{ messages[0].content | tojson }}", STRINGS_ONLY, False, "dumped"),
        ("typed_content", "{{ messages[0].content | tojson | tojson }}", STRINGS_ONLY, False, "dumped"),
        ("typed_content", "{{ messages[0].content | string }} {{ messages[0].content[0].text }}",
         STRINGS_ONLY, True, "printed"),
        ("typed_content", "{{ messages[0].content.strip() }}", STRINGS_ONLY, False, "raised: "),
        ("system_role", CHATML, STRINGS_ONLY, True, "printed"),
        ("system_role", "{{ messages[0].content }}", STRINGS_ONLY, True, "printed"),
        ("system_role", "{{ '' if messages[0].content }}{{ messages[-1].content }}", STRINGS_ONLY, False, "absent"),
        ("system_role", ALTERNATES, STRINGS_ONLY, False, "raised: Jinja Exception: roles must alternate"),
        ("system_role", "{{ messages[0].content | string }}", PARTS_ONLY, False, "dumped"),
        ("system_role", "{{ messages[0].content[0].text }}", PARTS_ONLY, True, "printed"),
        ("tools", TOOL_LIST, STRINGS_ONLY, True, "printed"),
        ("tools", "{% for t in tools %}{{ t['function']['name'] | upper }}{% endfor %}", STRINGS_ONLY, True, "printed"),
        ("tools", "{% for t in tools %}{{ t.function.description }}{% endfor %}", STRINGS_ONLY, False, "absent"),
        ("tools", CHATML, STRINGS_ONLY, False, "absent"),
        ("tools", "{% if tools %}{{ raise_exception('no tools') }}{% endif %}", STRINGS_ONLY, False, "raised: "),
        ("tool_calls", JSON_CALL, OBJECTS, True, "printed"),
        ("tool_calls", REPR_CALL, OBJECTS, True, "printed"),
        ("tool_calls", TEXT_CALL, STRINGS_ONLY, True, "printed"),
        ("tool_calls", TEXT_CALL, OBJECTS, False, "absent"),
        ("tool_calls", calls("{{ c.function.name }}"), OBJECTS, False, "absent"),
        ("tool_calls", calls("{{ c.function.arguments | tojson }}"), OBJECTS, False, "absent"),
        ("tool_calls", TOOL_LIST, OBJECTS, False, "absent"),
        ("tool_calls", NULL_CALL, OBJECTS, False, "absent"),
        ("tool_calls", ALTERNATES, OBJECTS, False, "raised: Jinja Exception: roles must alternate"),
        ("tool_calls", PARTS + "{{ messages[1].tool_calls | tojson if messages | length > 1 }}",
         PARTS_ONLY, True, "printed"),
        ("parallel_tool_calls", JSON_CALL, OBJECTS, True, "printed"),
        ("parallel_tool_calls", FIRST_CALL_ONLY, OBJECTS, False, "absent"),
        ("object_arguments", JSON_CALL, OBJECTS, True, "printed"),
        ("object_arguments", JSON_CALL, STRINGS_ONLY, True, "printed"),
        ("object_arguments", XML_CALL, OBJECTS, True, "printed"),
        ("object_arguments", PYTHONIC_CALL, OBJECTS, True, "printed"),
        ("object_arguments", REPR_CALL, OBJECTS, False, "python repr"),
        ("object_arguments", TEXT_CALL, STRINGS_ONLY, False, "absent"),
        ("object_arguments", calls("{{ c.function.arguments.values() | list }}"), OBJECTS, False, "absent"),
        ("object_arguments", calls("{{ c.function.arguments.strip() }}"), STRINGS_ONLY, False, "raised: "),
        ("preserve_reasoning", "{{ messages[1].reasoning_content }}", STRINGS_ONLY, True, "printed"),
        ("preserve_reasoning", "{{ messages[3].reasoning_content }}", STRINGS_ONLY, False, "absent"),
        ("preserve_reasoning", "{{ messages[1].reasoning_content if preserve_thinking and not clear_thinking }}",
         STRINGS_ONLY, True, "printed"),
        ("preserve_reasoning", "{{ messages[1].reasoning_content if clear_thinking }}", STRINGS_ONLY, False, "absent"),
        ("preserve_reasoning", CHATML, STRINGS_ONLY, False, "absent"),
    ],
)  # fmt: skip
def test_verdict(capability: str, source: str, claims: Capabilities, verdict: bool, reason: str) -> None:
    found = look(source, claims)[capability]
    assert found.verdict is verdict
    assert found.reason == reason or (reason.endswith(": ") and found.reason.startswith(reason))
    assert found.run is not None
    assert found.run.ok is not found.reason.startswith("raised")


def test_a_marker_counts_only_where_it_stands_by_itself() -> None:
    text = marker("FIRST_USER")
    for dump in ("{'type': 'text', 'text': '", '{"type":"text","text":"', r"{\"text\": \"", "&#39;text&#39;: &#39;"):
        assert sight(text, dump + text) is Sight.DUMPED, dump
        assert sight(text, f"{dump}{text}' {text}") is Sight.PRINTED
    assert sight(text, f"'{text}': 1", as_key=True) is Sight.PYTHON_KEY
    assert sight(text, f"'{text}': 1") is Sight.PRINTED
    for key in (f'"{text}": 1', f"f({text}='v')", f"<{text}>", f"'{text}'"):
        assert sight(text, key, as_key=True) is Sight.PRINTED, key
    for changed in (text.lower(), text.replace("_", " "), text.replace("_", r"\_"), text.title()):
        assert sight(text, f"x{changed}y") is Sight.PRINTED, changed
    assert sight(text, text[:-1]) is Sight.ABSENT


def test_no_marker_begins_another_and_each_text_of_a_request_is_one() -> None:
    found = look(JSON_CALL, OBJECTS)
    for observation in found.values():
        if observation.run is not None:
            texts = re.findall(r"CAPSCAN_\w+", str(observation.run.variables["messages"]))
            assert len(texts) == len(set(texts))
    run = found["parallel_tool_calls"].run
    assert run is not None
    markers = re.findall(r"CAPSCAN_\w+", str(run.variables))
    assert not [(a, b) for a in markers for b in markers if a != b and b.startswith(a)]
    tools = re.findall(r"CAPSCAN_\w+", str(run.variables["tools"]))
    assert not set(tools) & set(re.findall(r"CAPSCAN_\w+", str(run.variables["messages"])))


def test_variables_are_those_of_a_request() -> None:
    source = (
        "{{ bos_token }}{{ eos_token }}{{ tools is defined }}{{ enable_thinking }}{{ add_generation_prompt }}"
        "{{ date_string }}|{{ datetime }}|{{ strftime_now('%Y') }}|{{ preserve_thinking is defined }}"
    )
    found = look(source)
    run, with_tools = found["string_content"].run, found["tools"].run
    assert run is not None
    assert with_tools is not None
    assert re.fullmatch(r"<s></s>FalseTrueTrue0[12] Jan 1970\|Jan 0[12] 1970\|1970\|False", run.output)
    assert "True" in with_tools.output.removeprefix("<s></s>")[:4]
    assert not any(part.is_input for part in run.parts if "<s>" in part.text)
    assert "tools" not in run.variables
    assert (run.variables["bos_token"], run.variables["eos_token"]) == ("<s>", "</s>")


def test_contents_take_the_claimed_form_and_calls_have_none() -> None:
    messages = {}
    for claims in (STRINGS_ONLY, PARTS_ONLY):
        run = look("x", claims)["tool_calls"].run
        assert run is not None
        messages[claims.typed_content] = run.variables["messages"]
    as_text, as_parts = messages[False], messages[True]
    assert isinstance(as_text, list)
    assert isinstance(as_parts, list)
    assert [message["content"] for message in as_text][1] == ""
    assert [part["text"] for message in as_parts for part in message["content"]] == [m["content"] for m in as_text]
    assert [message["role"] for message in as_text] == ["user", "assistant", "tool", "assistant", "user"]
    assert as_text[1]["tool_calls"][0]["id"] == as_text[2]["tool_call_id"] == "call00001"
    assert as_text[1]["tool_calls"][0]["function"]["arguments"] == '{"CAPSCAN_FIRST_KEY": "CAPSCAN_FIRST_VALUE"}'


def test_the_content_capabilities_have_forms_of_their_own() -> None:
    found = look(WALKS, PARTS_ONLY)
    for capability in ("string_content", "typed_content"):
        assert found[capability].verdict is True


def test_a_budget_says_nothing() -> None:
    slow = "{% if tools %}{% for a in range(9999) %}x{% endfor %}{% endif %}" + CHATML
    found = look(slow, limits=Limits(steps=5000))
    assert (found["string_content"].verdict, found["tools"].verdict) == (True, None)
    assert found["tools"].reason == "limit: more than 5000 steps"
    assert (found["tools"].agreement, found["string_content"].agreement) == (None, Agreement.AGREES)


def test_a_reason_repeats_only_so_much_of_a_message() -> None:
    found = look("{{ raise_exception('" + "n" * 999 + "') }}")["tools"]
    assert len(found.reason) == len("raised: ") + REASON_LENGTH
    assert found.run is not None
    assert found.run.error is not None
    assert len(found.run.error.message) > 999


@pytest.mark.parametrize(
    ("claimed", "observed", "expected"),
    [
        (True, True, Agreement.AGREES),
        (False, False, Agreement.AGREES),
        (True, False, Agreement.OVERCLAIMS),
        (False, True, Agreement.UNDERCLAIMS),
        (None, True, None),
        (True, None, None),
    ],
)
def test_agreement(claimed: bool | None, observed: bool | None, expected: Agreement | None) -> None:
    assert agreement_of(claimed, observed) is expected


def claims_and_agreement(source: str, capability: str, profile: str = "b11549") -> tuple[bool | None, Agreement | None]:
    template = Template(source)
    capabilities, _ = probe(template, PROFILES[profile], now=NOW)
    trial = try_efforts(template, capabilities, now=NOW)
    found = observe(template, capabilities, trial.efforts, effort_run=trial.run, now=NOW)
    agreement = {observation.capability: observation.agreement for observation in found}[capability]
    claim: bool | None = getattr(capabilities, capability)
    return claim, agreement


def test_a_field_that_is_read_and_not_printed_is_overclaimed() -> None:
    reads = "{% if messages[0].content %}{% endif %}"
    assert claims_and_agreement(reads, "system_role") == (True, Agreement.OVERCLAIMS)
    assert claims_and_agreement(reads, "string_content") == (True, Agreement.OVERCLAIMS)
    effort = CHATML + "{% if reasoning_effort == 'low' %}{% endif %}"
    assert claims_and_agreement(effort, "reasoning_effort") == (True, Agreement.OVERCLAIMS)


def test_a_field_that_is_printed_and_not_read_by_its_name_is_underclaimed() -> None:
    by_get = "{% for m in messages %}{{ m.get('content') }}{% endfor %}"
    assert claims_and_agreement(by_get, "system_role") == (False, Agreement.UNDERCLAIMS)
    only_parts = PARTS + "{% for t in tools %}{{ t.function.name }}{% endfor %}"
    assert claims_and_agreement(only_parts, "tools") == (False, Agreement.UNDERCLAIMS)


def test_an_old_build_claims_nothing_of_efforts() -> None:
    source = CHATML + "{{ reasoning_effort }}"
    assert claims_and_agreement(source, "reasoning_effort") == (True, Agreement.AGREES)
    assert claims_and_agreement(source, "reasoning_effort", "b9713") == (None, None)


# -- efforts -----------------------------------------------------------------------------------------------------------


def accepted(word: str | None, group: int) -> Effort:
    return Effort(word, EffortOutcome.ACCEPTED, group=group)


@pytest.mark.parametrize(
    ("efforts", "verdict", "reason"),
    [
        ((accepted(None, 1), accepted("low", 2)), True, "different outputs"),
        ((accepted(None, 1), accepted("low", 1)), False, "same for every effort"),
        ((accepted(None, 1), Effort("low", EffortOutcome.RAISES, "no")), False, "same for every effort"),
        ((Effort(None, EffortOutcome.RAISES, "no"), Effort("low", EffortOutcome.RAISES, "nor")), False, "raised: no"),
        ((), None, NO_EFFORT),
    ],
)
def test_verdict_of_efforts(efforts: tuple[Effort, ...], verdict: bool | None, reason: str) -> None:
    found = observe_efforts(efforts)
    assert (found.verdict, found.reason, found.run) == (verdict, reason, None)


def test_efforts_that_used_up_a_budget_have_no_verdict() -> None:
    template = Template("{% for a in range(9999) %}{{ reasoning_effort }}{% endfor %}")
    trial = try_efforts(template, STRINGS_ONLY, now=NOW, limits=Limits(steps=5000))
    found = observe(template, STRINGS_ONLY, trial.efforts, effort_run=trial.run, now=NOW, limits=Limits(steps=5000))
    effort = found[CAPABILITIES.index("reasoning_effort")]
    assert (effort.verdict, effort.reason) == (None, "limit: more than 5000 steps")
    assert effort.run is trial.run


# -- the corpus --------------------------------------------------------------------------------------------------------


@cache
def corpus() -> dict[str, tuple[Capabilities, tuple[Observation, ...]]]:
    """All templates of the corpus: what is claimed, and what is observed."""
    found = {}
    for path in sorted(shared_path("corpus", "templates").iterdir()):
        template = Template(path.read_bytes())
        capabilities, _ = probe(template, PROFILES["b11549"], now=NOW)
        trial = try_efforts(template, capabilities, now=NOW)
        observed = observe(template, capabilities, trial.efforts, effort_run=trial.run, now=NOW)
        found[path.name] = (capabilities, observed)
    return found


def test_the_corpus_gives_the_known_figures() -> None:
    claimed: Counter[str] = Counter()
    observed: Counter[str] = Counter()
    for capabilities, observations in corpus().values():
        claimed.update([name for name in CAPABILITIES if getattr(capabilities, name)])
        observed.update([observation.capability for observation in observations if observation.verdict])
    assert {name: (claimed[name], observed[name]) for name in CAPABILITIES} == {
        "tools": (83, 84),
        "tool_calls": (80, 81),
        "parallel_tool_calls": (74, 74),
        "system_role": (138, 136),
        "string_content": (145, 145),
        "typed_content": (29, 32),
        "object_arguments": (74, 75),
        "preserve_reasoning": (16, 16),
        "reasoning_effort": (8, 8),
    }


def test_the_corpus_disagrees_where_reading_the_templates_says_so() -> None:
    vision = "ollama-library__llama3.2-vision-latest.jinja"
    found = {
        (name, observation.capability, observation.agreement, observation.reason)
        for name, (_, observations) in corpus().items()
        for observation in observations
        if observation.agreement is not Agreement.AGREES
    }
    over, under = Agreement.OVERCLAIMS, Agreement.UNDERCLAIMS
    assert found == {
        ("ollama-library__gemma3-1b.jinja", "system_role", over, "absent"),
        (vision, "system_role", over, "dumped"),
        (vision, "tools", under, "printed"),
        (vision, "tool_calls", under, "printed"),
        (vision, "object_arguments", under, "printed"),
        ("LFM2.5-8B-A1B.jinja", "typed_content", under, "printed"),
        ("mistralai-Ministral-3-14B-Reasoning-2512.jinja", "typed_content", under, "printed"),
        ("ollama-library__llama4-latest.jinja", "typed_content", under, "printed"),
    }
