"""Whole requests and what a real server made of them: `tests/cases/prompts/*.json`, a file for each template.

The templates are the demo's, and small ones of our own that carry the signs of one handler each (`chat.md` section 5):
whatever differs between their prompts is the handler's doing. The server's vocabulary adds BOS. `python -m
tests.regenerate` asks it again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scanner import oracle
from scanner.chat.handlers import HANDLERS, Handler
from scanner.chat.scenarios import SCENARIOS, call, parts, says
from scanner.demo import collection
from scanner.oracle import Question, Reply

FOLDER = Path(__file__).parent / "cases" / "prompts"

PRINTS_MESSAGES = b"""{{- bos_token }}{% if tools %}[tools]{{ tools | tojson }}{% endif %}
{%- for message in messages %}[{{ message.role }}]{{ message | tojson }}<|return|>{% endfor %}
{%- if add_generation_prompt %}[assistant]{{ '<think>' if enable_thinking }}{% endif %}"""
"""Shows a message key by key."""

PRINTS_FIELDS = b"""{%- for message in messages %}<|{{ message.role }}|>
{%- if message.content is string %}{{ message.content }}
{%- else %}{% for part in message.content %}{{ part.text }}{{ part.thinking }};{% endfor %}{% endif %}
{{- message.thinking }}{{ message.tool_calls | tojson if message.tool_calls }}
{{- message.tool_responses | tojson if message.tool_responses }}<turn|>
{% endfor %}{{ response_format | tojson if response_format }}"""
"""Prints content and leaves out the generation prompt."""

TYPED_ONLY = b"""{%- for message in messages %}
{%- if message.role == 'system' %}{{ raise_exception('no system message, please') }}{% endif %}<{{ message.role }}>
{%- for part in message.content %}{% if part.type == 'text' %}{{ part['text'] }}|{% endif %}{% endfor %}
{{- message.tool_calls | tojson if message.tool_calls }}</>{% endfor %}
{{- datetime if false }}{{ tools | tojson if tools }} {{ reasoning_effort }} {{ reasoning_strength }}
{{- ' ' }}{{ clear_thinking }} {{ drop_thinking }} {{ preserve_thinking }}{{ '<a>' if add_generation_prompt }}"""

ALTERNATES = b"""{%- for message in messages %}{% if message.role == 'user' and loop.index0 % 2 == 1 %}
{{- raise_exception('Roles must alternate, not: ' + message.role) }}{% endif %}({{ message.content }})
{%- endfor %}"""

EFFORTS = b"""{%- if reasoning_effort is defined and reasoning_effort not in ['low', 'high'] %}
{{- raise_exception('Unknown effort ' + reasoning_effort) }}{% endif %}{{ reasoning_strength }}
{%- for message in messages %}({{ message.content }}){% endfor %}{{ preserve_thinking }}
{{- truncate_history_thinking }}"""


def _messages(*messages: Mapping[str, Any], **fields: object) -> Mapping[str, Any]:
    return {"messages": list(messages), **fields}


def _calls(*identities: str, content: object = "", **others: object) -> Mapping[str, Any]:
    return says(
        "assistant", content, tool_calls=[call(identity, '{"city": "Oslo"}') for identity in identities], **others
    )


def _result(identity: str, content: object) -> Mapping[str, Any]:
    return says("tool", content, tool_call_id=identity)


USER, NEXT = says("user", "u"), says("user", "next")

SHAPES: Mapping[str, Mapping[str, Any]] = {
    "two calls, answered with reasoning": _messages(
        USER,
        _calls("a", "b", reasoning_content="R1"),
        _result("a", '{"k": [1]}'),
        _result("b", "no json"),
        says("assistant", "answer", reasoning_content="R2"),
        NEXT,
    ),
    "calls after calls": _messages(
        USER,
        _calls("a", content="text"),
        _result("a", "1"),
        _result("z", "2"),
        _calls("c"),
        _result("c", "3"),
        says("assistant", ""),
        NEXT,
    ),
    "a user between call and result": _messages(
        USER, _calls("a", content="text"), NEXT, _result("a", "1"), says("assistant", "done"), NEXT
    ),
    "parts everywhere": _messages(
        USER,
        _calls("a"),
        _result("a", parts("1", "2")),
        says("assistant", parts("x", "y"), reasoning_content="Z"),
        NEXT,
    ),
    "results far from their calls": _messages(
        USER,
        _calls("a", "b", "c"),
        _result("c", "C"),
        says("user", "mid"),
        _result("a", "A"),
        _result("b", "B"),
        says("assistant", "ok"),
        _result("b", "late"),
        _result("a", "later"),
    ),
    "results of unknown calls": _messages(
        USER, _calls("a", "b"), _result("q", "X"), _result("b", "B"), _result("a", "A")
    ),
    "results without calls": _messages(_result("b", "B"), _result("a", "A"), USER),
    "calls in another order": _messages(
        USER,
        _calls("a", "b"),
        says("system", "s"),
        _result("b", "B"),
        _result("a", "A"),
        _calls("b", "a"),
        _result("a", "A"),
        _result("b", "B"),
    ),
    "a schema": _messages(
        USER, response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}
    ),
    "system before a call": _messages(says("system", "a"), _calls("a", content="x"), NEXT),
    "developer and system": _messages(says("developer", "a"), says("system", "b"), USER),
    "an empty system message": _messages(says("system", ""), USER),
    "blanks": _messages(
        says("system", " a "),
        says("user", parts(" one ", " two ")),
        says("assistant", " x ", reasoning_content=" r "),
        USER,
    ),
    "continue parts": _messages(USER, says("assistant", parts("a", "", "b\n", " c"), reasoning_content="R")),
    "continue the only message": _messages(says("assistant", "only")),
    "continue an empty part": _messages(USER, says("assistant", parts(""))),
    "continue behind a system message": _messages(says("system", "s"), says("assistant", "x")),
    **{
        f"continue {what} as {how}": _messages(
            USER, says("assistant", "x", reasoning_content="r"), continue_final_message=how, add_generation_prompt=False
        )
        for what, how in (("words", "content"), ("a thought", "reasoning_content"))
    },
    "continue no words as content": _messages(
        USER,
        says("assistant", "", reasoning_content="r"),
        continue_final_message="content",
        add_generation_prompt=False,
    ),
    "continue empty parts behind a thought": _messages(USER, says("assistant", parts("", ""), reasoning_content="r")),
    "continue without thinking": _messages(
        USER, says("assistant", "x"), chat_template_kwargs={"enable_thinking": False}
    ),
    "variables of the request's own": _messages(
        USER,
        chat_template_kwargs={"messages": [says("user", "other")], "tools": [1], "datetime": "x", "bos_token": "Q"},
    ),
    "preserve and effort": _messages(
        USER,
        chat_template_kwargs={
            "preserve_reasoning": True,
            "clear_thinking": "mine",
            "reasoning_effort": "high",
            "reasoning_strength": "other",
        },
    ),
    "two efforts": _messages(USER, reasoning_effort="low", chat_template_kwargs={"reasoning_effort": "high"}),
}
"""Requests beside the standard ones, for what handlers do to messages."""

STANDARD: Mapping[str, Mapping[str, Any]] = {name: scenario.body for name, scenario in SCENARIOS.items()}


def signs_of(handler: Handler) -> bytes:
    """A comment that makes a template one of the handler's."""
    return b"{#- " + b" ".join([*handler.present, *handler.either[:1]]) + b" #}"


