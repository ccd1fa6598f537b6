"""Existing templates, a little changed: tokens removed, doubled, moved or replaced, and pieces of others put in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

_TOKEN = re.compile(
    r"\{[%{#]-?|-?[%}#]\}|'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"|\w+|[<>=!]=|[ \t]+|.", re.DOTALL | re.ASCII
)
_KINDS = (
    *(("==", "!=", "<", ">", "in", "not in", "<=", "and", "or", "+", "~", "-", "*", "%"),),
    *(("string", "defined", "none", "mapping", "iterable", "sequence", "true", "undefined", "number", "false"),),
    *(("trim", "tojson", "string", "length", "first", "last", "list", "upper", "safe", "items", "default"),),
    *(("content", "role", "tool_calls", "function", "arguments", "name", "reasoning_content", "parameters", "get"),),
    *(("messages", "message", "tools", "tool", "tool_call", "loop", "reasoning_effort", "enable_thinking"),),
    *(("if", "elif", "else", "endif", "for", "endfor", "set", "endset", "break", "continue", "macro", "is", "not"),),
    *(("{%", "{%-", "%}", "-%}", "{{", "}}", "{{-", "-}}"),),
    *(("'user'", "'assistant'", "'system'", "'tool'", "''", "'text'", "'low'"),),
    *(("0", "1", "-1", "2", "none", "true", "[]", "{}", "nosuch"),),
    *((".", "|", ":", ",", "(", ")", "[", "]"),),
)
"""Tokens that can stand for one another; the first group that has a token is the one it is replaced from."""


def tokens(source: str) -> list[str]:
    """The source in small pieces; joined, they give it back."""
    return _TOKEN.findall(source)


def mutate(source: str, others: Sequence[str], random: Random) -> str:
    """The source with one to four changes; `others` are where foreign pieces come from."""
    pieces = tokens(source)
    for _ in range(random.choice((1, 1, 1, 2, 2, 3, 4))):
        if pieces:
            _change(pieces, others, random)
    return "".join(pieces)


def _change(pieces: list[str], others: Sequence[str], random: Random) -> None:
    """One change, in place."""
    at = _place(pieces, random)
    kind = random.random()
    if kind < 0.2:
        del pieces[at]
    elif kind < 0.3:
        pieces.insert(at, pieces[at])
    elif kind < 0.4:
        other = _place(pieces, random)
        pieces[at], pieces[other] = pieces[other], pieces[at]
    elif kind < 0.75:
        pieces[at] = _replacement(pieces[at], random)
    elif kind < 0.85:
        pieces[at:at] = _tag_of(tokens(random.choice(others)), random)
    elif kind < 0.95:
        first, last = _tag_at(pieces, at)
        del pieces[first:last]
    else:
        pieces[at] = pieces[_place(pieces, random)]


def _place(pieces: Sequence[str], random: Random) -> int:
    """The index of a piece, mostly one inside a tag that is no white space."""
    at = random.randrange(len(pieces))
    for _ in range(20):
        if not pieces[at].isspace() and _inside_tag(pieces, at):
            break
        at = random.randrange(len(pieces))
    return at


def _inside_tag(pieces: Sequence[str], at: int) -> bool:
    for piece in reversed(pieces[max(0, at - 60) : at + 1]):
        if piece.startswith(("{%", "{{")):
            return True
        if piece.endswith(("%}", "}}", "#}")):
            return False
    return False


def _replacement(piece: str, random: Random) -> str:
    for group in _KINDS:
        if piece in group:
            return random.choice(group)
    return random.choice(random.choice(_KINDS))


def _tag_of(pieces: Sequence[str], random: Random) -> list[str]:
    """One whole tag of a template."""
    if not pieces:
        return []
    first, last = _tag_at(pieces, _place(pieces, random))
    return list(pieces[first:last])


def _tag_at(pieces: Sequence[str], at: int) -> tuple[int, int]:
    """First and last index (not included) of the tag around a piece."""
    first, last = at, at + 1
    while first > 0 and not pieces[first].startswith(("{%", "{{", "{#")):
        first -= 1
    while last < len(pieces) and not pieces[last - 1].endswith(("%}", "}}", "#}")):
        last += 1
    return first, last
