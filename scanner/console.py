"""What a person sees in the terminal: aligned tables, numbers with their base, colour only where it is shown."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

import click
from tqdm import tqdm

WIDTH = 100
"""Columns that a table may take."""
NARROWEST = 8
"""Columns that a cell keeps at least."""
ROOMY = 24
"""Columns down to which other cells shrink before prose does."""
LEGIBLE = 30
"""Columns below which a sentence that is cut says too little; the rows are then shown record by record."""
PROSE = frozenset({"reason", "text", "why", "meaning", "expected", "what it answers"})
"""Columns whose cells are sentences."""

SEVERITY_COLOURS = {"error": "red", "warning": "yellow", "note": None}


def visible(text: str) -> str:
    """Text with control and bidirectional characters escaped, so that a file's content cannot drive the terminal."""
    return "".join(
        [character if character.isprintable() else character.encode("unicode_escape").decode() for character in text]
    )


def width_of(text: str) -> int:
    """Columns that a text takes: wide characters two, combining ones none."""
    return sum(
        [
            0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
            for character in text
        ]
    )


def clip(text: str, width: int) -> str:
    """The text in at most `width` columns, with `…` where something was cut: at the end, of a path at the start."""
    if width_of(text) <= width:
        return text
    if text.startswith("/"):
        # Of a path the end says most.
        return "…" + clip(text[::-1], width)[-2::-1]
    kept = ""
    for character in text:
        if width_of(kept + character) > width - 1:
            break
        kept += character
    return kept + "…"


def pad(text: str, width: int, *, right: bool = False) -> str:
    """The text filled with blanks to `width` columns."""
    blanks = " " * max(0, width - width_of(text))
    return blanks + text if right else text + blanks


def wrapped(label: str, text: str, *, width: int = WIDTH, bold: bool = False) -> list[str]:
    """A label and a text behind it, in lines of at most `width` columns that begin under the text. Words longer than a
    line are broken."""
    room = textwrap.TextWrapper(
        width=width,
        initial_indent=label,
        subsequent_indent=" " * max(2, width_of(label)),
        break_on_hyphens=False,
    )
    lines = room.wrap(text) or [label.rstrip()]
    return [click.style(line, bold=True) for line in lines] if bold else lines


def columns() -> int:
    """Columns of the terminal, `WIDTH` at least, and where nobody looks."""
    shown = sys.stdout is not None and sys.stdout.isatty()
    return max(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns) if shown or "COLUMNS" in os.environ else WIDTH


def table(headers: Sequence[str], rows: Iterable[Sequence[object]], *, width: int = WIDTH) -> str:
    """An aligned table; numbers stand to the right, and the widest column gives way where it does not fit. What has too
    many columns for that is shown record by record."""
    cells = [[_cell(value) for value in row] for row in rows]
    headers, cells = _without_empty_columns(headers, cells)
    if len(headers) * (NARROWEST + 2) - 2 > width:
        return _records(headers, cells, width)
    numeric = [
        bool(cells) and all(row[column].replace(",", "").lstrip("-").isdigit() or not row[column] for row in cells)
        for column in range(len(headers))
    ]
    widths = [max([width_of(header), *[width_of(row[at]) for row in cells]]) for at, header in enumerate(headers)]
    while sum(widths) + 2 * (len(widths) - 1) > width and max(widths) > NARROWEST:
        widths[_widest(headers, widths)] -= 1
    if any(_says_too_little(header, widths[at], cells, at) for at, header in enumerate(headers)):
        return _records(headers, cells, width)
    lines = [
        _line([click.style(pad(h, w, right=n), bold=True) for h, w, n in zip(headers, widths, numeric, strict=True)])
    ]
    for row in cells:
        shown = [pad(clip(cell, w), w, right=n) for cell, w, n in zip(row, widths, numeric, strict=True)]
        lines.append(_line(shown))
    return "\n".join(lines)


def _says_too_little(header: str, width: int, cells: Sequence[Sequence[str]], at: int) -> bool:
    """Whether a column of sentences is so narrow that what is left of them is of no use."""
    return header in PROSE and width < LEGIBLE and any(width_of(row[at]) > width for row in cells)


