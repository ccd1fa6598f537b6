"""What changed from one scan to another: over nights with a changing collection, and as the command tells it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.cli import run
from scanner.diff import Came, Cause, Diff, What, chosen_scans, read_diff
from scanner.results import Outcome
from scanner.unified import unified
from tests.gguf_builder import write_gguf
from tests.nights import BROKEN, TALK, TOOLS, Nights, without_flag

OLDER = "b9713"


@pytest.fixture
def nights(tmp_path: Path) -> Nights:
    """Two models with one template, one with another."""
    made = Nights(tmp_path)
    made.write("a.jinja", TALK)
    made.write("b.jinja", TALK)
    made.write("c.jinja", TOOLS)
    return made


def last(nights: Nights) -> Diff:
    """The diff of the newest scan."""
    chosen = chosen_scans(nights.engine, ())
    assert chosen is not None
    return read_diff(nights.engine, *chosen)


def files(diff: Diff) -> list[tuple[str, str]]:
    return [(one.change, Path(one.path).name) for one in diff.files]


def flags(diff: Diff) -> list[tuple[str, str, str | None, str | None, tuple[Cause, ...]]]:
    """The flags that flipped: claimed or really, which, and because of what."""
    kinds = (What.CLAIMED, What.OBSERVED)
    return sorted((one.what, one.name, one.old, one.new, one.causes) for one in diff.flips if one.what in kinds)


def causes(diff: Diff) -> set[tuple[Cause, ...]]:
    return {flip.causes for flip in diff.flips}


def test_night_after_night(nights: Nights) -> None:
    """The issue's own sequence: each night's diff tells what happened on the day before it, and nothing else."""
    nights.scan()
    assert chosen_scans(nights.engine, ()) is None

    nights.write("d.jinja", TOOLS)
    nights.scan()
    assert files(last(nights)) == [("new", "d.jinja")]
    assert (last(nights).templates, last(nights).flips) == ((), ())

    (nights.models / "d.jinja").unlink()
    nights.scan()
    assert files(last(nights)) == [("gone", "d.jinja")]
    assert (last(nights).templates, last(nights).flips) == ((), ())

    nights.write("a.jinja", TOOLS)
    nights.scan()
    diff = last(nights)
    (replaced,) = diff.templates
    assert (replaced.change, [Path(one.path).name for one in replaced.holders]) == (Came.REPLACED, ["a.jinja"])
    assert (What.CLAIMED, "tools", "no", "yes", (Cause.TEMPLATE,)) in flags(diff)
    assert (What.OBSERVED, "tools", "no", "yes", (Cause.TEMPLATE,)) in flags(diff)
    assert causes(diff) == {(Cause.TEMPLATE,)}
    assert {Path(place.path).name for flip in diff.flips for place in flip.holders} == {"a.jinja"}

    nights.scan()
    assert not last(nights).changed

    nights.scan(profile=OLDER)
    diff = last(nights)
    assert (diff.files, diff.templates) == ((), ())
    assert causes(diff) == {(Cause.PROFILE,)}
    assert (diff.old.profile, diff.new.profile) == ("b11549", OLDER)

    nights.scan()
    assert causes(last(nights)) == {(Cause.PROFILE,)}

    nights.scan(version="0.2.0", judge=without_flag("tools"))
    diff = last(nights)
    assert (diff.files, diff.templates, diff.capscan) == ((), (), ("0.1.0", "0.2.0"))
    assert flags(diff) == [(What.CLAIMED, "tools", "yes", "no", (Cause.CAPSCAN,))]
    assert [Path(one.path).name for one in diff.flips[0].holders] == ["a.jinja", "c.jinja"]


def test_an_unreadable_file_is_a_changed_model(tmp_path: Path) -> None:
    nights = Nights(tmp_path)
    path = write_gguf(nights.models / "m.gguf", TALK)
    nights.scan()
    path.write_bytes(path.read_bytes()[:60])
    nights.scan()
    diff = last(nights)
    (file,) = diff.files
    assert (file.change, file.old_outcome, file.new_outcome) == (Came.CHANGED, Outcome.ANALYSED, Outcome.UNREADABLE)
    assert file.reason
    assert diff.templates == ()


def test_a_file_written_again_with_the_same_template_is_a_changed_model(tmp_path: Path) -> None:
    nights = Nights(tmp_path)
    path = write_gguf(nights.models / "m.gguf", TALK)
    nights.scan()
    write_gguf(path, TALK, strings={"general.name": "another"})
    nights.scan()
    diff = last(nights)
    (file,) = diff.files
    assert (file.rewritten, file.old_outcome, file.new_outcome) == (True, Outcome.ANALYSED, Outcome.ANALYSED)
    assert (file.new_size or 0) > (file.old_size or 0) > 0
    assert (diff.templates, diff.flips) == ((), ())


def test_a_template_that_no_longer_parses(nights: Nights) -> None:
    nights.scan()
    nights.write("c.jinja", BROKEN)
    nights.scan()
    diff = last(nights)
    outcomes = [(one.old, one.new, one.causes) for one in diff.flips if one.what is What.OUTCOME]
    assert outcomes == [("analysed", "not parseable", (Cause.TEMPLATE,))]
    rules = {one.name: (one.old, one.new) for one in diff.flips if one.what is What.FINDING}
    assert rules["not-parseable"] == (None, "error")
    assert flags(diff) == []


def test_each_flip_has_its_own_cause(nights: Nights) -> None:
    """In one night a template is replaced and a newer Capscan judges all of them otherwise."""
    nights.scan()
    nights.write("a.jinja", TOOLS)
    nights.scan(version="0.2.0", judge=without_flag("string_content"))
    told = {
        (Path(flip.holders[0].path).name, flip.what, flip.name): flip.causes
        for flip in last(nights).flips
        if flip.what is What.CLAIMED
    }
    assert told == {
        ("a.jinja", What.CLAIMED, "tools"): (Cause.TEMPLATE,),
        ("a.jinja", What.CLAIMED, "string_content"): (Cause.CAPSCAN,),
        ("b.jinja", What.CLAIMED, "string_content"): (Cause.CAPSCAN,),
        ("c.jinja", What.CLAIMED, "string_content"): (Cause.CAPSCAN,),
    }


def test_an_old_diff_stays_what_it_was(nights: Nights) -> None:
    """Each side is judged as it was when its scan ended, whatever came later."""
    nights.scan()
    nights.write("a.jinja", TOOLS)
    nights.scan()
    before = read_diff(nights.engine, 1, 2)
    nights.scan(version="0.2.0", judge=without_flag("tools"))
    assert read_diff(nights.engine, 1, 2) == before
    since = [
        (Path(one.holders[0].path).name, one.causes)
        for one in read_diff(nights.engine, 1, 3).flips
        if one.what is What.CLAIMED
    ]
    assert since == [("c.jinja", (Cause.CAPSCAN,))]


def test_two_scans_in_the_other_order(nights: Nights) -> None:
    nights.scan()
    nights.write("a.jinja", TOOLS)
    nights.write("d.jinja", TOOLS)
    nights.scan()
    diff = read_diff(nights.engine, 2, 1)
    assert [file.change for file in diff.files if Path(file.path).name == "d.jinja"] == [Came.GONE]
    assert (What.CLAIMED, "tools", "yes", "no", (Cause.TEMPLATE,)) in flags(diff)


def test_what_an_interrupted_scan_did_not_come_to_is_not_gone(nights: Nights) -> None:
    nights.scan()
    for path in nights.models.iterdir():
        path.unlink()
    number = nights.scan(status="interrupted")
    assert not read_diff(nights.engine, 1, number).changed


def test_a_template_lost_before_is_examined_again(nights: Nights) -> None:
    nights.scan(judge=lambda result: replace(result, outcome=Outcome.LIMIT_EXCEEDED, probes=(), capabilities=None))
    nights.scan()
    told = {(flip.what, flip.old, flip.new, flip.causes) for flip in last(nights).flips}
    assert told == {(What.OUTCOME, "limit exceeded", "analysed", (Cause.AGAIN,))}


def test_a_variant_that_is_gone(tmp_path: Path) -> None:
    nights = Nights(tmp_path)
    path = write_gguf(nights.models / "m.gguf", TALK, variants={"tool_use": TOOLS})
    nights.scan()
    write_gguf(path, TALK)
    nights.scan()
    told = [(one.change, one.holders[0].variant) for one in last(nights).templates]
    assert told == [(Came.GONE, "tool_use")]


# -- the command


def test_the_command_tells_what_changed(nights: Nights, capsys: pytest.CaptureFixture[str]) -> None:
    database = ["--db", str(nights.database)]
    nights.scan()
    assert run(["diff", *database]) == 0
    assert capsys.readouterr().out == "Scan 1 is the first of its sources: there is nothing to compare it with.\n"
    nights.write("a.jinja", TOOLS)
    nights.scan()
    assert run(["diff", *database]) == 0
    out = capsys.readouterr().out
    assert "Scan 2 (2026-12-01 12:02) against scan 1 (2026-11-30 12:01) · profile b11549" in out
    assert "because of a new template" in out
    assert f"+{TOOLS.splitlines()[0]}"[:60] in out
    assert max(map(len, out.splitlines())) <= 100
    assert run(["diff", *database, "--no-source", "--fail-on", "change"]) == 1
    assert "@@" not in capsys.readouterr().out
    nights.scan()
    assert run(["diff", *database, "--fail-on", "change"]) == 0
    assert "Nothing changed." in capsys.readouterr().out
    assert run(["diff", "2", *database, "--fail-on", "change"]) == 1
    assert run(["diff", "3", "1", *database]) == 0
    assert run(["diff", "1", "9", *database]) == 2
    assert run(["diff", "1", "2", "3", *database]) == 2


def test_the_command_for_other_programs(nights: Nights, capsys: pytest.CaptureFixture[str]) -> None:
    database = ["--db", str(nights.database)]
    nights.scan()
    assert run(["diff", *database, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["changed"] is False
    nights.write("a.jinja", TOOLS)
    nights.write("b|<b>.jinja", "```")
    nights.scan()
    assert run(["diff", *database, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["old"]["id"], document["new"]["id"], document["changed"]) == (1, 2, True)
    assert document["templates"][0]["source"][0].startswith("--- ")
    assert {flip["causes"][0] for flip in document["flips"]} == {"new template"}
    assert run(["diff", *database, "--format", "markdown"]) == 0
    out = capsys.readouterr().out
    assert "```diff" in out
    assert "| new | " in out
    assert "<b>" not in out


def test_a_scan_fails_on_a_change(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    models = tmp_path / "models"
    models.mkdir()
    (models / "a.jinja").write_text(TALK)
    command = ["scan", str(models), "--db", str(tmp_path / "c.db"), "--fail-on", "change", "--quiet", "--workers", "1"]
    assert run(command) == 0
    assert run(command) == 0
    (models / "a.jinja").write_text(TOOLS)
    (models / "b.jinja").write_text(TOOLS)
    capsys.readouterr()
    assert run(command) == 1
    said = capsys.readouterr().err
    assert "1 model new · 1 model changed · 1 template replaced, new or gone" in said
    assert "answers flipped" in said
    assert run(command) == 0


# -- the source of a template


def applied(old: list[str], diff: tuple[str, ...]) -> list[str]:
    """What a patch makes of some lines, each with its line end."""
    new: list[str] = []
    done, sign = 0, ""
    for line in diff[2:]:
        if line.startswith("@@"):
            start, count = map(int, line.split()[1][1:].split(","))
            begin = start - 1 if count else start
            new += old[done:begin]
            done = begin
        elif line.startswith("\\"):
            if sign in ("+", " "):
                new[-1] = new[-1].removesuffix("\n")
        else:
            if line[0] in "+ ":
                new.append(line[1:] + "\n")
            done += line[0] in "- "
        sign = line[0]
    return [*new, *old[done:]]


texts = st.lists(st.sampled_from("abcde"), max_size=30).map("\n".join)


@given(texts, texts)
def test_a_unified_diff_leads_from_one_text_to_the_other(old: str, new: str) -> None:
    diff = unified(old.encode(), new.encode(), ("old", "new"), limit=1000)
    assert bool(diff) == (old != new)
    if diff:
        assert "".join(applied(old.splitlines(keepends=True), diff)) == new


def test_a_unified_diff_is_bounded() -> None:
    diff = unified(b"a\n" * 20_000, b"b\n" * 20_000 + b"\xff", ("old", "new"), limit=10)
    assert len(diff) == 11
    assert diff[-1].startswith("… ")
