"""A collection with something of everything, scanned, and its exports."""

from __future__ import annotations

from pathlib import Path

import pytest

from scanner.exports.state import State, read_state
from scanner.silence import Silences, load
from tests.gguf_builder import write_gguf
from tests.nights import BROKEN, TALK, TOOLS, Nights

HOSTILE = 'a&"<b>\x1b[31m\u202e%: #?.jinja'
"""A file name that would be markup, a query, a fragment and colours."""
SILENT = "{{ messages[0].content }}{% if tools %}{{ raise_exception(']]>\x00' ~ tools[0].function.name) }}{% endif %}"
"""Raises where there are tools, with a message that no XML holds."""
OVERCLAIMING = (
    "{% for m in messages %}{% if m.role == 'system' %}{% set x = m.content %}{% endif %}{{ m.role }}{% endfor %}"
)
"""Reads more than it prints."""


@pytest.fixture(scope="session")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Nights:
    made = Nights(tmp_path_factory.mktemp("exports"))
    made.write("plain.jinja", TALK)
    made.write(HOSTILE, OVERCLAIMING)
    made.write("broken.jinja", BROKEN)
    made.write("raising.jinja", SILENT)
    write_gguf(made.models / "m.gguf", OVERCLAIMING, variants={"tool_use": TOOLS})
    write_gguf(made.models / "none.gguf")
    (made.models / "short.gguf").write_bytes(b"GGUF")
    made.scan()
    return made


@pytest.fixture(scope="session")
def state(nights: Nights) -> State:
    return read_state(nights.engine, None, Silences(str(nights.models)))


@pytest.fixture
def silences(nights: Nights, tmp_path: Path) -> Silences:
    """Silences one rule everywhere, and another in one file."""
    (tmp_path / ".capscan.toml").write_text(
        f"""
        [[silence]]
        rule = ["not-parseable", "server-does-not-start"]
        reason = "known"
        [[silence]]
        rule = "overclaims-system_role"
        path = "{nights.models}/m.gguf"
        reason = "not this one"
        """,
        encoding="utf-8",
    )
    return load(tmp_path)
