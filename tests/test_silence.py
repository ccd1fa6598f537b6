"""What `.capscan.toml` silences, what it leaves, and what is said where it makes no sense."""

from __future__ import annotations

from pathlib import Path

import pytest

from scanner.errors import UsageError
from scanner.results import Severity
from scanner.silence import FILE_NAME, FoundIn, Sifted, load, path_matches, reaches

SHA, OTHER_SHA = "c3cf41d2" + "0" * 56, "ab" * 32
ENTRY = '[[silence]]\nrule = "clock-dependent"\nreason = "known"\n'


def write(folder: Path, text: str) -> Path:
    (folder / FILE_NAME).write_text(text, encoding="utf-8")
    return folder


def row(path: Path, rule: str = "clock-dependent", sha256: str | None = SHA) -> FoundIn:
    return FoundIn(rule, Severity.NOTE, str(path), sha256)


def test_a_folder_without_the_file_silences_nothing(tmp_path: Path) -> None:
    silences = load(tmp_path)
    assert silences.entries == ()
    assert silences.reason_for("clock-dependent", str(tmp_path / "a.gguf"), SHA) is None
    assert silences.sift([row(tmp_path / "a.gguf")]) == Sifted((row(tmp_path / "a.gguf"),))
    assert silences.sift([]).line() is None


def test_an_entry_without_path_and_template_silences_its_rules_everywhere(tmp_path: Path) -> None:
    silences = load(write(tmp_path, ENTRY.replace('"clock-dependent"', '["clock-dependent", "default-system"]')))
    assert silences.reason_for("clock-dependent", "/elsewhere/a.gguf", SHA) == "known"
    assert silences.reason_for("default-system", "/elsewhere/a.gguf", None) == "known"
    assert silences.reason_for("history-breaks", "/elsewhere/a.gguf", SHA) is None


def test_a_path_is_seen_from_the_folder_of_the_file(tmp_path: Path) -> None:
    silences = load(write(tmp_path, ENTRY + 'path = "models/old/**"\n'))
    assert silences.reason_for("clock-dependent", str(tmp_path / "models/old/deep/a.gguf"), SHA) == "known"
    assert silences.reason_for("clock-dependent", str(tmp_path / "models/new/a.gguf"), SHA) is None
    assert silences.reason_for("clock-dependent", "/models/old/a.gguf", SHA) is None


def test_a_template_is_told_by_how_its_hash_begins(tmp_path: Path) -> None:
    silences = load(write(tmp_path, ENTRY + 'template = "C3CF41D2"\n'))
    assert silences.reason_for("clock-dependent", "/a.gguf", SHA) == "known"
    assert silences.reason_for("clock-dependent", "/a.gguf", OTHER_SHA) is None
    assert silences.reason_for("clock-dependent", "/a.gguf", None) is None


def test_path_and_template_must_both_hold(tmp_path: Path) -> None:
    silences = load(write(tmp_path, ENTRY + 'template = "c3cf41d2"\npath = "old/*"\n'))
    assert silences.reason_for("clock-dependent", str(tmp_path / "old/a.gguf"), SHA) == "known"
    assert silences.reason_for("clock-dependent", str(tmp_path / "a.gguf"), SHA) is None
    assert silences.reason_for("clock-dependent", str(tmp_path / "old/a.gguf"), OTHER_SHA) is None


def test_the_first_entry_that_holds_gives_the_reason(tmp_path: Path) -> None:
    silences = load(write(tmp_path, ENTRY + 'path = "old/*"\n' + ENTRY.replace("known", "everywhere")))
    assert silences.reason_for("clock-dependent", str(tmp_path / "old/a.gguf"), SHA) == "known"
    assert silences.reason_for("clock-dependent", str(tmp_path / "a.gguf"), SHA) == "everywhere"


