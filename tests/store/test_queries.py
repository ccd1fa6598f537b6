"""Reading: views, records and named queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import pytest
from sqlalchemy import Engine

from scanner.errors import UsageError
from scanner.results import CAPABILITIES, Agreement, Behaviour, Observation, Outcome, RunError, Severity, StartCheck
from scanner.store import queries
from tests.store import examples
from tests.store.examples import (
    PROFILE,
    analysis,
    capabilities,
    finding,
    not_parseable,
    observed,
    record,
    template,
    unreadable,
    with_templates,
    without_template,
)

TOOLS = template(b"tools")
PLAIN = template(b"plain")
BROKEN = template(b"{% if")
TOOL_USE = template(b"tools", "tool_use")


@pytest.fixture
def collection(engine: Engine) -> Engine:
    """Two finished scans of a small collection, and an interrupted one that must not count."""
    analyses = (
        replace(
            observed(TOOLS.sha256, ("tools", "system_role"), ("tools", "tool_calls")),
            findings=(finding(Severity.NOTE),),
            efforts=examples.EFFORTS,
            behaviours=(Behaviour("late_system", "raises", "not now", "", 3), Behaviour("clock", "same")),
        ),
        replace(
            observed(PLAIN.sha256, ("system_role",), ("system_role",)),
            findings=(finding(Severity.WARNING, "first warning"), finding(Severity.WARNING, "second warning")),
            efforts=tuple(examples.accepted(word, 1, equals_unset=True) for word in (None, "low", "high")),
            behaviours=(Behaviour("late_system", "rendered", "in place"), Behaviour("clock", "same")),
        ),
        not_parseable(BROKEN.sha256),
    )
    record(
        engine,
        with_templates("/m/a.gguf", TOOLS),
        with_templates("/m/b.gguf", PLAIN),
        with_templates("/m/gone.gguf", PLAIN),
        analyses=analyses[:2],
    )
    record(
        engine,
        with_templates("/m/a.gguf", TOOLS),
        with_templates("/m/b.gguf", TOOLS, fingerprint="2"),
        with_templates("/m/c.gguf", PLAIN, TOOL_USE),
        with_templates("/m/d.gguf", BROKEN),
        without_template("/m/e.gguf"),
        unreadable("/m/f.gguf"),
        analyses=analyses,
    )
    interrupted = examples.writer(engine)
    interrupted.begin(["/m"])
    interrupted.add_file(with_templates("/m/a.gguf", BROKEN, fingerprint="3"))
    interrupted.finish("interrupted")
    return engine


def named(engine: Engine, name: str) -> list[Mapping[str, object]]:
    answer = queries.run_named(engine, name)
    return [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]


def test_latest_files_are_those_of_the_newest_finished_scan_without_what_is_gone(collection: Engine) -> None:
    found = [(file.path, file.variant, file.sha256, file.outcome, file.scan_id) for file in queries.files(collection)]
    assert found == [
        ("/m/a.gguf", "default", TOOLS.sha256, Outcome.ANALYSED, 2),
        ("/m/b.gguf", "default", TOOLS.sha256, Outcome.ANALYSED, 2),
        ("/m/c.gguf", "default", PLAIN.sha256, Outcome.ANALYSED, 2),
        ("/m/c.gguf", "tool_use", TOOLS.sha256, Outcome.ANALYSED, 2),
        ("/m/d.gguf", "default", BROKEN.sha256, Outcome.NOT_PARSEABLE, 2),
        ("/m/e.gguf", "", None, Outcome.NO_TEMPLATE, 2),
        ("/m/f.gguf", "", None, Outcome.UNREADABLE, 2),
    ]


def test_latest_files_show_the_newest_analysis(collection: Engine) -> None:
    newer = examples.writer(collection, version="0.2.0")
    newer.begin(["/m"])
    newer.add_analysis(analysis(TOOLS.sha256, "tool_calls"))
    newer.finish("interrupted")
    first = next(iter(queries.files(collection)))
    assert first.capabilities == capabilities("tool_calls")
    assert (first.architecture, first.file_type, first.quantized_by) == ("qwen3", "Q4_K_M", "somebody")


def test_a_reader_of_files_may_stop_early(collection: Engine) -> None:
    assert next(queries.files(collection)).path == "/m/a.gguf"
    record(collection, without_template("/m/new.gguf"))


def test_failures_say_where_and_why(collection: Engine) -> None:
    found = [(file.path, file.outcome, file.reason, file.offset) for file in queries.failures(collection)]
    assert found == [
        ("/m/e.gguf", Outcome.NO_TEMPLATE, "no tokenizer.chat_template", None),
        ("/m/d.gguf", Outcome.NOT_PARSEABLE, "Expected end of statement", None),
        ("/m/f.gguf", Outcome.UNREADABLE, "the file ends early", 24),
    ]


def test_claims_are_counted_over_the_latest_files(collection: Engine) -> None:
    counts = queries.claim_counts(collection)
    assert [count.capability for count in counts] == list(CAPABILITIES)
    by_name = {count.capability: count for count in counts}
    # Claiming, analysed, observed, judged, claiming too much, too little: of templates, then of files.
    assert by_name["tools"] == queries.ClaimCount(PROFILE, "tools", *(1, 2, 1, 2, 0, 0), *(3, 3, 3, 3, 0, 0))
    assert by_name["system_role"] == queries.ClaimCount(
        PROFILE, "system_role", *(2, 2, 1, 2, 1, 0), *(3, 3, 1, 3, 3, 0)
    )
    assert by_name["tool_calls"] == queries.ClaimCount(PROFILE, "tool_calls", *(0, 2, 1, 2, 0, 1), *(0, 3, 3, 3, 0, 3))


def outlier(
    sha256: str,
    path: str,
    severity: Severity,
    text: str,
    *,
    files: int,
    errors: int = 0,
    warnings: int = 0,
    alike: int | None = None,
) -> queries.Outlier:
    compared, rule = (None, "not-parseable") if alike is None else (2, "some-rule")
    return queries.Outlier(PROFILE, sha256, path, files, severity, errors, warnings, rule, 3, text, alike, compared)


def test_outliers_are_worst_first(collection: Engine) -> None:
    assert queries.outlier_list(collection) == (
        outlier(BROKEN.sha256, "/m/d.gguf", Severity.ERROR, "llama-server would not start", files=1, errors=1),
        outlier(PLAIN.sha256, "/m/c.gguf", Severity.WARNING, "first warning", files=1, warnings=2, alike=1),
    )


def test_changes_are_between_the_two_newest_finished_scans(collection: Engine) -> None:
    found = [(c.change, c.path, c.variant, c.old_sha256, c.new_sha256) for c in queries.changes_of_scan(collection)]
    assert found == [
        ("replaced", "/m/b.gguf", "default", PLAIN.sha256, TOOLS.sha256),
        ("appeared", "/m/c.gguf", "default", None, PLAIN.sha256),
        ("appeared", "/m/c.gguf", "tool_use", None, TOOLS.sha256),
        ("appeared", "/m/d.gguf", "default", None, BROKEN.sha256),
        ("gone", "/m/gone.gguf", "default", PLAIN.sha256, None),
    ]


def test_one_scan_alone_changes_nothing(engine: Engine) -> None:
    record(engine, with_templates("/m/a.gguf", TOOLS))
    assert queries.changes_of_scan(engine) == ()


def test_a_scan_is_summed_up(collection: Engine) -> None:
    summary = queries.scan_summary(collection, 2)
    assert summary.scan.id == 2
    assert summary.files_by_outcome == {
        Outcome.ANALYSED: 3,
        Outcome.NO_TEMPLATE: 1,
        Outcome.NOT_PARSEABLE: 1,
        Outcome.UNREADABLE: 1,
    }
    assert summary.variants == {"default": 4, "tool_use": 1}
    assert (summary.templates, summary.new_templates) == (3, 1)
    assert summary.claims[0] == queries.ClaimCount(PROFILE, "tools", *(1, 2, 1, 2, 0, 0), *(3, 3, 3, 3, 0, 0))
    assert summary.claims[3] == queries.ClaimCount(PROFILE, "system_role", *(2, 2, 1, 2, 1, 0), *(3, 3, 1, 3, 3, 0))


def test_the_newest_scan_is_summed_up_unless_told(collection: Engine) -> None:
    assert queries.scan_summary(collection).scan.status == "interrupted"


def test_a_scan_that_is_not_there(engine: Engine) -> None:
    with pytest.raises(UsageError, match="no scan yet"):
        queries.scan_summary(engine)
    record(engine)
    with pytest.raises(UsageError, match="no scan 7"):
        queries.scan_summary(engine, 7)


def test_templates_are_listed_with_flags_and_files(collection: Engine) -> None:
    found = [
        (row.path, row.sha256, row.files, row.size, row.outcome, row.capabilities, row.errors, row.warnings, row.notes)
        for row in queries.templates(collection)
    ]
    assert found == [
        ("/m/a.gguf", TOOLS.sha256, 3, 5, Outcome.ANALYSED, capabilities("tools", "system_role"), 0, 0, 1),
        ("/m/c.gguf", PLAIN.sha256, 1, 5, Outcome.ANALYSED, capabilities("system_role"), 0, 2, 0),
        ("/m/d.gguf", BROKEN.sha256, 1, 5, Outcome.NOT_PARSEABLE, None, 1, 0, 0),
    ]


def test_a_template_is_found_by_the_beginning_of_its_name(collection: Engine) -> None:
    detail = queries.template_detail(collection, TOOLS.sha256[:8].upper())
    assert (detail.sha256, detail.source) == (TOOLS.sha256, b"tools")
    assert [(seen.path, seen.variant, seen.scan_id) for seen in detail.appearances] == [
        ("/m/a.gguf", "default", 2),
        ("/m/b.gguf", "default", 2),
        ("/m/c.gguf", "tool_use", 2),
    ]
    [made] = detail.analyses
    assert made.capscan_version == examples.VERSION
    assert [name for name, really in made.observed.items() if really] == ["tools", "tool_calls"]


def test_every_profile_has_its_own_analysis(collection: Engine) -> None:
    writer = examples.writer(collection)
    writer.begin(["/m"])
    writer.add_analysis(analysis(TOOLS.sha256, profile="b9713"))
    writer.finish("finished")
    made = queries.template_detail(collection, TOOLS.sha256).analyses
    assert [one.result.profile for one in made] == [PROFILE, "b9713"]


def test_templates_that_are_not_there_or_not_one(engine: Engine) -> None:
    writer = examples.writer(engine)
    writer.begin(["/m"])
    names = sorted(writer.add_template(b"%d" % number) for number in range(17))
    writer.finish("finished")
    shared = next(one[0] for one, other in pairwise(names) if one[0] == other[0])
    with pytest.raises(UsageError, match="may be any of"):
        queries.template_detail(engine, shared)
    with pytest.raises(UsageError, match="there is no template"):
        queries.template_detail(engine, "0" * 64)
    for text in ("", "%", "_", "xyz"):
        with pytest.raises(UsageError, match="not the beginning of a SHA-256"):
            queries.template_detail(engine, text)


def test_a_file_is_found_by_its_path_or_its_last_part(collection: Engine) -> None:
    for name in ("/m/c.gguf", "c.gguf", "m/c.gguf"):
        detail = queries.file_detail(collection, name)
        assert detail.result.file.path == "/m/c.gguf"
        assert [(seen.variant, seen.sha256) for seen in detail.variants] == [
            ("default", PLAIN.sha256),
            ("tool_use", TOOLS.sha256),
        ]


@pytest.mark.parametrize("name", ["", "%", "_.gguf", "C.GGUF", "gguf", "x'; DROP TABLE scans; --"])
def test_a_file_that_is_not_there(collection: Engine, name: str) -> None:
    with pytest.raises(UsageError, match="there is no model file"):
        queries.file_detail(collection, name)


def test_a_name_that_several_files_share(engine: Engine) -> None:
    record(engine, without_template("/x/m.gguf"), without_template("/y/m.gguf"))
    with pytest.raises(UsageError, match=r"may be any of /x/m\.gguf, /y/m\.gguf"):
        queries.file_detail(engine, "m.gguf")


def test_a_path_that_is_not_utf_8_is_found(engine: Engine) -> None:
    record(engine, without_template("/x/\udcff.gguf"))
    assert queries.file_detail(engine, "\udcff.gguf").result.file.path == "/x/\udcff.gguf"


def starting(engine: Engine) -> tuple[dict[str, bool | None], list[tuple[object, ...]]]:
    """For each template whether a server starts with it, and the rows of the named query."""
    known = {row.sha256: row.server_starts for row in queries.templates(engine)}
    columns = ("sha256", "path", "files", "affected", "line", "reason")
    return known, [tuple(row[column] for column in columns) for row in named(engine, "not-starting")]


def test_templates_that_keep_a_server_from_starting(engine: Engine) -> None:
    starts = replace(analysis(TOOLS.sha256), start=StartCheck(True, True))
    fails = replace(analysis(PLAIN.sha256), start=examples.not_starting("no greetings"))
    unknown = template(b"unknown")
    as_tool_use = [replace(held, variant="tool_use") for held in (PLAIN, BROKEN)]
    record(
        engine,
        with_templates("/m/a.gguf", PLAIN),
        # Beside another default neither counts; without one, what parses takes its place.
        with_templates("/m/b.gguf", TOOLS, as_tool_use[0]),
        with_templates("/m/c.gguf", TOOLS, as_tool_use[1]),
        with_templates("/m/d.gguf", as_tool_use[0]),
        with_templates("/m/e.gguf", as_tool_use[1]),
        with_templates("/m/f.gguf", BROKEN, as_tool_use[0]),
        with_templates("/m/g.gguf", unknown, replace(PLAIN, variant="rag")),
        analyses=(starts, fails, not_parseable(BROKEN.sha256), analysis(unknown.sha256)),
    )
    known, rows = starting(engine)
    assert known == {TOOLS.sha256: True, PLAIN.sha256: False, BROKEN.sha256: False, unknown.sha256: None}
    assert rows == [
        (PLAIN.sha256, "/m/a.gguf", 5, 2, 2, "no greetings"),
        (BROKEN.sha256, "/m/c.gguf", 3, 1, 1, "Expected end of statement"),
    ]


def test_a_file_tells_which_of_its_templates_keep_a_server_from_starting(engine: Engine) -> None:
    start = examples.not_starting("no greetings")
    unknown = template(b"unknown", "rag")
    made = (replace(analysis(PLAIN.sha256), start=start), analysis(PLAIN.sha256, profile="b9713"))
    others = (not_parseable(BROKEN.sha256), analysis(unknown.sha256))
    held = with_templates("/m/a.gguf", PLAIN, replace(BROKEN, variant="tool_use"), unknown)
    record(engine, held, analyses=(*made, *others))
    found = queries.file_detail(engine, "/m/a.gguf").starts
    assert found == {PLAIN.sha256: start, BROKEN.sha256: not_parseable("").server_start}


def test_sets_of_flags_are_counted(collection: Engine) -> None:
    found = [
        (row.templates, row.files, [n for n, flag in row.flags.items() if flag])
        for row in queries.combinations(collection)
    ]
    assert found == [(1, 3, ["tools", "system_role"]), (1, 1, ["system_role"])]


@pytest.mark.parametrize("name", sorted(queries.NAMED))
def test_named_queries_agree_on_every_system(collection: Engine, name: str) -> None:
    rows = named(collection, name)
    # The collection's templates have the same flags under every profile.
    # No store has a name for these files.
    assert rows or name in ("builds", "names")
    assert all(rows[0].keys() == row.keys() for row in rows)


def test_named_queries_on_an_empty_database(engine: Engine) -> None:
    assert all(named(engine, name) == [] for name in queries.NAMED)


def test_named_queries_tell_what_the_records_tell(collection: Engine) -> None:
    assert [row["path"] for row in named(collection, "files")] == [file.path for file in queries.files(collection)]
    assert [row["sha256"] for row in named(collection, "outliers")] == [
        row.sha256 for row in queries.outlier_list(collection)
    ]
    assert [row["change"] for row in named(collection, "changes")] == [
        row.change for row in queries.changes_of_scan(collection)
    ]
    assert [(row["templates"], row["files"]) for row in named(collection, "combinations")] == [(1, 3), (1, 1)]
    assert [row["outcome"] for row in named(collection, "failures")] == ["no template", "not parseable", "unreadable"]
    assert [row["id"] for row in named(collection, "scans")] == [3, 2, 1]


def test_findings_of_files_are_listed_with_those_of_templates(collection: Engine) -> None:
    writer = examples.writer(collection)
    writer.begin(["/m"])
    writer.add_file(with_templates("/m/c.gguf", PLAIN, TOOL_USE))
    writer.add_file_findings("/m/c.gguf", [finding(Severity.WARNING, rule="variants-disagree")])
    writer.finish("finished")
    found = [(row["severity"], row["rule"], row["path"]) for row in named(collection, "findings")]
    assert found == [
        ("error", "not-parseable", "/m/d.gguf"),
        ("note", "some-rule", "/m/a.gguf"),
        ("warning", "some-rule", "/m/c.gguf"),
        ("warning", "some-rule", "/m/c.gguf"),
        ("warning", "variants-disagree", "/m/c.gguf"),
    ]


def test_a_query_that_has_no_such_name(engine: Engine) -> None:
    with pytest.raises(UsageError, match="choose one of behaviour, behaviours, builds, changes, combinations, dis"):
        queries.run_named(engine, "nonsense")


def test_flags_that_depend_on_the_build_are_listed_profile_by_profile(engine: Engine) -> None:
    now = analysis(TOOLS.sha256, "tools", "typed_content")
    before = replace(analysis(TOOLS.sha256, "tools"), profile="b10809")
    record(engine, with_templates("/m/a.gguf", TOOLS), analyses=(now, before))
    rows = named(engine, "builds")
    assert [(row["profile"], bool(row["supports_typed_content"])) for row in rows] == [
        (PROFILE, True),
        ("b10809", False),
    ]


def test_the_two_ways_to_count_claims_agree(collection: Engine) -> None:
    record(collection, without_template("/m/none.gguf"), sources=("/m",))
    newest = queries.scans(collection)[1:2][0]
    assert newest.status == "interrupted"
    writer = examples.writer(collection)
    scan = writer.begin(["/m"])
    for file in {file.path: file for file in queries.files(collection)}:
        detail = queries.file_detail(collection, file)
        writer.add_file(detail.result)
    writer.finish("finished")
    assert queries.scan_summary(collection, scan).claims == queries.claim_counts(collection)


def test_disagreements_name_the_reason_and_the_files(collection: Engine) -> None:
    expected = [
        ("tool_calls", Agreement.UNDERCLAIMS, "printed", "/m/a.gguf", 3),
        ("system_role", Agreement.OVERCLAIMS, "absent", "/m/a.gguf", 3),
    ]
    found = [
        (row.capability, row.agreement, row.reason, row.path, row.files)
        for row in queries.disagreement_list(collection)
    ]
    assert found == expected
    rows = [
        (row["capability"], row["claimed"], row["really"], row["reason"], row["path"], row["files"])
        for row in named(collection, "disagreements")
    ]
    assert rows == [
        ("system_role", "yes", "no", "absent", "/m/a.gguf", 3),
        ("tool_calls", "no", "yes", "printed", "/m/a.gguf", 3),
    ]


def test_the_disagreements_of_a_scan_are_those_of_what_it_saw(collection: Engine) -> None:
    assert [(row.capability, row.files) for row in queries.disagreement_list(collection, 1)] == [
        ("tool_calls", 1),
        ("system_role", 1),
    ]
    assert queries.disagreement_list(collection, 3) == ()


def test_a_disagreement_knows_the_line_that_raised(engine: Engine) -> None:
    run = replace(examples.whole_analysis("").probes[1], name="tools", error=RunError("raised", "no", None, 1, 44, 2))
    seen = (Observation("tools", False, "raised: no", Agreement.OVERCLAIMS, run),)
    made = replace(analysis(TOOLS.sha256, "tools"), observations=seen)
    record(engine, with_templates("/m/a.gguf", TOOLS), analyses=(made,))
    assert [(row.reason, row.line) for row in queries.disagreement_list(engine)] == [("raised: no", 44)]


def test_efforts_are_counted_over_templates(collection: Engine) -> None:
    # Word, templates, accepted, inert, as unset, printed, raising.
    columns = ("word", "templates", "accepted", "inert", "as_unset", "prints_word", "raises")
    assert [tuple(row[column] for column in columns) for row in named(collection, "efforts")] == [
        (None, 2, 2, 1, 2, 0, 0),
        ("low", 2, 2, 1, 1, 1, 0),
        ("high", 2, 1, 1, 1, 0, 1),
        ("none", 1, 0, 0, 0, 0, 1),
        ("xhigh", 1, 1, 0, 1, 0, 0),
    ]


def test_behaviours_are_counted_over_templates_and_files(collection: Engine) -> None:
    assert [
        (row["key"], row["outcome"], row["templates"], row["files"]) for row in named(collection, "behaviours")
    ] == [
        ("late_system", "raises", 1, 3),
        ("late_system", "rendered", 1, 1),
        ("clock", "same", 2, 3),
    ]


@pytest.mark.parametrize(("alike", "others", "rare"), [(1, 50, True), (2, 98, False), (2, 99, True), (1, 48, False)])
def test_a_rare_set_of_flags_makes_an_outlier_of_a_large_collection(
    sqlite_engine: Engine, alike: int, others: int, rare: bool
) -> None:
    held = [template(b"%d" % number) for number in range(alike + others)]
    made = [analysis(one.sha256, *(("tools",) if place < alike else ())) for place, one in enumerate(held)]
    files = [with_templates(f"/m/{place:03}.gguf", one) for place, one in enumerate(held)]
    record(sqlite_engine, *files, analyses=tuple(made))
    found = queries.outlier_list(sqlite_engine)
    assert [(row.path, row.severity, row.rule) for row in found] == [
        (f"/m/{place:03}.gguf", Severity.NOTE, None) for place in range(alike if rare else 0)
    ]
    said = f"no other of {others + 1} templates has it" if alike == 1 else f"only 2 of {others + 2} templates have it"
    assert {row.text for row in found} <= {f"a rare set of flags: {said}"}
    assert [row.alike for row in found] == [alike] * len(found)
    assert [row["text"] for row in named(sqlite_engine, "outliers")] == [row.text for row in found]


def test_what_a_scan_could_not_examine(collection: Engine) -> None:
    found = queries.not_examined(collection, 2, 9)
    assert [(one.path, one.outcome, one.offset) for one in found] == [
        ("/m/d.gguf", Outcome.NOT_PARSEABLE, None),
        ("/m/f.gguf", Outcome.UNREADABLE, 24),
    ]
    assert queries.not_examined(collection, 2, 1) == found[:1]
