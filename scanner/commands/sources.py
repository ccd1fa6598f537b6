"""`capscan sources`: the stores of models that are here; and `--store`, which scans them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from scanner.commands.options import format_option, print_json
from scanner.console import visible
from scanner.discover import discover
from scanner.errors import CapscanError
from scanner.results import ModelFile
from scanner.stores import STORES, Found, NotFound, StoreSource
from scanner.stores.ollama import PARTS

ALL = "all"

store_option = click.option(
    "--store",
    "stores",
    type=click.Choice([*STORES, ALL]),
    multiple=True,
    help="A tool's own store of models, wherever it is; may be repeated. `capscan sources` lists what is here.",
)


@dataclass(frozen=True, slots=True)
class Held:
    """What a store holds: `models` are its names (a projector or an adapter of a model is not one more), `passed_over`
    what of it cannot be used."""

    store: str
    where: str
    models: int
    files: int
    bytes: int
    passed_over: int


@dataclass(frozen=True, slots=True)
class Absent:
    """A store that is not here: where it was looked for."""

    store: str
    looked: tuple[str, ...]
    reason: str


def stores_of(names: Iterable[str], environ: Mapping[str, str], home: Path) -> tuple[StoreSource, ...]:
    """The stores that `--store` names, in the order of STORES, each folder once.

    Of `all` those that are here; one that is named is given where it would be, so that a scan can say that it is not.
    Raises CapscanError where `all` finds none.
    """
    wanted = set(names)
    chosen: dict[str, StoreSource] = {}
    for slug, store in STORES.items():
        if not wanted & {slug, ALL}:
            continue
        found = store.found(environ, home)
        roots = found.roots if isinstance(found, Found) else found.looked[:1] if slug in wanted else ()
        for root in roots:
            chosen.setdefault(os.path.realpath(root), StoreSource(slug, root))
    if ALL in wanted and not chosen:
        raise CapscanError("--store all: there is no store of models here; `capscan sources` says where was looked")
    return tuple(chosen.values())


def is_store(source: str | StoreSource) -> bool:
    """Whether a source is a store, and not a path."""
    return isinstance(source, StoreSource)


def is_there(source: str | StoreSource) -> bool:
    """Whether what is to be scanned exists."""
    return Path(source.root).is_dir() if isinstance(source, StoreSource) else Path(source).exists()


@click.command()
@format_option("table", "json")
def sources(form: str) -> int:
    """List the stores of models that are here, and where others were looked for.

    Scan them with `capscan scan --store NAME`, or all of them with `--store all`.
    """
    here, absent = _looked_for(os.environ, Path.home())
    if form == "json":
        print_json({"found": [asdict(one) for one in here], "not_found": [asdict(one) for one in absent]})
        return 0
    for one in here:
        click.echo(visible(f"{one.store}: {one.where}"))
        passed_over = f" · {one.passed_over:,} passed over" if one.passed_over else ""
        click.echo(f"  models {one.models:,} · files {one.files:,} · bytes {one.bytes:,}{passed_over}")
    for missing in absent:
        click.echo(visible(f"not here: {missing.store} ({missing.reason})"))
    return 0


def _looked_for(environ: Mapping[str, str], home: Path) -> tuple[Sequence[Held], Sequence[Absent]]:
    here: list[Held] = []
    absent: list[Absent] = []
    for slug, store in STORES.items():
        found = store.found(environ, home)
        if isinstance(found, NotFound):
            absent.append(Absent(slug, found.looked, found.reason))
        else:
            here += [_held(StoreSource(slug, root)) for root in found.roots]
    return here, absent


def _held(source: StoreSource) -> Held:
    files = total = passed_over = 0
    models: set[str] = set()
    for item in discover([source]):
        if isinstance(item, ModelFile):
            files += 1
            total += item.size
            models.update(name.name for name in item.names if not name.name.endswith(PARTS))
        else:
            passed_over += 1
    return Held(source.store, source.root, len(models), files, total, passed_over)
