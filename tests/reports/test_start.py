"""Whether llama-server starts stands on the pages, and is never said where it was not examined."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Engine

from reports import write_report
from reports.overview import read_overview
from scanner.pipeline import analyse_template
from tests.reports.conftest import BROKEN, HOSTILE, HOSTILE_PATH, PLAIN, Written
from tests.reports.html_check import parse
from tests.store import examples


def text_of(page: Path) -> str:
    return "".join(parse(page).text)


def test_the_index_counts_the_files_and_leads_to_them(report: Written) -> None:
    assert read_overview(report.engine).starts == {
        ("/models/plain.gguf", "default"): True,
        ("/models/again.gguf", "default"): True,
        (HOSTILE_PATH, "default"): True,
        ("/models/whole.gguf", "default"): False,
    }
    index = report.folder / "index.html"
    assert "1file keeps llama-server from starting" in "".join(text_of(index).split("\n")).replace("> ", "")
    assert "models.html?start=no" in parse(index).values("href")
    models = parse(report.folder / "models.html")
    assert models.values("data-start") == ["no"]
    assert "".join(models.text).count("does not start") == 1


def test_a_template_page_says_why(report: Written) -> None:
    text = text_of(report.template_page(HOSTILE))
    assert "server starts, but not with -lv 4" in text
    assert "llama-server -lv 4 would not start with it" in text
    assert "fails at 5:46: system, user, assistant, user." in text
    assert "While executing CallExpression at line 5, column 46 in source:" in text
    assert "#L5" in parse(report.template_page(HOSTILE)).values("href")


def test_a_parse_error_is_told_once(report: Written) -> None:
    text = text_of(report.template_page(BROKEN))
    assert "server does not start" in text
    assert "before it listens" not in text


def test_a_server_that_starts_says_how_it_thinks(report: Written) -> None:
    assert "analysed · server starts · thinking off by default" in text_of(report.template_page(PLAIN))


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (PLAIN, "analysed · server start not examined"),
        (b"chatml", "no template\n"),
        (b"{# <|channel|> #}" + PLAIN, "server starts · thinking on by default"),
    ],
)
def test_nothing_is_said_of_what_was_not_examined(
    empty_engine: Engine, tmp_path: Path, source: bytes, said: str
) -> None:
    held = examples.template(source)
    unexamined = examples.analysis(held.sha256)
    made = unexamined if source == PLAIN else analyse_template(source, now=0)
    examples.record(empty_engine, examples.with_templates("/models/a.gguf", held), analyses=(made,))
    write_report(empty_engine, tmp_path / "out", now=examples.Clock())
    assert said in text_of(tmp_path / "out" / "templates" / f"{held.sha256[:16]}.html")
    index = text_of(tmp_path / "out" / "index.html")
    assert "0files keep llama-server from starting" in "".join(index.split("\n"))
