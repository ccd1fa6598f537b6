"""Lines of source, and what was read, as HTML. Made here and not in a template: a page has hundreds of lines, a line
many pieces, and each expression of a template costs as much as a line here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from markupsafe import Markup, escape

from reports.gutters import Gutter
from reports.pages.runs import ReadRow
from reports.source_lines import Segment, SourceLine
from reports.text import plain, visible
from scanner.results import CAPABILITIES


def line_html(line: SourceLine, gutters: Mapping[str, Gutter]) -> Markup:
    """The beginning of a line's `<li>`, its remarks and its end still to come: number, gutter (where there are any),
    and the code, in which each place that was read stands in an element that says what was read, and by whom."""
    pieces = "".join(_piece(segment) for segment in line.segments)
    gutter = _gutter(line.ran, gutters) if gutters else ""
    number = line.number
    return Markup(  # noqa: S704 - every piece was escaped
        f'<li id="L{number}"{_attributes(line, gutters.get(line.under))}>'
        f'<a class="no" href="#L{number}">{number}</a>{gutter}<code>{pieces}</code>'
    )


def reads_html(reads: Iterable[ReadRow]) -> Markup:
    """The rows of a table of what was read."""
    return Markup("".join(map(_read, reads)))  # noqa: S704 - every cell is escaped


def _attributes(line: SourceLine, under: Gutter | None) -> str:
    kinds = []
    if line.notes:
        kinds.append("noted")
    if any(note.kind == "failed" for note in line.notes):
        kinds.append("failed")
    if under is not None and not under.ran:
        kinds.append("never")
    kind = f' class="{" ".join(kinds)}"' if kinds else ""
    decides = f' data-for="{numbered(under.decides)}"' if under is not None and under.decides else ""
    return kind + decides


def _gutter(ran: str, gutters: Mapping[str, Gutter]) -> str:
    if ran not in gutters:
        return '<svg class="ran" aria-hidden="true"></svg>'
    return f'<svg class="ran" role="img" aria-labelledby="gw-{ran}"><use href="#g-{ran}"/></svg>'


def _read(read: ReadRow) -> str:
    place = ""
    if read.place is not None:
        place = f'<a class="place" href="#L{read.place.line}">{read.place.line}:{read.place.column}</a>'
    used = "used" if read.used else "looked at"
    operations = escape(plain(", ".join(read.ops)))
    return (
        f'<tr><td class="hash">{escape(plain(read.path))}</td><td>{used}</td><td>{operations}</td>'
        f'<td class="num">{place}</td></tr>\n'
    )


def numbered(capabilities: Iterable[str]) -> str:
    """Capabilities by their numbers, from 1, as keys and the stylesheet know them: `1 4`."""
    return " ".join(str(CAPABILITIES.index(name) + 1) for name in capabilities)


def _piece(segment: Segment) -> str:
    text = visible(segment.text)
    if not segment.paths:
        return text
    said = f"{', '.join(segment.paths)} · first read at {segment.place} by {', '.join(segment.probes)}"
    kind = "read" if segment.used else "read unused"
    decides = f' data-for="{numbered(segment.decides)}"' if segment.decides else ""
    return f'<span class="{kind}"{decides} title="{escape(plain(said))}">{text}</span>'
