"""How long a report takes, how large it is, and how soon its pages can be used.

    python benchmarks/report.py [--files N] [--templates N] [--from FOLDER] [--database FILE] [--browser]

Makes a database of N model files and N templates (10,000 and 500), each template a variation of those in FOLDER
(`*.jinja`; else the shared corpus, else one of our own), and writes its report twice: anew, and over itself. Printed:
seconds, those that the processor worked, pages, megabytes, and the largest pages. The target: under 10 s.
A FILE keeps the database, and is used as it is when it is there already.

With `--browser` the pages are opened in Chromium, without a window. Printed, in milliseconds: how long after its
opening a page of each kind has run its script and is painted, and for the list of models, from an action to its result
on the screen: a letter typed into the search, a choice in a filter, a click that sorts.
"""

# ruff: noqa: T201

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Engine

from reports import write_report
from scanner import __version__
from scanner.pipeline import analyse_template
from scanner.probe.profiles import CURRENT
from scanner.results import ChatTemplate, FileResult, ModelFile, ModelMetadata, Outcome, SourceKind, TemplateResult
from scanner.store import migrate
from scanner.store.session import open_database
from scanner.store.writer import ScanWriter

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("CAPSCAN_SHARED") or ROOT.parent / "shared")
OWN = b"""{%- for message in messages %}
{{- '<|' + message.role + '|>' + message.content + '\\n' }}
{%- for call in message.tool_calls or [] %}{{- call.function.name }}{% endfor %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|assistant|>' }}{% endif %}
"""
ARCHITECTURES = ("llama", "qwen3", "llama", "gemma3", "qwen3moe", "mistral3", "llama")
QUANTIZATIONS = ("Q4_K_M", "Q5_K_M", "Q6_K", "Q8_0", "F16")
QUANTIZERS = ("somebody", "somebody else", None)
EVERY_NTH_FAILS = 23
CHROMIUM = "/usr/bin/chromium"
LISTS = ("index", "models", "findings", "failures", "changes", "combinations", "capabilities/tools")
SAMPLES = 5
"""How often a page is opened; the median counts."""

# `painted` tells when what was done last is on the screen.
WATCH = """
window.painted = (then) => requestAnimationFrame(() => {
  const channel = new MessageChannel();
  channel.port1.onmessage = () => then(performance.now());
  channel.port2.postMessage(0);
});
document.addEventListener("DOMContentLoaded", () => painted((at) => { window.usable = at; }));
window.clock = () => {
  window.took = null;
  const start = (event) => painted((at) => { window.took = at - event.timeStamp; });
  for (const kind of ["input", "change", "click"]) addEventListener(kind, start, { capture: true, once: true });
};
"""


def main() -> None:
    arguments = _arguments()
    with tempfile.TemporaryDirectory() as temporary, _database(arguments, Path(temporary)) as engine:
        report = Path(temporary, "report")
        _write_twice(engine, report)
        _print_largest(report)
        if arguments.browser:
            _print_times(report)


@contextmanager
def _database(arguments: argparse.Namespace, temporary: Path) -> Iterator[Engine]:
    path: Path = arguments.database or temporary / "capscan.db"
    is_there = path.exists()
    engine = open_database(str(path))
    migrate.ensure_current(engine, create=True)
    if not is_there:
        sources = [one.read_bytes() for one in sorted(arguments.source.glob("*.jinja"))] or [OWN]
        fill(engine, sources, arguments.files, arguments.templates)
    yield engine
    engine.dispose()


def fill(engine: Engine, sources: Sequence[bytes], files: int, templates: int) -> None:
    """One finished scan of so many files over so many templates."""
    analyses = [analyse_template(source, now=0) for source in sources]
    with ScanWriter(engine, now=_now, version=__version__, profile=CURRENT.name) as writer:
        writer.begin(["/models"])
        held = []
        for number in range(templates):
            template = ChatTemplate("default", sources[number % len(sources)] + b"{# %d #}" % number, "a key")
            held.append(template)
            writer.add_template(template.source)
            writer.add_analysis(_renamed(analyses[number % len(sources)], template.sha256))
        for number in range(files):
            writer.add_file(_file(number, held[number % templates]))
        writer.finish("finished")


def _renamed(analysis: TemplateResult, sha256: str) -> TemplateResult:
    return replace(analysis, sha256=sha256)


