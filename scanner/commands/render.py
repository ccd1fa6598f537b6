"""`capscan render`: the prompt that llama-server, or Python, would make of a request."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import click

from scanner.chat.json_text import JsonTextError, parse_json
from scanner.chat.scenarios import SCENARIOS
from scanner.chat.selection import DEFAULT
from scanner.chat.server import Vocabulary
from scanner.commands.options import (
    EXIT_FAILED,
    EXIT_FINDINGS,
    format_option,
    is_terminal,
    model_files,
    now_option,
    print_json,
    print_lines,
    read_standard_input,
    write,
)
from scanner.console import visible
from scanner.dialect import Template, TemplateSyntaxError
from scanner.errors import CapscanError, UsageError
from scanner.render_text import compared, explained, failed, parts_lines, reference_failed, scenario_table
from scanner.rendering import (
    BOTH,
    JINJA2,
    LLAMA_CPP,
    Rendered,
    raw_document,
    render_lines,
    rendered_document,
    text_of,
)
from scanner.rendering import render as render_request
from scanner.results import FileResult, Outcome
from scanner.serving import vocabulary_of

Json = TypeVar("Json", dict[str, object], list[object])


@click.command()
@click.argument("path", required=False, metavar="FILE|TEMPLATE|-")
@click.option("--request", "request_file", metavar="JSON|FILE|-", help="The body of a chat request.")
@click.option("--messages", metavar="JSON|FILE", help="Its messages.")
@click.option("--tools", metavar="JSON|FILE", help="Its tools.")
@click.option("--kwargs", metavar="JSON|FILE", help="Its chat_template_kwargs.")
@click.option("--scenario", help="A standard request by its name.")
@click.option("--list-scenarios", is_flag=True, help="List the standard requests.")
@click.option("--no-generation-prompt", is_flag=True, help="Ask for none.")
@click.option("--engine", type=click.Choice([LLAMA_CPP, JINJA2, BOTH]), default=LLAMA_CPP, show_default=True)
@click.option("--explain", is_flag=True, help="Say what llama.cpp changes on the way, step by step.")
@click.option("--parts", is_flag=True, help="Show which text came from the request.")
@click.option("--raw", is_flag=True, help="The template alone, with the variables of --vars.")
@click.option("--vars", "variables", metavar="JSON|FILE", help="Variables of --raw.")
@click.option("--bos", help="Text of the BOS token, instead of the file's.")
@click.option("--eos", help="Text of the EOS token.")
@click.option("--add-bos/--no-add-bos", default=None, help="Whether the tokenizer adds BOS (so it is cut).")
@click.option("--add-eos/--no-add-eos", default=None, help="Whether the tokenizer adds EOS.")
@click.option("--batch", metavar="FILE.jsonl|-", help="Render many: a JSON object a line, answered in order.")
@now_option
@format_option("text", "json")
def render(
    path: str | None,
    request_file: str | None,
    messages: str | None,
    tools: str | None,
    kwargs: str | None,
    scenario: str | None,
    list_scenarios: bool,
    no_generation_prompt: bool,
    engine: str,
    explain: bool,
    parts: bool,
    raw: bool,
    variables: str | None,
    bos: str | None,
    eos: str | None,
    add_bos: bool | None,
    add_eos: bool | None,
    batch: str | None,
    clock: float | None,
    form: str,
) -> int:
    """Show the prompt that llama-server, or Python, would make of a request.

    Takes a template file, a GGUF file or a model directory. Without a request, the standard one `user` is rendered.
    Exit code 1 where there is no prompt, or the engines differ.

    A line of --batch is {"template": TEXT, "request": {...}} and, if wanted, "bos", "eos", "add_bos", "add_eos" and
    "now"; its answer {"prompt": TEXT} or {"error": TEXT}, and "changes".
    """
    if list_scenarios:
        click.echo(scenario_table())
        return 0
    _check_options(click.get_current_context())
    if batch is not None:
        return _render_batch(batch, clock)
    if path is None:
        raise UsageError("render needs a template or a model file (or --batch, --list-scenarios)")
    result = _the_model_file(path)
    if raw:
        return _render_raw(result, _json_argument("--vars", variables or "{}", dict), clock, form, parts)
    body = _request_body(request_file, messages, tools, kwargs, scenario)
    if no_generation_prompt:
        body["add_generation_prompt"] = False
    vocabulary = _vocabulary(vocabulary_of(result.metadata), bos, eos, add_bos, add_eos)
    rendered = render_request(result, body, vocabulary, engine=engine, now=clock)
    if form == "json":
        print_json(rendered_document(rendered))
    else:
        _print_rendered(rendered, body, explain=explain, parts=parts)
    if rendered.prompt is not None and rendered.prompt.error is not None and rendered.prompt.error.is_limit:
        return EXIT_FAILED
    return 0 if rendered.ok else EXIT_FINDINGS


GOES_ALONE = {
    "batch": ("clock",),
    "raw": ("path", "variables", "clock", "form", "parts"),
}
"""Options that leave room for these others only."""


def _check_options(context: click.Context) -> None:
    """Options that would be ignored are refused. Raises UsageError."""
    given = {
        name for name in context.params if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
    }
    names = {parameter.name: parameter.opts[0] for parameter in context.command.params}
    for alone, others in GOES_ALONE.items():
        if alone in given and (surplus := sorted(given - {alone, *others})):
            raise UsageError(f"--{alone} does not go with {', '.join([names[name] for name in surplus])}")
    if "variables" in given and "raw" not in given:
        raise UsageError("--vars needs --raw")


def _the_model_file(path: str) -> FileResult:
    """The one model file at a path."""
    found = list(model_files([path]))
    if len(found) > 1:
        raise UsageError(f"{path}: {len(found)} model files are in it; name one of them")
    (result,) = found
    if result.outcome not in (Outcome.ANALYSED, Outcome.NO_TEMPLATE):
        raise CapscanError(f"{path}: {result.outcome}: {result.reason}")
    return result


def _json_argument(option: str, text: str, kind: type[Json]) -> Json:
    """The JSON that an option gives: in place, in a file, or on standard input."""
    if text == "-":
        source = read_standard_input()
    elif text.lstrip()[:1] in ("{", "["):
        source = text.encode("utf-8", "surrogateescape")
    else:
        try:
            source = Path(text).read_bytes()
        except OSError as error:
            raise UsageError(f"{option} {text}: {error.strerror}") from error
    try:
        value = parse_json(source)
    except JsonTextError as error:
        raise UsageError(f"{option}: not JSON: {error.message}") from error
    if not isinstance(value, kind):
        raise UsageError(f"{option}: a JSON {'object' if kind is dict else 'list'} is needed")
    return value


def _request_body(
    request_file: str | None, messages: str | None, tools: str | None, kwargs: str | None, scenario: str | None
) -> dict[str, object]:
    """The request that the options describe: a whole one or a standard one, then its single fields."""
    if request_file is not None and scenario is not None:
        raise UsageError("give --request or --scenario, not both")
    if scenario is not None and scenario not in SCENARIOS:
        raise UsageError(f"there is no scenario {scenario!r}; capscan render --list-scenarios lists them")
    if request_file is not None:
        body: dict[str, object] = _json_argument("--request", request_file, dict)
    else:
        body = dict(SCENARIOS[scenario or "user"].body)
    if messages is not None:
        body["messages"] = _json_argument("--messages", messages, list)
    if tools is not None:
        body["tools"] = _json_argument("--tools", tools, list)
    if kwargs is not None:
        body["chat_template_kwargs"] = _json_argument("--kwargs", kwargs, dict)
    return body


def _vocabulary(
    own: Vocabulary, bos: str | None, eos: str | None, add_bos: bool | None, add_eos: bool | None
) -> Vocabulary:
    return Vocabulary(
        own.bos if bos is None else bos,
        own.eos if eos is None else eos,
        own.add_bos if add_bos is None else add_bos,
        own.add_eos if add_eos is None else add_eos,
    )


def _print_rendered(rendered: Rendered, body: dict[str, object], *, explain: bool, parts: bool) -> None:
    prompt, reference, serving = rendered.prompt, rendered.reference, rendered.serving
    if prompt is not None and serving is not None:
        if explain:
            print_lines(explained(prompt, serving, body))
        if prompt.error is not None:
            used = serving.server.tool_use if prompt.variant != DEFAULT else serving.server.default
            print_lines(failed(prompt.error, used.source if used is not None else b"", body))
        elif parts:
            print_lines(parts_lines(prompt.parts))
        elif reference is None:
            _print_prompt(text_of(prompt.prompt), alone=not explain)
    if reference is not None:
        print_lines(reference_failed(reference))
        if prompt is None and rendered.unserved is None and reference.ok:
            _print_prompt(reference.output, alone=True)
    print_lines(compared(rendered))


def _print_prompt(text: str, *, alone: bool) -> None:
    """The prompt as it is where it goes into a file or a program; shown safely where a person looks at it."""
    if alone and not is_terminal():
        write(text)
        return
    for line in text.split("\n"):
        click.echo(visible(line))


def _render_raw(result: FileResult, variables: dict[str, object], clock: float | None, form: str, parts: bool) -> int:
    """The dialect alone, on the text as it stands in the file."""
    if not result.jinja:
        raise CapscanError(f"{result.file.path}: {result.outcome}: {result.reason}")
    try:
        outcome = Template(result.jinja[0].source).run(variables, now=clock)
    except TemplateSyntaxError as error:
        raise CapscanError(f"the template does not parse: {error}") from error
    if form == "json":
        print_json(raw_document(outcome))
    elif outcome.error is not None:
        place = f" ({outcome.error.node} at {outcome.error.line}:{outcome.error.column})" if outcome.error.node else ""
        click.echo(click.style("failed: ", fg="red", bold=True) + visible(outcome.error.message) + place)
    elif parts:
        print_lines(parts_lines(outcome.parts))
    else:
        _print_prompt(text_of(outcome.output), alone=True)
    return 0 if outcome.ok else EXIT_FINDINGS


def _render_batch(path: str, clock: float | None) -> int:
    understood = True
    with _batch_lines(path) as lines:
        for answer, fine in render_lines(lines, default_now=clock):
            understood = understood and fine
            write(json.dumps(answer, ensure_ascii=is_terminal()) + "\n")
    return 0 if understood else EXIT_FAILED


@contextmanager
def _batch_lines(path: str) -> Iterator[Iterable[bytes]]:
    if path == "-":
        yield sys.stdin.buffer if sys.stdin is not None else ()
        return
    try:
        file = Path(path).open("rb")  # noqa: SIM115 - closed below; what fails while it is read is not this file's fault
    except OSError as error:
        raise UsageError(f"--batch {path}: {error.strerror}") from error
    with file:
        yield file
