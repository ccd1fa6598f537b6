"""How arguments are written."""

from __future__ import annotations

import pytest

from tests.probe.behaviours.helpers import CALLS, CHAT, behaviours, raising

LOOP = "{% for key, value in call.function.arguments.items() %}BODY{% endfor %}"
ARGUMENTS = "call.function.arguments"


@pytest.mark.parametrize(
    ("printing", "detail"),
    [
        (
            f"{{{{ {ARGUMENTS} | tojson if {ARGUMENTS} is mapping else {ARGUMENTS} }}}}",
            "json · keys kept · non-ASCII kept · string as is · null null · number 1.5",
        ),
        (
            f"{{{{ raise_exception('text!') if {ARGUMENTS} is mapping }}}}{{{{ {ARGUMENTS} | tojson }}}}",
            "json · keys kept · non-ASCII kept · string double-encoded · null null · number 1.5",
        ),
        (
            LOOP.replace("BODY", "<p name={{ key }}>{{ value if value is string else value | tojson }}</p>"),
            "xml · keys kept · non-ASCII kept · string as is · null null · number 1.5",
        ),
        (
            LOOP.replace("BODY", "<k>{{ key }}</k><v>{{ value | tojson }}</v>"),
            "xml · keys kept · non-ASCII kept · string as is · null null · number 1.5",
        ),
        (
            LOOP.replace("BODY", "<p name={{ key }}>{{ value | string }}</p>"),
            "xml · keys kept · non-ASCII kept · string as is · null None · number 1.5",
        ),
        (
            LOOP.replace("BODY", "'{{ key }}': {{ value | tojson }}, "),
            "python · keys kept · non-ASCII kept · string as is · null null · number 1.5",
        ),
        (
            LOOP.replace("BODY", "{{ key }}={{ value | tojson }}, "),
            "other · keys kept · non-ASCII kept · string as is · null null · number 1.5",
        ),
        (
            LOOP.replace(".items()", " | dictsort").replace("BODY", "{{ key }}={{ value | tojson }}, "),
            "other · keys sorted · non-ASCII kept · string as is · null null · number 1.5",
        ),
        (
            LOOP.replace("BODY", "{{ key }}={{ value | tojson(ensure_ascii=true) }}, "),
            "other · keys kept · non-ASCII escaped · string as is · null null · number 1.5",
        ),
        (
            LOOP.replace("BODY", "{{ key }}={{ value }}, "),
            "other · keys lost · non-ASCII kept · string as is · null lost · number lost",
        ),
    ],
)
def test_arguments(printing: str, detail: str) -> None:
    found = behaviours(CALLS.replace("%s", printing))["arguments"]
    assert found.detail == detail
    assert found.outcome == detail.partition(" ")[0]
    assert "CAPSCAN_VALUE" in found.evidence


def test_arguments_that_are_not_printed() -> None:
    found = behaviours(CHAT)["arguments"]
    assert (found.outcome, found.detail) == ("nothing", "nothing")


def test_arguments_of_a_template_that_raises() -> None:
    found = behaviours(raising("message.role == 'tool'"))["arguments"]
    assert (found.outcome, found.detail, found.line) == ("raises", "Jinja Exception: no, thanks", 2)
