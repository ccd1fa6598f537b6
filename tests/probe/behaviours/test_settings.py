"""What is told without putting a request."""

from __future__ import annotations

import pytest

from scanner.chat.handlers import HANDLERS
from scanner.chat.prompt import PromptError
from scanner.chat.start import Start
from scanner.dialect import ErrorKind, RenderError
from scanner.probe.behaviours import OUTCOMES
from scanner.probe.behaviours.base import NotExaminedError
from scanner.probe.behaviours.settings import server_starts
from scanner.results import STOPS_ENGINE
from tests.probe.behaviours.helpers import CHAT, behaviours, raising


def test_a_server_starts() -> None:
    assert behaviours(CHAT)["server_starts"].outcome == "yes"


def test_a_server_does_not_start() -> None:
    found = behaviours(raising("message.content == 'test'"))["server_starts"]
    assert (found.outcome, found.detail, found.line) == ("no", "Jinja Exception: no, thanks", 2)


def test_a_server_that_logs_traces_does_not_start() -> None:
    found = behaviours(raising("message.role == 'system' and message.content"))["server_starts"]
    assert (found.outcome, found.line) == ("yes", 2)
    assert found.detail == "not with -lv 4: Jinja Exception: no, thanks"


def limited(message: str) -> PromptError:
    return PromptError(message, message, run=RenderError(ErrorKind.LIMIT, message, None, None, None, None))


def test_a_budget_of_ours_keeps_no_server_from_starting() -> None:
    with pytest.raises(NotExaminedError):
        server_starts(Start(limited("more than 5 steps"), None, None))
    assert server_starts(Start(None, limited("more than 5 steps"), True)).detail == ""
    assert server_starts(Start(limited(f"it {STOPS_ENGINE}"), None, None)).outcome == "no"


def test_handler() -> None:
    assert behaviours(CHAT)["handler"].outcome == "autoparser"
    signs = " ".join(sign.decode() for sign in HANDLERS[2].present)
    assert behaviours(f"{{# {signs} #}}{CHAT}")["handler"].outcome == HANDLERS[2].name
    assert {handler.name for handler in HANDLERS} < set(OUTCOMES["handler"])


def test_variables_that_no_request_sets() -> None:
    found = behaviours("{% if documents %}\n{{ documents[0] }}{{ title }}{% endif %}" + CHAT)["kwargs"]
    assert (found.outcome, found.detail, found.line) == ("some", "documents (line 1) · title (line 2)", 1)
    assert found.evidence.startswith("1: {% if documents %}\n2: {{ documents[0] }}")


def test_variables_that_requests_set() -> None:
    usual = "{{ bos_token }}{{ tools }}{{ enable_thinking }}{{ reasoning_effort }}{{ clear_thinking }}{{ date_string }}"
    assert behaviours(usual + CHAT)["kwargs"].outcome == "none"


def test_the_schema_of_the_answer_is_set_for_one_handler() -> None:
    template = "{{ response_format }}" + CHAT
    assert behaviours(template)["kwargs"].detail == "response_format (line 1)"
    assert behaviours("{# dsml_token DSML tool_calls #}" + template)["kwargs"].outcome == "none"