def _file(number: int, template: ChatTemplate) -> FileResult:
    path = f"/models/somebody-{number % 40}/A-Model-{number % 900}-Instruct-GGUF/model-{number}.gguf"
    file = ModelFile(path, "/models", SourceKind.GGUF, 4_000_000_000, 0, str(number))
    if number % EVERY_NTH_FAILS == 0:
        return FileResult(file, Outcome.UNREADABLE, reason="the file ends early", offset=number, expected="a key")
    metadata = ModelMetadata(
        architecture=ARCHITECTURES[number % len(ARCHITECTURES)],
        file_type=QUANTIZATIONS[number % len(QUANTIZATIONS)],
        quantized_by=QUANTIZERS[number % len(QUANTIZERS)],
    )
    return FileResult(file, Outcome.ANALYSED, (template,), metadata)


def _now() -> datetime:
    return datetime.now(UTC)


def _write_twice(engine: Engine, report: Path) -> None:
    for what in ("anew", "again"):
        started, worked = time.perf_counter(), time.process_time()
        summary = write_report(engine, report, now=_now)
        seconds, work = time.perf_counter() - started, time.process_time() - worked
        print(
            f"{what:6} {seconds:6.2f} s, {work:.2f} s of it work  "
            f"{summary.pages} pages, {summary.unchanged} unchanged, {summary.bytes / 1e6:.1f} MB"
        )


def _print_largest(report: Path) -> None:
    pages = sorted(report.rglob("*.html"), key=lambda page: -page.stat().st_size)
    for page in pages[:4]:
        print(f"       {page.name:32} {page.stat().st_size / 1e6:.2f} MB")


def _print_times(report: Path) -> None:
    from playwright.sync_api import sync_playwright

    templates = sorted((report / "templates").glob("*.html"), key=lambda page: page.stat().st_size)
    pages = [report / f"{name}.html" for name in LISTS] + templates[-1:]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for page in pages:
            print(f"       {page.relative_to(report)!s:40} {_first_use(browser, page):5.0f} ms to first use")
        for what, times in _models_times(browser, report / "models.html").items():
            told = ", ".join(f"{one:.0f}" for one in times)
            print(f"       models: {what:32} {statistics.median(times):5.0f} ms  ({told})")
        browser.close()


def _open(browser: Browser, path: Path) -> Page:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.add_init_script(WATCH)
    page.goto(path.as_uri())
    page.wait_for_function("() => window.usable")
    return page


def _first_use(browser: Browser, path: Path) -> float:
    """From the opening of a page until its script has run and it is painted."""
    times = []
    for _ in range(SAMPLES):
        page = _open(browser, path)
        times.append(float(page.evaluate("usable")))
        page.close()
    return statistics.median(times)


def _models_times(browser: Browser, path: Path) -> dict[str, list[float]]:
    page = _open(browser, path)
    page.wait_for_timeout(1000)
    search, architecture = page.locator("input[type=search]"), page.locator("select[data-of=architecture]")
    search.focus()
    times = {"a letter in the search": [_took(page, partial(page.keyboard.press, one)) for one in "model-12"]}
    times["a letter less"] = [_took(page, lambda: page.keyboard.press("Backspace")) for _ in "model-12"]
    times["a choice in a filter"] = [
        _took(page, partial(architecture.select_option, one)) for one in ("llama", "qwen3", "gemma3", "")
    ]
    headers = page.locator("th button")
    times["a click that sorts"] = [
        _took(page, headers.nth(at).click) for column in range(headers.count()) for at in (column, column)
    ]
    page.close()
    return times


def _took(page: Page, action: Callable[[], object]) -> float:
    """From an action until its result is on the screen; then waits until the page is at rest."""
    page.evaluate("clock()")
    action()
    page.wait_for_function("() => window.took !== null")
    page.wait_for_timeout(700)
    return float(page.evaluate("took"))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="How long a report takes, and how large it is.")
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--templates", type=int, default=500)
    parser.add_argument("--from", dest="source", type=Path, default=SHARED / "corpus" / "templates")
    parser.add_argument("--database", type=Path, help="keeps the database here, and uses it when it is there")
    parser.add_argument("--browser", action="store_true", help="opens the pages in Chromium as well")
    return parser.parse_args()


if __name__ == "__main__":
    main()
