"""Each feature of the environment, with a small template."""

from __future__ import annotations

from datetime import datetime

import pytest

from scanner.reference import ReferenceTemplate, variables_of
from tests.reference.cases import CASES, VARIABLES, Case

NOW = datetime(2026, 11, 29, 12, 34, 56).timestamp()


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES if case.output is not None])
def test_a_feature(case: Case) -> None:
    variables = variables_of([], add_generation_prompt=False, bos="<s>", eos="</s>", kwargs=VARIABLES)
    result = ReferenceTemplate(case.template).render(variables, now=NOW)
    assert (result.error, result.output) == (None, case.output)
