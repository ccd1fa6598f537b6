"""Our engine and the real one agree on generated input; `python -m tests.differential` puts any number to them."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scanner import oracle
from scanner.dialect import Template, TemplateSyntaxError
from tests.differential import generate
from tests.differential.__main__ import MODES, described, run
from tests.differential.chat import ChatGrammar
from tests.differential.compare import Comparison, kind
from tests.differential.flags import LIMITS
from tests.differential.mutate import tokens
from tests.differential.renders import variables
from tests.differential.shrink import shrink

SEED = 3
needs_engine = pytest.mark.skipif(bool(oracle.available()), reason=oracle.available() or "")


@needs_engine
@pytest.mark.parametrize(("mode", "count"), [("templates", 300), ("snippets", 1000), ("renders", 300)])
def test_both_engines_agree(mode: str, count: int) -> None:
    make, engine = MODES[mode]
    failures, incomparable = run(generate.cases(make, SEED, count), engine, workers=2)
    assert not failures, "\n\n".join(map(described, failures[:5]))
    assert incomparable.total() < count / 4, incomparable


@pytest.mark.parametrize("make", [generate.template, generate.snippet])
def test_a_case_is_the_same_whenever_it_is_made(make: generate.Make) -> None:
    first = list(generate.cases(make, SEED, 30))
    assert [make(SEED, number) for number in reversed(range(30))] == first[::-1]
    assert list(generate.cases(make, SEED + 1, 30)) != first


@given(st.randoms(use_true_random=False))
# A template is a few hundred choices, however small.
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.large_base_example])
def test_a_template_made_by_the_rules_gives_a_result(random: Random) -> None:
    source = ChatGrammar(random).template()
    assert "".join(tokens(source)) == source
    try:
        template = Template(source)
    except TemplateSyntaxError:
        return
    result = template.run(variables(source), limits=LIMITS)
    assert result.ok is (result.error is None)


def test_a_failure_is_made_small_and_stays_of_its_kind() -> None:
    def compare(sources: object) -> list[Comparison]:
        assert isinstance(sources, list)
        return [Comparison(source, "a 1", "b 2" if "x" in source and "y" in source else "a 1") for source in sources]

    [failure] = compare(["{{ one + x }} two {% set y = 3 %}"])
    small = shrink(failure, compare)
    assert small.source == "xy"
    assert kind(small) == kind(failure) == "a …  ≠  b …"
