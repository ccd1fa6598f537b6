"""The list of models: what it says of a row, and in a real browser its search, filters, sorting and keys."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from sqlalchemy import Engine

from reports import pages, write_report
from reports.marks import Mark
from reports.overview import TemplateNotes, notes_of, read_overview
from reports.pages.models import FoundRule, FoundSet, ModelRow, ModelsPage
from reports.text import plain
from scanner.results import CAPABILITIES, ChatTemplate, FileResult, ModelMetadata, Severity, StartCheck
from scanner.store import migrate, queries
from scanner.store.session import open_database
from tests.reports.html_check import parse
from tests.store import examples

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

HOSTILE_NAME = "</option><script>alert('a')</script>\u202e\"'&"
SHOWN_NAME = plain(HOSTILE_NAME)
TOOLS, USED, OVER, BROKEN, CLEAN = [examples.template(name.encode()) for name in ("t", "u", "o", "b", "c")]
TOOL_USE = replace(USED, variant="tool_use")
WARNING = examples.finding(Severity.WARNING, "late", "late-system-raises")
NOTE = examples.finding(Severity.NOTE, "a clock", "clock-dependent")
ERROR = examples.finding(Severity.ERROR, "no start", "server-does-not-start")
MANY = 230
"""So many plain files that the list has several groups of rows."""


def file(name: str, metadata: ModelMetadata, *templates: ChatTemplate) -> FileResult:
    return replace(examples.with_templates(f"/models/{name}", *templates), metadata=metadata)


FILES = (
    file("a/alpha.gguf", ModelMetadata(architecture="llama", file_type="Q4_K_M", quantized_by="somebody"), TOOLS),
    file("a/beta.gguf", ModelMetadata(architecture="llama", file_type="Q8_0"), TOOLS, TOOL_USE),
    file("b/gamma.gguf", ModelMetadata(architecture="qwen3", file_type="Q4_K_M", quantized_by="somebody"), OVER),
    file("b/<i>.gguf", ModelMetadata(HOSTILE_NAME, file_type=HOSTILE_NAME, quantized_by=HOSTILE_NAME), TOOLS),
    file("b/broken.gguf", ModelMetadata(architecture="gemma3"), BROKEN),
    examples.unreadable("/models/b/cut.gguf"),
    examples.without_template("/models/b/base.gguf"),
    *(
        file(f"many/{number:03}.gguf", ModelMetadata(architecture="llama", file_type="Q5_K_M"), CLEAN)
        for number in range(MANY)
    ),
)
ANALYSES = (
    replace(
        examples.analysis(TOOLS.sha256, "tools", "system_role", findings=(NOTE, WARNING, WARNING)),
        start=StartCheck(True),
    ),
    examples.analysis(USED.sha256, "tools"),
    replace(examples.observed(OVER.sha256, ("tools",), ("typed_content",)), findings=(ERROR,), start=StartCheck(False)),
    examples.not_parseable(BROKEN.sha256),
    replace(examples.analysis(CLEAN.sha256, "system_role"), start=StartCheck(True)),
)
OF_FILES = {
    "/models/b/base.gguf": examples.finding(Severity.NOTE, "none", "no-template"),
    "/models/a/alpha.gguf": examples.finding(Severity.NOTE, "two", "double-bos"),
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, ModelsPage]]:
    """The written list, and what it was made of."""
    folder = tmp_path_factory.mktemp("models")
    engine = open_database(str(folder / "capscan.sqlite"))
    migrate.ensure_current(engine, create=True)
    writing = examples.writer(engine)
    writing.begin(["/models"])
    for result in FILES:
        writing.add_file(result)
    for made in ANALYSES:
        writing.add_analysis(made)
    for path, found in OF_FILES.items():
        writing.add_file_findings(path, [found])
    writing.finish("finished")
    write_report(engine, folder / "out", now=examples.Clock())
    overview = read_overview(engine)
    notes: dict[tuple[str, str], TemplateNotes] = {}
    for template in overview.templates:
        notes |= notes_of(queries.template_detail(engine, template.sha256))
    yield folder / "out" / "models.html", pages.models_page(overview, notes)
    engine.dispose()


@pytest.fixture
def opened(models: tuple[Path, ModelsPage], tab: Page) -> Page:
    """The list in a tab, read to its end."""
    go_to(tab, models[0])
    return tab


def go_to(tab: Page, page: Path, asked: str = "") -> None:
    tab.goto(page.as_uri() + asked)
    tab.wait_for_function("() => document.querySelector('select[data-of=tools]').options.length > 1")


def shown(tab: Page) -> list[str]:
    """The first cells of the rows that are not hidden, in their order."""
    rows = "[...document.querySelectorAll('.models tbody:not([hidden]) > tr:not([hidden])')]"
    return list(tab.evaluate(f"{rows}.map((row) => row.cells[0].textContent)"))


def names(page: ModelsPage, holds: Callable[[ModelRow], bool]) -> list[str]:
    return [name_of(row) for row in page.rows if holds(row)]


def name_of(row: ModelRow) -> str:
    return row.path if row.variant in ("", "default") else f"{row.path} {row.variant}"


def output(tab: Page) -> str:
    return tab.locator(".find output").inner_text()


def found(page: ModelsPage, path: str) -> FoundSet | None:
    place = next(row.found for row in page.rows if row.path == path)
    return None if place is None else page.found[place]


# ---- What is said of a row ----


def test_a_row_names_what_was_found_in_its_template_and_in_the_file(models: tuple[Path, ModelsPage]) -> None:
    _path, page = models
    warning = FoundRule("late-system-raises", Severity.WARNING)
    notes = FoundRule("clock-dependent", Severity.NOTE), FoundRule("double-bos", Severity.NOTE)
    assert found(page, "a/alpha.gguf") == FoundSet(4, True, (warning, *notes))
    assert found(page, "a/beta.gguf") == FoundSet(3, True, (warning, notes[0]))
    assert found(page, "b/base.gguf") == FoundSet(1, False, (FoundRule("no-template", Severity.NOTE),))
    assert found(page, "b/cut.gguf") is None
    assert found(page, "many/000.gguf") is None


def test_findings_are_told_once_and_the_worst_first(models: tuple[Path, ModelsPage]) -> None:
    path, page = models
    worst = [one.rules[0].severity for one in page.found]
    assert worst == sorted(worst, key=list(Severity).index)
    assert len(set(page.found)) == len(page.found) == 5
    assert path.read_text().count("late-system-raises") == 2


def test_a_row_leads_to_its_findings(models: tuple[Path, ModelsPage]) -> None:
    path, page = models
    alpha = next(row for row in page.rows if row.path == "a/alpha.gguf")
    links = parse(path).values("href")
    assert f"templates/{alpha.page}.html#findings" in links
    assert "findings.html#rule-note-no-template" in links


def test_what_was_not_examined_is_not_shown_as_free_of_findings(models: tuple[Path, ModelsPage]) -> None:
    assert "".join(parse(models[0]).text).count("none") == MANY + 1


def test_with_scripts_off_the_list_is_complete_and_has_no_controls(
    models: tuple[Path, ModelsPage], browser: Browser
) -> None:
    path, page = models
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(path.as_uri() + "?tools=yes")
    assert tab.locator(".models tbody tr").locator("visible=true").count() == len(page.rows)
    assert tab.locator("select, input, button, details").locator("visible=true").count() == 0
    context.close()


# ---- Search ----


def test_a_search(opened: Page, complaints: list[str]) -> None:
    assert output(opened) == "237 files, 238 rows"
    opened.keyboard.press("/")
    opened.keyboard.type("BETA")
    assert shown(opened) == ["a/beta.gguf", "a/beta.gguf tool_use"]
    assert output(opened) == "1 of 237 files, 2 of 238 rows"
    opened.keyboard.type(" tool_use")
    assert shown(opened) == ["a/beta.gguf tool_use"]
    opened.locator("input[type=search]").fill("qwen3 q4_k")
    assert shown(opened) == ["b/gamma.gguf"]
    opened.locator("input[type=search]").fill("nothing says this")
    assert shown(opened) == []
    assert output(opened) == "0 of 237 files, 0 of 238 rows"
    assert complaints == []


# ---- Filters ----

FLAG_MARKS = {
    "yes": {Mark.YES, Mark.OVER},
    "no": {Mark.NO, Mark.UNDER},
    "unknown": {Mark.UNKNOWN},
    "wrong": {Mark.OVER, Mark.UNDER},
    "over": {Mark.OVER},
    "under": {Mark.UNDER},
}
STARTS = {"yes": True, "no": False, "unknown": None}


def holds(page: ModelsPage, name: str, value: str) -> Callable[[ModelRow], bool]:
    """What a filter should let through, told of the page's data."""
    if name in CAPABILITIES:
        return lambda row: row.flags.marks[CAPABILITIES.index(name)] in FLAG_MARKS[value]
    if name == "start":
        return lambda row: row.starts is STARTS[value]
    if name == "finding":
        return lambda row: (
            any(value in (rule.rule, rule.severity) for rule in page.found[row.found].rules)
            if row.found is not None
            else value == "none" and row.outcome.value == "analysed"
        )
    return lambda row: plain(str(getattr(row, name) or "not stated")) == value


