"""A request rendered by llama.cpp's rules, by the reference, or by both: what `capscan render` answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from scanner.chat.json_text import JsonTextError, parse_json
from scanner.chat.prompt import Prompt, make_prompt
from scanner.chat.selection import DEFAULT, select_of_file
from scanner.chat.server import USUAL, Vocabulary
from scanner.clock import seconds_of
from scanner.dialect import RenderedPart, RenderResult
from scanner.errors import UsageError
from scanner.reference import ErrorKind, ReferenceProcess, ReferenceResult, variables_of_request
from scanner.results import ChatTemplate, FileResult, ModelFile, Outcome, SourceKind
from scanner.serving import Serving, ServingError, serve

LLAMA_CPP, JINJA2, BOTH = "llama.cpp", "jinja2", "both"
"""The engines of `--engine`."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """A request under the engines that were asked for; None for one that was not. `unserved`: why llama.cpp gives no
    prompt for any request."""

    prompt: Prompt | None = None
    reference: ReferenceResult | None = None
    serving: Serving | None = None
    unserved: str | None = None

    @property
    def ok(self) -> bool:
        """Whether every engine asked gave a prompt, and both the same one."""
        asked = [answer for answer in (self.prompt, self.reference) if answer is not None]
        return self.unserved is None and all(answer.ok for answer in asked) and self.difference is None

    @property
    def difference(self) -> int | None:
        """The first byte at which two prompts differ; None where they are equal or there are not two."""
        if self.prompt is None or self.reference is None or not (self.prompt.ok and self.reference.ok):
            return None
        ours, theirs = self.prompt.prompt, encoded(self.reference)
        if ours == theirs:
            return None
        pairs = enumerate(zip(ours, theirs, strict=False))
        return next((at for at, (one, other) in pairs if one != other), min(len(ours), len(theirs)))


def encoded(reference: ReferenceResult) -> bytes:
    """The reference's output as bytes."""
    return reference.output.encode("utf-8", "surrogateescape")


def render(
    result: FileResult,
    body: Mapping[str, Any],
    vocabulary: Vocabulary,
    *,
    engine: str = LLAMA_CPP,
    now: float | None = None,
) -> Rendered:
    """A request body under one engine, or both. Raises `ServingError` where llama.cpp alone was asked and no server can
    be made of the file's templates."""
    if engine == LLAMA_CPP:
        serving = serve(result, vocabulary, now=now)
        return Rendered(make_prompt(serving.server, body, now=now), serving=serving)
    reference = render_reference(result, body, vocabulary, now=now)
    if engine == JINJA2:
        return Rendered(reference=reference)
    try:
        serving = serve(result, vocabulary, now=now)
    except ServingError as error:
        return Rendered(reference=reference, unserved=str(error))
    return Rendered(make_prompt(serving.server, body, now=now), reference, serving)


def render_reference(
    result: FileResult, body: Mapping[str, Any], vocabulary: Vocabulary, *, now: float | None = None
) -> ReferenceResult:
    """A request body as a person would hand it to `apply_chat_template`, in a process of its own."""
    try:
        variables = variables_of_request(body, bos=vocabulary.bos, eos=vocabulary.eos)
    except ValueError as error:
        return ReferenceResult.failed(ErrorKind.RUNTIME, f"no conversation: {error}")
    template = reference_template(result, uses_tools=bool(body.get("tools")))
    with ReferenceProcess() as process:
        (rendered,) = process.render_all(template.source, [variables], now=now)
    return rendered


def reference_template(result: FileResult, *, uses_tools: bool) -> ChatTemplate:
    """The variant that transformers picks: `tool_use` for requests with tools if there is one. It knows no patches."""
    selection = select_of_file(result)
    return selection.tool_use if uses_tools and selection.tool_use is not None else selection.default


# -- as JSON -----------------------------------------------------------------------------------------------------------


def rendered_document(rendered: Rendered) -> dict[str, object]:
    """What `render --format json` prints."""
    document: dict[str, object] = {}
    if rendered.unserved is not None:
        document[LLAMA_CPP] = {"error": rendered.unserved, "changes": []}
    if rendered.prompt is not None and rendered.serving is not None:
        document[LLAMA_CPP] = {
            **prompt_document(rendered.prompt),
            "variant": rendered.prompt.variant,
            "handler": rendered.prompt.handler,
            "warnings": list(rendered.prompt.warnings),
            "parts": [part_document(part) for part in rendered.prompt.parts],
            "server_starts": rendered.serving.start.ok,
        }
    if rendered.reference is not None:
        error = rendered.reference.error
        document[JINJA2] = (
            {"prompt": rendered.reference.output}
            if error is None
            else {"error": error.message, "kind": str(error.kind), "line": error.line}
        )
    if LLAMA_CPP in document and JINJA2 in document:
        document["equal"] = rendered.ok
        document["first_difference"] = rendered.difference
    return document


