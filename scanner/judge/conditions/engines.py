"""Where llama.cpp and Python's Jinja2 part, and what only one of them knows."""

from __future__ import annotations

import re
from collections.abc import Iterator

from scanner.judge.rule import SEPARATOR, Match, TemplateFacts, listed
from scanner.results import Behaviour

DIFFERS, ONLY_LLAMA_CPP_FAILS = "differs", "only llama.cpp fails"
"""Outcomes of the behaviour `reference` that a finding is made of. That only the reference fails is no fault where
llama.cpp serves the template, and most often comes of what llama.cpp does to a request first."""
NOT_COUNTED = "not counted: "
SIGNS = re.compile(
    rb"(?P<code>\{[{%])|(?P<comment>\{#)|(?P<end>[}%]\})|(?P<end_comment>#\})"
    rb"|(?P<dunder>__(?:class|globals|init|subclasses|mro|base|bases|builtins|dict|import|code|getattribute)__)"
)
"""Where code and comments begin and end, and Python's own names."""


def reference_differs(facts: TemplateFacts) -> Iterator[Match]:
    """Standard conversations that both engines render, and not alike, or that only llama.cpp fails at."""
    found = facts.behaviour("reference")
    if found is None or found.outcome not in (DIFFERS, ONLY_LLAMA_CPP_FAILS):
        return
    failing, differing = [*_failing(found)], dict(_differing(found))
    texts = []
    if failing:
        texts.append(f"only llama.cpp fails at: {listed(failing)}")
    if differing:
        names = [f"{name} (byte {byte})" for name, byte in differing.items()]
        texts.append(f"llama.cpp and transformers make different prompts of: {listed(names)}")
    claims = facts.result.capabilities
    if not failing and set(differing) == {"system"} and claims is not None and not claims.system_role:
        texts.append("only llama.cpp puts the system text before the user's")
    yield Match("; ".join(texts), "behaviour reference")


def _parts(found: Behaviour) -> list[str]:
    return [part for part in found.detail.split(SEPARATOR) if not part.startswith(NOT_COUNTED)]


def _failing(found: Behaviour) -> Iterator[str]:
    for part in _parts(found):
        if part.endswith(f" {ONLY_LLAMA_CPP_FAILS}"):
            yield part.removesuffix(f" {ONLY_LLAMA_CPP_FAILS}")


def _differing(found: Behaviour) -> Iterator[tuple[str, str]]:
    for part in _parts(found):
        name, sign, byte = part.partition(f" {DIFFERS} at byte ")
        if sign:
            yield name, byte


def outdated_gemma4(facts: TemplateFacts) -> Iterator[Match]:
    """As llama.cpp detects it (`chat.md` section 5)."""
    if facts.outdated_gemma4:
        yield Match("an outdated Gemma 4 template: llama.cpp rewrites tool turns for it", "handler Gemma 4")


def patched(facts: TemplateFacts) -> Iterator[Match]:
    """The text patches (`chat.md` section 2)."""
    for name in facts.result.patches:
        yield Match(f"llama.cpp changes the text before it parses it ({name})", f"patch {name}")


def python_internals(facts: TemplateFacts) -> Iterator[Match]:
    """The first dunder name of Python's in what an engine would run; in text and comments it does nothing."""
    inside = None
    for sign in SIGNS.finditer(facts.source):
        kind = sign.lastgroup
        if kind == "dunder" and inside == "code":
            line = facts.source.count(b"\n", 0, sign.start()) + 1
            yield Match(f"uses {sign[0].decode()}, which reaches into Python", f"line {line}", line)
            return
        if inside is None and kind in ("code", "comment"):
            inside = kind
        elif (inside, kind) in (("code", "end"), ("comment", "end_comment")):
            inside = None


def unused_kwargs(facts: TemplateFacts) -> Iterator[Match]:
    """Variables that no field of a request sets."""
    found = facts.behaviour("kwargs")
    if found is not None and found.outcome == "some":
        names = listed(found.detail.split(SEPARATOR), shown=5)
        them = "them" if SEPARATOR in found.detail else "it"
        yield Match(f"reads {names}: only chat_template_kwargs can set {them}", "behaviour kwargs", found.line)
