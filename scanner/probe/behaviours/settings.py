"""What is told without putting a request: whether a server starts, which handler reads the answers, which variables
only `chat_template_kwargs` can set."""

from __future__ import annotations

from collections.abc import Mapping

from scanner.chat.adjusting import takes_schema
from scanner.chat.server import Loaded
from scanner.chat.start import Start
from scanner.chat.variables import EFFORT_NAMES, OPPOSITE_OF_PRESERVE, PRESERVE, SAME_AS_PRESERVE
from scanner.dialect import Template
from scanner.probe.behaviours.asking import is_limit
from scanner.probe.behaviours.base import SEPARATOR, NotExaminedError, excerpt, shortened
from scanner.probe.behaviours.names import free_names
from scanner.probe.behaviours.outcomes import NO, NONE, SOME, YES
from scanner.results import Behaviour

SET_BY_REQUESTS = frozenset(
    {
        *("messages", "tools", "bos_token", "eos_token", "add_generation_prompt", "enable_thinking"),
        *("datetime", "date_string"),
        *(*EFFORT_NAMES, PRESERVE, *SAME_AS_PRESERVE, *OPPOSITE_OF_PRESERVE),
    }
)
"""Variables that llama-server sets of itself or for a field of its own (`chat.md` section 3, steps 9 and 10): the
effort for `reasoning_effort`, what keeps reasoning by its `--reasoning-preserve`, on by default. Not among them:
`documents`, a field that llama-server does not look at."""
SCHEMA = "response_format"
"""Set by one handler only, for a request with a schema."""


def server_starts(started: Start) -> Behaviour:
    """`yes`, or `no` with the message of what fails. A server that logs traces renders one conversation more; that it
    fails is said beside `yes`. Raises `NotExaminedError`."""
    key = "server_starts"
    error = started.error
    if error is not None:
        if is_limit(error):
            raise NotExaminedError(f"limit exceeded: {error.message}")
        return Behaviour(key, NO, shortened(error.message), excerpt(error.text), error.line)
    logged = started.example_error
    if logged is None or is_limit(logged):
        return Behaviour(key, YES)
    return Behaviour(key, YES, f"not with -lv 4: {shortened(logged.message)}", excerpt(logged.text), logged.line)


def handler(loaded: Loaded) -> Behaviour:
    """The parser that reads the answers (`chat.md` section 5)."""
    return Behaviour("handler", loaded.handler)


def kwargs(loaded: Loaded) -> Behaviour:
    """The variables that a template reads and no request sets by other means than `chat_template_kwargs`; the detail
    names each with the line that reads it first, as `documents (line 3) · custom_tools (line 9)`."""
    key = "kwargs"
    found = unusual_names(loaded)
    if not found:
        return Behaviour(key, NONE)
    detail = SEPARATOR.join([f"{name} (line {line})" for name, line in found.items()])
    lines = [f"{line}: {_line(loaded.template, line)}" for line in sorted(set(found.values()))]
    return Behaviour(key, SOME, detail, excerpt("\n".join(lines)), min(found.values()))


def unusual_names(loaded: Loaded) -> Mapping[str, int]:
    """Name → line of the first read, in the order of the text."""
    usual = SET_BY_REQUESTS | ({SCHEMA} if takes_schema(loaded.handler, loaded.source) else set())
    return {name: line for name, line in free_names(loaded.template).items() if name not in usual}


def _line(template: Template, line: int) -> str:
    """A line of the source, without its indentation."""
    return template.text.split(b"\n")[line - 1].strip().decode("utf-8", "replace")[:200]
