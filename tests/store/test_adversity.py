"""A database in trouble, through the command line: one clear line, and nothing lost."""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from scanner.cli import run
from scanner.store import session
from tests.gguf_builder import write_gguf
from tests.killing import PATIENCE, ask, environment, start, until

PR_CAPBSET_DROP = 24
CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 1, 2

TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"


def make_models(folder: Path, count: int, padding: int = 0) -> Path:
    folder.mkdir(exist_ok=True)
    for number in range(count):
        write_gguf(folder / f"{number:03}.gguf", f"{TEMPLATE}{{# {number} {'x' * padding} #}}")
    return folder


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_models(tmp_path_factory.mktemp("adversity") / "models", 2)


@pytest.fixture(scope="module")
def scanned(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database at rest; not to be changed."""
    database = tmp_path_factory.mktemp("scanned") / "c.db"
    process = start("scan", str(models), "--db", str(database), "--workers", "1")
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert [path.name for path in sorted(database.parent.iterdir())] == ["c.db", "c.db.lock"]
    return database


@pytest.fixture
def database(scanned: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copy(scanned, tmp_path / "c.db"))


def scan(models: Path, database: Path) -> int:
    return run(["scan", str(models), "--db", str(database), "--workers", "1"])


def the_line(capsys: pytest.CaptureFixture[str]) -> str:
    """The one line on standard error; nothing is on standard output."""
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("capscan: ")
    assert err.count("\n") == 1
    return err


def is_whole(database: Path) -> bool:
    """Whether what the first scan saw is there, in a database without faults."""
    seen = ask(database, "SELECT count(*) FROM appearances WHERE scan_id = 1 AND outcome = 'analysed'")
    return (ask(database, "PRAGMA integrity_check"), seen) == ([("ok",)], [(2,)])


def ordinary(*arguments: str | Path, prepare: Callable[[], None] = lambda: None) -> subprocess.CompletedProcess[str]:
    """The command line by a user whom permissions bind; `prepare` runs in the process before it."""

    def before() -> None:
        if os.geteuid() == 0:
            _give_up_power()
        prepare()

    command = [sys.executable, "-P", "-m", "scanner", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, env=environment(), preexec_fn=before, timeout=PATIENCE, check=False
    )


def _give_up_power() -> None:
    """Root may do what permissions forbid by two capabilities; without them in its bounding set, it may not."""
    for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
        ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)


def line_of(ended: subprocess.CompletedProcess[str]) -> str:
    assert (ended.returncode, ended.stdout) == (3, ""), ended
    assert ended.stderr.startswith("capscan: ")
    assert ended.stderr.count("\n") == 1
    return ended.stderr


@pytest.fixture
def locked_folder(database: Path) -> Iterator[Path]:
    """The database in a folder that cannot be written to."""
    folder = database.parent / "locked"
    folder.mkdir()
    shutil.copy(database, folder / "c.db")
    folder.chmod(0o555)
    yield folder
    folder.chmod(0o755)


# -- others at work ----------------------------------------------------------------------------------------------------


def test_a_scan_and_readers_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    many = make_models(tmp_path / "models", 40)
    database = tmp_path / "c.db"
    process = start("scan", str(many), "--db", str(database), "--workers", "1")
    until(lambda: ask(database, "SELECT 1 FROM analyses LIMIT 1"), process)
    with closing(sqlite3.connect(database, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        before = reader.execute("SELECT count(*) FROM analyses").fetchone()
        for command in (["query", "scans"], ["query", "--sql", "SELECT count(*) FROM analyses"]):
            assert run([*command, "--db", str(database)]) == 0
        _, err = process.communicate(timeout=PATIENCE)
        assert (process.returncode, err) == (0, "")
        assert reader.execute("SELECT count(*) FROM analyses").fetchone() == before, "a reader sees one state"
    assert ask(database, "SELECT count(*) FROM analyses") == [(40,)]
    capsys.readouterr()


def test_a_database_that_another_program_writes_to(
    models: Path, database: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "BUSY_TIMEOUT_MS", 100)
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert scan(models, database) == 3
        assert f"{database}: another program is writing to it; try again" in the_line(capsys)
        assert run(["query", "scans", "--db", str(database)]) == 0, "reading goes on"
        other.execute("ROLLBACK")
    assert is_whole(database)
    assert scan(models, database) == 0
    capsys.readouterr()


# -- a full disk -------------------------------------------------------------------------------------------------------


def test_a_limit_on_the_size_of_files(database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    many = make_models(tmp_path / "many", 12, padding=200_000)
    size = database.stat().st_size

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 300_000, size + 300_000))

    line = line_of(ordinary("scan", many, "--db", database, "--workers", "1", prepare=limit))
    assert f"{database}: its disk does not take" in line
    assert is_whole(database)
    assert scan(many, database) == 0
    assert ask(database, "SELECT status, files_seen FROM scans ORDER BY id DESC LIMIT 1") == [("finished", 12)]
    assert is_whole(database)
    capsys.readouterr()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("a small disk can only be mounted by root")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def test_a_full_disk(scanned: Path, small_disk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = Path(shutil.copy(scanned, small_disk / "c.db"))
    many = make_models(tmp_path / "many", 20, padding=200_000)
    assert scan(many, database) == 3
    assert f"{database}: the disk is full; what was written before is kept" in the_line(capsys)
    assert is_whole(database)
    subprocess.run(["mount", "-o", "remount,size=40m", small_disk], check=True)
    assert scan(many, database) == 0
    assert ask(database, "SELECT status, files_seen FROM scans ORDER BY id DESC LIMIT 1") == [("finished", 20)]
    assert is_whole(database)
    capsys.readouterr()


# -- what may not be written to ----------------------------------------------------------------------------------------


def test_a_read_only_file(models: Path, database: Path) -> None:
    database.chmod(0o444)
    line = line_of(ordinary("scan", models, "--db", database))
    assert f"{database}: it cannot be written to: the file, its folder or the disk is read-only" in line
    assert ordinary("query", "scans", "--db", database).returncode == 0
    assert is_whole(database)


def test_a_read_only_folder(models: Path, locked_folder: Path, tmp_path: Path) -> None:
    database = locked_folder / "c.db"
    line = line_of(ordinary("scan", models, "--db", database))
    assert f"{database}: the folder {locked_folder} cannot be written to" in line
    for command in (
        ["query", "scans"],
        ["query", "--sql", "SELECT count(*) FROM latest_files"],
        ["show", str(models / "000.gguf")],
        ["report", "-o", tmp_path / "report"],
    ):
        ended = ordinary(*command, "--db", database)
        assert (ended.returncode, ended.stderr) == (0, ""), command
        assert ended.stdout
    assert [path.name for path in locked_folder.iterdir()] == ["c.db"]


def test_a_log_in_a_read_only_folder(database: Path, locked_folder: Path) -> None:
    with closing(sqlite3.connect(database, isolation_level=None)) as writer:
        writer.execute("UPDATE scans SET files_seen = 77")
        locked_folder.chmod(0o755)
        for name in ("c.db", "c.db-wal"):
            shutil.copy(database.with_name(name), locked_folder / name)
        locked_folder.chmod(0o555)
    copy = locked_folder / "c.db"
    for command in (["query", "scans"], ["query", "--sql", "SELECT files_seen FROM scans"]):
        assert f"{copy}: a part of it is still in its log c.db-wal" in line_of(ordinary(*command, "--db", copy))
    locked_folder.chmod(0o755)
    assert "77" in ordinary("query", "--sql", "SELECT files_seen FROM scans", "--db", copy).stdout


# -- what is no database of ours ---------------------------------------------------------------------------------------

READERS = (["query", "scans"], ["show", "x.gguf"], ["report", "-o", "nowhere"], ["db", "current"], ["db", "prune"])


@pytest.mark.parametrize("content", [b"# Notes\n\nNot a database.\n" * 500, b"SQLite format 3", os.urandom(5000)])
def test_a_file_that_is_no_database(
    content: bytes, models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "notes.md"
    file.write_bytes(content)
    assert scan(models, file) == 3
    assert f"{file}: this is not a database" in the_line(capsys)
    for command in READERS:
        assert run([*command, "--db", str(file)]) == 3
        assert "this is not a database; choose another with --db" in the_line(capsys)
    assert file.read_bytes() == content
    assert list(tmp_path.iterdir()) == [file], "no lock or log is left beside it"


def test_a_folder_for_a_database(models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert scan(models, tmp_path) == 3
    said = f"{tmp_path}: this is a folder; name a file in it: --db {tmp_path / 'capscan.db'}"
    assert said in the_line(capsys)
    for command in READERS:
        assert run([*command, "--db", str(tmp_path)]) == 3
        assert said in the_line(capsys)
    assert list(tmp_path.iterdir()) == []
    assert scan(models, tmp_path / "nowhere" / "c.db") == 3
    assert f"the folder {tmp_path / 'nowhere'} does not exist; make it first" in the_line(capsys)


def test_an_empty_file(models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "c.db"
    file.touch()
    assert run(["query", "scans", "--db", str(file)]) == 3
    assert "is empty: run `capscan scan" in the_line(capsys)
    assert scan(models, file) == 0
    assert is_whole(file)
    capsys.readouterr()


def test_a_database_of_another_program(models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "photos.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE photos (id INTEGER)")
    content = file.read_bytes()
    assert scan(models, file) == 3
    assert "is not a Capscan database: it has other tables (photos)" in the_line(capsys)
    assert file.read_bytes() == content


def test_a_database_of_a_newer_capscan(models: Path, database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    assert scan(models, database) == 3
    line = the_line(capsys)
    assert f"{database} has the schema revision 9999" in line
    assert "a newer Capscan wrote it, upgrade Capscan" in line
    for command in (["query", "scans"], ["db", "prune"], ["db", "upgrade"]):
        assert run([*command, "--db", str(database)]) == 3
        assert "a newer Capscan wrote it" in the_line(capsys)
    assert is_whole(database)


def test_a_damaged_database(models: Path, database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = bytearray(database.read_bytes())
    content[4096:] = os.urandom(len(content) - 4096)
    database.write_bytes(content)
    assert scan(models, database) == 3
    assert f"{database}: the database file is damaged" in the_line(capsys)
    assert database.read_bytes()[:4096] == content[:4096]