@pytest.mark.parametrize(
    "name", ["outcome", "start", "architecture", "quantization", "quantizer", "finding", *CAPABILITIES]
)
def test_every_choice_of_a_filter(
    models: tuple[Path, ModelsPage], opened: Page, complaints: list[str], name: str
) -> None:
    _path, page = models
    select = opened.locator(f"select[data-of={name}]")
    options = select.locator("option").evaluate_all("(all) => all.map((one) => [one.value, one.textContent])")
    assert options[0] == ["", "any"]
    # Every row has one of the values, and a flag's row or one with findings may have several.
    assert len(options) > 1
    for value, words in options[1:]:
        expected = names(page, holds(page, name, value))
        assert words.endswith(f" ({len(expected)})"), words
        if expected:
            select.select_option(value)
            assert shown(opened) == expected, value
    select.select_option("")
    assert len(shown(opened)) == len(page.rows)
    assert complaints == []


def test_choices_go_together_and_count_what_is_left(models: tuple[Path, ModelsPage], opened: Page) -> None:
    _path, page = models
    expect = pytest.importorskip("playwright.sync_api").expect
    opened.locator("select[data-of=architecture]").select_option("llama")
    opened.locator("select[data-of=tools]").select_option("yes")
    assert shown(opened) == ["a/alpha.gguf", "a/beta.gguf", "a/beta.gguf tool_use"]
    assert output(opened) == "2 of 237 files, 3 of 238 rows"
    # A filter counts what the others let through, itself left aside; what would leave nothing cannot be chosen.
    architectures = opened.locator("select[data-of=architecture] option")
    expect(architectures.filter(has_text="llama")).to_have_text("llama (3)")
    expect(architectures.filter(has_text="qwen3")).to_have_text("qwen3 (1)")
    expect(architectures.filter(has_text="gemma3")).to_be_disabled()
    expect(opened.locator("select[data-of=quantization] option").filter(has_text="Q8_0")).to_have_text("Q8_0 (2)")
    opened.locator("input[type=search]").fill("alpha")
    assert shown(opened) == ["a/alpha.gguf"]
    expect(architectures.filter(has_text="qwen3")).to_be_disabled()
    opened.locator("select[data-of=finding]").select_option("late-system-raises")
    assert names(page, lambda row: row.path == "a/alpha.gguf") == shown(opened)


