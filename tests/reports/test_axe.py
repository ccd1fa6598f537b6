"""axe finds nothing serious on any kind of page, light and dark, wide and narrow."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.reports.conftest import HOSTILE, Written

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SERIOUS = {"serious", "critical"}


def kinds_of_pages(report: Written) -> list[Path]:
    """The lists, and of each folder's pages one; of the templates the hostile one, and one with every field."""
    folders = {path.parent: path for path in report.pages if path.parent != report.folder}
    templates = [
        report.template_page(HOSTILE),
        report.template_page(b"a template with every field\n\n\n{{ x }}\n\n\n{{ y }}\n"),
    ]
    return sorted({*report.folder.glob("*.html"), *folders.values(), *templates})


# Colours do not depend on the width: two of the four pairs see all that there is.
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_nothing_serious(report: Written, browser: Browser, scheme: Any, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed").Axe()
    tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    found = []
    for path in kinds_of_pages(report):
        tab.goto(path.as_uri())
        unfold(tab)
        serious = [one for one in axe.run(tab).response["violations"] if one["impact"] in SERIOUS]
        found += [f"{path.name}: {one['id']}, {node['html'][:200]}" for one in serious for node in one["nodes"]]
    tab.close()
    assert not found, "\n".join(found)


def unfold(tab: Page) -> None:
    """Opens all that is folded, and the keys: what is hidden is not looked at. On a template's page a capability is
    chosen, which dims the rest."""
    tab.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    tab.keyboard.press("4")
    tab.keyboard.press("?")
