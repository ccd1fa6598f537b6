"""Engine profiles: what differs in the probes from one llama.cpp build to another (`profiles.md`). Data only."""

from __future__ import annotations

from dataclasses import dataclass, replace

from scanner.probe.conversations import REASONING_MARKER, STRING_MARKER, Data


@dataclass(frozen=True, slots=True)
class Profile:
    """One build's probes.

    - `content_marker`: what the first probe sends; `content_by_output`: it is also looked for in the output.
    - `content_tools`: the tools of the first probe.
    - `empty_content`: whether the second probe exists.
    - `reasonings`, `reasoning_extra`, `reasoning_by_output`: the history of the preserve-reasoning probe, its
      variables, and whether it is judged by output (else by the field having been read).
    - `retries_with_reasoning`: a tool probe that fails runs again, with empty reasoning in the assistant messages.
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
    retries_with_reasoning: bool
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
    retries_with_reasoning=True,
    effort=True,
)

B10809 = replace(CURRENT, name="b10809", builds=("b10566", "b10809"), empty_content=False, retries_with_reasoning=False)

B10229 = replace(
    B10809,
    name="b10229",
    builds=("b9873", "b10068", "b10229"),
    content_marker="content",
    content_by_output=False,
    reasoning_extra={"preserve_thinking": True, "clear_thinking": False, "truncate_history_thinking": False},
    effort=False,
)

B9713 = replace(
    B10229,
    name="b9713",
    builds=("b8672", "b8929", "b9093", "b9294", "b9538", "b9713"),
    content_tools=(None,),
    reasonings=("Reasoning content",),
    reasoning_extra={},
    reasoning_by_output=False,
)

PROFILES: dict[str, Profile] = {profile.name: profile for profile in (CURRENT, B10809, B10229, B9713)}
"""By name, newest first."""
