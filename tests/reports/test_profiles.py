"""Several builds of llama.cpp in one database: every page shows a template under the same one, and each count is that
of the list it leads to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import Engine

from reports import write_report
from reports.overview import page_id
from scanner.results import CAPABILITIES, Severity, StartCheck
from scanner.store import migrate
from scanner.store.session import open_database
from tests.reports.html_check import parse
from tests.store import examples
from tests.store.examples import analysis, finding, observed, template, with_templates

if TYPE_CHECKING:
    from playwright.sync_api import Page

OLD, MIDDLE, NEW = "b9713", "b10229", "b11549"
A, B, C = (template(name) for name in (b"a", b"b", b"c"))
ERROR = finding(Severity.ERROR, "no start", "server-does-not-start")
WARNING = finding(Severity.WARNING, "late", "late-system-raises")


class Report:
    """A written report, read as programs read it."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.folder = folder
        write_report(engine, folder, now=examples.Clock())

    def __getitem__(self, name: str) -> Any:
        return json.loads((self.folder / f"{name}.json").read_text())

    def links(self, name: str) -> list[str]:
        return parse(self.folder / f"{name}.html").values("href")


@pytest.fixture(scope="module")
def all_builds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Report]:
    """Two templates under two builds, which the newer one takes for better; a third that it claims wrongly of."""
    folder = tmp_path_factory.mktemp("builds")
    engine = open_database(str(folder / "capscan.sqlite"))
    migrate.ensure_current(engine, create=True)
    files = [with_templates(f"/m/{place}.gguf", one) for place, one in enumerate((A, A, B, C))]
    old = [analysis(one.sha256, "tools", "typed_content", findings=(ERROR, WARNING), profile=OLD) for one in (A, B, C)]
    new = [analysis(A.sha256, "tools", findings=(WARNING,)), analysis(B.sha256), observed(C.sha256, ("tools",), ())]
    examples.record(engine, *files, analyses=(*old, *new))
    yield Report(engine, folder / "out")
    engine.dispose()


def test_each_count_is_that_of_the_list_it_leads_to(all_builds: Report) -> None:
    index, models = all_builds["index"], all_builds["models"]
    for flag in index["distribution"]["flags"]:
        place = CAPABILITIES.index(flag["capability"])
        page = all_builds[f"capabilities/{flag['capability']}"]
        assert flag["templates"]["claiming"] == len(page["yes"])
        assert flag["templates"]["analysed"] == len(page["yes"]) + len(page["no"])
        assert flag["templates"]["over"] + flag["templates"]["under"] == len(page["wrong"])
        claiming = {row["path"] for row in models["rows"] if row["flags"]["key"][place] in "yo"}
        assert flag["files"]["claiming"] == len(claiming)
    assert index["distribution"]["flags"][0]["templates"]["claiming"] == 2


def test_findings_are_those_of_the_build_that_is_shown(all_builds: Report) -> None:
    findings, models = all_builds["findings"], all_builds["models"]
    assert all_builds["index"]["summary"]["findings"] == findings["totals"] == {"error": 0, "warning": 1, "note": 0}
    (group,) = findings["rules"]
    assert (group["rule"], group["templates"], group["files"], len(group["found"])) == (WARNING.rule, 1, 2, 1)
    found = [place for place, one in enumerate(models["found"]) if WARNING.rule in str(one)]
    assert len({row["path"] for row in models["rows"] if row["found"] in found}) == group["files"]


def test_combinations_count_each_template_once(all_builds: Report) -> None:
    groups, models = all_builds["combinations"]["groups"], all_builds["models"]
    told = [(group["flags"]["key"], len(group["templates"]), group["files"]) for group in groups]
    assert told == [("ynnnnnnnn", 2, 3), ("nnnnnnnnn", 1, 1)]
    for key, _templates, files in told:
        assert sum(row["flags"]["key"].replace("o", "y") == key for row in models["rows"]) == files
    rows = all_builds["index"]["combinations"]["rows"]
    assert [(row["flags"]["key"], row["templates"], row["files"]) for row in rows] == told


