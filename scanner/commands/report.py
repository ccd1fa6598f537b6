"""`capscan report`: the static pages, or one block of them for a mail, a dashboard or a chat."""

from __future__ import annotations

import os
import webbrowser
from pathlib import Path

import click

from scanner.commands.options import database_option, write
from scanner.errors import UsageError

BLOCKS = ("outliers", "changes", "summary")
"""As `reports.pages.blocks.BLOCKS`, which would take long to import for a help text."""

ROWS = 20
"""How many rows the list of a block has, unless asked otherwise."""


@click.command()
@database_option
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("report"),
    show_default=True,
    help="Folder of the report.",
)
@click.option(
    "--scan",
    "scan_id",
    type=click.IntRange(1, 2**63 - 1),
    metavar="ID",
    help="Report what this scan saw (capscan query scans lists them), not the newest state of all files.",
)
@click.option("--open", "opens", is_flag=True, help="Open it in a browser.")
@click.option("--block", type=click.Choice(BLOCKS), help="Print one block instead, as HTML for a mail or a dashboard.")
@click.option("--markdown", is_flag=True, help="Print the block as Markdown, for a chat or an issue.")
@click.option("--link", metavar="URL", help="Where the report is published: the block's links lead there.")
@click.option(
    "--limit", type=click.IntRange(0), default=ROWS, show_default=True, metavar="N", help="Rows of a block's list."
)
def report(
    database: str,
    output: Path,
    scan_id: int | None,
    opens: bool,
    block: str | None,
    markdown: bool,
    link: str | None,
    limit: int,
) -> int:
    """Write the report as static pages, or print one block of it."""
    _check_options(click.get_current_context())
    if block is not None:
        write(block_of(database, scan_id, block, markdown=markdown, link=link, limit=limit))
        return 0
    index = write_report_of(database, output, scan_id)
    if opens:
        webbrowser.open(index.absolute().as_uri())
    return 0


def _check_options(context: click.Context) -> None:
    """Options that would be ignored are refused. Raises UsageError."""
    given = {
        name for name in context.params if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
    }
    names = {parameter.name: parameter.opts[-1] for parameter in context.command.params}
    surplus = {"output", "opens"} if "block" in given else {"markdown", "link", "limit"}
    if found := sorted(names[name] for name in given & surplus):
        which = "does not go with" if "block" in given else "needs"
        raise UsageError(f"{', '.join(found)} {which} --block")


def write_report_of(database: str, output: Path, scan_id: int | None = None) -> Path:
    """Write the pages, say how many, and give the first of them."""
    from reports import write_report
    from scanner.processes import calm_collector
    from scanner.scan import utc_now
    from scanner.store.migrate import ensure_current
    from scanner.store.session import open_database

    engine = open_database(database)
    ensure_current(engine, create=False)
    calm_collector()
    written = write_report(engine, output, now=utc_now, scan_id=scan_id, workers=os.cpu_count() or 1)
    click.echo(f"{written.pages} pages ({written.unchanged} unchanged), {written.bytes / 1e6:.1f} MB: {written.index}")
    return written.index


def block_of(database: str, scan_id: int | None, block: str, *, markdown: bool, link: str | None, limit: int) -> str:
    """One block, as HTML or as Markdown."""
    from reports.overview import read_overview
    from reports.pages.blocks import BLOCKS as MAKERS
    from reports.render import render_fragment, render_markdown
    from scanner.store.migrate import ensure_current
    from scanner.store.session import open_database

    base = None if link is None else _base(link)
    engine = open_database(database)
    ensure_current(engine, create=False)
    made = MAKERS[block](read_overview(engine, scan_id), limit)
    return render_markdown(made, base=base) if markdown else render_fragment(made, block, base=base)


def _base(link: str) -> str:
    """The folder that a report's pages lie in. Raises UsageError for what is no address of the web."""
    if not link.lower().startswith(("https://", "http://")):
        raise UsageError(f"--link {link}: an address that begins with https:// or http:// is needed")
    return link.removesuffix("index.html").rstrip("/") + "/"
