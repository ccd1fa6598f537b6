"""What all judges share: requests, what became of them, and how a behaviour is put into words.

A judge asks `Prompts` and looks at nothing else, so that one and the same judge works on our own prompts and on those
of a real server (`tests/behaviour_oracle.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from scanner.dialect import RenderedPart
from scanner.probe.behaviours.outcomes import RAISES
from scanner.probe.markers import Sight, pattern, sight
from scanner.results import Behaviour

MAX_EVIDENCE = 2000
"""Characters of a render that are kept as evidence."""
MAX_MESSAGE = 400
"""Characters of an error's message that a detail repeats."""
MAX_QUOTE = 60
"""Characters of a differing text that a detail shows."""
SEPARATOR = " · "
"""Between the parts of a detail."""


@dataclass(frozen=True, slots=True)
class Inquiry:
    """A request under a name of its own; `later`: it is put a day later than the others."""

    name: str
    body: Mapping[str, Any]
    later: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a request gave no prompt: the innermost message, the template's line where one is to blame, and the whole
    text as the server answers it."""

    message: str
    line: int | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a request: a prompt, or why there is none. `parts` say which text came from the request; a real
    server does not tell."""

    prompt: bytes = b""
    failure: Failure | None = None
    parts: tuple[RenderedPart, ...] = ()

    @property
    def text(self) -> str:
        """The prompt as text."""
        return self.prompt.decode("utf-8", "replace")


class NotExaminedError(Exception):
    """A budget of ours ran out, so there is no answer; the text says which."""


class Prompts(Protocol):
    """Whoever answers requests with prompts."""

    def ask(self, inquiry: Inquiry, /) -> Answer:
        """The answer to a request. Raises `NotExaminedError`."""


Judge: TypeAlias = Callable[[Prompts], Behaviour]


def position(text: str, marker: str) -> int:
    """Where a marker first stands in a text (from 0); -1 where it does not, or only in a dump of its message part."""
    found = pattern(marker).search(text)
    return found.start() if found is not None and sight(marker, text) is Sight.PRINTED else -1


def end_of(text: str, marker: str) -> int:
    """Where the first of a marker ends; -1 where it is absent."""
    found = pattern(marker).search(text)
    return found.end() if found is not None else -1


def between(text: str, first: str, second: str) -> str | None:
    """What stands between two markers; None unless both are there in this order."""
    start = end_of(text, first)
    found = pattern(second).search(text, start) if start >= 0 else None
    return None if found is None else text[start : found.start()]


def common_suffix(one: str, other: str) -> str:
    """What two texts share at their end."""
    size = 0
    while size < min(len(one), len(other)) and one[-1 - size] == other[-1 - size]:
        size += 1
    return one[len(one) - size :]


def quoted(text: str | bytes, limit: int = MAX_QUOTE) -> str:
    """A text as a JSON string, cut where it is long."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    return json.dumps(text if len(text) <= limit else text[:limit] + "…", ensure_ascii=False)


def excerpt(text: str, around: int = 0) -> str:
    """A render as evidence: at most `MAX_EVIDENCE` characters, those around a place where it is longer."""
    if len(text) <= MAX_EVIDENCE:
        return text
    room = MAX_EVIDENCE - 2
    start = max(0, min(around - room // 2, len(text) - room))
    end = start + room
    return ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")


def shortened(message: str) -> str:
    """A message as a detail repeats it: it must not look like a part of the detail."""
    message = message.strip().replace(SEPARATOR, " ; ")
    return message if len(message) <= MAX_MESSAGE else message[:MAX_MESSAGE] + "…"


def raises(key: str, failure: Failure, *, which: str = "") -> Behaviour:
    """A request failed; `which` of them, where there are several."""
    said = f"{which}: {shortened(failure.message)}" if which else shortened(failure.message)
    return Behaviour(key, RAISES, said, excerpt(failure.text or failure.message), failure.line)


def worst(found: Sequence[str], order: Sequence[str]) -> str:
    """The one of these outcomes that stands first in an order."""
    return min(found, key=order.index)
