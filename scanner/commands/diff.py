"""`capscan diff`: what changed from one scan to another, and because of what."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from scanner.commands.options import (
    EXIT_FINDINGS,
    database_option,
    format_option,
    print_json,
    print_lines,
    write,
)

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from scanner.diff import Diff
    from scanner.diff_text import SourceDiffs

CHANGE = "change"
"""The word of `--fail-on` for whatever differs."""


@click.command()
@click.argument("scans", nargs=-1, type=click.IntRange(min=1), metavar="[[A] B]")
@database_option
@click.option("--source/--no-source", default=True, show_default=True, help="Show how replaced templates differ.")
@click.option("--fail-on", "fail_on", type=click.Choice([CHANGE]), help="Exit with 1 if anything changed.")
@format_option("table", "json", "markdown")
def diff(scans: tuple[int, ...], database: str, source: bool, fail_on: str | None, form: str) -> int:
    """Say what changed from scan A to scan B, and because of what.

    Without A, B is compared with the newest finished scan of the same sources before it; without both, the newest
    finished scan is. `capscan query scans` lists the scans.
    """
    from scanner.diff import chosen_scans, read_diff
    from scanner.diff_text import empty_document, first_scan_line
    from scanner.errors import UsageError
    from scanner.store.migrate import ensure_current
    from scanner.store.queries import newest_finished
    from scanner.store.session import open_database

    if len(scans) > 2:
        raise UsageError("give at most two scans: capscan diff OLD NEW")
    engine = open_database(database)
    ensure_current(engine, create=False)
    chosen = chosen_scans(engine, scans)
    if chosen is None:
        newest = scans[0] if scans else newest_finished(engine)
        if form == "json":
            print_json(empty_document(newest))
        else:
            click.echo(first_scan_line(newest))
        return 0
    found = read_diff(engine, *chosen)
    _print(found, source_diffs(engine, found) if source else {}, form)
    return EXIT_FINDINGS if fail_on and found.changed else 0


def source_diffs(engine: Engine, diff: Diff) -> SourceDiffs:
    """How the templates that took the place of others differ from these, by both SHA-256."""
    from scanner.diff_text import SHOWN_HASH, SOURCE_LINES
    from scanner.store.queries import sources_of
    from scanner.unified import unified

    pairs = [(one.old_sha256, one.new_sha256) for one in diff.templates if one.old_sha256 and one.new_sha256]
    sources = sources_of(engine, [sha256 for pair in pairs for sha256 in pair if sha256])
    return {
        (old, new): unified(sources[old], sources[new], (old[:SHOWN_HASH], new[:SHOWN_HASH]), limit=SOURCE_LINES)
        for old, new in pairs
        if old in sources and new in sources
    }


def changes_since_last(engine: Engine, scan: int) -> str | None:
    """How a scan differs from the one before it of the same sources, in a line; None where it does not, and where there
    is none."""
    from scanner.diff import chosen_scans, read_diff
    from scanner.diff_text import summary_line

    chosen = chosen_scans(engine, (scan,))
    found = None if chosen is None else read_diff(engine, *chosen)
    return summary_line(found) if found is not None and found.changed else None


def _print(diff: Diff, sources: SourceDiffs, form: str) -> None:
    from scanner.diff_text import diff_document, diff_lines, diff_markdown

    if form == "json":
        print_json(diff_document(diff, sources))
    elif form == "markdown":
        write("\n".join(diff_markdown(diff, sources)) + "\n")
    else:
        print_lines(diff_lines(diff, sources))
