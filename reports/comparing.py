"""Which templates get a page that compares two of them, and what each template's page says of that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from sqlalchemy import Engine

from reports.families import Appearance, Family, Kinship, Member, Pair, SharedFile, relate
from reports.overview import Overview
from reports.pages.compare import compare_id
from reports.pages.template import Relative
from scanner.store import queries


@dataclass(frozen=True, slots=True)
class Couple:
    """Two templates to compare, by their SHA-256, and why in words."""

    left: str
    right: str
    relation: str

    @property
    def name(self) -> str:
        """The name of their page."""
        return compare_id(self.left, self.right)


@dataclass(frozen=True, slots=True)
class Compared:
    """What of a report's templates is compared: the couples that have a page, and the families, largest first."""

    couples: tuple[Couple, ...]
    families: tuple[Family, ...]


def compared(engine: Engine, overview: Overview) -> Compared:
    """Couples are the variants of each file, the old and the new template where one took the other's place since the
    scan before, each template with its nearest relatives, and with the centre of its family. Raises DatabaseError."""
    replaced = [
        (change.old_sha256, change.new_sha256)
        for change in overview.changes
        if change.old_sha256 is not None and change.new_sha256 is not None
    ]
    members = _members(engine, overview, [old for old, _new in replaced])
    found = relate(members, replaced)
    couples = [Couple(pair.left, pair.right, _relation(overview, pair)) for pair in found.pairs]
    return Compared((*couples, *_with_centres(found.families, couples)), found.families)


def _with_centres(families: Iterable[Family], couples: Iterable[Couple]) -> Iterator[Couple]:
    """The members of families that are not yet compared with the centre of theirs."""
    known = {frozenset((couple.left, couple.right)) for couple in couples}
    for family in families:
        for other in family.others:
            if frozenset((family.centre, other.sha256)) not in known:
                yield Couple(family.centre, other.sha256, f"{other.similarity} % alike")


def relatives_of(overview: Overview, found: Iterable[Couple]) -> dict[str, tuple[Relative, ...]]:
    """For each template, by its SHA-256, those that it is compared with."""
    relatives: dict[str, list[Relative]] = {}
    for couple in found:
        for one, other in ((couple.left, couple.right), (couple.right, couple.left)):
            relatives.setdefault(one, []).append(_relative(overview, couple, other))
    return {sha256: tuple(listed) for sha256, listed in relatives.items()}


def _members(engine: Engine, overview: Overview, former: Iterable[str]) -> dict[str, Member]:
    """The templates of the overview, and those that are in no file any more but were replaced."""
    wanted = overview.sha256s.union(former)
    sources: Mapping[str, bytes] = queries.sources_of(engine, wanted)
    return {sha256: Member(source, _appearances(overview, sha256)) for sha256, source in sources.items()}


def _appearances(overview: Overview, sha256: str) -> tuple[Appearance, ...]:
    return tuple(Appearance(path, variant) for path, variant in sorted(overview.held.get(sha256, ())))


def _relation(overview: Overview, pair: Pair) -> str:
    said = []
    if Kinship.REPLACED in pair.kinships:
        said.append("the right one took the place of the left one since the scan before")
    if pair.files:
        said.append(_shared(overview, pair.files))
    return ", ".join([*said, f"{pair.similarity} % alike"])


def _shared(overview: Overview, files: tuple[SharedFile, ...]) -> str:
    first = files[0]
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    return f"variants {first.left_variant} and {first.right_variant} of {overview.shown(first.path)}{more}"


def _relative(overview: Overview, couple: Couple, other: str) -> Relative:
    held = sorted(overview.held.get(other, ()))
    path, variant = held[0] if held else (f"{other[:16]}, in no file now", "")
    return Relative(couple.name, overview.shown(path), variant, couple.relation)
