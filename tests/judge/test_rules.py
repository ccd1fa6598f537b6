"""Every rule has a case in which it holds and one in which it does not, says what it means and what to do, and stands
in the documentation."""

from __future__ import annotations

import pytest

from scanner.chat.scenarios import SCENARIOS
from scanner.judge import ALL_RULES, FILE_RULES, RULES, judge
from scanner.judge.conditions import calls, contents, efforts, engines, history, loading, roles
from scanner.judge.rule import MESSAGE_LENGTH, RAISES, TemplateFacts
from scanner.judge.rules import PROMPT_SHOWS, AnyRule
from scanner.pipeline import analyse_profiles, analyse_template, not_examined
from scanner.probe.behaviours.outcomes import NOT_EXAMINED, OUTCOMES
from scanner.probe.efforts import COMMON_WORDS
from scanner.probe.profiles import PROFILES
from scanner.results import CAPABILITIES, Behaviour, Finding, Outcome, Severity, TemplateResult
from tests.judge.cases import CALLS, FILES, NOW, PLAIN, TEMPLATES, Case, Pair, with_calls
from tests.judge.write_docs import PAGE, document

CASES = [
    *[pytest.param(rule, TEMPLATES.get(rule.slug), id=rule.slug) for rule in RULES],
    *[pytest.param(rule, FILES.get(rule.slug), id=f"file-{rule.slug}") for rule in FILE_RULES],
]


@pytest.mark.parametrize(("rule", "cases"), CASES)
def test_a_rule_holds_where_it_should_and_nowhere_else(rule: AnyRule, cases: Pair | None) -> None:
    assert cases is not None, f"{rule.slug} has no case in tests/judge/cases.py"
    found = [finding for finding in cases.holds.findings() if finding.rule == rule.slug]
    assert [finding.severity for finding in found] == [rule.severity]
    assert rule.slug not in cases.silent.rules()
    (finding,) = found
    assert finding.text and "\n" not in finding.text and finding.evidence
    assert "CAPSCAN_" not in finding.text, "a marker means nothing to a person"


def test_there_is_no_case_without_a_rule() -> None:
    assert set(TEMPLATES) == {rule.slug for rule in RULES}
    assert set(FILES) == {rule.slug for rule in FILE_RULES}


def test_no_rule_holds_of_templates_as_they_should_be() -> None:
    assert Case(PLAIN).rules() == set()
    assert Case(CALLS).rules() == set()
    assert Case(PLAIN, tool_use=PLAIN, as_file=True).rules() == set()


def test_every_capability_has_a_rule_for_each_direction() -> None:
    slugs = {rule.slug for rule in RULES}
    assert tuple(PROMPT_SHOWS) and set(PROMPT_SHOWS) == set(CAPABILITIES)
    assert slugs >= {f"{side}-{name}" for side in ("overclaims", "underclaims") for name in CAPABILITIES}


def test_every_rule_is_explained_and_has_a_name_of_its_own() -> None:
    assert len({rule.slug for rule in ALL_RULES}) == len(ALL_RULES)
    for rule in ALL_RULES:
        assert all(text.endswith(".") for text in (rule.meaning, rule.why, rule.remedy)), rule.slug
        assert rule.remedy.startswith("Author: ") and " Serving: " in rule.remedy, rule.slug
        assert rule.docs == f"docs/rules.md#{rule.slug}"


def test_rules_stand_in_the_order_of_their_severity() -> None:
    order = list(Severity)
    for rules in (RULES, FILE_RULES):
        assert [*rules] == sorted(rules, key=lambda rule: order.index(rule.severity))


def test_a_rule_of_one_name_means_one_thing() -> None:
    rules: tuple[AnyRule, ...] = (*RULES, *FILE_RULES)
    told = {(rule.slug, rule.severity, rule.meaning, rule.why, rule.remedy) for rule in rules}
    assert told == {(rule.slug, rule.severity, rule.meaning, rule.why, rule.remedy) for rule in ALL_RULES}


