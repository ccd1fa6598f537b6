"""The efforts a template knows by name, from every form in which it may know them."""

from __future__ import annotations

import time

import pytest

from scanner.dialect import Template
from scanner.probe.effort_words import LONGEST_WORD, MOST_WORDS, effort_words, mentions_effort
from tests.shared_data import shared_path


def words(source: str) -> list[str]:
    return list(effort_words(Template(source).nodes))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        # Compared with.
        ("{% if reasoning_effort == 'a' %}{% elif 'b' != reasoning_effort %}{% endif %}", ["a", "b"]),
        ("{% if reasoning_strength == 'a' %}{% endif %}", ["a"]),
        ("{{ reasoning_effort is defined and reasoning_effort | lower == 'a' }}", ["a"]),
        ("{{ reasoning_effort.lower().strip() == 'a' }}", ["a"]),
        ("{{ reasoning_effort is eq('a') }}{{ reasoning_effort is not equalto 'b' }}", ["a", "b"]),
        ("{{ reasoning_effort is in ['a', 'b'] }}", ["a", "b"]),
        ("{{ reasoning_effort.startswith('a') }}", ["a"]),
        ("{{ 'a' in reasoning_effort }}", ["a"]),
        ("{{ (reasoning_effort or 'b') == 'a' }}", ["b", "a"]),
        # Listed.
        ("{{ reasoning_effort in ['a', 'b'] }}{{ reasoning_effort not in ('c', 'd') }}", ["a", "b", "c", "d"]),
        ("{{ reasoning_effort in 'a b,c' }}", ["a", "b", "c"]),
        ("{{ reasoning_effort in 'a|b'.split('|') }}", ["a", "b"]),
        ("{{ reasoning_effort in ['a'] + ['b c'] }}", ["a", "b c"]),
        ("{% set known = ['a', 'b'] %}{{ reasoning_effort in known }}", ["a", "b"]),
        ("{% set known = {'a': 1, 'b': 2} %}{{ reasoning_effort in known }}", ["a", "b"]),
        ("{% set known = {'a': 1} %}{{ reasoning_effort in known.keys() | list }}", ["a"]),
        ("{% set o = {'known': ['a']} %}{{ reasoning_effort in o.known }}{{ reasoning_effort in o['known'] }}", ["a"]),
        ("{% set ns = namespace(known=['a']) %}{{ reasoning_effort in ns.known }}", ["a"]),
        ("{% for e in ['a', 'b'] %}{{ reasoning_effort == e }}{% endfor %}", ["a", "b"]),
        ("{% set l = ['a'] %}{% for e in l if e == reasoning_effort %}{% endfor %}", ["a"]),
        ("{% for e, text in {'a': 'x', 'b': 'y'}.items() %}{{ reasoning_effort == e }}{% endfor %}", ["a", "b"]),
        ("{% for e, text in [('a', 'x'), ('b', 'y')] %}{{ e == reasoning_effort }}{% endfor %}", ["a", "b"]),
        ("{% for e in [{'name': 'a'}, {'name': 'b'}] %}{{ e.name == reasoning_effort }}{% endfor %}", ["a", "b"]),
        ("{{ ['a', 'b'] | select('equalto', reasoning_effort) | list }}", ["a", "b"]),
        ("{% set l = [{'n': 'a', 'x': 'b'}] %}{{ l | selectattr('n', 'equalto', reasoning_effort) | list }}", ["a"]),
        # Looked up by.
        ("{{ {'a': 'x', 'b': 'y'}[reasoning_effort] }}", ["a", "b"]),
        ("{% set map = {'a': 'x'} %}{{ map[reasoning_effort | lower] }}", ["a"]),
        ("{% set map = {'a': 'x'} %}{{ map.get(reasoning_effort, 'none at all') }}", ["a"]),
        ("{% set o = {'map': {'a': 'x'}} %}{{ o.map[reasoning_effort] }}", ["a"]),
        ("{{ namespace(a=1, b=2)[reasoning_effort] }}", ["a", "b"]),
        # Through variables assigned from them.
        ("{% set e = reasoning_effort %}{% set f = e | trim %}{{ f == 'a' }}", ["a"]),
        ("{{ f == 'a' }}{% set f = e %}{% set e = reasoning_effort %}", ["a"]),
        ("{% set e = reasoning_effort | default('a') %}{{ e == 'b' }}", ["a", "b"]),
        ("{% set e = reasoning_effort if reasoning_effort is defined else 'a' %}{{ e == 'b' }}", ["a", "b"]),
        ("{% set e = 'a' if x else ('b' if y else reasoning_effort) %}", ["a", "b"]),
        ("{% set e = effort | default(reasoning_effort) %}{{ e == 'a' }}", ["a"]),
        ("{% if not reasoning_effort %}{% set reasoning_effort = 'a' %}{% endif %}", ["a"]),
        ("{% set ns = namespace(e=reasoning_effort) %}{{ ns.e == 'a' }}", ["a"]),
        ("{% set ns = namespace(e='') %}{% set ns.e = reasoning_effort %}{{ ns['e'] == 'a' }}", ["a"]),
        ("{% set o = {'e': reasoning_effort} %}{{ o.e == 'a' }}", ["a"]),
        ("{% set e, f = reasoning_effort, 1 %}{{ e == 'a' }}{{ f == 'b' }}", ["a"]),
        ("{% set e %}{{ reasoning_effort }}{% endset %}{{ e == 'a' }}", ["a"]),
        ("{% macro m(e) %}{{ e == 'a' }}{% endmacro %}{{ m(reasoning_effort) }}", ["a"]),
        ("{% macro m(x, e=1) %}{{ e == 'a' }}{{ x == 'b' }}{% endmacro %}{{ m(1, e=reasoning_effort) }}", ["a"]),
        ("{% macro m(e=reasoning_effort) %}{{ e == 'a' }}{% endmacro %}{{ m() }}", ["a"]),
        ("{% macro m(e) %}{{ e }}{% endmacro %}{% set f = m(reasoning_effort) %}{{ f == 'a' }}", ["a"]),
        # Neither, and what is no word.
        ("{{ reasoning_effort }}", []),
        ("{{ messages[0].role == 'user' }}{{ reasoning_effort }}", []),
        ("{% set on = reasoning_effort == 'a' %}{{ on == 'b' }}", ["a"]),
        ("{% set text = {'a': 'x'}[reasoning_effort] %}{{ text == 'y' }}", ["a"]),
        ("{{ reasoning_effort == '' }}{{ reasoning_effort == ' ' }}{{ reasoning_effort == 'a\\nb' }}", []),
        ("{{ reasoning_effort == 1 }}{{ reasoning_effort in [1, none, ['a']] }}", []),
        ("{{ reasoning_effort == 'a' }}{{ reasoning_effort == 'a' }}", ["a"]),
        ("{# reasoning_effort == 'a' #}{{ \"reasoning_effort == 'b'\" }}", []),
    ],
)
def test_words(source: str, expected: list[str]) -> None:
    assert words(source) == expected


