"""What the index says of a database, and what it leads to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from sqlalchemy import Engine

from reports.overview import Overview, TemplateNotes, notes_of, page_id, read_overview
from reports.pages import IndexPage, changes_page, index_page, outliers_page, templates_page
from reports.pages.changes import change_list
from reports.pages.compare import compare_id
from reports.pages.effort_matrix import COLUMNS, EffortCell, EffortState, effort_matrix
from reports.pages.findings import findings_page
from reports.pages.flag_builds import BuildCount, Turn
from reports.pages.index import CHANGES_SHOWN, COMBINATIONS_SHOWN, FAILURES_SHOWN, OUTLIERS_SHOWN
from reports.render import render_page
from scanner.results import (
    CAPABILITIES,
    Capabilities,
    ChatTemplate,
    Effort,
    FileResult,
    Finding,
    Outcome,
    Severity,
    TemplateResult,
)
from scanner.store import queries
from tests.reports.html_check import Parsed, parse_text
from tests.store import examples
from tests.store.examples import (
    accepted,
    analysis,
    observed,
    raising,
    template,
    unreadable,
    with_templates,
    without_template,
)

A, B, C = (template(f"{{{{ messages[0].{name} }}}}".encode()) for name in ("content", "role", "name"))


def read(engine: Engine, scan: int | None = None) -> tuple[Overview, dict[tuple[str, str], TemplateNotes]]:
    overview = read_overview(engine, scan)
    notes: dict[tuple[str, str], TemplateNotes] = {}
    for sha256 in {one.sha256 for one in overview.templates}:
        notes |= notes_of(queries.template_detail(engine, sha256))
    return overview, notes


def index_of(engine: Engine, scan: int | None = None) -> IndexPage:
    return index_page(*read(engine, scan))


def parsed(page: IndexPage) -> Parsed:
    return parse_text(render_page(page))


def text_of(page: IndexPage) -> str:
    return " ".join("".join(parsed(page).text).split())


def files(*templates: ChatTemplate) -> list[FileResult]:
    return [with_templates(f"/models/{number}.gguf", one) for number, one in enumerate(templates)]


# -- how many, how good, what is wrong


def test_the_numbers_of_a_collection(empty_engine: Engine) -> None:
    good, bad = observed(A.sha256, ("tools",), ("tools",)), observed(B.sha256, ("tools", "tool_calls"), ("tools",))
    wrong = replace(bad, findings=(examples.finding(Severity.ERROR), examples.finding(Severity.NOTE)))
    examples.record(
        empty_engine, *files(A, A, B), unreadable("/models/cut.gguf"), without_template("/models/base.gguf"),
        analyses=(good, wrong),
    )  # fmt: skip
    summary = index_of(empty_engine).summary
    assert (summary.files, summary.templates) == (5, 2)
    assert {(one.outcome, one.files, one.address) for one in summary.outcomes} == {
        (Outcome.ANALYSED, 3, "models.html?outcome=analysed"),
        (Outcome.UNREADABLE, 1, "failures.html#unreadable"),
        (Outcome.NO_TEMPLATE, 1, "failures.html#no-template"),
    }
    assert (summary.good.right, summary.good.judged, summary.good.clean, summary.good.analysed) == (1, 2, 1, 2)
    assert summary.findings == {Severity.ERROR: 1, Severity.WARNING: 0, Severity.NOTE: 1}
    assert (summary.outliers, summary.verified, summary.changes) == (1, {}, {})


def test_the_number_of_findings_is_that_of_their_page(empty_engine: Engine) -> None:
    """Of findings of every severity, of files too, under two builds."""
    findings = tuple(examples.finding(severity) for severity in Severity)
    writing = examples.writer(empty_engine)
    writing.begin(["/models"])
    for file in (*files(A, B), without_template("/models/base.gguf")):
        writing.add_file(file)
    for profile in ("b11549", "b9713"):
        writing.add_analysis(analysis(A.sha256, findings=findings, profile=profile))
    writing.add_analysis(analysis(B.sha256, findings=findings[:1]))
    writing.add_file_findings("/models/base.gguf", [examples.finding(Severity.NOTE)])
    writing.finish("finished")
    overview, notes = read(empty_engine)
    assert index_page(overview, notes).summary.findings == findings_page(overview, notes).totals


def test_what_was_not_examined_is_not_good(empty_engine: Engine) -> None:
    examples.record(empty_engine, *files(A, B), analyses=(examples.not_parseable(A.sha256), analysis(B.sha256)))
    page = index_of(empty_engine)
    assert (page.summary.good.analysed, page.summary.good.clean, page.summary.good.judged) == (1, 1, 0)
    assert page.distribution.left_out == 1
    assert "Nothing is known of 1 template: it could not be examined." in text_of(page)
    assert "every flag right" not in text_of(page)


# -- the flags


def test_the_distribution_is_of_the_scan_s_profile(several_builds: Engine) -> None:
    page = index_of(several_builds)
    assert page.distribution.profiles == ("b11549",)
    tools = page.distribution.flags[0]
    assert (tools.capability, tools.templates.claiming, tools.templates.analysed) == ("tools", 2, 3)
    assert (tools.templates.over, tools.templates.under, tools.templates.wrong) == (1, 0, "1 too much")
    assert (tools.files.claiming, tools.files.analysed, tools.files.over) == (3, 4, 2)


def test_a_picture_says_in_words_what_it_shows(several_builds: Engine) -> None:
    found = parsed(index_of(several_builds))
    pictures = [attributes for tag, attributes in found.elements if tag == "svg" and attributes.get("class") == "share"]
    assert len(pictures) == len(CAPABILITIES)
    assert pictures[0]["role"] == "img"
    assert pictures[0]["aria-label"] == (
        "2 of 3 templates claim it, 1 of 3 really have it; 1 claimed, not true. "
        "3 of 4 files claim it, 1 of 4 really have it; 2 claimed, not true."
    )


def test_every_number_of_the_distribution_leads_to_its_list(several_builds: Engine) -> None:
    links = parsed(index_of(several_builds)).values("href")
    for name in CAPABILITIES:
        assert {f"capabilities/{name}.html#yes", f"models.html?{name}=yes"} <= set(links)
    assert "capabilities/tools.html#wrong" in links


def test_combinations_have_an_example_to_look_at(several_builds: Engine) -> None:
    page = index_of(several_builds)
    assert page.combinations.total == 3
    first = page.combinations.rows[0]
    assert (first.templates, first.files, first.path, first.page) == (1, 2, "0.gguf", page_id(A.sha256))


# -- several builds


@pytest.fixture
def several_builds(empty_engine: Engine) -> Engine:
    """Three templates under three builds; the oldest has no flag for the effort."""
    analyses = [
        observed(A.sha256, ("tools", "system_role"), ("system_role",)),
        observed(B.sha256, ("tools",), ("tools",)),
        observed(C.sha256, (), ()),
        analysis(A.sha256, "tools", profile="b10229"),
        analysis(B.sha256, "tools", profile="b10229"),
        analysis(C.sha256, "typed_content", profile="b10229"),
    ]
    old = [analysis(one.sha256, "tools", "system_role", profile="b9713") for one in (A, B)]
    analyses += [replace(one, capabilities=without_effort(one)) for one in old]
    examples.record(empty_engine, *files(A, A, B, C), analyses=tuple(analyses))
    return empty_engine


def without_effort(result: TemplateResult) -> Capabilities:
    assert result.capabilities is not None
    return replace(result.capabilities, reasoning_effort=None)


def test_builds_are_counted_oldest_first(several_builds: Engine) -> None:
    builds = index_of(several_builds).builds
    assert builds.profiles == ("b9713", "b10229", "b11549")
    flags = {one.capability: one for one in builds.flags}
    assert flags["tools"].counts == (BuildCount(2, 2), BuildCount(2, 3), BuildCount(2, 3))
    assert flags["system_role"].turns == (Turn(0, 2), Turn(1, 0))
    # The oldest has no such flag, which is no flip.
    assert flags["reasoning_effort"].counts[0] == BuildCount(0, 0)
    assert flags["reasoning_effort"].turns == (Turn(0, 0), Turn(0, 0))


def test_what_flips_from_build_to_build_is_named(several_builds: Engine) -> None:
    steps = index_of(several_builds).builds.steps
    assert [(step.before, step.now, step.changed, step.compared) for step in steps] == [
        ("b9713", "b10229", 2, 2),
        ("b10229", "b11549", 2, 3),
    ]
    groups = {(group.capability, group.now): [one.page for one in group.templates] for group in steps[1].groups}
    assert groups == {("system_role", True): [page_id(A.sha256)], ("typed_content", False): [page_id(C.sha256)]}
    found = parsed(index_of(several_builds))
    assert f"templates/{page_id(C.sha256)}.html#builds" in found.values("href")
    assert set(found.ids) >= {link[1:] for link in found.values("href") if link.startswith("#turn-")}
    assert [link for link in found.values("href") if link.startswith("#turn-")] == [
        "#turn-b9713-b10229-system_role",
        "#turn-b10229-b11549-system_role",
        "#turn-b10229-b11549-typed_content",
    ]


def test_one_build_alone_says_how_to_get_the_others(empty_engine: Engine) -> None:
    examples.record(empty_engine, *files(A), analyses=(analysis(A.sha256),))
    page = index_of(empty_engine)
    assert page.builds.steps == ()
    assert "Only b11549 is known. capscan scan --profile all tells what other builds would say." in text_of(page)


def test_a_template_counts_once_however_many_builds_know_it(several_builds: Engine) -> None:
    overview, notes = read(several_builds)
    assert index_page(overview, notes).summary.templates == 3
    assert [row.profile for row in templates_page(overview, notes).rows] == ["b11549"] * 3


def test_a_template_known_under_another_build_only_is_shown_under_that(empty_engine: Engine) -> None:
    examples.record(empty_engine, *files(A, B), analyses=(analysis(A.sha256), analysis(B.sha256, profile="b9713")))
    overview, notes = read(empty_engine)
    assert {row.profile for row in templates_page(overview, notes).rows} == {"b11549", "b9713"}
    spread = index_page(overview, notes).distribution
    assert (spread.profiles, spread.left_out, spread.flags[0].templates.analysed) == (("b9713", "b11549"), 0, 2)


# -- outliers


def test_outliers_are_cut_and_lead_on(empty_engine: Engine) -> None:
    many = [template(b"%d" % number) for number in range(OUTLIERS_SHOWN + 3)]
    found = examples.finding(Severity.WARNING, "a reason", "some-rule")
    made = [analysis(one.sha256, findings=(found, found)) for one in many]
    other = analysis(many[0].sha256, findings=(found,), profile="b9713")
    examples.record(empty_engine, *files(*many), analyses=(*made, other))
    overview, notes = read(empty_engine)
    page = index_page(overview, notes)
    assert (page.outliers.total, len(page.outliers.rows)) == (OUTLIERS_SHOWN + 3, OUTLIERS_SHOWN)
    assert len(outliers_page(overview).outliers.rows) == OUTLIERS_SHOWN + 3
    row = page.outliers.rows[0]
    assert (row.text, row.rule, row.line, row.warnings) == ("a reason", "some-rule", 3, 2)
    links = parsed(page).values("href")
    for link in ("#findings", "#files", "#L3", ""):
        assert f"templates/{row.page}.html{link}" in links
    assert {"findings.html#rule-warning-some-rule", "outliers.html"} <= set(links)
    assert "1 more" in text_of(page)


# -- reasoning efforts


def with_efforts(result: TemplateResult, *efforts: Effort) -> TemplateResult:
    return replace(result, efforts=efforts)


def test_efforts_by_template(empty_engine: Engine) -> None:
    unset, same = accepted(None, 1, equals_unset=True), accepted("none", 1, equals_unset=True)
    made = (
        with_efforts(analysis(A.sha256), unset, same, accepted("low", 2), accepted("max", 2), accepted("own", 3)),
        with_efforts(analysis(B.sha256, "reasoning_effort"), raising(None, 7), *(accepted(w, 1) for w in LATER)),
        with_efforts(analysis(C.sha256), unset, same, *(accepted(w, 1, equals_unset=True) for w in ("low", "max"))),
    )
    examples.record(empty_engine, *files(A, B, C, template(b"no efforts")), analyses=(*made, NO_EFFORTS))
    matrix = effort_matrix(*read(empty_engine))
    assert matrix.words == (None, "none", "low", "max")
    assert (matrix.alike, matrix.untried) == (1, 1)
    # What raises comes first.
    inert, differing = matrix.rows
    assert [cell.state.value if cell else "" for cell in inert.cells] == ["raises", "inert", "inert", "inert"]
    assert inert.cells[0] == EffortCell(None, EffortState.RAISES, None, 7, raising(None).message)
    assert differing.cells == (
        EffortCell(None, EffortState.UNSET),
        EffortCell("none", EffortState.UNSET),
        EffortCell("low", EffortState.ACCEPTED),
        EffortCell("max", EffortState.ACCEPTED, alike="low"),
    )
    assert differing.others == (EffortCell("own", EffortState.ACCEPTED),)
    text = text_of(index_of(empty_engine))
    assert "0.gguf also knows own: ● accepted" in text
    assert "1 other template is alike for every effort. Of 1 template it is not known: no effort was tried." in text
    assert f"templates/{page_id(B.sha256)}.html#L7" in parsed(index_of(empty_engine)).values("href")


LATER = ("none", "low", "max")
NO_EFFORTS = analysis(template(b"no efforts").sha256)


def test_a_template_that_reads_the_effort_for_nothing_is_shown(empty_engine: Engine) -> None:
    alike = [accepted(word, 1, equals_unset=True) for word in (None, "low")]
    made = with_efforts(analysis(A.sha256, "reasoning_effort"), *alike)
    examples.record(empty_engine, *files(A), analyses=(made,))
    (row,) = effort_matrix(*read(empty_engine)).rows
    assert [cell.state for cell in row.cells if cell] == [EffortState.INERT] * 2


def test_any_number_of_words_fits(empty_engine: Engine) -> None:
    words = [accepted(f"word{number}", number + 1) for number in range(40)]
    examples.record(empty_engine, *files(A), analyses=(with_efforts(analysis(A.sha256), *words),))
    matrix = effort_matrix(*read(empty_engine))
    assert (len(matrix.words), len(matrix.rows[0].others)) == (COLUMNS, 40 - COLUMNS)
    assert f"{40 - COLUMNS - 6} more" in text_of(index_of(empty_engine))


# -- what changed


@pytest.fixture
def two_scans(empty_engine: Engine) -> Engine:
    """Two files have another template, one with other flags; one is gone, one has come, one was torn."""
    first = [with_templates(f"/m/{name}.gguf", A) for name in ("kept", "one", "two", "gone", "torn")]
    examples.record(empty_engine, *first, analyses=(analysis(A.sha256, "tools", "system_role"),))
    second = [
        first[0],
        with_templates("/m/one.gguf", B, fingerprint="2"),
        with_templates("/m/two.gguf", B, fingerprint="2"),
        with_templates("/m/come.gguf", C),
        unreadable("/m/torn.gguf"),
    ]
    examples.record(empty_engine, *second, analyses=(analysis(B.sha256, "tools", "typed_content"), analysis(C.sha256)))
    return empty_engine


def test_changes_are_told_with_the_flags_that_flipped(two_scans: Engine) -> None:
    changes = index_of(two_scans).changes
    assert (changes.before, changes.counts, changes.flipped) == (1, {"appeared": 1, "gone": 2, "replaced": 2}, 2)
    replaced, torn, gone, come = sorted(
        changes.rows, key=lambda row: ("one", "torn", "gone", "come").index(row.path[:-5])
    )
    # What can no longer be examined comes first, then what flips flags.
    assert changes.rows[:2] == (torn, replaced)
    assert (replaced.change, replaced.places) == ("replaced", 2)
    assert [flip.words for flip in replaced.flips] == ["system role yes → no", "typed content no → yes"]
    assert (replaced.old_page, replaced.new_page) == (page_id(A.sha256), page_id(B.sha256))
    assert (torn.change, torn.now, torn.flips) == ("gone", Outcome.UNREADABLE, ())
    assert (gone.change, gone.now, gone.new) == ("gone", None, None)
    assert (come.change, come.old, come.new) == ("appeared", None, C.sha256[:8])
    text = text_of(index_of(two_scans))
    assert "What changed since scan 1" in text
    assert "1 appeared · 2 gone · 2 replaced · 1 place can no longer be examined · flags flipped at 2 places" in text
    assert "system role yes → no" in text
    assert "now: unreadable" in text


def test_the_flags_of_a_template_that_no_file_holds_any_more_are_known(empty_engine: Engine) -> None:
    examples.record(empty_engine, with_templates("/m/a.gguf", A), analyses=(analysis(A.sha256, "tools"),))
    replaced = with_templates("/m/a.gguf", B, fingerprint="2")
    examples.record(empty_engine, replaced, analyses=(analysis(B.sha256),))
    (row,) = index_of(empty_engine).changes.rows
    assert [flip.words for flip in row.flips] == ["tools yes → no"]
    assert (row.old, row.old_page) == (A.sha256[:8], None)


@pytest.fixture
def broken_since(empty_engine: Engine) -> Engine:
    """A file whose template flips two flags, two whose template can no longer be examined, and one that is mended."""
    first = [with_templates("/m/flips.gguf", A), with_templates("/m/broken.gguf", A), with_templates("/m/torn.gguf", A)]
    mended = with_templates("/m/mended.gguf", D)
    before = (analysis(A.sha256, "tools", "system_role"), examples.not_parseable(D.sha256))
    examples.record(empty_engine, *first, mended, analyses=before)
    second = [
        with_templates("/m/flips.gguf", B, fingerprint="2"),
        with_templates("/m/broken.gguf", C, fingerprint="2"),
        unreadable("/m/torn.gguf"),
        with_templates("/m/mended.gguf", B, fingerprint="2"),
    ]
    examples.record(empty_engine, *second, analyses=(analysis(B.sha256), examples.not_parseable(C.sha256)))
    return empty_engine


D = template(b"{% broken")


def test_what_can_no_longer_be_examined_is_the_worst_change(broken_since: Engine) -> None:
    page = index_of(broken_since)
    assert [(row.path, row.lost, row.now) for row in page.changes.rows] == [
        ("broken.gguf", True, Outcome.NOT_PARSEABLE),
        ("torn.gguf", True, Outcome.UNREADABLE),
        ("flips.gguf", False, None),
        ("mended.gguf", False, None),
    ]
    assert (page.summary.lost, page.summary.flipped) == (page.changes.lost, page.changes.flipped) == (2, 1)
    text = text_of(page)
    assert "2can no longer be examined" in text.split("What changed", 1)[1].split("never seen before")[0]
    assert "before: not parseable" in text


def test_the_list_of_changes_says_what_the_index_says(broken_since: Engine) -> None:
    overview, _notes = read(broken_since)
    page = changes_page(overview)
    assert (page.changes.lost, page.changes.flipped, page.changes.counts) == (2, 1, {"gone": 1, "replaced": 3})
    assert [row.path for row in page.changes.rows] == [row.path for row in change_list(overview).rows]
    found = parse_text(render_page(page))
    text = " ".join("".join(found.text).split())
    for said in ("now: not parseable", "now: unreadable", "tools yes → no, system role yes → no", "since scan 1"):
        assert said in text
    assert f"compare/{compare_id(A.sha256, C.sha256)}.html" in found.values("href")
    rows = [attributes for tag, attributes in found.elements if tag == "tr" and "data-change" in attributes]
    assert [row["data-change"] for row in rows] == ["replaced", "gone", "replaced", "replaced"]
    assert [("data-lost" in row, "data-flips" in row) for row in rows] == [
        (True, False), (True, False), (False, True), (False, False)
    ]  # fmt: skip
    links = parsed(index_of(broken_since)).values("href")
    assert {f"changes.html?{asked}" for asked in ("lost=yes", "flips=yes", "change=replaced", "change=gone")} <= set(
        links
    )


def test_every_place_that_changed_is_listed(two_scans: Engine) -> None:
    overview, _notes = read(two_scans)
    rows = changes_page(overview).changes.rows
    assert [row.path for row in rows if row.change == "replaced"] == ["one.gguf", "two.gguf"]
    assert {row.places for row in rows} == {1}


def test_templates_that_no_build_examined_both_are_not_said_to_flip_nothing(empty_engine: Engine) -> None:
    examples.record(empty_engine, with_templates("/m/a.gguf", A), analyses=(analysis(A.sha256, profile="b9713"),))
    replaced = with_templates("/m/a.gguf", B, fingerprint="2")
    examples.record(empty_engine, replaced, analyses=(analysis(B.sha256, "tools"),))
    page = index_of(empty_engine)
    assert [(row.flips, row.comparable) for row in page.changes.rows] == [((), False)]
    assert "no flag flips" not in text_of(page)
    # Under the oldest build both are known; what differs is not the build.
    examples.record(empty_engine, replaced, analyses=(analysis(B.sha256, "typed_content", profile="b9713"),))
    (row,) = index_of(empty_engine, 2).changes.rows
    assert [flip.words for flip in row.flips] == ["typed content no → yes"]


def test_many_changes_are_cut_and_lead_on(empty_engine: Engine) -> None:
    count = CHANGES_SHOWN + 2
    examples.record(empty_engine, *files(*[A] * count), analyses=(analysis(A.sha256),))
    others = [template(b"%d" % number) for number in range(count)]
    second = [replace_fingerprint(file) for file in files(*others)]
    examples.record(empty_engine, *second, analyses=tuple(analysis(one.sha256) for one in others))
    overview, _notes = read(empty_engine)
    assert (change_list(overview).total, len(change_list(overview).rows)) == (count, count)
    page = index_of(empty_engine)
    assert (page.changes.total, len(page.changes.rows)) == (count, CHANGES_SHOWN)
    assert f"all {count} changes" in text_of(page)


def replace_fingerprint(result: FileResult) -> FileResult:
    return replace(result, file=replace(result.file, fingerprint="2"))


def test_without_a_scan_before_nothing_is_said_to_have_changed(empty_engine: Engine) -> None:
    examples.record(empty_engine, *files(A), analyses=(analysis(A.sha256),))
    page = index_of(empty_engine)
    assert page.changes.rows == ()
    assert "What changed since" not in text_of(page)
    assert "changes since the scan before" in text_of(page)


def test_an_old_scan_says_so(two_scans: Engine) -> None:
    text = text_of(index_of(two_scans, 1))
    assert "This is scan 1 of 2026-11-29 12:00 UTC; the newest is scan 2." in text
    assert "the newest is" not in text_of(index_of(two_scans, 2))
    assert "the newest is" not in text_of(index_of(two_scans))


# -- what could not be examined, and what is left out


def test_failures_are_cut_for_each_outcome(empty_engine: Engine) -> None:
    torn = [unreadable(f"/m/{number}.gguf") for number in range(FAILURES_SHOWN + 1)]
    examples.record(empty_engine, *torn, without_template("/m/base.gguf"))
    page = index_of(empty_engine)
    assert [(group.total, len(group.rows)) for group in page.failures] == [(FAILURES_SHOWN + 1, FAILURES_SHOWN), (1, 1)]
    assert f"all {FAILURES_SHOWN + 1} unreadable" in text_of(page)
    assert "a key of 17 bytes" in text_of(page)


def test_combinations_are_cut(empty_engine: Engine) -> None:
    many = [template(b"%d" % number) for number in range(COMBINATIONS_SHOWN + 2)]
    made = [
        analysis(one.sha256, *(name for place, name in enumerate(CAPABILITIES) if number >> place & 1))
        for number, one in enumerate(many)
    ]
    examples.record(empty_engine, *files(*many), analyses=tuple(made))
    page = index_of(empty_engine)
    assert (page.combinations.total, len(page.combinations.rows)) == (COMBINATIONS_SHOWN + 2, COMBINATIONS_SHOWN)
    assert f"all {COMBINATIONS_SHOWN + 2} combinations" in text_of(page)


def test_an_empty_scan_has_an_index(empty_engine: Engine) -> None:
    examples.record(empty_engine)
    text = text_of(index_of(empty_engine))
    assert "0 model files , 0 distinct templates" in text.replace("files,", "files ,")
    for heading in ("Outliers", "Reasoning efforts", "Flags by build", "Flag combinations", "Not examined nothing"):
        assert heading not in text.split("Changes", 1)[1]


# -- hostile text


ATTACK = "</script><script>alert(1)</script>\u202e\"'><img src=x>"


def test_hostile_text_stays_text(empty_engine: Engine) -> None:
    path = f"/models/{ATTACK}.gguf"
    found = Finding("some-rule", Severity.ERROR, ATTACK, ATTACK, 1)
    efforts = (accepted(None, 1, equals_unset=True), replace(raising(ATTACK), message=ATTACK), accepted(ATTACK * 2, 2))
    made = replace(analysis(A.sha256, findings=(found,)), efforts=efforts)
    examples.record(
        empty_engine, with_templates(path, A), analyses=(made, analysis(A.sha256, "tools", profile="b9713"))
    )
    changed = with_templates(path, replace(B, variant=ATTACK), fingerprint="2")
    examples.record(empty_engine, changed, analyses=(made, analysis(B.sha256)))
    for scan in (1, 2):
        page = parsed(index_of(empty_engine, scan))
        assert "".join(page.script_text).strip() == ""
        assert not {tag for tag, _ in page.elements} & {"img", "iframe"}
        assert ATTACK.replace("\u202e", "U+202E") in "".join(page.text)
        assert "\u202e" not in render_page(index_of(empty_engine, scan))


def test_a_mapping_of_what_changed_keeps_its_order(two_scans: Engine) -> None:
    counts: Mapping[str, int] = index_of(two_scans).summary.changes
    assert list(counts) == ["appeared", "gone", "replaced"]
