"""What the real llama.cpp said stands on the pages."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from reports import write_report
from scanner.results import FlagDifference, Verdict, Verification
from scanner.store import migrate
from scanner.store.session import open_database
from scanner.store.writer import store_verifications
from tests.store import examples

PLAIN = examples.template(b"{{ messages[0].content }}")
OTHER = examples.template(b"{{ messages[0].role }}")
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def test_verdicts_are_counted_and_shown_with_their_template(tmp_path: Path) -> None:
    engine = open_database(str(tmp_path / "c.db"))
    migrate.ensure_current(engine, create=True)
    files = [examples.with_templates("/m/a.gguf", PLAIN), examples.with_templates("/m/b.gguf", OTHER)]
    examples.record(engine, *files, analyses=(examples.analysis(PLAIN.sha256), examples.analysis(OTHER.sha256)))
    write_report(engine, tmp_path / "before", now=lambda: NOON)
    assert "not verified against llama.cpp" in (tmp_path / "before" / "index.html").read_text()
    told = [
        Verification(PLAIN.sha256, "b11549", Verdict.EQUAL),
        Verification(
            OTHER.sha256,
            "b11549",
            Verdict.DIFFERENT,
            differences=(FlagDifference("tools", False, True, "tool_object_arguments"),),
        ),
        Verification("0" * 64, "b11549", Verdict.EQUAL),
    ]
    assert store_verifications(engine, told, now=NOON, version="1") == 2
    write_report(engine, tmp_path / "after", now=lambda: NOON)
    index = (tmp_path / "after" / "index.html").read_text()
    assert "verified against llama.cpp: 1 different, 1 equal" in index
    folder = tmp_path / "after" / "templates"
    assert "verified against llama.cpp b11549" in (folder / f"{PLAIN.sha256[:16]}.html").read_text()
    different = (folder / f"{OTHER.sha256[:16]}.html").read_text()
    assert "tools is yes in llama.cpp, no here (probe tool_object_arguments)" in different
