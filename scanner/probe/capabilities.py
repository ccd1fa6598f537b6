"""The claimed flags: llama.cpp's probes, in its order, judged by its rules (`caps.md`)."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache

from scanner.dialect import ErrorKind, Limits, RenderResult, Template, from_python
from scanner.probe.conversations import (
    OBJECT_ARGUMENTS,
    REASONING_MARKER,
    STRING_ARGUMENTS,
    SYSTEM,
    USER,
    Conversation,
    reasoning_history,
    tool_call,
    tool_use,
    user_says,
    with_empty_reasoning,
)
from scanner.probe.profiles import Profile
from scanner.results import Capabilities, Part, ProbeRun, Read, RunError

REPORTED = frozenset(
    {"messages", "tools", "bos_token", "eos_token", "add_generation_prompt", "enable_thinking", "reasoning_effort"}
)
"""The variables whose reads are reported (`dialect.md` section 8)."""

WALKS_PARTS = frozenset({"selectattr", "array_access"})
"""Operations on a message's content that tell llama.cpp the template takes typed content."""


def probe(
    template: Template,
    profile: Profile,
    *,
    now: float | None = None,
    limits: Limits | None = None,
    lines: bool = False,
) -> tuple[Capabilities, tuple[ProbeRun, ...]]:
    """Run a profile's probes on a template: the flags as llama.cpp would set them, and every run.

    `now` is the clock of the runs, in seconds since the epoch. `lines`: the runs tell which lines ran. A run that
    exceeds a budget (`limit` in its error) is the last; the flags then mean nothing.
    """
    prober = Prober(template, profile, now=now, limits=limits, lines=lines)
    return prober.judge_all(), tuple(prober.runs)


def limit_of(runs: Iterable[ProbeRun]) -> RunError | None:
    """The error of the run that used up a budget; None where none did, and the flags mean something."""
    return next((run.error for run in runs if run.error is not None and run.error.kind == ErrorKind.LIMIT), None)


class BudgetExceeded(Exception):  # noqa: N818 - not an error: it ends the probing
    """A probe used up a budget, so no verdict can come out; the next ones would do the same."""


