"""Whole templates: the nine flags, or the refusal to parse, by us and by the real engine.

The template is put to the server as its `tool_use` template, beside a harmless default one. A default template that
fails in the conversations a server tries out when it starts is refused, and then has no flags; a `tool_use` template
is only parsed and probed, and `/props` shows its flags. One that does not parse is ignored with a line in the log,
which says why. Patches of llama.cpp apply to default templates only, so they are applied here, before anybody is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from scanner import oracle
from scanner.chat.patches import patch
from scanner.dialect import Limits, Template, TemplateSyntaxError
from scanner.oracle import Answer, Question
from scanner.pipeline import analyse_template
from scanner.results import Outcome, TemplateResult
from tests.differential import engine
from tests.differential.compare import Comparison

HARMLESS = b"{% for message in messages %}{{ message.role }}{{ message.content }}{% endfor %}"
LIMITS = Limits(steps=200_000, output_bytes=1024 * 1024, sequence_items=50_000, call_depth=100)
"""What the real engine can do in far less than the time it is given; it has no budgets of its own."""
TIMEOUT = 30
_IGNORED = "failed to parse tool use chat template (ignoring it): "


def compare(sources: Iterable[str], workers: int) -> Iterator[Comparison]:
    """Put templates to both engines, at most `workers` servers at a time; a comparison for each, in order."""
    for batch in _batches(sources, 100 * workers):
        yield from _compare(batch, workers)


def _batches(sources: Iterable[str], size: int) -> Iterator[list[str]]:
    batch: list[str] = []
    for source in sources:
        batch.append(source)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def _compare(sources: Sequence[str], workers: int) -> Iterator[Comparison]:
    """One of ours first: what uses up a budget of ours might keep the real engine busy for ever."""
    patched = [patch(source.encode(errors="surrogateescape")).source for source in sources]
    results = [analyse_template(source, now=0, limits=LIMITS) for source in patched]
    asked = [source for source, result in zip(patched, results, strict=True) if _unasked(source, result) is None]
    answers = engine.ask_all((_question(source) for source in asked), workers=workers, timeout=TIMEOUT)
    for text, source, result in zip(sources, patched, results, strict=True):
        reason = _unasked(source, result)
        yield Comparison(text, incomparable=reason) if reason else _confirmed(text, source, result, next(answers))


def _question(source: bytes) -> Question:
    return Question(HARMLESS, named=(("tool_use", source),))


def _unasked(source: bytes, result: TemplateResult) -> str | None:
    if not source:
        return "an empty tool-use template is none"
    if result.outcome is Outcome.LIMIT_EXCEEDED:
        return "a budget of ours is used up"
    return None


def _confirmed(text: str, source: bytes, result: TemplateResult, answer: Answer) -> Comparison:
    """A difference is asked again in the oracle's own, slower way: a refusal is a line of the log, and a fork may end
    before its last line is written (seen once in ten thousand)."""
    first = _compared(text, source, result, answer)
    return _compared(text, source, result, oracle.ask(_question(source), timeout=TIMEOUT)) if first.differs else first


def _compared(text: str, source: bytes, result: TemplateResult, answer: Answer) -> Comparison:
    if answer.reason is not None:
        return Comparison(text, incomparable=answer.reason)
    return Comparison(text, _ours(result, source), _theirs(answer))


def _ours(result: TemplateResult, source: bytes) -> str:
    return _refusal(source) if result.capabilities is None else _flags(result.capabilities.as_llama_cpp())


def _refusal(source: bytes) -> str:
    """Why a source does not parse, in the very words of llama.cpp, with its excerpt."""
    try:
        Template(source)
    except TemplateSyntaxError as error:
        return f"refused: {error.engine_text}".rstrip()
    return "parses, and has no flags"


def _theirs(answer: Answer) -> str:
    for warning in answer.warnings:
        if warning.startswith(_IGNORED):
            return f"refused: {warning.removeprefix(_IGNORED)}"
    return _flags(answer.capabilities or {})


def _flags(flags: Mapping[str, bool]) -> str:
    return "flags: " + " ".join(sorted(name.removeprefix("supports_") for name, value in flags.items() if value))
