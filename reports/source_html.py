"""A line of source as HTML. Made here and not in a template: a page has hundreds of lines, a line many pieces."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup, escape

from reports.source_lines import Segment, SourceLine
from reports.text import plain, visible
from scanner.results import CAPABILITIES


def code(line: SourceLine) -> Markup:
    """The inside of a line's `<code>`: each place that was read in an element that says what was read, and by whom."""
    return Markup("".join(_piece(segment) for segment in line.segments))  # noqa: S704 - every piece was escaped


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