@pytest.mark.parametrize(
    ("pattern", "path", "holds"),
    [
        ("a.gguf", "/m/a.gguf", True),
        ("a.gguf", "/m/sub/a.gguf", False),
        ("*.gguf", "/m/a.gguf", True),
        ("*.gguf", "/m/sub/a.gguf", False),
        ("**/*.gguf", "/m/a.gguf", True),
        ("**/*.gguf", "/m/sub/deep/a.gguf", True),
        ("**/old/**/a.*", "/m/x/old/y/z/a.gguf", True),
        ("**/old/**/a.*", "/m/x/new/y/z/a.gguf", False),
        ("old/**", "/m/old", True),
        ("ol?/[ab].gguf", "/m/old/b.gguf", True),
        ("../other/*", "/other/a.gguf", True),
        ("/other/**", "/other/a.gguf", True),
        ("/other/**", "/m/other/a.gguf", False),
        ("**/" * 40 + "b", "/m/" + "a/" * 40 + "a", False),
    ],
)
def test_globs(pattern: str, path: str, holds: bool) -> None:
    assert path_matches(pattern, path, "/m") is holds


def test_a_template_counts_as_long_as_one_of_its_files_does(tmp_path: Path) -> None:
    silences = load(write(tmp_path, ENTRY + 'path = "old/*"\n'))
    old, new = row(tmp_path / "old/a.gguf"), row(tmp_path / "new/a.gguf")
    both = silences.sift([old, new])
    assert (both.kept, [silenced.row for silenced in both.silenced]) == ((new,), [old])
    assert (both.silenced_findings, both.line()) == (0, None)
    alone = silences.sift([old, row(tmp_path / "old/b.gguf")])
    assert (alone.kept, alone.silenced_findings) == ((), 1)
    assert alone.line() == "1 finding silenced (.capscan.toml)"


def test_findings_about_files_count_one_each(tmp_path: Path) -> None:
    silences = load(write(tmp_path, ENTRY.replace("clock-dependent", "no-template")))
    rows = [row(tmp_path / name, "no-template", None) for name in ("a.gguf", "b.gguf", "c.gguf")]
    assert silences.sift(rows).line() == "3 findings silenced (.capscan.toml)"


def test_what_reaches_a_threshold() -> None:
    rows = [FoundIn("late-system-raises", Severity.WARNING, "/a", SHA)]
    assert reaches(rows, "warning") and reaches(rows, "note") and reaches(rows, "late-system-raises")
    assert not reaches(rows, "error") and not reaches(rows, "clock-dependent") and not reaches([], "note")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[silence]\n", "is not TOML"),
        ("silence = 1\n", "entries begin with [[silence]]"),
        ("silence = [1]\n", "entries begin with [[silence]]"),
        ("[silence]\n", "entries begin with [[silence]]"),
        ("[[silences]]\n", "unknown key 'silences'"),
        (ENTRY + "paths = 'x'\n", "entry 1: unknown key 'paths'; there are rule, path, template, reason"),
        (ENTRY + "[[silence]]\nrule = 'clock-dependent'\n", "entry 2: no reason"),
        (ENTRY.replace("known", " "), "entry 1: reason is no text"),
        ("[[silence]]\nreason = 'x'\n", "entry 1: no rule"),
        ("[[silence]]\nrule = []\nreason = 'x'\n", "entry 1: no rule"),
        ("[[silence]]\nrule = ['clock-dependent', 1]\nreason = 'x'\n", "entry 1: no rule"),
        (ENTRY.replace("clock", "clok"), "there is no rule 'clok-dependent'; capscan rules lists them"),
        (ENTRY + "template = 'c3cf'\n", "give 8 to 64 hexadecimal digits"),
        (ENTRY + "template = 'not a hash'\n", "give 8 to 64 hexadecimal digits"),
        (ENTRY + "path = 1\n", "entry 1: path is no text"),
    ],
)
def test_an_error_names_the_file_the_entry_and_what_to_do(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        load(write(tmp_path, text))
    assert str(error.value).startswith(f"{tmp_path / FILE_NAME}: ")
    assert said in str(error.value)


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).mkdir()
    with pytest.raises(UsageError, match="cannot be read"):
        load(tmp_path)
    (tmp_path / FILE_NAME).rmdir()
    (tmp_path / FILE_NAME).write_bytes(b"\xff")
    with pytest.raises(UsageError, match="is not TOML"):
        load(tmp_path)
