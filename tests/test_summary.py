"""The summary of a scan, and what `show` says of a file and of a template."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import click
import pytest
from sqlalchemy import Engine

from scanner.console import WIDTH
from scanner.pipeline import analyse_template
from scanner.results import ChatTemplate, Observation, Severity, TemplateResult
from scanner.store import migrate
from scanner.store.session import open_database
from scanner.summary import read_summary, show_file, show_template, summary_document, summary_lines
from tests.store import examples

PLAIN = b"{% for m in messages %}{{ m.content }}{% endfor %}"
FAILS = PLAIN + b"\n{% if enable_thinking and messages|length == 1 %}{{ raise_exception('no\\nthoughts') }}{% endif %}"
BROKEN = b"{% raw %}"
THINKS = PLAIN + b"{% if enable_thinking %}<think>{% endif %}"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    opened = open_database(str(tmp_path / "c.db"))
    migrate.ensure_current(opened, create=True)
    yield opened
    opened.dispose()


def scanned(engine: Engine, **variants: bytes) -> None:
    held = [ChatTemplate(name, source, "here") for name, source in variants.items()]
    analyses = {template.sha256: analyse_template(template.source, now=0) for template in held}
    examples.record(engine, examples.with_templates("/m/a.gguf", *held), analyses=tuple(analyses.values()))


def file_says(engine: Engine) -> tuple[str, dict[str, object] | None]:
    """The line about the server, and the JSON document's word on it."""
    said = [line for line in show_file(engine, "/m/a.gguf", "table") if "llama-server" in line and "start" in line]
    (line,) = [line.strip() for line in said if line.startswith("  ") and not line.startswith("   ")]
    return line, json.loads("".join(show_file(engine, "/m/a.gguf", "json")))["start"]


@pytest.mark.parametrize(
    ("variants", "line", "ok"),
    [
        ({"default": PLAIN}, "llama-server starts with it", True),
        ({"default": PLAIN, "tool_use": FAILS}, "llama-server starts with it", True),
        ({"tool_use": BROKEN}, "llama-server starts with it", True),
        ({"default": FAILS}, "llama-server would not start with it: Jinja Exception: no (line 2)", False),
        ({"tool_use": FAILS}, "llama-server would not start with it: Jinja Exception: no (line 2)", False),
        ({"default": BROKEN, "tool_use": PLAIN}, "llama-server would not start with it: Unknown statement: raw", False),
    ],
)
def test_the_template_for_plain_requests_decides(
    engine: Engine, variants: dict[str, bytes], line: str, ok: bool
) -> None:
    scanned(engine, **variants)
    said, document = file_says(engine)
    assert said.startswith(line)
    assert document is not None
    assert document["ok"] is ok


def test_what_was_not_examined_is_not_said_to_start(engine: Engine) -> None:
    held = examples.template(PLAIN)
    examples.record(engine, examples.with_templates("/m/a.gguf", held), analyses=(examples.analysis(held.sha256),))
    assert file_says(engine) == ("whether llama-server starts with it was not examined", None)
    first, *_ = show_template(engine, held.sha256, "table")
    assert first.endswith("server start not examined")


def test_a_template_says_so_in_its_first_line_and_how_it_thinks(engine: Engine) -> None:
    scanned(engine, default=FAILS, tool_use=THINKS, rag=BROKEN, other=b"chatml")
    ends = {
        FAILS: " · server does not start: Jinja Exception: no (line 2)",
        THINKS: " · server starts",
        BROKEN: " · server does not start",
        b"chatml": " · handler autoparser",
    }
    for source, end in ends.items():
        first, *others = show_template(engine, ChatTemplate("", source, "").sha256, "table")
        assert first.endswith(end)
        assert ("thinking is on unless a request says otherwise" in others) is (source == THINKS)
        assert not any("thinking is off" in line for line in others)


# -- the summary of a scan


def summed_up(engine: Engine, scan: int) -> list[str]:
    lines = summary_lines(read_summary(engine, scan), 1.0, " --db c.db")
    return [click.unstyle(line) for text in lines for line in text.split("\n")]


def collection(engine: Engine, results: Sequence[TemplateResult]) -> int:
    """A scan of a file for each of these results; the SHA-256 of each is replaced by that of a template of its own."""
    held = [examples.template(b"%d" % number) for number in range(len(results))]
    files = [examples.with_templates(f"/m/{number}.gguf", one) for number, one in enumerate(held)]
    again = examples.with_templates("/m/again.gguf", held[0])
    failed = [examples.unreadable(f"/m/cut{number}.gguf") for number in range(6)]
    made = [replace(result, sha256=one.sha256) for result, one in zip(results, held, strict=True)]
    return examples.record(
        engine, *files, again, *failed, examples.without_template("/m/base.gguf"), analyses=tuple(made)
    )


