"""Standard conversations under llama.cpp and in Python Jinja2 as transformers renders them.

The reference gets what llama-server would set of itself, so that a difference is the template's or the engine's, not
that of two callers: `enable_thinking` as the server has it, `datetime` and `date_string` (`chat.md` section 3, step 9).
BOS and EOS that the tokenizer adds are cut from both. What else llama.cpp does to messages (arguments left as text, the
system message of a template that reads none put before the next) is a difference and stays one.

Two conversations are compared and do not count for the outcome, since the template is not what makes the difference.
A last message of the assistant is continued by both, by transformers with `continue_final_message`; what stands before
the words is llama.cpp's own invention. And llama.cpp makes one string of text parts before a template sees them that
takes strings only, where Jinja2 fails or prints a list: `parts_join` tells.
"""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from scanner.chat.parts import common_prefix
from scanner.chat.scenarios import SCENARIOS
from scanner.chat.server import Server, Vocabulary
from scanner.chat.variables import dates
from scanner.probe.behaviours.asking import Requests
from scanner.probe.behaviours.base import (
    MAX_EVIDENCE,
    SEPARATOR,
    Answer,
    Failure,
    Inquiry,
    NotExaminedError,
    shortened,
)
from scanner.probe.behaviours.outcomes import (
    BOTH_FAIL,
    DIFFERS,
    EQUAL,
    NOT_EXAMINED,
    ONLY_LLAMA_CPP_FAILS,
    ONLY_REFERENCE_FAILS,
)
from scanner.results import Behaviour, StandardRender

KEY = "reference"
LLAMA_CPP, JINJA2 = "llama.cpp", "jinja2"
"""The engines of a `StandardRender`."""
LIMITED = f"{NOT_EXAMINED}: "
"""Begins the error of a render that a budget of ours ended."""
LIMIT_KIND = "limit"
"""The kind of such an error of the reference."""

CONTINUED = "prefill"
STANDARD: Sequence[str] = (
    *("user", "system", "late-system", "text-parts", "turns", "tools", "tool-call", "parallel-calls"),
    *("nested-arguments", "reasoning", "reasoning-call", CONTINUED),
)
"""The standard conversations that are kept and shown side by side: names of `SCENARIOS`."""
PARTS = "text-parts"
NOT_COUNTED = (PARTS, CONTINUED)

WORST_FIRST = (ONLY_LLAMA_CPP_FAILS, DIFFERS, ONLY_REFERENCE_FAILS, NOT_EXAMINED, EQUAL, BOTH_FAIL)
"""Where both engines fail they agree, so that is an outcome only where nothing is rendered at all."""
NOT_CONTINUED = "the final message does not appear in the chat: transformers cannot continue it"


class ReferenceFailure(Protocol):
    """Why the reference gave no output."""

    @property
    def kind(self) -> str:
        """`syntax`, `raised`, `runtime` or `limit`."""

    @property
    def message(self) -> str:
        """Jinja2's own text."""

    @property
    def line(self) -> int | None:
        """The template's line."""


class ReferenceOutcome(Protocol):
    """A render of the reference (`scanner.reference.ReferenceResult` is one)."""

    @property
    def output(self) -> str:
        """What it printed."""

    @property
    def error(self) -> ReferenceFailure | None:
        """Why it failed; None where it did not."""


References: TypeAlias = Mapping[str, ReferenceOutcome]
"""Names of standard conversations → what the reference made of them."""


def reference_requests(server: Server, *, now: float) -> Mapping[str, Mapping[str, Any]]:
    """The bodies of the standard conversations for the reference, by name. `now`: seconds since the epoch."""
    given = {"enable_thinking": server.enable_thinking, **dates(now)}
    return {name: _for_reference(name, given) for name in STANDARD}


