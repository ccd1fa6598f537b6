"""JUnit XML: what fails, what errs, what is skipped, and names that would break it."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.cli import run
from scanner.exports import junit
from scanner.exports.state import State, read_state
from scanner.silence import Silences
from tests.nights import Nights


def cases(state: State, nights: Nights) -> dict[str, ElementTree.Element]:
    text = "".join(junit.document(state, nights.models))
    root = ElementTree.fromstring(text.encode())  # noqa: S314 - our own
    (suite,) = root
    found = list(suite.iter("testcase"))
    assert suite.attrib["tests"] == str(len(found))
    for kind, element in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert suite.attrib[kind] == root.attrib[kind] == str(len(list(suite.iter(element))))
    return {case.attrib["name"]: case for case in found}


def ends(case: ElementTree.Element) -> set[str]:
    return {element.tag for element in case} - {"system-out"}


def test_each_template_is_a_case(state: State, nights: Nights) -> None:
    told = cases(state, nights)
    assert ends(told["plain.jinja"]) == set()
    assert ends(told["m.gguf"]) == {"failure"}
    assert ends(told["m.gguf (tool_use)"]) == set()
    assert ends(told["broken.jinja"]) == {"failure"}
    assert ends(told["none.gguf"]) == {"skipped"}
    assert ends(told["short.gguf"]) == {"error"}
    assert {case.attrib["classname"] for case in told.values()} == {"."}


def test_a_failure_says_what_was_found(state: State, nights: Nights) -> None:
    (failure,) = cases(state, nights)["m.gguf"].iter("failure")
    assert failure.attrib["message"]
    assert "warning overclaims-system_role" in (failure.text or "")


def test_hostile_text_is_text(state: State, nights: Nights) -> None:
    text = "".join(junit.document(state, nights.models))
    assert "\x1b" not in text
    assert "\x00" not in text
    assert 'a&amp;"&lt;b&gt;\\x1b[31m\\u202e' in text


@given(st.text())
def test_any_text_is_xml(text: str) -> None:
    ElementTree.fromstring(f"<a b={junit._attribute(text)}>{junit._text(text)}</a>".encode())  # noqa: S314 - our own


def test_what_is_silenced_does_not_fail(nights: Nights, silences: Silences) -> None:
    told = cases(read_state(nights.engine, None, silences), nights)
    assert ends(told["broken.jinja"]) == set()


def test_the_command(nights: Nights, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["export", "junit", "--db", str(nights.database)]) == 0
    assert ElementTree.fromstring(capsys.readouterr().out.encode()).tag == "testsuites"  # noqa: S314 - our own
    assert run(["export", "junit", "--db", str(nights.database), "-o", str(tmp_path / "j.xml")]) == 0
    assert (tmp_path / "j.xml").read_text(encoding="utf-8").startswith("<?xml")
