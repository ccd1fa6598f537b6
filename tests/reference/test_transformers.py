"""The reference renders what transformers itself renders, and fails where it fails.

Skipped where transformers is absent; it is no dependency of Capscan, not even for development. To run this:
`pip install transformers` (torch is not needed).
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

import pytest

from scanner.reference import ErrorKind, ReferenceSyntaxError, ReferenceTemplate, variables_of
from tests.reference.cases import CASES, VARIABLES
from tests.shared_data import shared_path

pytestmark = pytest.mark.filterwarnings("default")  # those of transformers are not ours to mend

NOW = datetime(2026, 11, 29, 12, 34, 56)
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}

Outcome = tuple[str, str]
"""("output", text), ("raised", what the template itself said) or ("failed", what Jinja2 or Python said)."""


class FrozenClock(datetime):
    """What transformers takes for `datetime`."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> FrozenClock:
        return cls.fromtimestamp(NOW.timestamp(), tz)


@dataclass(frozen=True, slots=True)
class Transformers:
    """The two doors of transformers that are asked: for a request, and for a template with all variables given."""

    tokenizer: Any
    render: Any

    def outcome(self, template: str, messages: list[Any], **arguments: Any) -> Outcome:
        try:
            if not messages:  # the tokenizer refuses these whatever the template
                return "output", self.render([messages], chat_template=template, **TOKENS, **arguments)[0][0]
            return "output", self.tokenizer.apply_chat_template(
                messages, chat_template=template, tokenize=False, **arguments
            )
        except Exception as error:
            return ("raised" if type(error).__name__ == "TemplateError" else "failed"), str(error)


@pytest.fixture(scope="module")
def transformers() -> Iterator[Transformers]:
    """transformers with a tokenizer of two tokens and a stopped clock."""
    package = pytest.importorskip("transformers", reason="transformers is not installed: pip install transformers")
    tokenizers = pytest.importorskip("tokenizers")
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"<s>": 0, "</s>": 1}))
    tokenizer = package.PreTrainedTokenizerFast(tokenizer_object=words, **TOKENS)
    chats = package.utils.chat_template_utils
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chats, "datetime", FrozenClock)
        yield Transformers(tokenizer, chats.render_jinja_template)


def ours(template: ReferenceTemplate | ReferenceSyntaxError, variables: Mapping[str, Any]) -> Outcome:
    if isinstance(template, ReferenceSyntaxError):
        return "failed", template.message
    result = template.render(variables, now=NOW.timestamp())
    if result.error is None:
        return "output", result.output
    return ("raised" if result.error.kind is ErrorKind.RAISED else "failed"), result.error.message


def compiled(template: str) -> ReferenceTemplate | ReferenceSyntaxError:
    try:
        return ReferenceTemplate(template)
    except ReferenceSyntaxError as error:
        return error


def agree(mine: Outcome, theirs: Outcome) -> bool:
    """Jinja2's and Python's errors may be worded otherwise."""
    return mine == theirs or (mine[0] == theirs[0] == "failed")


@pytest.mark.parametrize("template", [pytest.param(case.template, id=case.name) for case in CASES])
def test_a_feature_is_theirs(transformers: Transformers, template: str) -> None:
    messages = VARIABLES["messages"]
    extra = {name: value for name, value in VARIABLES.items() if name != "messages"}
    variables = variables_of(messages, bos="<s>", eos="</s>", add_generation_prompt=False, kwargs=extra)
    assert agree(ours(compiled(template), variables), transformers.outcome(template, messages, **extra))


def test_real_templates_are_theirs(transformers: Transformers) -> None:
    requests: dict[str, Any] = json.loads(shared_path("golden", "scenarios.json").read_text(encoding="utf-8"))
    paths = sorted(shared_path("corpus", "templates").glob("*.jinja"))
    assert paths
    assert [difference for path in paths for difference in differences(transformers, path, requests)] == []


def differences(transformers: Transformers, path: Path, requests: Mapping[str, Any]) -> Iterator[str]:
    source = path.read_text(encoding="utf-8")
    template = compiled(source)
    for name, request in requests.items():
        messages = request["messages"]
        settings = {"tools": request.get("tools"), "add_generation_prompt": request.get("add_generation_prompt", True)}
        extra = request.get("chat_template_kwargs", {}) | {k: v for k, v in request.items() if k == "reasoning_effort"}
        mine = ours(template, variables_of(messages, bos="<s>", eos="</s>", kwargs=extra, **settings))
        theirs = transformers.outcome(source, with_objects(messages), **settings, **extra)
        if not agree(mine, theirs):
            yield f"{path.name} with {name}: {mine} is not {theirs}"


def with_objects(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages as someone would give them who read the documentation of transformers."""
    copied: list[dict[str, Any]] = json.loads(json.dumps(messages))
    for message in copied:
        for call in message.get("tool_calls") or []:
            with contextlib.suppress(ValueError, TypeError):
                call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    return copied
