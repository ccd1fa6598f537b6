"""The pictures of the demo's pages that the README shows.

    python -m tests.reports.screenshots [FOLDER]

Makes the demo collection, scans it, writes its report, and takes the pictures in Chromium into `docs/images` (or
FOLDER). Run it again after the pages have changed.
"""

# ruff: noqa: T201

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CHROMIUM = Path("/usr/bin/chromium")
IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
SHOWN = "Qanat-Strict-27B-Q4_K_M.gguf"
"""The demo's model whose template passes the effort probe and raises on most efforts."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A page to take: its address below the report, what to press there, the selector of what stands at the top (none:
    where the address leads), and how large the window is."""

    name: str
    address: str
    keys: str = ""
    top: str = ""
    width: int = 1280
    height: int = 900
    scheme: Literal["light", "dark"] = "light"


def main(arguments: Sequence[str]) -> None:
    """Takes the pictures."""
    from playwright.sync_api import sync_playwright

    folder = Path(arguments[0]) if arguments else IMAGES
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as made, sync_playwright() as playwright:
        # A path of every machine, for it stands on the pages.
        subprocess.run([sys.executable, "-m", "scanner", "demo", "capscan-demo"], cwd=made, check=True)
        report = Path(made, "capscan-demo", "report")
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        for picture in pictures(report):
            take(browser, report, picture, folder / f"{picture.name}.png")
            print(folder / f"{picture.name}.png")
        browser.close()


def pictures(report: Path) -> tuple[Picture, ...]:
    """What is shown of a report of the demo."""
    page = template_page(report)
    return (
        Picture("index", "index.html"),
        Picture("template", f"{page}#source", "9"),
        Picture("template-dark", f"{page}#claim-reasoning_effort", scheme="dark", width=900, height=720),
        Picture("models", "models.html", top=".find", height=640),
    )


def template_page(report: Path) -> str:
    """The page of the template that SHOWN holds."""
    rows = json.loads((report / "models.json").read_bytes())["rows"]
    return next(f"templates/{row['page']}.html" for row in rows if row["path"].endswith(SHOWN))


def take(browser: Browser, report: Path, picture: Picture, file: Path) -> None:
    """Takes one picture."""
    tab = browser.new_page(viewport={"width": picture.width, "height": picture.height}, color_scheme=picture.scheme)
    tab.goto((report / "index.html").as_uri().replace("index.html", picture.address))
    for key in picture.keys:
        tab.keyboard.press(key)
    if picture.top:
        tab.locator(picture.top).first.evaluate("element => element.scrollIntoView()")
    tab.screenshot(path=file)
    tab.close()


if __name__ == "__main__":
    main(sys.argv[1:])
