"""Writes a report into a folder: pages as HTML, the same as JSON beside them, and the two static files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from datetime import date, datetime
from importlib.resources import files as package_files
from pathlib import Path

from sqlalchemy import Engine

from reports import pages
from reports.folder import ReportFolder
from reports.overview import AllNotes, Overview, TemplateNotes, notes_of, page_id, read_overview
from reports.render import render_page
from scanner.results import CAPABILITIES
from scanner.store import queries

STATIC = ("style.css", "report.js")


@dataclass(frozen=True, slots=True)
class ReportSummary:
    """What was written: the first page to open, pages, bytes of the whole report, pages that were left as they were
    because they say the same, and files of a former report that were removed."""

    index: Path
    pages: int
    bytes: int
    unchanged: int
    removed: int


def write_report(engine: Engine, directory: Path, *, now: Callable[[], datetime]) -> ReportSummary:
    """Writes the report of a database (its schema current) into `directory`, which is made if it is not there.

    The pages are a function of what is stored; `now` (aware) goes into the manifest only. A page that would not
    change is not written again; files of a former report that are no longer needed are removed, never others.
    Raises UsageError when there is no scan yet, or when a file in the folder that no report wrote is in the way;
    DatabaseError when the database fails; OSError when a file cannot be written.
    """
    overview = read_overview(engine)
    names = _page_names(overview)
    static = {f"static/{name}": _static(name) for name in STATIC}
    folder = ReportFolder(directory, now)
    folder.claim([*static, *(f"{name}.{kind}" for name in names for kind in ("html", "json"))])
    for name, content in static.items():
        folder.write(name, content)
    written = 0
    for name, page in _pages(engine, overview):
        changed = [folder.write(f"{name}.html", _html(page)), folder.write(f"{name}.json", _json(page))]
        written += any(changed)
    removed = folder.finish()
    return ReportSummary(directory / "index.html", len(names), folder.bytes, len(names) - written, removed)


def _page_names(overview: Overview) -> tuple[str, ...]:
    """The pages, without the ends of their names, before any of them is made."""
    lists = ("index", "models", "findings", "failures", "changes", "combinations")
    templates = sorted({template.sha256 for template in overview.templates})
    return (
        *lists,
        *(f"capabilities/{name}" for name in CAPABILITIES),
        *(f"templates/{page_id(sha256)}" for sha256 in templates),
    )


def _pages(engine: Engine, overview: Overview) -> Iterator[tuple[str, pages.Page]]:
    """Templates first, one at a time: the lists repeat only their findings and reasons."""
    notes: dict[tuple[str, str], TemplateNotes] = {}
    for sha256 in sorted({template.sha256 for template in overview.templates}):
        detail = queries.template_detail(engine, sha256)
        noted = notes_of(detail)
        notes |= noted
        yield f"templates/{page_id(sha256)}", pages.template_page(overview, detail, noted)
    yield from _lists(overview, notes)


def _lists(overview: Overview, notes: AllNotes) -> Iterator[tuple[str, pages.Page]]:
    yield "index", pages.index_page(overview, notes)
    yield "models", pages.models_page(overview)
    yield "findings", pages.findings_page(overview, notes)
    yield "failures", pages.failures_page(overview)
    yield "changes", pages.changes_page(overview)
    yield "combinations", pages.combinations_page(overview, notes)
    for page in pages.capability_pages(overview, notes):
        yield f"capabilities/{page.capability}", page


def _html(page: pages.Page) -> bytes:
    return render_page(page).encode()


def _json(page: pages.Page) -> bytes:
    # ASCII only: JSON's escapes carry lone surrogates and characters that reorder text without harm.
    return json.dumps(page, default=_jsonable, separators=(",", ":")).encode("ascii") + b"\n"


def _jsonable(value: object) -> object:
    """As `dataclasses.asdict`, but without its deep copies: they would take longer than all else together."""
    names = _field_names(type(value))
    if names:
        return {name: getattr(value, name) for name in names}
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError(f"not for JSON: {type(value).__name__}")


def _field_names(kind: type) -> tuple[str, ...]:
    """The fields of a dataclass, looked up once for each; none for another type."""
    if kind not in _FIELD_NAMES:
        _FIELD_NAMES[kind] = tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()
    return _FIELD_NAMES[kind]


_FIELD_NAMES: dict[type, tuple[str, ...]] = {}


def _static(name: str) -> bytes:
    return package_files("reports").joinpath("static", name).read_bytes()