def test_a_name_may_stand_in_a_circle() -> None:
    assert words("{% set a = b %}{% set b = a %}{{ reasoning_effort == a }}{{ reasoning_effort == 'x' }}") == ["x"]
    assert words("{% set a = a + ['x'] %}{{ reasoning_effort in a }}") == ["x"]
    assert words("{% set reasoning_effort = reasoning_effort %}{{ reasoning_effort == 'x' }}") == ["x"]


def test_only_so_many_words_of_such_a_length() -> None:
    many = words("{{ reasoning_effort in [" + ",".join([f"'w{number}'" for number in range(99)]) + "] }}")
    assert many == [f"w{number}" for number in range(MOST_WORDS)]
    assert words("{{ reasoning_effort in ['" + "x" * (LONGEST_WORD + 1) + "', 'a'] }}") == ["a"]


@pytest.mark.parametrize(
    "source",
    [
        "".join([f"{{% set a{n} = a{n + 1} %}}" for n in range(3000)]) + "{{ reasoning_effort == a0 }}",
        "".join([f"{{% set a{n} = a{n + 1} + a{n + 1} %}}" for n in range(3000)]) + "{{ reasoning_effort == a0 }}",
        "{% set l = [" + "'x'," * 9000 + "] %}" + "{{ reasoning_effort in l }}" * 3000,
        "{% set l = {" + "'x': 1," * 9000 + "} %}" + "{{ l.y == reasoning_effort }}" * 3000,
        "{% set l = [" + "1," * 3000 + "] %}" + "{% for x in l %}{{ x == reasoning_effort }}{% endfor %}" * 3000,
        "{% macro m(a) %}{{ a }}{% endmacro %}" + "{{ m(reasoning_effort) == m('x') }}" * 3000,
        ("{{ " + "reasoning_effort or " * 300 + "x }}") * 40,
        ("{{ " + "'x' if y else (" * 150 + "reasoning_effort" + ")" * 150 + " }}") * 40,
        ("{{ reasoning_effort" + " | lower" * 300 + " == 'x' }}") * 40,
    ],
    ids=["chain", "doubling", "long list", "long object", "loops", "macros", "alternatives", "branches", "filters"],
)
def test_a_template_made_to_be_slow_is_not(source: str) -> None:
    template = Template(source)
    started = time.process_time()
    effort_words(template.nodes)
    assert time.process_time() - started < 5


def test_a_text_without_the_names_knows_no_effort() -> None:
    assert mentions_effort(b"{{ reasoning_effort }}")
    assert mentions_effort(b"{{ reasoning_strength }}")
    assert not mentions_effort(b"{{ reasoning_content }}{{ effort }}")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Qwen3.8", ["xhigh", "medium", "low"]),
        ("tencent-Hy3", ["no_think", "high", "low"]),
        ("openai-gpt-oss-120b", ["medium"]),
        ("Cohere2MoE", ["none"]),
        ("deepseek-ai-DeepSeek-V4", ["max"]),
        ("deepseek-ai-DeepSeek-V4-Flash-0731", ["high", "max"]),
        ("muse-glimmer", ["high"]),
        ("upstage-Solar-Open-100B", ["high", "low", "minimal"]),
        ("Qwen-Qwen3-0.6B", []),
    ],
)
def test_words_of_real_templates(name: str, expected: list[str]) -> None:
    assert words(shared_path("corpus", "templates", f"{name}.jinja").read_text(encoding="utf-8")) == expected
