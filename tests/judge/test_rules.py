"""Every rule has a case where it holds and one where it does not, and says what it means and what to do."""

from __future__ import annotations

import pytest

from scanner.judge import ALL_RULES, FILE_RULES, RULES, FileFacts, VariantFacts, judge_file
from scanner.judge.rules import AnyRule
from scanner.pipeline import analyse_profiles, analyse_template, not_examined
from scanner.probe.profiles import PROFILES
from scanner.results import ChatTemplate, Finding, Outcome, Severity

PLAIN = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
TAKES_CALLS = PLAIN + "{% for m in messages if m.tool_calls %}{{ m.tool_calls|tojson }}{% endfor %}"

FAILS_AT_START = (
    "{% for m in messages %}{{ m.content }}\n"
    "{% if m.content == 'test' and enable_thinking %}{{ raise_exception('No tests!') }}{% endif %}{% endfor %}"
)
FAILS_IN_THE_LOG = FAILS_AT_START.replace("'test'", "'Hi there'")
"""Templates that every probe runs through, and one of the server's own conversations does not."""

POSITIVE = {
    "not-parseable": "{% raw %}x{% endraw %}",
    "server-does-not-start": FAILS_AT_START,
    "logged-start-fails": FAILS_IN_THE_LOG,
    "limit-exceeded": "{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}",
    "crashes-llama.cpp": PLAIN + "{{ 1 is divisibleby(0) }}",
    "plain-chat-raises": PLAIN + "{{ raise_exception('never') }}",
    "no-content-form": PLAIN + "{{ raise_exception('never') }}",
    "calls-without-tools": TAKES_CALLS,
    "system-raises": "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}" + PLAIN,
    "probe-threw": PLAIN
    + "{% for m in messages if m.tool_calls and tools %}{{ raise_exception('no calls') }}{% endfor %}",
    "outdated-gemma4": PLAIN + "{{ '<|tool_call>call:' }}",
    "patched-by-llama.cpp": PLAIN + "\0 the rest",
    "uses-python-internals": PLAIN + "{{ messages.__class__ }}",
}


def found(source: str) -> dict[str, Severity]:
    return {finding.rule: finding.severity for finding in analyse_template(source.encode()).findings}


ON_SIGHT = [rule for rule in RULES if rule.slug != "flags-change-with-build"]
"""The rules that a single analysis is enough for."""


@pytest.mark.parametrize("rule", ON_SIGHT, ids=[rule.slug for rule in ON_SIGHT])
def test_a_rule_about_templates_holds_where_it_should(rule: object) -> None:
    (known,) = [known for known in RULES if known is rule]
    assert found(POSITIVE[known.slug])[known.slug] is known.severity


def test_no_rule_holds_of_a_plain_template() -> None:
    assert found(PLAIN) == {}


def test_a_template_that_fails_at_the_start_says_where_and_in_which_conversation() -> None:
    assert analyse_template(FAILS_AT_START.encode()).findings == (
        Finding(
            "server-does-not-start",
            Severity.ERROR,
            "llama-server would not start: Jinja Exception: No tests! (one user message, thinking on)",
            "start-up conversation thinking",
            2,
        ),
    )
    assert analyse_template(FAILS_IN_THE_LOG.encode()).findings == (
        Finding(
            "logged-start-fails",
            Severity.WARNING,
            "llama-server -lv 4 would not start: Jinja Exception: No tests! (system, user, assistant, user)",
            "start-up conversation example",
            2,
        ),
    )


def test_what_keeps_a_server_from_starting_is_reported_once() -> None:
    assert set(found("{% raw %}")) == {"not-parseable"}
    assert set(found("{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}")) == {
        "limit-exceeded"
    }
    assert file_rules(Outcome.ANALYSED, default=FAILS_AT_START) == set()


def test_every_rule_is_documented_and_has_a_name_of_its_own() -> None:
    assert len({rule.slug for rule in ALL_RULES}) == len(ALL_RULES)
    assert all(rule.meaning.endswith(".") and rule.remedy.endswith(".") for rule in ALL_RULES)


def test_flags_that_depend_on_the_build_are_a_finding_of_the_first_profile() -> None:
    walks = (
        "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}"
        "{% for part in m.content %}{{ part }}{% endfor %}{% endif %}{% endfor %}"
    )
    first, *others = analyse_profiles(walks.encode(), tuple(PROFILES))
    (finding,) = first.findings
    assert (finding.rule, finding.severity) == ("flags-change-with-build", Severity.WARNING)
    assert "typed_content (b11549 yes, b10809 no, b10229 no, b9713 no)" in finding.text
    assert all(result.findings == () for result in others)
    assert analyse_profiles(PLAIN.encode(), tuple(PROFILES))[0].findings == ()


def test_an_old_builds_odd_probe_is_no_plain_chat() -> None:
    needs_real_tools = PLAIN + "{% for tool in tools %}{{ tool.function.name|upper }}{{ tool|nosuch }}{% endfor %}"
    result = analyse_template(needs_real_tools.encode(), profile="b9713")
    assert not result.probes[0].ok
    assert "plain-chat-raises" not in [finding.rule for finding in result.findings]


def file_rules(outcome: Outcome, **sources: str) -> set[str]:
    results = {name: analyse_template(source.encode()) for name, source in sources.items()}
    variants = [
        VariantFacts(ChatTemplate(name, sources[name].encode(), ""), result.outcome, result.capabilities)
        for name, result in results.items()
    ]
    return {finding.rule for finding in judge_file(FileFacts(outcome, variants))}


def test_rules_about_files() -> None:
    assert file_rules(Outcome.NO_TEMPLATE) == {"no-template"}
    assert file_rules(Outcome.ANALYSED, default=PLAIN, tool_use=TAKES_CALLS) == {"variants-disagree"}
    assert file_rules(Outcome.ANALYSED, default=PLAIN, tool_use=PLAIN) == set()
    assert file_rules(Outcome.ANALYSED, default=PLAIN) == set()
    broken = "{% raw %}"
    assert file_rules(Outcome.ANALYSED, default=broken) == {"server-does-not-start"}
    assert file_rules(Outcome.ANALYSED, default=PLAIN, tool_use=broken) == {"tool-use-ignored"}
    assert file_rules(Outcome.ANALYSED, default=PLAIN, rag=broken) == set()
    tried = {"no-template", "variants-disagree", "server-does-not-start", "tool-use-ignored"}
    assert {rule.slug for rule in FILE_RULES} == tried


def test_a_rule_of_one_name_means_one_thing() -> None:
    rules: tuple[AnyRule, ...] = (*RULES, *FILE_RULES)
    told = {(rule.slug, rule.severity, rule.meaning, rule.remedy) for rule in rules}
    assert told == {(rule.slug, rule.severity, rule.meaning, rule.remedy) for rule in ALL_RULES}


def test_a_finding_names_the_line_and_the_message() -> None:
    result = analyse_template(b"a\n{{ messages[0].content }}{{ raise_exception('nope') }}")
    (finding,) = [finding for finding in result.findings if finding.rule == "plain-chat-raises"]
    assert (finding.line, finding.evidence) == (2, "probe typed_content")
    assert "nope" in finding.text


def test_a_lost_analysis_is_a_finding_too() -> None:
    (finding,) = not_examined("0" * 64, "b11549", "the analysis took longer than 30 s").findings
    assert (finding.rule, finding.severity) == ("limit-exceeded", Severity.ERROR)
