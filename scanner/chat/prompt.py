"""A request → the prompt that llama-server would make of it (`chat.md` sections 3 to 5)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scanner.chat import prefill
from scanner.chat.adjusting import adjust, finish, normalises_again, takes_schema
from scanner.chat.changes import MISSING_FROM_VOCABULARY, Change, Journal, Step
from scanner.chat.continuation import continuation_of
from scanner.chat.handlers import AUTOPARSER
from scanner.chat.parts import common_prefix, cut, joined_bytes
from scanner.chat.request import Message, Request, RequestError, read_request
from scanner.chat.rewriting import joined, normalise_content, rewrite, warn_of_tools
from scanner.chat.selection import DEFAULT, TOOL_USE
from scanner.chat.server import Loaded, Server
from scanner.chat.variables import variables_of
from scanner.dialect import ErrorKind, Limits, RenderedPart, RenderError, RenderResult

CLOSED: Mapping[str | None, bool] = {"content": True, "reasoning_content": False}
"""Whether the thought is over, for the two ways to continue a message that say so."""
LOOKED_BACK = 32
"""Messages that are taken off one by one to find the one that an error is about; beyond them halving has to do."""
NO_PARSER = "Unable to generate parser for this template. Automatic parser generation failed: "


@dataclass(frozen=True, slots=True)
class PromptError:
    """Why there is no prompt.

    `text` is what the server answers, whole. `message` is its innermost message. `line` and `column` are the place in
    the template (None: the request was refused before any template ran), `caused_by` the index of the message of the
    request that brought it about, where one did.
    """

    text: str
    message: str
    line: int | None = None
    column: int | None = None
    caused_by: int | None = None
    run: RenderError | None = None

    @property
    def is_limit(self) -> bool:
        """Whether a budget of ours ran out, which says nothing about llama.cpp."""
        return self.run is not None and self.run.kind is ErrorKind.LIMIT


@dataclass(frozen=True, slots=True)
class Prompt:
    """What became of a request: the prompt, or the error; `parts` says which text came from the request."""

    ok: bool
    prompt: bytes
    parts: tuple[RenderedPart, ...]
    error: PromptError | None
    variant: str
    handler: str
    changes: tuple[Change, ...]
    warnings: tuple[str, ...]


def make_prompt(
    server: Server, body: Mapping[str, Any], *, now: float | None = None, limits: Limits | None = None
) -> Prompt:
    """The prompt for the JSON body of a request. `now`: the clock, in seconds since the epoch. Never raises for what
    the request or the template holds."""
    journal = Journal()
    clock = time.time() if now is None else now
    try:
        request = read_request(body)
    except RequestError as error:
        return Making(server, server.default, DEFAULT, clock, limits, journal).refused(error)
    if request.tools and server.tool_use is not None:
        return Making(server, server.tool_use, TOOL_USE, clock, limits, journal).make(request)
    return Making(server, server.default, DEFAULT, clock, limits, journal).make(request)


class RenderFailed(Exception):  # noqa: N818 - an error of the template in flight, not of ours
    """A render gave an error instead of a prompt."""

    def __init__(self, error: RenderError, add_generation_prompt: bool) -> None:
        super().__init__(error.message)
        self.error = error
        self.add_generation_prompt = add_generation_prompt


@dataclass(slots=True)
class Making:
    """One request on its way through one template."""

    server: Server
    loaded: Loaded
    variant: str
    now: float
    limits: Limits | None
    journal: Journal

    def make(self, request: Request) -> Prompt:
        """All steps, prefill included."""
        for text, index in request.notes:
            self.journal.note(Step.REBUILT, text, index)
        for warning in request.warnings:
            self.journal.warn(warning)
        if self.variant != DEFAULT:
            self.journal.note(Step.TEMPLATE, f"the request has tools, so the template {self.variant} renders it")
        given = request.messages[:-1] if request.continues else request.messages
        try:
            messages = self.prepared(given, self.journal)
        except RequestError as error:
            return self.refused(error)
        warn_of_tools(bool(request.tools), self.loaded.capabilities, self.journal)
        self._warn_of_tokens()
        variables = variables_of(self.server, request, self.now, self.journal)
        if request.response_format is not None and takes_schema(self.loaded.handler, self.loaded.source):
            variables["response_format"] = request.response_format
            self.journal.note(Step.HANDLER, "the schema of the answer is told to the template as response_format")
        rendering = Rendering(self, messages, variables)
        try:
            parts = self._continued(rendering, request) if request.continues else self._answered(rendering, request)
        except RenderFailed as failure:
            limited = failure.error.kind is ErrorKind.LIMIT
            cause = None if limited else self._cause_of(failure, given, rendering)
            return self._failed(failure.error, cause)
        if request.refused_later is not None:
            return self.refused(request.refused_later)
        return self._prompt(parts=parts)

    def prepared(self, given: Sequence[Message], journal: Journal) -> list[Message]:
        """The messages of a request as they reach the template. Raises `RequestError`."""
        loaded = self.loaded
        messages = rewrite([_copied(message) for message in given], loaded.source, loaded.capabilities, journal)
        messages = adjust(loaded.handler, messages, loaded.source, journal)
        if normalises_again(loaded.handler, loaded.source):
            normalise_content(messages, loaded.capabilities, journal)
        return messages

    def refused(self, error: RequestError) -> Prompt:
        """A request that does not get as far as a template."""
        return self._prompt(error=PromptError(error.text, error.text, caused_by=error.message))

    def _answered(self, rendering: Rendering, request: Request) -> list[RenderedPart]:
        """The prompt of a request that asks for an answer. llama.cpp renders it with and without a generation prompt,
        to tell that one apart, so a template that fails at either fails."""
        parts = rendering.parts(request.add_generation_prompt)
        rendering.parts(not request.add_generation_prompt)
        return parts

    def _continued(self, rendering: Rendering, request: Request) -> list[RenderedPart]:
        """The conversation so far, and the last message's own words to go on with."""
        last = request.messages[-1]
        reasoning, content = last.get("reasoning_content", ""), last["content"]
        before = rendering.parts(False, continuing=bool(content or reasoning))
        prompted = joined_bytes(rendering.parts(True))
        if not content and not reasoning:
            self.journal.note(Step.PREFILL, "the last message is to be continued and empty: it was left out")
            return before
        self.journal.note(Step.PREFILL, f"the last message ({last['role']}) is continued, not answered")
        text = content if isinstance(content, str) else joined(content, "\n\n")
        # Parts count as words even where they are empty.
        closed = CLOSED[request.continues] if request.continues in CLOSED else isinstance(content, list) or None
        own = continuation_of(self.loaded.handler, self.loaded.source)
        if own is not None and own.header is not None:
            pieces = own.pieces(_bytes(reasoning), _bytes(text), closed=closed)
        else:
            generation = prompted[common_prefix(joined_bytes(before), prompted) :]
            tags = rendering.find_tags() if own is None else prefill.Tags(own.start, own.end)
            pieces = tags.continued(generation, _bytes(reasoning), _bytes(text), closed=closed)
        return [*before, *[RenderedPart(piece, is_input) for piece, is_input in pieces]]

    def _warn_of_tokens(self) -> None:
        vocabulary = self.server.vocabulary
        for name, token in (("BOS", vocabulary.bos), ("EOS", vocabulary.eos)):
            if not token and f"{name.lower()}_token".encode() in self.loaded.source:
                self.journal.warn(MISSING_FROM_VOCABULARY.format(name))

    def _cause_of(self, failure: RenderFailed, given: Sequence[Message], rendering: Rendering) -> int | None:
        """The message of the request with which the error appears: the one behind the longest beginning of the
        conversation that does not fail in this way. None: each does, even without any message."""

        def fails_alike(count: int) -> bool:
            try:
                messages = self.prepared(given[:count], Journal())
            except RequestError:
                return False
            found = rendering.run(messages, failure.add_generation_prompt).error
            return found is not None and (found.message, found.offset) == (failure.error.message, failure.error.offset)

        fails = len(given)
        while fails > 0 and len(given) - fails < LOOKED_BACK and fails_alike(fails - 1):
            fails -= 1
        if fails == 0 or len(given) - fails < LOOKED_BACK:
            return fails - 1 if fails else None
        return _first_failing(fails_alike, fails)

    def _failed(self, error: RenderError, cause: int | None) -> Prompt:
        return self._prompt(
            error=PromptError(self._text_of(error), error.message, error.line, error.column, cause, error)
        )

    def _text_of(self, error: RenderError) -> str:
        """What the server would answer; a budget of ours is no answer of its."""
        if error.kind is ErrorKind.LIMIT:
            return f"limit exceeded: {error.message}"
        text = self.loaded.template.error_text(error)
        return NO_PARSER + text if self.loaded.handler == AUTOPARSER else text

    def _prompt(self, *, parts: Sequence[RenderedPart] = (), error: PromptError | None = None) -> Prompt:
        return Prompt(
            ok=error is None,
            prompt=joined_bytes(parts),
            parts=tuple(parts),
            error=error,
            variant=self.variant,
            handler=self.loaded.handler,
            changes=tuple(self.journal.changes),
            warnings=tuple(self.journal.warnings),
        )


