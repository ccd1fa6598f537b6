"""A known way in which llama.cpp's autoparser keeps a server from starting: calls that look like JSON and are none.

It renders a call whose arguments are an object, whatever the template claims to take. Where the call's name stands in
double quotes behind `{` or `:`, it parses what stands from the first `{` to the last `}`, and gives up if that fails.
Found by experiment on b11549; `tests/judge/test_autoparser.py` holds it against the real server.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from scanner.chat.handlers import AUTOPARSER
from scanner.probe import marked
from scanner.results import Capabilities, Observation

NAME_IN_JSON = re.compile(rf'[{{:]\s*"{marked.CALLS[0].name}"')
"""The name of the call as a key or a value of a JSON object."""


def call_error(handler: str, capabilities: Capabilities, observations: Iterable[Observation]) -> str | None:
    """Why the autoparser cannot read the calls that a template prints; None where it can, or does not try."""
    seen = next((one for one in observations if one.capability == "object_arguments"), None)
    if handler != AUTOPARSER or not capabilities.tool_calls or seen is None or seen.run is None or not seen.run.ok:
        return None
    return _json_error(_call_in(seen.run.output))


def _call_in(output: str) -> str:
    """What is printed between the user's text and the result of the call."""
    behind = output.partition(marked.USER)[2]
    return behind.partition(marked.CALLS[0].result)[0]


def _json_error(call: str) -> str | None:
    """Why a call that looks like JSON does not parse; None where it does, or looks otherwise."""
    if NAME_IN_JSON.search(call) is None:
        return None
    try:
        json.loads(call[call.find("{") : call.rfind("}") + 1])
    except json.JSONDecodeError as error:
        return error.msg[:1].lower() + error.msg[1:]
    except RecursionError:
        return "too deep"
    return None
