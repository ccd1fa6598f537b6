"""Split GGUF: several files, one model; what is missing, too much, renamed or wrong is said."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from scanner.cli import run
from scanner.discover import discover
from scanner.extract import extract
from scanner.results import NOT_LOADED, FileResult, ModelFile, ModelName, Outcome, PassedOver, SourceKind
from scanner.shards import Shard, join, missing_shards, shard_of, shards_of
from tests import gguf_builder as build
from tests.gguf_builder import RawGguf, write_gguf, write_split

TEMPLATE = "{{ messages[0].content }}"


@pytest.fixture
def split(tmp_path: Path) -> list[Path]:
    """A model in three shards, as the `gguf` package writes it."""
    return write_split(tmp_path, "m", TEMPLATE)


def models(*paths: Path) -> list[ModelFile]:
    return [found for found in discover(paths) if isinstance(found, ModelFile)]


def result_of(folder: Path) -> FileResult:
    """The result of the only model in a folder."""
    (model,) = models(folder)
    return extract(model)


def raw_shard(path: Path, no: int, count: int, *, tensors: int = 1) -> Path:
    raw = RawGguf(tensor_count=tensors).add("split.no", build.UINT16, no).add("split.count", build.UINT16, count)
    return raw.write(path)


# -- names -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "shard"),
    [
        ("m-00001-of-00003.gguf", Shard("m", 1, 3)),
        ("m-00004-of-00003.gguf", Shard("m", 4, 3)),
        ("m-00000-of-00003.gguf", Shard("m", 0, 3)),
        ("a-00001-of-00002-00002-of-00003.gguf", Shard("a-00001-of-00002", 2, 3)),
        ("-00001-of-00002.gguf", Shard("", 1, 2)),
        ("a\nb-00002-of-00002.gguf", Shard("a\nb", 2, 2)),
        # The only shard of one: a file like any other. The second of one is extra.
        ("m-00001-of-00001.gguf", None),
        ("m-00002-of-00001.gguf", Shard("m", 2, 1)),
        ("m-00001-of-00000.gguf", None),
        ("m-1-of-3.gguf", None),
        ("m-000001-of-000003.gguf", None),
        ("m-00001-of-00003.GGUF", None),
        ("m-00001-of-00003.gguf.part", None),
        ("m-00001-of-00003.gguf\n", None),
        ("m-\u0660\u0660\u0660\u0660\u0661-of-00003.gguf", None),
        ("m.gguf", None),
    ],
)
def test_what_a_name_says(name: str, shard: Shard | None) -> None:
    assert shard_of(name) == shard


def test_missing_shards_in_words() -> None:
    assert missing_shards(shards_of(["m-00001-of-00002.gguf", "m-00002-of-00002.gguf"])) is None
    assert missing_shards(shards_of(["m-00001-of-00002.gguf"])) == "1 of 2 shards is missing: 00002"
    assert missing_shards(shards_of(["m-00001-of-00003.gguf"])) == "2 of 3 shards are missing: 00002, 00003"
    # A name may claim anything: the work is that for what is shown.
    assert missing_shards(shards_of(["m-00002-of-99999.gguf"])) == (
        "99,998 of 99,999 shards are missing: 00001, 00003, 00004, 00005 and 99,994 more"
    )


# -- discovery ---------------------------------------------------------------------------------------------------------


def test_a_split_model_is_one_model_with_all_its_bytes(split: list[Path], tmp_path: Path) -> None:
    assert [path.name for path in split] == [f"m-0000{number}-of-00003.gguf" for number in (1, 2, 3)]
    (model,) = models(tmp_path)
    assert model.path == str(split[0])
    assert model.shards == tuple(path.name for path in split)
    assert model.size == sum(path.stat().st_size for path in split)
    assert model.mtime_ns == max(path.stat().st_mtime_ns for path in split)


def test_shards_given_one_by_one_are_one_model(split: list[Path]) -> None:
    assert [model.path for model in models(*split)] == [str(split[0])]
    assert [model.path for model in models(split[2], split[0].parent)] == [str(split[0])]


def test_two_models_and_their_neighbours_stay_apart(tmp_path: Path) -> None:
    write_split(tmp_path, "m", TEMPLATE)
    write_split(tmp_path, "m-b", TEMPLATE, tensors=2)
    write_gguf(tmp_path / "m.gguf", TEMPLATE)
    (tmp_path / "m-00001-of-00003.gguf.d").mkdir()
    write_split(tmp_path / "m-00001-of-00003.gguf.d", "m", TEMPLATE)
    names = [Path(model.path).relative_to(tmp_path).as_posix() for model in models(tmp_path)]
    assert names == [
        "m-00001-of-00003.gguf",
        "m-00001-of-00003.gguf.d/m-00001-of-00003.gguf",
        "m-b-00001-of-00002.gguf",
        "m.gguf",
    ]


def test_any_shard_that_changes_changes_the_model_and_nothing_else_does(split: list[Path], tmp_path: Path) -> None:
    (before,) = models(tmp_path)
    write_gguf(tmp_path / "other.gguf", TEMPLATE)
    assert models(tmp_path)[0].fingerprint == before.fingerprint
    os.utime(split[1], ns=(1, 1))
    assert models(tmp_path)[0].fingerprint != before.fingerprint


def test_a_new_revision_of_a_cache_that_replaces_one_shard_is_a_model_of_its_own(tmp_path: Path) -> None:
    repo = tmp_path / "models--a--b"
    blobs, old, new = repo / "blobs", repo / "snapshots" / "1", repo / "snapshots" / "2"
    for folder in (blobs, old, new):
        folder.mkdir(parents=True)
    for number, path in enumerate(write_split(tmp_path, "m", TEMPLATE)):
        path.rename(blobs / str(number))
        (old / path.name).symlink_to(blobs / str(number))
        other = shutil.copy(blobs / str(number), blobs / "new") if number == 1 else blobs / str(number)
        (new / path.name).symlink_to(other)
    found = models(tmp_path)
    assert [model.path for model in found] == [str(folder / "m-00001-of-00003.gguf") for folder in (old, new)]
    assert found[0].fingerprint != found[1].fingerprint
    assert [extract(model).notes for model in found] == [(), ()]


def test_a_link_that_leads_nowhere_is_a_missing_shard(split: list[Path], tmp_path: Path) -> None:
    split[1].unlink()
    split[1].symlink_to(tmp_path / "gone")
    found = list(discover([tmp_path]))
    assert [type(item) for item in found] == [ModelFile, PassedOver]
    assert result_of(tmp_path).notes == (f"{NOT_LOADED}1 of 3 shards is missing: 00002",)


def test_other_kinds_and_what_was_passed_over_go_through() -> None:
    jinja = ModelFile("/m-00001-of-00002.jinja", "/", SourceKind.JINJA, 1, 1, "1")
    gone = ModelFile("/nowhere/m-00002-of-00002.gguf", "/", SourceKind.GGUF, 1, 1, "1")
    passed = PassedOver("/m-00001-of-00002.gguf", "a FIFO")
    one, two, three = join([jinja, passed, gone])
    assert (one, two) == (jinja, passed)
    assert isinstance(three, ModelFile)
    assert (three.path, three.shards) == (gone.path, ("m-00002-of-00002.gguf",))


def test_the_name_that_a_store_gave_another_shard_becomes_that_of_the_first(split: list[Path]) -> None:
    (file,) = models(split[1])
    names = (ModelName("huggingface", f"a/b@1/{split[1].name}", "a/b"), ModelName("lmstudio", "a/b"))
    second = ModelFile(str(split[1]), "/", SourceKind.GGUF, 1, 1, "1", names=names)
    (joined,) = join([second])
    assert isinstance(joined, ModelFile)
    assert joined.fingerprint == file.fingerprint
    assert [name.name for name in joined.names] == [f"a/b@1/{split[0].name}", "a/b"]


# -- what is in them ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("small_first", [False, True])
def test_a_whole_model_has_its_template_and_nothing_to_be_said(tmp_path: Path, small_first: bool) -> None:
    shards = write_split(tmp_path, "m", TEMPLATE, small_first=small_first)
    result = result_of(tmp_path)
    assert len(result.file.shards) == len(shards) == 3 + small_first
    assert (result.outcome, result.notes, result.metadata.role) == (Outcome.ANALYSED, (), None)
    assert [template.source for template in result.templates] == [TEMPLATE.encode()]


def test_missing_shards(split: list[Path], tmp_path: Path) -> None:
    split[1].unlink()
    split[2].unlink()
    result = result_of(tmp_path)
    assert result.outcome is Outcome.ANALYSED
    assert result.notes == (f"{NOT_LOADED}2 of 3 shards are missing: 00002, 00003",)


def test_without_the_first_the_rest_is_one_incomplete_model(split: list[Path], tmp_path: Path) -> None:
    split[0].unlink()
    result = result_of(tmp_path)
    assert result.file.path == str(split[1])
    assert result.outcome is Outcome.SKIPPED
    assert result.reason == "the first shard, which holds the template, is missing"
    assert result.notes == (f"{NOT_LOADED}1 of 3 shards is missing: 00001",)


def test_an_extra_shard_is_said_and_harmless(split: list[Path], tmp_path: Path) -> None:
    shutil.copy(split[2], tmp_path / "m-00004-of-00003.gguf")
    shutil.copy(split[2], tmp_path / "m-00000-of-00003.gguf")
    result = result_of(tmp_path)
    assert result.file.path == str(split[0])
    assert result.notes == ("a shard 00000, 00004 of 3 is there, which llama.cpp does not look at",)


def test_only_extra_shards(tmp_path: Path) -> None:
    raw_shard(tmp_path / "m-00009-of-00002.gguf", 8, 2)
    result = result_of(tmp_path)
    assert result.outcome is Outcome.SKIPPED
    assert result.notes[0] == f"{NOT_LOADED}2 of 2 shards are missing: 00001, 00002"


def test_shards_in_each_others_place(split: list[Path], tmp_path: Path) -> None:
    other = split[1].rename(tmp_path / "x")
    split[2].rename(split[1])
    other.rename(split[2])
    assert result_of(tmp_path).notes == (
        f"{NOT_LOADED}shard 00002 says that it is shard 00003",
        f"{NOT_LOADED}shard 00003 says that it is shard 00002",
    )


def test_the_first_under_the_name_of_a_later_one_is_read_all_the_same(split: list[Path], tmp_path: Path) -> None:
    split[0].rename(split[1])
    split[2].unlink()
    result = result_of(tmp_path)
    assert result.outcome is Outcome.ANALYSED
    assert result.notes == (
        f"{NOT_LOADED}2 of 3 shards are missing: 00001, 00003",
        f"{NOT_LOADED}shard 00002 says that it is shard 00001",
    )


def test_a_renamed_set_of_another_count(split: list[Path], tmp_path: Path) -> None:
    for number in (1, 2):
        split[number - 1].rename(tmp_path / f"m-0000{number}-of-00002.gguf")
    split[2].unlink()
    result = result_of(tmp_path)
    assert result.notes == (
        f"{NOT_LOADED}split.count of the first shard is 3, its name says 2",
        f"{NOT_LOADED}split.tensors.count is 3, the shards have 2",
        "split.count of shard 00002 is 3, its name says 2",
    )


def test_a_first_shard_that_lost_its_name(split: list[Path], tmp_path: Path) -> None:
    alone = split[0].rename(tmp_path / "renamed.gguf")
    (model,) = models(alone)
    result = extract(model)
    assert (result.outcome, model.shards) == (Outcome.ANALYSED, ())
    assert result.notes == (
        f"{NOT_LOADED}it is the first of 3 shards, and its name does not end in -00001-of-00003.gguf",
    )


def test_tensors_that_do_not_add_up(split: list[Path], tmp_path: Path) -> None:
    raw_shard(split[1], 1, 3, tensors=7)
    assert result_of(tmp_path).notes == (f"{NOT_LOADED}split.tensors.count is 3, the shards have 9",)


def test_a_name_alone_makes_no_split_model(tmp_path: Path) -> None:
    write_gguf(tmp_path / "m-00001-of-00002.gguf", TEMPLATE)
    write_gguf(tmp_path / "m-00002-of-00002.gguf", "{{ hidden }}")
    result = result_of(tmp_path)
    assert result.outcome is Outcome.ANALYSED
    assert result.notes == (
        "its name says that it is one of 2 shards, its metadata does not: llama.cpp loads it alone",
        "shard 00002 carries a chat template: llama.cpp reads the first shard's only",
    )


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not GGUF"),
        (b"<html>", "not GGUF"),
        (b"GGUF\x03\x00\x00\x00", "at byte 8: expected the number of tensors"),
        (RawGguf(tensor_count=1).to_bytes(), "has no split.no"),
        (RawGguf().add("split.no", build.STRING, "1").to_bytes(), "has no split.no"),
        (RawGguf(pair_count=2**63).to_bytes(), "at byte 16: expected at most 0 key-values"),
    ],
)
def test_a_later_shard_of_any_bytes(split: list[Path], tmp_path: Path, data: bytes, words: str) -> None:
    split[1].write_bytes(data)
    result = result_of(tmp_path)
    assert result.outcome is Outcome.ANALYSED
    (note,) = [note for note in result.notes if "00002" in note]
    assert note.startswith(f"{NOT_LOADED}shard 00002") and words in note


def test_a_shard_that_cannot_be_opened_by_the_time_it_is_read(split: list[Path], tmp_path: Path) -> None:
    (model,) = models(tmp_path)
    split[2].unlink()
    os.mkfifo(split[2])
    split[1].unlink()
    notes = extract(model).notes
    assert notes == (
        f"{NOT_LOADED}shard 00002: cannot be read: No such file or directory",
        f"{NOT_LOADED}shard 00003: expected a regular file",
    )


def test_the_broken_first_shard_is_what_became_of_the_model(split: list[Path], tmp_path: Path) -> None:
    split[0].write_bytes(split[0].read_bytes()[:40])
    assert result_of(tmp_path).outcome is Outcome.UNREADABLE
    split[0].write_bytes(b"version https://git-lfs")
    assert result_of(tmp_path).outcome is Outcome.NOT_A_MODEL


@pytest.mark.parametrize("stem", ["a b", "-", "\x1b[31m", "\u202eevil", "x\n", "ü" * 60, "%s%d", "m-00001-of-00002"])
def test_hostile_names(tmp_path: Path, stem: str) -> None:
    for number in (0, 1):
        raw_shard(tmp_path / f"{stem}-0000{number + 1}-of-00002.gguf", number, 2)
    (model,) = models(tmp_path)
    assert len(model.shards) == 2
    assert extract(model).notes == ()


def test_names_that_are_not_utf_8_are_passed_over_as_ever(tmp_path: Path) -> None:
    for number in (b"1", b"2"):
        (Path(os.fsdecode(bytes(tmp_path) + b"/\xff-0000" + number + b"-of-00002.gguf"))).write_bytes(b"GGUF")
    assert [type(item) for item in discover([tmp_path])] == [PassedOver, PassedOver]


# -- the command line --------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model in three shards, half of one, and files that are no models."""
    folder = tmp_path / "models"
    folder.mkdir()
    write_split(folder, "m", TEMPLATE)
    write_split(folder, "half", TEMPLATE)[1].unlink()
    write_split(folder, "tail", TEMPLATE)[0].unlink()
    write_gguf(folder / "mmproj-m.gguf", architecture="clip", tokens=(), strings={"general.type": "mmproj"})
    write_gguf(folder / "lora.gguf", tokens=(), strings={"general.type": "adapter"})
    write_gguf(folder / "vocab.gguf", with_tensor=False)
    write_gguf(folder / "base.gguf")
    return folder


