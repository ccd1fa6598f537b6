"""Requests are put as a server would, none twice, and none for ever."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

import pytest

from scanner.chat.parts import common_prefix
from scanner.dialect import Limits, RenderResult, Template
from scanner.probe.behaviours import JUDGES, NOT_EXAMINED, OUTCOMES, Requests, behave
from scanner.probe.behaviours.asking import PATIENCE, RememberingTemplate
from scanner.probe.behaviours.base import MAX_EVIDENCE, NotExaminedError, excerpt, quoted
from scanner.probe.behaviours.conversations import INQUIRIES, LATE_SYSTEM, SECOND_TURN, USER
from scanner.rendering import bare_template
from scanner.results import STOPS_ENGINE, ChatTemplate
from scanner.serving import serve
from tests.probe.behaviours.helpers import CALLS, CHAT, NOW, behaviours, serving_of


def test_no_render_is_made_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    run = Template.run

    def counting(
        self: Template,
        variables: Mapping[str, object],
        *,
        statistics: bool = True,
        mark_input: bool = True,
        now: float | datetime | None = None,
        limits: Limits | None = None,
    ) -> RenderResult:
        data = {name: value for name, value in variables.items() if name not in ("bos_token", "eos_token")}
        seen.append(repr((data, now)))
        return run(self, variables, statistics=statistics, mark_input=mark_input, now=now, limits=limits)

    serving = serving_of(CHAT)
    monkeypatch.setattr(Template, "run", counting)
    behave(Requests(serving.server, NOW), serving.start, ())
    assert len(seen) == len(set(seen))
    assert len(seen) < 2 * len(INQUIRIES)


def test_what_is_remembered_depends_on_variables_and_clock() -> None:
    template = RememberingTemplate(Template("{{ a }}{{ strftime_now('%Y') }}"))
    assert template.run({"a": 1}, now=0).output == b"11970"
    assert template.run({"a": 2}, now=0).output == b"21970"
    assert template.run({"a": 1}, now=NOW).output == b"12026"
    assert template.run({"a": 1}, now=0) is template.run({"a": 1}, now=0)


def test_inquiries_have_names_of_their_own() -> None:
    assert len({inquiry.name for inquiry in INQUIRIES}) == len(INQUIRIES)


def test_a_limit_is_not_examined() -> None:
    found = behaviours(CHAT, limits=Limits(steps=1))
    untouched = {"server_starts", "kwargs", "handler"}
    for key, behaviour in found.items():
        assert (behaviour.outcome == NOT_EXAMINED) is (key not in untouched), key
    assert found["late_system"].detail == "limit exceeded: more than 1 steps"


def test_patience_ends() -> None:
    requests = Requests(serving_of(CHAT).server, NOW, Limits(steps=1))
    for inquiry in (USER, LATE_SYSTEM):
        with pytest.raises(NotExaminedError, match="limit exceeded"):
            requests.ask(inquiry)
    with pytest.raises(NotExaminedError, match=f"not tried: {PATIENCE} requests"):
        requests.ask(SECOND_TURN)


def test_what_ends_llama_cpp_itself_is_its_failure() -> None:
    crash = "{% if messages[0].role == 'assistant' %}{{ 1 is divisibleby(0) }}{% endif %}" + CHAT
    found = behaviours(crash)["no_user"]
    assert found.outcome == "raises"
    assert STOPS_ENGINE in found.detail


def test_requests_with_tools_go_to_the_template_for_tools() -> None:
    default = bare_template(CHAT.encode())
    source = CALLS.replace("%s", "{{ call.function.arguments | tojson }}").encode()
    result = replace(default, templates=(*default.templates, ChatTemplate("tool_use", source, "test")))
    serving = serve(result, now=NOW)
    found = {one.key: one for one in behave(Requests(serving.server, NOW), serving.start, ())}
    assert found["arguments"].outcome == "json"
    assert found["null_content_call"].detail.startswith("absent: call printed")
    assert found["kwargs"].outcome == "none"


def test_every_key_comes_in_the_order_of_the_table() -> None:
    found = behaviours(CHAT)
    assert list(found) == list(OUTCOMES)
    assert len(OUTCOMES) == 24
    assert set(JUDGES) < set(OUTCOMES)
    for key, outcomes in OUTCOMES.items():
        assert outcomes[-1] == NOT_EXAMINED
        assert len(set(outcomes)) == len(outcomes)
        assert found[key].outcome in outcomes


def test_evidence_is_cut_around_its_place() -> None:
    text = "a" * 3000 + "X" + "b" * 3000
    assert len(excerpt(text, 3000)) == MAX_EVIDENCE
    assert "X" in excerpt(text, 3000)
    assert excerpt(text).startswith("aaa")
    assert excerpt(text, 6001).endswith("b")
    assert excerpt("short", 3) == "short"
    assert quoted('a"b' + "c" * 99).endswith('…"')


@pytest.mark.parametrize(
    ("one", "other", "size"),
    [(b"", b"a", 0), (b"abc", b"abc", 3), (b"abc", b"abd", 2), (b"ab", b"abc", 2), (b"x", b"y", 0)],
)
def test_common_prefix(one: bytes, other: bytes, size: int) -> None:
    assert common_prefix(one, other) == size
