"""`capscan export`: what a scan found, in the formats of other tools."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import click

from scanner import __version__
from scanner.commands.options import database_option, write
from scanner.silence import load as load_silences

FORMS = ("sarif", "junit", "json", "jsonl")


@click.command()
@click.argument("form", type=click.Choice(FORMS), metavar="sarif|junit|json|jsonl")
@database_option
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="File to write; else standard output."
)
@click.option(
    "--scan", "scan_id", type=click.IntRange(1, 2**63 - 1), metavar="ID", help="Not the newest scan, but this."
)
def export(form: str, database: str, output: Path | None, scan_id: int | None) -> int:
    """Write what the newest finished scan saw and found, for other tools.

    sarif: SARIF 2.1.0 for code scanning. junit: JUnit XML for the gates of CI. json: everything, in one document.
    jsonl: the same, an object a line. Findings that .capscan.toml silences are suppressed there too.
    """
    pieces = _pieces(form, database, scan_id)
    if output is None:
        for piece in pieces:
            write(piece)
    else:
        write_file(output, pieces)
    return 0


def _pieces(form: str, database: str, scan_id: int | None) -> Iterator[str]:
    import json

    from scanner.exports import everything, junit, sarif
    from scanner.exports.state import read_state
    from scanner.store.migrate import ensure_current
    from scanner.store.session import open_database

    engine = open_database(database)
    ensure_current(engine, create=False)
    root = Path.cwd()
    state = read_state(engine, scan_id, load_silences(root))
    if form == "sarif":
        yield json.dumps(sarif.document(state, root, __version__), indent=1) + "\n"
    elif form == "junit":
        yield from junit.document(state, root)
    elif form == "json":
        yield from everything.document(engine, state, __version__)
    else:
        yield from everything.lines(engine, state, __version__)


def write_file(path: Path, pieces: Iterable[str]) -> None:
    """Write a file whole or not at all: whoever reads it meanwhile sees the former one. Raises OSError."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.writelines(pieces)
        # A temporary file is its owner's alone; others may read what any program writes.
        Path(name).chmod(0o666 & ~_umask())
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
