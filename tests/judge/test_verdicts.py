"""The reason given for a flag agrees with the flag."""

from __future__ import annotations

import pytest

from reports.marks import Mark, flags_of, mark_of
from reports.pages import CombinationsPage
from reports.pages.combinations import CombinationGroup
from reports.render import render_fragment, render_page
from scanner.judge.verdicts import (
    EFFECTS,
    REASONING_MARKER,
    USUAL_OUTCOMES,
    Claim,
    claims,
    disagreement_phrase,
    is_usual,
    judgement,
    really_word,
)
from scanner.pipeline import analyse_template
from scanner.probe import conversations
from scanner.probe.behaviours import OUTCOMES
from scanner.results import CAPABILITIES, Agreement, Behaviour, Observation
from tests.shared_data import shared_path
from tests.store import examples

READS_ALL = b"""{%- for m in messages %}{{ m.content }}
{%- for c in m.tool_calls or [] %}{{ c.function.name }}{{ c.function.arguments.arg }}{% endfor %}
{%- endfor %}{{ tools[0].function.name if tools }}"""


def told(source: bytes) -> dict[str, Claim]:
    result = analyse_template(source, now=0)
    return {claim.capability: claim for claim in claims(result.capabilities, result.probes)}


def test_a_flag_is_explained_by_the_read_that_set_it() -> None:
    found = told(READS_ALL)
    assert (found["tools"].claimed, found["tools"].why) == (True, "tools[0].function.name is read")
    assert found["system_role"].place is not None
    assert found["reasoning_effort"].why == "reasoning_effort is never read"
    assert found["preserve_reasoning"].why == "earlier reasoning is not in the output"


def test_a_flag_that_is_off_because_the_probe_failed_says_so() -> None:
    found = told(b"{% if messages | length > 1 %}{{ raise_exception('too long') }}{% endif %}{{ messages[0].content }}")
    assert found["tools"].why == "the probe failed: Jinja Exception: too long"
    assert found["system_role"].why == "the probe failed: Jinja Exception: too long"
    assert found["string_content"].claimed


def test_without_an_analysis_nothing_is_claimed() -> None:
    found = claims(None, ())
    assert [claim.capability for claim in found] == list(CAPABILITIES)
    assert {claim.why for claim in found} == {"the template was not examined"}
    assert {claim.why for claim in claims(examples.capabilities(), ())} == {"the probe runs were not kept"}


def test_the_marker_is_the_one_that_the_probe_sends() -> None:
    assert REASONING_MARKER == conversations.REASONING_MARKER


def test_reasons_agree_with_the_flags_of_real_templates() -> None:
    for path in sorted(shared_path("corpus", "templates").glob("*.jinja")):
        for claim in told(path.read_bytes()).values():
            says_no = any(word in claim.why for word in ("never", "failed", " not ", "lost"))
            assert claim.claimed is not says_no, (path.name, claim)


@pytest.mark.parametrize(
    ("claimed", "observed", "mark"),
    [
        (True, None, Mark.YES),
        (False, None, Mark.NO),
        (None, True, Mark.UNKNOWN),
        (True, False, Mark.OVER),
        (False, True, Mark.UNDER),
        (True, True, Mark.YES),
    ],
)
def test_marks(claimed: bool | None, observed: bool | None, mark: Mark) -> None:
    assert mark_of(claimed, observed) is mark


def test_what_was_observed_stands_beside_the_claim() -> None:
    seen = [
        Observation("tools", False, "absent", Agreement.OVERCLAIMS),
        Observation("system_role", False, "raised: Jinja Exception: no system", Agreement.AGREES),
        Observation("typed_content", None, "limit: too long"),
        Observation("reasoning_effort", False, "same for every effort", Agreement.AGREES),
        Observation("tool_calls", True, "printed", Agreement.UNDERCLAIMS),
    ]
    told = {one.capability: one for one in claims(examples.capabilities("tools"), (), seen)}
    words = {name: really_word(claim) for name, claim in told.items()}
    assert words == {
        **dict.fromkeys(CAPABILITIES, ""),
        "tools": "no, absent",
        "system_role": "no, raises",
        "typed_content": "not told",
        "reasoning_effort": "no, all alike",
        "tool_calls": "yes",
    }
    tools = told["tools"]
    assert (tools.really, tools.reason, tools.agreement) == (False, "absent", Agreement.OVERCLAIMS)