def _for_reference(name: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
    body = SCENARIOS[name].body
    continued = {"add_generation_prompt": False} if name == CONTINUED else {}
    return {**body, **continued, "chat_template_kwargs": {**given, **body.get("chat_template_kwargs", {})}}


def standard_renders(requests: Requests, references: References) -> tuple[StandardRender, ...]:
    """The standard conversations under both engines, one behind the other; under llama.cpp only where `references`
    does not have them."""
    renders = []
    for name in STANDARD:
        renders.append(llama_cpp_render(requests, name))
        if name in references:
            renders.append(reference_render(name, references[name], requests.server.vocabulary))
    return tuple(renders)


def llama_cpp_render(requests: Requests, name: str) -> StandardRender:
    """A standard conversation as llama-server would render it."""
    try:
        answer = requests.ask(Inquiry(f"standard {name}", SCENARIOS[name].body))
    except NotExaminedError as limit:
        return StandardRender(LLAMA_CPP, name, error=f"{LIMITED}{limit}")
    if answer.failure is not None:
        return StandardRender(LLAMA_CPP, name, error=_placed(answer.failure))
    return StandardRender(LLAMA_CPP, name, answer.text, inputs=tuple(_inputs(answer)))


def _inputs(answer: Answer) -> Iterator[tuple[int, int]]:
    """The ranges of characters of a prompt that came from the request; a character may end in another part than it
    began in."""
    decoder = getincrementaldecoder("utf-8")("replace")
    at = 0
    for part in answer.parts:
        size = len(decoder.decode(part.text))
        if part.is_input and size:
            yield at, at + size
        at += size


def reference_render(name: str, reference: ReferenceOutcome, vocabulary: Vocabulary) -> StandardRender:
    """A standard conversation as transformers would render it."""
    error = reference.error
    if error is not None:
        limited = LIMITED if error.kind == LIMIT_KIND else ""
        return StandardRender(JINJA2, name, error=limited + _placed(Failure(error.message, error.line)))
    output = reference.output.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if vocabulary.add_bos:
        output = output.removeprefix(vocabulary.bos)
    if vocabulary.add_eos:
        output = output.removesuffix(vocabulary.eos)
    if name != CONTINUED:
        return StandardRender(JINJA2, name, output)
    cut = continued(output, str(SCENARIOS[name].body["messages"][-1]["content"]))
    return StandardRender(JINJA2, name, error=NOT_CONTINUED) if cut is None else StandardRender(JINJA2, name, cut)


def continued(output: str, final: str) -> str | None:
    """A render cut behind its final message, as `continue_final_message` of transformers does; None where that message
    is not in it."""
    at = output.rfind(final.strip())
    return None if at < 0 else output[: at + len(final.strip())]


def _placed(failure: Failure) -> str:
    line = "" if failure.line is None else f" (line {failure.line})"
    return f"{shortened(failure.message)}{line}"


# -- the verdict -------------------------------------------------------------------------------------------------------


def reference(renders: Sequence[StandardRender]) -> Behaviour:
    """Both engines' standard renders, compared byte by byte. The outcome is the worst of those that count; the detail
    has each conversation, as `user equal · tools differs at byte 120 · late-system both fail · not counted: prefill
    equal`. Raises `NotExaminedError` where there are no renders of the reference."""
    ours = {render.scenario: render for render in renders if render.engine == LLAMA_CPP}
    theirs = {render.scenario: render for render in renders if render.engine == JINJA2}
    names = [name for name in STANDARD if name in ours and name in theirs]
    found = {name: compare(ours[name], theirs[name]) for name in names}
    counted = [name for name in names if name not in NOT_COUNTED]
    if not counted:
        raise NotExaminedError("no reference renders")
    outcome = min([found[name] for name in counted], key=WORST_FIRST.index)
    said = []
    for name in [*counted, *[name for name in names if name in NOT_COUNTED]]:
        prefix = "not counted: " if name in NOT_COUNTED else ""
        place = f" at byte {_difference(ours[name], theirs[name])}" if found[name] == DIFFERS else ""
        said.append(f"{prefix}{name} {found[name]}{place}")
    shown = next(name for name in counted if found[name] == outcome)
    return Behaviour(KEY, outcome, SEPARATOR.join(said), _side_by_side(ours[shown], theirs[shown]))


def compare(ours: StandardRender, theirs: StandardRender) -> str:
    """The outcome for one conversation."""
    errors = (ours.error, theirs.error)
    if any(error is not None and error.startswith(LIMITED) for error in errors):
        return NOT_EXAMINED
    if ours.error is not None:
        return BOTH_FAIL if theirs.error is not None else ONLY_LLAMA_CPP_FAILS
    if theirs.error is not None:
        return ONLY_REFERENCE_FAILS
    return EQUAL if ours.output == theirs.output else DIFFERS


def joined_parts(renders: Sequence[StandardRender]) -> str | None:
    """What the reference puts between the two text parts of the standard conversation about them; None where that is
    not known."""
    first, second = [part["text"] for part in SCENARIOS[PARTS].body["messages"][0]["content"]]
    for render in renders:
        if render.engine == JINJA2 and render.scenario == PARTS:
            start, end = render.output.find(first), render.output.rfind(second)
            if start >= 0 and start + len(first) <= end:
                return render.output[start + len(first) : end]
    return None


def _difference(ours: StandardRender, theirs: StandardRender) -> int:
    return common_prefix(ours.output.encode(), theirs.output.encode())


def _side_by_side(ours: StandardRender, theirs: StandardRender) -> str:
    """Both around the place where they differ."""
    room = MAX_EVIDENCE // 2 - 40
    place = len(ours.output.encode()[: _difference(ours, theirs)].decode("utf-8", "ignore"))
    start = max(0, place - room // 2)
    pieces = []
    for render in (ours, theirs):
        text = f"error: {render.error[:room]}" if render.error is not None else render.output[start : start + room]
        pieces.append(f"{render.scenario} in {render.engine}:\n{text}")
    return "\n\n".join(pieces)
