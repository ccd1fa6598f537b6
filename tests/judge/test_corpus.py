"""Which rules hold of published templates. Those named were looked up in the text (`behaviours.md`, 4 and 5)."""

from __future__ import annotations

from functools import cache

from scanner.pipeline import analyse_template
from tests.judge.cases import NOW
from tests.shared_data import shared_path

LLAMA_VISION = "ollama-library__llama3.2-vision-latest.jinja"
FOUND = {
    "overclaims-system_role": {"ollama-library__gemma3-1b.jinja", LLAMA_VISION},
    "underclaims-tools": {LLAMA_VISION},
    "underclaims-tool_calls": {LLAMA_VISION},
    "underclaims-object_arguments": {LLAMA_VISION},
    "underclaims-typed_content": {
        "LFM2.5-8B-A1B.jinja",
        "mistralai-Ministral-3-14B-Reasoning-2512.jinja",
        "ollama-library__llama4-latest.jinja",
    },
    "effort-rejected": {"Qwen3.8.jinja", "tencent-Hy3.jinja"},
    "call-needs-null-content": {
        "deepseek-ai-DeepSeek-R1-Distill-Llama-8B.jinja",
        "earlier__llama-cpp-deepseek-r1-lcp0.3.16.jinja",
        "ollama-library__deepseek-r1-8b.jinja",
        "ollama-library__deepseek-v2.5-236b.jinja",
        "ollama-library__deepseek-v3-671b.jinja",
    },
    "server-does-not-start": {"ollama-library__firefunction-v2-70b.jinja"},
    "calls-not-json": {"ollama-library__firefunction-v2-70b.jinja"},
    "arguments-lost": {"MiniMax-M3.jinja", "openbmb-MiniCPM5-1B.jinja"},
    "arguments-double-encoded": {LLAMA_VISION},
    "arguments-python-repr": {"ByteDance-Seed-OSS.jinja", "ollama-library__qwen3-coder-30b.jinja"},
    "typed-join-differs": {
        "LFM2.5-8B-A1B.jinja",
        "mistralai-Ministral-3-14B-Reasoning-2512.jinja",
        "ollama-library__llama4-latest.jinja",
    },
}
"""Rule → all templates of the corpus that it holds of."""
COUNTS = {
    "calls-without-tools": 7,
    "clock-dependent": 16,
    "content-lost": 20,
    "default-system": 67,
    "history-breaks": 36,
    "late-system-dropped": 15,
    "late-system-raises": 16,
    "outdated-gemma4": 2,
    "patched-by-llama.cpp": 2,
    "probe-threw": 4,
    "reference-differs": 13,
    "roles-must-alternate": 13,
    "second-system-dropped": 22,
    "system-raises": 4,
    "unused-kwargs": 43,
}
"""Rule → how many templates it holds of, for all others that hold of any."""


@cache
def found() -> dict[str, set[str]]:
    """Rule → the templates that it holds of; each rule at most once for each."""
    rules: dict[str, set[str]] = {}
    for path in sorted(shared_path("corpus", "templates").iterdir()):
        findings = analyse_template(path.read_bytes(), now=NOW).findings
        assert len({finding.rule for finding in findings}) == len(findings), path.name
        for finding in findings:
            rules.setdefault(finding.rule, set()).add(path.name)
    return rules


def test_the_rules_hold_of_the_templates_that_were_looked_up() -> None:
    assert {rule: names for rule, names in found().items() if rule not in COUNTS} == FOUND


def test_the_rules_hold_as_often_as_was_counted() -> None:
    assert {rule: len(names) for rule, names in found().items() if rule not in FOUND} == COUNTS
