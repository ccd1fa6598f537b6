"""A page as the two files that hold it: HTML for people, and the same as JSON beside it for programs."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, is_dataclass
from datetime import date
from pathlib import Path

from reports.folder import put
from reports.overview import OldScan
from reports.pages import Page
from reports.render import render_page

KINDS = ("html", "json")


@dataclass(frozen=True, slots=True)
class Written:
    """A page that was made: whether one of its files changed, and how many bytes they hold."""

    changed: bool
    bytes: int


def write_page(directory: Path, name: str, page: Page, old_scan: OldScan | None = None) -> Written:
    """Writes both files of a page, whose name has no end, and leaves alone what holds the same already. A page of an
    old scan says so."""
    contents = (html_of(page, old_scan), json_of(page, old_scan))
    changed = [put(directory / f"{name}.{kind}", content) for kind, content in zip(KINDS, contents, strict=True)]
    return Written(any(changed), sum(map(len, contents)))


def html_of(page: Page, old_scan: OldScan | None = None) -> bytes:
    """The page for people."""
    return render_page(page, old_scan).encode()


def json_of(page: Page, old_scan: OldScan | None = None) -> bytes:
    """The page for programs; that of an old scan says so in `old_scan`."""
    content: object = page if old_scan is None else {"old_scan": old_scan, **_fields(page)}
    # ASCII only: JSON's escapes carry lone surrogates and characters that reorder text without harm.
    return json.dumps(content, default=_jsonable, separators=(",", ":")).encode("ascii") + b"\n"


def _jsonable(value: object) -> object:
    """As `dataclasses.asdict`, but without its deep copies: they would take longer than all else together."""
    if _field_names(type(value)):
        return _fields(value)
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError(f"not for JSON: {type(value).__name__}")


def _fields(value: object) -> dict[str, object]:
    return {name: getattr(value, name) for name in _field_names(type(value))}


def _field_names(kind: type) -> tuple[str, ...]:
    """The fields of a dataclass, looked up once for each; none for another type."""
    if kind not in _FIELD_NAMES:
        _FIELD_NAMES[kind] = tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()
    return _FIELD_NAMES[kind]


_FIELD_NAMES: dict[type, tuple[str, ...]] = {}
