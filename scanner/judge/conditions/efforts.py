"""The reasoning efforts (`behaviours.md` section 2)."""

from __future__ import annotations

from collections.abc import Iterator

from scanner.judge.conditions.flags import SAME_EFFORT
from scanner.judge.rule import Match, TemplateFacts, listed, said
from scanner.results import Agreement, Effort, EffortOutcome

CAPABILITY = "reasoning_effort"
COMMON = ("high", "medium", "low", "minimal", "xhigh", "max", "auto")
"""What clients send, commonest first. Without `none`, which llama-server takes for `enable_thinking` false and keeps
from the template (`chat.md` section 3)."""


def effort_rejected(facts: TemplateFacts) -> Iterator[Match]:
    """The effort probe passes, and a common word raises."""
    claims, run = facts.result.capabilities, facts.probe(CAPABILITY)
    if claims is None or not claims.reasoning_effort or run is None or not run.ok:
        return
    tried = {effort.word: effort for effort in facts.result.efforts}
    rejected = [tried[word] for word in COMMON if word in tried and tried[word].outcome is EffortOutcome.RAISES]
    if rejected:
        worst, others = rejected[0], [str(effort.word) for effort in rejected[1:]]
        also = f"; so do {', '.join(others)}" if len(others) > 1 else f"; so does {others[0]}" if others else ""
        text = f'the probe only tries "low"; "{worst.word}" raises: {said(worst.message or "")}{also}'
        yield Match(f"{text} (accepts {_accepted(facts.result.efforts)})", "efforts", worst.line)


def _accepted(efforts: tuple[Effort, ...]) -> str:
    words = [effort.word for effort in efforts if effort.word and effort.outcome is EffortOutcome.ACCEPTED]
    return listed(words, shown=8) or "no word"


def effort_inert(facts: TemplateFacts) -> Iterator[Match]:
    """The flag is set, and every accepted word gives the same output; there has to be one."""
    seen = facts.observation(CAPABILITY)
    accepted = [one for one in facts.result.efforts if one.word and one.outcome is EffortOutcome.ACCEPTED]
    if accepted and seen is not None and seen.agreement is Agreement.OVERCLAIMS and seen.reason == SAME_EFFORT:
        text = "reasoning effort is claimed, but every effort gives the same output"
        yield Match(text, f"observed {CAPABILITY}: {seen.reason}", facts.line_of(CAPABILITY))
