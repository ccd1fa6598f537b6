"""From a model's templates to the server that llama.cpp would make of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from scanner.chat.patches import patch
from scanner.chat.selection import TOOL_USE, Selection, select_of_file
from scanner.chat.server import USUAL, Loaded, Server, Vocabulary
from scanner.chat.start import Start, start
from scanner.dialect import DEFAULT_LIMITS, Limits, SyntaxKind, Template, TemplateSyntaxError
from scanner.errors import CapscanError
from scanner.extract.gguf_tokens import GgufMetadata
from scanner.probe.capabilities import limit_of, probe
from scanner.probe.profiles import CURRENT
from scanner.results import FileResult, ModelMetadata, SpecialToken


class ServingError(CapscanError):
    """No server can be made of the templates: the default does not parse."""

    slug = "serving"


class NotExaminedError(ServingError):
    """A budget of ours ran out, which says nothing about llama.cpp."""

    slug = "not-examined"


@dataclass(frozen=True, slots=True)
class Serving:
    """A server, whether it would start, and which of the file's templates it took."""

    server: Server
    start: Start
    selection: Selection


def serve(
    result: FileResult,
    vocabulary: Vocabulary | None = None,
    *,
    now: float | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Serving:
    """What llama-server makes of an extracted model file, with that file's `vocabulary` or another. Raises
    `ServingError`."""
    unparseable = [
        template.variant
        for template in result.templates
        if template.variant == TOOL_USE and not parses(template.source, limits)
    ]
    selection = select_of_file(result, unparseable)
    default = load(patch(selection.default.source).source, now=now, limits=limits)
    tool_use = None if selection.tool_use is None else load(selection.tool_use.source, now=now, limits=limits)
    server = Server(default, tool_use, vocabulary or vocabulary_of(result.metadata))
    started = start(server, now=now, limits=limits)
    return Serving(replace(server, enable_thinking=started.enable_thinking is not False), started, selection)


def load(source: bytes, *, now: float | None = None, limits: Limits = DEFAULT_LIMITS) -> Loaded:
    """A template parsed and probed. Raises `ServingError`."""
    try:
        template = Template(source, limits=limits)
    except TemplateSyntaxError as error:
        if error.kind is SyntaxKind.LIMIT:
            raise NotExaminedError(f"not examined, a limit was exceeded: {error}") from error
        raise ServingError(f"llama-server would not start, the template does not parse: {error}") from error
    capabilities, runs = probe(template, CURRENT, now=now, limits=limits)
    exceeded = limit_of(runs)
    if exceeded is not None:
        raise NotExaminedError(f"not examined, a limit was exceeded while it was probed: {exceeded.message}")
    return Loaded(template, capabilities)


def vocabulary_of(metadata: ModelMetadata) -> Vocabulary:
    """The tokens of a model file, as llama.cpp uses them where that is known; those of a bare template where the file
    names none at all."""
    used = metadata.used if isinstance(metadata, GgufMetadata) else None
    bos, eos = (metadata.bos, metadata.eos) if used is None else (used.bos, used.eos)
    if bos == eos == SpecialToken():
        return USUAL
    return Vocabulary(bos.text or "", eos.text or "", bool(bos.added), bool(eos.added))


def parses(source: bytes, limits: Limits = DEFAULT_LIMITS) -> bool:
    """Whether llama.cpp can parse a template, as far as our own limits let us tell."""
    try:
        Template(source, limits=limits)
    except TemplateSyntaxError as error:
        return error.kind is SyntaxKind.LIMIT
    return True
