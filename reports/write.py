"""Writes a report into a folder: pages as HTML, the same as JSON beside them, and the static files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files as package_files
from pathlib import Path

from sqlalchemy import Engine

from reports import pages
from reports.comparing import Compared, compared, relatives_of
from reports.folder import ReportFolder
from reports.making import Comparison, Plan, makers, side_in
from reports.overview import AllNotes, Overview, TemplateNotes, page_id, read_overview
from reports.page_files import KINDS, Written, write_page
from reports.pages.compare import Side
from scanner.results import CAPABILITIES

LISTS = ("index", "templates", "families", "outliers", "models", "findings", "failures", "changes", "combinations")
STATIC = ("style.css", "report.js", "source.js")


@dataclass(frozen=True, slots=True)
class ReportSummary:
    """What was written: the first page to open, pages, bytes of the whole report, pages that were left as they were
    because they say the same, and files of a former report that were removed."""

    index: Path
    pages: int
    bytes: int
    unchanged: int
    removed: int


def write_report(
    engine: Engine, directory: Path, *, now: Callable[[], datetime], scan_id: int | None = None, workers: int = 1
) -> ReportSummary:
    """Writes the report of a database (its schema current) into `directory`, which is made if it is not there: of the
    newest state of all files, or with a `scan_id` of what that scan saw.

    The pages are a function of what is stored; `now` (aware) goes into the manifest only. A page that would not
    change is not written again; files of a former report that are no longer needed are removed, never others. Many
    pages are shared among `workers` processes, which import the main module again: it must not do its work then.

    Raises UsageError when there is no such scan, or none yet, or when a file in the folder that no report wrote is in
    the way; DatabaseError when the database fails; OSError when a file cannot be written.
    """
    overview = read_overview(engine, scan_id)
    found = compared(engine, overview)
    names = _page_names(overview, found)
    static = {f"static/{name}": _static(name) for name in STATIC}
    folder = ReportFolder(directory, now)
    folder.claim([*static, *(f"{name}.{kind}" for name in names for kind in KINDS)])
    for name, content in static.items():
        folder.write(name, content)
    plan = Plan(directory, overview, relatives_of(overview, found.couples), scan_id)
    changed = 0
    for written in _written(plan, engine, found, workers):
        folder.written(written.bytes)
        changed += written.changed
    removed = folder.finish()
    return ReportSummary(directory / "index.html", len(names), folder.bytes, len(names) - changed, removed)


def _page_names(overview: Overview, found: Compared) -> tuple[str, ...]:
    """The pages, without the ends of their names, before any of them is made."""
    return (
        *LISTS,
        *(f"capabilities/{name}" for name in CAPABILITIES),
        *(f"templates/{page_id(sha256)}" for sha256 in sorted(overview.sha256s)),
        *(f"compare/{couple.name}" for couple in found.couples),
    )


def _written(plan: Plan, engine: Engine, found: Compared, workers: int) -> Iterator[Written]:
    """Templates first: the lists repeat only their findings and reasons."""
    notes: dict[tuple[str, str], TemplateNotes] = {}
    sides: dict[str, Side] = {}
    shown = sorted(plan.overview.sha256s)
    with makers(plan, engine, workers=workers, templates=len(shown)) as made_by:
        for sha256, made in zip(shown, made_by.templates(shown), strict=True):
            notes |= made.notes
            sides[sha256] = made.side
            yield made.written
        former = sorted({one for couple in found.couples for one in (couple.left, couple.right)} - sides.keys())
        sides |= {sha256: side_in(engine, plan.overview, sha256) for sha256 in former}
        pairs = [Comparison(sides[couple.left], sides[couple.right], couple.relation) for couple in found.couples]
        comparing = made_by.comparisons(pairs)
        # While others compare.
        for name, page in _lists(plan.overview, notes, found):
            yield write_page(plan.directory, name, page, plan.overview.old_scan)
        yield from comparing


def _lists(overview: Overview, notes: AllNotes, found: Compared) -> Iterator[tuple[str, pages.Page]]:
    yield "index", pages.index_page(overview, notes)
    yield "templates", pages.templates_page(overview, notes)
    yield "families", pages.families_page(overview, notes, found.families, {couple.name for couple in found.couples})
    yield "outliers", pages.outliers_page(overview)
    yield "models", pages.models_page(overview, notes)
    yield "findings", pages.findings_page(overview, notes)
    yield "failures", pages.failures_page(overview)
    yield "changes", pages.changes_page(overview)
    yield "combinations", pages.combinations_page(overview, notes)
    for page in pages.capability_pages(overview, notes):
        yield f"capabilities/{page.capability}", page


def _static(name: str) -> bytes:
    return package_files("reports").joinpath("static", name).read_bytes()
