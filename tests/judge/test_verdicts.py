"""The reason given for a flag agrees with the flag."""

from __future__ import annotations

import pytest

from reports.marks import Mark, flags_of, mark_of
from reports.pages import CombinationGroup, CombinationsPage
from reports.render import render_fragment, render_page
from scanner.judge.verdicts import REASONING_MARKER, Claim, claims
from scanner.pipeline import analyse_template
from scanner.probe import conversations
from scanner.results import CAPABILITIES
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


def test_flags_say_in_words_what_they_show() -> None:
    flags = flags_of(examples.capabilities("tools"))
    assert flags.key == "ynnnnnnnn"
    assert flags.words.startswith("yes: tools; no: tool calls, ")
    assert flags_of(None).words.startswith("not known: tools, ")


def test_a_disagreement_can_be_drawn() -> None:
    drawn = flags_of(examples.capabilities("tools"))
    over = type(drawn)("onnnnnnnu", "claimed, not really: tools")
    page = CombinationsPage(("b11549",), (CombinationGroup("b11549", over, ()),), (over,))
    assert "claimed, not really: tools" in render_page(page)
    assert "stroke-dasharray" in render_page(page)
    assert "<html" not in render_fragment(page, "main")
