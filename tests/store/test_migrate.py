"""The schema: made, upgraded, compared with the models, and refused where it is not ours."""

from __future__ import annotations

import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine, inspect

from scanner.errors import DatabaseError, RevisionError
from scanner.results import TemplateResult
from scanner.store import migrate, queries
from scanner.store.models import VIEWS, Base
from scanner.store.session import connection_scope, open_database
from tests.store import examples, kept

KEPT = sorted(kept.FOLDER.glob("*.sqlite"))


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "100% mine?" / "capscan.sqlite"


@pytest.fixture
def fresh(target: Path) -> Engine:
    target.parent.mkdir()
    return open_database(str(target))


def set_revision(engine: Engine, revision: str) -> None:
    with connection_scope(engine) as connection:
        connection.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{revision}'")  # noqa: S608 - of the test


def test_models_and_migrations_agree(engine: Engine) -> None:
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []


def test_views_have_the_columns_that_queries_expect(engine: Engine) -> None:
    found = inspect(engine)
    for view in VIEWS.sorted_tables:
        assert [column["name"] for column in found.get_columns(view.name)] == [column.name for column in view.columns]


def test_a_new_database_is_made_where_asked(fresh: Engine, target: Path) -> None:
    migrate.ensure_current(fresh, create=True)
    assert migrate.current(fresh) == migrate.head()
    with fresh.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal"
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar_one() == 1
    assert target.is_file()


def test_a_current_database_is_left_alone(engine: Engine) -> None:
    examples.record(engine, examples.without_template("/m"))
    migrate.ensure_current(engine, create=True)
    migrate.ensure_current(engine, create=False)
    assert len(queries.scans(engine)) == 1


def test_down_to_nothing_and_up_again(engine: Engine) -> None:
    examples.record(engine, examples.without_template("/m"))
    migrate.downgrade(engine, "base")
    assert migrate.current(engine) is None
    assert inspect(engine).get_table_names() == ["alembic_version"]
    assert inspect(engine).get_view_names() == []
    migrate.ensure_current(engine, create=True)
    assert queries.scans(engine) == ()


def seen(engine: Engine, revision: str) -> list[list[dict[str, object]]]:
    """What the views show, but for what a revision has no room for."""
    later = set() if revision >= "0006" else {"name", "repository", "role"}
    answers = [queries.run_sql(engine, f"SELECT * FROM {view}", seconds=9) for view in VIEWS.tables]  # noqa: S608 - names of ours
    return [
        [{key: cell for key, cell in zip(found.columns, row, strict=True) if key not in later} for row in found.rows]
        for found in answers
    ]


@pytest.mark.parametrize("revision", [path.stem for path in KEPT])
def test_back_to_every_revision_and_up_again_keeps_the_data(revision: str, tmp_path: Path) -> None:
    engine = open_database(str(tmp_path / "back.sqlite"))
    kept.make(tmp_path / "back.sqlite")
    before = seen(engine, revision)
    migrate.downgrade(engine, revision)
    assert migrate.current(engine) == revision
    migrate.upgrade(engine)
    assert seen(engine, revision) == before
    assert bool(queries.file_detail(engine, "sha256-01").names) == (revision >= "0006")
    (analysis,) = queries.template_detail(engine, examples.template(kept.SOURCE).sha256).analyses
    assert len(analysis.result.probes) == 2
    assert [bool(lines) for lines in (analysis.result.lines, analysis.result.probes[0].lines)] == [
        revision >= "0005"
    ] * 2
    engine.dispose()


def known_to(revision: str, sha256: str) -> TemplateResult:
    """The whole analysis as far as a revision had room for it."""
    result = examples.whole_analysis(sha256)
    if revision < "0008":
        result = replace(result, renders=tuple([replace(render, inputs=None) for render in result.renders]))
    if revision < "0005":
        result = replace(result, lines=(), probes=tuple([replace(run, lines=()) for run in result.probes]))
    if revision < "0004":
        nothing: tuple[()] = ()
        result = replace(
            result, observations=nothing, efforts=nothing, free_text_effort=None, behaviours=nothing, renders=nothing
        )
    return result if revision >= "0003" else replace(result, start=None)


