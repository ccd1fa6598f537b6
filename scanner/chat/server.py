"""A model as llama-server holds it: its templates, parsed and probed, and its tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scanner.chat.handlers import detect
from scanner.dialect import Template
from scanner.results import Capabilities


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The tokens that a prompt begins and ends with, and whether the tokenizer adds them itself."""

    bos: str = ""
    eos: str = ""
    add_bos: bool = False
    add_eos: bool = False


USUAL = Vocabulary("<s>", "</s>")
"""For a template without a model: the usual tokens, added by nobody. So nothing is cut, and a template that insists on
having them is not blamed for their absence."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A template as a server holds it: parsed from its patched text, with its claimed flags."""

    template: Template
    capabilities: Capabilities

    @property
    def source(self) -> bytes:
        """The patched text."""
        return self.template.source

    @property
    def handler(self) -> str:
        """Which parser of llama.cpp would read the answers."""
        return detect(self.source)


@dataclass(frozen=True, slots=True)
class Server:
    """A model as llama-server holds it.

    `tool_use` is None where requests with tools go to the default. `enable_thinking`: what a request gets that does
    not say (`start.thinks`). `kwargs` are the server's own template variables.
    """

    default: Loaded
    tool_use: Loaded | None = None
    vocabulary: Vocabulary = Vocabulary()
    enable_thinking: bool = True
    kwargs: Mapping[str, Any] = field(default_factory=dict)
