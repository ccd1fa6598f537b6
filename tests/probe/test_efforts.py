"""Which reasoning efforts a template takes, which make a difference, and how that is said."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from scanner.dialect import Limits, Template
from scanner.probe.capabilities import probe
from scanner.probe.efforts import COMMON_WORDS, MESSAGE_LENGTH, EffortTrial, FreeText, effort_summary, try_efforts
from scanner.probe.profiles import CURRENT
from scanner.results import Effort, EffortOutcome
from tests.shared_data import shared_path

NOW = 0.0
STRICT = (
    "{% set effort = reasoning_effort | default('deep') %}{% if effort not in ('deep', 'low', 'medium') %}"
    "{{ raise_exception('Unexpected effort ' ~ effort) }}{% endif %}\n"
    "{{ 'Think a lot.' if effort == 'deep' }}{{ 'Effort is low.' if effort == 'low' }}{{ messages[0].content }}"
)
PRINTS = "Reasoning: {{ reasoning_effort | default('medium') }}\n{{ messages[0].content }}"
SWITCH = "{{ '<think>' if reasoning_strength != 'none' }}{{ messages[0].content }}"


def tried(source: str, limits: Limits | None = None) -> EffortTrial:
    template = Template(source)
    return try_efforts(template, probe(template, CURRENT, now=NOW)[0], now=NOW, limits=limits)


def by_word(trial: EffortTrial) -> dict[str | None, Effort]:
    return {effort.word: effort for effort in trial.efforts}


def taken(efforts: Sequence[Effort]) -> list[str | None]:
    return [effort.word for effort in efforts if effort.outcome is EffortOutcome.ACCEPTED]


def test_unset_comes_first_then_the_common_words_then_the_templates_own() -> None:
    assert [effort.word for effort in tried(STRICT).efforts] == [None, *COMMON_WORDS, "deep"]
    assert [effort.word for effort in tried("{{ messages[0].content }}").efforts] == [None, *COMMON_WORDS]


def test_words_are_accepted_or_raise() -> None:
    trial = tried(STRICT)
    efforts = by_word(trial)
    assert taken(trial.efforts) == [None, "low", "medium", "deep"]
    assert [efforts[word].group for word in (None, "low", "medium", "deep")] == [1, 2, 3, 1]
    assert [word for word, effort in efforts.items() if effort.equals_unset] == [None, "deep"]
    assert [word for word, effort in efforts.items() if effort.prints_word] == ["low"]
    raising = efforts["high"]
    assert (raising.message, raising.line) == ("Jinja Exception: Unexpected effort high", 1)
    assert (raising.group, raising.prints_word, raising.equals_unset) == (None, False, False)
    assert trial.free_text is FreeText.RAISES
    assert trial.run is not None
    assert (trial.run.name, trial.run.variables["reasoning_effort"]) == ("reasoning_effort", "low")


def test_free_text_is_printed() -> None:
    trial = tried(PRINTS)
    efforts = by_word(trial)
    assert trial.free_text is FreeText.PRINTED
    assert len({effort.group for effort in trial.efforts}) == len(COMMON_WORDS)
    assert [word for word, effort in efforts.items() if effort.equals_unset] == [None, "medium"]
    # `medium` stands there when unset as well.
    assert [word for word, effort in efforts.items() if not effort.prints_word] == [None, "medium"]
    for change in ("upper", "capitalize"):
        assert tried(PRINTS.replace(" }}\n", f" | {change} }}}}\n")).free_text is FreeText.PRINTED


def test_a_switch_ignores_other_words() -> None:
    trial = tried(SWITCH)
    assert trial.free_text is FreeText.IGNORED
    assert [effort.word for effort in trial.efforts if not effort.equals_unset] == ["none"]


@pytest.mark.parametrize("name", ["reasoning_effort", "reasoning_strength"])
def test_a_word_has_both_names(name: str) -> None:
    other = {"reasoning_effort": "reasoning_strength", "reasoning_strength": "reasoning_effort"}[name]
    trial = tried(f"{{{{ {name} == {other} }}}}{{{{ {name} }}}}")
    assert trial.free_text is FreeText.PRINTED
    assert trial.run is not None
    assert trial.run.output == "Truenone"
    assert trial.run.variables[name] == trial.run.variables[other] == "none"


def test_a_word_is_printed_only_where_it_stands_whole() -> None:
    efforts = by_word(tried("{{ {'max': 'maximum', 'low': 'Effort=LOW.', 'high': 'high'}[reasoning_effort] }} high"))
    assert [word for word, effort in efforts.items() if effort.prints_word] == ["low", "high"]


def test_unset_may_raise() -> None:
    trial = tried("{{ raise_exception('which effort?') if not reasoning_effort }}{{ reasoning_effort }}")
    assert trial.efforts[0].outcome is EffortOutcome.RAISES
    assert taken(trial.efforts) == list(COMMON_WORDS)
    assert not any(effort.equals_unset for effort in trial.efforts)
    assert all(effort.prints_word for effort in trial.efforts[1:])


def test_every_error_is_a_refusal() -> None:
    efforts = by_word(tried("{{ {'low': 'x'}[reasoning_effort] * 2 if reasoning_effort == 'high' }}"))
    assert efforts["low"].outcome is EffortOutcome.ACCEPTED
    assert efforts["high"].outcome is EffortOutcome.RAISES
    assert (efforts["high"].message or "").startswith("Cannot perform operation *")


def test_a_template_without_the_names_is_rendered_once() -> None:
    trial = tried("{{ messages[0].content }}")
    assert {(effort.group, effort.equals_unset, effort.outcome) for effort in trial.efforts} == {
        (1, True, EffortOutcome.ACCEPTED)
    }
    assert trial.free_text is FreeText.IGNORED
    assert trial.run is not None
    assert "reasoning_effort" not in trial.run.variables
    raising = tried("{{ raise_exception('never') }}")
    assert {effort.outcome for effort in raising.efforts} == {EffortOutcome.RAISES}
    assert raising.free_text is FreeText.RAISES


def test_the_same_is_found_with_and_without_one_render_for_all() -> None:
    source = "{{ messages[0].content }}"
    assert tried(source).efforts == tried(source + "{# reasoning_effort #}").efforts


def test_the_clock_stands_still() -> None:
    template = Template("{{ strftime_now('%H:%M:%S.%f') }}{{ reasoning_effort is defined }}{{ datetime }}")
    trial = try_efforts(template, probe(template, CURRENT)[0])
    assert [effort.group for effort in trial.efforts] == [1] + [2] * len(COMMON_WORDS)


def test_a_budget_ends_the_trial() -> None:
    endless = "{% if reasoning_effort == 'high' %}{% for a in range(9999) %}x{% endfor %}{% endif %}"
    trial = tried(endless, Limits(steps=2000))
    assert (trial.efforts, trial.free_text) == ((), None)
    assert trial.run is not None
    assert trial.run.error is not None
    assert (trial.run.error.kind, trial.run.variables["reasoning_effort"]) == ("limit", "high")


def test_messages_are_cut() -> None:
    efforts = tried("{{ raise_exception('" + "n" * 5000 + "') if reasoning_effort }}").efforts
    assert [len(effort.message or "") for effort in efforts[1:]] == [MESSAGE_LENGTH] * len(COMMON_WORDS)


def test_contents_take_the_claimed_form() -> None:
    trial = tried("{% for part in messages[0].content %}{{ part.text }}{% endfor %}{{ reasoning_effort }}")
    assert taken(trial.efforts) == [None, *COMMON_WORDS]


# -- in words ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            STRICT,
            "low, medium, deep accepted (deep = unset); "
            'none, minimal, high, xhigh, max, auto raise "Unexpected effort none" (line 1)',
        ),
        (PRINTS, "every word accepted, each with an output of its own (medium = unset)"),
        ("{{ reasoning_effort }}", "every word accepted, each with an output of its own"),
        (SWITCH, "every word accepted; only none makes a difference"),
        (
            "{% set e = reasoning_effort | default('') %}{{ 'x' if e in ['low', 'minimal'] }}{{ 'y' if e == 'max' }}",
            "every word accepted; only minimal = low, max make a difference",
        ),
        ("{{ messages[0].content }}", "every word accepted, none makes a difference"),
        (
            "{% set e = reasoning_effort | default('') %}"
            "{{ raise_exception('why not " + "x" * 99 + "') if e not in ['low', 'high'] }}",
            'low, high accepted (low = high); unset, none, minimal, medium, xhigh, max, auto raise "why not '
            + "x" * 51
            + '…" (line 1)',
        ),
        (
            "{{ raise_exception('no') if reasoning_effort is defined and reasoning_effort != 'low' }}",
            "low accepted, which makes no difference; "
            'none, minimal, medium, high, xhigh, max, auto raise "no" (line 1)',
        ),
        (
            "\n{{ raise_exception('no max') if reasoning_effort == 'max' }}",
            "none, minimal, low, medium, high, xhigh, auto accepted, none makes a difference; "
            'max raises "no max" (line 2)',
        ),
        (
            "{{ raise_exception('a\nb') }}",
            'unset, none, minimal, low, medium, high, xhigh, max, auto raise "a b" (line 1)',
        ),
    ],
)
def test_summary(source: str, expected: str) -> None:
    assert effort_summary(tried(source).efforts) == expected


def test_summary_of_nothing() -> None:
    assert effort_summary(()) == "no effort was tried"


# -- real templates ----------------------------------------------------------------------------------------------------


def real(name: str) -> EffortTrial:
    return tried(shared_path("corpus", "templates", f"{name}.jinja").read_text(encoding="utf-8"))


def test_qwen_3_8_takes_three_words() -> None:
    trial = real("Qwen3.8")
    efforts = by_word(trial)
    assert taken(trial.efforts) == [None, "low", "medium", "xhigh"]
    assert [word for word, effort in efforts.items() if effort.equals_unset] == [None, "xhigh"]
    assert efforts["high"].message is not None
    assert "Unexpected reasoning effort high" in efforts["high"].message
    assert {effort.line for effort in trial.efforts if effort.outcome is EffortOutcome.RAISES} == {49}
    assert trial.free_text is FreeText.RAISES


def test_hy3_takes_three_words_of_which_one_is_its_own() -> None:
    trial = real("tencent-Hy3")
    assert taken(trial.efforts) == [None, "low", "high", "no_think"]
    assert [effort.word for effort in trial.efforts if effort.equals_unset] == [None, "no_think"]
    assert trial.free_text is FreeText.RAISES


@pytest.mark.parametrize(("name", "default"), [("openai-gpt-oss-120b", "medium"), ("muse-glimmer", "high")])
def test_some_print_any_word(name: str, default: str) -> None:
    trial = real(name)
    assert taken(trial.efforts) == [None, *COMMON_WORDS]
    assert len({effort.group for effort in trial.efforts}) == len(COMMON_WORDS)
    assert [effort.word for effort in trial.efforts if effort.equals_unset] == [None, default]
    assert [effort.word for effort in trial.efforts if not effort.prints_word] == [None, default]
    assert trial.free_text is FreeText.PRINTED


@pytest.mark.parametrize(
    ("name", "differing"),
    [
        ("Cohere2MoE", ["none"]),
        ("deepseek-ai-DeepSeek-V4", ["max"]),
        ("deepseek-ai-DeepSeek-V4-Flash-0731", ["high", "max"]),
        ("upstage-Solar-Open-100B", ["minimal", "low"]),
    ],
)
def test_some_know_a_few_and_ignore_the_rest(name: str, differing: list[str]) -> None:
    trial = real(name)
    assert taken(trial.efforts) == [None, *COMMON_WORDS]
    assert [effort.word for effort in trial.efforts if not effort.equals_unset] == differing
    assert trial.free_text is FreeText.IGNORED
