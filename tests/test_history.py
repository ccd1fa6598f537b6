"""What is read of an old scan is what it was then."""

from __future__ import annotations

from pathlib import Path

import pytest

from scanner.errors import UsageError
from scanner.results import Outcome
from scanner.store import history
from tests.gguf_builder import write_gguf
from tests.nights import TALK, TOOLS, Nights, without_flag


def test_a_snapshot_holds_what_a_scan_saw(tmp_path: Path) -> None:
    nights = Nights(tmp_path)
    write_gguf(nights.models / "m.gguf", TALK, variants={"tool_use": TOOLS})
    (nights.models / "none.gguf").write_bytes(b"GGUF")
    nights.scan()
    seen = history.snapshot(nights.engine, 1)
    assert [(Path(one.path).name, one.variant, one.outcome) for one in seen.sightings] == [
        ("m.gguf", "default", Outcome.ANALYSED),
        ("m.gguf", "tool_use", Outcome.ANALYSED),
        ("none.gguf", "", Outcome.UNREADABLE),
    ]
    assert all(one.fingerprint for one in seen.sightings)
    assert set(seen.analyses) == {one.sha256 for one in seen.sightings if one.sha256}


def test_the_analysis_of_a_scan_is_the_newest_when_it_ended(tmp_path: Path) -> None:
    nights = Nights(tmp_path)
    nights.write("a.jinja", TOOLS)
    for version in ("0.1.0", "0.2.0", "0.2.0"):
        nights.scan(version=version, judge=without_flag("tools"))
    numbers = [list(history.snapshot(nights.engine, scan).analyses.values()) for scan in (1, 2, 3)]
    assert numbers[0] != numbers[1] == numbers[2]
    told = history.judgements(nights.engine, [*numbers[0], *numbers[1], 999])
    assert [one.capscan_version for one in told.values()] == ["0.1.0", "0.2.0"]
    first = told[numbers[0][0]]
    assert first.claims is not None
    assert (first.claims.tools, first.observed["tools"]) == (False, True)
    assert first.behaviours
    assert first.efforts[None] == "accepted"


def test_an_analysis_under_another_profile_does_not_count(tmp_path: Path) -> None:
    nights = Nights(tmp_path)
    nights.write("a.jinja", TALK)
    nights.scan()
    nights.scan(profile="b9713")
    nights.scan()
    numbers = [list(history.snapshot(nights.engine, scan).analyses.values()) for scan in (1, 2, 3)]
    assert numbers[0] == numbers[2] != numbers[1]
    (judged,) = history.judgements(nights.engine, numbers[1]).values()
    assert (judged.profile, judged.observed, judged.behaviours) == ("b9713", {}, {})


def test_there_is_no_such_scan(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no scan 7"):
        history.snapshot(Nights(tmp_path).engine, 7)
