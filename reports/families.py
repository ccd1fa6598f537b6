"""Which templates are variants of one another, and which two are worth a page that shows them side by side.

A template is cut into pieces at its signs (braces, quotes, brackets …). How alike two templates are is the share of
their runs of two pieces that both have (Jaccard). Spacing does not count, nor the dashes that trim it, so a template on
a single line is like the same one well laid out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain, combinations, pairwise
from zlib import crc32

_SIGNS = b"{}%+'\"[]()|,:="
_CUTS = bytes.maketrans(_SIGNS, b"\0" * len(_SIGNS))
_SPACING = b" \t\r\n-"
# The longest of real templates has 17 kB.
_LONGEST = 200_000

_FULL = 10_000
# In the corpus the versions of a maker's templates are mostly above this, those of different makers mostly below.
_ALIKE = 4_000
# With how many others a template is compared. Where more have rare runs in common they are nearly the same, and any of
# them will do.
_MOST_COMPARED = 24
_MOST_RELATIVES = 3
_MOST_CROSSED = 4


class Kinship(StrEnum):
    """Why two templates are worth a page."""

    REPLACED = "replaced"
    VARIANTS = "variants"
    RELATIVES = "relatives"


@dataclass(frozen=True, slots=True)
class Appearance:
    """Where a template is: the path of a file, and which of the file's templates it is."""

    path: str
    variant: str


@dataclass(frozen=True, slots=True)
class Member:
    """A template of the collection and the files that hold it."""

    source: bytes
    appearances: tuple[Appearance, ...] = ()


@dataclass(frozen=True, slots=True)
class SharedFile:
    """A file that holds both templates of a pair, and which of its templates these are."""

    path: str
    left_variant: str
    right_variant: str


@dataclass(frozen=True, slots=True)
class Pair:
    """Two templates worth a page, by SHA-256. `left` is the one that was replaced, else the file's first variant, else
    the first by path. `similarity` is in percent, never 100; `files` are those that hold both."""

    left: str
    right: str
    similarity: int
    kinships: tuple[Kinship, ...]
    files: tuple[SharedFile, ...] = ()


@dataclass(frozen=True, slots=True)
class Relative:
    """A template of a family and how much it is like the family's centre, in percent."""

    sha256: str
    similarity: int


@dataclass(frozen=True, slots=True)
class Family:
    """Templates around one, the `centre`, which has the most in common with the others, and these, most alike first."""

    centre: str
    others: tuple[Relative, ...]


@dataclass(frozen=True, slots=True)
class Relations:
    """Pairs worth a page in the order of their paths, and families, the largest first. A template is in one family, or
    in none where it is not like the centre of any."""

    pairs: tuple[Pair, ...]
    families: tuple[Family, ...]


@dataclass(frozen=True, slots=True)
class _Profile:
    """A template by its runs of pieces. `telling` are its rarest ones, so many that every relative has one of them."""

    runs: frozenset[int]
    telling: Sequence[int]


_Name = tuple[str, str, str]


@dataclass(slots=True)
class _Draft:
    """A pair in the making."""

    left: str
    right: str
    kinships: set[Kinship] = field(default_factory=set)
    files: list[SharedFile] = field(default_factory=list)


class _Drafts(dict[frozenset[str], _Draft]):
    """Pairs in the making, by the two. A pair keeps the sides that it was given first."""

    def add(self, left: str, right: str, kinship: Kinship) -> _Draft:
        draft = self.setdefault(frozenset((left, right)), _Draft(left, right))
        draft.kinships.add(kinship)
        return draft


def relate(members: Mapping[str, Member], replaced: Iterable[tuple[str, str]] = ()) -> Relations:
    """Finds the pairs worth a page and the families of templates, which are given by their SHA-256.

    A pair are templates of which one took the other's place (`replaced`: old and new; left out where one is not among
    `members`), the variants of a file, and each template with its nearest relatives: at most three, but where another
    template would have none.
    """
    profiles = _profiles(members)
    relatives = _relatives(profiles)
    names = {sha256: _name(sha256, member) for sha256, member in members.items()}
    drafts = _Drafts()
    for old, new in replaced:
        if old != new and old in members and new in members:
            drafts.add(old, new, Kinship.REPLACED)
    _add_variants(drafts, members)
    for pair in _nearest(relatives):
        left, right = sorted(pair, key=names.__getitem__)
        drafts.add(left, right, Kinship.RELATIVES)
    in_order = sorted(drafts.values(), key=lambda draft: (names[draft.left], names[draft.right]))
    return Relations(
        pairs=tuple(_pair(draft, profiles) for draft in in_order),
        families=_families(profiles, relatives, names),
    )


def _name(sha256: str, member: Member) -> _Name:
    path, variant = min(((place.path, place.variant) for place in member.appearances), default=("", ""))
    return path, variant, sha256


def _pair(draft: _Draft, profiles: Mapping[str, _Profile]) -> Pair:
    return Pair(
        draft.left,
        draft.right,
        similarity=_percent(_likeness(profiles[draft.left], profiles[draft.right])),
        kinships=tuple(kinship for kinship in Kinship if kinship in draft.kinships),
        files=tuple(draft.files),
    )


# Pairs that the files name.


def _add_variants(drafts: _Drafts, members: Mapping[str, Member]) -> None:
    files: dict[str, dict[str, str]] = {}
    for sha256, member in members.items():
        for place in member.appearances:
            files.setdefault(place.path, {})[place.variant] = sha256
    for path, templates in sorted(files.items()):
        for left, right in _variant_pairs(templates):
            if templates[left] == templates[right]:
                continue
            draft = drafts.add(templates[left], templates[right], Kinship.VARIANTS)
            sides = (left, right) if draft.left == templates[left] else (right, left)
            draft.files.append(SharedFile(path, *sides))