def _copied(data: Any) -> Any:
    """JSON data of its own, so that steps may change it."""
    if isinstance(data, dict):
        return {name: _copied(value) for name, value in data.items()}
    return [_copied(item) for item in data] if isinstance(data, list) else data


def _bytes(text: str) -> bytes:
    """Text that came from a command line or a file, where it may not have been UTF-8."""
    return text.encode("utf-8", "surrogateescape")


def _first_failing(fails: Callable[[int], bool], known: int) -> int | None:
    """The message with which conversations begin to fail, by halving; one of `known` messages does."""
    if fails(0):
        return None
    passes = 0
    while known - passes > 1:
        middle = (passes + known) // 2
        passes, known = (passes, middle) if fails(middle) else (middle, known)
    return known - 1


@dataclass(slots=True)
class Rendering:
    """The rewritten messages of a request with all other variables, ready to be rendered in several ways."""

    making: Making
    messages: list[Message]
    variables: Mapping[str, Any]

    def parts(self, add_generation_prompt: bool, *, continuing: bool = False) -> list[RenderedPart]:
        """A render with the tokens cut that the tokenizer adds, and a handler's last touch. Raises `RenderFailed`."""
        result = self.run(self.messages, add_generation_prompt)
        if result.error is not None:
            raise RenderFailed(result.error, add_generation_prompt)
        parts = self._without_tokens(list(result.parts))
        opens_turn = add_generation_prompt or continuing
        return finish(self.making.loaded.handler, parts, opens_turn, add_generation_prompt, self.making.journal)

    def run(
        self, messages: Sequence[Message], add_generation_prompt: bool, extra: Mapping[str, Any] | None = None
    ) -> RenderResult:
        """Render these messages with the request's other variables; a value of these named `messages` or
        `add_generation_prompt` wins, as llama.cpp sets the request's own variables last."""
        making = self.making
        prompting = {"add_generation_prompt": True} if add_generation_prompt else {}
        variables = {"messages": list(messages), **self.variables, **prompting, **(extra or {})}
        return making.loaded.template.run(variables, statistics=False, now=making.now, limits=making.limits)

    def _without_tokens(self, parts: list[RenderedPart]) -> list[RenderedPart]:
        """Step 11."""
        vocabulary = self.making.server.vocabulary
        bos, eos = _bytes(vocabulary.bos), _bytes(vocabulary.eos)
        whole = joined_bytes(parts)
        start, end = 0, len(whole)
        if vocabulary.add_bos and bos and whole.startswith(bos):
            start = len(bos)
            self.making.journal.note(Step.TOKENS, f"the leading {vocabulary.bos} was cut: the tokenizer adds it")
        if vocabulary.add_eos and eos and whole.endswith(eos):
            end -= len(eos)
            self.making.journal.note(Step.TOKENS, f"the trailing {vocabulary.eos} was cut: the tokenizer adds it")
        return cut(parts, start, end)

    def find_tags(self) -> prefill.Tags:
        """The autoparser's tags, which do not depend on the request."""
        making = self.making
        return prefill.tags_of(making.loaded, making.server.vocabulary, now=making.now, limits=making.limits)
