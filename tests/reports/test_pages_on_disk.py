"""The written pages: links hold, nothing hostile survives, nothing comes from elsewhere."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from reports import pages
from reports.overview import notes_of, read_overview
from reports.write import LISTS
from scanner.store import queries
from tests.reports.conftest import BROKEN, HOSTILE, PLAIN, Written, sha_of
from tests.reports.html_check import Parsed, parse

# Everything that hides or reorders text, except line ends and tabs.
FORBIDDEN = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


@pytest.fixture(scope="session")
def parsed(report: Written) -> dict[Path, Parsed]:
    return {page: parse(page) for page in report.pages}


def test_every_page_is_there(report: Written) -> None:
    names = {str(page.relative_to(report.folder)) for page in report.pages}
    lists = {f"{name}.html" for name in LISTS}
    assert lists <= names
    assert report.summary.pages == len(names) == len(lists) + 9 + 5 + 2
    assert report.summary.unchanged == 0
    assert report.summary.index == report.folder / "index.html"
    written = [path for path in report.folder.rglob("*") if path.is_file() and path.name != "report.json"]
    assert report.summary.bytes == sum(path.stat().st_size for path in written)


def test_pages_are_well_formed_and_anchors_unique(parsed: dict[Path, Parsed]) -> None:
    for page, found in parsed.items():
        assert not found.unclosed, page
        assert len(found.ids) == len(set(found.ids)), page


def test_every_link_and_anchor_resolves(parsed: dict[Path, Parsed]) -> None:
    for page, found in parsed.items():
        for link in found.values("href") + found.values("src"):
            parts = urlsplit(link)
            assert not parts.scheme and not parts.netloc, (page, link)
            target = (page.parent / parts.path).resolve() if parts.path else page
            assert target.is_file(), (page, link)
            if parts.fragment:
                assert parts.fragment in parsed[target].ids, (page, link)
        for label in found.values("aria-labelledby"):
            assert label in found.ids, (page, label)


def test_nothing_runs_and_nothing_is_loaded_but_the_static_files(parsed: dict[Path, Parsed]) -> None:
    for page, found in parsed.items():
        scripts = [attributes for tag, attributes in found.elements if tag == "script"]
        expected = ["report.js", "source.js"] if page.parent.name == "templates" else ["report.js"]
        assert [Path(str(script["src"])).name for script in scripts] == expected, page
        assert "".join(found.script_text).strip() == "", page
        assert not {tag for tag, _ in found.elements} & {"img", "iframe", "style", "object", "form", "textarea"}, page
        names = {name for _tag, attributes in found.elements for name in attributes}
        assert not [name for name in names if name.startswith("on") or name in ("style", "srcdoc", "formaction")], page


def test_every_page_has_a_strict_content_security_policy(parsed: dict[Path, Parsed]) -> None:
    for page, found in parsed.items():
        policies = [a["content"] for tag, a in found.elements if a.get("http-equiv") == "Content-Security-Policy"]
        assert len(policies) == 1, page
        rules = {rule.split()[0]: rule.split()[1:] for rule in str(policies[0]).split(";")}
        assert rules["default-src"] == ["'none'"]
        assert rules["script-src"] == rules["style-src"] == ["'self'"]


def test_hidden_characters_never_reach_a_page(report: Written) -> None:
    for page in report.pages:
        assert not FORBIDDEN.search(page.read_bytes().decode("utf-8")), page


def test_hostile_text_is_shown_as_it_is(report: Written, parsed: dict[Path, Parsed]) -> None:
    text = "".join(parsed[report.template_page(HOSTILE)].text)
    assert "</script><script>alert('run 1')</script> \"'><img src=x onerror=alert('run 2')>" in text
    for name in ("U+202E", "U+0000", "U+001B", "U+000D", "byte FF"):
        assert name in text


def test_a_template_that_was_not_examined_is_never_shown_as_fine(report: Written, parsed: dict[Path, Parsed]) -> None:
    text = "".join(parsed[report.template_page(BROKEN)].text)
    assert "not parseable" in text
    assert text.count("the template was not examined") == 9
    assert "No rule found anything" not in text
    index = "".join(parsed[report.folder / "index.html"].text)
    assert "the file ends early" in index
    assert "24" in index and "a key of 17 bytes" in index


def test_the_json_beside_a_page_holds_the_same(report: Written) -> None:
    for page in report.pages:
        assert isinstance(json.loads(page.with_suffix(".json").read_bytes()), dict)
    overview = read_overview(report.engine)
    detail = queries.template_detail(report.engine, sha_of(PLAIN))
    built = pages.template_page(overview, detail, notes_of(detail))
    stored = json.loads(report.template_page(PLAIN).with_suffix(".json").read_bytes())
    assert stored == json.loads(json.dumps(asdict(built)))


def test_numbers_are_shown_with_their_base(parsed: dict[Path, Parsed], report: Written) -> None:
    index = parsed[report.folder / "index.html"]
    text = "".join(index.text)
    for count in queries.claim_counts(report.engine):
        assert f"{count.templates_claiming} of {count.templates_analysed}" in text
        assert f"models.html?{count.capability}=yes" in index.values("href")
        listed = parsed[report.folder / "capabilities" / f"{count.capability}.html"]
        assert f"Claimed by {count.templates_claiming} template" in "".join(listed.text)


def test_reads_are_underlined_at_their_place_and_reached_by_links(report: Written, parsed: dict[Path, Parsed]) -> None:
    page = parsed[report.template_page(HOSTILE)]
    reads = [attributes for _tag, attributes in page.elements if attributes.get("class") == "read"]
    assert any(
        str(read["title"]).startswith("messages[0].content, ") and " · first read at 4:11 by " in str(read["title"])
        for read in reads
    )
    assert "#L4" in page.values("href")
    html = report.template_page(HOSTILE).read_text()
    assert re.search(r"first read at 4:11 [^>]*>content</span>", html)
    assert "fails here" in html
