"""Discovery: what is found, in which order, what is passed over, and what is never opened."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable
from pathlib import Path

import pytest

from scanner.discover import discover
from scanner.results import ModelFile, PassedOver, SourceKind

GGUF = b"GGUF\x03\0\0\0"
DEPTH = 1200
"""More than Python may recurse."""


def tree(root: Path, *names: str) -> Path:
    """Make files: `.gguf`, and names without suffix, with the GGUF magic; others with a word."""
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(GGUF if path.suffix in ("", ".gguf", ".bin") else b"text")
    return root


def found(*paths: Path | str, root: Path) -> list[str]:
    """What discovery gives, as relative paths; what was passed over as `-path`."""
    return [shown(each, root) for each in discover(paths)]


def shown(each: ModelFile | PassedOver, root: Path) -> str:
    sign = "-" if isinstance(each, PassedOver) else ""
    return sign + os.path.relpath(each.path, root)


def reasons(items: Iterable[ModelFile | PassedOver]) -> list[str]:
    return [item.reason for item in items if isinstance(item, PassedOver)]


def test_a_tree_comes_depth_first_in_the_order_of_the_names(tmp_path: Path) -> None:
    tree(tmp_path, "b.gguf", "a/z.gguf", "a/b/c.gguf", "B.gguf", "é.gguf", "z.jinja", "c/readme.txt")
    assert found(tmp_path, root=tmp_path) == ["B.gguf", "a/b/c.gguf", "a/z.gguf", "b.gguf", "z.jinja", "é.gguf"]


def test_what_a_model_file_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(tmp_path, "a/m.gguf")
    monkeypatch.chdir(tmp_path)
    (item,) = discover(["a"])
    assert isinstance(item, ModelFile)
    status = (tmp_path / "a/m.gguf").stat()
    assert (item.path, item.source, item.kind) == (str(tmp_path / "a/m.gguf"), "a", SourceKind.GGUF)
    assert (item.size, item.mtime_ns) == (8, status.st_mtime_ns)
    assert item.fingerprint == f"8:{status.st_mtime_ns}:{status.st_ino}"


def test_gguf_is_known_by_its_first_bytes(tmp_path: Path) -> None:
    tree(tmp_path, "model", "model.bin", "notes.txt")
    (tmp_path / "other").write_bytes(b"GGU")
    (tmp_path / "plain.json").write_bytes(GGUF)
    (tmp_path / "broken.gguf").write_bytes(b"")
    assert found(tmp_path, root=tmp_path) == ["broken.gguf", "model", "model.bin"]


def test_a_file_given_directly_is_always_taken(tmp_path: Path) -> None:
    tree(tmp_path, "x.txt", "x.jinja", ".hidden.gguf")
    items = list(discover([tmp_path / "x.txt", tmp_path / "x.jinja", tmp_path / ".hidden.gguf"]))
    assert [item.kind for item in items if isinstance(item, ModelFile)] == [
        SourceKind.GGUF,
        SourceKind.JINJA,
        SourceKind.GGUF,
    ]


@pytest.mark.parametrize(
    "mark", ["chat_template.jinja", "chat_template.json", "tokenizer_config.json", "additional_chat_templates/a.jinja"]
)
def test_a_model_directory_is_one_model(tmp_path: Path, mark: str) -> None:
    tree(tmp_path, f"m/{mark}", "m/own.jinja", "m/q.gguf", "m/sub/t.jinja", "m/additional_chat_templates/b.jinja")
    assert found(tmp_path, root=tmp_path) == ["m", "m/own.jinja", "m/q.gguf", "m/sub/t.jinja"]
    (item, *_) = discover([tmp_path])
    assert isinstance(item, ModelFile) and item.kind is SourceKind.HUGGINGFACE


def test_the_fingerprint_of_a_directory_follows_the_files_that_matter(tmp_path: Path) -> None:
    tree(tmp_path, "chat_template.jinja", "config.json", "additional_chat_templates/a.jinja", "model.safetensors")

    def current() -> ModelFile:
        item = next(iter(discover([tmp_path])))
        assert isinstance(item, ModelFile)
        return item

    before = current()
    assert before.size == 12
    assert current() == before
    (tmp_path / "model.safetensors").write_bytes(b"other")
    assert current() == before
    for name in ("chat_template.jinja", "config.json", "additional_chat_templates/a.jinja"):
        last = current()
        (tmp_path / name).write_bytes(b"longer text")
        assert current().fingerprint != last.fingerprint
    assert len(before.fingerprint) == 64


def test_links_are_followed_and_loops_are_not(tmp_path: Path) -> None:
    tree(tmp_path, "store/m.gguf", "a/n.gguf")
    (tmp_path / "a/linked").symlink_to(tmp_path / "store")
    (tmp_path / "a/loop").symlink_to(tmp_path / "a")
    (tmp_path / "a/self").symlink_to(tmp_path / "a/self")
    (tmp_path / "a/broken.gguf").symlink_to(tmp_path / "nowhere")
    items = list(discover([tmp_path / "a"]))
    assert [shown(item, tmp_path) for item in items] == [
        "-a/broken.gguf",
        "a/linked/m.gguf",
        "-a/loop",
        "a/n.gguf",
        "-a/self",
    ]
    assert reasons(items) == [
        "a broken link",
        "a directory already visited, under another path or by a link loop",
        "a link loop",
    ]


def test_a_file_appears_once_however_it_is_reached(tmp_path: Path) -> None:
    tree(tmp_path, "a/m.gguf", "b/.keep")
    (tmp_path / "b/link.gguf").symlink_to(tmp_path / "a/m.gguf")
    (tmp_path / "b/again.gguf").symlink_to(tmp_path / "a/m.gguf")
    file, link, a, b = (tmp_path / name for name in ("a/m.gguf", "b/link.gguf", "a", "b"))
    assert found(file, file, root=tmp_path) == ["a/m.gguf"]
    assert found(file, a, root=tmp_path) == ["a/m.gguf"]
    assert found(a, file, root=tmp_path) == ["a/m.gguf"]
    assert found(link, file, b, a, root=tmp_path) == ["b/link.gguf"]
    assert found(b, a, root=tmp_path) == ["b/again.gguf"]
    assert found(a, b, root=tmp_path) == ["a/m.gguf"]
    assert found(a, a, root=tmp_path) == ["a/m.gguf", "-a"]


def test_links_within_one_directory_give_way_to_the_file_itself(tmp_path: Path) -> None:
    tree(tmp_path, "m.gguf", ".hidden.gguf")
    (tmp_path / "a.gguf").symlink_to("m.gguf")
    (tmp_path / "b.gguf").symlink_to(".hidden.gguf")
    assert found(tmp_path, root=tmp_path) == ["b.gguf", "m.gguf"]


def test_hard_links_are_files_of_their_own(tmp_path: Path) -> None:
    tree(tmp_path, "a.gguf")
    os.link(tmp_path / "a.gguf", tmp_path / "b.gguf")
    assert found(tmp_path / "a.gguf", tmp_path, root=tmp_path) == ["a.gguf", "b.gguf"]


def test_hidden_things(tmp_path: Path) -> None:
    tree(tmp_path, ".cache/m.gguf", ".git/objects/o.gguf", ".hidden.gguf")
    assert found(tmp_path, root=tmp_path) == [".cache/m.gguf"]


def test_a_hub_cache_is_seen_through_its_snapshots(tmp_path: Path) -> None:
    repository = tree(tmp_path / "models--x--y", "blobs/0123", "blobs/4567", "snapshots/old/.keep")
    (repository / "snapshots/old/m.gguf").symlink_to("../../blobs/0123")
    (repository / "snapshots/old/tokenizer_config.json").symlink_to("../../blobs/4567")
    assert found(tmp_path, root=repository) == ["snapshots/old", "snapshots/old/m.gguf"]
    tree(tmp_path, "plain/blobs/m.gguf")
    assert found(tmp_path / "plain", root=tmp_path) == ["plain/blobs/m.gguf"]


def test_special_files_are_never_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe.gguf")
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("sock")
        items = list(discover([tmp_path, tmp_path / "pipe", "/dev/null"]))
    assert reasons(items) == [
        f"{kind}, neither file nor directory" for kind in ("a FIFO", "a FIFO", "a socket", "a FIFO", "a device")
    ]


def test_paths_that_are_no_paths(tmp_path: Path) -> None:
    (tmp_path / "broken").symlink_to("nowhere")
    items = list(discover([tmp_path / "missing", "", "nul\0byte", tmp_path / "broken", "x" * 5000]))
    assert len(items) == 5
    assert reasons(items)[:2] == ["does not exist", "does not exist"]
    assert reasons(items)[3] == "a broken link"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_passed_over(tmp_path: Path) -> None:
    tree(tmp_path, "closed/m.gguf", "secret")
    (tmp_path / "closed").chmod(0)
    (tmp_path / "secret").chmod(0)
    try:
        assert found(tmp_path, root=tmp_path) == ["-closed", "-secret"]
    finally:
        (tmp_path / "closed").chmod(0o755)


def test_a_folder_that_cannot_be_listed_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(tmp_path, "closed/m.gguf", "open/m.gguf")
    scandir = os.scandir

    def refuse(path: str) -> object:
        if path.endswith("closed"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    items = list(discover([tmp_path]))
    assert [shown(item, tmp_path) for item in items] == ["-closed", "open/m.gguf"]
    assert reasons(items) == ["the folder cannot be listed: Permission denied"]


def test_names_that_are_not_utf8_are_passed_over(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/\xff.gguf"
    try:
        Path(os.fsdecode(path)).write_bytes(GGUF)
    except OSError:
        pytest.skip("the file system takes UTF-8 names only")
    (item,) = discover([tmp_path])
    assert item == PassedOver(f"{tmp_path}/\\xff.gguf", "its name is not valid UTF-8")


def test_a_way_up_behind_a_link_is_followed_as_the_system_does(tmp_path: Path) -> None:
    tree(tmp_path, "far/away/x.txt", "far/m.gguf", "near/x.txt")
    (tmp_path / "near/link").symlink_to(tmp_path / "far/away")
    assert found(f"{tmp_path}/near/link/../m.gguf", root=tmp_path) == ["far/m.gguf"]


def test_a_very_deep_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    depth = 0
    try:
        for depth in range(1, DEPTH + 1):  # noqa: B007
            Path("d").mkdir()
            os.chdir("d")
        Path("m.gguf").write_bytes(GGUF)
        items = list(discover([tmp_path]))
    finally:
        # pytest could not remove so deep a tree: it recurses.
        Path("m.gguf").unlink(missing_ok=True)
        for _ in range(depth):
            os.chdir("..")
            Path("d").rmdir()
    assert len(items) == 1 and isinstance(items[0], ModelFile)


def test_the_stream_is_lazy(tmp_path: Path) -> None:
    tree(tmp_path, "a/m.gguf", "b/m.gguf")
    stream = discover([tmp_path])
    assert shown(next(stream), tmp_path) == "a/m.gguf"
    tree(tmp_path, "b/new.gguf")
    assert [shown(item, tmp_path) for item in stream] == ["b/m.gguf", "b/new.gguf"]
