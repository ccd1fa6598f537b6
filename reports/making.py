"""Makes and writes the pages of single templates, and of two compared: most of a report, and each by itself.

Where there are many, worker processes share them; what comes back is what the pages about all templates repeat.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sqlalchemy import Engine

from reports import pages
from reports.overview import AllNotes, Overview, notes_of, page_id
from reports.page_files import Written, write_page
from reports.pages.compare import Side, compare_id, side_of
from reports.pages.template import Relative, main_analysis
from scanner.processes import calm_collector, end_with_parent
from scanner.store import queries
from scanner.store.queries import TemplateDetail
from scanner.store.session import open_database

FEW = 60
"""Templates that are made here and now: to start processes for them would take longer."""
AT_ONCE = 8
"""Pages that a worker process is given at once."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is common to all pages: the overview, the folder, and the relatives of each template by its SHA-256."""

    directory: Path
    overview: Overview
    relatives: Mapping[str, tuple[Relative, ...]]
    scan_id: int | None


@dataclass(frozen=True, slots=True)
class MadeTemplate:
    """A template's page was written; its `notes` and its `side` are for other pages."""

    written: Written
    notes: AllNotes
    side: Side


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two templates to compare, and why."""

    left: Side
    right: Side
    relation: str


class Makers(Protocol):
    """Who makes pages, one after the other or several at once; what comes back is in the order of what was given."""

    def templates(self, sha256s: Sequence[str]) -> Iterable[MadeTemplate]:
        """Makes the pages of these templates. Raises DatabaseError, and OSError when a file cannot be written."""

    def comparisons(self, pairs: Sequence[Comparison]) -> Iterable[Written]:
        """Makes the pages of these pairs. Raises OSError when a file cannot be written."""


class Maker:
    """Makes one page at a time."""

    def __init__(self, plan: Plan, engine: Engine) -> None:
        self._plan = plan
        self._engine = engine

    def templates(self, sha256s: Sequence[str]) -> Iterator[MadeTemplate]:
        """As `Makers`."""
        return map(self.template, sha256s)

    def comparisons(self, pairs: Sequence[Comparison]) -> Iterator[Written]:
        """As `Makers`."""
        return map(self.comparison, pairs)

    def template(self, sha256: str) -> MadeTemplate:
        """Makes the page of one template."""
        plan = self._plan
        detail = queries.template_detail(self._engine, sha256, plan.scan_id)
        notes = notes_of(detail)
        page = pages.template_page(plan.overview, detail, notes, plan.relatives.get(sha256, ()))
        written = write_page(plan.directory, f"templates/{page_id(sha256)}", page, plan.overview.old_scan)
        return MadeTemplate(written, notes, _side(plan.overview, detail))

    def comparison(self, pair: Comparison) -> Written:
        """Makes the page of one pair."""
        name = compare_id(pair.left.shown.sha256, pair.right.shown.sha256)
        page = pages.compare_page(pair.left, pair.right, pair.relation)
        return write_page(self._plan.directory, f"compare/{name}", page, self._plan.overview.old_scan)


def side_in(engine: Engine, overview: Overview, sha256: str) -> Side:
    """The side of a template that has no page of its own. Raises DatabaseError."""
    return _side(overview, queries.template_detail(engine, sha256))


def _side(overview: Overview, detail: TemplateDetail) -> Side:
    analysis = main_analysis(detail, overview.scan.scan.profile)
    return side_of(overview, detail.sha256, detail.source, analysis)


@contextmanager
def makers(plan: Plan, engine: Engine, *, workers: int, templates: int) -> Iterator[Makers]:
    """Who makes the pages of so many templates: this process, or so many worker processes."""
    if workers < 2 or templates <= FEW or engine.url.database in (None, "", ":memory:"):
        yield Maker(plan, engine)
        return
    # A fresh interpreter a worker: a forked one would share this one's database connections.
    context = multiprocessing.get_context("spawn")
    url = engine.url.render_as_string(hide_password=False)
    with ProcessPoolExecutor(workers, context, _prepare, (plan, url, os.getpid())) as pool:
        try:
            yield _Pool(pool)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


class _Pool:
    """Hands pages to worker processes."""

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._pool = pool

    def templates(self, sha256s: Sequence[str]) -> Iterable[MadeTemplate]:
        return self._pool.map(_template, sha256s, chunksize=AT_ONCE)

    def comparisons(self, pairs: Sequence[Comparison]) -> Iterable[Written]:
        return self._pool.map(_comparison, pairs, chunksize=AT_ONCE)


_here: list[Maker] = []
"""The maker of a worker process, once it is prepared."""


def _prepare(plan: Plan, url: str, parent: int) -> None:
    # Ctrl-C is for the parent, which ends its workers itself; one that is killed cannot.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent(parent)
    calm_collector()
    _here.append(Maker(plan, open_database(url)))


def _template(sha256: str) -> MadeTemplate:
    return _here[0].template(sha256)


def _comparison(pair: Comparison) -> Written:
    return _here[0].comparison(pair)
