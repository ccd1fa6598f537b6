"""One report of a small, hostile collection, written once for all tests that only look at it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import Engine

from reports import ReportSummary, write_report
from scanner.pipeline import analyse_template
from scanner.results import ChatTemplate, Finding, Severity
from scanner.store import migrate
from scanner.store.session import open_database
from tests.store import examples

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = Path("/usr/bin/chromium")
HOSTILE = (
    "{# </script><script>alert('run 1')</script> \"'><img src=x onerror=alert('run 2')> "
    "\u202e \u2066 \x07\x1b[31m #}\r\n"
    "{%- for m in messages -%}\r\n"
    "{{ m.role }}:   \r\n"
    "é漢{{ m.content + '</pre></code></script><script>alert(\"run 3\")</script>' }}  \t\n"
    "{% if m.role == 'system' %}{{ raise_exception('</title><script>alert(4)</script>\u202e no') }}{% endif %}\n"
    "{%- endfor -%}\n"
    "{{ tools[0].function.name if tools }}{{ reasoning_effort }}\n"
).encode() + b"\xff\xfe\xed\xa0\x80 {{ bos_token }}\0 behind"
PLAIN = b"{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
BROKEN = b"{% with %}</textarea><script>alert(5)</script>"
HOSTILE_PATH = "/models/<script>alert(6)</script>/\"'&\u202egpj\udcff\n.gguf"


@dataclass(frozen=True)
class Written:
    """A report and where it came from."""

    engine: Engine
    folder: Path
    summary: ReportSummary

    @property
    def pages(self) -> list[Path]:
        return sorted(self.folder.rglob("*.html"))

    def template_page(self, source: bytes) -> Path:
        return self.folder / "templates" / f"{sha_of(source)[:16]}.html"


def sha_of(source: bytes) -> str:
    return ChatTemplate("default", source, "").sha256


def fill(engine: Engine) -> None:
    """One scan with every outcome that matters, and text that attacks pages."""
    whole = b"a template with every field\n\n\n{{ x }}\n\n\n{{ y }}\n"
    writing = examples.writer(engine)
    writing.begin(["/models", HOSTILE_PATH])
    writing.add_file(examples.with_templates("/models/plain.gguf", examples.template(PLAIN)))
    writing.add_file(examples.with_templates("/models/again.gguf", examples.template(PLAIN)))
    both = examples.with_templates(HOSTILE_PATH, examples.template(HOSTILE), examples.template(BROKEN, "tool_use"))
    writing.add_file(both)
    writing.add_file(examples.whole_file("/models/whole.gguf", whole))
    writing.add_file(examples.unreadable("/models/cut.gguf"))
    writing.add_file(examples.without_template("/models/base.gguf"))
    for source in (PLAIN, HOSTILE, BROKEN, whole + b"!"):
        writing.add_analysis(analyse_template(source, now=0))
    writing.add_analysis(examples.whole_analysis(sha_of(whole)))
    writing.add_file_findings(
        "/models/base.gguf", [Finding("no-template", Severity.NOTE, "no <b>template</b>", "file")]
    )
    writing.finish("finished")


@pytest.fixture
def empty_engine(tmp_path: Path) -> Iterator[Engine]:
    """An empty database."""
    engine = open_database(str(tmp_path / "capscan.sqlite"))
    migrate.ensure_current(engine, create=True)
    yield engine
    engine.dispose()


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Written]:
    """The report; tests leave it as it is."""
    folder = tmp_path_factory.mktemp("report")
    engine = open_database(str(folder / "capscan.sqlite"))
    migrate.ensure_current(engine, create=True)
    fill(engine)
    summary = write_report(engine, folder / "out", now=examples.Clock())
    yield Written(engine, folder / "out", summary)
    engine.dispose()


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
    """A tab of a wide window."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    page.on("request", lambda request: complaints.append(request.url) if "file:" not in request.url else None)
    yield page
    page.close()
