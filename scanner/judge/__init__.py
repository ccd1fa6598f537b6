"""Facts → findings. See `rules`."""

from scanner.judge.rules import (
    ALL_RULES,
    FILE_RULES,
    RULES,
    AnyRule,
    FileFacts,
    Match,
    Rule,
    TemplateFacts,
    VariantFacts,
    judge,
    judge_file,
)

__all__ = [
    "ALL_RULES",
    "FILE_RULES",
    "RULES",
    "AnyRule",
    "FileFacts",
    "Match",
    "Rule",
    "TemplateFacts",
    "VariantFacts",
    "judge",
    "judge_file",
]
