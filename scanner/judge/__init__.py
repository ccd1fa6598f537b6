"""Facts → findings. See `rules`."""

from scanner.judge.rules import (
    FILE_RULES,
    RULES,
    FileFacts,
    FileRule,
    Match,
    Rule,
    TemplateFacts,
    VariantFacts,
    judge,
    judge_file,
)

__all__ = [
    "FILE_RULES",
    "RULES",
    "FileFacts",
    "FileRule",
    "Match",
    "Rule",
    "TemplateFacts",
    "VariantFacts",
    "judge",
    "judge_file",
]
