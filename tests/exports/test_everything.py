"""JSON of everything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scanner.cli import run
from scanner.exports import everything
from scanner.exports.state import State, read_state
from scanner.silence import Silences
from tests.nights import TOOLS, Nights, without_flag


def whole(nights: Nights, state: State) -> Any:
    return json.loads("".join(everything.document(nights.engine, state, "0.1.0")))


def test_it_has_every_file_and_template(nights: Nights, state: State) -> None:
    document = whole(nights, state)
    assert document["scan"]["id"] == 1
    names = [Path(file["path"]).name for file in document["files"]]
    assert len(names) == len(set(names)) == 7
    held = {variant["sha256"] for file in document["files"] for variant in file["variants"]} - {None}
    assert {template["sha256"] for template in document["templates"]} == held
    tools = next(template for template in document["templates"] if template["text"] == TOOLS)
    assert tools["capabilities"]["supports_tools"] is True
    assert tools["observed"]["tools"]["verdict"] is True
    assert [Path(place["path"]).name for place in tools["held_by"]] == ["m.gguf"]
    assert {"probes", "findings", "behaviours", "efforts"} <= tools.keys()


def test_lines_say_the_same(nights: Nights, state: State) -> None:
    document = whole(nights, state)
    objects = [json.loads(line) for line in "".join(everything.lines(nights.engine, state, "0.1.0")).splitlines()]
    assert [one["kind"] for one in objects] == ["scan", *["file"] * 7, *["template"] * len(document["templates"])]
    assert [one for one in objects if one.pop("kind") == "file"] == document["files"]


def test_an_old_scan_is_judged_as_it_was(tmp_path: Path) -> None:
    nights = Nights(tmp_path)
    nights.write("a.jinja", TOOLS)
    nights.scan()
    nights.scan(version="0.2.0", judge=without_flag("tools"))
    told = []
    for scan in (1, 2):
        (template,) = whole(nights, read_state(nights.engine, scan, Silences("/")))["templates"]
        told.append((template["capscan_version"], template["capabilities"]["supports_tools"]))
    assert told == [("0.1.0", True), ("0.2.0", False)]


def test_the_command(nights: Nights, capsys: pytest.CaptureFixture[str]) -> None:
    for form in ("json", "jsonl"):
        assert run(["export", form, "--db", str(nights.database)]) == 0
        out = capsys.readouterr().out
        assert out.isascii()
        first = out if form == "json" else out.splitlines()[0]
        assert json.loads(first)["scan"]["id"] == 1


def test_without_a_finished_scan(tmp_path: Path) -> None:
    nights = Nights(tmp_path)
    assert run(["export", "json", "--db", str(nights.database)]) == 2
