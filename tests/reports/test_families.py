"""Which templates are worth a page beside each other, and which form a family."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reports.families import Appearance, Family, Kinship, Member, Pair, Relations, SharedFile, relate
from tests.shared_data import shared_path

CHATML = b"""{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""
WITH_DEFAULT_SYSTEM = (
    b"{%- if messages[0].role != 'system' %}{{- '<|im_start|>system\\nBe kind.<|im_end|>\\n' }}{%- endif %}\n" + CHATML
)
INSTRUCT = b"""{{ bos_token }}{% for m in messages %}{% if m['role'] == 'user' %}[INST] {{ m['content'] }} [/INST]
{% elif m['role'] == 'assistant' %}{{ m['content'] + eos_token }}{% else %}{{ raise_exception('No!') }}{% endif %}
{% endfor %}"""


def sha(source: bytes) -> str:
    return hashlib.sha256(source).hexdigest()


def collection(files: Mapping[str, bytes | Mapping[str, bytes]]) -> dict[str, Member]:
    """Files by path with their template, or with their templates by variant."""
    members: dict[str, Member] = {}
    for path, held in files.items():
        for variant, source in ({"default": held} if isinstance(held, bytes) else held).items():
            known = members.get(sha(source), Member(source))
            members[sha(source)] = Member(source, (*known.appearances, Appearance(path, variant)))
    return members


def by_path(members: Mapping[str, Member], relations: Relations) -> tuple[list[tuple[str, ...]], list[set[str]]]:
    """Pairs and families with the first path of a template in place of its SHA-256."""

    def path(sha256: str) -> str:
        return members[sha256].appearances[0].path

    pairs = [(path(pair.left), path(pair.right), *pair.kinships) for pair in relations.pairs]
    groups = [{path(sha256) for sha256 in (family.centre, *kin(family))} for family in relations.families]
    return pairs, groups


def kin(family: Family) -> list[str]:
    return [other.sha256 for other in family.others]


def test_templates_that_are_alike_are_a_pair_and_a_family() -> None:
    members = collection({"b.gguf": WITH_DEFAULT_SYSTEM, "a.gguf": CHATML, "c.gguf": INSTRUCT})
    pairs, groups = by_path(members, relate(members))
    assert pairs == [("a.gguf", "b.gguf", Kinship.RELATIVES)]
    assert groups == [{"a.gguf", "b.gguf"}]


def test_layout_makes_no_difference() -> None:
    on_one_line = b"".join(CHATML.replace(b"{%-", b"{%").replace(b"{{-", b"{{").split(b"\n")).replace(b"    ", b"")
    (pair,) = relate(collection({"a": CHATML, "b": on_one_line})).pairs
    assert pair.similarity == 99


def test_similarity_counts_what_both_have() -> None:
    one, other = b"{{ a }}{{ b }}{{ c }}{{ d }}{{ e }}", b"{{ a }}{{ b }}{{ c }}{{ d }}{{ f }}"
    (pair,) = relate(collection({"a": one, "b": other})).pairs
    assert pair.similarity == 60, "of ab, bc, cd, de, df three are in both"


def test_what_replaced_another_is_a_pair_however_different() -> None:
    members = collection({"a": CHATML, "b": INSTRUCT})
    old, new, gone = sha(INSTRUCT), sha(CHATML), sha(b"gone")
    (pair,) = relate(members, [(old, new), (new, old), (old, gone), (gone, new), (new, new)]).pairs
    assert (pair.left, pair.right, pair.kinships) == (old, new, (Kinship.REPLACED,))
    assert pair.similarity < 20


def test_variants_of_a_file_are_pairs_and_name_the_files() -> None:
    members = collection(
        {
            "b.gguf": {"rag": INSTRUCT, "default": CHATML, "tool_use": b"{{ tools }}"},
            "a.gguf": {"tool_use": CHATML, "default": INSTRUCT},
            "same.gguf": {"default": CHATML, "tool_use": CHATML},
        }
    )
    assert relate(members).pairs == (
        Pair(
            sha(INSTRUCT),
            sha(CHATML),
            relate(members).pairs[0].similarity,
            (Kinship.VARIANTS,),
            (SharedFile("a.gguf", "default", "tool_use"), SharedFile("b.gguf", "rag", "default")),
        ),
        Pair(
            sha(INSTRUCT),
            sha(b"{{ tools }}"),
            0,
            (Kinship.VARIANTS,),
            (SharedFile("b.gguf", "rag", "tool_use"),),
        ),
        Pair(
            sha(CHATML),
            sha(b"{{ tools }}"),
            0,
            (Kinship.VARIANTS,),
            (SharedFile("b.gguf", "default", "tool_use"),),
        ),
    )


def test_of_many_variants_each_is_compared_with_the_default() -> None:
    variants = {f"variant {number}": b"{{ x%d }}" % number for number in range(30)} | {"default": CHATML}
    relations = relate(collection({"a.gguf": variants}))
    assert len(relations.pairs) == 30
    assert {pair.left for pair in relations.pairs} == {sha(CHATML)}


def test_one_pair_may_have_several_reasons() -> None:
    members = collection({"a.gguf": {"default": CHATML, "tool_use": WITH_DEFAULT_SYSTEM}})
    (pair,) = relate(members, [(sha(WITH_DEFAULT_SYSTEM), sha(CHATML))]).pairs
    assert pair.kinships == (Kinship.REPLACED, Kinship.VARIANTS, Kinship.RELATIVES)
    assert pair.left == sha(WITH_DEFAULT_SYSTEM)
    assert pair.files == (SharedFile("a.gguf", "tool_use", "default"),)


@pytest.mark.parametrize("sources", [[], [b""], [b"", b" "], [b"{", b"{{", b"x", b"x "]])
def test_templates_of_nothing_are_no_trouble(sources: list[bytes]) -> None:
    members = collection({"all": {str(number): source for number, source in enumerate(sources)}})
    assert len(relate(members).pairs) == len(list(combinations(sources, 2)))


def chained(length: int) -> dict[str, bytes]:
    """Each is much like the next, and the first is nothing like the last."""
    return {
        f"{start:03}": b"".join(b"{{ x%d }}" % number for number in range(start, start + 20)) for start in range(length)
    }


def test_a_chain_of_relatives_is_not_one_family() -> None:
    relations = relate(collection(chained(100)))
    assert len(relations.families) > 3
    assert max(len(family.others) for family in relations.families) < 30
    assert all(other.similarity > 0 for family in relations.families for other in family.others)


def test_many_copies_are_one_family_with_few_pairs() -> None:
    members = collection({f"{number:04}": CHATML + b"{# %d #}" % number for number in range(400)})
    relations = relate(members)
    assert [len(family.others) for family in relations.families] == [399]
    assert len(relations.pairs) <= 1.5 * len(members) + 10
    held = [side for pair in relations.pairs for side in (pair.left, pair.right)]
    assert set(held) == set(members)


def edited(source: bytes, rng: random.Random) -> bytes:
    pieces = source.split(b" ")
    for _ in range(rng.randrange(len(pieces) // 2)):
        pieces[rng.randrange(len(pieces))] = b"'%d'" % rng.randrange(5)
    return b" ".join(pieces)


def alike(one: Member, other: Member) -> bool:
    """Whether two templates are relatives, asked of a collection of these two."""
    (pair,) = relate({"1": one, "2": other}, [("1", "2")]).pairs
    return Kinship.RELATIVES in pair.kinships


@given(st.randoms(use_true_random=False))
@settings(deadline=None)
def test_all_relatives_are_found_whatever_else_is_there(rng: random.Random) -> None:
    sources = {edited(rng.choice([CHATML, WITH_DEFAULT_SYSTEM, INSTRUCT]), rng) for _ in range(4)}
    members = collection({str(number): source for number, source in enumerate(sorted(sources))})
    found = {frozenset((pair.left, pair.right)) for pair in relate(members).pairs}
    assert found == {
        frozenset(pair) for pair in combinations(members, 2) if alike(*(members[sha256] for sha256 in pair))
    }


@given(st.randoms(use_true_random=False))
@settings(deadline=None)
def test_the_order_of_the_collection_makes_no_difference(rng: random.Random) -> None:
    sources = {edited(source, rng) for source in (CHATML, WITH_DEFAULT_SYSTEM, INSTRUCT) for _ in range(6)}
    members = collection({str(number): source for number, source in enumerate(sorted(sources))})
    shuffled = list(members.items())
    rng.shuffle(shuffled)
    relations = relate(members)
    assert relate(dict(shuffled)) == relations
    in_families = [sha256 for family in relations.families for sha256 in (family.centre, *kin(family))]
    assert len(in_families) == len(set(in_families))
    assert set(in_families) <= {side for pair in relations.pairs for side in (pair.left, pair.right)}


def test_families_of_real_templates_are_those_a_person_would_name() -> None:
    folder = shared_path("corpus", "templates")
    members = collection({path.stem: path.read_bytes() for path in sorted(folder.glob("*.jinja"))})
    pairs, groups = by_path(members, relate(members))

    def family_of(path: str) -> set[str]:
        return next((group for group in groups if path in group), set())

    assert family_of("meta-llama-Llama-3.1-8B-Instruct") == {
        "meta-llama-Llama-3.1-8B-Instruct",
        "meta-llama-Llama-3.2-3B-Instruct",
        "ollama-library__llama3.2-vision-latest",
        "ollama-library__llama4-latest",
    }
    assert {"Qwen-QwQ-32B", "Qwen-Qwen2.5-7B-Instruct", "Qwen-Qwen3-0.6B"} <= family_of("MiMo-VL")
    assert family_of("Qwen3.8") == {"Qwen3.5-4B", "Qwen3.8"}
    assert family_of("GLM-4.6") == {"GLM-4.6", "GLM-4.7-Flash"}
    assert len(family_of("google-gemma-4-31B-it")) == 3
    assert family_of("openai-gpt-oss-120b") == set()
    assert max(map(len, groups)) <= 10
    assert 60 <= len(pairs) <= 1.5 * len(members)
