"""Standard conversations under both engines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from scanner.chat.scenarios import SCENARIOS
from scanner.chat.server import USUAL, Vocabulary
from scanner.dialect import Limits
from scanner.probe.behaviours import STANDARD, Requests, examine, reference_requests, standard_renders
from scanner.probe.behaviours.base import NotExaminedError
from scanner.probe.behaviours.reference import (
    JINJA2,
    LLAMA_CPP,
    NOT_CONTINUED,
    compare,
    continued,
    joined_parts,
    reference,
    reference_render,
)
from scanner.reference import ErrorKind, ReferenceResult, ReferenceTemplate, variables_of_request
from scanner.results import StandardRender
from scanner.serving import Serving
from tests.probe.behaviours.helpers import CHAT, NOW, raising, serving_of


def references_of(serving: Serving) -> Mapping[str, ReferenceResult]:
    """What Jinja2 makes of the requests, in this process."""
    template = ReferenceTemplate(serving.selection.default.source)
    asked = reference_requests(serving.server, now=NOW)
    tokens = serving.server.vocabulary
    return {
        name: template.render(variables_of_request(body, bos=tokens.bos, eos=tokens.eos), now=NOW)
        for name, body in asked.items()
    }


def renders_of(template: str, vocabulary: Vocabulary = USUAL) -> Sequence[StandardRender]:
    serving = serving_of(template, vocabulary)
    return standard_renders(Requests(serving.server, NOW), references_of(serving))


def outcomes(template: str) -> tuple[str, dict[str, str]]:
    """The outcome, and that of each conversation."""
    found = reference(renders_of(template))
    said = {}
    for part in found.detail.split(" · "):
        name, _, verdict = part.removeprefix("not counted: ").partition(" ")
        said[name] = verdict
    assert list(said)[-2:] == ["text-parts", "prefill"]
    return found.outcome, said


SYSTEM_CONDITION = "message.role == 'system' and not loop.first"
STRIPS = CHAT.replace("message.content", "message.content.strip()")


def test_an_engine_independent_template_is_equal() -> None:
    outcome, said = outcomes(STRIPS)
    assert outcome == "equal"
    assert {name for name, verdict in said.items() if verdict != "equal"} == {"text-parts"}
    assert said["text-parts"] == "only the reference fails"


def test_what_fails_in_both_is_no_difference() -> None:
    outcome, said = outcomes(raising(SYSTEM_CONDITION))
    assert outcome == "equal"
    assert said["late-system"] == "both fail"


def test_a_template_that_always_fails() -> None:
    outcome, said = outcomes(raising("true"))
    assert outcome == "both fail"
    assert said["user"] == "both fail"


def test_a_difference_is_told_with_its_byte() -> None:
    # An object prints nothing in llama.cpp's dialect.
    outcome, said = outcomes("<a>{{ {'a': 1} }}" + CHAT)
    assert (outcome, said["user"]) == ("differs", "differs at byte 3")


def test_only_llama_cpp_fails() -> None:
    outcome, said = outcomes("{{ 'ab'.swapcase() }}" + CHAT)
    assert (outcome, said["user"]) == ("only llama.cpp fails", "only llama.cpp fails")


def test_only_the_reference_fails() -> None:
    # Without tools transformers hands over none, and llama.cpp nothing.
    outcome, said = outcomes("{% for tool in tools %}{{ tool.type }}{% endfor %}" + STRIPS)
    assert (outcome, said["user"], said["tools"]) == ("only the reference fails", "only the reference fails", "equal")


def test_evidence_shows_both_sides() -> None:
    found = reference(renders_of("x" * 5000 + "{{ {'a': 1} }}" + CHAT))
    assert "user in llama.cpp:\n" in found.evidence
    assert "\n\nuser in jinja2:\n" in found.evidence
    assert len(found.evidence) <= 2000
    assert "{'a': 1}" in found.evidence


def test_the_reference_gets_what_a_server_sets_of_itself() -> None:
    serving = serving_of(CHAT)
    asked = reference_requests(replace(serving.server, enable_thinking=False), now=NOW)
    assert list(asked) == list(STANDARD)
    assert asked["user"]["messages"] == SCENARIOS["user"].body["messages"]
    assert asked["user"]["chat_template_kwargs"]["enable_thinking"] is False
    assert set(asked["user"]["chat_template_kwargs"]) == {"enable_thinking", "datetime", "date_string"}
    assert asked["prefill"]["add_generation_prompt"] is False
    assert outcomes("{{ enable_thinking }}{{ datetime }}{{ date_string }}" + STRIPS)[0] == "equal"


def test_a_token_that_the_tokenizer_adds_is_cut_from_both() -> None:
    renders = renders_of("{{ bos_token }}" + STRIPS + "{{ eos_token }}", Vocabulary("<s>", "</s>", True, True))
    assert reference(renders).outcome == "equal"
    assert not any(render.output.startswith("<s>") or render.output.endswith("</s>") for render in renders)


def test_both_engines_stand_side_by_side() -> None:
    renders = renders_of(CHAT)
    assert [(render.scenario, render.engine) for render in renders] == [
        (name, engine) for name in STANDARD for engine in (LLAMA_CPP, JINJA2)
    ]
    failed = [render for render in renders_of(raising(SYSTEM_CONDITION)) if render.scenario == "late-system"]
    assert [render.error for render in failed] == ["Jinja Exception: no, thanks (line 2)", "no, thanks (line 2)"]
    assert len(standard_renders(Requests(serving_of(CHAT).server, NOW), {})) == len(STANDARD)


def test_words_are_continued_as_transformers_does() -> None:
    assert continued("<a>A llama is</a>", " A llama is") == "<a>A llama is"
    assert continued("<a></a>", "A llama is") is None
    lost = reference_render("prefill", ReferenceResult(True, "nothing"), Vocabulary())
    assert (lost.output, lost.error) == ("", NOT_CONTINUED)


def test_a_limit_is_nobodys_failure() -> None:
    serving = serving_of(CHAT)
    limited = {name: ReferenceResult.failed(ErrorKind.LIMIT, "too slow") for name in STANDARD}
    found = reference(standard_renders(Requests(serving.server, NOW), limited))
    assert found.outcome == "not examined"
    ours = standard_renders(Requests(serving.server, NOW, Limits(steps=1)), references_of(serving))
    assert ours[0].error is not None
    assert ours[0].error.startswith("not examined: limit exceeded")
    assert reference(ours).outcome == "not examined"


def test_without_a_reference_nothing_is_said() -> None:
    with pytest.raises(NotExaminedError):
        reference([StandardRender(LLAMA_CPP, "user", "x")])
    assert joined_parts([]) is None


def test_one_conversation() -> None:
    good, other, bad = [
        StandardRender("", "user", text, error) for text, error in (("a", None), ("b", None), ("", "e"))
    ]
    assert [compare(*pair) for pair in ((good, good), (good, other), (bad, good), (good, bad), (bad, bad))] == [
        "equal",
        "differs",
        "only llama.cpp fails",
        "only the reference fails",
        "both fail",
    ]


def test_an_examination_holds_everything() -> None:
    typed = (
        "{% for message in messages %}{% if message.content is string %}{{ message.content }}{% else %}"
        "{% for part in message.content %}[{{ part.text }}]{% endfor %}{% endif %}{% endfor %}"
    )
    serving = serving_of(typed)
    found = examine(serving.server, serving.start, references_of(serving), now=NOW)
    by_key = {behaviour.key: behaviour for behaviour in found.behaviours}
    assert by_key["parts_join"].detail == '"][" · reference "]["'
    assert by_key["reference"].outcome == "equal"
    assert len(found.renders) == 2 * len(STANDARD)
