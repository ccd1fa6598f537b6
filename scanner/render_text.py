"""What `capscan render` says in the terminal."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from typing import Any

import click

from scanner.chat.prompt import Prompt, PromptError
from scanner.chat.scenarios import SCENARIOS
from scanner.chat.start import Start
from scanner.console import table, visible
from scanner.dialect import RenderedPart
from scanner.reference import ReferenceResult
from scanner.rendering import Rendered, encoded, text_of
from scanner.serving import Serving

CONTEXT = 2
"""Equal lines shown around a difference."""


def explained(prompt: Prompt, serving: Serving, body: Any) -> Iterator[str]:
    """The way from the request to the prompt, step by step."""
    facts = [f"template {prompt.variant}", f"handler {prompt.handler}", visible(start_text(serving.start))]
    yield click.style(" · ".join(facts), bold=True)
    if not prompt.changes and prompt.ok:
        yield "nothing was changed on the way"
    for change in prompt.changes:
        about = "" if change.message is None else f"message {change.message + 1}{_role(body, change.message)}: "
        yield f"  {change.step:<10} {visible(about + change.text)}"
    for warning in prompt.warnings:
        yield f"{click.style('llama.cpp warns', fg='yellow')}: {visible(warning)}"


def start_text(start: Start) -> str:
    """Whether a server starts, in a few words."""
    if start.error is not None:
        return f"server does not start: {start.error.message}"
    if start.example_error is not None:
        return f"server starts, but not with -lv 4: {start.example_error.message}"
    return "server starts"


def _role(body: Any, index: int) -> str:
    """A message's role in brackets, as far as the request can be trusted to have one."""
    messages = body.get("messages") if isinstance(body, dict) else None
    message = messages[index] if isinstance(messages, list) and index < len(messages) else None
    role = message.get("role") if isinstance(message, dict) else None
    return f" ({role})" if isinstance(role, str) else ""


def failed(error: PromptError, template: bytes, body: Any) -> Iterator[str]:
    """Why there is no prompt: llama.cpp's message, the template's line, and the message of the request behind it."""
    if error.is_limit:
        yield f"not examined, a limit of Capscan's own was exceeded: {visible(error.message)}"
        return
    yield click.style("llama.cpp: ", fg="red", bold=True) + visible(error.message)
    if error.line is not None:
        yield f"  raised at {error.line}:{error.column}"
        yield f"    {error.line:>5} | {visible(_line(template, error.line))}"
    if error.caused_by is not None:
        yield f"  by message {error.caused_by + 1} of the request: {visible(_shown_message(body, error.caused_by))}"
    elif error.line is not None:
        yield "  not by one message: the template raises it without any"
    if error.text != error.message:
        yield "  the server answers:"
        yield from [f"    {visible(line)}" for line in error.text.strip("\n").split("\n")]


def _line(template: bytes, number: int) -> str:
    lines = template.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    return text_of(lines[number - 1]) if number <= len(lines) else ""


def _shown_message(body: Any, index: int) -> str:
    return json.dumps(body["messages"][index], ensure_ascii=False)


def parts_lines(parts: tuple[RenderedPart, ...]) -> Iterator[str]:
    """Each piece of a prompt with its origin, quoted, so that blanks and line ends show."""
    for part in parts:
        origin = click.style("request ", reverse=True) if part.is_input else "template"
        yield f"{origin}  {visible(json.dumps(text_of(part.text), ensure_ascii=False))}"


def reference_failed(result: ReferenceResult) -> Iterator[str]:
    """Why the reference gave no prompt."""
    if result.error is not None:
        place = f" (line {result.error.line})" if result.error.line is not None else ""
        yield click.style("jinja2: ", fg="red", bold=True) + visible(f"{result.error.message}{place}")


def compared(rendered: Rendered) -> Iterator[str]:
    """The prompts of both engines: that they are equal, what differs, line by line, or which one fails alone."""
    prompt, reference = rendered.prompt, rendered.reference
    if rendered.unserved is not None:
        yield click.style("llama.cpp: ", fg="red", bold=True) + visible(rendered.unserved)
        if reference is not None and reference.ok:
            yield "only llama.cpp fails"
        return
    if prompt is None or reference is None:
        return
    if not (prompt.ok and reference.ok):
        if prompt.ok or reference.ok:
            yield f"only {'jinja2' if prompt.ok else 'llama.cpp'} fails"
        return
    if rendered.difference is None:
        yield click.style(f"equal: {len(prompt.prompt):,} bytes", fg="green")
        return
    yield f"the prompts differ from byte {rendered.difference:,} on"
    yield click.style("- llama.cpp", fg="red") + "  " + click.style("+ jinja2", fg="green")
    ours, theirs = [text_of(text).split("\n") for text in (prompt.prompt, encoded(reference))]
    for line in list(difflib.unified_diff(ours, theirs, lineterm="", n=CONTEXT))[2:]:
        yield click.style(visible(line), fg={"-": "red", "+": "green", "@": "cyan"}.get(line[0]))


def scenario_table() -> str:
    """The standard requests."""
    return table(["scenario", "meaning"], [[scenario.name, scenario.about] for scenario in SCENARIOS.values()])
