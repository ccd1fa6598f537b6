"""Our own answers to requests: as llama-server would make the prompts, and none twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from scanner.chat.prompt import Prompt, PromptError, make_prompt
from scanner.chat.server import Loaded, Server
from scanner.dialect import ErrorKind, Limits, RenderResult, Template, Value
from scanner.probe.behaviours.base import Answer, Failure, Inquiry, NotExaminedError
from scanner.probe.behaviours.names import may_tell_time
from scanner.results import STOPS_ENGINE

A_DAY_LATER = 86_400 + 3_541
"""Seconds: the next date, and another hour, minute and second as well."""
PATIENCE = 2
"""After so many requests that used up a budget the others are not tried: each would take as long."""


class RememberingTemplate(Template):
    """A parsed template that does not render the same thing twice.

    Every request is rendered with and without a generation prompt, continued ones as if the last message were not
    there, and llama.cpp turns several requests into the same messages.
    """

    def __init__(self, template: Template) -> None:
        self.__dict__.update(vars(template))
        self._results: dict[str, RenderResult] = {}

    def run(
        self,
        variables: Mapping[str, object],
        *,
        statistics: bool = True,
        mark_input: bool = True,
        now: float | datetime | None = None,
        limits: Limits | None = None,
    ) -> RenderResult:
        """As `Template.run`. Values that are no data are those of the server's tokens, the same in all requests."""
        data = {name: value for name, value in variables.items() if not isinstance(value, Value)}
        key = repr((data, statistics, mark_input, now, limits))
        if key not in self._results:
            self._results[key] = super().run(
                variables, statistics=statistics, mark_input=mark_input, now=now, limits=limits
            )
        return self._results[key]


def remembering(server: Server) -> Server:
    """The server, with templates that render nothing twice."""
    return replace(
        server,
        default=_remembering(server.default),
        tool_use=None if server.tool_use is None else _remembering(server.tool_use),
    )


def _remembering(loaded: Loaded) -> Loaded:
    return replace(loaded, template=RememberingTemplate(loaded.template))


@dataclass(slots=True)
class Requests:
    """Puts requests to a server of ours; `now` is its clock, in seconds since the epoch."""

    server: Server
    now: float
    limits: Limits | None = None
    _answers: dict[str, Answer] = field(default_factory=dict, init=False)
    _limited: list[str] = field(default_factory=list, init=False)
    _later: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self.server = remembering(self.server)
        templates = [loaded.template for loaded in (self.server.default, self.server.tool_use) if loaded is not None]
        # What cannot ask for the time prints the same whenever it is rendered.
        self._later = self.now + A_DAY_LATER if any(map(may_tell_time, templates)) else self.now

    def ask(self, inquiry: Inquiry) -> Answer:
        """The answer to a request. Raises `NotExaminedError`."""
        if inquiry.name not in self._answers:
            self._answers[inquiry.name] = self._answer(inquiry)
        return self._answers[inquiry.name]

    def _answer(self, inquiry: Inquiry) -> Answer:
        if len(self._limited) >= PATIENCE:
            raise NotExaminedError(f"not tried: {PATIENCE} requests used up a budget ({self._limited[0]})")
        now = self._later if inquiry.later else self.now
        prompt = make_prompt(self.server, inquiry.body, now=now, limits=self.limits)
        if prompt.error is not None and is_limit(prompt.error):
            self._limited.append(prompt.error.message)
            raise NotExaminedError(f"limit exceeded: {prompt.error.message}")
        return answer_of(prompt)


def answer_of(prompt: Prompt) -> Answer:
    """A prompt of ours as an answer."""
    error = prompt.error
    if error is None:
        return Answer(prompt.prompt, parts=prompt.parts)
    return Answer(failure=Failure(error.message, error.line, error.text))


def is_limit(error: PromptError) -> bool:
    """Whether a budget of ours ran out. What would end the whole llama.cpp process is its failure, not ours."""
    return error.run is not None and error.run.kind is ErrorKind.LIMIT and STOPS_ENGINE not in error.run.message


def run_template(template: Template, variables: Mapping[str, Any], now: float, limits: Limits | None) -> RenderResult:
    """A render of the template itself, outside of any request. Raises `NotExaminedError`."""
    result = template.run(variables, statistics=False, now=now, limits=limits)
    error = result.error
    if error is not None and error.kind is ErrorKind.LIMIT and STOPS_ENGINE not in error.message:
        raise NotExaminedError(f"limit exceeded: {error.message}")
    return result