def test_the_documentation_is_that_of_these_rules_and_cases() -> None:
    written = PAGE.read_text(encoding="utf-8")
    missing = [rule.slug for rule in ALL_RULES if f'<a id="{rule.slug}"></a>' not in written]
    assert missing == [], "write them with: python -m tests.judge.write_docs"
    assert written == document(), "write it again with: python -m tests.judge.write_docs"


# -- what single findings say ------------------------------------------------------------------------------------------


def finding_of(rule: str, source: str) -> Finding:
    (found,) = [found for found in analyse_template(source.encode(), now=NOW).findings if found.rule == rule]
    return found


def test_a_template_that_fails_at_the_start_says_where_and_in_which_conversation() -> None:
    fails = (
        "{% for m in messages %}{{ m.content }}\n{% if m.content == 'test' %}{{ raise_exception('No!') }}{% endif %}"
    )
    assert finding_of("server-does-not-start", fails + "{% endfor %}") == Finding(
        "server-does-not-start",
        Severity.ERROR,
        "llama-server would not start: No! (one user message, thinking on)",
        "start-up conversation thinking",
        2,
    )
    fails = fails.replace("'test'", "'Hi there'")
    assert finding_of("logged-start-fails", fails + "{% endfor %}").text == (
        "llama-server -lv 4 would not start: No! (system, user, assistant, user)"
    )


def test_what_keeps_a_server_from_starting_is_reported_once_for_a_template_and_its_files() -> None:
    assert Case("{% raw %}").rules() == {"not-parseable"}
    assert TEMPLATES["limit-exceeded"].holds.rules() == {"limit-exceeded"}
    assert Case(TEMPLATES["server-does-not-start"].holds.default, as_file=True).rules() == set()


def test_a_plain_chat_is_that_of_a_request_not_that_of_a_probe() -> None:
    odd = "{% if tools is defined and not tools %}{{ raise_exception('An empty list?') }}{% endif %}" + PLAIN
    assert "plain-chat-raises" not in Case(odd).rules()
    second_turn = "{% if messages|length > 2 %}{{ raise_exception('Only one turn.') }}{% endif %}" + PLAIN
    assert finding_of("plain-chat-raises", second_turn).text == "user, assistant, user fails: Only one turn."


def test_an_old_builds_odd_probe_is_no_plain_chat() -> None:
    needs_real_tools = PLAIN + "{% for tool in tools %}{{ tool.function.name|upper }}{{ tool|nosuch }}{% endfor %}"
    result = analyse_template(needs_real_tools.encode(), profile="b9713", now=NOW)
    assert not result.probes[0].ok
    assert "plain-chat-raises" not in [finding.rule for finding in result.findings]


def test_an_old_builds_failing_probe_is_one_where_no_request_was_tried() -> None:
    result = analyse_template(b"{{ raise_exception('Never.') }}", profile="b10809", now=NOW)
    (finding,) = [finding for finding in result.findings if finding.rule == "plain-chat-raises"]
    assert (finding.text, finding.evidence) == ("a single user message fails: Never.", "probe typed_content")


def test_flags_that_depend_on_the_build_are_a_finding_of_the_first_profile() -> None:
    source = (TEMPLATES["flags-change-with-build"].holds.default or "").encode()
    first, *others = analyse_profiles(source, tuple(PROFILES), now=NOW)
    (finding,) = [finding for finding in first.findings if finding.rule == "flags-change-with-build"]
    assert "typed_content (b11549 yes, b10809 no, b10229 no, b9713 no)" in finding.text
    assert all("flags-change-with-build" not in [f.rule for f in result.findings] for result in others)


def test_a_rejected_effort_says_which_words_are_taken() -> None:
    picky = (
        "{% if reasoning_effort is defined and reasoning_effort not in ['low', 'max'] %}"
        "{{ raise_exception('Unexpected effort ' ~ reasoning_effort) }}{% endif %}" + PLAIN
    )
    assert finding_of("effort-rejected", picky).text == (
        'the probe only tries "low"; "high" raises: Unexpected effort high; so do medium, minimal, xhigh, auto '
        "(accepts low, max)"
    )


