"""Prompts of whole requests, held against what a real server answered (`tests/prompt_cases.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from scanner.chat.prompt import Prompt, make_prompt
from scanner.chat.rewriting import BAD_ARGUMENTS
from scanner.chat.server import Vocabulary
from scanner.rendering import bare_template
from scanner.serving import ServingError, serve
from tests import prompt_cases

TEMPLATES = prompt_cases.templates()
VOCABULARY = Vocabulary("<s>", "</s>", add_bos=True)
NOT_OURS = "The model produced output that does not match"
"""A server's error where a template's own generation prompt is not the handler's: only our made-up ones are so."""


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_prompt_is_the_servers_own(name: str) -> None:
    source, requests = TEMPLATES[name]
    answers = prompt_cases.load(name)
    try:
        serving = serve(bare_template(source), VOCABULARY)
    except ServingError:
        assert "refused" in answers
        return
    assert serving.start.ok is ("refused" not in answers)
    if "refused" in answers:
        return
    assert list(answers) == list(requests)
    differing = {}
    for request, body in requests.items():
        prompt = make_prompt(serving.server, body)
        if not agrees(prompt, answers[request]):
            differing[request] = (answers[request], prompt.error.text if prompt.error else prompt.prompt.decode())
    assert differing == {}


def agrees(prompt: Prompt, answer: Mapping[str, Any]) -> bool:
    if "prompt" in answer:
        return prompt.ok and prompt.prompt.decode("utf-8", "replace") == answer["prompt"]
    if prompt.error is None:
        return str(answer["error"]).startswith(NOT_OURS)
    if answer["error"].startswith(BAD_ARGUMENTS):
        return prompt.error.text.startswith(BAD_ARGUMENTS)
    return bool(prompt.error.text == answer["error"])


def test_every_case_file_has_its_template() -> None:
    assert prompt_cases.unknown_files(list(TEMPLATES)) == []
