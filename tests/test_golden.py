"""Held against what the real engine answered (`golden/` of the shared data, skipped where that is absent)."""

from __future__ import annotations

import json
import lzma
import os
import re
import time
from collections.abc import Iterator

import pytest

from scanner.dialect import Template, TemplateSyntaxError
from scanner.pipeline import analyse_template
from scanner.results import Outcome, ProbeRun, TemplateResult
from tests.shared_data import shared_path

CPP_TYPE = re.compile(r"expected value of type \S+, got")
WRAPPED = re.compile(r"\A\nError executing (\w+) at position (\d+): (.*)\Z", re.DOTALL)


@pytest.fixture(autouse=True)
def utc() -> Iterator[None]:
    """The golden runs had their clock at 0 in UTC."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "UTC"
    time.tzset()
    yield
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


def plain(text: str) -> str:
    return CPP_TYPE.sub("expected value of another type, got", text)


def render(source: str) -> dict[str, str]:
    try:
        result = Template(source).run({}, now=0)
    except TemplateSyntaxError as error:
        return {"parse_error": error.engine_text}
    if result.error is not None:
        return {"error": plain(result.error.engine_text)}
    return {"output": result.output.decode("utf-8", "replace")}


def test_every_snippet_gives_the_engines_output_or_error() -> None:
    differing = []
    for line in shared_path("golden", "snippets.jsonl").read_text(encoding="utf-8").splitlines():
        wanted = json.loads(line)
        source = wanted.pop("template")
        found = render(source)
        if found != {kind: plain(text) for kind, text in wanted.items()}:
            differing.append((source, wanted, found))
    assert differing == []


def compared(result: TemplateResult) -> dict[str, object]:
    if result.parse_error is not None:
        return {"parse_error": True}
    assert result.capabilities is not None
    return {"caps": result.capabilities.as_llama_cpp(), "probes": [compared_run(run) for run in result.probes]}


def compared_run(run: ProbeRun) -> dict[str, object]:
    error = None if run.error is None else (run.error.node, run.error.offset, plain(run.error.message))
    reads = {read.path: (read.used, read.ops) for read in run.reads}
    return {"probe": run.name, "ok": run.ok, "output": run.output, "error": error, "reads": reads}


def golden(record: dict[str, object]) -> dict[str, object]:
    if "parse_error" in record:
        return {"parse_error": True}
    probes = record["probes"]
    assert isinstance(probes, list)
    return {"caps": record["caps"], "probes": [golden_run(run) for run in probes]}


def golden_run(run: dict[str, object]) -> dict[str, object]:
    text = str(run.get("error", ""))
    found = WRAPPED.match(text)
    error = (found[1], int(found[2]), plain(found[3])) if found else (None, None, plain(text))
    stats = run["stats"]
    assert isinstance(stats, dict)
    reads = {path: (marks["used"], tuple(marks["ops"])) for path, marks in stats.items()}
    ok = bool(run["ok"])
    return {
        "probe": run["probe"],
        "ok": ok,
        "output": run.get("output", ""),
        "error": None if ok else error,
        "reads": reads,
    }


def test_every_real_template_gives_the_engines_flags_and_traces() -> None:
    folder = shared_path("corpus", "templates")
    for line in shared_path("golden", "traces.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        result = analyse_template((folder / record["template"]).read_bytes(), now=0)
        assert result.sha256 == record["sha256"]
        assert compared(result) == golden(record), record["template"]


def test_every_mutant_gives_the_engines_flags_and_traces() -> None:
    with lzma.open(shared_path("golden", "mutants.jsonl.xz"), "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            result = analyse_template(record["source"].encode(), now=0)
            assert compared(result) == golden(record), record["template"]
            assert result.outcome is (Outcome.NOT_PARSEABLE if "parse_error" in record else Outcome.ANALYSED)
