"""The interface for notebooks and programs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import scanner
from scanner import Analysis, analyze
from scanner.errors import UsageError
from scanner.pipeline import analyse_template
from scanner.results import CAPABILITIES, Outcome
from tests.gguf_builder import write_gguf
from tests.nights import BROKEN, TALK, TOOLS

PAGE = Path(__file__).resolve().parents[1] / "docs" / "python.md"


def test_a_template_as_text_or_bytes() -> None:
    for given in (TOOLS, TOOLS.encode()):
        found = analyze(given, now=0).template
        alone = analyse_template(TOOLS.encode(), now=0)
        assert (found.result.sha256, found.result.capabilities) == (alone.sha256, alone.capabilities)
        assert (found.result.behaviours, found.findings) == (alone.behaviours, alone.findings)
        assert (found.claimed["tools"], found.really["tools"]) == (True, True)
        assert list(found.claimed) == list(found.really) == list(CAPABILITIES)
        assert found.claim("tools").why
        assert found.path == "-"


def test_a_file_and_a_folder(tmp_path: Path) -> None:
    model = write_gguf(tmp_path / "m.gguf", TALK, variants={"tool_use": TOOLS})
    (tmp_path / "a.jinja").write_text(TALK)
    (tmp_path / "short.gguf").write_bytes(b"GGUF")
    for given in (model, str(model)):
        assert [one.template.variant for one in analyze(given).templates] == ["default", "tool_use"]
    whole = analyze(tmp_path)
    assert [Path(file.result.file.path).name for file in whole.files] == ["a.jinja", "m.gguf", "short.gguf"]
    assert [file.result.outcome for file in whole.files][-1] is Outcome.UNREADABLE
    assert whole.templates[0].result is whole.templates[1].result
    assert whole.findings
    with pytest.raises(ValueError, match="3 templates"):
        _ = whole.template
    rows = [one.row() for one in whole.templates]
    assert rows[0].keys() == rows[2].keys()
    assert rows[2]["supports_tools"] is True
    json.dumps([one.document() for one in whole.templates])


def test_text_is_never_looked_up_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "{{ x }}").write_text("not this")
    assert analyze("{{ x }}").template.template.source == b"{{ x }}"
    (tmp_path / "plain").mkdir()
    for given in ("plain", "nosuch.gguf", Path("{{ y }}")):
        with pytest.raises(UsageError, match="there is no"):
            analyze(given)
    assert analyze(b"plain").template.result.outcome is Outcome.ANALYSED


def test_what_is_wrong_with_a_template_is_an_outcome() -> None:
    found = analyze(BROKEN).template
    assert (found.result.outcome, found.claimed["tools"]) == (Outcome.NOT_PARSEABLE, None)
    assert "not-parseable" in {finding.rule for finding in found.findings}
    assert analyze(b"\xff{{ messages[0].content }}").template.result.outcome is Outcome.ANALYSED
    analyze("{{ '\ud800' }}")


def test_a_profile() -> None:
    found = analyze(TOOLS, profile="b9713").template
    assert (found.result.profile, found.claimed["tools"], found.really["tools"]) == ("b9713", True, None)
    with pytest.raises(UsageError, match="b11549"):
        analyze(TOOLS, profile="b1")


def test_a_notebook_shows_it_safely(tmp_path: Path) -> None:
    (tmp_path / "<script>.jinja").write_text("{{ raise_exception('<b>\x1b') }}")
    (tmp_path / "short.gguf").write_bytes(b"GGUF")
    html = analyze(tmp_path)._repr_html_()
    assert "<table>" in html
    assert "unreadable" in html
    assert "<script>" not in html
    assert "<b>" not in html
    assert "\x1b" not in html


def test_importing_the_package_loads_nothing() -> None:
    code = (
        "import sys, scanner; print(scanner.__version__, [name for name in sys.modules if name.startswith('scanner.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split(maxsplit=1)[1].strip() == "[]"
    code = "import scanner.analysis; from scanner import analyze, Analysis; assert callable(analyze)"
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="nosuch"):
        getattr(scanner, "no" + "such")
    assert scanner.Analysis is Analysis


def test_the_example_of_the_page_says_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    text = PAGE.read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (output,) = re.findall(r"```output\n(.*?)```", text, re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102 - the page's own
    assert capsys.readouterr().out == output


@pytest.mark.parametrize(("given", "now"), [("", None), ("x" * 5000, None), ("{{ x }}", float("nan"))])
def test_what_cannot_be_meant_is_a_usage_error(given: str, now: float | None) -> None:
    with pytest.raises(UsageError):
        analyze(given, now=now)
