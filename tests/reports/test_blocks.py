"""Single blocks for mails and chats: as HTML that needs nothing else, and as Markdown."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from markdown_it import MarkdownIt
from sqlalchemy import Engine

from reports.overview import read_overview
from reports.pages.blocks import BLOCKS
from reports.render import render_fragment, render_markdown
from scanner.cli import run
from scanner.commands import report as command
from scanner.results import Finding, Severity
from scanner.store import migrate
from scanner.store.session import open_database
from tests.reports.html_check import Parsed, parse_text
from tests.store import examples
from tests.store.examples import analysis, observed, template, with_templates

ATTACK = "</p><script>alert(1)</script>\u202e\"'><img src=x>|`b` [x](javascript:alert(2)) *e* https://example.org\n# h"
SHOWN = ATTACK.replace("\u202e", "⟨U+202E⟩").replace("\n", "⟨U+000A⟩")
PUBLISHED = "https://example.org/report/"
OLD, NEW = template(b"old"), template(b"new")
MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


@pytest.fixture
def scans(empty_engine: Engine) -> Engine:
    """Two scans: a template was replaced, and its text is an attack, as are its path and findings."""
    fill(empty_engine)
    return empty_engine


def fill(engine: Engine) -> None:
    path = f"/models/{ATTACK}.gguf"
    found = Finding("some-rule", Severity.ERROR, ATTACK, ATTACK, 7)
    worse = replace(observed(NEW.sha256, ("tools",), ()), findings=(found, examples.finding(Severity.WARNING)))
    variant = replace(OLD, variant=ATTACK)
    examples.record(engine, with_templates(path, OLD, variant), analyses=(analysis(OLD.sha256, "typed_content"),))
    changed = with_templates(path, NEW, variant, fingerprint="2")
    others = [with_templates(f"/models/{number}.gguf", template(b"%d" % number)) for number in range(3)]
    made = [
        analysis(file.templates[0].sha256, findings=(examples.finding(Severity.WARNING, "a reason"),))
        for file in others
    ]
    examples.record(engine, changed, *others, analyses=(worse, *made))


def html_of(engine: Engine, block: str, base: str | None = None, *, scan: int | None = None, limit: int = 20) -> str:
    return render_fragment(BLOCKS[block](read_overview(engine, scan), limit), block, base=base)


def markdown_of(
    engine: Engine, block: str, base: str | None = None, *, scan: int | None = None, limit: int = 20
) -> str:
    return render_markdown(BLOCKS[block](read_overview(engine, scan), limit), base=base)


def text_of(found: Parsed) -> str:
    return " ".join("".join(found.text).split())


def as_html(markdown: str) -> Parsed:
    """Markdown as something renders it that lets HTML through."""
    return parse_text(MARKDOWN.render(markdown))


@pytest.mark.parametrize("block", BLOCKS)
def test_a_fragment_needs_nothing_else(scans: Engine, block: str) -> None:
    html = html_of(scans, block)
    found = parse_text(html)
    assert not found.unclosed
    assert not {tag for tag, _ in found.elements} & {"html", "script", "style", "link", "svg", "img", "a", "details"}
    names = {name for _tag, attributes in found.elements for name in attributes}
    assert not [name for name in names if name.startswith("on") or name in ("style", "id", "href", "src")]
    assert "".join(found.script_text) == ""
    assert "\u202e" not in html


@pytest.mark.parametrize("block", BLOCKS)
def test_links_of_a_block_lead_to_the_published_report(scans: Engine, block: str) -> None:
    for found in (
        parse_text(html_of(scans, block, PUBLISHED)),
        as_html(markdown_of(scans, block, PUBLISHED)),
    ):
        links = found.values("href")
        assert links
        assert all(link.startswith(PUBLISHED) for link in links)
    assert as_html(markdown_of(scans, block)).values("href") == []


def test_every_link_of_a_block_is_a_page_of_the_report(scans: Engine) -> None:
    pages = {"index", "models", "templates", "findings", "failures", "changes", "outliers"}
    for block in BLOCKS:
        for link in parse_text(html_of(scans, block, PUBLISHED)).values("href"):
            path = urlsplit(link).path.removeprefix("/report/").removesuffix(".html")
            assert path in pages or path.startswith(("templates/", "capabilities/", "compare/")), link


@pytest.mark.parametrize("block", BLOCKS)
def test_markdown_is_what_it_seems(scans: Engine, block: str) -> None:
    found = as_html(markdown_of(scans, block, PUBLISHED))
    allowed = {"h3", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "a"}
    assert {tag for tag, _ in found.elements} <= allowed
    assert [tag for tag, _ in found.elements].count("table") == 1
    widths = [
        html.count("<td") or html.count("<th") for html in MARKDOWN.render(markdown_of(scans, block)).split("<tr>")
    ]
    assert len(set(widths[1:])) == 1


@pytest.mark.parametrize("block", ["outliers", "changes"])
def test_hostile_text_is_shown_as_it_is(scans: Engine, block: str) -> None:
    # In an element a character that reorders text is an element of its own.
    assert ATTACK.replace("\u202e", "U+202E").split("\n")[0] in "".join(parse_text(html_of(scans, block)).text)
    assert SHOWN in "".join(as_html(markdown_of(scans, block)).text)


def test_outliers_say_why(scans: Engine) -> None:
    for found in (parse_text(html_of(scans, "outliers")), as_html(markdown_of(scans, "outliers"))):
        text = text_of(found)
        assert "4 templates do not fit." in text
        assert "Scan 2 of /models · 2026-11-29 12:00 UTC · profile b11549 · Capscan 0.1.0" in text
        assert "· line 7 · some-rule · 1 more" in text
        assert text.index("error") < text.index("a reason")


def test_changes_say_what_flipped(scans: Engine) -> None:
    for found in (parse_text(html_of(scans, "changes")), as_html(markdown_of(scans, "changes"))):
        text = text_of(found)
        assert "What changed since scan 1" in text
        assert "3 appeared · 1 replaced" in text
        assert "flags flipped at 1 place" in text
        assert "tools no → yes, typed content yes → no" in text
        assert f"{OLD.sha256[:8]} → {NEW.sha256[:8]}" in text


def test_a_summary_holds_the_numbers(scans: Engine) -> None:
    for found in (parse_text(html_of(scans, "summary")), as_html(markdown_of(scans, "summary"))):
        text = text_of(found)
        assert "4 model files, 5 distinct templates" in text
        assert re.search(r"tools 1 of 5 0 of 1 ?1 too much", text)
        assert "not verified against llama.cpp" in text
    markdown = markdown_of(scans, "summary")
    assert "0 of 1 templates with every flag right" in markdown
    assert "1 error, 4 warnings, 0 notes, 4 outliers, 0 files keep llama-server from starting" in markdown


@pytest.mark.parametrize(("block", "total"), [("outliers", 4), ("changes", 4)])
def test_a_list_is_cut(scans: Engine, block: str, total: int) -> None:
    assert f"… {total - 1} more" in text_of(parse_text(html_of(scans, block, limit=1)))
    assert f"… {total - 1} more" in text_of(as_html(markdown_of(scans, block, limit=1)))
    assert f"all {total} {block}" in text_of(parse_text(html_of(scans, block, PUBLISHED, limit=1)))
    assert " more" not in text_of(parse_text(html_of(scans, block))).replace("· 1 more", "")
    nothing = parse_text(html_of(scans, block, limit=0))
    assert "table" not in {tag for tag, _ in nothing.elements}
    assert f"… {total} more" in text_of(nothing)


@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_of_an_old_scan_says_so(scans: Engine, block: str) -> None:
    for scan, says in ((1, True), (2, False)):
        assert ("the newest is scan 2" in text_of(parse_text(html_of(scans, block, scan=scan)))) is says
        assert ("the newest is scan 2" in text_of(as_html(markdown_of(scans, block, scan=scan)))) is says
    assert "Nothing, or there is no scan before" in html_of(scans, "changes", scan=1)
    assert "Nothing, or there is no scan before" in markdown_of(scans, "changes", scan=1)


@pytest.mark.parametrize("block", BLOCKS)
def test_nothing_is_a_block_too(empty_engine: Engine, block: str) -> None:
    examples.record(empty_engine)
    assert not parse_text(html_of(empty_engine, block)).unclosed
    assert as_html(markdown_of(empty_engine, block)).text


# -- the command


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("blocks") / "c.db"
    engine = open_database(str(path))
    migrate.ensure_current(engine, create=True)
    fill(engine)
    engine.dispose()
    return path


def test_the_command_knows_the_blocks() -> None:
    assert set(command.BLOCKS) == set(BLOCKS)


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("markdown", [False, True])
def test_the_command_prints_a_block_and_writes_nothing(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    block: str, markdown: bool,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    options = ["--markdown"] if markdown else []
    assert run(["report", "--db", str(database), "--block", block, *options]) == 0
    engine = open_database(str(database))
    assert capsys.readouterr().out == (markdown_of if markdown else html_of)(engine, block)
    engine.dispose()
    assert list(tmp_path.iterdir()) == []


def test_the_command_s_options(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["report", "--db", str(database), "--block", "outliers"]
    for link in ("https://example.org/report", "https://example.org/report/", "https://example.org/report/index.html"):
        assert run([*asked, "--link", link]) == 0
        links = parse_text(capsys.readouterr().out).values("href")
        assert f"{PUBLISHED}templates/{NEW.sha256[:16]}.html" in links
    assert run([*asked, "--limit", "1", "--markdown"]) == 0
    assert "… 3 more" in capsys.readouterr().out
    assert run([*asked, "--scan", "1", "--markdown"]) == 0
    assert "0 templates do not fit" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--block", "outliers", "-o", "x"], "--output does not go with --block"),
        (["--block", "outliers", "--open"], "--open does not go with --block"),
        (["--markdown", "--limit", "3"], "--limit, --markdown needs --block"),
        (["--block", "outliers", "--link", "javascript:alert(1)"], "https://"),
        (["--block", "outliers", "--scan", "9"], "there is no scan 9"),
        (["--block", "nothing"], "'outliers', 'changes', 'summary'"),
        (["--block", "outliers", "--limit", "-1"], "x>=0"),
    ],
)
def test_what_makes_no_sense_is_refused(
    database: Path, capsys: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    assert run(["report", "--db", str(database), *options]) == 2
    assert said in capsys.readouterr().err


def test_a_pipe_that_is_closed_is_no_error(database: Path) -> None:
    asked = [sys.executable, "-m", "scanner", "report", "--db", str(database), "--block", "summary"]
    with subprocess.Popen(asked, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(60) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""
