"""`capscan render` as a person or a gate uses it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scanner.chat.scenarios import SCENARIOS
from scanner.cli import run
from tests.gguf_builder import write_gguf
from tests.test_cli import capscan, environment

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


FAILING = {"broken-arguments", "unknown-role", "late-system", "two-systems"}


def test_every_standard_request_gives_an_answer(template: Path, out: Any) -> None:
    assert run(["render", "--list-scenarios"]) == 0
    listed = out()
    for name in SCENARIOS:
        assert name in listed
        assert run(["render", str(template), "--scenario", name]) == (1 if name in FAILING else 0), name


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


# -- what a review found


def test_a_batch_goes_on_behind_a_line_whose_date_cannot_be_formatted() -> None:
    request = {"messages": [{"role": "user", "content": "hi"}]}
    lines = [{"template": "{{ strftime_now('%Y') }}", "request": request, "now": now} for now in (67767976233532799, 0)]
    done = capscan("render", "--batch", "-", stdin="\n".join(map(json.dumps, lines)).encode())
    first, second = [json.loads(line) for line in done.stdout.splitlines()]
    assert "neither seconds since the epoch" in first["error"]
    assert second["prompt"] == "1970"


@pytest.mark.parametrize(
    "body", ['{"messages": 5}', '{"messages": [5]}', '{"messages": [], "chat_template_kwargs": [1]}']
)
def test_a_body_that_is_no_conversation_is_an_answer_of_both_engines(template: Path, body: str) -> None:
    done = capscan("render", str(template), "--engine", "both", "--request", body)
    assert done.returncode == 1
    assert b"jinja2: no conversation" in done.stdout
    assert done.stderr == b""


def test_bytes_of_a_token_that_are_no_text_pass_through(template: Path) -> None:
    done = capscan("render", str(template), "--bos", "\udcff", "--add-bos", "--scenario", "user")
    assert done.stdout == b"<user>What is a llama?<assistant>"


def test_a_limit_of_ours_is_not_said_of_llama_cpp(tmp_path: Path) -> None:
    deep = tmp_path / "deep.jinja"
    deep.write_text("{{ " + "+".join(["1"] * 500) + " }}", encoding="utf-8")
    done = capscan("render", str(deep))
    assert (done.returncode, done.stderr.count(b"would not start")) == (3, 0)
    assert b"not examined, a limit was exceeded" in done.stderr
    long = tmp_path / "long.jinja"
    long.write_text(
        "{% if messages[0].content == 'go' %}"
        "{% for i in range(3000) %}{% for j in range(3000) %}{% endfor %}{% endfor %}{% endif %}",
        encoding="utf-8",
    )
    done = capscan("render", str(long), "--messages", '[{"role": "user", "content": "go"}]')
    assert done.returncode == 3
    assert done.stdout.startswith(b"not examined, a limit of Capscan's own was exceeded")


def test_the_reference_needs_no_server(tmp_path: Path) -> None:
    file = tmp_path / "with.jinja"
    file.write_text("{% with a=1 %}x{{ a }}{% endwith %}", encoding="utf-8")
    done = capscan("render", str(file), "--engine", "jinja2")
    assert (done.returncode, done.stdout) == (0, b"x1")
    both = capscan("render", str(file), "--engine", "both")
    assert both.returncode == 1
    assert b"the template does not parse" in both.stdout
    assert b"only llama.cpp fails" in both.stdout


def test_the_message_behind_an_error_may_be_the_last_though_the_first_alone_fails_too(tmp_path: Path, out: Any) -> None:
    file = tmp_path / "last.jinja"
    file.write_text(
        "{% if messages and messages[-1].role != 'user' %}{{ raise_exception('user last') }}{% endif %}"
        "{% for message in messages %}{{ message.content }}{% endfor %}",
        encoding="utf-8",
    )
    roles = ["system", "user", "tool"]
    messages = json.dumps([{"role": role, "content": "x"} for role in roles])
    assert run(["render", str(file), "--messages", messages, "--format", "json"]) == 1
    assert json.loads(out())["llama.cpp"]["caused_by"] == 2


def test_a_long_conversation_finds_its_message_too(template: Path, out: Any) -> None:
    messages = [{"role": "user" if at % 2 == 0 else "assistant", "content": str(at)} for at in range(200)]
    messages[50] = {"role": "system", "content": "late"}
    messages.append({"role": "user", "content": "end"})
    assert run(["render", str(template), "--messages", json.dumps(messages), "--format", "json"]) == 1
    assert json.loads(out())["llama.cpp"]["caused_by"] == 50


def test_parts_do_not_drive_the_terminal(tmp_path: Path, out: Any) -> None:
    file = tmp_path / "t.jinja"
    file.write_text("\x9b\u202e{{ messages[0].content }}", encoding="utf-8")
    assert run(["render", str(file), "--parts"]) == 0
    text = out()
    assert "\x9b" not in text
    assert "\u202e" not in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--batch", "-", "--explain"], "--batch does not go with --explain"),
        (["{template}", "--raw", "--scenario", "user"], "--raw does not go with --scenario"),
        (["{template}", "--vars", "{}"], "--vars needs --raw"),
    ],
)
def test_options_that_would_be_ignored_are_refused(template: Path, arguments: list[str], said: str) -> None:
    done = capscan("render", *[argument.replace("{template}", str(template)) for argument in arguments])
    assert (done.returncode, done.stdout) == (2, b"")
    assert said in done.stderr.decode()


def test_a_reader_that_has_enough_ends_a_batch_quietly(tmp_path: Path) -> None:
    batch = tmp_path / "many.jsonl"
    line = json.dumps({"template": "x" * 5000, "request": {"messages": []}})
    batch.write_text("\n".join([line] * 400), encoding="utf-8")
    script = f"set -o pipefail; {sys.executable} -m scanner render --batch {batch} | head -1 | cut -c1-10"
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=False, env=environment())
    assert (done.returncode, done.stdout, done.stderr) == (0, b'{"prompt":\n', b"")


def test_a_model_file_without_a_template_has_nothing_to_render_raw(tmp_path: Path) -> None:
    model = write_gguf(tmp_path / "m.gguf")
    done = capscan("render", str(model), "--raw")
    assert (done.returncode, done.stdout) == (3, b"")
    assert b"no template" in done.stderr
