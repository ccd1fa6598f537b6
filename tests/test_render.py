"""`capscan render` as a person or a gate uses it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scanner.chat.scenarios import SCENARIOS
from scanner.cli import run
from tests.gguf_builder import write_gguf
from tests.test_cli import capscan

STRICT = """{{- bos_token }}{%- for message in messages %}
{%- if message.role not in ['system', 'user', 'assistant', 'tool'] %}
{{- raise_exception('Unknown role: ' + message.role) }}
{%- endif %}
{%- if message.role == 'system' and not loop.first %}
{{- raise_exception('System first, please.') }}
{%- endif %}<{{ message.role }}>{{ message.content }}
{%- for call in message.tool_calls or [] %}{{ call.function.arguments | items | tojson }}{% endfor %}
{%- endfor %}{{ '<assistant>' if add_generation_prompt }}"""


@pytest.fixture
def template(tmp_path: Path) -> Path:
    file = tmp_path / "strict.jinja"
    file.write_text(STRICT, encoding="utf-8")
    return file


@pytest.fixture
def out(capsys: pytest.CaptureFixture[str]) -> Any:
    return lambda: capsys.readouterr().out


def test_the_prompt_alone_goes_into_a_file_byte_for_byte(template: Path) -> None:
    done = capscan("render", str(template), "--messages", '[{"role": "user", "content": "a\\r\\nb "}]')
    assert (done.returncode, done.stdout) == (0, b"<s><user>a\r\nb <assistant>")


def test_a_request_comes_from_a_file_from_its_fields_or_from_standard_input(template: Path, tmp_path: Path) -> None:
    body = {"messages": [{"role": "user", "content": "hi"}]}
    file = tmp_path / "request.json"
    file.write_text(json.dumps(body), encoding="utf-8")
    wanted = b"<s><user>hi<assistant>"
    assert capscan("render", str(template), "--request", str(file)).stdout == wanted
    assert capscan("render", str(template), "--request", json.dumps(body)).stdout == wanted
    assert capscan("render", str(template), "--request", "-", stdin=json.dumps(body).encode()).stdout == wanted
    without = capscan("render", str(template), "--request", str(file), "--no-generation-prompt")
    assert without.stdout == b"<s><user>hi"


def test_explain_says_what_was_changed_and_why(template: Path, out: Any) -> None:
    assert run(["render", str(template), "--scenario", "tool-result", "--explain", "--add-bos"]) == 0
    text = out()
    assert "message 2 (assistant): the arguments of get_weather were parsed from their JSON text" in text
    assert "the leading <s> was cut: the tokenizer adds it" in text
    assert "handler autoparser · server starts" in text


def test_an_error_names_the_line_and_the_message_behind_it(template: Path, out: Any) -> None:
    assert run(["render", str(template), "--scenario", "late-system"]) == 1
    text = out()
    assert "llama.cpp: Jinja Exception: System first, please." in text
    assert "raised at 6:20" in text
    assert "6 | {{- raise_exception('System first, please.') }}" in text
    assert 'by message 3 of the request: {"role": "system"' in text


@pytest.mark.parametrize(
    ("scenario", "message", "caused_by"),
    [
        ("broken-arguments", "Failed to parse tool call arguments as JSON: ", 1),
        ("unknown-role", "Unknown role: critic", 1),
        ("late-system", "System first, please.", 2),
    ],
)
def test_what_people_meet_names_the_message_that_caused_it(
    template: Path, out: Any, scenario: str, message: str, caused_by: int
) -> None:
    assert run(["render", str(template), "--scenario", scenario, "--format", "json"]) == 1
    answer = json.loads(out())["llama.cpp"]
    assert message in answer["error_message"]
    assert answer["caused_by"] == caused_by


def test_missing_content_is_the_servers_own_error(template: Path, out: Any) -> None:
    assert run(["render", str(template), "--messages", '[{"role": "user"}]', "--format", "json"]) == 1
    answer = json.loads(out())["llama.cpp"]
    assert answer["error"] == "All non-assistant messages must contain 'content'"
    assert (answer["line"], answer["caused_by"]) == (None, 0)


def test_parts_show_what_came_from_the_request(template: Path, out: Any) -> None:
    assert run(["render", str(template), "--scenario", "user", "--parts"]) == 0
    assert out().splitlines() == [
        'template  "<s><"',
        'request   "user"',
        'template  ">"',
        'request   "What is a llama?"',
        'template  "<assistant>"',
    ]


def test_both_engines_side_by_side(tmp_path: Path, out: Any) -> None:
    file = tmp_path / "t.jinja"
    file.write_text("{{ messages[0].content }}", encoding="utf-8")
    assert run(["render", str(file), "--engine", "both"]) == 0
    assert "equal: 16 bytes" in out()
    file.write_text("{{ messages[0].content | title }}{{ 'é' | upper }}", encoding="utf-8")
    assert run(["render", str(file), "--engine", "both"]) == 1
    text = out()
    assert "the prompts differ from byte 17 on" in text
    assert "+What Is A Llama?É" in text
    file.write_text("{{ messages[0].content.__class__ }}{{ messages[0].content.casefold() }}", encoding="utf-8")
    assert run(["render", str(file), "--engine", "both", "--format", "json"]) == 1
    assert not json.loads(out())["equal"]


def test_the_reference_alone(template: Path, out: Any) -> None:
    assert run(["render", str(template), "--engine", "jinja2", "--scenario", "unknown-role"]) == 1
    assert "jinja2: Unknown role: critic (line 3)" in out()


def test_raw_is_the_dialect_alone(tmp_path: Path, out: Any) -> None:
    file = tmp_path / "t.jinja"
    file.write_text("{{ a + 1 }}{{ strftime_now('%Y') }}", encoding="utf-8")
    assert run(["render", str(file), "--raw", "--vars", '{"a": 41}', "--now", "2001-05-05"]) == 0
    assert out() == "422001"
    assert run(["render", str(file), "--raw"]) == 1
    assert "BinaryExpression at 1:6" in out()


def test_a_model_file_gives_its_own_tokens(tmp_path: Path) -> None:
    model = write_gguf(tmp_path / "m.gguf", STRICT + "{{ eos_token }}", tokens=("<unk>", "<B>", "<E>", "Hello"))
    assert capscan("render", str(model), "--scenario", "user").stdout == b"<user>What is a llama?<assistant><E>"
    shown = capscan("render", str(model), "--scenario", "user", "--no-add-bos", "--eos", "!")
    assert shown.stdout == b"<B><user>What is a llama?<assistant>!"


def test_a_tool_use_template_renders_requests_with_tools(tmp_path: Path) -> None:
    model = write_gguf(tmp_path / "m.gguf", "plain", variants={"tool_use": "with {{ tools | length }} tool"})
    assert capscan("render", str(model), "--scenario", "user").stdout == b"plain"
    assert capscan("render", str(model), "--scenario", "tools").stdout == b"with 1 tool"


def test_a_batch_is_answered_in_order() -> None:
    request = {"messages": [{"role": "user", "content": "hi"}]}
    lines: list[dict[str, object]] = [
        {"template": STRICT, "request": request, "bos": "<s>", "eos": "</s>", "add_bos": True, "add_eos": False},
        {"template": "{{ date_string }}", "request": request, "now": "2026-11-29"},
        {"template": "{% if %}", "request": request},
        {"template": STRICT, "request": {"messages": "none"}},
        {"template": "x"},
    ]
    text = b"".join([json.dumps(line).encode() + b"\n" for line in lines]) + b"\nnot json\n"
    done = capscan("render", "--batch", "-", stdin=text)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 3
    assert answers[0]["prompt"] == "<user>hi<assistant>"
    assert [change["step"] for change in answers[0]["changes"]] == ["tokens"]
    assert answers[1]["prompt"] == "29 Nov 2026"
    assert answers[2]["error"].startswith("llama-server would not start, the template does not parse")
    assert answers[3]["error"] == "Expected 'messages' to be an array"
    assert answers[4]["error"] == "line 5: `request` has to be an object"
    assert answers[5]["error"].startswith("line 7: not JSON")
    assert len(answers) == 6


def test_every_standard_request_gives_an_answer(template: Path, out: Any) -> None:
    assert run(["render", "--list-scenarios"]) == 0
    listed = out()
    for name in SCENARIOS:
        assert name in listed
        assert run(["render", str(template), "--scenario", name]) in (0, 1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "render needs a template or a model file"),
        (["{template}", "--scenario", "nonsense"], "there is no scenario 'nonsense'"),
        (["{template}", "--request", "missing.json"], "--request missing.json: No such file or directory"),
        (["{template}", "--request", "{broken"], "--request: not JSON"),
        (["{template}", "--messages", "{}"], "--messages: a JSON list is needed"),
        (["{template}", "--request", "{}", "--scenario", "user"], "not both"),
        (["--batch", "missing.jsonl"], "--batch missing.jsonl: No such file or directory"),
        (["missing.jinja"], "missing.jinja: does not exist"),
    ],
)
def test_a_wrong_command_is_one_line(template: Path, arguments: list[str], said: str) -> None:
    done = capscan("render", *[argument.replace("{template}", str(template)) for argument in arguments])
    assert (done.returncode, done.stdout) == (2, b"")
    assert said in done.stderr.decode()
    assert len(done.stderr.splitlines()) == 1


def test_a_template_that_does_not_parse_has_no_server(tmp_path: Path) -> None:
    file = tmp_path / "t.jinja"
    file.write_text("{% for %}", encoding="utf-8")
    done = capscan("render", str(file))
    assert done.returncode == 3
    assert b"llama-server would not start, the template does not parse" in done.stderr