def _without_empty_columns(headers: Sequence[str], cells: list[list[str]]) -> tuple[Sequence[str], list[list[str]]]:
    kept = [at for at in range(len(headers)) if not cells or any(row[at] for row in cells)]
    return [headers[at] for at in kept], [[row[at] for at in kept] for row in cells]


def _widest(headers: Sequence[str], widths: Sequence[int]) -> int:
    """The column that gives way: prose last, as long as others have room."""
    candidates = [at for at, header in enumerate(headers) if header not in PROSE and widths[at] > ROOMY]
    return max(candidates or range(len(widths)), key=lambda at: widths[at])


def _records(headers: Sequence[str], cells: Iterable[Sequence[str]], width: int) -> str:
    label = max(map(width_of, headers))
    blocks = [
        "\n".join([_line([pad(h, label), clip(cell, width - label - 2)]) for h, cell in zip(headers, row, strict=True)])
        for row in cells
    ]
    return "\n\n".join(blocks)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:g}"
    return visible(str(value))


def _line(cells: Sequence[str]) -> str:
    return "  ".join(cells).rstrip()


FORMS = ("table", "csv", "json", "jsonl", "markdown")
"""What `rows_as` can make of rows."""


def rows_as(form: str, headers: Sequence[str], rows: Iterable[Sequence[object]], *, escaped: bool = False) -> str:
    """Rows in one of `FORMS`: `json` is a list of objects, `jsonl` one object a line. `escaped`: a person looks, so
    text of a csv is made safe for a terminal, and JSON is all ASCII."""
    if form == "table":
        return table(headers, rows)
    if form == "markdown":
        return markdown_table(headers, rows)
    if form == "csv":
        return _csv(headers, rows, escaped=escaped)
    listed = [dict(zip(headers, row, strict=True)) for row in rows]
    if form == "jsonl":
        return "\n".join([json.dumps(row, ensure_ascii=escaped, default=_plain) for row in listed])
    return json.dumps(listed, ensure_ascii=escaped, indent=2, default=_plain)


def markdown_table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows as a table of GitHub's Markdown: numbers stand to the right, text is escaped, so that whatever renders it
    shows it and nothing comes of it."""
    from reports.markdown import escaped

    listed = [list(row) for row in rows]
    numeric = [
        bool(listed) and all(row[at] is None or type(row[at]) in (int, float) for row in listed)
        for at in range(len(headers))
    ]
    lines = [[str(escaped(header)) for header in headers], ["---:" if right else "---" for right in numeric]]
    lines += [[escaped(_markdown_cell(value)) for value in row] for row in listed]
    return "\n".join([f"| {' | '.join(cells)} |" for cells in lines])


def _markdown_cell(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    # Escaped where it stands, so that what does not print is not made visible twice.
    return value if isinstance(value, str) else _cell(value)


def _csv(headers: Sequence[str], rows: Iterable[Sequence[object]], *, escaped: bool) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(headers)
    writer.writerows([[visible(cell) if escaped and isinstance(cell, str) else cell for cell in row] for row in rows])
    return out.getvalue().rstrip("\n")


def _plain(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def severity(word: str) -> str:
    """A severity in its colour, padded to one width."""
    return click.style(f"{word:8}", fg=SEVERITY_COLOURS.get(word), bold=word == "error")


class Bar:
    """Progress on standard error: a bar for each stage, nothing where nobody watches."""

    def __init__(self, *, quiet: bool) -> None:
        self.hidden = quiet or not sys.stderr.isatty()
        self.bar: tqdm[Any] | None = None

    def stage(self, name: str, total: int | None = None) -> None:
        """A new stage."""
        self.close()
        self.bar = tqdm(desc=name, total=total, unit="", file=sys.stderr, disable=self.hidden, leave=False)

    def step(self) -> None:
        """One thing done."""
        if self.bar is not None:
            self.bar.update()

    def close(self) -> None:
        """Take the bar away."""
        if self.bar is not None:
            self.bar.close()
            self.bar = None