@pytest.mark.parametrize(
    ("agreement", "reason", "phrase"),
    [
        (Agreement.OVERCLAIMS, "absent", "reads it, never prints it"),
        (Agreement.OVERCLAIMS, "same for every effort", "same output for every effort"),
        (Agreement.OVERCLAIMS, "raised: Jinja Exception: no\nmore", "raises: no"),
        (Agreement.UNDERCLAIMS, "printed", "prints it all the same"),
        (Agreement.UNDERCLAIMS, "something new", "something new"),
    ],
)
def test_a_disagreement_in_a_few_words(agreement: Agreement, reason: str, phrase: str) -> None:
    assert disagreement_phrase(agreement, reason) == phrase


@pytest.mark.parametrize("capability", CAPABILITIES)
@pytest.mark.parametrize("claimed", [True, False])
def test_a_judgement_says_what_llama_cpp_does(capability: str, claimed: bool) -> None:
    wrong = Agreement.OVERCLAIMS if claimed else Agreement.UNDERCLAIMS
    flags = examples.capabilities(*[capability][:claimed])
    for agreement, start in (
        (Agreement.AGREES, "That is right. llama.cpp"),
        (None, "Whether that is right could not be told; llama.cpp"),
        (wrong, "That is wrong: llama.cpp believes too"),
    ):
        seen = Observation(capability, None, "printed", agreement)
        (claim,) = [claim for claim in claims(flags, (), [seen]) if claim.capability == capability]
        said = judgement(claim)
        assert said.startswith(start)
        assert EFFECTS[capability][0 if claimed else 1] in said


def test_usual_outcomes_are_outcomes() -> None:
    assert USUAL_OUTCOMES.keys() | {"handler"} == OUTCOMES.keys()
    for key, outcomes in USUAL_OUTCOMES.items():
        assert outcomes <= set(OUTCOMES[key]), key


@pytest.mark.parametrize(
    ("behaviour", "usual"),
    [
        (Behaviour("late_system", "rendered", "in place"), True),
        (Behaviour("late_system", "rendered", "moved to the front"), False),
        (Behaviour("late_system", "raises"), False),
        (Behaviour("handler", "autoparser"), True),
        (Behaviour("a_new_one", "yes"), False),
        (Behaviour("clock", "not examined"), False),
    ],
)
def test_what_is_usual_needs_nobodys_attention(behaviour: Behaviour, usual: bool) -> None:
    assert is_usual(behaviour) is usual


def test_flags_say_in_words_what_they_show() -> None:
    flags = flags_of(examples.capabilities("tools"))
    assert flags.key == "ynnnnnnnn"
    assert flags.words.startswith("yes: tools; no: tool calls, ")
    assert flags_of(None).words.startswith("not known: tools, ")
    beside = flags_of(examples.capabilities("tools"), {"tools": False, "tool_calls": True, "system_role": None})
    assert (beside.key, beside.claimed) == ("ounnnnnnn", "ynnnnnnnn")
    assert beside.words.startswith("no: parallel tool calls, ")
    assert "claimed, not really: tools; really, not claimed: tool calls" in beside.words


def test_a_disagreement_can_be_drawn() -> None:
    drawn = flags_of(examples.capabilities("tools"))
    over = type(drawn)("onnnnnnnu", "claimed, not really: tools")
    page = CombinationsPage(("b11549",), (CombinationGroup("b11549", over, 1, ()),), (over,))
    assert "claimed, not really: tools" in render_page(page)
    assert "stroke-dasharray" in render_page(page)
    assert "<html" not in render_fragment(page, "main")