def test_an_effort_that_makes_no_difference_is_told_once() -> None:
    assert TEMPLATES["effort-inert"].holds.rules() == {"effort-inert"}


def test_a_system_message_that_is_merged_is_no_failing_request() -> None:
    merged = TEMPLATES["system-raises"].holds.default or ""
    assert finding_of("system-raises", merged).text == (
        "a system message fails: No system messages.; llama.cpp puts its text before that of the next message instead"
    )
    read_first = "{% set text = messages[0].content %}" + merged
    assert "instead" not in finding_of("system-raises", read_first.replace("== 'system'", "== 'system' and text")).text


def test_a_template_that_takes_parts_only_is_right_to_fail_at_a_string() -> None:
    parts = "{%- for m in messages %}{% for part in m.content %}<{{ part.text }}>{% endfor %}{% endfor %}"
    assert "probe-threw" not in Case(parts).rules()


def test_content_that_is_lost_is_named() -> None:
    results = CALLS.replace("<|{{ m.role }}|>", "{% if m.role == 'tool' %}{% continue %}{% endif %}<|{{ m.role }}|>")
    assert finding_of("content-lost", results).text == "results of tools are left out of the prompt"
    assistant = PLAIN.replace("{{ m.content }}", "{% if m.role != 'assistant' %}{{ m.content }}{% endif %}")
    assert finding_of("content-lost", assistant).text == "what the assistant said is left out of the prompt"
    no_tools = PLAIN.replace("{{ m.content }}", "{% if m.role != 'tool' %}{{ m.content }}{% endif %}")
    assert "content-lost" not in Case(no_tools).rules()
    parts = "{%- for m in messages %}{% if m.content is string %}<{{ m.content }}>{% else %}{% for part in m.content %}"
    assert finding_of("content-lost", parts + "{{ part }}{% endfor %}{% endif %}{% endfor %}").text == (
        "a message of two text parts is left out of the prompt"
    )


def test_what_the_tests_and_the_rules_call_by_one_name() -> None:
    """The rules know the conversations by their texts only, since they import nothing that makes them."""
    (_, message, _) = SCENARIOS[contents.BESIDE_A_CALL].body["messages"]
    assert message["content"] == contents.TEXT_BESIDE_A_CALL
    (call,) = message["tool_calls"]
    assert contents.ARGUMENT.search(call["function"]["arguments"])
    assert contents.OFFERED in SCENARIOS
    assert {"none", *efforts.COMMON} == set(COMMON_WORDS)
    assert loading.NOT_EXAMINED == NOT_EXAMINED
    assert {contents.DAILY} < set(OUTCOMES["clock"]) and {history.BREAKS} < set(OUTCOMES["history"])
    assert {engines.DIFFERS, engines.ONLY_LLAMA_CPP_FAILS} < set(OUTCOMES["reference"])
    assert {calls.NOTHING, calls.PYTHON, calls.JSON, calls.XML} < set(OUTCOMES["arguments"])
    assert {roles.DROPPED, RAISES} < set(OUTCOMES["late_system"])


def test_what_breaks_a_history_and_what_it_costs() -> None:
    thinks = TEMPLATES["history-breaks"].holds.default or ""
    assert finding_of("history-breaks", thinks).text == (
        'turn 2 of a plain chat takes back the end of the generation prompt ("<think>\\n"): '
        "a server computes each answer again"
    )
    moves = "{%- for m in messages %}{% if loop.last %}<tools>{% endif %}{{ m.content }}.{% endfor %}"
    assert (
        "turn 2 of a plain chat changes what was sent before from byte 0 of "
        in finding_of("history-breaks", moves).text
    )


