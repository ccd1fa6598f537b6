"""Generation prompt, clock, the text a template adds by itself, BOS, and control texts in a user's content."""

from __future__ import annotations

import re
from collections.abc import Iterator

from scanner.chat.parts import common_prefix
from scanner.chat.scenarios import conversation, says
from scanner.chat.server import Vocabulary
from scanner.dialect import RenderedPart
from scanner.probe.behaviours import conversations as texts
from scanner.probe.behaviours.base import (
    MAX_QUOTE,
    SEPARATOR,
    Answer,
    Inquiry,
    Prompts,
    between,
    common_suffix,
    excerpt,
    position,
    quoted,
    raises,
    shortened,
)
from scanner.probe.behaviours.outcomes import (
    ADDS,
    APPENDED,
    CHANGES_DAILY,
    CHANGES_MORE,
    DROPPED,
    IGNORED,
    MARKED,
    MERGED,
    NO_CONTROL_TEXTS,
    NONE,
    ONCE,
    SAME,
    TWICE,
)
from scanner.probe.markers import marker
from scanner.results import Behaviour

CONTROL = re.compile(r"<[^<>\s][^<>\n]{0,60}>|\[[|/]?[A-Za-z_]{2,40}\|?\]|〈[^〈〉\n]{1,40}〉")
"""What control texts look like: `<|im_end|>`, `<s>`, `[/INST]`, `[|user|]`, `[gMASK]`."""
MAX_CONTROL_TEXTS = 6
ROLE = re.compile(r"\A\s*(?:system|developer)\b[:\s]*", re.IGNORECASE)


def generation_prompt(prompts: Prompts) -> Behaviour:
    """One user message with and without `add_generation_prompt`. `appended` (detail: the suffix), `ignored`, or
    `changes more` where the rest of the prompt is not the same."""
    key = "generation_prompt"
    with_it, without = prompts.ask(texts.USER), prompts.ask(texts.NO_PROMPT)
    for answer, which in ((with_it, "with it"), (without, "without it")):
        if answer.failure is not None:
            return raises(key, answer.failure, which=which)
    if with_it.prompt == without.prompt:
        return Behaviour(key, IGNORED, evidence=excerpt(with_it.text))
    if with_it.prompt.startswith(without.prompt):
        suffix = with_it.prompt[len(without.prompt) :]
        return Behaviour(key, APPENDED, quoted(suffix, 400), excerpt(with_it.text, len(with_it.text)))
    at = common_prefix(with_it.prompt, without.prompt)
    detail = f"with it {quoted(with_it.prompt[at:])}{SEPARATOR}without it {quoted(without.prompt[at:])}"
    return Behaviour(key, CHANGES_MORE, detail, excerpt(with_it.text, at))


def clock(prompts: Prompts) -> Behaviour:
    """One user message today and a day later. `changes daily` has the lines that differ as its detail."""
    key = "clock"
    today, tomorrow = prompts.ask(texts.USER), prompts.ask(texts.USER_LATER)
    for answer in (today, tomorrow):
        if answer.failure is not None:
            return raises(key, answer.failure)
    if today.prompt == tomorrow.prompt:
        return Behaviour(key, SAME)
    at = common_prefix(today.prompt, tomorrow.prompt)
    detail = f"{quoted(_line_at(today.prompt, at))}{SEPARATOR}later {quoted(_line_at(tomorrow.prompt, at))}"
    return Behaviour(key, CHANGES_DAILY, detail, excerpt(today.text, at))


