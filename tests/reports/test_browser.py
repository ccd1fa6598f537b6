"""The pages in a real browser, opened from files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.reports.conftest import HOSTILE, Written

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = Path("/usr/bin/chromium")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium; the tests are skipped where it, or playwright, is missing."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is missing")
    with api.sync_playwright() as playwright:
        # Chromium refuses its sandbox to root, which tests in a container often are.
        launched = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture
def complaints() -> list[str]:
    """What pages complained of, tried to run, or tried to fetch."""
    return []


@pytest.fixture
def tab(browser: Browser, complaints: list[str]) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    page.on("request", lambda request: complaints.append(request.url) if "file:" not in request.url else None)
    yield page
    page.close()


def test_no_page_complains_runs_or_fetches_anything(report: Written, tab: Page, complaints: list[str]) -> None:
    for path in report.pages:
        tab.goto(path.as_uri())
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
    assert complaints == []


def test_search_and_sort(report: Written, tab: Page, complaints: list[str]) -> None:
    expect = pytest.importorskip("playwright.sync_api").expect
    tab.goto((report.folder / "models.html").as_uri())
    rows = tab.locator("table.list tbody tr")
    assert rows.locator("visible=true").count() == rows.count() == 8
    tab.keyboard.press("/")
    tab.keyboard.type("PLAIN analysed")
    expect(tab.locator("output")).to_have_text("1 of 8")
    assert rows.locator("visible=true").count() == 1
    tab.locator("input[type=search]").fill("")
    expect(tab.locator("output")).to_have_text("8")
    header = tab.locator("th", has_text="Outcome")
    header.locator("button").click()
    assert header.get_attribute("aria-sort") == "ascending"
    # Rows out of sight are not laid out and have no inner text yet.
    outcomes = tab.locator("td.outcome").all_text_contents()
    assert outcomes == sorted(outcomes)
    header.locator("button").click()
    assert tab.locator("td.outcome").all_text_contents() == sorted(outcomes, reverse=True)
    assert complaints == []


def test_an_address_narrows_the_models(report: Written, tab: Page) -> None:
    tab.goto((report.folder / "models.html").as_uri() + "?reasoning_effort=yes")
    assert tab.locator("table.list tbody tr").locator("visible=true").count() == 1
    assert "Only reasoning effort: yes" in tab.locator(".narrowed").inner_text()
    tab.locator(".narrowed a").click()
    assert tab.locator("table.list tbody tr").locator("visible=true").count() == 8
    tab.goto((report.folder / "index.html").as_uri())
    tab.locator("[href='models.html?start=no']").click()
    assert tab.locator("table.list tbody tr").locator("visible=true").count() == 1
    assert "Only where llama-server would not start" in tab.locator(".narrowed").inner_text()
    tab.goto((report.folder / "models.html").as_uri() + "?outcome=analysed")
    assert tab.locator("table.list tbody tr").locator("visible=true").count() == 5


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
    tab.locator("#claim-system_role summary").click()
    tab.locator("#claim-system_role a", has_text="system_role").first.click()
    assert tab.locator("#probe-system_role").is_visible()
    assert tab.locator("#probe-system_role .failed-box").is_visible()
    assert complaints == []


def test_pages_read_well_with_scripts_off(report: Written, browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto((report.folder / "index.html").as_uri())
    assert tab.locator("input").locator("visible=true").count() == 0
    assert tab.locator("#templates").is_visible()
    context.close()
