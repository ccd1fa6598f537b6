"""What stores call model files, scan by scan, and templates of another kind."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import Engine, func, select

from scanner.errors import UsageError
from scanner.results import GO, GO_TEMPLATE, JINJA, ChatTemplate, FileResult, ModelName, Outcome
from scanner.store import queries
from scanner.store.models import ModelNameRow, TemplateRow
from scanner.store.session import connection_scope
from tests.store import examples
from tests.store.examples import template, with_templates
from tests.store.test_queries import named

FIRST = ModelName("ollama", "llama3.2:3b", "ollama.com/library/llama3.2", "3b")
SECOND = ModelName("ollama", "llama3.2:latest", "ollama.com/library/llama3.2", "latest")
ONE = template(b"one")
GO_ONE = ChatTemplate("ollama", b"{{ .Prompt }}", "blobs/sha256-0123", GO)


def called(result: FileResult, *names: ModelName) -> FileResult:
    return replace(result, file=replace(result.file, names=names))


def kinds(engine: Engine) -> dict[bytes, str]:
    with connection_scope(engine) as connection:
        return {row.source: row.kind for row in connection.execute(select(TemplateRow.source, TemplateRow.kind))}


def test_names_are_those_of_the_newest_scan(engine: Engine) -> None:
    first = called(with_templates("/m/a", ONE), FIRST)
    examples.record(engine, first)
    writer = examples.writer(engine)
    scan = writer.begin(["/models"])
    assert writer.file_unchanged(replace(first.file, names=(SECOND, FIRST)))
    writer.finish("finished")
    detail = queries.file_detail(engine, "/m/a")
    assert detail.names == (SECOND, FIRST)
    (file,) = queries.files(engine)
    assert (file.name, file.repository, file.role) == ("llama3.2:latest", "ollama.com/library/llama3.2", None)
    assert [file.name for file in queries.files(engine, 1)] == ["llama3.2:3b"]
    assert queries.first_names(engine, scan) == {"/m/a": "llama3.2:latest"}


def test_a_file_without_names_has_none(engine: Engine) -> None:
    examples.record(engine, called(with_templates("/m/a", ONE), FIRST))
    examples.record(engine, with_templates("/m/a", ONE))
    assert queries.file_detail(engine, "/m/a").names == ()
    assert next(iter(queries.files(engine))).name is None
    assert named(engine, "names") == []


def test_a_second_result_in_one_scan_replaces_the_names(engine: Engine) -> None:
    examples.record(
        engine, called(with_templates("/m/a", ONE), FIRST, SECOND), called(with_templates("/m/a", ONE), SECOND)
    )
    with connection_scope(engine) as connection:
        assert connection.execute(select(func.count()).select_from(ModelNameRow)).scalar_one() == 1


def test_the_queries_about_names(engine: Engine) -> None:
    other = ModelName("huggingface", "org/repo/m.gguf", "org/repo", "0123")
    examples.record(
        engine,
        called(with_templates("/m/a", ONE), FIRST, SECOND),
        called(with_templates("/m/b", ONE, template(b"two", "tool_use")), other),
        with_templates("/m/c", ONE),
    )
    assert [(row["name"], row["path"], row["outcome"]) for row in named(engine, "names")] == [
        ("org/repo/m.gguf", "/m/b", "analysed"),
        ("llama3.2:3b", "/m/a", "analysed"),
        ("llama3.2:latest", "/m/a", "analysed"),
    ]
    assert [(row["files"], row["models"], row["repositories"]) for row in named(engine, "spread")] == [
        (3, 4, 2),
        (1, 1, 1),
    ]


def test_a_file_is_found_by_its_name(engine: Engine) -> None:
    examples.record(
        engine, called(with_templates("/m/a", ONE), FIRST, SECOND), called(with_templates("/m/b", ONE), FIRST)
    )
    assert queries.file_detail(engine, "llama3.2").result.file.path == "/m/a"
    with pytest.raises(UsageError, match=r"called llama3.2:3b may be any of /m/a, /m/b"):
        queries.file_detail(engine, "llama3.2:3b")
    with pytest.raises(UsageError, match="there is no model file"):
        queries.file_detail(engine, "LLAMA3.2:3b")


def test_a_go_template_is_skipped_and_not_counted(engine: Engine) -> None:
    scan = examples.record(engine, with_templates("/m/a", ONE, GO_ONE), analyses=(examples.analysis(ONE.sha256),))
    summary = queries.scan_summary(engine, scan)
    assert (summary.templates, summary.new_templates, summary.variants) == (1, 1, {"default": 1})
    assert (summary.go_templates, summary.go_files, summary.files_by_outcome) == (1, 1, {Outcome.ANALYSED: 1})
    assert [(file.variant, file.outcome, file.reason) for file in queries.files(engine)] == [
        ("default", Outcome.ANALYSED, None),
        ("ollama", Outcome.SKIPPED, GO_TEMPLATE),
    ]
    assert [row.sha256 for row in queries.templates(engine)] == [ONE.sha256]
    assert queries.not_examined(engine, scan, 9) == ()
    assert [source for _, source in queries.template_sources(engine)] == [b"one"]
    assert queries.template_detail(engine, GO_ONE.sha256).kind == GO


def test_a_go_template_is_never_analysed(engine: Engine) -> None:
    examples.record(engine, with_templates("/m/a", GO_ONE))
    writer = examples.writer(engine)
    writer.begin(["/models"])
    assert list(writer.templates_without_analysis()) == []


def test_a_go_template_stays_one_in_the_next_scan(engine: Engine) -> None:
    result = with_templates("/m/a", ONE, GO_ONE)
    examples.record(engine, result, analyses=(examples.analysis(ONE.sha256),))
    writer = examples.writer(engine)
    writer.begin(["/models"])
    assert writer.file_unchanged(result.file)
    writer.finish("finished")
    assert [file.reason for file in queries.files(engine)] == [None, GO_TEMPLATE]
    assert queries.file_detail(engine, "/m/a").result == result


def test_a_text_that_is_there_as_both_is_analysed(engine: Engine) -> None:
    both = replace(GO_ONE, variant="default", kind=JINJA)
    examples.record(engine, with_templates("/m/a", GO_ONE))
    assert kinds(engine) == {GO_ONE.source: GO}
    examples.record(engine, with_templates("/m/b", both), analyses=(examples.analysis(both.sha256),))
    assert kinds(engine) == {GO_ONE.source: JINJA}
    examples.record(engine, with_templates("/m/a", GO_ONE, fingerprint="2"))
    assert kinds(engine) == {GO_ONE.source: JINJA}
    assert [file.reason for file in queries.files(engine) if file.variant == "ollama"] == [GO_TEMPLATE]