def test_lists_name_one_build_where_there_is_but_one(all_builds: Report) -> None:
    for name in ("models", "templates", "outliers", "combinations", "capabilities/tools"):
        assert all_builds[name]["profiles"] == [NEW], name
        assert OLD not in "".join(parse(all_builds.folder / f"{name}.html").text), name
    # Builds are compared on the index.
    assert all_builds["index"]["builds"]["profiles"] == [OLD, NEW]


# -- scans under different builds


@pytest.fixture
def mixed(empty_engine: Engine, tmp_path: Path) -> Report:
    """A folder scanned under the oldest build, then under another that examined but one template, and the oldest again;
    then a second folder under the newest."""
    a, b = (with_templates(f"/m/first/{name}.gguf", one) for name, one in (("a", A), ("b", B)))
    c = with_templates("/m/second/c.gguf", C)
    oldest = [analysis(one.sha256, "tools", findings=(ERROR,), profile=OLD) for one in (A, B)]
    middle = analysis(A.sha256, "typed_content", findings=(WARNING,), profile=MIDDLE)
    for profile, files, made in (
        (OLD, (a, b), [replace(one, start=StartCheck(False)) for one in oldest]),
        (MIDDLE, (a, b), [replace(middle, start=StartCheck(True))]),
        (OLD, (a, b), []),
        (NEW, (c,), [analysis(C.sha256, "system_role")]),
    ):
        writing = examples.writer(empty_engine, profile=profile)
        writing.begin(["/m/second" if c in files else "/m/first"])
        for file in files:
            writing.add_file(file)
        for one in made:
            writing.add_analysis(one)
        writing.finish("finished")
    return Report(empty_engine, tmp_path / "out")


def test_a_template_is_shown_under_one_build_everywhere(mixed: Report) -> None:
    shown = {row["page"]: (row["profile"], row["flags"]["key"]) for row in mixed["templates"]["rows"]}
    assert {page: profile for page, (profile, _key) in shown.items()} == {
        page_id(A.sha256): MIDDLE, page_id(B.sha256): OLD, page_id(C.sha256): NEW
    }  # fmt: skip
    for page, (profile, key) in shown.items():
        own = mixed[f"templates/{page}"]
        assert (own["profile"], own["flags"]["key"]) == (profile, key)
        (row,) = [row for row in mixed["models"]["rows"] if row["page"] == page]
        assert row["flags"]["key"] == key
        assert row["starts"] is {OLD: False, MIDDLE: True, NEW: None}[profile]
        (listed,) = [
            one["template"]["profile"]
            for part in ("yes", "no", "unknown")
            for one in mixed["capabilities/tools"][part]
            if one["template"]["page"] == page
        ]
        assert listed == profile
    assert mixed["models"]["profiles"] == [OLD, MIDDLE, NEW]


def test_counts_over_several_builds_are_those_of_their_lists(mixed: Report) -> None:
    flags = {flag["capability"]: flag["templates"] for flag in mixed["index"]["distribution"]["flags"]}
    assert [flags[name]["claiming"] for name in ("tools", "typed_content", "system_role")] == [1, 1, 1]
    assert flags["tools"]["analysed"] == 3
    assert mixed["index"]["distribution"]["left_out"] == 0
    assert mixed["index"]["summary"]["findings"] == mixed["findings"]["totals"] == {"error": 1, "warning": 1, "note": 0}
    assert sum(len(group["templates"]) for group in mixed["combinations"]["groups"]) == 3


# -- lists that the index narrows


def test_the_index_leads_to_just_what_it_counts(all_builds: Report) -> None:
    good = all_builds["index"]["summary"]["good"]
    assert (good["right"], good["judged"], good["clean"], good["analysed"]) == (0, 1, 2, 3)
    links = all_builds.links("index")
    for name, count in (("wrong", good["judged"] - good["right"]), ("clean", good["clean"]), ("new", 3)):
        assert f"templates.html?{name}=yes" in links
        assert (all_builds.folder / "templates.html").read_text().count(f' data-{name}="yes"') == count


