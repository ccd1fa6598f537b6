"""The page of a template: why each flag is as it is, the annotated source, prompts of both engines, other templates."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from reports import write_report
from reports.words import SCENARIO_TITLES
from scanner.chat.scenarios import SCENARIOS
from scanner.pipeline import analyse_template
from scanner.probe.behaviours import STANDARD
from scanner.results import ProbeRun, StandardRender
from tests.reports.conftest import sha_of
from tests.reports.html_check import Parsed, parse
from tests.store import examples

SOURCE = b"""{%- for m in messages %}
{%- if m.role == 'system' %}
{{- raise_exception('no system message') }}
{%- else %}
{{- '<' + m.role + '>' + m.content }}
{%- endif %}
{%- endfor %}
{%- if tools %}
{{- tools[0].function.name }}
{%- endif %}
"""
VARIANT = SOURCE.replace(b"{%- if tools %}", b"{%- if tools and true %}")
OTHER = b"{# nothing like it #}{{ messages | tojson }}"


@pytest.fixture
def folder(empty_engine: Engine, tmp_path: Path) -> Path:
    """A report of a model with two variants of one template, and a template of another kind."""
    files = [
        examples.with_templates("/models/a.gguf", examples.template(SOURCE), examples.template(VARIANT, "tool_use")),
        examples.with_templates("/models/b.gguf", examples.template(OTHER)),
    ]
    analyses = tuple(analyse_template(source, now=0) for source in (SOURCE, VARIANT, OTHER))
    examples.record(empty_engine, *files, analyses=analyses)
    write_report(empty_engine, tmp_path / "out", now=examples.Clock())
    return tmp_path / "out"


def page_of(folder: Path, source: bytes) -> Path:
    return folder / "templates" / f"{sha_of(source)[:16]}.html"


def data_of(page: Path) -> Any:
    return json.loads(page.with_suffix(".json").read_text())


def text_of(parsed: Parsed) -> str:
    return " ".join("".join(parsed.text).split())


def test_each_flag_unfolds_to_the_probe_that_decided_it_and_to_what_was_printed(folder: Path) -> None:
    data = data_of(page_of(folder, SOURCE))
    claims = {view["claim"]["capability"]: view for view in data["claims"]}
    (probe,) = claims["system_role"]["probes"]
    assert probe["name"] == "system_role"
    assert probe["run"]["error"]["message"] == "Jinja Exception: no system message"
    assert (probe["run"]["error"]["line"], probe["run"]["ok"]) == (3, False)
    assert probe["run"]["conversation"]["messages"][0]["role"] == "system"
    assert {"path": "messages[0].role", "used": True, "ops": [], "place": {"line": 2, "column": 10}} in [
        {**read, "ops": []} for read in probe["run"]["reads"]
    ]
    observed = claims["string_content"]["observed"]
    assert observed["ok"]
    assert [part["text"] for part in observed["parts"] if part["is_input"]] == ["user", "CAPSCAN_FIRST_USER"]


def test_a_probe_is_shown_once_and_every_other_flag_leads_to_it(folder: Path) -> None:
    parsed = parse(page_of(folder, SOURCE))
    data = data_of(page_of(folder, SOURCE))
    shown = [probe["name"] for view in data["claims"] for probe in view["probes"]]
    assert sorted(shown) == sorted(set(data["probes"]))
    assert [name for view in data["claims"] for name in view["elsewhere"]]
    for name in shown:
        assert parsed.ids.count(f"probe-{name}") == 1
        assert f"#probe-{name}" in parsed.values("href")


def test_the_source_says_which_probes_ran_a_line(folder: Path) -> None:
    page = page_of(folder, SOURCE)
    data = data_of(page)
    ran = {line["number"]: line["ran"] for line in data["source"]}
    system = data["probes"].index("system_role")
    assert ran[6] == ran[7] == ran[10] == ""
    assert ran[1] == "1" * len(data["probes"])
    assert ran[3] == "".join("1" if place == system else "0" for place in range(len(data["probes"])))
    assert ran[5][system] == "0"
    words = {gutter["key"]: gutter["words"] for gutter in data["gutters"]}
    assert words[ran[3]] == "run in system_role"
    assert f"g-{ran[3]}" in parse(page).ids


def test_choosing_a_capability_needs_to_know_what_decided_it(folder: Path) -> None:
    parsed = parse(page_of(folder, SOURCE))
    lines = {attributes["id"]: attributes for tag, attributes in parsed.elements if tag == "li" and "id" in attributes}
    assert lines["L3"]["data-for"] == "4"
    reads = [a for tag, a in parsed.elements if tag == "span" and str(a.get("class", "")).startswith("read")]
    name = next(read for read in reads if "tools[0].function.name" in str(read["title"]))
    assert name["data-for"] == "1"


def test_an_analysis_that_does_not_say_which_lines_ran_is_not_shown_as_if_none_did(
    empty_engine: Engine, tmp_path: Path
) -> None:
    made = analyse_template(SOURCE, now=0)
    runs = tuple(replace(run, lines=()) for run in made.probes)
    examples.record(
        empty_engine,
        examples.with_templates("/models/a.gguf", examples.template(SOURCE)),
        analyses=(replace(made, lines=(), probes=runs),),
    )
    write_report(empty_engine, tmp_path / "out", now=examples.Clock())
    page = page_of(tmp_path / "out", SOURCE)
    assert data_of(page)["gutters"] == []
    assert "Which lines ran is not known" in text_of(parse(page))


def test_prompts_stand_side_by_side(empty_engine: Engine, tmp_path: Path) -> None:
    renders = [
        StandardRender(engine, scenario, *said)
        for scenario, ours, reference in (
            ("user", ("<user>hi\n",), ("<user>hi\n",)),
            ("system", ("one\ntwo\nthree",), ("one\ntwo!\nthree",)),
            ("tools", ("", "no tools"), ("tools",)),
            ("turns", ("turns",), ("", "no turns")),
            ("prefill", ("", "no prefill"), ("", "none")),
        )
        for engine, said in (("llama.cpp", ours), ("jinja2", reference))
    ]
    made = replace(analyse_template(SOURCE, now=0), renders=tuple(renders))
    examples.record(
        empty_engine, examples.with_templates("/models/a.gguf", examples.template(SOURCE)), analyses=(made,)
    )
    write_report(empty_engine, tmp_path / "out", now=examples.Clock())
    page = page_of(tmp_path / "out", SOURCE)
    pairs = {pair["scenario"]: pair for pair in data_of(page)["prompts"]}
    assert [(name, pair["word"], pair["equal"]) for name, pair in pairs.items()] == [
        ("user", "equal", True),
        ("system", "differs", False),
        ("tools", "only llama.cpp fails", False),
        ("turns", "only the reference fails", False),
        ("prefill", "both fail", True),
    ]
    assert pairs["system"]["difference"]["difference"]["first"] == {"line": 2, "character": 4}
    parsed = parse(page)
    assert len([tag for tag, _attributes in parsed.elements if tag == "ins"]) == 1
    assert "1 line differs, first at 2:4" in text_of(parsed)


def test_what_is_sent_in_a_standard_conversation_is_told_in_its_own_words() -> None:
    assert {name: SCENARIOS[name].about for name in STANDARD} == SCENARIO_TITLES


def test_the_variants_of_a_file_are_compared(folder: Path) -> None:
    parsed = parse(page_of(folder, SOURCE))
    (address,) = {link for link in parsed.values("href") if link.startswith("../compare/")}
    compared = folder / "templates" / address
    data = data_of(compared)
    assert (data["left"]["variant"], data["right"]["variant"]) == ("default", "tool_use")
    assert data["relation"].startswith("variants default and tool_use of a.gguf, ")
    source = data["source"]["difference"]
    assert (source["changed"], source["first"]) == (1, {"line": 8, "character": 14})
    assert data["behaviours"] == []
    assert f"{data['behaviours_alike']} behaviours are the same" in text_of(parse(compared))
    assert not [link for link in parse(page_of(folder, OTHER)).values("href") if "compare" in link]


def test_families_say_in_which_flags_their_templates_differ(folder: Path) -> None:
    page = folder / "families.html"
    (group,) = data_of(page)["groups"]
    assert [member["template"]["variant"] for member in group["members"]] == ["default", "tool_use"]
    assert group["differ"] == []
    assert "All have the same flags." in text_of(parse(page))
    (address,) = {link for link in parse(page).values("href") if link.startswith("compare/")}
    assert (folder / address).is_file()


def test_a_template_that_took_anothers_place_is_compared_with_it(empty_engine: Engine, tmp_path: Path) -> None:
    first = examples.with_templates("/models/a.gguf", examples.template(SOURCE))
    second = examples.with_templates("/models/a.gguf", examples.template(OTHER), fingerprint="2")
    examples.record(empty_engine, first, analyses=(analyse_template(SOURCE, now=0),))
    examples.record(empty_engine, second, analyses=(analyse_template(OTHER, now=0),))
    write_report(empty_engine, tmp_path / "out", now=examples.Clock())
    (page,) = (tmp_path / "out" / "compare").glob("*.html")
    data = data_of(page)
    assert data["relation"].startswith("the right one took the place of the left one since the scan before")
    assert (data["left"]["page"], data["right"]["page"]) == (None, sha_of(OTHER)[:16])
    assert "in no file now" in text_of(parse(page))
    assert data["behaviours"]


def test_an_output_of_megabytes_is_cut_and_says_so(empty_engine: Engine, tmp_path: Path) -> None:
    made = analyse_template(SOURCE, now=0)
    long = ProbeRun("typed_content", True, "x" * 100_000, lines=made.probes[0].lines)
    examples.record(
        empty_engine,
        examples.with_templates("/models/a.gguf", examples.template(SOURCE)),
        analyses=(replace(made, probes=(long, *made.probes[1:])),),
    )
    write_report(empty_engine, tmp_path / "out", now=examples.Clock())
    assert "… 60,000 more characters, not shown." in text_of(parse(page_of(tmp_path / "out", SOURCE)))