def test_a_choice_stands_in_the_address_and_is_there_after_going_back(opened: Page, complaints: list[str]) -> None:
    entries = opened.evaluate("history.length")
    opened.locator("select[data-of=architecture]").select_option("llama")
    opened.locator("select[data-of=finding]").select_option("late-system-raises")
    opened.keyboard.press("Escape")
    opened.keyboard.press("/")
    opened.keyboard.type("beta")
    opened.wait_for_url("**/models.html?architecture=llama&finding=late-system-raises&q=beta")
    assert opened.evaluate("history.length") == entries
    opened.locator(".models a", has_text="beta").first.click()
    opened.wait_for_url("**/templates/*")
    opened.go_back()
    assert shown(opened) == ["a/beta.gguf"]
    assert opened.locator("input[type=search]").input_value() == "beta"
    assert complaints == []


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("?tools=yes", ["a/alpha.gguf", "a/beta.gguf", "a/beta.gguf tool_use", "b/<i>.gguf", "b/gamma.gguf"]),
        ("?tools=wrong", ["b/gamma.gguf"]),
        ("?typed_content=under", ["b/gamma.gguf"]),
        ("?flags=ynnnnnnnn", ["a/beta.gguf tool_use", "b/gamma.gguf"]),
        ("?outcome=not%20parseable", ["b/broken.gguf"]),
        ("?outcome=no+template", ["b/base.gguf"]),
        ("?start=no", ["b/broken.gguf", "b/gamma.gguf"]),
        ("?finding=error", ["b/broken.gguf", "b/gamma.gguf"]),
        ("?finding=late-system-raises&architecture=llama&q=beta", ["a/beta.gguf"]),
        ("?architecture=" + quote(SHOWN_NAME), ["b/<i>.gguf"]),
        ("?architecture=of+none", []),
        ("?other=thing&q=gamma", ["b/gamma.gguf"]),
    ],
)
def test_an_address_narrows_the_list(
    models: tuple[Path, ModelsPage], tab: Page, complaints: list[str], asked: str, expected: list[str]
) -> None:
    path, page = models
    go_to(tab, path, asked)
    assert shown(tab) == expected
    assert output(tab).startswith(f"{len({one.removesuffix(' tool_use') for one in expected})} of 237 files")
    tab.get_by_role("button", name="Show all").click()
    assert shown(tab) == names(page, lambda _row: True)
    tab.wait_for_url(path.as_uri())
    assert tab.get_by_role("button", name="Show all").count() == 0
    assert complaints == []


