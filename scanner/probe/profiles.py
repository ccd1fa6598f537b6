"""Engine profiles: what differs in the probes from one llama.cpp build to another (`profiles.md`). Data only."""

from __future__ import annotations

from dataclasses import dataclass

from scanner.probe.conversations import REASONING_MARKER, STRING_MARKER, Data


@dataclass(frozen=True, slots=True)
class Profile:
    """One build's probes.

    - `content_marker`: what the first probe sends; `content_by_output`: it is also looked for in the output.
    - `content_tools`: the tools of the first probe.
    - `empty_content`: whether the second probe exists.
    - `reasonings`, `reasoning_extra`, `reasoning_by_output`: the history of the preserve-reasoning probe, its
      variables, and whether it is judged by output (else by the field having been read).
    - `effort`: whether the reasoning-effort probe, and its flag, exist.
    """

    name: str
    builds: tuple[str, ...]
    content_marker: str
    content_by_output: bool
    content_tools: tuple[object, ...]
    empty_content: bool
    reasonings: tuple[str, ...]
    reasoning_extra: Data
    reasoning_by_output: bool
    effort: bool


CURRENT = Profile(
    name="b11549",
    builds=("b11063", "b11549"),
    content_marker=STRING_MARKER,
    content_by_output=True,
    content_tools=(),
    empty_content=True,
    reasonings=(REASONING_MARKER, "Reasoning content"),
    reasoning_extra={
        "enable_thinking": True,
        "preserve_thinking": True,
        "clear_thinking": False,
        "truncate_history_thinking": False,
        "drop_thinking": False,
    },
    reasoning_by_output=True,
    effort=True,
)

PROFILES: dict[str, Profile] = {CURRENT.name: CURRENT}
"""By name, newest first."""
