"""Reading the body of a request (`chat.md` section 3), held against what real llama-server answered."""

from __future__ import annotations

import contextlib
import copy
import types
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from scanner.chat.json_text import MAX_DEPTH, dump_json
from scanner.chat.request import Request, RequestError, RequestLimitError, read_request, read_request_text
from tests.request_cases import REQUESTS, as_bytes, load

CASES = load(REQUESTS)
USER = {"role": "user", "content": "hi"}
CALL = {"id": "i", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def read_case(case: Mapping[str, Any]) -> Request:
    return read_request_text(as_bytes(case["text"])) if "text" in case else read_request(case["body"])


def as_answer(case: Mapping[str, Any]) -> dict[str, Any]:
    """What our reading of a case would have the server answer, in the form of `tests.request_cases`."""
    try:
        request = read_case(case)
    except RequestError as error:
        return {"status": error.status, "error": error.text}
    if request.refused_later:
        return {"status": request.refused_later.status, "error": request.refused_later.text}
    answer = {"status": 200, "messages": rendered_messages(request), **rendered_variables(request)}
    if request.tools:
        answer["tools"] = list(request.tools)
    if request.continues and request.messages:
        answer["continued"] = True
    return answer


def texts_of(answer: Mapping[str, Any]) -> dict[str, str]:
    """The entries as text: Python takes 1 for true, and objects for the same whatever the order of their keys."""
    return {name: dump_json(value) for name, value in answer.items()}


def rendered_messages(request: Request) -> list[dict[str, Any]]:
    kept = request.messages[:-1] if request.continues else request.messages
    # A later step than reading, but one that every template sees.
    return [{**message, "role": message["role"].replace("developer", "system")} for message in kept]


def rendered_variables(request: Request) -> dict[str, Any]:
    variables: dict[str, Any] = {"enable_thinking": request.enable_thinking is not False}
    if request.response_format is not None:
        variables["response_format"] = request.response_format
    effort = request.kwargs.get("reasoning_effort")
    if isinstance(effort, str):
        variables["reasoning_strength"] = effort
    prompted = request.add_generation_prompt and not request.continues
    # The server sets its own value of this one last, if it sets it.
    return {**variables, **request.kwargs, **({"add_generation_prompt": True} if prompted else {})}


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in CASES])
def test_a_body_is_read_as_the_server_reads_it(case: dict[str, Any]) -> None:
    answer = dict(case["answer"])
    told = answer.pop("warnings", [])
    assert texts_of(as_answer(case)) == texts_of(answer)
    if "error" not in answer:
        assert list(read_case(case).warnings) == told


def test_there_are_cases_of_all_kinds() -> None:
    statuses = [case["answer"]["status"] for case in CASES]
    assert len(CASES) >= 150
    assert min(statuses.count(status) for status in (200, 400, 500)) > 50


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in CASES if "body" in case])
def test_a_body_is_left_as_it_was(case: dict[str, Any]) -> None:
    body = copy.deepcopy(case["body"])
    with contextlib.suppress(RequestError):
        read_request(body)
    assert dump_json(body) == dump_json(case["body"])


# --- who is at fault, and what was changed ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("messages", "at_fault"),
    [
        ([USER, {"role": "user"}], 1),
        ([USER, USER, {"role": "assistant"}], 2),
        ([USER, {"role": "user", "content": 1}], 1),
        ([{"role": "user", "content": [{"type": "image_url"}]}], 0),
        ([USER, {"content": "x"}], 1),
        ([USER, {**USER, "name": None}], 1),
        ([USER, {"role": "assistant", "tool_calls": [1]}], 1),
        ([{"content": "x"}, {"role": "user", "content": 1}], 1),
        ([USER, {"role": "assistant", "content": "", "tool_calls": [CALL]}], 1),
        ([USER, {"role": "assistant", "content": ""}, {"role": "assistant", "content": ""}], 2),
    ],
)
def test_an_error_names_the_message_at_fault(messages: list[Any], at_fault: int) -> None:
    with pytest.raises(RequestError) as caught:
        read_request({"messages": messages})
    assert caught.value.message == at_fault


@pytest.mark.parametrize("body", [{}, {"messages": [USER], "tools": 1}, {"messages": [USER], "tool_choice": "x"}])
def test_an_error_of_no_message_names_none(body: dict[str, Any]) -> None:
    with pytest.raises(RequestError) as caught:
        read_request(body)
    assert caught.value.message is None


