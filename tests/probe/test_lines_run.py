"""Which lines of a template each claimed probe ran, in the text that a person can look up."""

from __future__ import annotations

import pytest

from scanner.chat.patches import PATCHES, patch
from scanner.dialect import Template
from scanner.export import template_document
from scanner.pipeline import analyse_template
from scanner.probe.capabilities import probe
from scanner.probe.profiles import CURRENT, PROFILES
from scanner.results import ChatTemplate, Outcome, TemplateResult

SOURCE = b"""{# roles #}
{% for m in messages %}
  {% if m.role == 'system' %}
    {{ m.content }}
  {% elif m.role == 'critic' %}
    critic
  {% elif m.tool_calls %}
    {{ raise_exception('no calls') }}
    after
  {% endif %}
{% endfor %}
"""
HEADS, CALLS = {2, 3, 5, 7}, {8}


def lines_of(result: TemplateResult) -> dict[str, set[int]]:
    return {run.name: set(run.lines) for run in result.probes}


@pytest.mark.parametrize("profile", PROFILES)
def test_every_probe_of_an_analysis_tells_its_lines(profile: str) -> None:
    result = analyse_template(SOURCE, profile=profile, now=0)
    assert result.lines == (2, 3, 4, 5, 6, 7, 8, 9)
    lines = lines_of(result)
    assert lines["typed_content"] == HEADS
    assert lines["system_role"] == HEADS | {4}
    assert lines["parallel_tool_calls"] == HEADS | CALLS
    assert {6, 9}.isdisjoint(set().union(*lines.values()))


def test_flags_alone_are_found_without_them() -> None:
    _, runs = probe(Template(SOURCE), CURRENT, now=0)
    assert {run.lines for run in runs} == {()}


def test_of_other_runs_none_are_kept() -> None:
    result = analyse_template(SOURCE, now=0)
    assert {one.run.lines for one in result.observations if one.run is not None} == {()}


def test_patches_keep_the_lines() -> None:
    """The patched line never holds, so what is in it is run as published only."""
    first, _ = PATCHES
    inside = (
        b"{% set message = {'content': '<|channel|>analysis<|message|>'} %}\n" + first.line + b"\n  once\n{% endif %}\n"
    )
    source = SOURCE + inside
    assert patch(source).names == (first.name,)
    result = analyse_template(source, now=0)
    assert result.lines == Template(source).lines == Template(patch(source).source).lines
    assert {12, 13, 14} <= lines_of(result)["typed_content"]


def test_behind_a_nul_there_are_lines_where_the_text_as_published_runs() -> None:
    behind = SOURCE + b"\0\n{{ messages[0].role }}\n"
    assert analyse_template(behind, now=0).lines == Template(behind).lines
    assert analyse_template(SOURCE + b"\0\n{% raw %}\n", now=0).lines == Template(SOURCE).lines
    reads_more = SOURCE + b"\0\n{{ messages[1].reasoning_content }}\n"
    assert analyse_template(reads_more, now=0).lines == Template(SOURCE).lines


@pytest.mark.parametrize("source", [b"{% raw %}", b"chatml", b""])
def test_without_probes_there_are_none(source: bytes) -> None:
    result = analyse_template(source, now=0)
    assert (result.probes, result.lines) == ((), ())


def test_a_budget_that_runs_out_keeps_them() -> None:
    result = analyse_template(
        b"a\n{% for i in range(9000) %}{% for j in range(9000) %}\nb\n{% endfor %}{% endfor %}\nc", now=0
    )
    assert result.outcome is Outcome.LIMIT_EXCEEDED
    assert result.lines == (1, 2, 3, 5)
    assert [run.lines for run in result.probes] == [(1, 2, 3)]


def test_the_document_that_other_tools_read_is_as_before() -> None:
    template = ChatTemplate("default", SOURCE, "")
    document = template_document(template, "x", analyse_template(SOURCE, now=0))
    assert "lines" not in document
    probes = document["probes"]
    assert isinstance(probes, list)
    assert {tuple(run) for run in probes} == {("name", "ok", "output", "error", "reads")}