def test_what_an_earlier_scan_saw_is_not_new(empty_engine: Engine, tmp_path: Path) -> None:
    first, second = with_templates("/m/a.gguf", A), with_templates("/m/b.gguf", B)
    examples.record(empty_engine, first, analyses=(analysis(A.sha256),))
    examples.record(empty_engine, first, second, analyses=(analysis(B.sha256),))
    report = Report(empty_engine, tmp_path / "out")
    assert report["index"]["summary"]["scan"]["new_templates"] == 1
    assert report["templates"]["new"] == [page_id(B.sha256)]


@pytest.mark.parametrize(
    ("asked", "expected", "words"),
    [
        ("?wrong=yes", ["3.gguf"], "only those with a wrong claim"),
        ("?clean=yes", ["2.gguf", "3.gguf"], "only those without an error or a warning"),
        ("?new=yes", ["0.gguf", "2.gguf", "3.gguf"], "only those never seen before"),
        ("?tools=over", ["3.gguf"], "only tools: yes, not really"),
        ("?clean=yes&wrong=no", ["2.gguf"], "only those without a wrong claim, those without an error or a warning"),
        ("?new=no", [], "only those seen before"),
    ],
)
def test_an_address_narrows_the_templates(
    all_builds: Report, tab: Page, complaints: list[str], asked: str, expected: list[str], words: str
) -> None:
    page = all_builds.folder / "templates.html"
    tab.goto(page.as_uri() + asked)
    rows = tab.locator(".templates-list tbody tr:visible td:first-child")
    assert rows.all_inner_texts() == expected
    assert tab.locator(".narrowed").inner_text() == words
    assert tab.locator(".find output").inner_text() == ("3" if len(expected) == 3 else f"{len(expected)} of 3")
    tab.get_by_role("button", name="Show all").click()
    assert rows.count() == 3
    tab.wait_for_url(page.as_uri())
    assert complaints == []


@pytest.mark.parametrize(
    ("asked", "expected", "words"),
    [
        ("?lost=yes", ["1.gguf"], "only what can no longer be examined"),
        ("?flips=yes", ["0.gguf"], "only what flips a flag"),
        ("?change=gone", ["2.gguf"], "only what is gone"),
        ("?change=replaced&q=0.gguf", ["0.gguf"], "only what was replaced"),
    ],
)
def test_an_address_narrows_the_changes(
    empty_engine: Engine, tmp_path: Path, tab: Page, complaints: list[str], asked: str, expected: list[str], words: str
) -> None:
    files = [with_templates(f"/m/{place}.gguf", A) for place in range(3)]
    examples.record(empty_engine, *files, analyses=(analysis(A.sha256, "tools"),))
    now = [with_templates(f"/m/{place}.gguf", one, fingerprint="2") for place, one in enumerate((B, C))]
    examples.record(empty_engine, *now, analyses=(analysis(B.sha256), examples.not_parseable(C.sha256)))
    page = Report(empty_engine, tmp_path / "out").folder / "changes.html"
    tab.goto(page.as_uri() + asked)
    assert tab.locator("table tbody tr:visible td.path").all_inner_texts() == expected
    assert tab.locator(".narrowed").inner_text() == words
    assert complaints == []


def test_a_template_unknown_under_the_scan_s_build_is_shown_under_the_newest(
    empty_engine: Engine, tmp_path: Path
) -> None:
    writing = examples.writer(empty_engine, profile=OLD)
    writing.begin(["/m"])
    writing.add_file(with_templates("/m/a.gguf", A))
    for made in (analysis(A.sha256, "tools", profile=MIDDLE), analysis(A.sha256, "typed_content", profile=NEW)):
        writing.add_analysis(made)
    writing.finish("finished")
    report = Report(empty_engine, tmp_path / "out")
    (row,) = report["templates"]["rows"]
    own = report[f"templates/{row['page']}"]
    assert (row["profile"], row["flags"]) == (own["profile"], own["flags"])
    assert (row["profile"], row["flags"]["key"]) == (NEW, "nnnnnynnn")
    assert [one["flags"] for one in report["models"]["rows"]] == [row["flags"]]