def test_a_scan_says_what_is_claimed_and_what_is_true(engine: Engine) -> None:
    over = examples.observed("", ("system_role", "tools"), ("tools",))
    scan = collection(engine, [over, over, examples.observed("", ("tools",), ("tools", "typed_content"))])
    lines = summed_up(engine, scan)
    rows = {line[:22].strip(): line[22:].split(maxsplit=6) for line in lines if line.startswith("  ")}
    assert lines[1].split() == ["claimed", "really", "disagree"]
    assert rows["tools"] == ["3", "of", "3", "3", "of", "3"]
    assert rows["system role"] == ["2", "0", "2", "over", "←", "reads", "it, never prints it"]
    assert rows["typed content"] == ["0", "1", "1", "under", "←", "prints", "it all the same"]
    assert rows["tool calls"] == ["0", "0"]


def test_a_row_with_another_base_says_so(engine: Engine) -> None:
    whole = examples.observed("", (), ())
    told = [one for one in whole.observations if one.capability != "tool_calls"]
    unknown = replace(whole, observations=(*told, Observation("tool_calls", None, "limit: too long")))
    (row,) = [line for line in summed_up(engine, collection(engine, [whole, unknown])) if "  tool calls" in line]
    assert row.split() == ["tool", "calls", "0", "0", "of", "1"]


def test_without_verdicts_only_claims_are_shown(engine: Engine) -> None:
    lines = summed_up(engine, collection(engine, [examples.analysis("", "tools")]))
    assert lines[1].split() == ["claimed"]
    assert "  tools               1 of 1" in lines


def test_outliers_with_the_same_to_say_share_a_line(engine: Engine) -> None:
    warned = examples.analysis("", findings=(examples.finding(Severity.WARNING, "loses the system message"),))
    broken = examples.analysis("", findings=(examples.finding(Severity.ERROR, "nothing works"),))
    lines = summed_up(engine, collection(engine, [warned, warned, broken]))
    at = lines.index("Outliers (3 templates), worst first")
    assert lines[at + 1].split() == ["error", "2.gguf", "nothing", "works", "(line", "3)"]
    assert lines[at + 2].split()[:3] == ["warning", "0.gguf", "+2"]
    assert lines[at + 2].endswith("loses the system message (line 3)")


def test_what_could_not_be_examined_is_counted_and_named(engine: Engine) -> None:
    lines = summed_up(engine, collection(engine, [examples.analysis("")]))
    at = lines.index("Not examined: 1 no template · 6 unreadable")
    assert lines[at + 1].split(maxsplit=1) == ["cut0.gguf", "unreadable at byte 24: the file ends early"]
    assert lines[at + 5] == "  … 3 more: capscan query failures --db c.db"


def test_changes_are_counted_by_kind(engine: Engine) -> None:
    collection(engine, [examples.analysis("")])
    scan = collection(engine, [examples.analysis(""), examples.analysis("")])
    assert "Since the last scan: 1 appeared (capscan diff --db c.db)" in summed_up(engine, scan)


def test_the_summary_fits_one_screen_whatever_a_collection_holds(engine: Engine) -> None:
    hostile = "\x1b[31m" + "wrong " * 99
    results = [
        replace(
            examples.observed("", ("system_role",), (), reason=f"raised: {hostile}{number}"),
            findings=(examples.finding(Severity.ERROR, f"{hostile}{number}"),),
        )
        for number in range(15)
    ]
    lines = summed_up(engine, collection(engine, results))
    assert len(lines) <= 40
    assert max(map(len, lines)) <= WIDTH
    assert not any("\x1b" in line for line in lines)


def test_the_summary_as_data(engine: Engine) -> None:
    over = replace(
        examples.observed("", ("system_role",), ()), findings=(examples.finding(Severity.WARNING, "never printed"),)
    )
    scan = collection(engine, [over])
    document = json.loads(json.dumps(summary_document(read_summary(engine, scan))))
    assert document["claims"]["system_role"] == {"templates": [1, 1], "files": [2, 2]}
    assert document["observed"]["system_role"] == {
        "templates": [0, 1],
        "files": [0, 2],
        "overclaims": [1, 2],
        "underclaims": [0, 0],
    }
    (disagreement,) = document["disagreements"]
    assert {key: disagreement[key] for key in ("capability", "agreement", "reason", "files")} == {
        "capability": "system_role",
        "agreement": "overclaims",
        "reason": "absent",
        "files": 2,
    }
    (outlier,) = document["outliers"]
    assert (outlier["rule"], outlier["text"], outlier["files"]) == ("some-rule", "never printed", 2)