def test_an_address_says_what_is_chosen(models: tuple[Path, ModelsPage], tab: Page) -> None:
    go_to(tab, models[0], "?architecture=of+none&tools=yes")
    assert tab.locator("select[data-of=architecture]").evaluate("(one) => one.selectedOptions[0].text") == "of none (0)"
    assert tab.locator("select[data-of=tools]").input_value() == "yes"
    go_to(tab, models[0], "?flags=ynnynnnnn")
    assert tab.locator(".narrowed").inner_text() == "only the combination tools, system role"


def test_reset(models: tuple[Path, ModelsPage], opened: Page) -> None:
    opened.locator("select[data-of=architecture]").select_option("qwen3")
    opened.locator("input[type=search]").fill("gamma")
    opened.get_by_role("button", name="Show all").click()
    assert len(shown(opened)) == len(models[1].rows)
    assert opened.locator("select.chosen").count() == 0
    assert opened.evaluate("document.activeElement.type") == "search"


def test_hostile_names_are_choices_like_others(opened: Page, complaints: list[str]) -> None:
    for name in ("architecture", "quantization", "quantizer"):
        option = opened.locator(f"select[data-of={name}] option", has_text="alert")
        assert option.text_content() == f"{SHOWN_NAME} (1)"
        assert "\u202e" not in str(option.text_content())
        opened.locator(f"select[data-of={name}]").select_option(SHOWN_NAME)
    assert shown(opened) == ["b/<i>.gguf"]
    opened.reload()
    assert shown(opened) == ["b/<i>.gguf"]
    assert opened.locator("script").count() == 1
    assert complaints == []


# ---- Sorting ----


@pytest.mark.parametrize("column", range(8))
def test_sort_by_a_column_both_ways(models: tuple[Path, ModelsPage], opened: Page, column: int) -> None:
    keys = [sort_keys(row)[column] for row in models[1].rows]
    order = {name_of(row): key for row, key in zip(models[1].rows, keys, strict=True)}
    header = opened.locator(".models th").nth(column)
    for way in ("ascending", "descending"):
        header.locator("button").click()
        assert header.get_attribute("aria-sort") == way
        assert opened.locator("th[aria-sort]").count() == 1
        # What is blank comes last, either way.
        told = sorted((key for key in keys if key != ""), reverse=way == "descending")
        told += [""] * keys.count("")
        wait_for_order(opened)
        assert [order[name] for name in shown(opened)] == told


def sort_keys(row: ModelRow) -> tuple[Any, ...]:
    """What each column is sorted by."""
    stated = [plain(text or "").lower() for text in (row.architecture, row.quantization, row.quantizer)]
    starts = {True: "starts", False: "does not start", None: ""}[row.starts]
    found = "" if row.found is None else row.found
    return (name_of(row).lower(), row.outcome.value, starts, *stated, found, row.flags.key)


