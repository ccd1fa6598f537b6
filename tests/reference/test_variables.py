"""What a template sees of a request."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from scanner.reference import variables_of


def message_of(message: dict[str, Any]) -> list[tuple[str, Any]]:
    """The message as the template sees it, with the order of its keys."""
    return list(variables_of([message])["messages"][0].items())


def arguments_of(arguments: object) -> object:
    call = {"id": "1", "function": {"name": "f", "arguments": arguments}}
    shown = variables_of([{"role": "assistant", "tool_calls": [call]}])["messages"][0]["tool_calls"][0]
    assert shown == {"id": "1", "function": {"name": "f", "arguments": shown["function"]["arguments"]}}
    assert list(shown["function"]) == ["name", "arguments"]
    return shown["function"]["arguments"]


def test_all_of_a_request() -> None:
    messages = [{"role": "user", "content": "hi"}]
    tools = [{"type": "function", "function": {"name": "f"}}]
    variables = variables_of(
        messages, tools=tools, add_generation_prompt=False, bos="<s>", eos="</s>", kwargs={"enable_thinking": False}
    )
    assert variables == {
        "messages": messages,
        "tools": tools,
        "documents": None,
        "add_generation_prompt": False,
        "bos_token": "<s>",
        "eos_token": "</s>",
        "enable_thinking": False,
    }


def test_what_is_not_given() -> None:
    variables = variables_of([])
    assert variables == {"messages": [], "tools": None, "documents": None, "add_generation_prompt": True}


def test_an_empty_list_of_tools_stays_one() -> None:
    assert variables_of([], tools=[])["tools"] == []


def test_keyword_arguments_go_last() -> None:
    variables = variables_of([], bos="<s>", kwargs={"bos_token": "", "documents": [1]})
    assert (variables["bos_token"], variables["documents"]) == ("", [1])


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ({"role": "user", "content": None, "name": ""}, [("role", "user"), ("name", "")]),
        ({"content": [{"type": "text", "text": None}]}, [("content", [{"type": "text", "text": None}])]),
        (
            {"content": "a", "reasoning_content": "b"},
            [("thinking", "b"), ("content", "a"), ("reasoning_content", "b")],
        ),
        ({"reasoning": "b", "thinking": None}, [("thinking", "b"), ("reasoning", "b"), ("reasoning_content", "b")]),
        ({"thinking": "a", "reasoning": "b"}, [("thinking", "a"), ("reasoning", "b"), ("reasoning_content", "a")]),
        ({"reasoning_content": ""}, [("thinking", ""), ("reasoning_content", "")]),
        ({"role": "assistant", "tool_calls": None}, [("role", "assistant")]),
        ({"tool_calls": "no list"}, [("tool_calls", "no list")]),
        ({"tool_calls": [None, {}, {"function": 1}]}, [("tool_calls", [None, {}, {"function": 1}])]),
    ],
)
def test_a_message(given: dict[str, Any], seen: list[tuple[str, Any]]) -> None:
    assert message_of(given) == seen


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ('{"b": 1, "a": [null]}', {"b": 1, "a": [None]}),
        ({"b": 1}, {"b": 1}),
        ("[1]", [1]),
        ('{"city": "Os', '{"city": "Os'),
        ("", ""),
        ("[" * 100_000, "[" * 100_000),
        (None, None),
    ],
)
def test_arguments_of_a_call(given: object, seen: object) -> None:
    assert arguments_of(given) == seen


def test_the_request_is_not_changed() -> None:
    call = {"id": "1", "function": {"name": "f", "arguments": "{}"}}
    messages = [{"role": "assistant", "content": None, "reasoning": "r", "tool_calls": [call]}]
    before = copy.deepcopy(messages)
    variables_of(messages, tools=[], kwargs={"a": 1})
    assert messages == before