@pytest.mark.parametrize(
    ("message", "note"),
    [
        ({"role": "assistant", "tool_calls": [CALL]}, "absent content became an empty string"),
        ({"role": "user", "content": None}, "null content became an empty string"),
        ({"role": "user", "content": []}, "an empty list of content parts became an empty string"),
        ({**USER, "refusal": None}, "key refusal dropped"),
        ({**USER, "refusal": None, "a b": 1}, 'keys refusal, "a b" dropped'),
        ({**USER, "name": ""}, "empty name left out"),
        ({**USER, "tool_calls": None}, "null tool_calls left out"),
        ({**USER, "tool_calls": []}, "empty tool_calls left out"),
        (
            {"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {}}]},
            "key cache_control dropped from content part 0",
        ),
        ({**USER, "tool_calls": [{**CALL, "index": 0}]}, "key index dropped from tool call 0"),
        ({**USER, "tool_calls": [{**CALL, "id": ""}]}, "empty id of tool call 0 left out"),
        (
            {**USER, "tool_calls": [CALL, {**CALL, "function": {"name": "f", "arguments": {}}}]},
            "arguments of tool call 1 given as an object were written as JSON text",
        ),
        (
            {**USER, "tool_calls": [{**CALL, "function": {"name": "f", "arguments": "", "strict": True}}]},
            "key strict dropped from the function of tool call 0",
        ),
        ({**USER, "tool_calls": {"a": CALL}}, "tool_calls given as an object: its values were taken for the calls"),
    ],
)
def test_a_change_to_a_message_is_noted(message: dict[str, Any], note: str) -> None:
    assert read_request({"messages": [USER, message, USER]}).notes == ((note, 1),)


@pytest.mark.parametrize(
    ("fields", "notes"),
    [
        ({}, []),
        (
            {"tools": [{"type": "function", "strict": True, "function": {"name": "ping"}}]},
            [
                "an empty description added to tool ping",
                "empty parameters added to tool ping",
                "key strict dropped from tool ping",
            ],
        ),
        ({"chat_template_kwargs": []}, ["chat_template_kwargs is no object: ignored"]),
        ({"reasoning_effort": "low"}, ["reasoning_effort low became a variable of the template"]),
        (
            {"reasoning_effort": "none", "chat_template_kwargs": {"reasoning_effort": "low"}},
            ["reasoning_effort none turns thinking off and the one in chat_template_kwargs is dropped"],
        ),
        ({"reasoning_effort": ""}, ["empty reasoning_effort ignored"]),
        ({"reasoning_effort": 1}, ["reasoning_effort is of the wrong type: ignored"]),
        (
            {"chat_template_kwargs": {"enable_thinking": None}},
            ["enable_thinking is no boolean: the server's own setting stays, but the template sees this value"],
        ),
        ({"enable_thinking": False}, ["the field enable_thinking has no effect: it belongs into chat_template_kwargs"]),
        ({"temperature": 0.5, "stream": True, "model": "m"}, []),
    ],
)
def test_a_change_to_a_field_is_noted(fields: dict[str, Any], notes: list[str]) -> None:
    assert read_request({"messages": [USER], **fields}).notes == tuple([(note, None) for note in notes])


def test_a_long_name_is_not_repeated_at_length() -> None:
    request = read_request({"messages": [{**USER, "x" * 10_000: 1}]})
    assert len(request.notes[0][0]) < 100


# --- bodies that are more, or less, than JSON -------------------------------------------------------------------------


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth - 1):
        value = [value]
    return value


def test_nesting_has_a_limit_of_ours() -> None:
    # The body itself is one level.
    assert read_request({"messages": [USER], "x": nested(MAX_DEPTH - 1)}).messages
    for depth in (MAX_DEPTH, 5_000, 100_000):
        with pytest.raises(RequestLimitError, match="JSON"):
            read_request({"messages": [USER], "x": nested(depth)})
        with pytest.raises(RequestLimitError, match="a limit of Capscan's own"):
            read_request_text('{"messages":[],"x":' + "[" * depth)


def test_a_body_that_holds_itself_is_refused() -> None:
    body: dict[str, Any] = {"messages": [USER]}
    body["x"] = body
    with pytest.raises(RequestLimitError):
        read_request(body)


