"""Snippets, and whole templates with conversations: what they print or say, by us and by the real engine.

Many go into one template, each behind a condition of its own, `{% if case == N %}[…]{% endif %}`, and one request asks
for each. Both engines get the very same template, so places need no conversion. The variables come through
`chat_template_kwargs`, which take precedence over whatever a server makes of a request, `messages` included. The
conversations that a server tries out when it starts have no `case`, so it always starts. The brackets keep it from
taking a BOS token off the output.

What the batch must not hold is found out by us first: what does not parse is left out (a sample of it is put to the
engine one by one), and what uses up a budget of ours. If the server still refuses or dies, the batch is halved until
the culprit stands alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from scanner import oracle
from scanner.chat.patches import patch
from scanner.dialect import RenderResult, Template, TemplateSyntaxError
from scanner.oracle import Answer, Question, Reply
from tests.differential import engine, flags, vocabulary
from tests.differential.compare import Comparison, error_text
from tests.differential.flags import LIMITS, TIMEOUT

BATCH = 60
"""Snippets in one template; more make a longer search for one that kills the engine."""
UNPARSED = "does not parse"
SAMPLE = 5
BYTES = 150_000
"""The longest template of a batch; whole chat templates add up."""

FIXED: Mapping[str, object] = {
    "bos_token": "<s>",
    "eos_token": "</s>",
    "add_generation_prompt": True,
    "enable_thinking": True,
    "datetime": "Nov 29 2026",
    "date_string": "29 Nov 2026",
}
"""What a server sets by itself, set to the same for both."""


def compare(sources: Iterable[str], workers: int) -> Iterator[Comparison]:
    """Put snippets to both engines, at most `workers` servers at a time; a comparison for each, in order."""
    batches = _batches(sources)
    while several := list(islice(batches, 8 * workers)):
        yield from _with_refusals(list(_compare_batches(several, workers)), workers)


def _with_refusals(comparisons: Sequence[Comparison], workers: int) -> Iterator[Comparison]:
    """One in `SAMPLE` of the sources that do not parse is compared after all: by the words they are refused with."""
    unparsed = [comparison.source for comparison in comparisons if comparison.incomparable == UNPARSED]
    sample = {comparison.source: comparison for comparison in flags.compare(unparsed[::SAMPLE], workers)}
    for comparison in comparisons:
        yield sample.get(comparison.source, comparison)


def variables(source: str) -> Mapping[str, object]:
    """What a source is rendered with. It depends on nothing but the source, so a shortened one can be put alone; a
    conversation with as many shapes as possible for most, another for some."""
    conversation = vocabulary.CONVERSATIONS[len(source) % len(vocabulary.CONVERSATIONS)]
    return {**vocabulary.VARIABLES, **FIXED, **conversation}


def _batches(sources: Iterable[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for source in sources:
        if batch and (len(batch) == BATCH or size + len(source) > BYTES):
            yield batch
            batch, size = [], 0
        batch.append(source)
        size += len(source)
    if batch:
        yield batch


def _compare_batches(batches: Sequence[Sequence[str]], workers: int) -> Iterator[Comparison]:
    """All batches are asked at once; those that got no whole answer are asked again by halves."""
    fit = [[source for source in batch if _unasked(source) is None] for batch in batches]
    answers = engine.ask_all((_question(batch) for batch in fit if batch), workers=workers, timeout=TIMEOUT)
    for batch, asked in zip(batches, fit, strict=True):
        compared = iter(_compared(asked, next(answers), workers) if asked else [])
        for source in batch:
            reason = _unasked(source)
            yield Comparison(source, incomparable=reason) if reason else next(compared)


def _unasked(source: str) -> str | None:
    try:
        template = Template(source, limits=LIMITS)
    except TemplateSyntaxError:
        return UNPARSED
    result = template.run(variables(source), statistics=False)
    if result.error is not None and result.error.kind == "limit":
        return "a budget of ours is used up"
    return None


def _compared(sources: Sequence[str], answer: Answer, workers: int) -> list[Comparison]:
    if answer.reason is None:
        return _compared_replies(sources, answer.replies)
    if len(sources) > 1:
        half = len(sources) // 2
        return list(_compare_batches([sources[:half], sources[half:]], workers))
    if answer.parsed:
        return [Comparison(sources[0], incomparable=answer.reason)]
    return [Comparison(sources[0], "parses", f"does not parse: {answer.reason}")]


def _compared_replies(sources: Sequence[str], replies: Sequence[Reply]) -> list[Comparison]:
    text = patch(together(sources)).source
    template = Template(text, limits=LIMITS)
    compared = []
    for number, (source, reply) in enumerate(zip(sources, replies, strict=True)):
        result = template.run({**variables(source), "case": number}, statistics=False)
        theirs = _theirs(reply, text)
        compared.append(Comparison(source, _ours(result, placed=" at " in theirs.partition(":")[0]), theirs))
    return compared


def together(sources: Sequence[str]) -> bytes:
    """One template that holds them all."""
    parts = [f"{{% if case == {number} %}}[{source}]{{% endif %}}" for number, source in enumerate(sources)]
    return "".join(parts).encode(errors="surrogateescape")


def _question(sources: Sequence[str]) -> Question:
    requests: list[Mapping[str, object]] = [
        {"messages": [vocabulary.USER], "chat_template_kwargs": {**variables(source), "case": number}}
        for number, source in enumerate(sources)
    ]
    return Question(together(sources), tuple(requests))


def _ours(result: RenderResult, *, placed: bool) -> str:
    """`placed`: the real engine says where; we always do."""
    error = result.error
    if error is None:
        return "output: " + result.output.decode("utf-8", "replace")
    return error_text("run", error.message, *((error.node, error.offset) if placed else (None, None)))


def _theirs(reply: Reply, source: bytes) -> str:
    if reply.prompt is not None:
        return "output: " + reply.prompt
    error = oracle.parse_error(reply.error or "", source)
    return error_text("run", error.message, error.node, error.offset)
