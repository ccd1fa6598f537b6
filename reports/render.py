"""Page dataclasses → HTML, and single blocks of them → HTML or Markdown.

Everything is escaped; no template text can become markup, style or script.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.runtime import Macro
from jinja2_fragments import render_block

from reports.drawing import ShareDrawing, bars, centre, draw, draw_shares
from reports.gutters import by_key
from reports.markdown import finalized, linked
from reports.marks import MARK_WORDS, mark_of
from reports.overview import OldScan
from reports.pages import (
    CapabilityPage,
    ChangesPage,
    CombinationsPage,
    ComparePage,
    FailuresPage,
    FamiliesPage,
    FindingsPage,
    IndexPage,
    ModelsPage,
    OutliersPage,
    Page,
    TemplatePage,
    TemplatesPage,
)
from reports.pages.blocks import Block, ChangesBlock, OutliersBlock, SummaryBlock
from reports.pages.changes import ChangedRow
from reports.pages.distribution import Share
from reports.pages.effort_matrix import EFFORT_MEANINGS, EFFORT_SHAPES
from reports.pages.outliers import OutlierRow
from reports.source_html import line_html, numbered, reads_html
from reports.text import line, plain, pretty, rendered, ticked, visible
from reports.words import ERROR_KINDS, LABELS, slug
from scanner.judge.verdicts import STARTING_CONVERSATIONS
from scanner.results import CAPABILITIES, Severity

_TEMPLATES: Mapping[type[Page | Block], str] = {
    IndexPage: "index.html.jinja",
    SummaryBlock: "index.html.jinja",
    OutliersBlock: "index.html.jinja",
    ChangesBlock: "index.html.jinja",
    OutliersPage: "outliers.html.jinja",
    TemplatesPage: "templates.html.jinja",
    FamiliesPage: "families.html.jinja",
    ModelsPage: "models.html.jinja",
    FailuresPage: "failures.html.jinja",
    ChangesPage: "changes.html.jinja",
    FindingsPage: "findings.html.jinja",
    CapabilityPage: "capability.html.jinja",
    CombinationsPage: "combinations.html.jinja",
    ComparePage: "compare.html.jinja",
    TemplatePage: "template.html.jinja",
}

_MARKDOWN: Mapping[type[Block], str] = {
    SummaryBlock: "summary.md.jinja",
    OutliersBlock: "outliers.md.jinja",
    ChangesBlock: "changes.md.jinja",
}

_MACROS = ("parts.html.jinja", "run_parts.html.jinja", "index_parts.html.jinja")


def render_page(page: Page, old_scan: OldScan | None = None) -> str:
    """A whole page; one of an old scan says so. It holds no lone surrogates, so it can be written as UTF-8."""
    return _environment().get_template(_TEMPLATES[type(page)]).render(_context(page), old_scan=old_scan)


def render_fragment(page: Page | Block, block: str, *, base: str | None = "") -> str:
    """One block of a page's template by itself, `main` for all but the frame. Raises jinja2_fragments'
    BlockNotFoundError for a block that it has not.

    What is made of a Block needs no stylesheet; its links lead to the report at the address `base`, None: nowhere.
    """
    return render_block(_environment(), _TEMPLATES[type(page)], block, _context(page, base))


def render_markdown(block: Block, *, base: str | None = None) -> str:
    """A block as Markdown (GitHub's, for its tables). Links as in `render_fragment`."""
    template = _markdown_environment().get_template(_MARKDOWN[type(block)])
    return template.render(page=block, address=lambda page: None if base is None else f"{base}{page}")


def _context(page: Page | Block, base: str | None = "") -> dict[str, object]:
    nested = isinstance(page, TemplatePage | CapabilityPage | ComparePage)
    return {"page": page, "up": "../" if nested else "", "base": base, "alone": isinstance(page, Block)}


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.filters.update(
        visible=visible,
        line=line,
        ticked=ticked,
        rendered=rendered,
        pretty=pretty,
        number=_number,
        moment=_moment,
        slug=slug,
        draw=draw,
        centre=centre,
        bars=bars,
        line_html=line_html,
        reads_html=reads_html,
        numbered=numbered,
        error_kind=_error_kind,
        shares=_shares,
    )
    environment.globals.update(
        CAPABILITIES=CAPABILITIES,
        LABELS=LABELS,
        MARK_WORDS=MARK_WORDS,
        SEVERITIES=tuple(Severity),
        STARTING_CONVERSATIONS=STARTING_CONVERSATIONS,
        mark_of=mark_of,
        gutters_by_key=by_key,
        EFFORT_MEANINGS=EFFORT_MEANINGS,
        EFFORT_SHAPES=EFFORT_SHAPES,
    )
    # Imported by each template they would be out of reach of a block that is rendered by itself.
    for file in _MACROS:
        parts = vars(environment.get_template(file).module)
        environment.globals.update({name: part for name, part in parts.items() if isinstance(part, Macro)})
    return environment


@lru_cache(maxsize=1)
def _markdown_environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("reports"),
        # Markdown is escaped otherwise, by what every expression passes through.
        autoescape=False,  # noqa: S701
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=finalized,
    )
    environment.filters.update(number=_number, moment=_moment, linked=linked, template_name=_template_name)
    return environment


def _template_name(row: OutlierRow | ChangedRow) -> str:
    """As the macro `named`, in plain text."""
    return row.path if row.variant in ("", "default") else f"{row.path} · {row.variant}"


def _shares(share: Share) -> ShareDrawing:
    observed = share.observed if share.judged else None
    return draw_shares(share.claiming, share.analysed, over=share.over, under=share.under, observed=observed)


def _shown(value: object) -> object:
    """What every expression passes through: text is made safe to look at, None shows as nothing."""
    if type(value) is str:
        return plain(value)
    return "" if value is None else value


def _number(value: float) -> str:
    return f"{value:,}"


def _moment(value: datetime | None) -> str:
    return "" if value is None else value.strftime("%Y-%m-%d %H:%M UTC")


def _error_kind(kind: str) -> str:
    return ERROR_KINDS.get(kind, kind)
