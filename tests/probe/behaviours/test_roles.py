"""Messages of unusual roles, or at unusual places."""

from __future__ import annotations

import pytest

from tests.probe.behaviours.helpers import CHAT, KNOWN_ONLY, behaviours, raising

SYSTEM_FIRST = (
    "{% for message in messages if message.role == 'system' %}<s>{{ message.content }}</s>{% endfor %}"
    "{% for message in messages if message.role != 'system' %}<{{ message.role }}>{{ message.content }}{% endfor %}"
)
SYSTEM_LAST = (
    "{% for message in messages if message.role != 'system' %}<{{ message.role }}>{{ message.content }}{% endfor %}"
    "{% for message in messages if message.role == 'system' %}<s>{{ message.content }}</s>{% endfor %}"
)
ONLY_FIRST_SYSTEM = (
    "{% if messages and messages[0].role == 'system' %}{{ messages[0].content }}{% endif %}"
    "{% for message in messages if message.role != 'system' %}<{{ message.role }}>{{ message.content }}{% endfor %}"
)
LAST_TWO = "{% for message in messages[-2:] %}<{{ message.role }}>{{ message.content }}{% endfor %}"
NO_SYSTEM = (
    "{% for message in messages if message.role != 'system' %}<{{ message.role }}>{{ message.content }}{% endfor %}"
)
KNOWS_DEVELOPER = (
    "{# <|channel|> #}"
    + "{% for message in messages if message.role != 'developer' %}{{ message.content }}{% endfor %}"
)


@pytest.mark.parametrize(
    ("key", "template", "outcome", "detail"),
    [
        ("late_system", CHAT, "rendered", "in place"),
        ("late_system", SYSTEM_FIRST, "rendered", "moved to the front"),
        ("late_system", SYSTEM_LAST, "rendered", "moved to the end"),
        ("late_system", LAST_TWO, "rendered", "in place · also lost: first user, first answer"),
        ("late_system", ONLY_FIRST_SYSTEM, "dropped", ""),
        ("two_systems", CHAT, "rendered", "in place"),
        ("two_systems", SYSTEM_LAST, "rendered", "moved to the end"),
        ("two_systems", ONLY_FIRST_SYSTEM, "dropped", "lost: other system"),
        ("system_only", CHAT, "rendered", "in place"),
        ("system_only", NO_SYSTEM, "dropped", ""),
        ("developer", CHAT, "rendered", "in place"),
        ("developer", KNOWS_DEVELOPER, "dropped", ""),
        ("no_user", CHAT, "rendered", "in place"),
        ("no_user", "{{ messages[-1].content }}", "dropped", ""),
        ("same_role_twice", CHAT, "rendered", "users: rendered (in place) · assistants: rendered (in place)"),
        ("unknown_role", CHAT, "rendered", "in place"),
        ("unknown_role", KNOWN_ONLY, "dropped", ""),
        ("orphan_tool_result", CHAT, "rendered", "in place"),
        ("orphan_tool_result", KNOWN_ONLY, "dropped", ""),
    ],
)
def test_a_message_is_found_where_it_lands(key: str, template: str, outcome: str, detail: str) -> None:
    found = behaviours(template)[key]
    assert (found.outcome, found.detail, found.line) == (outcome, detail, None)
    assert found.evidence or key == "system_only"


@pytest.mark.parametrize(
    ("key", "condition"),
    [
        ("late_system", "message.role == 'system' and not loop.first"),
        ("two_systems", "message.role == 'system' and not loop.first"),
        ("system_only", "messages|length == 1 and message.role == 'system'"),
        ("developer", "message.role == 'user' and messages[0].role == 'system' and messages[0].content"),
        ("no_user", "loop.first and message.role == 'assistant'"),
        ("unknown_role", "message.role == 'critic'"),
        ("orphan_tool_result", "message.role == 'tool'"),
    ],
)
def test_an_error_is_told_with_its_line(key: str, condition: str) -> None:
    found = behaviours(raising(condition))[key]
    assert (found.outcome, found.detail, found.line) == ("raises", "Jinja Exception: no, thanks", 2)
    assert "While executing CallExpression at line 2" in found.evidence


def test_the_worse_of_two_pairs_is_the_outcome() -> None:
    condition = "message.role == 'assistant' and loop.previtem and loop.previtem.role == 'assistant'"
    found = behaviours(raising(condition))["same_role_twice"]
    assert (found.outcome, found.line) == ("raises", 2)
    assert found.detail == "users: rendered (in place) · assistants: raises (Jinja Exception: no, thanks)"


def test_one_of_two_in_a_row_may_be_lost() -> None:
    skips = (
        "{% for message in messages %}{% if not (loop.previtem and loop.previtem.role == message.role) %}"
        "<{{ message.role }}>{{ message.content }}{% endif %}{% endfor %}"
    )
    found = behaviours(skips)["same_role_twice"]
    assert found.outcome == "dropped"
    assert found.detail == "users: dropped (lost: next user) · assistants: dropped (lost: next answer)"


def test_a_dump_of_a_message_part_is_no_message() -> None:
    dumps = (
        "{% for message in messages %}{% if message.role == 'critic' %}{{ [{'text': message.content}] | tojson }}"
        "{% else %}{{ message.content }}{% endif %}{% endfor %}"
    )
    assert behaviours(dumps)["unknown_role"].outcome == "dropped"
