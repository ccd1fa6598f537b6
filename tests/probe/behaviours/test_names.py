"""Variables that a template reads, told from its tree."""

from __future__ import annotations

import pytest

from scanner.dialect import Template
from scanner.probe.behaviours.names import free_names


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("{{ a }}\n{{ b.c }}{{ d['e'] }}{{ f[g] }}", {"a": 1, "b": 2, "d": 2, "f": 2, "g": 2}),
        ("{% set a = 1 %}{{ a }}{{ a.b }}", {}),
        ("{{ a }}{% set a = 1 %}", {"a": 1}),
        ("{% if not a is defined %}{% set a = 1 %}{% endif %}{{ a }}", {"a": 1}),
        ("{% set a = a or 1 %}", {"a": 1}),
        ("{% if x %}{% set a = 1 %}{% else %}{{ a }}{% endif %}", {"x": 1, "a": 1}),
        ("{% if x %}{% set a = 1 %}{% endif %}{{ a }}", {"x": 1}),
        (
            "{% for a, b in c %}{{ a }}{{ b }}{{ loop.index }}{% else %}{{ b }}{% endfor %}{{ a }}",
            {"c": 1, "b": 1, "a": 1},
        ),
        ("{% for a in b if a.c == d %}{% endfor %}", {"b": 1, "d": 1}),
        ("{% for a in b %}{% set c = 1 %}{% endfor %}{{ c }}", {"b": 1, "c": 1}),
        ("{% macro m(a, b=c) %}{{ a }}{{ b }}{{ d }}{{ e }}{% endmacro %}{% set d = 1 %}{{ m(1) }}", {"c": 1, "e": 1}),
        ("{% macro m() %}{{ caller() }}{% endmacro %}{% call(a) m() %}{{ a }}{{ b }}{% endcall %}", {"b": 1}),
        ("{{ a | default(b) | join(', ') }}{{ a is defined }}{{ a is divisibleby(c) }}", {"a": 1, "b": 1, "c": 1}),
        ("{{ namespace(x=y).x }}{{ raise_exception(z) }}{{ f(1) }}", {"y": 1, "z": 1}),
        ("{% set ns = namespace() %}{% set ns.a = b %}{{ ns.a }}", {"b": 1}),
        ("{% set (a, b) = c %}{{ a }}{{ b }}", {"c": 1}),
        ("{% set a %}{{ b }}{% endset %}{{ a }}", {"b": 1}),
        ("{% filter replace(a, 'x') %}{{ b }}{% endfilter %}", {"a": 1, "b": 1}),
        ("{{ true }}{{ None }}{{ range(3) }}{{ strftime_now('%d') }}{{ {'a': b} }}", {"b": 1}),
        ("{{ a if b else c }}{{ [d, (e, d)] }}{{ f[g:h] }}", dict.fromkeys("bacdefgh", 1)),
    ],
)
def test_free_names(source: str, names: dict[str, int]) -> None:
    assert free_names(Template(source)) == names


def test_names_come_in_the_order_of_the_text() -> None:
    source = "{% macro m() %}{{ z }}{% endmacro %}\n{{ y }}{{ x }}"
    assert list(free_names(Template(source)).items()) == [("z", 1), ("y", 2), ("x", 2)]
