"""One template → its analysis: what a server would make of it at its start, and what the patches of llama.cpp do."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from scanner import oracle
from scanner.answers import CHATML_START
from scanner.chat.selection import CHATML
from scanner.demo import collection
from scanner.dialect import Limits
from scanner.export import template_document
from scanner.pipeline import analyse_template, not_examined
from scanner.probe.profiles import CURRENT, PROFILES
from scanner.results import ChatTemplate, Outcome, RunError, StartCheck
from tests.regenerate import CAPABILITIES
from tests.shared_data import shared_path

PLAIN = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
RAISES = PLAIN + "{% if enable_thinking and messages|length == 1 %}\n  {{ raise_exception('no thoughts') }}{% endif %}"
NO_ANSWERS = PLAIN + "{% for m in messages if m.role == 'assistant' %}{{ raise_exception('no answers') }}{% endfor %}"
MESSAGE = "Jinja Exception: no thoughts"


def start_of(source: str | bytes) -> StartCheck | None:
    source = source.encode() if isinstance(source, str) else source
    return analyse_template(source, now=0).server_start


# -- whether a server starts


def test_a_server_starts_with_a_plain_template() -> None:
    assert start_of(PLAIN) == StartCheck(ok=True, enable_thinking=False)


def test_a_conversation_that_fails_keeps_it_from_starting() -> None:
    found = start_of(RAISES)
    assert found is not None
    error = RunError("raised", MESSAGE, "CallExpression", RAISES.index("('no"), 3, 21)
    assert found == StartCheck(ok=False, conversation="thinking", error=error, log=found.log)
    assert (found.log or "").startswith("Unable to generate parser for this template.")
    assert (found.log or "").endswith(f"Error: {MESSAGE}")


def test_the_conversation_of_its_log_does_so_only_where_it_is_logged() -> None:
    found = start_of(NO_ANSWERS)
    assert found is not None
    assert found.error is not None
    assert (found.ok, found.enable_thinking, found.conversation) == (True, False, "example")
    assert found.error.message == "Jinja Exception: no answers"
    both = start_of(RAISES + NO_ANSWERS)
    assert both is not None
    assert (both.ok, both.conversation) == (False, "thinking")


@pytest.mark.skipif(bool(oracle.available()), reason=oracle.available() or "")
def test_the_engine_refuses_in_the_same_words() -> None:
    asked = (PLAIN, RAISES, RAISES + "{# <|channel|> #}", NO_ANSWERS)
    plain, *raising, logged = oracle.ask_all([oracle.Question(source.encode()) for source in asked])
    assert plain.started
    assert [(answer.started, answer.reason) for answer in raising] == [
        (False, found.log) for found in map(start_of, asked[1:3]) if found is not None
    ]
    # At its default verbosity the server does not render what it would not log.
    assert logged.started


def test_what_does_not_parse_keeps_it_from_starting_and_is_told_once() -> None:
    result = analyse_template(b"a\n{% raw %}", now=0)
    assert result.start is None
    error = RunError("parser", "Unknown statement: raw", offset=5, line=2, column=4)
    assert result.server_start == StartCheck(ok=False, error=error)


def test_a_budget_that_runs_out_at_the_start_is_no_verdict() -> None:
    for content, start in (("test", None), ("Hi there", StartCheck(ok=True, enable_thinking=False))):
        slow = PLAIN + "{% if messages[-1].content == 'CONTENT' or messages[2].content == 'CONTENT' %}"
        slow = slow.replace("CONTENT", content) + "{% for a in range(5000) %}x{% endfor %}{% endif %}"
        assert start_of(slow) == StartCheck(ok=True, enable_thinking=False)
        result = analyse_template(slow.encode(), now=0, limits=replace(Limits(), steps=4000))
        assert result.outcome is Outcome.ANALYSED
        assert result.server_start == start


def test_a_crash_at_the_start_is_one() -> None:
    found = start_of(PLAIN + "{% if messages[0].content == 'test' %}{{ 1 is divisibleby(0) }}{% endif %}")
    assert found is not None
    assert (found.ok, found.log) == (False, None)
    assert found.error is not None
    assert "division by zero" in found.error.message


def test_a_template_may_insist_on_tokens() -> None:
    insists = PLAIN + "{% if not bos_token or not eos_token %}{{ raise_exception('no tokens') }}{% endif %}"
    assert start_of(insists) == StartCheck(ok=True, enable_thinking=False)


@pytest.mark.parametrize("profile", [name for name in PROFILES if name != CURRENT.name])
def test_what_an_older_build_renders_at_its_start_is_not_examined(profile: str) -> None:
    assert analyse_template(RAISES.encode(), profile=profile, now=0).server_start is None
    # Its parser is the same.
    broken = analyse_template(b"{% raw %}", profile=profile, now=0).server_start
    assert broken is not None
    assert not broken.ok


def test_where_nothing_is_known_nothing_is_said() -> None:
    assert not_examined("0" * 64, CURRENT.name, "took too long").server_start is None
    assert start_of("chatml") is None


def test_chatml_starts() -> None:
    assert start_of(CHATML) == CHATML_START


def test_thinking_is_on_for_a_handler_and_for_a_template_that_ends_differently() -> None:
    handler = start_of(PLAIN + "{# <|channel|> #}")
    switch = start_of(PLAIN + "assistant{% if not enable_thinking %}<think></think>{% endif %}")
    assert handler == switch == StartCheck(ok=True, enable_thinking=True)


def test_the_document_tells_of_it() -> None:
    def document(source: str) -> object:
        template = ChatTemplate("default", source.encode(), "")
        return template_document(template, "x", analyse_template(template.source, now=0))["start"]

    nothing = {"conversation": None, "message": None, "line": None, "column": None}
    assert document(PLAIN) == {"ok": True, **nothing, "enable_thinking": False}
    assert document(RAISES) == {
        "ok": False,
        "conversation": "thinking",
        "message": MESSAGE,
        "line": 3,
        "column": 21,
        "enable_thinking": None,
    }
    unparsed = {"message": "Unknown statement: raw", "line": 1, "column": 4, "enable_thinking": None}
    assert document("{% raw %}") == {"ok": False, "conversation": None, **unparsed}
    assert document("chatml") is None


def test_demo_templates_start_where_the_engine_does() -> None:
    expected = json.loads(CAPABILITIES.read_text(encoding="utf-8"))
    for name, source in collection.templates().items():
        if "excluded" not in expected[name]:
            found = start_of(source)
            assert found is not None
            assert found.ok is ("capabilities" in expected[name]), name


def test_real_templates_start_where_the_engine_does() -> None:
    folder = shared_path("corpus", "templates")
    wrong = set()
    for line in shared_path("golden", "prompts.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        found = start_of((folder / record["template"]).read_bytes())
        assert found is not None, record["template"]
        if found.ok is not (record["prompts"] is not None):
            wrong.add(record["template"])
    assert wrong == set()


# -- patched text


def test_what_stands_behind_a_nul_is_never_seen() -> None:
    result = analyse_template(PLAIN.encode() + b"\0{% raw %}<|channel|>", now=0)
    assert result.outcome is Outcome.ANALYSED
    assert result.handler == "autoparser"
    assert result.probes