def scan_of(folder: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    arguments = ["scan", str(folder), "--db", str(folder.parent / "c.db"), "--format", "json", "--quiet"]
    assert run(arguments) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def test_a_scan_counts_models_and_names_the_rest(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = scan_of(folder, capsys)
    assert document["files"] == 7
    assert document["outcomes"] == {"analysed": 2, "no template": 1, "skipped": 4}
    assert document["roles"] == {"adapter": 1, "projector": 1, "vocabulary": 1}
    assert document["not_loaded"] == 2
    database = sqlite3.connect(folder.parent / "c.db")
    found = database.execute(
        "SELECT path, rule FROM findings JOIN model_files ON model_files.id = model_file_id ORDER BY path"
    ).fetchall()
    database.close()
    assert [(Path(path).name, rule) for path, rule in found] == [
        ("base.gguf", "no-template"),
        ("half-00001-of-00003.gguf", "incomplete-split"),
        ("tail-00002-of-00003.gguf", "incomplete-split"),
    ]


def test_the_summary_in_words(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["scan", str(folder), "--db", str(folder.parent / "c.db"), "--quiet"]) == 0
    out = capsys.readouterr().out
    assert "Scanned 7 model files" in out
    assert "Not models of their own: 1 adapter · 1 projector · 1 vocabulary\n" in out
    assert "Split models that llama.cpp does not load: 2 (finding incomplete-split)\n" in out


def test_a_replaced_shard_changes_its_model_and_analyses_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def known() -> tuple[list[int], dict[str, int]]:
        database = sqlite3.connect(folder.parent / "c.db")
        analyses = [row[0] for row in database.execute("SELECT id FROM analyses ORDER BY id")]
        sizes = dict(database.execute("SELECT path, size FROM model_files").fetchall())
        database.close()
        return analyses, sizes

    scan_of(folder, capsys)
    analyses, sizes = known()
    unchanged = scan_of(folder, capsys)["unchanged"]
    second = folder / "m-00002-of-00003.gguf"
    second.write_bytes(second.read_bytes() + bytes(64))
    document = scan_of(folder, capsys)
    assert (document["unchanged"], document["new_templates"]) == (unchanged - 1, 0)
    analyses_after, sizes_after = known()
    assert analyses_after == analyses
    first = str(folder / "m-00001-of-00003.gguf")
    assert sizes_after == sizes | {first: sizes[first] + 64}


def test_show_and_probe_say_what_a_file_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scan_of(folder, capsys)
    show = ["show", "--db", str(folder.parent / "c.db")]
    assert run([*show, str(folder / "mmproj-m.gguf")]) == 0
    shown = capsys.readouterr().out
    assert "a multimodal projector: it goes with a model, and needs no template" in shown
    assert "role projector · architecture clip" in shown
    assert "llama-server" not in shown
    assert run([*show, str(folder / "half-00001-of-00003.gguf")]) == 0
    shown = capsys.readouterr().out
    assert "incomplete-split: llama.cpp does not load this model: 1 of 3 shards is missing: 00002" in shown
    assert "llama-server starts" not in shown
    assert run(["probe", str(folder / "mmproj-m.gguf")]) == 0
    assert "skipped: a multimodal projector" in capsys.readouterr().err
    assert run(["probe", str(folder / "tail-00003-of-00003.gguf")]) == 3
    assert "tail-00002-of-00003.gguf: skipped: the first shard, which" in capsys.readouterr().err
    assert run(["probe", str(folder / "half-00003-of-00003.gguf")]) == 0
    assert f"{NOT_LOADED}1 of 3 shards is missing: 00002" in capsys.readouterr().out
