"""The nine flags of our own templates, as real llama.cpp reports them (`tests/cases/capabilities.json`)."""

from __future__ import annotations

import json

import pytest

from scanner.demo.collection import templates
from scanner.dialect import Template
from scanner.pipeline import analyse_template
from scanner.probe.capabilities import probe
from scanner.probe.profiles import CURRENT
from scanner.results import Outcome
from tests.cases_format import FOLDER

EXPECTED = json.loads((FOLDER.parent / "capabilities.json").read_text(encoding="utf-8"))
SOURCES = templates()


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_flags_are_those_of_the_engine(name: str) -> None:
    expected = EXPECTED[name]
    result = analyse_template(SOURCES[name])
    if "capabilities" in expected:
        assert result.capabilities is not None
        assert result.capabilities.as_llama_cpp() == expected["capabilities"]
    elif "refused" in expected:
        assert result.outcome is Outcome.NOT_PARSEABLE
    else:
        assert result.outcome is Outcome.LIMIT_EXCEEDED


def names(source: str) -> list[str]:
    return [run.name for run in probe(Template(source), CURRENT)[1]]


def test_the_probes_run_in_order_and_two_of_them_only_where_they_apply() -> None:
    always = ["typed_content", "system_role", "tool_object_arguments"]
    rest = ["parallel_tool_calls", "preserve_reasoning", "reasoning_effort"]
    assert names("{{ messages[0].content }}") == [*always, "tool_string_arguments", *rest]
    asks_for_strings = "{% if messages[0].content is string %}{% endif %}"
    assert names(asks_for_strings) == [
        "typed_content",
        "typed_content_empty_array",
        *always[1:],
        "tool_string_arguments",
        *rest,
    ]
    takes_objects = "{{ messages[1].tool_calls[0].function.arguments.arg }}"
    assert names(takes_objects) == [*always, *rest]


def test_a_failed_probe_keeps_its_error_and_what_it_read() -> None:
    _, runs = probe(Template("{{ messages[0].content }}{{ raise_exception('no') }}"), CURRENT)
    run = runs[0]
    assert run.error is not None
    assert (run.ok, run.output, run.error.kind, run.error.line) == (False, "", "raised", 1)
    assert "messages[0].content" in [read.path for read in run.reads]


def test_both_effort_names_are_one_value() -> None:
    capabilities, _ = probe(Template("{{ reasoning_strength }}"), CURRENT)
    assert capabilities.reasoning_effort


def test_probing_stops_at_a_budget() -> None:
    endless = "{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}"
    _, runs = probe(Template(endless), CURRENT)
    assert [run.error.kind for run in runs if run.error is not None] == ["limit"]
    assert len(runs) == 1


def test_every_run_keeps_what_was_sent() -> None:
    _, runs = probe(Template("x"), CURRENT)
    assert all({"messages", "tools", "bos_token"} <= set(run.variables) for run in runs)
    assert runs[-1].variables["reasoning_effort"] == "low"
