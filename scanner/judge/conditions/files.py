"""What is to be said of a model file as a whole."""

from __future__ import annotations

from collections.abc import Iterator

from scanner.judge.rule import FileFacts, Match, VariantFacts
from scanner.results import NOT_LOADED, Outcome

DEFAULT, TOOL_USE = "default", "tool_use"
"""The variants that llama.cpp knows (`chat.md` section 1)."""
PROBLEMS_SHOWN = 3
"""What keeps a model from being loaded, as far as one finding lists it."""


def no_template(facts: FileFacts) -> Iterator[Match]:
    """No template at all, or one that counts as none. What is no model of its own, and so needs none, is skipped."""
    if facts.outcome is Outcome.NO_TEMPLATE:
        yield Match("no chat template: llama.cpp falls back to one of its own", "file")


def incomplete_split(facts: FileFacts) -> Iterator[Match]:
    """A split model that llama.cpp does not load, as its extraction noted."""
    problems = [note.removeprefix(NOT_LOADED) for note in facts.notes if note.startswith(NOT_LOADED)]
    if problems:
        more = len(problems) - PROBLEMS_SHOWN
        others = f"; and {more} more" if more > 0 else ""
        yield Match(f"{NOT_LOADED}{'; '.join(problems[:PROBLEMS_SHOWN])}{others}", "file")


def default_does_not_parse(facts: FileFacts) -> Iterator[Match]:
    """A default that does parse and fails is found with its template, once for all files that hold it."""
    default = _variant(facts, DEFAULT)
    if default is not None and default.outcome is Outcome.NOT_PARSEABLE:
        yield Match("llama-server would not start: the default template does not parse", f"variant {DEFAULT}")


def tool_use_ignored(facts: FileFacts) -> Iterator[Match]:
    """A tool-use template that does not parse."""
    tool_use = _variant(facts, TOOL_USE)
    if tool_use is not None and tool_use.outcome is Outcome.NOT_PARSEABLE:
        yield Match("llama.cpp ignores the tool_use template, which does not parse", f"variant {TOOL_USE}")


def variants_disagree(facts: FileFacts) -> Iterator[Match]:
    """Both of llama.cpp's variants have flags, and not the same ones."""
    default, tool_use = _variant(facts, DEFAULT), _variant(facts, TOOL_USE)
    if default is None or default.capabilities is None or tool_use is None or tool_use.capabilities is None:
        return
    claims, others = default.capabilities.as_llama_cpp(), tool_use.capabilities.as_llama_cpp()
    differing = [name.removeprefix("supports_") for name in claims if claims[name] != others[name]]
    if differing:
        text = f"default and tool_use differ in {', '.join(differing)}; llama-server reports those of tool_use"
        yield Match(text, f"variants {DEFAULT}, {TOOL_USE}")


def double_bos(facts: FileFacts) -> Iterator[Match]:
    """The tokenizer says that it adds the BOS, and the default template prints it: from the variable, or, as far as
    its render shows, as text."""
    default = _variant(facts, DEFAULT)
    if facts.bos.added is not True or default is None or default.bos is None:
        return
    by_variable = default.bos.detail == "by the template" or default.bos.outcome.startswith("twice")
    as_text = bool(facts.bos.text) and default.bos.evidence.startswith(facts.bos.text or "")
    if by_variable or as_text:
        token = f" ({facts.bos.text})" if facts.bos.text else ""
        yield Match(f"both its template and its tokenizer put a BOS{token} first; llama.cpp cuts one", "behaviour bos")


def _variant(facts: FileFacts, name: str) -> VariantFacts | None:
    return next((variant for variant in facts.variants if variant.template.variant == name), None)
