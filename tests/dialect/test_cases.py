"""The cases under `tests/cases/dialect`: what real llama.cpp makes of small templates of our own."""

from __future__ import annotations

import re

import pytest

from scanner.dialect import Template, TemplateSyntaxError
from tests.cases_format import FOLDER, REQUEST, Case, load

CPP_TYPE = re.compile(r"expected value of type \S+, got")
"""llama.cpp names the C++ class here; we name the type of the language."""

VARIABLES = {
    **REQUEST,
    "bos_token": "<s>",
    "eos_token": "</s>",
    "add_generation_prompt": True,
    "enable_thinking": True,
}


def all_cases() -> list[pytest.param]:  # type: ignore[valid-type]  # pytest.param is a function
    return [
        pytest.param(case, id=f"{path.stem}/{case.name}")
        for path in sorted(FOLDER.glob("*.txt"))
        for case in load(path)
    ]


def without_cpp_types(message: str) -> str:
    return CPP_TYPE.sub("expected value of another type, got", message)


@pytest.mark.parametrize("case", all_cases())
def test_case(case: Case) -> None:
    wanted = expected(case)
    found = outcome(case.source)
    if wanted[-1] is None:
        # llama.cpp does not say where; we do.
        found = (*found[:-1], None)
    assert found == wanted


def outcome(source: bytes) -> tuple[object, ...]:
    try:
        result = Template(source).run(VARIABLES)
    except TemplateSyntaxError as error:
        return str(error.kind), error.message.removeprefix("lexer: ").removeprefix("parser: "), error.offset
    if result.error is not None:
        error_ = result.error
        return "run", without_cpp_types(error_.message), error_.node, error_.offset
    return "output", result.output.decode("utf-8", "replace")


def expected(case: Case) -> tuple[object, ...]:
    error = case.error
    if error is None:
        return "output", case.output
    if error.kind is not None:
        return error.kind, error.message, error.offset
    return "run", without_cpp_types(error.message), error.node, error.offset
