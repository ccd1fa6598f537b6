"""The variants of one model: which text wins a name, what becomes of the others, and their order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from scanner.results import ChatTemplate

DEFAULT = "default"


def settle(found: Iterable[ChatTemplate]) -> tuple[tuple[ChatTemplate, ...], tuple[str, ...]]:
    """Give every variant one text and every other text a name of its own.

    In: templates, the one that wins a variant before those that lose it. Out: the templates, default first, then by
    name; and notes. A text that loses is kept as `NAME (ORIGIN)`; the same text found twice is kept once.
    """
    kept: dict[str, ChatTemplate] = {}
    notes: list[str] = []
    for template in found:
        winner = kept.get(template.variant)
        if winner is None:
            kept[template.variant] = template
        elif winner.source != template.source:
            name = _free_name(f"{template.variant} ({template.origin})", kept)
            kept[name] = replace(template, variant=name)
            notes.append(
                f"variant {template.variant!r} has one text in {winner.origin} and another in {template.origin}: "
                f"the first is used, the other is kept as {name!r}"
            )
    notes += [f"variant {name!r} is empty" for name, template in kept.items() if not template.source]
    return tuple(sorted(kept.values(), key=lambda each: (each.variant != DEFAULT, each.variant))), tuple(notes)


def _free_name(wanted: str, taken: dict[str, ChatTemplate]) -> str:
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted} #{number}"
    return name
