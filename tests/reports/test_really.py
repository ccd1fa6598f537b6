"""What is really true stands on the pages beside what is claimed."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Engine

from reports import write_report
from scanner.pipeline import analyse_template
from scanner.results import Behaviour
from tests.reports.conftest import Written, sha_of
from tests.reports.html_check import parse
from tests.store import examples

DROPS_SYSTEM = (
    b"{% for m in messages %}{% if m.role != 'system' %}{{ m.content }}{% endif %}{{ m.content[:0] }}{% endfor %}"
)
ATTACK = "</pre><script>alert(7)</script>\u202e"


@pytest.fixture
def pages(empty_engine: Engine, tmp_path: Path) -> Path:
    """A report of one template that loses the system message, and one whose efforts matter."""
    other = b"one\ntwo\nthree\n"
    files = [
        examples.with_templates(f"/models/{number}.gguf", examples.template(source))
        for number, source in enumerate((DROPS_SYSTEM, DROPS_SYSTEM, other))
    ]
    hostile = Behaviour("late_system", "raises", ATTACK, ATTACK, 2)
    made = replace(
        examples.observed(sha_of(other), ("reasoning_effort",), ("reasoning_effort",)),
        efforts=(*examples.EFFORTS, replace(examples.raising(ATTACK), message=ATTACK)),
        free_text_effort="raises",
        behaviours=(hostile, Behaviour("clock", "same")),
    )
    examples.record(empty_engine, *files, analyses=(analyse_template(DROPS_SYSTEM, now=0), made))
    write_report(empty_engine, tmp_path / "out", now=examples.Clock())
    return tmp_path / "out"


def text_of(page: Path) -> str:
    return " ".join("".join(parse(page).text).split())


def page_of(folder: Path, source: bytes) -> Path:
    return folder / "templates" / f"{sha_of(source)[:16]}.html"


def test_the_index_counts_wrong_claims_and_leads_to_them(pages: Path) -> None:
    text = text_of(pages / "index.html")
    assert "What llama.cpp claims, and what is really true" in text
    assert re.search(r"system role 1 of 2 0 of 2 ?1 too much ?2 of 3 ?0 of 3", text)
    assert "capabilities/system_role.html#wrong" in parse(pages / "index.html").values("href")


def test_the_index_tells_what_efforts_do(pages: Path) -> None:
    text = text_of(pages / "index.html")
    assert re.search(r"unset ?none ?low ?high ?xhigh", text)
    assert re.search(r"2.gguf also knows .*: ✕ raises ?1 ?○ unset ?✕ raises ?● accepted ?✕ raises ?○ as unset", text)
    assert "1 other template is alike for every effort." in text


def test_a_capability_lists_where_it_is_claimed_wrongly(pages: Path) -> None:
    text = text_of(pages / "capabilities" / "system_role.html")
    assert "The claim is wrong for 1 template" in text
    assert "no: the template reads it, never prints it" in text
    assert "The claim is wrong" not in text_of(pages / "capabilities" / "tools.html")


def test_a_template_says_what_is_really_true(pages: Path) -> None:
    text = text_of(page_of(pages, DROPS_SYSTEM))
    assert "system role claimed, not really messages[0].content is read" in text
    assert "really no: absent" in text
    assert "That is wrong: llama.cpp believes too much" in text
    assert "default_system none" in text


def test_efforts_and_behaviours_stand_on_the_page_of_a_template(pages: Path) -> None:
    page = page_of(pages, b"one\ntwo\nthree\n")
    text = text_of(page)
    assert "A word that no template knows raises." in text
    assert re.search(r"xhigh ?accepted = unset ?1", text)
    assert "late_system raises" in text
    assert "#L3" in parse(page).values("href")


def test_hostile_text_stays_text(pages: Path) -> None:
    page = page_of(pages, b"one\ntwo\nthree\n")
    assert "alert(7)" in text_of(page)
    assert "".join(parse(page).script_text).strip() == ""
    assert "\u202e" not in page.read_text()


def test_the_list_of_models_marks_disagreements(pages: Path) -> None:
    assert parse(pages / "models.html").values("data-flags")[0][3] == "o"
    assert "claimed, not really: system role" in text_of(pages / "models.html")


def test_where_nothing_was_observed_only_claims_are_shown(empty_engine: Engine, tmp_path: Path) -> None:
    held = examples.template(b"plain")
    files = examples.with_templates("/models/a.gguf", held)
    examples.record(empty_engine, files, analyses=(examples.analysis(held.sha256, "tools"),))
    write_report(empty_engine, tmp_path / "out", now=examples.Clock())
    index = text_of(tmp_path / "out" / "index.html")
    assert "Really" not in index
    assert "Reasoning efforts" not in index
    page = text_of(page_of(tmp_path / "out", b"plain"))
    assert "really" not in page
    assert "Behaviours" not in page


def test_a_combination_is_one_of_claims(report: Written) -> None:
    combinations = parse(report.folder / "combinations.html")
    assert not any(re.search("-[ynx]*[ou]", one) for one in combinations.ids if one.startswith("b11549-"))
