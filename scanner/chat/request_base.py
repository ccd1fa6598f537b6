"""What the reading of messages, of tools and of the other fields of a request has in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from scanner.chat.json_text import dump_json

Message: TypeAlias = dict[str, Any]
"""A message as JSON: `role`, `content` (text, or a list of typed parts), and what else it has, in llama.cpp's order."""

Tool: TypeAlias = dict[str, Any]
"""A tool as JSON: `type` and `function`, which has `name`, `description` and `parameters`."""

BAD_REQUEST, SERVER_ERROR = 400, 500
"""The HTTP codes of llama-server's refusals; which error has which says little about whose fault it is."""


class RequestError(Exception):
    """A request that the server refuses; the text is the server's.

    `message` is the index of the message at fault, None where no single one is. `status` is the HTTP code.
    """

    def __init__(self, text: str, message: int | None = None, *, status: int = BAD_REQUEST) -> None:
        super().__init__(text)
        self.text = text
        self.message = message
        self.status = status


class RequestLimitError(RequestError):
    """A request that Capscan does not take up, while the server may: nested too deep, or no JSON at all. The text is
    ours and says so."""


class Refusal(Exception):  # noqa: N818 - on its way to a RequestError
    """Why a part of a request is refused, in llama.cpp's words but without what it puts before and after them."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


@dataclass(slots=True)
class Notes:
    """Collects what was changed or dropped: (text, index of the message or None)."""

    entries: list[tuple[str, int | None]] = field(default_factory=list)
    message: int | None = None

    def add(self, text: str) -> None:
        """Something was changed, at the message that is being read."""
        self.entries.append((text, self.message))

    def dropped(self, given: Mapping[str, Any], known: Iterable[str], owner: str = "") -> None:
        """Name the keys that nobody reads; `owner` says whose they are, with the blank before it."""
        unknown = [shown(name) for name in given if name not in known]
        if unknown:
            self.add(f"{'key' if len(unknown) == 1 else 'keys'} {', '.join(unknown)} dropped{owner}")


def shown(text: str) -> str:
    """A name as it stands in a note: as it is if it looks like one, else quoted, and never long."""
    short = text if len(text) <= 40 else text[:40] + "…"
    return short if short.isidentifier() else dump_json(short)


def type_name(value: Any) -> str:
    """The type of a JSON value, as llama.cpp's JSON library names it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "object" if isinstance(value, Mapping) else "array"


def string_of(value: Any) -> str:
    """The value if it is a string. Raises Refusal for any other, null included."""
    if not isinstance(value, str):
        raise Refusal(wrong_type("string", value))
    return value


def wrong_type(wanted: str, value: Any) -> str:
    """What the library says of a value of another type than the wanted one."""
    return f"[json.exception.type_error.302] type must be {wanted}, but is {type_name(value)}"


def item_of(given: Mapping[str, Any], key: str) -> Any:
    """The value of a key that has to be there. Raises Refusal where it is not."""
    if key not in given:
        raise Refusal(f"[json.exception.out_of_range.403] key '{key}' not found")
    return given[key]