def wait_for_order(tab: Page) -> None:
    """A long list is put into its order in parts, those in view first."""
    tab.wait_for_function(
        "() => { const table = document.querySelector('.models');"
        " const there = [...table.tBodies].flatMap((body) => [...body.rows]);"
        " return rowsOf.get(table).every((row, at) => row === there[at]); }"
    )


def test_sorting_keeps_the_filter_and_the_groups(models: tuple[Path, ModelsPage], opened: Page) -> None:
    opened.locator("input[type=search]").fill("many")
    opened.locator(".models th button").first.click()
    opened.locator(".models th button").first.click()
    wait_for_order(opened)
    assert shown(opened) == [f"many/{number:03}.gguf" for number in reversed(range(MANY))]
    opened.locator("input[type=search]").fill("")
    sizes = opened.locator(".models tbody").evaluate_all("(all) => all.map((one) => one.rows.length)")
    assert sum(sizes) == len(models[1].rows)
    assert max(sizes) <= 100


# ---- Keys ----


def test_keys(opened: Page, complaints: list[str]) -> None:
    here = opened.locator(".here")
    opened.keyboard.press("j")
    opened.keyboard.press("j")
    assert here.inner_text().startswith("a/beta.gguf")
    opened.keyboard.press("k")
    assert here.inner_text().startswith("a/alpha.gguf")
    opened.keyboard.press("k")
    assert here.inner_text().startswith("many/229.gguf")
    for name in ("alpha", "beta", "<i>", "base", "broken"):
        opened.keyboard.press("n")
        assert name in here.inner_text()
    opened.keyboard.press("?")
    assert opened.locator("#keys").is_visible()
    opened.keyboard.press("/")
    opened.keyboard.type("jk?n")
    assert opened.locator("input[type=search]").input_value() == "jk?n"
    opened.keyboard.press("Escape")
    assert opened.locator("#keys").is_hidden()
    assert opened.evaluate("document.activeElement === document.body")
    assert complaints == []


def test_keys_pass_over_what_is_filtered_out(models: tuple[Path, ModelsPage], tab: Page) -> None:
    go_to(tab, models[0], "?q=gguf&finding=error")
    stops = []
    for _ in range(3):
        tab.keyboard.press("j")
        stops.append(tab.locator(".here").inner_text().split()[0])
    assert stops == ["b/broken.gguf", "b/gamma.gguf", "b/broken.gguf"]
    tab.keyboard.press("j")
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/templates/*")


def test_filters_by_keyboard_alone(opened: Page) -> None:
    opened.locator("summary").focus()
    opened.keyboard.press("Tab")
    assert opened.evaluate("document.activeElement.dataset.of") == "outcome"
    opened.keyboard.press("ArrowDown")
    assert opened.locator("select[data-of=outcome]").input_value() == "analysed"
    assert opened.locator(".models").evaluate("(table) => table.querySelectorAll('tr[hidden]').length") == 3


# ---- A narrow window ----


def test_on_a_narrow_screen_a_row_is_a_card(models: tuple[Path, ModelsPage], browser: Browser) -> None:
    tab = browser.new_page(viewport={"width": 390, "height": 800})
    go_to(tab, models[0])
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert not tab.locator("details.filters").evaluate("(one) => one.open")
    name, outcome = [tab.locator(".models tbody tr").first.locator("td").nth(at).bounding_box() for at in (0, 1)]
    assert name is not None and outcome is not None
    assert outcome["y"] >= name["y"] + name["height"]
    assert re.search(r"server\s+starts", tab.locator(".models tbody tr").first.inner_text()) is None
    tab.locator("summary").click()
    tab.locator("select[data-of=tools]").select_option("wrong")
    assert shown(tab) == ["b/gamma.gguf"]
    assert tab.locator(".narrowed").inner_text() == ""
    tab.locator("summary").click()
    expect = pytest.importorskip("playwright.sync_api").expect
    expect(tab.locator(".narrowed")).to_have_text("only tools: wrong claim")
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    tab.close()


def test_what_is_no_model_of_its_own_is_named(empty_engine: Engine, tmp_path: Path) -> None:
    examples.record(empty_engine, file("mmproj-a.gguf", ModelMetadata(architecture="clip", role="projector"), USED))
    write_report(empty_engine, tmp_path / "out", now=examples.Clock())
    text = "".join(parse(tmp_path / "out" / "models.html").text)
    assert "mmproj-a.gguf projector" in " ".join(text.split())