def prompt_document(prompt: Prompt) -> dict[str, object]:
    """`prompt` or `error` (with its place and cause), and `changes`."""
    changes = [{"step": str(change.step), "message": change.message, "text": change.text} for change in prompt.changes]
    if prompt.error is None:
        return {"prompt": text_of(prompt.prompt), "changes": changes}
    error = prompt.error
    return {
        "error": error.text,
        "not_examined": error.is_limit,
        "error_message": error.message,
        "line": error.line,
        "column": error.column,
        "caused_by": error.caused_by,
        "changes": changes,
    }


def raw_document(result: RenderResult) -> dict[str, object]:
    """What `render --raw --format json` prints."""
    if result.error is None:
        return {"prompt": text_of(result.output), "parts": [part_document(part) for part in result.parts]}
    error = result.error
    return {
        "error": error.message,
        "kind": str(error.kind),
        "node": error.node,
        "line": error.line,
        "column": error.column,
    }


def part_document(part: RenderedPart) -> dict[str, object]:
    """A piece of a prompt and its origin."""
    return {"text": text_of(part.text), "is_input": part.is_input}


def text_of(data: bytes) -> str:
    """Prompt bytes as text; llama.cpp's server replaces what is not UTF-8 as well."""
    return data.decode("utf-8", "replace")


# -- many at once ------------------------------------------------------------------------------------------------------

BATCH_KEYS = {"template", "request", "bos", "eos", "add_bos", "add_eos", "now"}


def render_lines(lines: Iterable[bytes], *, default_now: float | None) -> Iterator[tuple[dict[str, object], bool]]:
    """The answer to each line of a batch, in order, and whether the line could be understood."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield _render_line(_batch_item(line), default_now), True
        except UsageError as error:
            yield {"error": f"line {number}: {error}", "changes": []}, False
        except ServingError as error:
            yield {"error": str(error), "changes": []}, True


def _batch_item(line: bytes) -> dict[str, Any]:
    try:
        item = parse_json(line)
    except JsonTextError as error:
        raise UsageError(f"not JSON: {error.message}") from error
    if not isinstance(item, dict):
        raise UsageError("not a JSON object")
    for key, kind, name in (("template", str, "text"), ("request", dict, "an object")):
        if not isinstance(item.get(key), kind):
            raise UsageError(f"`{key}` has to be {name}")
    unknown = sorted(set(item) - BATCH_KEYS)
    if unknown:
        raise UsageError(f"unknown key `{unknown[0]}`; known are {', '.join(sorted(BATCH_KEYS))}")
    return item


def _render_line(item: Mapping[str, Any], default_now: float | None) -> dict[str, object]:
    moment = item.get("now")
    try:
        now = default_now if moment is None else seconds_of(moment)
    except ValueError as error:
        raise UsageError(f"`now`: {error}") from error
    vocabulary = Vocabulary(
        _text(item, "bos", USUAL.bos),
        _text(item, "eos", USUAL.eos),
        _boolean(item, "add_bos"),
        _boolean(item, "add_eos"),
    )
    serving = _serving_of(item["template"], vocabulary, now)
    if isinstance(serving, ServingError):
        raise serving
    document = prompt_document(make_prompt(serving.server, item["request"], now=now))
    return document if serving.start.ok else {**document, "server_starts": False}


def _text(item: Mapping[str, Any], key: str, default: str) -> str:
    value = item.get(key, default)
    if not isinstance(value, str):
        raise UsageError(f"`{key}` has to be text")
    return value


def _boolean(item: Mapping[str, Any], key: str) -> bool:
    value = item.get(key, False)
    if not isinstance(value, bool):
        raise UsageError(f"`{key}` has to be true or false")
    return value


@lru_cache(maxsize=64)
def _serving_of(template: str, vocabulary: Vocabulary, now: float | None) -> Serving | ServingError:
    """The error as a value, so that it is kept as well."""
    try:
        return serve(bare_template(template.encode("utf-8", "surrogateescape")), vocabulary, now=now)
    except ServingError as error:
        return error


def bare_template(source: bytes) -> FileResult:
    """A template without a model file."""
    file = ModelFile("-", "-", SourceKind.JINJA, len(source), 0, "")
    return FileResult(file, Outcome.ANALYSED, (ChatTemplate(DEFAULT, source, "standard input"),))