def _variant_pairs(variants: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Every two variants; of many each with the first. `default` is the first, then they go by name."""
    first, *others = sorted(variants, key=lambda variant: (variant != "default", variant))
    if len(others) < _MOST_CROSSED:
        return combinations((first, *others), 2)
    return ((first, other) for other in others)


# How much templates are alike.


def _profiles(members: Mapping[str, Member]) -> dict[str, _Profile]:
    runs = {sha256: _runs(members[sha256].source) for sha256 in sorted(members)}
    holders = Counter(chain.from_iterable(runs.values()))
    rarest_first = sorted((run for run, count in holders.items() if count > 1), key=holders.__getitem__)
    ranks = {run: rank for rank, run in enumerate(rarest_first)}
    return {sha256: _Profile(found, _telling(found, ranks)) for sha256, found in runs.items()}


def _runs(source: bytes) -> frozenset[int]:
    """Every two pieces that follow each other, as hashes that are the same in every process."""
    pieces = list(map(crc32, filter(None, source[:_LONGEST].translate(_CUTS, _SPACING).split(b"\0"))))
    return frozenset(map(hash, pairwise(pieces))) or frozenset(map(hash, pieces))


def _telling(runs: frozenset[int], ranks: Mapping[int, int]) -> list[int]:
    """The first of the runs by rank, without those that no other template has (prefix filtering).

    A relative has at least `needed` of the runs. So it has one of all but `needed - 1`, whichever these are.
    """
    shared = sorted(ranks[run] for run in ranks.keys() & runs)
    needed = -(-len(runs) * _ALIKE // _FULL)
    return shared[: max(len(shared) - needed + 1, 0)]


def _likeness(one: _Profile, other: _Profile) -> int:
    """How many of the runs of two templates both have, of `_FULL`."""
    shared = len(one.runs & other.runs)
    return _FULL * shared // max(len(one.runs) + len(other.runs) - shared, 1)


def _percent(likeness: int) -> int:
    # Two templates that differ in spacing or signs alone are not the same.
    return min(likeness * 100 // _FULL, 99)


def _relatives(profiles: Mapping[str, _Profile]) -> dict[tuple[str, str], int]:
    """The pairs of templates that are alike, the most alike first, and how much they are."""
    holders: dict[int, list[str]] = defaultdict(list)
    found: dict[tuple[str, str], int] = {}
    # In the order of size: where there are too many candidates, those nearest in size are compared.
    for sha256 in sorted(profiles, key=lambda sha256: (len(profiles[sha256].runs), sha256)):
        for other in _candidates(profiles[sha256], holders):
            likeness = _likeness(profiles[sha256], profiles[other])
            if likeness >= _ALIKE:
                found[min(sha256, other), max(sha256, other)] = likeness
        for run in profiles[sha256].telling:
            holders[run].append(sha256)
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def _candidates(profile: _Profile, holders: Mapping[int, Sequence[str]]) -> Iterable[str]:
    """The templates that share a telling run; if very many do, those that share the rarest and came last."""
    candidates: dict[str, None] = {}
    for run in profile.telling:
        if len(candidates) >= _MOST_COMPARED:
            break
        if run in holders:
            candidates.update(dict.fromkeys(holders[run][-_MOST_COMPARED:]))
    return candidates


def _nearest(relatives: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Of relatives, the most alike first, those worth a page: few of each template, but at least one."""
    pairs = list(relatives)
    taken: Counter[str] = Counter()
    for pair in pairs:
        if all(taken[sha256] < _MOST_RELATIVES for sha256 in pair):
            taken.update(pair)
            yield pair
    for pair in pairs:
        if not all(taken[sha256] for sha256 in pair):
            taken.update(pair)
            yield pair


def _families(
    profiles: Mapping[str, _Profile], relatives: Mapping[tuple[str, str], int], names: Mapping[str, _Name]
) -> tuple[Family, ...]:
    """Joins relatives, the most alike first, as long as the centres of their families are alike too: if any two
    relatives joined their families, all would end up in one. The centre is the template with the most in common."""
    in_common: Counter[str] = Counter()
    for pair, likeness in relatives.items():
        in_common.update(dict.fromkeys(pair, likeness))
    centres = {sha256: sha256 for sha256 in in_common}
    families = {sha256: [sha256] for sha256 in in_common}
    for one, other in relatives:
        if centres[one] == centres[other]:
            continue
        both = (centres[one], centres[other])
        centre, joining = sorted(both, key=lambda sha256: (-in_common[sha256], names[sha256]))
        if _likeness(profiles[centre], profiles[joining]) >= _ALIKE:
            centres.update(dict.fromkeys(families[joining], centre))
            families[centre] += families.pop(joining)
    found = [_family(centre, members, profiles, names) for centre, members in families.items() if len(members) > 1]
    return tuple(sorted(found, key=lambda family: (-len(family.others), names[family.centre])))


def _family(
    centre: str, members: Iterable[str], profiles: Mapping[str, _Profile], names: Mapping[str, _Name]
) -> Family:
    others = [
        Relative(sha256, _percent(_likeness(profiles[centre], profiles[sha256])))
        for sha256 in members
        if sha256 != centre
    ]
    return Family(centre, tuple(sorted(others, key=lambda other: (-other.similarity, names[other.sha256]))))