def templates() -> dict[str, tuple[bytes, Mapping[str, Mapping[str, Any]]]]:
    """Every template, and the requests that are put to it."""
    found: dict[str, tuple[bytes, Mapping[str, Mapping[str, Any]]]] = {}
    for handler in HANDLERS:
        name = "".join([letter if letter.isalnum() else "-" for letter in handler.name.lower()])
        found[f"{name}-messages"] = (signs_of(handler) + PRINTS_MESSAGES, SHAPES)
        found[f"{name}-fields"] = (signs_of(handler) + PRINTS_FIELDS, {**STANDARD, **SHAPES})
    deepseek_v4 = b"{#- dsml_token DSML tool_calls #}"
    found["deepseek-v4-messages"] = (deepseek_v4 + PRINTS_MESSAGES, SHAPES)
    found["deepseek-v4-fields"] = (deepseek_v4 + PRINTS_FIELDS, {**STANDARD, **SHAPES})
    found["gemma-4-today"] = (b"{#- '<|tool_call>call:' {#- OpenAI Chat Completions: #}" + PRINTS_MESSAGES, SHAPES)
    trims = b"{#- You have access to the following functions in JSONSchema format #}"
    found["trims"] = (trims + PRINTS_MESSAGES, {**STANDARD, **SHAPES})
    for name, source in (("typed-only", TYPED_ONLY), ("alternates", ALTERNATES), ("efforts", EFFORTS)):
        found[name] = (source, {**STANDARD, **SHAPES})
    for name, source in collection.templates().items():
        if name not in collection.NOT_FOR_THE_ENGINE:
            found[f"demo-{name}"] = (source, STANDARD)
    return found


def regenerated() -> dict[Path, str]:
    """Every case file as the engine would have it."""
    asked = templates()
    answers = oracle.ask_all(Question(source, tuple(requests.values())) for source, requests in asked.values())
    made = {}
    for (name, (_, requests)), answer in zip(asked.items(), answers, strict=True):
        kept: Mapping[str, object] = {"refused": answer.reason}
        if answer.started:
            kept = dict(zip(requests, map(_reply, answer.replies), strict=True))
        made[FOLDER / f"{name}.json"] = json.dumps(kept, ensure_ascii=False, indent=0) + "\n"
    return made


def _reply(reply: Reply) -> Mapping[str, str | None]:
    return {"prompt": reply.prompt} if reply.error is None else {"error": reply.error}


def load(name: str) -> Mapping[str, Any]:
    """The answers kept for a template: a reply for each request, or `refused`."""
    found: Mapping[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return found


def unknown_files(names: Sequence[str]) -> list[str]:
    """Case files that no template stands behind any more."""
    return sorted({path.stem for path in FOLDER.glob("*.json")} - set(names))