def test_the_head_has_a_kept_database() -> None:
    assert migrate.head() in [path.stem for path in KEPT]


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_every_kept_database_upgrades_and_keeps_its_data(path: Path, tmp_path: Path) -> None:
    engine = open_database(shutil.copy(str(path), str(tmp_path)))
    assert migrate.current(engine) == path.stem
    migrate.ensure_current(engine, create=True)
    assert migrate.current(engine) == migrate.head()
    expected = examples.whole_file("/models/whole.gguf", kept.SOURCE)
    assert queries.file_detail(engine, "whole.gguf").result == expected
    detail = queries.template_detail(engine, expected.templates[0].sha256)
    assert [analysis.result for analysis in detail.analyses] == [known_to(path.stem, detail.sha256)]
    if path.stem >= "0006":
        expected = examples.named_file("/models/blobs/sha256-01")
        assert queries.file_detail(engine, "one").result == expected
    broken = queries.file_detail(engine, "broken.gguf")
    assert [check.ok for check in broken.starts.values()] == [False]
    assert [scan.status for scan in queries.scans(engine)] == ["finished", "finished"]
    engine.dispose()


def test_a_missing_file_names_the_command_and_is_not_made(fresh: Engine, target: Path) -> None:
    with pytest.raises(DatabaseError, match="does not exist: run `capscan scan"):
        migrate.ensure_current(fresh, create=False)
    assert not target.exists()


def test_an_empty_file_names_the_command(fresh: Engine, target: Path) -> None:
    target.touch()
    with pytest.raises(DatabaseError, match="is empty: run `capscan scan"):
        migrate.ensure_current(fresh, create=False)


def test_an_older_revision_is_upgraded_for_a_scan_only(fresh: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    migrate.ensure_current(fresh, create=True)
    # There is one revision so far: a head still to come makes it the older one.
    monkeypatch.setattr(migrate, "head", lambda: "9999")
    with pytest.raises(RevisionError, match=r"run `capscan db upgrade --db .*capscan\.sqlite`"):
        migrate.ensure_current(fresh, create=False)
    migrate.ensure_current(fresh, create=True)


@pytest.mark.parametrize("create", [True, False])
def test_an_unknown_revision_is_refused(engine: Engine, create: bool) -> None:
    set_revision(engine, "abcd")
    try:
        with pytest.raises(DatabaseError, match=r"abcd.*a newer Capscan wrote it") as caught:
            migrate.ensure_current(engine, create=create)
        assert not isinstance(caught.value, RevisionError)
    finally:
        set_revision(engine, migrate.head())


@pytest.mark.parametrize("create", [True, False])
def test_a_file_that_is_not_a_database_is_refused(fresh: Engine, target: Path, create: bool) -> None:
    target.write_bytes(b"GGUF" * 1000)
    with pytest.raises(DatabaseError, match="this is not a database"):
        migrate.ensure_current(fresh, create=create)
    assert target.read_bytes() == b"GGUF" * 1000


@pytest.mark.parametrize("create", [True, False])
def test_a_database_of_something_else_is_refused_and_unchanged(fresh: Engine, target: Path, create: bool) -> None:
    with sqlite3.connect(target) as other:
        other.execute("CREATE TABLE bookmarks (url TEXT)")
    other.close()
    before = target.read_bytes()
    with pytest.raises(DatabaseError, match=r"has other tables \(bookmarks\)"):
        migrate.ensure_current(fresh, create=create)
    assert target.read_bytes() == before


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match="cannot be opened"):
        migrate.ensure_current(open_database(str(tmp_path / "none" / "x.sqlite")), create=True)
