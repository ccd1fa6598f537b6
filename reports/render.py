"""Page dataclasses → HTML. Everything is escaped; no template text can become markup, style or script."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.runtime import Macro
from jinja2_fragments import render_block

from reports.drawing import centre, draw
from reports.marks import MARK_WORDS, mark_of
from reports.pages import (
    CapabilityPage,
    ChangesPage,
    CombinationsPage,
    FailuresPage,
    FindingsPage,
    IndexPage,
    ModelsPage,
    Page,
    TemplatePage,
)
from reports.text import plain, pretty, rendered, visible
from reports.words import ERROR_KINDS, LABELS, slug
from scanner.judge.verdicts import STARTING_CONVERSATIONS
from scanner.results import CAPABILITIES

_TEMPLATES: Mapping[type[Page], str] = {
    IndexPage: "index.html.jinja",
    ModelsPage: "models.html.jinja",
    FailuresPage: "failures.html.jinja",
    ChangesPage: "changes.html.jinja",
    FindingsPage: "findings.html.jinja",
    CapabilityPage: "capability.html.jinja",
    CombinationsPage: "combinations.html.jinja",
    TemplatePage: "template.html.jinja",
}


def render_page(page: Page) -> str:
    """A whole page. It holds no lone surrogates, so it can be written as UTF-8."""
    return _environment().get_template(_TEMPLATES[type(page)]).render(_context(page))


def render_fragment(page: Page, block: str) -> str:
    """One block of a page's template by itself, `main` for all but the frame. Raises jinja2_fragments'
    BlockNotFoundError for a block that it has not."""
    return render_block(_environment(), _TEMPLATES[type(page)], block, _context(page))


def _context(page: Page) -> dict[str, object]:
    nested = isinstance(page, TemplatePage | CapabilityPage)
    return {"page": page, "up": "../" if nested else ""}


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
        rendered=rendered,
        pretty=pretty,
        number=_number,
        moment=_moment,
        slug=slug,
        draw=draw,
        centre=centre,
        error_kind=_error_kind,
    )
    environment.globals.update(
        CAPABILITIES=CAPABILITIES,
        LABELS=LABELS,
        MARK_WORDS=MARK_WORDS,
        STARTING_CONVERSATIONS=STARTING_CONVERSATIONS,
        mark_of=mark_of,
    )
    # Imported by each template they would be out of reach of a block that is rendered by itself.
    parts = vars(environment.get_template("parts.html.jinja").module)
    environment.globals.update({name: part for name, part in parts.items() if isinstance(part, Macro)})
    return environment


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
