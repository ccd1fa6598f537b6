"""Which lines of a template hold something to run, and which of them ran.

In a case every line of the template stands behind a sign of what becomes of it: `+` it ran, `-` it did not although it
holds something to run, a blank: there is nothing to run.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scanner.dialect import ErrorKind, RenderResult, Template, TemplateSyntaxError
from scanner.probe.capabilities import probe
from scanner.probe.profiles import PROFILES
from tests.dialect.test_properties import LIMITS, SOURCES, VARIABLES
from tests.differential.chat import ChatGrammar
from tests.shared_data import shared_path

GIVEN = {"yes": True, "no": False, "three": [1, 2, 3], "nothing": [], "name": "bo", "messages": VARIABLES["messages"]}

CASES = {
    "text": """
+ one
+ two
""",
    "text with blank lines": """
+ one

+ two

""",
    "a print": """
+ {{ name }}
""",
    "a print over several lines": """
+ {{
+   name
+
+   ~ 'x'
+ }}
""",
    "a tag that opens on a line of its own": """
+ {%-
+
+   set x = 1
+ -%}
""",
    "comments": """
  {# one #}
  {# two
  three #}
+ four {# five
  six #}
  {#- seven -#}
""",
    "a comment between texts of one line": """
+ aa {# b
+ c #} d
""",
    "white space that a tag strips": """
+ {{ name -}}


+ text


+ {{- name }}
""",
    "strings that look like tags": """
+ {{ '%} {{ {% if
+ -%}' }}
+ {% set x = "{% if no %}
+ }}" %}
+ {{ x }}
""",
    "generation does nothing": """
  {% generation %}
+ text
  {% endgeneration %}
""",
    "if": """
+ {% if yes %}
+ a
  {% endif %}
+ {% if no %}
- b
  {% endif %}
""",
    "if and else": """
+ {% if yes %}
+ a
  {% else %}
- b
  {% endif %}
+ {% if no %}
- a
  {% else %}
+ b
  {% endif %}
""",
    "the first elif that holds": """
+ {% if no %}
- a
+ {% elif no %}
- b
+ {% elif
+     yes %}
+ c
- {% elif yes %}
- d
  {% else %}
- e
  {% endif %}
""",
    "no elif that holds": """
+ {% if no %}
- a
+ {%-
+   elif no %}
- b
  {% else %}
+ c
  {% endif %}
""",
    "branches without anything": """
+ {% if yes %}{% else %}{% endif %}
+ {% if no %}
+ {% elif no %}
  {% endif %}
""",
    "several statements on one line": """
+ {% if no %}{{ name }}{% else %}
+ {{ name }}{% endif %}
""",
    "a ternary is one statement": """
+ {{ 'a'
+    if yes else
+    'b' }}
""",
    "a condition over several lines": """
+ {% if yes
+    or no %}
+ a
  {% endif
  %}
""",
    "a loop": """
+ {% for x in three
+    if x > 1 %}
+ {{ x }}
  {% else %}
- none
  {% endfor %}
""",
    "a loop without rounds": """
+ {% for x in nothing %}
- {{ x }}
  {% else %}
+ none
  {% endfor %}
""",
    "what some round ran": """
+ {% for x in three %}
+   {% if x == 1 %}
+ one
+   {% elif x == 2 %}
+ two
+   {% elif x == 4 %}
- four
    {% endif %}
  {% endfor %}
""",
    "break": """
+ {% for x in three %}
+ {{ x }}
+ {% break %}
- after
  {% else %}
+ no round ended
  {% endfor %}
+ text
""",
    "break in a later round": """
+ {% for x in three %}
+   {% if x == 2 %}
+ a
+     {% break %}
- b
    {% endif %}
+   after
  {% else %}
-   no round ended
  {% endfor %}
""",
    "continue in every round": """
+ {% for x in three %}
+   {% if yes %}
+     {% continue %}
    {% endif %}
-   after
  {% else %}
+   no round ended
  {% endfor %}
""",
    "continue in the last round": """
+ {% for x in three %}
+   {% if x == 3 %}{% continue %}{% endif %}
+   after
  {% endfor %}
""",
    "a macro that is never called": """
+ {% macro m(a,
+            b=name) %}
- {{ a }}
  {% endmacro %}
+ text
""",
    "a macro that is called": """
+ {% macro m(a) %}
+   {% if a %}
+ yes
    {% else %}
- no
    {% endif %}
  {% endmacro %}
+ {{ m(yes) }}
""",
    "a macro that is called where nobody comes": """
+ {% macro m() %}
- {{ name }}
  {% endmacro %}
+ {% if no %}
- {{ m() }}
  {% endif %}
""",
    "a macro that is called from another": """
+ {% macro inner() %}
+ a
  {% endmacro %}
+ {% macro outer() %}
+ {{ inner() }}
  {% endmacro %}
+ {{ outer() }}
""",
    "a call block": """
+ {% macro m() %}
+ <{{ caller() }}>
  {% endmacro %}
+ {% call
+    m() %}
+ inside
  {% endcall %}
""",
    "a call block whose macro does not ask": """
+ {% macro m() %}
+ text
  {% endmacro %}
+ {% call m() %}
- inside
  {% endcall %}
""",
    "a block set": """
+ {% set x %}
+ a
+   {% if no %}
- b
    {% endif %}
  {% endset %}
""",
    "a filter block": """
+ {% filter
+    upper %}
+ text
  {% endfilter %}
""",
    "an error": """
+ before
+ {{ raise_exception('no') }}
- after
""",
    "an error in the middle of a statement": """
+ {{ name ~
+    raise_exception('no') ~
+    name }}
- after
""",
    "an error in a condition": """
+ {% if raise_exception('no') %}
- a
- {% elif yes %}
- b
  {% else %}
- c
  {% endif %}
""",
    "an error in the condition of an elif": """
+ {% if no %}
- a
+ {% elif raise_exception('no') %}
- b
  {% else %}
- c
  {% endif %}
""",
    "an error in a body": """
+ {% if yes %}
+   {% for x in three %}
+     {{ x }}
+     {% if x == 2 %}
+       {{ raise_exception('two') }}
-       after
      {% endif %}
+     end of a round
    {% else %}
-     none
    {% endfor %}
-   after
  {% endif %}
- after
""",
    "an error in a macro": """
+ {% macro m(a) %}
+ before
+ {{ 1 + a.b.c }}{{ raise_exception('no') }}
- after
  {% endmacro %}
+ {% set x %}
+ {{ m({}) }}
- after
  {% endset %}
- after
""",
    "an error in a macro that did well before": """
+ {% macro m(a) %}
+ before
+ {% if a %}{{ raise_exception('no') }}{% endif %}
+ after
  {% endmacro %}
+ {{ m(no) }}
+ {{ m(yes) }}
- after
""",
    "an error for what is called": """
+ {% call no() %}
- inside
  {% endcall %}
""",
    "break outside of a loop": """
+ {% if yes %}
+ {% break %}
- after
  {% endif %}
- after
""",
}


def split(case: str) -> tuple[str, dict[int, str]]:
    """The template of a case, and the signs of its lines that hold something to run."""
    lines = case.removeprefix("\n").removesuffix("\n").split("\n")
    signs = {number: line[:1] for number, line in enumerate(lines, 1) if line[:1] in ("+", "-")}
    return "\n".join([line[2:] for line in lines]), signs


def signs_of(template: Template, result: RenderResult) -> dict[int, str]:
    return {number: "+" if number in result.lines else "-" for number in template.lines}


@pytest.mark.parametrize("name", CASES)
def test_lines_run(name: str) -> None:
    source, expected = split(CASES[name])
    template = Template(source)
    result = template.run(GIVEN)
    assert signs_of(template, result) == expected
    assert result.ok is not ("error" in name or "outside" in name)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("line_end", ["\r\n", "\r"])
def test_lines_are_those_of_the_normalised_text(name: str, line_end: str) -> None:
    source, expected = split(CASES[name])
    template = Template(source.replace("\n", line_end))
    assert signs_of(template, template.run(GIVEN)) == expected


@pytest.mark.parametrize("source", ["", "\n", "  \n\t", "{# a #}", "{% generation %}"])
def test_there_may_be_nothing_to_run(source: str) -> None:
    template = Template(source)
    assert (template.lines, template.run({}).lines) == ((), ())


def test_white_space_is_nothing_to_run() -> None:
    template = Template("\n \n\ta\n \t\v\f\n{{ 1 -}} \n \n b \n  ")
    assert template.lines == template.run({}).lines == (3, 5, 7)


def test_lines_are_sorted_numbers_without_repeats() -> None:
    template = Template("{% macro m() %}\na{{ 1 }}{{ 2 }}\n{% endmacro %}\n\n{{ m() }}{{ m() }}\n")
    assert template.lines == template.run({}).lines == (1, 2, 5)


def test_they_are_found_without_statistics_too() -> None:
    template = Template("{{ a }}\n{% if b %}\nc\n{% endif %}")
    assert template.run({"a": 1}, statistics=False).lines == (1, 2)


def test_runs_do_not_add_up() -> None:
    template = Template("{% if a %}\nb\n{% else %}\nc\n{% endif %}")
    first, second = template.run({"a": True}), template.run({"a": False})
    assert (first.lines, second.lines) == ((1, 2), (1, 4))


def test_a_budget_that_runs_out_keeps_the_lines_up_to_there() -> None:
    template = Template(
        "{{ 1 }}\n{% for i in range(999) %}\n{% for j in range(999) %}\nx\n{% endfor %}\n{% endfor %}\ny"
    )
    result = template.run({}, limits=LIMITS)
    assert result.error is not None
    assert result.error.kind is ErrorKind.LIMIT
    assert result.lines == (1, 2, 3, 4)


def test_so_does_a_body_for_which_there_is_no_budget() -> None:
    result = Template("{% macro m() %}\n{{ m() }}\n{% endmacro %}\n{{ m() }}").run({})
    assert result.error is not None
    assert result.lines == (1, 2, 4)


def test_a_long_chain_is_no_trouble() -> None:
    count = 300
    template = Template("{% if false %}\n" + "{% elif false %}\n" * count + "{% endif %}\n")
    assert template.lines == template.run({}).lines == tuple(range(1, count + 2))


# -- any template


def check(template: Template, result: RenderResult) -> None:
    """What holds for every run."""
    assert list(template.lines) == sorted(set(template.lines))
    assert list(result.lines) == sorted(set(result.lines))
    ran = set(result.lines)
    assert ran <= set(template.lines)
    assert {read.line for read in result.reads} <= ran
    if result.error is not None and result.error.line is not None:
        assert result.error.line in ran


def check_source(source: str) -> None:
    try:
        template = Template(source)
    except TemplateSyntaxError:
        return
    check(template, template.run(VARIABLES, limits=LIMITS))


@given(SOURCES)
@settings(max_examples=400, deadline=None)
def test_any_arrangement_of_words(source: str) -> None:
    check_source(source)


@given(SOURCES)
@settings(max_examples=300, deadline=None)
def test_any_expression_on_several_lines(source: str) -> None:
    check_source("{{ " + source.replace(" ", "\n") + " }}")


@given(st.randoms(use_true_random=False), st.sampled_from([" ", "\n", "\r\n"]))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.large_base_example])
def test_any_program(random: Random, blank: str) -> None:
    check_source(ChatGrammar(random).snippet().replace(" ", blank))


@given(st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.large_base_example])
def test_any_chat_template(random: Random) -> None:
    check_source(ChatGrammar(random).template())


def check_probes(source: bytes) -> None:
    template = Template(source)
    for profile in PROFILES.values():
        _, runs = probe(template, profile, now=0, lines=True)
        for run in runs:
            ran = set(run.lines)
            assert ran <= set(template.lines)
            assert {read.line for read in run.reads} <= ran
            assert run.error is None or run.error.line is None or run.error.line in ran


def published() -> list[Path]:
    return sorted(shared_path("corpus", "templates").glob("*.jinja"))


def test_reads_and_errors_of_real_templates_are_on_lines_that_ran() -> None:
    checked = 0
    for path in published():
        try:
            check_probes(path.read_bytes())
        except TemplateSyntaxError:
            continue
        checked += 1
    assert checked > 100
