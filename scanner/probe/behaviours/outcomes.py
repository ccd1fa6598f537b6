"""The keys of `behaviours.md` section 3 in its order, and the closed list of outcomes of each.

Where that page leaves words open, the words here are the definition. `not examined` stands in every list: a budget of
ours ran out, which says nothing about llama.cpp.
"""

from __future__ import annotations

from collections.abc import Mapping

from scanner.chat.handlers import AUTOPARSER, HANDLERS

NOT_EXAMINED = "not examined"
RENDERED, DROPPED, RAISES = "rendered", "dropped", "raises"
YES, NO = "yes", "no"
SAME, DIFFERENT = "same", "different"
SWITCHES, IGNORED = "switches", "ignored"
APPENDED, CHANGES_MORE = "appended", "changes more"
STABLE, BREAKS = "stable", "breaks"
KEPT, TRIMMED = "kept", "trimmed"
NOTHING, SPACE, NEWLINE, BLANK_LINE, OTHER, DUMPED = "nothing", "space", "newline", "blank line", "other", "dumped"
JSON, PYTHON, XML = "json", "python", "xml"
CHANGES_DAILY = "changes daily"
NONE, ADDS = "none", "adds"
ONCE, TWICE = "once", "twice, cut by llama.cpp"
MARKED, MERGED, NO_CONTROL_TEXTS = "marked as input", "merged into template text", "no control texts"
WITH_THOUGHT, TEXT_ONLY = "with a thought", "text only"
SOME = "some"
EQUAL, DIFFERS, BOTH_FAIL = "equal", "differs", "both fail"
ONLY_LLAMA_CPP_FAILS, ONLY_REFERENCE_FAILS = "only llama.cpp fails", "only the reference fails"

_PLACED = (RENDERED, DROPPED, RAISES)
_LISTS: Mapping[str, tuple[str, ...]] = {
    "server_starts": (YES, NO),
    "late_system": _PLACED,
    "two_systems": _PLACED,
    "system_only": _PLACED,
    "developer": _PLACED,
    "no_user": _PLACED,
    "same_role_twice": _PLACED,
    "unknown_role": _PLACED,
    "orphan_tool_result": _PLACED,
    "null_content_call": (SAME, DIFFERENT, RAISES),
    "thinking_switch": (SWITCHES, IGNORED, RAISES),
    "generation_prompt": (APPENDED, CHANGES_MORE, IGNORED, RAISES),
    "history": (STABLE, BREAKS, RAISES),
    "white_space": (KEPT, TRIMMED, DROPPED, RAISES),
    "parts_join": (NOTHING, SPACE, NEWLINE, BLANK_LINE, OTHER, DUMPED, DROPPED, RAISES),
    "arguments": (JSON, PYTHON, XML, OTHER, NOTHING, RAISES),
    "clock": (SAME, CHANGES_DAILY, RAISES),
    "default_system": (NONE, ADDS, RAISES),
    "bos": (ONCE, TWICE, NONE, RAISES),
    "special_tokens": (MARKED, MERGED, NO_CONTROL_TEXTS, DROPPED, RAISES),
    "prefill": (WITH_THOUGHT, TEXT_ONLY, DROPPED, RAISES),
    "kwargs": (NONE, SOME),
    "handler": (*[handler.name for handler in HANDLERS], AUTOPARSER),
    "reference": (EQUAL, DIFFERS, ONLY_LLAMA_CPP_FAILS, ONLY_REFERENCE_FAILS, BOTH_FAIL),
}
OUTCOMES: Mapping[str, tuple[str, ...]] = {key: (*outcomes, NOT_EXAMINED) for key, outcomes in _LISTS.items()}
"""Key → its outcomes, in the order of the table."""