def _line_at(text: bytes, at: int) -> bytes:
    """What stands around a place, within its line."""
    start, end = max(0, at - MAX_QUOTE // 2), at + MAX_QUOTE // 2
    before, behind = text[start:at].rpartition(b"\n")[2], text[at:end].partition(b"\n")[0]
    return before + behind


# -- a system text of its own ------------------------------------------------------------------------------------------


def default_system(prompts: Prompts) -> Behaviour:
    """The words that stand before a first user message when there is no system message, beyond what opens every
    user's turn. `adds` has them as its detail, without control texts, and without what stands before a system message
    where there is one.

    What opens every user's turn is what the text before the first user has in common with the text between an answer
    and the next user, at their ends; where that conversation fails, with the text between a system message and the
    user.
    """
    key = "default_system"
    answer = prompts.ask(texts.USER)
    if answer.failure is not None:
        return raises(key, answer.failure)
    before = answer.text[: max(0, position(answer.text, texts.FIRST_USER))]
    extra = before[: _opening_at(prompts, before)]
    given = prompts.ask(texts.SYSTEM).text
    head = given[: max(0, position(given, texts.SYSTEM_TEXT))]
    words = _words(extra.removeprefix(head)) or _words(extra)
    if not words:
        return Behaviour(key, NONE, evidence=excerpt(answer.text))
    return Behaviour(key, ADDS, shortened(words), excerpt(answer.text))


def _opening_at(prompts: Prompts, before: str) -> int:
    """Where the opening of the user's turn begins in the text before the first user; never inside a control text."""
    for inquiry, first, second in (
        (texts.SECOND_TURN, texts.FIRST_ANSWER, texts.NEXT_USER),
        (texts.SYSTEM, texts.SYSTEM_TEXT, texts.FIRST_USER),
    ):
        found = between(prompts.ask(inquiry).text, first, second)
        if found is not None:
            at = len(before) - len(common_suffix(before, found))
            cut = [sign.end() for sign in CONTROL.finditer(before) if sign.start() < at < sign.end()]
            return max(cut, default=at)
    return len(before)


def _words(extra: str) -> str:
    """A text without control texts and the name of its role; empty where no word is left."""
    plain = ROLE.sub("", CONTROL.sub(" ", extra)).strip()
    plain = re.sub(r"[ \t]{2,}", " ", plain)
    return plain if re.search(r"\w", plain) else ""


# -- tokens ------------------------------------------------------------------------------------------------------------


def bos(prompts: Prompts, vocabulary: Vocabulary) -> Behaviour:
    """Who puts the BOS before one user message: the template, the file's tokenizer, both (then llama.cpp cuts the
    template's), or nobody. `prompts` are those of a tokenizer that adds nothing."""
    key = "bos"
    answer = prompts.ask(texts.USER)
    if answer.failure is not None:
        return raises(key, answer.failure)
    if not vocabulary.bos:
        return Behaviour(key, NONE, "the vocabulary has no BOS token", excerpt(answer.text))
    prints = answer.prompt.startswith(vocabulary.bos.encode())
    if prints and vocabulary.add_bos:
        return Behaviour(key, TWICE, f"{vocabulary.bos} by template and tokenizer", excerpt(answer.text))
    if not prints and not vocabulary.add_bos:
        return Behaviour(key, NONE, evidence=excerpt(answer.text))
    return Behaviour(key, ONCE, f"by the {'template' if prints else 'tokenizer'}", excerpt(answer.text))


_OPEN, _CLOSE = marker("OPENING"), marker("CLOSING")
_CONTENT = re.compile(f"{_OPEN}.*?{_CLOSE}".encode(), re.DOTALL | re.IGNORECASE)


def special_tokens(prompts: Prompts) -> Behaviour:
    """A user who writes the template's own control texts, as they stand around a plain message: does the text keep
    its mark as input, or does it look like the template's own? Only our own prompts tell.

    Without such texts, the lines next to the message are taken; without those, there is nothing to imitate."""
    key = "special_tokens"
    plain = prompts.ask(texts.USER)
    if plain.failure is not None:
        return raises(key, plain.failure)
    imitated = "".join(control_texts(plain))
    if not imitated:
        return Behaviour(key, NO_CONTROL_TEXTS, evidence=excerpt(plain.text))
    content = f"{_OPEN}{imitated}{_CLOSE}"
    answer = prompts.ask(Inquiry("control texts", conversation(says("user", content))))
    if answer.failure is not None:
        return raises(key, answer.failure)
    return _origin(key, answer, content, imitated)


def control_texts(answer: Answer) -> list[str]:
    """The control texts that a template prints around a plain message, each once, in their order."""
    before, found, behind = answer.text.partition(texts.FIRST_USER)
    if not found:
        return []
    signs = list(dict.fromkeys(CONTROL.findall(before) + CONTROL.findall(behind)))
    if not signs:
        signs = [line.strip() for line in [*before.splitlines()[-1:], *behind.splitlines()[:1]] if line.strip()]
    return signs[:MAX_CONTROL_TEXTS]


def _origin(key: str, answer: Answer, content: str, imitated: str) -> Behaviour:
    """Whether all of the content between its markers is input."""
    found = _CONTENT.search(answer.prompt)
    evidence = excerpt(answer.text, position(answer.text, _OPEN))
    if found is None:
        return Behaviour(key, DROPPED, evidence=evidence)
    changed = "" if content.encode() in answer.prompt else f"{SEPARATOR}changed on the way"
    outcome = MARKED if all(_marks(answer.parts, *found.span())) else MERGED
    return Behaviour(key, outcome, quoted(imitated, 400) + changed, evidence)


def _marks(parts: tuple[RenderedPart, ...], start: int, end: int) -> Iterator[bool]:
    """Of each part between two places, whether it is input."""
    at = 0
    for part in parts:
        if at < end and at + len(part.text) > start:
            yield part.is_input
        at += len(part.text)
