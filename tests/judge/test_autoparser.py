"""`calls-not-json` holds of a template exactly where the real server refuses to start for its autoparser."""

from __future__ import annotations

import pytest

from scanner.oracle import Question, ask_all, available
from tests.judge.cases import BY_KEY, Case, with_calls

NAME, JSON, REPR = "{{ c.name }}", "{{ c.arguments|tojson }}", "{{ c.arguments|string }}"
CALLS = {
    "json": f'{{"name": "{NAME}", "arguments": {JSON}}}',
    "json in a tag": f'<tool_call>{{"name": "{NAME}", "arguments": {JSON}}}</tool_call>',
    "json in a list": f'[{{"name": "{NAME}", "arguments": {JSON}}}]',
    "json in a list that is not closed": f'[{{"name": "{NAME}", "arguments": {JSON}}}',
    "the name as a key": f'{{"{NAME}": {JSON}}}',
    "arguments that may be text": f'{{"name": "{NAME}", "arguments": {{{{ c.arguments }}}}}}',
    "arguments as Python prints them": f'{{"name": "{NAME}", "arguments": {REPR}}}',
    "the same in a list": f'functools[{{"name": "{NAME}", "arguments": {REPR}}}]',
    "not closed": f'{{"name": "{NAME}", "arguments": {JSON}',
    "closed twice": f'{{"name": "{NAME}", "arguments": {JSON}}}}}',
    "a trailing comma": f'{{"name": "{NAME}", "arguments": {JSON},}}',
    "a brace before": f'{{call}} {{"name": "{NAME}", "arguments": {JSON}}}',
    "keys without quotes": f'{{name: "{NAME}", arguments: {JSON}}}',
    "lines": f'name: "{NAME}"\narguments: {REPR}',
    "True": f'{{"name": "{NAME}", "ok": True, "arguments": {JSON}}}',
    "no quotes at all": f"{{name: {NAME}, arguments: {JSON}}}",
    "a whole call as Python prints it": "{{ c|string }}",
    "a function call": f"{NAME}({REPR})",
    "a function call in quotes": f'"{NAME}"({REPR})',
    "a tag": f"<function={NAME}>{REPR}</function>",
    "a tag with an attribute": f'<tool name="{NAME}">{REPR}</tool>',
}


@pytest.mark.skipif(available() is not None, reason=available() or "")
def test_the_rule_tells_what_the_autoparser_refuses() -> None:
    sources = {name: with_calls(BY_KEY + call) for name, call in CALLS.items()}
    answers = ask_all([Question(source.encode()) for source in sources.values()])
    refused = {name for name, answer in zip(sources, answers, strict=True) if not answer.started}
    found = {name for name, source in sources.items() if "calls-not-json" in Case(source).rules()}
    assert found == refused
    assert 0 < len(refused) < len(CALLS)


def test_a_handler_of_its_own_is_not_asked() -> None:
    source = with_calls(BY_KEY + CALLS["not closed"])
    assert "calls-not-json" in Case(source).rules()
    assert "calls-not-json" not in Case("{#- <|tool_calls_section_begin|><|tool_call_begin|> #}" + source).rules()


def test_a_call_of_any_depth_is_looked_at() -> None:
    deep = "{{ '[' * 20000 }}"
    assert "calls-not-json" in Case(with_calls(f'{{"name": "{NAME}", "arguments": {deep}')).rules()
