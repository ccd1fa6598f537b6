"""White space, parts, and the content of a call."""

from __future__ import annotations

import pytest

from scanner.probe.behaviours.asking import Requests
from scanner.probe.behaviours.content import parts_join
from tests.probe.behaviours.helpers import CALLS, CHAT, KNOWN_ONLY, NOW, behaviours, raising, serving_of

TRIMS_USERS = CHAT.replace("message.content", "(message.content | trim if message.role == 'user' else message.content)")
TRIMS_ONE_END = CHAT.replace("message.content", "message.content.rstrip()")
JSON_CONTENT = CHAT.replace("message.content", "message.content | tojson")


@pytest.mark.parametrize(
    ("template", "outcome", "detail"),
    [
        (CHAT, "kept", "system kept · user kept · assistant kept · tool kept"),
        (JSON_CONTENT, "kept", "system kept · user kept · assistant kept · tool kept"),
        (TRIMS_USERS, "trimmed", "system kept · user trimmed · assistant kept · tool kept"),
        (
            TRIMS_ONE_END,
            "trimmed",
            "system trimmed right · user trimmed right · assistant trimmed right · tool trimmed right",
        ),
        (
            CHAT.replace("message.content", "message.content.lstrip()"),
            "trimmed",
            "system trimmed left · user trimmed left · assistant trimmed left · tool trimmed left",
        ),
        (KNOWN_ONLY, "kept", "system kept · user kept · assistant kept · tool dropped"),
        (
            raising("message.role == 'tool' or message.role == 'system' and message.content"),
            "kept",
            "system raises · user kept · assistant kept · tool raises",
        ),
        ("nothing at all", "dropped", "system dropped · user dropped · assistant dropped · tool dropped"),
        (
            raising("message.content != 'test' and message.role != 'critic'"),
            "raises",
            "system raises · user raises · assistant raises · tool raises",
        ),
    ],
)
def test_white_space(template: str, outcome: str, detail: str) -> None:
    found = behaviours(template)["white_space"]
    assert (found.outcome, found.detail) == (outcome, detail)


def test_white_space_of_a_template_that_llama_cpp_trims_for() -> None:
    sign = "{# You have access to the following functions in JSONSchema format #}"
    assert behaviours(sign + CHAT)["white_space"].outcome == "trimmed"


TYPED = (
    "{% for message in messages %}{% if message.content is string %}{{ message.content }}{% else %}"
    "{% for part in message.content %}{{ part.text }}SEPARATOR{% endfor %}{% endif %}{% endfor %}"
)


@pytest.mark.parametrize(
    ("template", "outcome", "detail"),
    [
        (CHAT, "newline", '"\\n"'),
        (TYPED.replace("SEPARATOR", ""), "nothing", '""'),
        (TYPED.replace("SEPARATOR", " "), "space", '" "'),
        (TYPED.replace("SEPARATOR", "\n\n"), "blank line", '"\\n\\n"'),
        (TYPED.replace("SEPARATOR", ";"), "other", '";"'),
        (
            TYPED.replace("{{ part.text }}SEPARATOR", "{{ part | tojson }}"),
            "dumped",
            '"\\"}{\\"type\\": \\"text\\", \\"text\\": \\""',
        ),
        ("{{ messages[0].role }}", "dropped", ""),
    ],
)
def test_parts_join(template: str, outcome: str, detail: str) -> None:
    found = behaviours(template)["parts_join"]
    assert (found.outcome, found.detail) == (outcome, detail)


def test_parts_join_raises() -> None:
    found = behaviours(raising("'LEFT' in message.content"))["parts_join"]
    assert (found.outcome, found.detail, found.line) == ("raises", "Jinja Exception: no, thanks", 2)


def test_parts_join_quotes_the_reference() -> None:
    requests = Requests(serving_of(CHAT).server, NOW)
    assert parts_join(requests, "").detail == '"\\n" · reference ""'


CONTENT_OR_CALL = (
    "{% for message in messages %}{% if message.role == 'assistant' and message.content is none %}"
    "{% for call in message.tool_calls %}{{ call.function.arguments | tojson }}{% endfor %}"
    "{% else %}{{ message.content }}{% endif %}{% endfor %}"
)


@pytest.mark.parametrize(
    ("template", "outcome", "detail"),
    [
        (
            CALLS.replace("%s", "{{ call.function.arguments | tojson }}"),
            "same",
            "absent: call printed · null: call printed · empty: call printed",
        ),
        (CHAT, "same", "absent: call lost · null: call lost · empty: call lost"),
        (CONTENT_OR_CALL, "different", "absent: call lost · null: call printed · empty: call lost"),
        (
            CHAT.replace("{{ message.content }}", "{{ message.content | length }}"),
            "raises",
            "absent: call lost · null: raises (Unknown (built-in) filter 'length' for type None) · empty: call lost",
        ),
        (raising("message.role == 'tool'"), "same", "absent: call lost · null: call lost · empty: call lost"),
        (
            raising("message.role == 'assistant' and message.tool_calls"),
            "raises",
            " · ".join([f"{name}: raises (Jinja Exception: no, thanks)" for name in ("absent", "null", "empty")]),
        ),
    ],
)
def test_null_content_call(template: str, outcome: str, detail: str) -> None:
    found = behaviours(template)["null_content_call"]
    assert (found.outcome, found.detail) == (outcome, detail)
    assert (found.line is not None) is (outcome == "raises")
