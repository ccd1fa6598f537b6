"""One piece of work at a time on a database, and none for the dead."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Engine

from scanner.errors import DatabaseError
from scanner.store import lock
from scanner.store.lock import LockedError, database_lock, lock_file
from scanner.store.session import open_database
from tests.killing import PATIENCE, environment

HOLD = """
import sys, time
from scanner.store.lock import database_lock
from scanner.store.session import open_database
with database_lock(open_database(sys.argv[1]), "scan"):
    print("held", flush=True)
    time.sleep(600)
"""


@contextmanager
def holder(engine: Engine) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock."""
    url = engine.url.render_as_string(hide_password=False)
    with subprocess.Popen(
        [sys.executable, "-P", "-c", HOLD, url],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_lock_is_held_by_one(engine: Engine) -> None:
    with database_lock(engine, "scan"):
        with pytest.raises(LockedError) as caught, database_lock(engine, "db prune"):
            pass
        assert f"`capscan scan` is at work on it: process {os.getpid()} on " in str(caught.value)
        assert "since 2" in str(caught.value)
        assert "--wait SECONDS" in str(caught.value)
        assert "\n" not in str(caught.value)
    with database_lock(engine, "db prune") as held:
        assert held.holder.work == "db prune"


def test_a_dead_process_holds_no_lock(engine: Engine) -> None:
    with holder(engine) as process:
        with pytest.raises(LockedError, match=f"process {process.pid} on "), database_lock(engine, "scan"):
            pass
        process.kill()
        # The server needs a moment to notice.
        with database_lock(engine, "scan", wait=PATIENCE):
            pass


def test_a_lock_is_waited_for(engine: Engine) -> None:
    with holder(engine) as process:
        threading.Timer(0.5, process.terminate).start()
        with database_lock(engine, "scan", wait=PATIENCE):
            assert process.wait(PATIENCE) != 0
    with database_lock(engine, "scan"):
        begun = time.monotonic()
        with pytest.raises(LockedError, match=r"it was waited for 0\.3 s"), database_lock(engine, "scan", wait=0.3):
            pass
        assert time.monotonic() - begun >= 0.3


def test_an_error_lets_the_lock_go(engine: Engine) -> None:
    with pytest.raises(KeyboardInterrupt), database_lock(engine, "scan"):
        raise KeyboardInterrupt
    with database_lock(engine, "scan"):
        pass


def test_a_link_has_the_lock_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    link = tmp_path / "link.db"
    link.symlink_to(tmp_path / "data" / "real.db")
    with database_lock(open_database(str(link)), "scan"):
        assert (tmp_path / "data" / "real.db.lock").exists()
        for other in (str(tmp_path / "data" / "real.db"), f"sqlite:///file:{tmp_path}/data/real.db?uri=true"):
            with pytest.raises(LockedError), database_lock(open_database(other), "scan"):
                pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "link.db"]


def test_a_lock_whose_file_was_removed_is_taken_anew(tmp_path: Path) -> None:
    path = tmp_path / "x.db.lock"
    descriptor = lock._try_file(path, "x.db")
    assert descriptor is not None
    path.unlink()
    assert not lock._is_at(descriptor, path)
    path.touch()
    assert not lock._is_at(descriptor, path)
    os.close(descriptor)


def test_nothing_is_left_beside_what_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "passwd").write_text("root:x:0:0\n")
    for name, said in (("passwd", "not a database"), ("", "this is a folder")):
        with pytest.raises(DatabaseError, match=said), database_lock(open_database(f"{tmp_path}/{name}"), "scan"):
            pass
    assert [path.name for path in tmp_path.iterdir()] == ["passwd"]


def test_a_lock_is_no_link(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("keep me")
    lock_file(tmp_path / "x.db").symlink_to(tmp_path / "precious")
    with (
        pytest.raises(DatabaseError, match="cannot be opened"),
        database_lock(open_database(str(tmp_path / "x.db")), "scan"),
    ):
        pass
    assert (tmp_path / "precious").read_text() == "keep me"


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with (
        pytest.raises(DatabaseError, match=r"the folder .*/nowhere does not exist; make it first"),
        database_lock(open_database(str(tmp_path / "nowhere" / "x.db")), "scan"),
    ):
        pass


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_descriptor: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    said = "no locks (No locks available): put the database on a local disk"
    with (
        pytest.raises(DatabaseError, match=re.escape(said)),
        database_lock(open_database(str(tmp_path / "x.db")), "scan"),
    ):
        pass


def test_what_stands_in_the_file_is_only_for_the_message(sqlite_engine: Engine) -> None:
    path = lock_file(Path(str(sqlite_engine.url.database)))
    path.write_text('{"work": "scan", "pid": 1, "host": "h", "since": "x"}')
    with database_lock(sqlite_engine, "scan"):
        path.write_bytes(b"\xff nonsense")
        with pytest.raises(LockedError, match="another process is at work on it"), database_lock(sqlite_engine, "scan"):
            pass
    assert path.read_bytes() == b""


def test_a_database_in_memory_is_nobody_elses() -> None:
    engine = open_database(":memory:")
    with database_lock(engine, "scan"), database_lock(engine, "scan"):
        pass
