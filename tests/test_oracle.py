"""The real engine, asked: refusals, crashes and time-outs are answers too."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping

import pytest

from scanner import oracle
from scanner.oracle import Answer, EngineError, Question, Reply
from scanner.results import CAPABILITIES

needs_engine = pytest.mark.skipif(bool(oracle.available()), reason=oracle.available() or "")

HELLO: Mapping[str, object] = {"messages": [{"role": "user", "content": "Hello"}]}
ECHO = b"{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"


def ask(template: bytes, *requests: Mapping[str, object]) -> Answer:
    return oracle.ask(Question(template, requests or (HELLO,)), timeout=30)


@needs_engine
def test_a_server_gives_flags_and_prompts() -> None:
    other: Mapping[str, object] = {"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "é"}]}
    answer = ask(ECHO, HELLO, other)
    assert answer.started
    assert answer.reason is None
    assert answer.replies == (Reply("[user]Hello", None), Reply("[system]S[user]é", None))
    assert answer.capabilities is not None
    assert sorted(answer.capabilities) == sorted(f"supports_{name}" for name in CAPABILITIES)
    assert answer.capabilities["supports_system_role"]


@needs_engine
def test_a_bad_request_is_an_error_reply() -> None:
    answer = ask(ECHO, {"messages": "Hello"}, HELLO)
    assert answer.replies[0] == Reply(None, "Expected 'messages' to be an array")
    assert answer.replies[1].prompt == "[user]Hello"


@needs_engine
def test_a_template_that_does_not_parse_is_refused_with_the_parsers_words() -> None:
    answer = ask(b"a\n{{ 1 2 }}")
    assert not answer.started
    assert not answer.parsed
    assert answer.capabilities is None
    assert answer.replies == ()
    assert answer.reason == "parser: Parser Error: Expected }} (Got 2)\n...a↵{{ 1 2 }}...\n          ^"


@needs_engine
def test_a_render_that_fails_at_start_is_refused_with_the_whole_error() -> None:
    source = "é\n{{ 1 + none }}".encode()
    answer = ask(source)
    assert not answer.started
    assert answer.parsed
    assert answer.reason is not None
    message = "Cannot perform operation on null values"
    assert oracle.parse_error(answer.reason, source) == EngineError("wrapped", message, "BinaryExpression", 8, 2, 6)


@needs_engine
def test_an_error_of_a_later_request_is_a_reply_with_the_same_text() -> None:
    source = b"{% if messages[0].content == 'GO' %}{{ raise_exception('a\\nb') }}{% endif %}x"
    answer = ask(source, {"messages": [{"role": "user", "content": "GO"}]})
    assert answer.started
    text = answer.replies[0].error
    assert text is not None
    error = oracle.parse_error(text, source)
    assert (error.message, error.node, error.offset) == ("Jinja Exception: a\nb", "CallExpression", 54)


@needs_engine
def test_a_crash_is_an_answer() -> None:
    answer = ask(b"{{ 5 is divisibleby(0) }}")
    assert not answer.started
    assert answer.reason == f"crashed: {signal.SIGFPE.name}"


@needs_engine
def test_a_crash_on_the_way_keeps_the_replies_so_far() -> None:
    source = b"{% if messages[0].content == 'GO' %}{{ 5 is divisibleby(0) }}{% endif %}x"
    answer = ask(source, HELLO, {"messages": [{"role": "user", "content": "GO"}]}, HELLO)
    assert answer.started
    assert answer.replies == (Reply("x", None),)
    assert answer.reason == "crashed: SIGFPE"


@needs_engine
def test_an_endless_template_is_timed_out() -> None:
    source = b"{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    answer = oracle.ask(Question(source), timeout=1)
    assert not answer.started
    assert answer.reason == "timed out: no answer after 1 s"


@needs_engine
@pytest.mark.parametrize(
    ("template", "prompt"),
    [
        pytest.param(b"\xffa{{ 1 }}\xc3", "\ufffda1\ufffd", id="not UTF-8"),
        pytest.param(b"a\0b", "a", id="cut at NUL"),
        pytest.param(b"", "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n", id="empty: built-in ChatML"),
    ],
)
def test_unusual_bytes(template: bytes, prompt: str) -> None:
    assert ask(template).replies == (Reply(prompt, None),)


@needs_engine
def test_a_tool_use_template_is_used_for_requests_with_tools() -> None:
    tool = {"type": "function", "function": {"name": "f", "description": "", "parameters": {"type": "object"}}}
    question = Question(b"plain", (HELLO, {**HELLO, "tools": [tool]}), (("tool_use", b"tools:{{ tools|length }}"),))
    assert [reply.prompt for reply in oracle.ask(question).replies] == ["plain", "tools:1"]


@needs_engine
def test_a_tool_use_template_that_does_not_parse_is_a_warning() -> None:
    answer = oracle.ask(Question(ECHO, named=(("tool_use", b"{{"),)))
    assert answer.started
    assert [text.partition(":")[0] for text in answer.warnings] == [
        "failed to parse tool use chat template (ignoring it)"
    ]


@needs_engine
def test_many_are_answered_in_order_and_read_only_as_needed() -> None:
    taken = 0

    def questions() -> Iterator[Question]:
        nonlocal taken
        for number in range(12):
            taken = number
            yield Question(b"%d" % number, (HELLO,))

    answers = oracle.ask_all(questions())
    assert next(answers).replies[0].prompt == "0"
    assert taken < 8
    assert [answer.replies[0].prompt for answer in answers] == [str(number) for number in range(1, 12)]


def test_without_the_engine_there_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert oracle.available() == "xllamacpp is not installed: pip install 'capscan[oracle]'"
    with pytest.raises(oracle.OracleError, match="not installed"):
        oracle.ask(Question(b""))


@pytest.mark.parametrize(
    ("source", "lexed"),
    [(b"a\r\nb\rc", b"a\nb\nc"), (b"a\n\n", b"a\n"), (b"a\r\n", b"a"), (b"a\r", b"a\n"), (b"", b"")],
)
def test_the_source_as_lexed(source: bytes, lexed: bytes) -> None:
    assert oracle.as_lexed(source) == lexed


@pytest.mark.parametrize(
    ("text", "source", "error"),
    [
        pytest.param(
            "lexer: unexpected character: !\n..." + "x" * 34 + "↵{{ 1 ! }}...\n" + " " * 43 + "^",
            b"x" * 80 + b"\n{{ 1 ! }}",
            EngineError("lexer", "unexpected character: !", None, 86, 2, 6),
            id="an excerpt that does not begin at the beginning",
        ),
        pytest.param("stoll", b"", EngineError("bare", "stoll"), id="no place"),
        pytest.param(
            "Unable to generate parser for this template. Automatic parser generation failed: Break statement executed",
            b"{% break %}",
            EngineError("bare", "Break statement executed"),
            id="not wrapped",
        ),
        pytest.param("parser: odd", b"", EngineError("parser", "odd"), id="no excerpt"),
        pytest.param(
            "parser: odd\n...a...\n   ^", b"b", EngineError("parser", "odd"), id="an excerpt of something else"
        ),
    ],
)
def test_error_texts_are_taken_apart(text: str, source: bytes, error: EngineError) -> None:
    assert oracle.parse_error(text, source) == error
