"""Which of a model's templates llama.cpp uses, and for what (`chat.md` section 1)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from scanner.chat.patches import patch
from scanner.results import ChatTemplate, FileResult

DEFAULT = "default"
TOOL_USE = "tool_use"

CHATML = b"""{%- for message in messages -%}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<|im_start|>assistant\\n' -}}
{%- endif -%}"""
"""What llama.cpp falls back to, in words of our own: its prompts and its capabilities are the same."""

NO_TEMPLATE = {b"": "the default template is empty", b"chatml": "the template's text is just `chatml`"}
"""Texts of a default template that count as none."""

TEKKEN_PRE, TEKKEN_BLOCKS, TEKKEN_TEXT = "tekken", 40, b"mistral-v7-tekken"
"""One family without a template gets the *name* of a built-in format as its template's text."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What a server does with a model's templates.

    `default` renders plain requests, `tool_use` those with tools (None: the default does); the capabilities that
    `/props` reports are those of `reported`. `fallback` says in words why the default is none of the model's own;
    `ignored` names the variants that llama.cpp never looks at.
    """

    default: ChatTemplate
    tool_use: ChatTemplate | None
    ignored: tuple[str, ...]
    fallback: str | None

    @property
    def reported(self) -> ChatTemplate:
        """The template whose capabilities `/props` shows."""
        return self.tool_use or self.default


def counts_as_none(source: bytes) -> str | None:
    """Why a default template of this text is none to llama.cpp; None where it is one."""
    return NO_TEMPLATE.get(patch(source).source)


def select(
    templates: Sequence[ChatTemplate],
    *,
    unparseable: Collection[str] = (),
    tokenizer_pre: str | None = None,
    block_count: int | None = None,
) -> Selection:
    """What llama.cpp makes of a model file's templates, given its tokenizer pre-type and number of layers.

    `unparseable` names the variants that do not parse: a tool_use template among them is ignored.
    """
    named = {template.variant: template for template in templates}
    tool_use = None if TOOL_USE in unparseable else named.get(TOOL_USE)
    ignored = tuple(sorted(set(named) - {DEFAULT, TOOL_USE}))
    default = named.get(DEFAULT)
    none = None if default is None else counts_as_none(default.source)
    if default is not None and none is None:
        return Selection(default, tool_use, ignored, None)
    why = none or "no default template"
    if tool_use is not None:
        return Selection(tool_use, tool_use, ignored, f"{why}: the tool_use template serves every request")
    if default is None and tokenizer_pre == TEKKEN_PRE and block_count == TEKKEN_BLOCKS:
        text = ChatTemplate(DEFAULT, TEKKEN_TEXT, "llama.cpp")
        return Selection(text, None, ignored, f"{why}: llama.cpp takes the text `mistral-v7-tekken` for one")
    return Selection(ChatTemplate(DEFAULT, CHATML, "llama.cpp"), None, ignored, f"{why}: llama.cpp uses ChatML")


def select_of_file(result: FileResult, unparseable: Collection[str] = ()) -> Selection:
    """What llama.cpp makes of an extracted model file; `unparseable` as in `select`."""
    return select(
        result.templates,
        unparseable=unparseable,
        tokenizer_pre=result.metadata.tokenizer_pre,
        block_count=result.metadata.block_count,
    )
