"""Writing a scan."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import HealthCheck, example, given, settings
from sqlalchemy import Engine, func, select

from scanner.errors import DatabaseError
from scanner.results import (
    ChatTemplate,
    FileResult,
    Finding,
    ModelMetadata,
    Outcome,
    PassedOver,
    Severity,
    TemplateResult,
)
from scanner.store import queries
from scanner.store.models import AnalysisRow, AppearanceRow, FindingRow, ProbeRunRow, ReadRow, TemplateRow
from scanner.store.session import session_scope
from scanner.store.writer import BATCH_ITEMS, NOT_ANALYSED_YET, ScanWriter
from tests.store import examples, strategies
from tests.store.examples import PROFILE, VERSION, Clock, model_file, template, with_templates

# The database may go on from one example to the next: each replaces or adds what it reads back.
KEEPS_ITS_DATABASE = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
ONE = template(b"one")
TWO = template(b"two")


def count(engine: Engine, table: type[object]) -> int:
    with session_scope(engine) as opened:
        return opened.execute(select(func.count()).select_from(table)).scalar_one()


def appearances(engine: Engine, scan: int) -> list[tuple[str, str, str | None]]:
    with session_scope(engine) as opened:
        statement = select(AppearanceRow.variant, AppearanceRow.outcome, AppearanceRow.reason)
        found = opened.execute(statement.where(AppearanceRow.scan_id == scan).order_by(AppearanceRow.model_file_id))
        return [(row.variant, row.outcome, row.reason) for row in found]


@given(result=strategies.file_results)
@example(result=examples.whole_file("/models/whole", b"\xff"))
@KEEPS_ITS_DATABASE
def test_any_file_comes_back_equal(engine: Engine, result: FileResult) -> None:
    examples.record(engine, result)
    assert queries.file_detail(engine, result.file.path).result == result


@given(result=strategies.template_results(ONE.sha256))
@example(result=examples.whole_analysis(ONE.sha256))
@KEEPS_ITS_DATABASE
def test_any_analysis_comes_back_equal(engine: Engine, result: TemplateResult) -> None:
    examples.record(engine, with_templates("/m", ONE), analyses=(result,))
    detail = queries.template_detail(engine, ONE.sha256)
    assert [made.result for made in detail.analyses if made.result.profile == result.profile] == [result]


@given(finding=strategies.findings)
@KEEPS_ITS_DATABASE
def test_any_finding_of_a_file_comes_back_equal(engine: Engine, finding: Finding) -> None:
    writer = examples.writer(engine)
    writer.begin(["/models"])
    writer.add_file(examples.without_template("/m"))
    writer.add_file_findings("/m", [finding, finding])
    writer.finish("finished")
    assert queries.file_detail(engine, "/m").findings == (finding, finding)


def test_a_scan_is_recorded_from_beginning_to_end(engine: Engine) -> None:
    clock = Clock()
    writer = examples.writer(engine, clock)
    scan = writer.begin(["/models", "/more"])
    [running] = queries.scans(engine)
    assert (running.id, running.status, running.finished_at) == (scan, "running", None)
    writer.add_file(with_templates("/a", ONE))
    writer.add_passed_over(PassedOver("/models/loop\udcff", "a link to a folder above it"))
    clock.move(5)
    writer.finish("finished")
    [finished] = queries.scans(engine)
    assert finished.started_at == Clock().moment
    assert finished.finished_at == clock.moment
    assert finished.sources == ("/models", "/more")
    assert (finished.status, finished.capscan_version, finished.profile) == ("finished", VERSION, PROFILE)
    assert (finished.files_seen, finished.files_unchanged) == (1, 0)
    assert finished.passed_over == (PassedOver("/models/loop\udcff", "a link to a folder above it"),)


def test_nothing_is_written_before_a_scan_begins(engine: Engine) -> None:
    writer = examples.writer(engine)
    writer.add_file(with_templates("/a", ONE))
    with pytest.raises(ValueError, match="no scan was begun"):
        writer.flush()


def test_a_template_is_stored_once(engine: Engine) -> None:
    examples.record(engine, with_templates("/a", ONE), with_templates("/b", ONE, template(b"one", "tool_use")))
    examples.record(engine, with_templates("/c", ONE))
    assert count(engine, TemplateRow) == 1


def test_every_file_has_an_appearance(engine: Engine) -> None:
    scan = examples.record(
        engine,
        with_templates("/a", ONE),
        examples.without_template("/b"),
        examples.unreadable("/c"),
        analyses=(examples.not_parseable(ONE.sha256),),
    )
    assert appearances(engine, scan) == [
        ("default", "not parseable", "Expected end of statement"),
        ("", "no template", "no tokenizer.chat_template"),
        ("", "unreadable", "the file ends early"),
    ]


def test_a_template_that_was_not_examined_is_not_shown_as_analysed(engine: Engine) -> None:
    scan = examples.record(engine, with_templates("/a", ONE))
    assert appearances(engine, scan) == [("default", "skipped", NOT_ANALYSED_YET)]


def test_an_unchanged_file_is_carried_forward(engine: Engine) -> None:
    examples.record(
        engine, with_templates("/a", ONE), examples.unreadable("/b"), analyses=(examples.analysis(ONE.sha256),)
    )
    writer = examples.writer(engine)
    scan = writer.begin(["/models"])
    assert writer.file_unchanged(model_file("/a"))
    assert writer.file_unchanged(model_file("/a"))
    assert writer.file_unchanged(model_file("/b"))
    writer.finish("finished")
    assert appearances(engine, scan) == [("default", "analysed", None), ("", "unreadable", "the file ends early")]
    assert queries.scans(engine)[0].files_unchanged == 2
    detail = queries.file_detail(engine, "/a")
    assert detail.result == with_templates("/a", ONE)
    assert (detail.first_seen_scan, detail.last_seen_scan) == (scan - 1, scan)
    assert queries.file_detail(engine, "/b").variants[0].offset == 24


def test_findings_of_an_unchanged_file_are_carried_forward(engine: Engine) -> None:
    for _scan in range(3):
        writer = examples.writer(engine)
        writer.begin(["/models"])
        if not writer.file_unchanged(model_file("/a")):
            writer.add_file(with_templates("/a", ONE))
            writer.add_file_findings("/a", [examples.finding(Severity.WARNING)])
        writer.finish("finished")
    assert queries.file_detail(engine, "/a").findings == (examples.finding(Severity.WARNING),)
    assert count(engine, FindingRow) == 3


def test_a_changed_or_new_file_is_opened(engine: Engine) -> None:
    examples.record(engine, with_templates("/a", ONE))
    with examples.writer(engine) as writer:
        writer.begin(["/models"])
        assert not writer.file_unchanged(model_file("/a", fingerprint="2"))
        assert not writer.file_unchanged(model_file("/new"))


@pytest.mark.parametrize(
    ("result", "version", "stands"),
    [
        (examples.unreadable("/a"), VERSION, True),
        (examples.unreadable("/a"), "0.2.0", False),
        (examples.unreadable("/a", offset=None), VERSION, False),
        (FileResult(model_file("/a"), Outcome.NOT_A_MODEL), VERSION, True),
        (FileResult(model_file("/a"), Outcome.SKIPPED, reason="timed out"), VERSION, False),
        (examples.without_template("/a"), "0.2.0", True),
    ],
)
def test_a_failure_is_taken_over_only_when_the_bytes_were_at_fault(
    sqlite_engine: Engine, result: FileResult, version: str, stands: bool
) -> None:
    examples.record(sqlite_engine, result)
    with examples.writer(sqlite_engine, version=version) as writer:
        writer.begin(["/models"])
        assert writer.file_unchanged(model_file("/a")) is stands


def test_a_changed_file_keeps_its_history(engine: Engine) -> None:
    first = examples.record(engine, with_templates("/a", ONE))
    examples.record(engine, with_templates("/a", TWO, fingerprint="2"))
    detail = queries.file_detail(engine, "/a")
    assert detail.result.templates == (TWO,)
    assert detail.first_seen_scan == first
    assert [seen.scan_id for seen in queries.template_detail(engine, ONE.sha256).appearances] == [first]


def test_the_later_result_of_a_file_met_twice_counts(engine: Engine) -> None:
    writer = examples.writer(engine)
    scan = writer.begin(["/models"])
    writer.add_file(with_templates("/a", ONE, template(b"three", "tool_use")))
    writer.flush()
    writer.add_file(with_templates("/a", TWO))
    writer.finish("finished")
    assert len(appearances(engine, scan)) == 1
    assert queries.file_detail(engine, "/a").result.templates == (TWO,)


def test_a_variant_met_twice_is_kept_once_and_noted(engine: Engine) -> None:
    again = ChatTemplate("default", b"two", "tokenizer.chat_template.default")
    examples.record(engine, with_templates("/a", ONE, again))
    result = queries.file_detail(engine, "/a").result
    assert result.templates == (ONE,)
    assert result.notes == ("variant default is there again at tokenizer.chat_template.default; the first was kept",)


def test_a_number_that_no_database_holds_is_left_out_and_noted(engine: Engine) -> None:
    metadata = ModelMetadata(block_count=2**64 - 1, split_no=1)
    examples.record(engine, FileResult(model_file("/a"), Outcome.NO_TEMPLATE, metadata=metadata))
    result = queries.file_detail(engine, "/a").result
    assert result.metadata == ModelMetadata(split_no=1)
    assert result.notes == ("block_count is 18446744073709551615, more than 64 bits hold, and was left out",)


def test_what_waits_is_written_when_enough_waits(engine: Engine) -> None:
    writer = examples.writer(engine)
    scan = writer.begin(["/models"])
    for number in range(BATCH_ITEMS + 1):
        writer.add_file(examples.without_template(f"/{number}"))
    assert len(appearances(engine, scan)) == BATCH_ITEMS


def test_what_waits_is_written_when_time_has_passed(engine: Engine) -> None:
    clock = Clock()
    writer = examples.writer(engine, clock)
    scan = writer.begin(["/models"])
    writer.add_file(examples.without_template("/a"))
    assert appearances(engine, scan) == []
    clock.move(1)
    writer.add_file(examples.without_template("/b"))
    assert len(appearances(engine, scan)) == 2


def test_what_waits_is_written_when_it_is_large(engine: Engine) -> None:
    writer = examples.writer(engine)
    writer.begin(["/models"])
    writer.add_template(bytes(9_000_000))
    assert count(engine, TemplateRow) == 1


def test_an_interrupted_scan_is_resumed(engine: Engine) -> None:
    writer = examples.writer(engine)
    writer.begin(["/models"])
    writer.add_file(with_templates("/a", ONE, template(b"two", "tool_use")))
    writer.add_analysis(examples.analysis(ONE.sha256))
    writer.finish("interrupted")
    assert queries.scans(engine)[0].status == "interrupted"
    resumed = examples.writer(engine)
    scan = resumed.begin(["/models"])
    assert resumed.file_unchanged(model_file("/a"))
    assert list(resumed.templates_without_analysis()) == [(TWO.sha256, b"two")]
    resumed.add_analysis(examples.analysis(TWO.sha256))
    resumed.finish("finished")
    assert {outcome for _variant, outcome, _reason in appearances(engine, scan)} == {"analysed"}


def test_a_scan_that_was_killed_leaves_what_it_had_written(engine: Engine) -> None:
    killed = examples.writer(engine)
    killed.begin(["/models"])
    killed.add_file(with_templates("/a", ONE))
    killed.flush()
    writer = examples.writer(engine)
    scan = writer.begin(["/models"])
    assert writer.file_unchanged(model_file("/a"))
    writer.finish("finished")
    assert len(appearances(engine, scan)) == 1


def test_analyses_may_be_added_while_templates_are_listed(engine: Engine) -> None:
    writer = examples.writer(engine)
    writer.begin(["/models"])
    expected = {writer.add_template(b"%d" % number) for number in range(120)}
    listed = []
    for sha256, _source in writer.templates_without_analysis(PROFILE, VERSION):
        listed.append(sha256)
        writer.add_analysis(examples.analysis(sha256))
    writer.flush()
    assert len(listed) == 120
    assert set(listed) == expected
    assert list(writer.templates_without_analysis()) == []


def test_a_template_is_analysed_once_for_each_profile_and_version(engine: Engine) -> None:
    writer = examples.writer(engine)
    writer.begin(["/models"])
    sha256 = writer.add_template(b"one")
    assert writer.needs_analysis(sha256)
    writer.add_analysis(examples.analysis(sha256))
    assert not writer.needs_analysis(sha256)
    writer.flush()
    assert not writer.needs_analysis(sha256)
    assert writer.needs_analysis(sha256, "b9713")
    writer.finish("finished")
    with ScanWriter(engine, now=Clock(), version="0.2.0", profile=PROFILE) as newer:
        assert newer.needs_analysis(sha256)
    with ScanWriter(engine, now=Clock(), version=VERSION, profile=PROFILE, analysis_version=2) as stricter:
        assert stricter.needs_analysis(sha256)


def test_an_analysis_made_again_replaces_the_first_with_all_that_hangs_on_it(engine: Engine) -> None:
    for _time in range(2):
        examples.record(engine, with_templates("/a", ONE), analyses=(examples.whole_analysis(ONE.sha256),))
    assert [count(engine, table) for table in (AnalysisRow, ProbeRunRow, ReadRow, FindingRow)] == [1, 2, 2, 2]


def test_what_hangs_on_nothing_is_refused(engine: Engine) -> None:
    writer = examples.writer(engine)
    writer.begin(["/models"])
    writer.add_analysis(examples.analysis("0" * 64))
    with pytest.raises(ValueError, match="never added"):
        writer.flush()
    writer.add_file_findings("/none", [])
    with pytest.raises(ValueError, match="never added"):
        writer.flush()


def test_a_failed_write_keeps_nothing_of_its_batch(engine: Engine) -> None:
    writer = examples.writer(engine)
    scan = writer.begin(["/models"])
    writer.add_file(with_templates("/a", ONE))
    writer.add_analysis(examples.analysis("0" * 64))
    with pytest.raises(ValueError, match="never added"):
        writer.flush()
    assert appearances(engine, scan) == []
    writer.finish("interrupted")


def test_a_database_that_went_away_is_a_database_error(sqlite_engine: Engine) -> None:
    with examples.writer(sqlite_engine) as writer:
        writer.begin(["/models"])
        with session_scope(sqlite_engine) as opened:
            opened.connection().exec_driver_sql("DROP TABLE model_files")
        with pytest.raises(DatabaseError, match="not a Capscan database"):
            writer.file_unchanged(model_file("/a"))


def test_two_scans_may_write_in_turns(engine: Engine) -> None:
    first, second = examples.writer(engine), examples.writer(engine)
    first.begin(["/models"])
    second.begin(["/models"])
    for number in range(3):
        first.add_file(with_templates(f"/a{number}", ONE))
        second.add_file(with_templates(f"/b{number}", ONE))
        first.flush()
        second.flush()
        assert first.file_unchanged(model_file(f"/b{number}"))
    first.finish("finished")
    second.finish("finished")
    assert [scan.files_seen for scan in queries.scans(engine)] == [3, 6]
    assert count(engine, TemplateRow) == 1


def test_the_clock_is_the_given_one(engine: Engine) -> None:
    clock = Clock()
    clock.moment += timedelta(days=365)
    writer = examples.writer(engine, clock)
    writer.begin(["/models"])
    writer.add_analysis(examples.analysis(writer.add_template(b"one")))
    writer.finish("finished")
    assert queries.template_detail(engine, ONE.sha256).analyses[0].created_at == clock.moment


class InterruptingClock(Clock):
    """A clock whose reading number `at` from now is where the person presses Ctrl-C."""

    at = 0

    def __call__(self) -> datetime:
        self.at -= 1
        if self.at == 0:
            raise KeyboardInterrupt
        return super().__call__()


@pytest.mark.parametrize("at", [1, 2])
def test_a_write_that_a_person_interrupts_is_done_at_the_end(engine: Engine, at: int) -> None:
    examples.record(engine, examples.without_template("/old"))
    clock = InterruptingClock()
    writer = examples.writer(engine, clock)
    scan = writer.begin(["/models"])
    assert writer.file_unchanged(model_file("/old"))
    writer.add_file(with_templates("/a", ONE))
    writer.add_analysis(examples.analysis(ONE.sha256))
    clock.at = at
    with pytest.raises(KeyboardInterrupt):
        writer.flush()
    assert appearances(engine, scan) == []
    writer.finish("interrupted")
    assert [outcome for _variant, outcome, _reason in appearances(engine, scan)] == ["no template", "analysed"]
