"""Whether a server would start with a model's templates, and how it thinks by default (`chat.md` section 6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from scanner.chat.continuation import continuation_of
from scanner.chat.prefill import tags_of
from scanner.chat.prompt import PromptError, make_prompt
from scanner.chat.server import Server
from scanner.dialect import Limits

EXAMPLE: Mapping[str, Any] = {
    "messages": [
        {"role": "system", "content": "You are a helpful assistant"},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hi there"},
        {"role": "user", "content": "How are you?"},
    ]
}
THINKING: Mapping[str, Any] = {
    "messages": [{"role": "user", "content": "test"}],
    "chat_template_kwargs": {"enable_thinking": True},
}


@dataclass(frozen=True, slots=True)
class Start:
    """Whether a server starts, as far as its templates' own errors go: what the autoparser cannot make sense of is not
    looked at.

    `error` is that of the conversation that every server renders (`THINKING`); with it none starts. `example_error` is
    that of the one which is rendered for the log (`EXAMPLE`): with it no server starts that logs traces (`-lv 4`).
    `enable_thinking` is the default for requests that do not say, None where there is no server.
    """

    error: PromptError | None
    example_error: PromptError | None
    enable_thinking: bool | None

    @property
    def ok(self) -> bool:
        """Whether a server with its usual settings starts."""
        return self.error is None


def start(server: Server, *, now: float | None = None, limits: Limits | None = None) -> Start:
    """Render what llama-server renders before it listens."""
    plain = replace(server, enable_thinking=True)
    thinking, example = [make_prompt(plain, body, now=now, limits=limits).error for body in (THINKING, EXAMPLE)]
    return Start(thinking, example, None if thinking is not None else thinks(server, now=now, limits=limits))


def thinks(server: Server, *, now: float | None = None, limits: Limits | None = None) -> bool:
    """Whether thinking is on unless a request says otherwise: a handler that knows thoughts says yes, the autoparser
    where it saw a sign of one."""
    own = continuation_of(server.default.handler, server.default.source)
    if own is not None:
        return own.thinks
    return tags_of(server.default, server.vocabulary, now=now, limits=limits).thinks
