"""Reading what any scan saw, and what changed from one scan to another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, FromClause, Table, delete, select

from scanner.errors import UsageError
from scanner.results import CAPABILITIES, ChatTemplate, FileResult, Finding, Outcome, Severity, TemplateResult
from scanner.store import models, queries
from scanner.store.held import held
from scanner.store.session import connection_scope
from scanner.store.writer import NOT_ANALYSED_YET
from tests.store import examples
from tests.store.examples import (
    PROFILE,
    analysis,
    capabilities,
    finding,
    not_parseable,
    observed,
    template,
    unreadable,
    with_templates,
    without_template,
)

TOOLS = template(b"tools")
TOOL_USE = template(b"tools", "tool_use")
PLAIN = template(b"plain")
OTHER = template(b"other")
BROKEN = template(b"{% if")

ANALYSES = (
    replace(
        observed(TOOLS.sha256, ("tools", "system_role"), ("tools", "tool_calls")),
        findings=(finding(Severity.NOTE),),
        efforts=examples.EFFORTS,
    ),
    replace(
        observed(PLAIN.sha256, ("system_role",), ("system_role",)),
        findings=(finding(Severity.WARNING, "first warning"), finding(Severity.WARNING, "second warning")),
        efforts=tuple(examples.accepted(word, 1, equals_unset=True) for word in (None, "low")),
    ),
    analysis(OTHER.sha256, "typed_content"),
    not_parseable(BROKEN.sha256),
)
DISAGREE = finding(Severity.WARNING, "the two differ", "variants-disagree")
NO_TOOLS = finding(Severity.NOTE, "no tools", "no-tools")

Status = Literal["finished", "interrupted"]


def record(
    engine: Engine,
    *results: FileResult,
    sources: Sequence[str] = ("/m",),
    status: Status = "finished",
    findings: Mapping[str, Finding] | None = None,
    analyses: Iterable[TemplateResult] = ANALYSES,
) -> int:
    """One whole scan, with those of the analyses whose templates it saw; returns its number."""
    held_by_any = {held_template.sha256 for result in results for held_template in result.templates}
    writer = examples.writer(engine)
    scan = writer.begin(sources)
    for result in results:
        writer.add_file(result)
    for made in analyses:
        if made.sha256 in held_by_any:
            writer.add_analysis(made)
    for path, found in (findings or {}).items():
        writer.add_file_findings(path, [found])
    writer.finish(status)
    return scan


@pytest.fixture
def history(engine: Engine) -> Engine:
    """Scans 1 and 3 of one folder, 2 of another, and 4 of the first again, which was interrupted."""
    record(
        engine,
        with_templates("/m/a.gguf", TOOLS),
        with_templates("/m/b.gguf", PLAIN),
        with_templates("/m/c.gguf", PLAIN, TOOL_USE),
        with_templates("/m/gone.gguf", PLAIN),
        without_template("/m/healed.gguf"),
        with_templates("/m/torn.gguf", PLAIN),
        findings={"/m/c.gguf": DISAGREE},
    )
    record(engine, with_templates("/o/x.gguf", OTHER), sources=("/o",))
    record(
        engine,
        with_templates("/m/a.gguf", TOOLS),
        with_templates("/m/b.gguf", TOOLS),
        with_templates("/m/c.gguf", PLAIN),
        with_templates("/m/d.gguf", BROKEN),
        with_templates("/m/healed.gguf", PLAIN),
        unreadable("/m/torn.gguf"),
        findings={"/m/healed.gguf": NO_TOOLS},
    )
    record(
        engine,
        with_templates("/m/a.gguf", BROKEN),
        with_templates("/m/new.gguf", PLAIN),
        status="interrupted",
    )
    return engine


def everything(engine: Engine, scan_id: int | None = None) -> dict[str, object]:
    """The answers of every function that can answer for a scan."""
    return {
        "files": list(queries.files(engine, scan_id)),
        "failures": queries.failures(engine, scan_id),
        "templates": queries.templates(engine, scan_id),
        "claims": queries.claim_counts(engine, scan_id),
        "combinations": queries.combinations(engine, scan_id),
        "outliers": queries.outlier_list(engine, scan_id),
        "findings": queries.file_findings(engine, scan_id),
        "disagreements": queries.disagreement_list(engine, scan_id),
        "changes": queries.changes_of_scan(engine, scan_id),
    }


# -- what a scan saw


def test_files_are_those_that_the_scan_saw_as_it_saw_them(history: Engine) -> None:
    def seen(scan: int) -> list[tuple[object, ...]]:
        return [(file.path, file.variant, file.sha256, file.outcome) for file in queries.files(history, scan)]

    assert seen(1) == [
        ("/m/a.gguf", "default", TOOLS.sha256, Outcome.ANALYSED),
        ("/m/b.gguf", "default", PLAIN.sha256, Outcome.ANALYSED),
        ("/m/c.gguf", "default", PLAIN.sha256, Outcome.ANALYSED),
        ("/m/c.gguf", "tool_use", TOOLS.sha256, Outcome.ANALYSED),
        ("/m/gone.gguf", "default", PLAIN.sha256, Outcome.ANALYSED),
        ("/m/healed.gguf", "", None, Outcome.NO_TEMPLATE),
        ("/m/torn.gguf", "default", PLAIN.sha256, Outcome.ANALYSED),
    ]
    assert seen(2) == [("/o/x.gguf", "default", OTHER.sha256, Outcome.ANALYSED)]
    assert seen(4) == [
        ("/m/a.gguf", "default", BROKEN.sha256, Outcome.NOT_PARSEABLE),
        ("/m/new.gguf", "default", PLAIN.sha256, Outcome.ANALYSED),
    ]
    assert {file.scan_id for file in queries.files(history, 3)} == {3}


def test_files_are_described_as_they_are_known_today(history: Engine) -> None:
    described = {file.path: (file.architecture, file.capabilities) for file in queries.files(history, 1)}
    assert described["/m/a.gguf"] == ("qwen3", capabilities("tools", "system_role"))
    # The reading that failed since could not tell the architecture; the template is known.
    assert described["/m/torn.gguf"] == (None, capabilities("system_role"))


def test_an_outcome_stays_what_the_scan_recorded_when_the_template_is_analysed_later(engine: Engine) -> None:
    record(engine, with_templates("/m/a.gguf", TOOLS), analyses=())
    record(engine, with_templates("/m/a.gguf", TOOLS))
    [before], [now] = queries.files(engine, 1), queries.files(engine, 2)
    assert (before.outcome, before.reason) == (Outcome.SKIPPED, NOT_ANALYSED_YET)
    assert (now.outcome, now.reason) == (Outcome.ANALYSED, None)
    assert before.capabilities == now.capabilities == capabilities("tools", "system_role")


def test_failures_are_those_of_the_scan(history: Engine) -> None:
    def failed(scan: int) -> list[tuple[object, ...]]:
        return [(file.path, file.outcome, file.offset) for file in queries.failures(history, scan)]

    assert failed(1) == [("/m/healed.gguf", Outcome.NO_TEMPLATE, None)]
    assert failed(2) == []
    assert failed(3) == [("/m/d.gguf", Outcome.NOT_PARSEABLE, None), ("/m/torn.gguf", Outcome.UNREADABLE, 24)]


def test_templates_are_counted_over_the_files_of_the_scan(history: Engine) -> None:
    def counted(scan: int) -> list[tuple[object, ...]]:
        return [(row.path, row.sha256, row.files, row.warnings) for row in queries.templates(history, scan)]

    assert counted(1) == [("/m/a.gguf", TOOLS.sha256, 2, 0), ("/m/b.gguf", PLAIN.sha256, 4, 2)]
    assert counted(2) == [("/o/x.gguf", OTHER.sha256, 1, 0)]
    assert counted(3) == [
        ("/m/a.gguf", TOOLS.sha256, 2, 0),
        ("/m/c.gguf", PLAIN.sha256, 2, 2),
        ("/m/d.gguf", BROKEN.sha256, 1, 0),
    ]


def test_claims_are_counted_over_the_files_of_the_scan(history: Engine) -> None:
    def counted(scan: int, capability: str) -> queries.ClaimCount:
        [count] = [count for count in queries.claim_counts(history, scan) if count.capability == capability]
        return count

    # Claiming, analysed, observed, judged, claiming too much, too little: of templates, then of files.
    assert counted(1, "tools") == queries.ClaimCount(PROFILE, "tools", *(1, 2, 1, 2, 0, 0), *(2, 5, 2, 5, 0, 0))
    assert counted(3, "tools") == queries.ClaimCount(PROFILE, "tools", *(1, 2, 1, 2, 0, 0), *(2, 4, 2, 4, 0, 0))
    assert counted(2, "tools") == queries.ClaimCount(PROFILE, "tools", *(0, 1, 0, 0, 0, 0), *(0, 1, 0, 0, 0, 0))
    assert [count.capability for count in queries.claim_counts(history, 1)] == list(CAPABILITIES)
    assert queries.claim_counts(history, 1) == queries.scan_summary(history, 1).claims


def test_sets_of_flags_are_counted_over_the_files_of_the_scan(history: Engine) -> None:
    def counted(scan: int) -> list[tuple[object, ...]]:
        return [
            ([name for name, flag in row.flags.items() if flag], row.templates, row.files, row.path)
            for row in queries.combinations(history, scan)
        ]

    assert counted(1) == [
        (["system_role"], 1, 4, "/m/b.gguf"),
        (["tools", "system_role"], 1, 2, "/m/a.gguf"),
    ]
    assert counted(2) == [(["typed_content"], 1, 1, "/o/x.gguf")]


def test_outliers_are_counted_over_the_files_of_the_scan(history: Engine) -> None:
    def listed(scan: int) -> list[tuple[object, ...]]:
        return [
            (row.sha256, row.path, row.files, row.severity, row.rule, row.text, row.alike, row.templates)
            for row in queries.outlier_list(history, scan)
        ]

    warned = (Severity.WARNING, "some-rule", "first warning", 1, 2)
    unparsed = (Severity.ERROR, "not-parseable", "llama-server would not start", None, None)
    assert listed(1) == [(PLAIN.sha256, "/m/b.gguf", 4, *warned)]
    assert listed(2) == []
    assert listed(3) == [(BROKEN.sha256, "/m/d.gguf", 1, *unparsed), (PLAIN.sha256, "/m/c.gguf", 2, *warned)]


def test_flags_are_rare_among_the_templates_of_the_scan(sqlite_engine: Engine) -> None:
    held_templates = [template(b"%d" % number) for number in range(60)]
    made = [analysis(one.sha256, *(() if place else ("tools",))) for place, one in enumerate(held_templates)]
    files = [with_templates(f"/m/{place:02}.gguf", one) for place, one in enumerate(held_templates)]
    record(sqlite_engine, *files, analyses=made)
    record(sqlite_engine, *files[:49], analyses=made)
    record(sqlite_engine, *files[1:], analyses=made)
    [rare] = queries.outlier_list(sqlite_engine, 1)
    assert (rare.path, rare.text) == (
        "/m/00.gguf",
        "a rare set of flags: no other of 60 templates has it",
    )
    assert queries.outlier_list(sqlite_engine, 2) == queries.outlier_list(sqlite_engine, 3) == ()
    # Its file is gone.
    assert queries.outlier_list(sqlite_engine) == ()


def test_findings_of_files_are_those_of_the_scan(history: Engine) -> None:
    disagree = queries.FileFinding("/m/c.gguf", Severity.WARNING, "variants-disagree", "the two differ", "probe tools")
    no_tools = queries.FileFinding("/m/healed.gguf", Severity.NOTE, "no-tools", "no tools", "probe tools")
    found = [queries.file_findings(history, scan) for scan in (1, 2, 3, 4, None)]
    assert found == [(disagree,), (), (no_tools,), (), (no_tools,)]


def test_findings_of_files_are_sorted(engine: Engine) -> None:
    files = [without_template(f"/m/{name}.gguf") for name in "cab"]
    found = dict(zip([result.file.path for result in files], (NO_TOOLS, DISAGREE, NO_TOOLS), strict=True))
    scan = record(engine, *files, findings=found)
    assert [(row.rule, row.path) for row in queries.file_findings(engine, scan)] == [
        ("no-tools", "/m/b.gguf"),
        ("no-tools", "/m/c.gguf"),
        ("variants-disagree", "/m/a.gguf"),
    ]


def test_a_template_appears_where_it_had_been_seen_by_the_time_of_the_scan(history: Engine) -> None:
    def seen(scan: int | None) -> list[tuple[str, str, int]]:
        detail = queries.template_detail(history, TOOLS.sha256, scan)
        return [(one.path, one.variant, one.scan_id) for one in detail.appearances]

    assert seen(1) == [("/m/a.gguf", "default", 1), ("/m/c.gguf", "tool_use", 1)]
    assert seen(3) == [("/m/a.gguf", "default", 3), ("/m/b.gguf", "default", 3), ("/m/c.gguf", "tool_use", 1)]
    assert seen(None) == seen(4) == seen(3)


def test_every_profile_is_counted_of_an_old_scan(history: Engine) -> None:
    record(
        history,
        with_templates("/m/a.gguf", TOOLS),
        analyses=[*ANALYSES, analysis(TOOLS.sha256, "tools", profile="b9713")],
    )
    counts = {(count.profile, count.capability): count for count in queries.claim_counts(history, 1)}
    assert len(counts) == 2 * len(CAPABILITIES)
    assert counts["b9713", "tools"].files_claiming == 2
    assert [(row.profile, row.files) for row in queries.templates(history, 1)] == [
        (PROFILE, 2),
        ("b9713", 2),
        (PROFILE, 4),
    ]
    # A file's own flags are those under the profile of its scan.
    assert {row.profile for row in queries.combinations(history, 1)} == {PROFILE}


def test_a_scan_that_is_not_there_saw_nothing(history: Engine) -> None:
    with pytest.raises(UsageError, match="there is no scan 7"):
        queries.changes_of_scan(history, 7)
    assert list(queries.files(history, 7)) == []
    assert queries.templates(history, 7) == ()
    assert queries.claim_counts(history, 7) == ()
    assert queries.outlier_list(history, 7) == ()


def test_a_scan_of_every_file_is_the_newest_state(history: Engine) -> None:
    assert {file.scan_id for file in queries.files(history)} == {2, 3, 4}
    scan = record(
        history,
        with_templates("/m/a.gguf", TOOLS),
        with_templates("/m/b.gguf", PLAIN),
        with_templates("/m/c.gguf", PLAIN, TOOL_USE),
        with_templates("/m/d.gguf", BROKEN),
        with_templates("/m/gone.gguf", OTHER),
        without_template("/m/healed.gguf"),
        with_templates("/m/new.gguf", OTHER),
        unreadable("/m/torn.gguf"),
        with_templates("/o/x.gguf", OTHER),
        findings={"/m/c.gguf": DISAGREE},
    )
    assert everything(history, scan) == everything(history)
    assert rows(history, held(scan)) == rows(history, models.latest_files)


# -- the views say the same


def rows(engine: Engine, source: FromClause) -> list[dict[str, object]]:
    """All rows, in an order of their own."""
    with connection_scope(engine) as connection:
        found = [dict(row) for row in connection.execute(select(source)).mappings()]
    return sorted(found, key=repr)


def assert_the_views_agree(engine: Engine) -> None:
    def told(records: Iterable[object], view: Table) -> list[dict[str, object]]:
        names = [column.name for column in view.columns]
        return sorted(({name: _plain(getattr(one, name)) for name in names} for one in records), key=repr)

    answers: dict[Table, Sequence[object]] = {
        models.flag_distribution: queries.claim_counts(engine),
        models.outliers: queries.outlier_list(engine),
        models.changes: queries.changes_of_scan(engine),
    }
    for view, answer in answers.items():
        assert told(answer, view) == rows(engine, view), view.name


def _plain(value: object) -> object:
    return value.value if isinstance(value, Severity) else value


def test_the_views_agree_about_the_newest_state(history: Engine) -> None:
    assert_the_views_agree(history)


def test_the_views_agree_about_an_empty_database(engine: Engine) -> None:
    assert_the_views_agree(engine)
    assert all(not answer for answer in everything(engine).values())


def test_the_views_agree_about_rare_flags(engine: Engine) -> None:
    held_templates = [template(b"%d" % number) for number in range(101)]
    made = [
        analysis(one.sha256, *(() if place > 1 else ("tools",)), findings=(DISAGREE, NO_TOOLS)[: place % 3])
        for place, one in enumerate(held_templates)
    ]
    others = [
        analysis(one.sha256, *(() if place else ("tools",)), profile="b9713")
        for place, one in enumerate(held_templates)
    ]
    files = [with_templates(f"/m/{place:03}.gguf", one) for place, one in enumerate(held_templates)]
    record(engine, *files, analyses=[*made, *others])
    assert {(row.profile, row.alike) for row in queries.outlier_list(engine) if row.rule is None} == {
        (PROFILE, 2),
        ("b9713", 1),
    }
    assert_the_views_agree(engine)


# -- changes


def changed(found: Iterable[queries.Change]) -> list[tuple[object, ...]]:
    return [
        (row.change, row.path, row.variant, row.old_sha256, row.new_sha256, row.old_outcome, row.new_outcome)
        for row in found
    ]


def test_changes_between_two_scans_name_templates_and_outcomes(history: Engine) -> None:
    assert changed(queries.change_list(history, 1, 3)) == [
        ("replaced", "/m/b.gguf", "default", PLAIN.sha256, TOOLS.sha256, Outcome.ANALYSED, Outcome.ANALYSED),
        ("gone", "/m/c.gguf", "tool_use", TOOLS.sha256, None, Outcome.ANALYSED, None),
        ("appeared", "/m/d.gguf", "default", None, BROKEN.sha256, None, Outcome.NOT_PARSEABLE),
        ("gone", "/m/gone.gguf", "default", PLAIN.sha256, None, Outcome.ANALYSED, None),
        ("appeared", "/m/healed.gguf", "default", None, PLAIN.sha256, Outcome.NO_TEMPLATE, Outcome.ANALYSED),
        ("gone", "/m/torn.gguf", "default", PLAIN.sha256, None, Outcome.ANALYSED, Outcome.UNREADABLE),
    ]
    assert {(row.old_scan_id, row.new_scan_id) for row in queries.change_list(history, 1, 3)} == {(1, 3)}


def test_changes_of_any_two_scans_can_be_asked_for(history: Engine) -> None:
    assert [(row.change, row.path) for row in queries.change_list(history, 2, 1)] == [
        *(("appeared", f"/m/{name}.gguf") for name in ("a", "b", "c", "c", "gone", "torn")),
        ("gone", "/o/x.gguf"),
    ]
    assert queries.change_list(history, 3, 3) == ()


def mirrored(change: queries.Change) -> queries.Change:
    words = {"appeared": "gone", "gone": "appeared", "replaced": "replaced"}
    return queries.Change(
        change=words[change.change],
        path=change.path,
        variant=change.variant,
        old_sha256=change.new_sha256,
        new_sha256=change.old_sha256,
        old_outcome=change.new_outcome,
        new_outcome=change.old_outcome,
        old_scan_id=change.new_scan_id,
        new_scan_id=change.old_scan_id,
    )


def test_a_scan_is_compared_with_the_finished_one_before_it_of_the_same_sources(history: Engine) -> None:
    later = record(history, with_templates("/m/a.gguf", TOOLS))
    assert [queries.scan_before(history, scan) for scan in (1, 2, 3, 4, later)] == [None, None, 1, 3, 3]
    assert queries.changes_of_scan(history, 3) == queries.change_list(history, 1, 3)
    assert queries.changes_of_scan(history, later) == queries.changes_of_scan(history)
    assert queries.changes_of_scan(history, 1) == queries.changes_of_scan(history, 2) == ()


def test_what_an_interrupted_scan_did_not_come_to_is_not_gone(history: Engine) -> None:
    expected = [
        ("replaced", "/m/a.gguf", "default", TOOLS.sha256, BROKEN.sha256, Outcome.ANALYSED, Outcome.NOT_PARSEABLE),
        ("appeared", "/m/new.gguf", "default", None, PLAIN.sha256, None, Outcome.ANALYSED),
    ]
    assert changed(queries.changes_of_scan(history, 4)) == expected
    later = record(history, with_templates("/m/b.gguf", PLAIN), with_templates("/m/new.gguf", PLAIN, TOOL_USE))
    # Nor has it appeared where the older one did not come to it.
    assert [(row.change, row.path, row.variant) for row in queries.change_list(history, 4, later)] == [
        ("gone", "/m/a.gguf", "default"),
        ("appeared", "/m/new.gguf", "tool_use"),
    ]


def test_a_running_scan_is_one_that_has_not_come_to_every_file(history: Engine) -> None:
    writer = examples.writer(history)
    scan = writer.begin(["/m"])
    writer.add_file(with_templates("/m/a.gguf", PLAIN))
    writer.flush()
    assert changed(queries.changes_of_scan(history, scan)) == [
        ("replaced", "/m/a.gguf", "default", TOOLS.sha256, PLAIN.sha256, Outcome.ANALYSED, Outcome.SKIPPED)
    ]
    assert queries.newest_finished(history) == 3


def test_scans_that_are_not_there_cannot_be_compared(history: Engine) -> None:
    for asked in (
        lambda: queries.change_list(history, 1, 7),
        lambda: queries.change_list(history, 7, 1),
        lambda: queries.scan_before(history, 7),
        lambda: queries.changes_of_scan(history, 7),
    ):
        with pytest.raises(UsageError, match="there is no scan 7"):
            asked()


def test_a_variant_without_a_name_is_a_variant(engine: Engine) -> None:
    unnamed = replace(TOOLS, variant="")
    record(engine, with_templates("/m/a.gguf", unnamed), with_templates("/m/b.gguf", PLAIN, unnamed))
    record(engine, with_templates("/m/a.gguf", replace(PLAIN, variant="")), without_template("/m/b.gguf"))
    assert changed(queries.change_list(engine, 1, 2)) == [
        ("replaced", "/m/a.gguf", "", TOOLS.sha256, PLAIN.sha256, Outcome.ANALYSED, Outcome.ANALYSED),
        ("gone", "/m/b.gguf", "", TOOLS.sha256, None, Outcome.ANALYSED, Outcome.NO_TEMPLATE),
        ("gone", "/m/b.gguf", "default", PLAIN.sha256, None, Outcome.ANALYSED, Outcome.NO_TEMPLATE),
    ]
    assert_the_views_agree(engine)


# -- any history

held_variants = st.dictionaries(
    st.sampled_from(["default", "tool_use", ""]), st.sampled_from([TOOLS, PLAIN, OTHER, BROKEN]), max_size=3
)
scanned = st.tuples(
    st.sampled_from([("/m",), ("/o",), ("/m", "/o")]),
    st.dictionaries(st.sampled_from(["/m/a", "/m/b", "/o/c"]), st.none() | held_variants),
    st.sampled_from(["finished", "finished", "interrupted"]),
)


def result_of(path: str, variants: Mapping[str, ChatTemplate] | None) -> FileResult:
    if variants is None:
        return unreadable(path)
    if not variants:
        return without_template(path)
    return with_templates(path, *(replace(found, variant=variant) for variant, found in variants.items()))


def held_of(engine: Engine, scan: int) -> dict[tuple[str, str], str]:
    return {(file.path, file.variant): file.sha256 for file in queries.files(engine, scan) if file.sha256 is not None}


@given(scans=st.lists(scanned, min_size=2, max_size=4))
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_any_history_is_told_without_contradiction(
    engine: Engine, scans: Sequence[tuple[tuple[str, ...], Mapping[str, Mapping[str, ChatTemplate]], Status]]
) -> None:
    with connection_scope(engine) as connection:
        for table in (models.ScanRow, models.ModelFileRow, models.TemplateRow):
            connection.execute(delete(table))
    numbers = {}
    for sources, found, status in scans:
        results = [result_of(path, variants) for path, variants in found.items()]
        numbers[record(engine, *results, sources=sources, status=status)] = status
    assert_the_views_agree(engine)
    for old in numbers:
        for new in numbers:
            changes = queries.change_list(engine, old, new)
            assert {mirrored(change) for change in changes} == set(queries.change_list(engine, new, old))
            if {numbers[old], numbers[new]} != {"finished"}:
                continue
            replayed = held_of(engine, old)
            for change in changes:
                assert replayed.pop((change.path, change.variant), None) == change.old_sha256
                if change.new_sha256 is not None:
                    replayed[change.path, change.variant] = change.new_sha256
            assert replayed == held_of(engine, new)
