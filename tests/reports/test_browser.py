"""The pages in a real browser, opened from files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.reports.conftest import HOSTILE, Written

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


def test_no_page_complains_runs_or_fetches_anything(report: Written, tab: Page, complaints: list[str]) -> None:
    for path in report.pages:
        tab.goto(path.as_uri())
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
    assert complaints == []


@pytest.mark.parametrize("width", [390, 800, 1280])
def test_no_page_is_wider_than_the_window(report: Written, tab: Page, width: int) -> None:
    tab.set_viewport_size({"width": width, "height": 900})
    for path in report.pages:
        tab.goto(path.as_uri())
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), path


def test_a_search_of_all_lists_of_a_page(report: Written, tab: Page, complaints: list[str]) -> None:
    expect = pytest.importorskip("playwright.sync_api").expect
    tab.goto((report.folder / "findings.html").as_uri())
    rows = tab.locator(".found-at tbody tr")
    all_of_them = rows.count()
    assert tab.locator("input[type=search]").count() == 1
    expect(tab.locator("output")).to_have_text(str(all_of_them))
    tab.keyboard.press("/")
    # A rule's name stands in the heading above its rows.
    tab.keyboard.type("NO-TEMPLATE base")
    expect(tab.locator("output")).to_have_text(f"1 of {all_of_them}")
    assert tab.locator("section:visible h2").count() == 1
    assert rows.locator("visible=true").count() == 1
    # A link to what the search has hidden shows it again.
    tab.locator(".rules a", has_text="not-parseable").click()
    assert tab.locator("#rule-error-not-parseable").is_visible()
    expect(tab.locator("output")).to_have_text(str(all_of_them))
    assert complaints == []


def test_sort_by_severity(report: Written, tab: Page) -> None:
    tab.goto((report.folder / "findings.html").as_uri())
    header = tab.locator(".rules th", has_text="Severity")
    header.locator("button").click()
    header.locator("button").click()
    assert header.get_attribute("aria-sort") == "descending"
    told = [one.strip().split()[-1] for one in tab.locator(".rules td:first-child").all_inner_texts()]
    assert told == sorted(told, key=["note", "warning", "error"].index)


def test_keys(report: Written, tab: Page) -> None:
    tab.goto((report.folder / "index.html").as_uri())
    assert tab.locator("#keys").is_hidden()
    tab.keyboard.press("?")
    assert tab.locator("#keys").is_visible()
    tab.keyboard.press("Escape")
    assert tab.locator("#keys").is_hidden()
    tab.keyboard.press("n")
    assert "finding" in str(tab.locator(".here").get_attribute("class"))
    first = tab.locator(".here").inner_text()
    tab.keyboard.press("j")
    assert tab.locator(".here").inner_text() != first
    tab.keyboard.press("k")
    assert tab.locator(".here").inner_text() == first


def test_a_link_into_a_folded_probe_unfolds_it(report: Written, tab: Page, complaints: list[str]) -> None:
    tab.goto(report.template_page(HOSTILE).as_uri())
    tab.locator("#claim-system_role > summary").click()
    tab.locator("#claim-system_role a", has_text="system_role").first.click()
    assert tab.locator("#probe-system_role").is_visible()
    assert tab.locator("#probe-system_role .failed-box").first.is_visible()
    assert complaints == []


def test_pages_read_well_with_scripts_off(report: Written, browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    for path in report.pages:
        tab.goto(path.as_uri())
        assert tab.locator("input[type=search], select, button").locator("visible=true").count() == 0, path
    tab.goto((report.folder / "index.html").as_uri())
    assert tab.locator("#flags").is_visible()
    context.close()


def test_choosing_a_capability_brings_what_decided_it_into_view(
    report: Written, tab: Page, complaints: list[str]
) -> None:
    tab.goto(report.template_page(HOSTILE).as_uri())
    tab.keyboard.press("4")
    assert tab.locator("#choose-4").is_checked()
    assert tab.locator('.source .read[data-for~="4"]').first.is_visible()
    marked = tab.locator(".source li").evaluate_all(
        "lines => lines.filter(line => getComputedStyle(line).borderLeftColor !== 'rgba(0, 0, 0, 0)').length"
    )
    assert 0 < marked < tab.locator(".source li").count()
    tab.keyboard.press("r")
    assert tab.locator(".source .read.at").count() == 1
    tab.keyboard.press("e")
    assert tab.locator(".source .remark.at").count() == 1
    tab.keyboard.press("0")
    assert tab.locator("#choose-0").is_checked()
    assert complaints == []


def test_an_address_that_is_none_leads_nowhere(report: Written, tab: Page, complaints: list[str]) -> None:
    tab.goto(report.template_page(HOSTILE).as_uri() + "#%E0%A4%A")
    assert complaints == []


def test_nothing_is_wider_than_a_telephone_when_all_is_unfolded(report: Written, tab: Page) -> None:
    tab.set_viewport_size({"width": 390, "height": 800})
    for path in report.pages:
        tab.goto(path.as_uri())
        tab.evaluate("for (const details of document.querySelectorAll('details')) details.open = true")
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
