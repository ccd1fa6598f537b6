"""A tool probe that fails runs again with empty reasoning in the assistant messages (found by `tests.differential`)."""

from __future__ import annotations

import pytest

from scanner.dialect import Template
from scanner.probe.capabilities import probe
from scanner.probe.profiles import PROFILES

INSISTS = (
    "{% for m in messages %}{% if m.role == 'assistant' and m.keys()|list|last != 'reasoning_content' %}"
    "{{ raise_exception('no reasoning') }}{% endif %}{% for call in m.tool_calls %}"
    "{{ tools[0].function.name }}{{ call.function.arguments.arg }}{% endfor %}{% endfor %}"
)


def test_the_second_run_counts_and_takes_the_place_of_the_first() -> None:
    flags, runs = probe(Template(INSISTS), PROFILES["b11549"])
    assert (flags.tools, flags.tool_calls, flags.parallel_tool_calls, flags.object_arguments) == (True,) * 4
    tool_runs = [run for run in runs if "tool" in run.name]
    assert [(run.name, run.ok) for run in tool_runs] == [("tool_object_arguments", True), ("parallel_tool_calls", True)]
    messages = tool_runs[0].variables["messages"]
    assert isinstance(messages, list)
    assert [message.get("reasoning_content") for message in messages] == [None, "", None, "", None]


def test_a_second_run_that_fails_too_leaves_no_trace() -> None:
    _, runs = probe(Template("{{ messages[1].content.x + 1 if tools }}"), PROFILES["b11549"])
    failed = [run for run in runs if not run.ok]
    assert [run.name for run in failed] == ["tool_object_arguments", "tool_string_arguments", "parallel_tool_calls"]
    assert "reasoning_content" not in str([run.variables for run in failed])


@pytest.mark.parametrize("profile", ["b10809", "b10229", "b9713"])
def test_older_builds_try_once(profile: str) -> None:
    flags, _ = probe(Template(INSISTS), PROFILES[profile])
    assert not flags.tools