@pytest.mark.parametrize(
    "value", [{1}, b"x", object(), {("a",): 1}, 10**5000], ids=["set", "bytes", "object", "tuple key", "long integer"]
)
def test_what_is_no_json_at_all_is_refused(value: object) -> None:
    with pytest.raises(RequestLimitError, match="not JSON"):
        read_request({"messages": [USER], "x": value})


def test_other_mappings_and_tuples_are_json() -> None:
    body = types.MappingProxyType({"messages": ({"role": "user", "content": "hi"},)})
    assert read_request(body).messages == (USER,)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (float("nan"), "invalid literal; last read: '\"x\": N'"),
        ("\ud800", "surrogate U+D800..U+DBFF must be followed by U+DC00..U+DFFF"),
        ("\udcff", "surrogate U+DC00..U+DFFF must follow U+D800..U+DBFF"),
        (10**400, "number overflow parsing"),
    ],
    ids=["nan", "high surrogate", "low surrogate", "long integer"],
)
def test_what_python_takes_for_json_is_refused_as_the_server_refuses_it(value: object, text: str) -> None:
    with pytest.raises(RequestError) as caught:
        read_request({"messages": [USER], "x": value})
    assert not isinstance(caught.value, RequestLimitError)
    assert text in caught.value.text


def test_integers_beyond_64_bits_become_doubles() -> None:
    request = read_request({"messages": [], "chat_template_kwargs": {"k": 2**64, "l": 2**64 - 1}})
    assert [(type(value), value) for value in request.kwargs.values()] == [(float, 2.0**64), (int, 2**64 - 1)]


# --- anything at all --------------------------------------------------------------------------------------------------

NAMES = st.sampled_from(
    [
        *("messages", "tools", "chat_template_kwargs", "reasoning_effort", "add_generation_prompt", "tool_choice"),
        *("response_format", "json_schema", "grammar", "continue_final_message", "reasoning_format", "top_logprobs"),
        *("role", "content", "reasoning_content", "name", "tool_call_id", "tool_calls", "type", "text", "id"),
        *("function", "arguments", "description", "parameters", "enable_thinking", "schema", "strict"),
    ]
)
WORDS = st.sampled_from(
    ["user", "assistant", "system", "text", "function", "none", "auto", "json_schema", "", "\ud800"]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | WORDS
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.text(max_size=3), inner, max_size=5),
    max_leaves=30,
)
PARTS = st.fixed_dictionaries({"type": st.sampled_from(["text", "image_url", 1])}, optional={"text": SCALARS})
CALLS = st.fixed_dictionaries(
    {"type": st.just("function") | SCALARS, "function": st.dictionaries(NAMES, ANYTHING, max_size=3)},
    optional={"id": SCALARS},
)
MESSAGES = st.fixed_dictionaries(
    {"role": WORDS | SCALARS},
    optional={
        "content": SCALARS | st.lists(PARTS, max_size=3),
        "tool_calls": st.lists(CALLS | ANYTHING, max_size=2),
        "name": SCALARS,
        "reasoning_content": st.text(max_size=3) | SCALARS,
    },
)
BODIES = st.fixed_dictionaries(
    {"messages": st.lists(MESSAGES | ANYTHING, max_size=3)},
    optional={"tools": st.lists(CALLS, max_size=2) | ANYTHING, "continue_final_message": SCALARS, "k": ANYTHING},
)


@given(BODIES | ANYTHING)
@example({"messages": [], "continue_final_message": True, "add_generation_prompt": False})
def test_reading_raises_nothing_but_its_own_error(body: Any) -> None:
    try:
        request = read_request(body)
    except RequestError as error:
        assert error.text
        assert error.message is None or 0 <= error.message < len(body["messages"])
    else:
        assert dump_json([list(request.messages), list(request.tools), request.kwargs])
        assert all(isinstance(message["role"], str) for message in request.messages)
        assert all(index is None or 0 <= index < len(request.messages) for _, index in request.notes)


@given(st.binary(max_size=60) | BODIES.map(repr) | st.text(max_size=60))
def test_reading_text_raises_nothing_but_its_own_error(text: bytes | str) -> None:
    try:
        read_request_text(text)
    except RequestError as error:
        assert error.text
