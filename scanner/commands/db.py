"""`capscan db`: the database's schema, and what old scans leave in it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from scanner.commands.options import (
    DEFAULT_MAX_AGE,
    database_hint,
    database_option,
    max_age_option,
    print_lines,
    wait_option,
)

if TYPE_CHECKING:
    from scanner.store.prune import Pruned


@click.group()
def db() -> None:
    """Look after the database: its schema, and old scans."""


@db.command()
@database_option
@wait_option
def upgrade(database: str, wait: float) -> int:
    """Create the database, or bring it to this Capscan's schema."""
    from scanner.store.lock import database_lock
    from scanner.store.migrate import current, ensure_current
    from scanner.store.session import database_name, open_database

    engine = open_database(database)
    with database_lock(engine, "db upgrade", wait=wait):
        ensure_current(engine, create=True)
    click.echo(f"{database_name(engine)}: revision {current(engine)}")
    return 0


@db.command(name="current")
@database_option
def current_revision(database: str) -> int:
    """Show the schema revision of the database, and the one this Capscan works with."""
    from scanner.store.migrate import current, head
    from scanner.store.session import database_name, open_database

    engine = open_database(database)
    found = current(engine)
    ours = head()
    older = found is None or found < ours
    hint = f": capscan db upgrade{database_hint(database)}" if older else ", which is older"
    note = "" if found == ours else f" (this Capscan works with {ours}{hint})"
    click.echo(f"{database_name(engine)}: revision {found or 'none'}{note}")
    return 0


@db.command()
@database_option
@max_age_option
@click.option(
    "--keep",
    type=click.IntRange(min=2),
    default=2,
    show_default=True,
    metavar="N",
    help="The newest finished scans of the same paths that stay whatever their age.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be removed.")
@click.option("--vacuum", is_flag=True, help="Give the room back to the disk.")
@wait_option
def prune(database: str, max_age: float | None, keep: int, dry_run: bool, vacuum: bool, wait: float) -> int:
    """Remove old scans, and what no other scan knows.

    The newest state of all files that are still there, and what changed since the scan before, stay as they are. With
    the scans go the files that only they saw, their templates, and analyses that newer ones stand for.
    """
    from scanner.store.lock import database_lock
    from scanner.store.migrate import ensure_current
    from scanner.store.prune import prune as prune_scans
    from scanner.store.prune import vacuum as give_back
    from scanner.store.session import open_database

    engine = open_database(database)
    ensure_current(engine, create=False)
    with database_lock(engine, "db prune", wait=wait):
        pruned = prune_scans(engine, older_than=oldest(max_age), keep=keep, dry_run=dry_run)
        print_lines(pruned_lines(pruned, max_age, dry_run=dry_run))
        if vacuum and not dry_run:
            give_back(engine)
    return 0


def oldest(max_age: float | None) -> datetime:
    """When a scan began that is just not too old."""
    days = DEFAULT_MAX_AGE if max_age is None else max_age
    return datetime.now(UTC) - timedelta(days=days)


def pruned_lines(pruned: Pruned, max_age: float | None, *, dry_run: bool = False) -> Iterator[str]:
    """What was removed, in words."""
    days = DEFAULT_MAX_AGE if max_age is None else max_age
    did = "Would remove" if dry_run else "Removed"
    scans = _count(len(pruned.scans), "scan")
    gone = [
        _count(number, noun, plural)
        for number, noun, plural in (
            (pruned.files, "model file", None),
            (pruned.templates, "template", None),
            (pruned.analyses, "analysis", "analyses"),
        )
        if number
    ]
    known = f", and {', '.join(gone)} that no other scan knows" if gone else ""
    yield f"{did} {scans} older than {days:g} days{known}"


def _count(number: int, noun: str, plural: str | None = None) -> str:
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
