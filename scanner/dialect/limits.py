"""Budgets of one run. The real engine has none; running out of one is a verdict of ours, told apart from its errors."""

from __future__ import annotations

from dataclasses import dataclass

BYTES_PER_STEP = 256
"""Text handling is charged to the step budget at this rate, so that time stays bounded for long strings too."""

SLOW_BYTES_PER_STEP = 4
"""The rate where bytes are looked at one by one."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Budgets that no real template comes near (the largest renders of the corpus use a few thousand steps).

    - `steps`: statements, loop rounds, calls, items walked, and text handled (one step per 256 bytes).
    - `output_bytes`: size of the output and of any single string.
    - `sequence_items`: length of any array, tuple or object.
    - `parse_depth`: how deep statements and expressions may nest in the source.
    - `call_depth`: how deep macros may call each other, and values nest when they are walked.
    """

    steps: int = 2_000_000
    output_bytes: int = 16 * 1024 * 1024
    sequence_items: int = 1_000_000
    parse_depth: int = 400
    call_depth: int = 200


DEFAULT_LIMITS = Limits()
