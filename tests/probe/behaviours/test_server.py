"""The same judges on our prompts and on those of the real llama.cpp (`tests/behaviour_oracle.py`)."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from scanner import oracle
from scanner.chat.handlers import HANDLERS
from scanner.probe.behaviours import JUDGES
from tests import behaviour_oracle
from tests.probe.behaviours import helpers, test_content, test_history, test_roles, test_thinking, test_tokens
from tests.prompt_cases import signs_of

pytestmark = pytest.mark.skipif(oracle.available() is not None, reason=str(oracle.available()))

OWN = {
    "chat": helpers.CHAT,
    "system first": test_roles.SYSTEM_FIRST,
    "system last": test_roles.SYSTEM_LAST,
    "raises": helpers.raising("message.role in ['tool', 'critic']"),
    "typed": test_content.TYPED,
    "drops old thoughts": test_history.LAST_USER + test_history.DROPS_OLD,
    "thinks": test_thinking.THINKS,
    "adds": test_tokens.ADDS,
    "dated": "{{ strftime_now('%Y-%m-%d') }}" + helpers.CHAT,
    "does not start": helpers.raising("message.content == 'test'"),
}


@pytest.fixture(autouse=True)
def _in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC0")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_a_real_server_is_judged_alike() -> None:
    templates = {name: source.encode() for name, source in OWN.items()}
    templates |= {handler.name: signs_of(handler) + helpers.CHAT.encode() for handler in HANDLERS[:2]}
    report = behaviour_oracle.examine(templates)
    assert [line for line in report.lines() if line.startswith(" ")] == []
    assert len(report.pairs) == (len(JUDGES) + 1) * (len(templates) - 1) + 1