def test_a_template_that_keeps_reasoning_breaks_only_for_want_of_it() -> None:
    keeps = (
        "{%- for m in messages %}<|{{ m.role }}|>{% if m.role == 'assistant' %}<think>{{ m.reasoning_content }}</think>"
        "{% endif %}{{ m.content }}{% endfor %}{%- if add_generation_prompt %}<|assistant|><think>CUT{% endif %}"
    )
    result = analyse_template(keeps.encode(), now=NOW)
    assert result.capabilities is not None and result.capabilities.preserve_reasoning
    assert "breaks" in [one.outcome for one in result.behaviours if one.key == "history"]
    assert "history-breaks" not in [finding.rule for finding in result.findings]


def test_the_date_is_not_in_the_findings() -> None:
    dated = (
        "{%- if messages[0].role != 'system' %}<|system|>Today is {{ strftime_now('%d %B %Y') }}.{% endif %}" + PLAIN
    )
    assert finding_of("default-system", dated).text.endswith('"Today is …"')
    assert "20" not in finding_of("clock-dependent", dated).text


def test_a_call_in_pythons_own_words_may_hold_none() -> None:
    pythonic = "{{ c.name }}({% for key, value in c.arguments|items %}{{ key }}={{ value|string }}, {% endfor %})"
    assert "arguments-python-repr" not in Case(with_calls("{% set known = c.arguments.arg %}" + pythonic)).rules()


def test_dunder_names_count_where_an_engine_runs_them() -> None:
    assert finding_of("uses-python-internals", PLAIN + "\n{{ '{#' }}{% set x = messages['__class__'] %}").line == 8
    for harmless in ("__class__", "{# {{ x.__class__ }} #}", "{{ x.__my_name__ }}"):
        assert "uses-python-internals" not in Case(harmless + PLAIN).rules()


def test_a_lost_analysis_is_a_finding_too() -> None:
    (finding,) = not_examined("0" * 64, "b11549", "the analysis took longer than 30 s").findings
    assert (finding.rule, finding.severity) == ("limit-exceeded", Severity.ERROR)


def test_behaviours_that_were_not_examined_are_never_fine() -> None:
    unknown = Behaviour("late_system", "not examined", "limit exceeded: too many steps")
    of_jinja2 = Behaviour("reference", "not examined", "no reference renders")
    (finding,) = judge(TemplateFacts(b"", TemplateResult("", "", Outcome.ANALYSED, behaviours=(unknown, of_jinja2))))
    assert (finding.rule, finding.text) == (
        "partly-examined",
        "late_system was not examined: limit exceeded: too many steps",
    )


def test_only_llama_cpp_failing_is_a_difference() -> None:
    differing = Behaviour("reference", "only llama.cpp fails", "user equal · tools only llama.cpp fails")
    (finding,) = judge(TemplateFacts(b"", TemplateResult("", "", Outcome.ANALYSED, behaviours=(differing,))))
    assert (finding.rule, finding.text) == ("reference-differs", "only llama.cpp fails at: tools")


def test_a_message_is_one_line_and_not_endless() -> None:
    long = "{{ raise_exception('first line ' ~ 'x' * 400 ~ '\\nsecond') }}"
    text = finding_of("plain-chat-raises", long).text
    assert "\n" not in text and len(text) < MESSAGE_LENGTH + 60


def test_a_template_cannot_pretend_to_crash_the_server() -> None:
    pretends = PLAIN + "{% if messages|length > 3 %}{{ raise_exception('stops llama.cpp itself') }}{% endif %}"
    assert "crashes-llama.cpp" not in Case(pretends).rules()


def test_a_template_that_takes_no_effort_at_all_is_not_called_inert() -> None:
    refuses = PLAIN + "{% if reasoning_effort is defined %}{{ raise_exception('never') }}{% endif %}"
    assert "effort-inert" not in Case(refuses).rules()


def test_a_message_of_a_template_cannot_forge_a_fact() -> None:
    forged = PLAIN + "{{ raise_exception('a · null: call printed · empty: call lost') if messages[1].tool_calls }}"
    assert "call-needs-null-content" not in Case(forged).rules()
