"""What `show` says of a file and of a template: whether a server starts with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from scanner.pipeline import analyse_template
from scanner.results import ChatTemplate
from scanner.store import migrate
from scanner.store.session import open_database
from scanner.summary import show_file, show_template
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