class Prober:
    """The probes of one template, in order; two of them depend on what came before."""

    def __init__(
        self, template: Template, profile: Profile, *, now: float | None, limits: Limits | None, lines: bool
    ) -> None:
        self.template = template
        self.profile = profile
        self.now = now
        self.limits = limits
        self.lines = lines
        self.runs: list[ProbeRun] = []
        self.flags: dict[str, bool] = {
            "tools": True,
            "tool_calls": True,
            "parallel_tool_calls": True,
            "system_role": True,
            "string_content": True,
            "typed_content": False,
            "object_arguments": False,
            "preserve_reasoning": False,
        }
        self.effort: bool | None = False if profile.effort else None

    def judge_all(self) -> Capabilities:
        """Run every probe that applies, and judge each at once; none after one that used up a budget."""
        with suppress(BudgetExceeded):
            self.run_all()
        return Capabilities(**self.flags, reasoning_effort=self.effort)

    def run_all(self) -> None:
        """The probes in llama.cpp's order."""
        self.typed_content()
        self.system_role()
        self.tool_object_arguments()
        if not self.flags["object_arguments"]:
            self.tool_string_arguments()
        self.parallel_tool_calls()
        self.preserve_reasoning()
        if self.profile.effort:
            self.reasoning_effort()

    # -- the probes, numbered as in caps.md --------------------------------------------------------------------------

    def typed_content(self) -> None:
        """Probes 1 and 2."""
        profile = self.profile
        run = self.run(user_says("typed_content", profile.content_marker, profile.content_tools))
        operations = set(self.read(run, "messages[0].content").ops)
        walks_parts = bool(operations & WALKS_PARTS)
        if walks_parts:
            self.flags["typed_content"] = True
        if not run.ok or (profile.content_by_output and walks_parts and profile.content_marker not in run.output):
            self.flags["string_content"] = False
        if profile.empty_content and "test_is_string" in operations:
            self.typed_content_empty_array()

    def typed_content_empty_array(self) -> None:
        """Probe 2."""
        run = self.run(user_says("typed_content_empty_array", []))
        if run.ok and WALKS_PARTS & set(self.read(run, "messages[0].content").ops):
            self.flags["typed_content"] = True

    def system_role(self) -> None:
        """Probe 3."""
        run = self.run(Conversation("system_role", [SYSTEM, USER]))
        if not self.read(run, "messages[0].content").used:
            self.flags["system_role"] = False

    def tool_object_arguments(self) -> None:
        """Probe 4."""
        run = self.run_tools(tool_use("tool_object_arguments", [tool_call("call00001", OBJECT_ARGUMENTS)]))
        if not run.ok:
            return
        self.judge_tool_reads(run)
        if self.read(run, "messages[1].tool_calls").used:
            argument = self.read(run, "messages[1].tool_calls[0].function.arguments.arg")
            self.flags["object_arguments"] = argument.used

    def tool_string_arguments(self) -> None:
        """Probe 5."""
        run = self.run_tools(tool_use("tool_string_arguments", [tool_call("call00001", STRING_ARGUMENTS)]))
        if run.ok:
            self.judge_tool_reads(run)
        else:
            self.flags["tool_calls"] = False
            self.flags["tools"] = False

    def judge_tool_reads(self, run: ProbeRun) -> None:
        """What probes 4 and 5 share."""
        if not self.read(run, "tools[0].function.name").used:
            self.flags["tools"] = False
        if not self.read(run, "messages[1].tool_calls").used:
            self.flags["tool_calls"] = False

    def parallel_tool_calls(self) -> None:
        """Probe 6."""
        arguments = OBJECT_ARGUMENTS if self.flags["object_arguments"] else STRING_ARGUMENTS
        calls = [tool_call("call00001", arguments), tool_call("call00002", arguments)]
        run = self.run_tools(tool_use("parallel_tool_calls", calls))
        if not run.ok or not self.read(run, "messages[1].tool_calls[1].function").used:
            self.flags["parallel_tool_calls"] = False

    def preserve_reasoning(self) -> None:
        """Probe 7."""
        profile = self.profile
        run = self.run(reasoning_history("preserve_reasoning", profile.reasonings, profile.reasoning_extra))
        if profile.reasoning_by_output:
            self.flags["preserve_reasoning"] = REASONING_MARKER in run.output
        else:
            self.flags["preserve_reasoning"] = self.read(run, "messages[1].reasoning_content").used

    def reasoning_effort(self) -> None:
        """Probe 8: two names for one value."""
        effort = {"reasoning_effort": "low", "reasoning_strength": "low"}
        run = self.run(Conversation("reasoning_effort", [USER], extra={"enable_thinking": True, **effort}))
        self.effort = self.read(run, "reasoning_effort").used

    # -- running and reading ---------------------------------------------------------------------------------------

    def run_tools(self, conversation: Conversation) -> ProbeRun:
        """Run probe 4, 5 or 6. One that fails gets a second chance: assistants with an empty reasoning, which some
        templates insist on. If that succeeds it takes the first run's place; else the first run stands."""
        run = self.run(conversation)
        if run.ok or not self.profile.retries_with_reasoning:
            return run
        second = self.run(with_empty_reasoning(conversation))
        del self.runs[-2 if second.ok else -1]
        return self.runs[-1]

    def run(self, conversation: Conversation) -> ProbeRun:
        """Render a conversation with statistics on and keep the run."""
        data = conversation.variables()
        variables: dict[str, object] = dict(data)
        if "reasoning_effort" in data:
            variables["reasoning_effort"] = variables["reasoning_strength"] = from_python(data["reasoning_effort"])
        started = time.perf_counter()
        result = self.template.run(variables, now=self.now, limits=self.limits)
        duration = time.perf_counter() - started
        run = to_probe_run(conversation.name, data, result, duration, lines=result.lines if self.lines else ())
        self.runs.append(run)
        if run.error is not None and run.error.kind == ErrorKind.LIMIT:
            raise BudgetExceeded
        return run

    @staticmethod
    def read(run: ProbeRun, path: str) -> Read:
        """The marks of one value; an unread one has none."""
        for read in run.reads:
            if read.path == path:
                return read
        return Read(path, used=False, ops=(), line=None, column=None)


def to_probe_run(
    name: str,
    variables: Mapping[str, object],
    result: RenderResult,
    duration: float,
    *,
    lines: tuple[int, ...] = (),
) -> ProbeRun:
    """A run of the dialect as a result: text for people, reads of the reported variables only; `lines` as given, since
    it takes a moment to find them."""
    error = result.error
    return ProbeRun(
        name=name,
        ok=result.ok,
        output=result.output.decode("utf-8", "replace"),
        parts=tuple([Part(part.text.decode("utf-8", "replace"), part.is_input) for part in result.parts]),
        error=None
        if error is None
        else RunError(str(error.kind), error.message, error.node, error.offset, error.line, error.column),
        reads=tuple(
            [
                Read(path, used, ops, line, column)
                for path, used, ops, _, line, column in result.reads
                if _is_reported(path)
            ]
        ),
        variables=variables,
        duration=duration,
        lines=lines,
    )


@lru_cache(maxsize=4096)
def _is_reported(path: str) -> bool:
    return path.split(".", 1)[0].split("[", 1)[0] in REPORTED
