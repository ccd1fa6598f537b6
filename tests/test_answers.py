"""What a person reads of a template: the flags beside what is really true, efforts, behaviours, runs and reasons."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace

import click
import pytest

from scanner.answers import (
    behaviours_answer,
    claims_answer,
    efforts_answer,
    query_answer,
    template_answer,
    trace_of,
)
from scanner.console import WIDTH, width_of, wrapped
from scanner.errors import UsageError
from scanner.explain import SUBJECTS, explain_answer
from scanner.export import template_document
from scanner.pipeline import analyse_template
from scanner.results import CAPABILITIES, Behaviour, ChatTemplate, Outcome, TemplateResult
from tests.shared_data import shared_path
from tests.store import examples

TURNS = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
DROPS_SYSTEM = (
    b"{% for m in messages %}{% if m.role != 'system' %}{{ m.role }}: {{ m.content }}\n"
    b"{% else %}{% set x = m.content | trim %}{% endif %}{% endfor %}"
)


def plain(lines: Iterable[str] | str) -> list[str]:
    """The lines as a terminal without colours shows them."""
    text = lines if isinstance(lines, str) else "\n".join(lines)
    return [line.rstrip() for line in click.unstyle(text).split("\n")]


@pytest.fixture(scope="module")
def drops_system() -> TemplateResult:
    return analyse_template(DROPS_SYSTEM, now=0)


def with_efforts(*claimed: str) -> TemplateResult:
    result = examples.observed("0" * 64, claimed, claimed)
    return replace(result, efforts=examples.EFFORTS, free_text_effort="raises")


def test_what_is_claimed_stands_beside_what_is_true(drops_system: TemplateResult) -> None:
    head, *rows = plain(claims_answer(drops_system))
    assert head.split() == ["capability", "claimed", "really", "why"]
    by_name = {row.split()[0]: row for row in rows}
    assert list(by_name) == list(CAPABILITIES)
    assert by_name["system_role"].split()[1:5] == ["yes", "no,", "absent", "over"]
    assert "messages[0].content is read at 2:24" in by_name["system_role"]
    assert by_name["string_content"].split()[1:3] == ["yes", "yes"]


def test_only_disagreements_stand_out(drops_system: TemplateResult) -> None:
    styled = [line for line in claims_answer(drops_system).split("\n")[1:] if "\x1b" in line]
    assert [click.unstyle(line).split()[0] for line in styled] == ["system_role"]


def test_without_observations_there_is_no_such_column() -> None:
    head, first, *_ = plain(claims_answer(examples.analysis("0" * 64, "tools")))
    assert head.split() == ["capability", "claimed", "why"]
    assert first.split()[:2] == ["tools", "yes"]


def test_efforts_are_told_in_words() -> None:
    said = " ".join(" ".join(efforts_answer(with_efforts("reasoning_effort"))).split())
    assert said.startswith("efforts: low, xhigh accepted (xhigh = unset); none, high raise")
    assert said.endswith("(line 3)")


def test_efforts_without_effect_are_told_where_they_are_claimed_only() -> None:
    inert = tuple(examples.accepted(word, 1, equals_unset=True) for word in (None, "low", "high"))
    result = replace(examples.analysis("0" * 64), efforts=inert)
    assert list(efforts_answer(result)) == []
    claimed = replace(examples.analysis("0" * 64, "reasoning_effort"), efforts=inert)
    assert "none makes a difference" in "".join(efforts_answer(claimed))


def test_a_template_that_prints_any_effort_says_so() -> None:
    result = replace(with_efforts("reasoning_effort"), free_text_effort="printed")
    assert " ".join(efforts_answer(result)).endswith("any other word is printed")


def behaving(*behaviours: Behaviour) -> TemplateResult:
    return replace(examples.analysis("0" * 64), behaviours=behaviours)


def test_only_unusual_behaviours_are_shown_unless_all_are_wanted() -> None:
    result = behaving(
        Behaviour("server_starts", "yes"),
        Behaviour("late_system", "raises", "Jinja Exception: only\nat the start", "", 106),
        Behaviour("two_systems", "rendered", "moved to the front"),
        Behaviour("developer", "rendered", "in place"),
        Behaviour("clock", "same"),
    )
    assert plain(behaviours_answer(result, everything=False))[1:] == [
        "late_system  raises    line 106: only at the start",
        "two_systems  rendered  moved to the front",
        "  3 more as usual (--behaviours)",
    ]
    assert len(plain(behaviours_answer(result, everything=True))) == 6


def test_nothing_is_said_of_usual_behaviours_alone() -> None:
    assert list(behaviours_answer(behaving(Behaviour("clock", "same")), everything=False)) == []
    assert list(behaviours_answer(behaving(), everything=True)) == []


@pytest.mark.parametrize("everything", [True, False])
def test_no_line_is_too_wide_and_none_drives_the_terminal(everything: bool) -> None:
    hostile = "\x1b[31m" + "é\u202e" * 200 + "\n"
    result = replace(
        behaving(Behaviour("late_system", "raises", hostile, hostile, 3)),
        efforts=(replace(examples.raising("high"), message=hostile), replace(examples.raising(hostile), line=None)),
    )
    lines = plain(template_answer(ChatTemplate("default", b"", ""), "a.jinja", result, everything=everything))
    assert max(map(width_of, lines)) <= 110
    assert not any("\x1b" in line or "\u202e" in line for line in lines)


def test_a_flag_is_explained_from_what_was_sent_to_what_it_means(drops_system: TemplateResult) -> None:
    lines = plain(explain_answer(drops_system, "system_role"))
    assert lines[0] == "system_role: claimed yes (read at line 2), observed no: reads it, never prints it"
    text = " ".join(" ".join(lines[1:]).split())
    for said in (
        'llama.cpp sent system "System message" · user "User message"',
        "read messages[0].content used",
        "at 2:24",
        'printed "user: User message\\n"',
        "concluded yes: messages[0].content is read",
        'Capscan sent system "CAPSCAN_SYSTEM" · user "CAPSCAN_FIRST_USER"',
        "concluded no: absent",
        "so That is wrong: llama.cpp believes too much and hands a system message to the template as it is",
    ):
        assert said in text
    assert max(map(width_of, lines)) <= WIDTH


def test_an_effort_is_explained_by_its_words() -> None:
    result = with_efforts("reasoning_effort")
    text = " ".join(" ".join(explain_answer(result, "reasoning-effort")).split())
    assert "reasoning_effort: claimed yes, observed yes: low, xhigh accepted (xhigh = unset); none, high raise" in text
    assert "That is right." in text


def test_every_flag_can_be_explained_and_nothing_else(drops_system: TemplateResult) -> None:
    heads = [line.partition(":")[0] for line in plain(explain_answer(drops_system, "all")) if line[:1].isalpha()]
    assert heads == list(CAPABILITIES)
    assert plain(explain_answer(drops_system, "supports_tools"))[0].startswith("tools: claimed no")
    with pytest.raises(UsageError, match="there is no capability nonsense"):
        explain_answer(drops_system, "nonsense")


def test_what_was_not_observed_or_examined_is_explained_as_such() -> None:
    old = analyse_template(DROPS_SYSTEM, now=0, profile="b9713")
    first, *others = plain(explain_answer(old, "system_role"))
    assert first.endswith("not observed under profile b9713")
    assert "Whether that is right could not be told" in "".join(others)
    assert "makes no claim" in plain(explain_answer(old, "reasoning_effort"))[-1]
    assert plain(explain_answer(examples.not_parseable("0"), "all"))[0].startswith("llama.cpp cannot parse it")
    assert examples.not_parseable("0").outcome is Outcome.NOT_PARSEABLE


def test_the_subjects_are_the_markers_that_are_looked_for() -> None:
    result = analyse_template(shared_path("corpus", "templates", "Qwen3.8.jinja").read_bytes(), now=0)
    seen = {one.capability: one for one in result.observations}
    assert {*SUBJECTS, "reasoning_effort"} == set(CAPABILITIES)
    for capability, subject in SUBJECTS.items():
        run = seen[capability].run
        assert run is not None
        assert subject in run.output, capability


def test_a_trace_may_name_a_conversation_of_our_own(drops_system: TemplateResult) -> None:
    ours = plain(trace_of(drops_system, "observed_system_role"))
    assert ours[0] == "observed system_role"
    assert "CAPSCAN_SYSTEM" in "".join(ours)
    assert "read" not in ours
    theirs = plain(trace_of(drops_system, "system_role"))
    assert theirs[0] == "probe system_role"
    assert "read" in theirs
    assert plain(trace_of(drops_system, "tools"))[0] == "observed tools"
    assert plain(trace_of(drops_system, "parallel"))[0] == "probe parallel_tool_calls"
    with pytest.raises(UsageError, match="there was no run nonsense; those that ran: typed_content, "):
        trace_of(drops_system, "nonsense")


def test_flags_in_rows_show_disagreements() -> None:
    names = [f"{kind}_{name}" for kind in ("supports", "observed") for name in CAPABILITIES]
    claimed = [True, False, True, False, None, True, *[True] * 3]
    really = [True, False, False, True, True, None, *[True] * 3]
    text = plain(query_answer(["path", *names], [("/a", *claimed, *really)]))
    assert text[1].split() == ["/a", "●○◐◑·●●●●"]
    assert "◐ claimed, not really" in text[2]
    without = plain(query_answer(["path", *names[:9]], [("/a", *claimed)]))
    assert without[1].split() == ["/a", "●○●○·●●●●"]


def test_the_document_has_what_is_true_in_the_shape_that_others_rely_on(drops_system: TemplateResult) -> None:
    result = replace(drops_system, efforts=examples.EFFORTS)
    document = json.loads(json.dumps(template_document(ChatTemplate("default", DROPS_SYSTEM, ""), "a.jinja", result)))
    assert list(document["observed"]) == list(CAPABILITIES)
    assert document["observed"]["system_role"] == {"verdict": False, "reason": "absent", "agreement": "overclaims"}
    assert document["efforts"][1] == {
        "word": "none",
        "outcome": "raises",
        "message": "Jinja Exception: Unexpected reasoning effort none.",
        "group": None,
        "prints_word": False,
        "equals_unset": False,
    }
    assert set(document["behaviours"]["late_system"]) == {"outcome", "detail", "evidence"}


def test_what_was_not_found_out_is_absent_from_the_document() -> None:
    result = analyse_template(DROPS_SYSTEM, now=0, profile="b9713")
    document = template_document(ChatTemplate("default", DROPS_SYSTEM, ""), "a.jinja", result)
    assert not {"observed", "efforts", "free_text_effort", "behaviours"} & set(document)


def test_text_is_wrapped_under_its_own_beginning() -> None:
    assert wrapped("label: ", "one two three", width=14) == ["label: one two", "       three"]
    assert wrapped("label: ", "") == ["label:"]
    assert max(map(len, wrapped("", "x" * 250))) <= WIDTH
