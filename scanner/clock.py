"""Times as people and files write them."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime

BARE_DATE = re.compile(r"\d{4}-\d\d-\d\d")


def seconds_of(moment: object) -> float:
    """Seconds since the epoch of a number of them (also as text), or of an ISO date and time. Without a zone a time is
    in UTC; a date alone is its first second here, where templates ask for the local date. Raises `ValueError`."""
    if isinstance(moment, bool) or not isinstance(moment, str | int | float):
        raise ValueError(f"{moment!r} is neither seconds since the epoch nor an ISO date and time")
    try:
        seconds = float(moment) if not isinstance(moment, str) else _of_text(moment)
        # What a template formats has to fit as well; years of more than four digits do not everywhere.
        time.strftime("%c", time.localtime(seconds))
    except (ValueError, OverflowError, OSError) as error:
        raise ValueError(f"{moment!r} is neither seconds since the epoch nor an ISO date and time") from error
    return seconds


def _of_text(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        found = datetime.fromisoformat(text)
        if found.tzinfo is None and not BARE_DATE.fullmatch(text):
            found = found.replace(tzinfo=UTC)
        return found.timestamp()
