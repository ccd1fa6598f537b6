"""Hostile templates end in a verdict of ours, never in a hang, a crash or another exception."""

from __future__ import annotations

import pytest

from scanner.dialect import ErrorKind, Limits, SyntaxKind, Template, TemplateSyntaxError

SMALL = Limits(steps=20_000, output_bytes=100_000, sequence_items=10_000)

ENDLESS = {
    "nested ranges": "{% for a in range(999) %}{% for b in range(999) %}{% for c in range(999) %}x{% endfor %}"
    "{% endfor %}{% endfor %}",
    "a macro that calls itself": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "a macro that calls itself twice": "{% macro m() %}{{ m() ~ m() }}{% endmacro %}{{ m() }}",
    "a caller that calls its macro": "{% macro m() %}{% call m() %}{{ caller() }}{% endcall %}{% endmacro %}{{ m() }}",
    "a macro given to itself": "{% macro m(f) %}{{ f(f) }}{% endmacro %}{{ m(m) }}",
    "a huge repeat": "{{ 'a' * 1000000000 }}",
    "doubling text": "{% set n = namespace(s='ab') %}{% for i in range(99) %}{% set n.s = n.s ~ n.s %}{% endfor %}",
    "doubling lists": "{% set n = namespace(s=[1]) %}{% for i in range(99) %}{% set n.s = n.s + n.s %}{% endfor %}",
    "a huge range": "{{ range(-9000000000000000000, 9000000000000000000) }}",
    "a list that holds itself, printed": "{% set l = [] %}{% set _ = l.append(l) %}{{ l }}",
    "a list that holds itself, as text": "{% set l = [] %}{% set _ = l.append(l) %}{{ l|string }}",
    "a list that holds itself, as JSON": "{% set l = [] %}{% set _ = l.append(l) %}{{ l|tojson }}",
    "an object that holds itself": "{% set o = {} %}{% set o.o = o %}{{ o|string }}",
    "pairs of pairs, as a key": "{% set n = namespace(t=(1, 2)) %}{% for i in range(60) %}{% set n.t = (n.t, n.t) %}"
    "{% endfor %}{{ {n.t: 1} }}",
    "pairs of pairs, compared": "{% set n = namespace(t=(1, 2)) %}{% for i in range(60) %}{% set n.t = (n.t, n.t) %}"
    "{% endfor %}{{ [n.t] == [n.t] }}",
    "pairs of pairs, as text": "{% set n = namespace(t=(1, 2)) %}{% for i in range(60) %}{% set n.t = (n.t, n.t) %}"
    "{% endfor %}{{ n.t|string }}",
    "pairs of pairs, printed": "{% set n = namespace(t=(1, 2)) %}{% for i in range(60) %}{% set n.t = (n.t, n.t) %}"
    "{% endfor %}{{ n.t }}",
    "growth by replace": "{% set s = 'a' * 1000 %}{{ s|replace('a', s) }}",
    "growth by indent": "{{ ('a\n' * 1000)|indent(10000) }}",
    "growth by JSON indent": "{{ [[[1]]]|tojson(indent=1000000000) }}",
    "growth by join": "{{ range(1000)|join('a' * 1000) }}",
    "growth by split": "{{ ('a' * 90000).split('a')|length }}",
    "an endless search": "{% set l = range(9000) %}{% for i in l %}{{ -1 in l }}{% endfor %}",
    "an endless append": "{% set l = [1] %}{% for i in range(9000) %}{% for j in range(9) %}{% set _ = l.append(i) %}"
    "{% endfor %}{% endfor %}",
    "looks at a long text": "{% set s = 'a' * 90000 %}{% for i in range(9000) %}{% set z = s[3] %}{% endfor %}",
    "keys of long text": "{% set s = 'a' * 90000 %}{% for i in range(9000) %}{% set z = {s: 1} %}{% endfor %}",
    "tests of long text": "{% set s = 'a' * 90000 %}{% for i in range(9000) %}{% set z = s is lower %}{% endfor %}",
    "sorts of long text": "{% set s = 'a' * 90000 %}{% for i in range(9000) %}{% set z = [s, s]|max %}{% endfor %}",
    "an endless sort": "{% set l = range(900) %}{% for i in range(900) %}{% set z = l|sort %}{% endfor %}",
    "a macro with many names in sight": "".join([f"{{% set v{n} = 1 %}}" for n in range(3000)])
    + "{% macro m() %}{% endmacro %}{% for i in range(900) %}{{ m() }}{% endfor %}",
    "a division that kills llama.cpp": "{{ 1 is divisibleby(0) }}",
}

NESTED = {
    "parentheses": "{{ " + "(" * 20_000 + "1" + ")" * 20_000 + " }}",
    "brackets": "{{ " + "[" * 20_000 + "]" * 20_000 + " }}",
    "signs": "{{ " + "- " * 20_000 + "1 }}",
    "nots": "{{ " + "not " * 20_000 + "1 }}",
    "ifs": "{% if true %}" * 20_000 + "{% endif %}" * 20_000,
    "elifs": "{% if true %}" + "{% elif x %}" * 20_000 + "{% endif %}",
    "a sum": "{{ 1" + " + 1" * 20_000 + " }}",
    "filters": "{{ 1" + "|string" * 20_000 + " }}",
    "members": "{{ a" + ".a" * 20_000 + " }}",
    "calls": "{{ a" + "()" * 20_000 + " }}",
    "ternaries": "{{ " + "1 if 0 else " * 20_000 + "1 }}",
}


@pytest.mark.parametrize("source", ENDLESS.values(), ids=ENDLESS.keys())
def test_a_run_beyond_its_budget_is_a_limit(source: str) -> None:
    result = Template(source).run({}, limits=SMALL)
    assert result.error is not None
    assert (result.ok, result.output, result.error.kind) == (False, b"", ErrorKind.LIMIT)


@pytest.mark.parametrize("source", NESTED.values(), ids=NESTED.keys())
def test_nesting_beyond_the_budget_is_a_limit(source: str) -> None:
    with pytest.raises(TemplateSyntaxError) as caught:
        Template(source)
    assert caught.value.kind is SyntaxKind.LIMIT


def test_the_default_budgets_stop_an_endless_template() -> None:
    result = Template(ENDLESS["nested ranges"]).run({})
    assert result.error is not None
    assert result.error.message == "more than 2000000 steps"


@pytest.mark.parametrize("depth", [50, 200, 390])
def test_deep_nesting_within_the_budget_runs(depth: int) -> None:
    assert Template("{{ " + "(" * depth + "1" + ")" * depth + " }}").run({}).output == b"1"
    assert Template("{% if 1 %}" * depth + "x" + "{% endif %}" * depth).run({}).output == b"x"


def test_limits_are_settable() -> None:
    loop = Template("{% for i in range(100) %}x{% endfor %}")
    assert loop.run({}).ok
    assert not loop.run({}, limits=Limits(steps=50)).ok
    assert not loop.run({}, limits=Limits(output_bytes=99)).ok
    assert not loop.run({}, limits=Limits(sequence_items=99)).ok


def test_leaving_a_macro_early_gives_its_call_depth_back() -> None:
    source = "{% macro m() %}{% continue %}{% endmacro %}{% for i in range(900) %}{{ m() }}{% endfor %}ok"
    assert Template(source).run({}).output == b"ok"


def test_what_was_read_before_a_limit_is_kept() -> None:
    result = Template("{{ a }}{{ 'x' * 1000000000 }}{{ b }}").run({"a": 1, "b": 2})
    assert [read.path for read in result.reads] == ["a"]
