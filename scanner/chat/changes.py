"""What was done to a request on its way to the prompt: the changes, step by step, and llama.cpp's own warnings."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Step(StrEnum):
    """A step of `chat.md` section 3 that can change something."""

    TEMPLATE = "template"
    TRIMMED = "trimmed"
    REBUILT = "rebuilt"
    CONTENT = "content"
    DEVELOPER = "developer"
    SYSTEM = "system"
    ARGUMENTS = "arguments"
    HANDLER = "handler"
    VARIABLES = "variables"
    EFFORT = "effort"
    PREFILL = "prefill"
    TOKENS = "tokens"


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that llama.cpp changed: at which step, what and why in words, and the message of the request (counted
    from 0) where it is about one."""

    step: Step
    text: str
    message: int | None = None


CALLS_WITHOUT_TOOLS = (
    "Template supports tool calls but does not natively describe tools. The fallback behaviour used may produce bad "
    "results, inspect prompt w/ --verbose & consider overriding the template."
)
NO_CONTENT_FORM = (
    "Neither string content nor typed content is supported by the template. This is unexpected and may lead to issues."
)
SYSTEM_REMOVED = "Removing system prompt due to template not supporting system role"
OUTDATED_GEMMA4 = "detected an outdated gemma4 chat template, applying compatibility workarounds."
MISSING_FROM_VOCABULARY = "vocab does not have a {} token, jinja template won't work as intended."
"""Warnings of llama.cpp, word for word (`chat.md` section 4)."""


@dataclass(slots=True)
class Journal:
    """Collects the changes and warnings of one request, in their order, each once."""

    changes: dict[Change, None] = field(default_factory=dict)
    warnings: dict[str, None] = field(default_factory=dict)

    def note(self, step: Step, text: str, message: int | None = None) -> None:
        """Something was changed; what several renders of one request would say is said once."""
        self.changes[Change(step, text, message)] = None

    def warn(self, text: str) -> None:
        """llama.cpp would write this into its log; it says each thing once a request."""
        self.warnings[text] = None
