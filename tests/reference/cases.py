"""Small templates, one for each feature of the environment, and what they print.

`tests/reference/test_transformers.py` puts the same ones to transformers itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Case:
    """A template and its output; None: it fails, `test_errors.py` says how."""

    name: str
    template: str
    output: str | None


VARIABLES: Mapping[str, Any] = {
    "messages": [{"role": "user", "content": "é<&'\ud800"}],
    "data": {"b": 1, "a": [True, None, "<é>"]},
    "tags": ["x", "y"],
}
"""What the templates see, besides the tokens `<s>` and `</s>`."""

CASES: tuple[Case, ...] = (
    Case("text", "plain", "plain"),
    Case("the last line end goes", "a\n\n", "a\n"),
    Case("a line end after a block goes", "{% if true %}\na\n{% endif %}\nb", "a\nb"),
    Case("blanks before a block go", "a\n  {% if true %}b{% endif %}", "a\nb"),
    Case("blanks before an output stay", "a\n  {{ 'b' }}\nc", "a\n  b\nc"),
    Case("windows line ends", "a\r\nb\rc", "a\nb\nc"),
    Case("nothing is escaped", "{{ messages[0].content }}", "é<&'\ud800"),
    Case("lone surrogates in the source", "\udc80{{ '\ud800' }}", "\udc80\ud800"),
    Case("tokens", "{{ bos_token }}{{ eos_token }}{{ pad_token }}", "<s></s>"),
    Case("no tools", "{{ tools is none }} {{ documents is none }} {{ add_generation_prompt }}", "True True False"),
    Case("undefined is empty", "[{{ nothing }}{{ data.nothing }}]", "[]"),
    Case("a key that is a method", "{{ {'items': 1}.items is callable }} {{ {'items': 1}['items'] }}", "True 1"),
    # Loop controls.
    Case("break", "{% for i in [1, 2, 3] %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}", "1"),
    Case("continue", "{% for i in [1, 2, 3] %}{% if i == 2 %}{% continue %}{% endif %}{{ i }}{% endfor %}", "13"),
    # Generation blocks.
    Case("generation", "a{% generation %}b{% endgeneration %}c", "abc"),
    Case("generation and white space", "a\n  {%- generation %}\n  b\n  {% endgeneration %}\nc", "a  b\nc"),
    Case("generation reads outside", "{% set x = 1 %}{% generation %}{{ x }}{% endgeneration %}", "1"),
    Case("generation keeps its own", "{% generation %}{% set x = 1 %}{% endgeneration %}[{{ x }}]", "[]"),
    Case(
        "generation hides",
        "{% set x = 1 %}{% generation %}{% set x = 2 %}{{ x }}{% endgeneration %}{{ x }}",
        "21",
    ),
    Case(
        "generation in a loop",
        "{% for t in tags %}{% generation %}{{ t }}{{ loop.index }}{% endgeneration %}{% endfor %}",
        "x1y2",
    ),
    Case(
        "generation writes a namespace",
        "{% set n = namespace(x=1) %}{% generation %}{% set n.x = 2 %}{% endgeneration %}{{ n.x }}",
        "2",
    ),
    Case(
        "a loop is not left from generation",
        "{% for t in tags %}{% generation %}{% break %}{% endgeneration %}{% endfor %}",
        None,
    ),
    Case("generation without an end", "{% generation %}a", None),
    # tojson.
    Case("tojson", "{{ data | tojson }}", '{"b": 1, "a": [true, null, "<é>"]}'),
    Case("tojson of text", "{{ messages[0].content | tojson }}", '"é<&\'\ud800"'),
    Case("tojson in ASCII", "{{ 'é' | tojson(ensure_ascii=true) }}", '"\\u00e9"'),
    Case("tojson with an indent", "{{ {'a': [1]} | tojson(indent=1) }}", '{\n "a": [\n  1\n ]\n}'),
    Case("tojson with separators", "{{ data | tojson(separators=(',', ':')) }}", '{"b":1,"a":[true,null,"<é>"]}'),
    Case("tojson sorted", "{{ {'b': 1, 'a': 2} | tojson(sort_keys=true) }}", '{"a": 2, "b": 1}'),
    Case("tojson by place", "{{ {'é': 1} | tojson(true, 2, none, true) }}", '{\n  "\\u00e9": 1\n}'),
    Case("tojson of undefined", "{{ nothing | tojson }}", None),
    # Functions.
    Case("strftime_now", "{{ strftime_now('%d %b %Y %H:%M:%S') }}", "29 Nov 2026 12:34:56"),
    Case("strftime_now by name", "{{ strftime_now(format='%Y-%m-%d%Z') }}", "2026-11-29"),
    Case("strftime_now in Chinese", "{{ strftime_now('%Y年%m月') }}", "2026年11月"),
    Case("strftime_now in a macro", "{% macro m() %}{{ strftime_now('%Y') }}{% endmacro %}{{ m() }}", "2026"),
    Case("strftime_now without a format", "{{ strftime_now() }}", None),
    Case("raise_exception", "{{ raise_exception('no ' ~ 1) }}", None),
    Case("raise_exception by name", "{{ raise_exception(message='no') }}", None),
    Case("raise_exception of no text", "{{ raise_exception(none) }}", None),
    Case("raise_exception without a message", "{{ raise_exception() }}", None),
    Case("dict", "{{ dict(a=1) }} {{ dict([('b', 2)], c=3) }} {{ dict() }}", "{'a': 1} {'b': 2, 'c': 3} {}"),
    Case("dict.fromkeys", "{{ dict.fromkeys(tags, 0) }}", "{'x': 0, 'y': 0}"),
    Case("dict has no other attribute", "[{{ dict.items }}{{ dict.mro }}]", "[]"),
    Case(
        "namespace", "{% set n = namespace({'a': 1}, self=2) %}{% set n.b = 3 %}{{ n.a }}{{ n.self }}{{ n.b }}", "123"
    ),
    Case("namespace of an underscore", "{{ namespace(_a=1) }}", None),
    Case("an underscore set in a namespace", "{% set n = namespace() %}{% set n._a = 1 %}", None),
    Case("lists do not change", "{{ tags.append('z') }}", None),
    Case("dicts do not change", "{{ data.update(c=1) }}", None),
    Case("copies are allowed", "{{ (tags + ['z']) | join }}{{ data.get('b') }}", "xyz1"),
    # What the sandbox refuses: an attribute that is printed is as good as absent, one that is used is an error.
    Case("the class of a value", "[{{ messages.__class__ }}{{ ''['__class__'] }}{{ ''|attr('__class__') }}]", "[]"),
    Case("the classes of all", "{{ ''.__class__.__mro__ }}", None),
    Case("the globals of a function", "{{ raise_exception.__globals__['os'] }}", None),
    Case("a format that looks inside", "[{{ '{0.__class__}'.format(1) }}]", "[]"),
    Case("a format that looks far inside", "{{ '{0.__class__.__mro__}'.format(1) }}", None),
    Case("a format_map that looks inside", "{{ '{a.__class__.__mro__}'.format_map({'a': 1}) }}", None),
    Case(
        "a format taken from a filter", "{{ (['{0.__class__.__mro__}'] | map(attribute='format') | first)(1) }}", None
    ),
    Case("the frame of a generator", "[{{ (tags | map('upper')).gi_frame }}]", "[]"),
    Case("too long a range", "{{ range(100001) | length }}", None),
    Case("a long range", "{{ range(100000) | length }}", "100000"),
    # What there is no loader for, and what is not known.
    Case("include", "{% include 'x' %}", None),
    Case("an unknown filter", "{{ 1 | nothing }}", None),
    Case("an unknown filter never reached", "{% if false %}{{ 1 | nothing }}{% endif %}ok", "ok"),
    Case("an unknown filter reached", "{% if true %}{{ 1 | nothing }}{% endif %}", None),
    Case("an infinity made of constants", "{% set x = 1e308 * 10 %}{{ x }}", None),
    Case("21 loops in each other", "{% for t in tags %}" * 21 + "{% endfor %}" * 21, None),
)
