"""Whether messages of unusual roles, or at unusual places, reach the prompt, and where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scanner.probe.behaviours import conversations as texts
from scanner.probe.behaviours.base import (
    SEPARATOR,
    Answer,
    Inquiry,
    Prompts,
    excerpt,
    position,
    raises,
    shortened,
    worst,
)
from scanner.probe.behaviours.outcomes import DROPPED, RAISES, RENDERED
from scanner.results import Behaviour

IN_PLACE, TO_FRONT, TO_END, MOVED = "in place", "moved to the front", "moved to the end", "moved"
WORST_FIRST = (RAISES, DROPPED, RENDERED)


@dataclass(frozen=True, slots=True)
class Question:
    """A request with the markers of its messages in their order. `subjects` are those that the question is about: it
    counts as dropped when one of them is missing."""

    key: str
    inquiry: Inquiry
    markers: Sequence[str]
    subjects: Sequence[str]

    def judge(self, prompts: Prompts) -> Behaviour:
        """`rendered` (detail: where), `dropped` (what), or `raises`; the loss of other messages is told as well."""
        answer = prompts.ask(self.inquiry)
        if answer.failure is not None:
            return raises(self.key, answer.failure)
        outcome, detail = self.placed(answer)
        return Behaviour(self.key, outcome, detail, excerpt(answer.text, position(answer.text, self.subjects[0])))

    def placed(self, answer: Answer) -> tuple[str, str]:
        """Outcome and detail for a prompt."""
        places = {marker: position(answer.text, marker) for marker in self.markers}
        missing = [marker for marker in self.subjects if places[marker] < 0]
        lost = [word(marker) for marker in self.markers if places[marker] < 0 and marker not in self.subjects]
        others = [f"also lost: {', '.join(lost)}"] if lost else []
        if missing:
            which = [f"lost: {', '.join(map(word, missing))}"] if len(self.subjects) > 1 else []
            return DROPPED, SEPARATOR.join(which + others)
        there = [marker for marker in self.markers if places[marker] >= 0]
        return RENDERED, SEPARATOR.join([where(sorted(there, key=places.__getitem__), there, self.subjects), *others])


def where(found: Sequence[str], sent: Sequence[str], subjects: Sequence[str]) -> str:
    """Where the subjects landed: `found` and `sent` are the same markers, in the order of prompt and request."""
    if list(found) == list(sent):
        return IN_PLACE
    if set(found[: len(subjects)]) == set(subjects):
        return TO_FRONT
    return TO_END if set(found[-len(subjects) :]) == set(subjects) else MOVED


def word(marker: str) -> str:
    """A marker as a detail names its message: `first user`."""
    return marker.partition("_")[2].replace("_", " ").lower()


_TURN = (texts.FIRST_USER, texts.FIRST_ANSWER)
LATE_SYSTEM = Question(
    "late_system", texts.LATE_SYSTEM, (*_TURN, texts.SYSTEM_TEXT, texts.NEXT_USER), [texts.SYSTEM_TEXT]
)
TWO_SYSTEMS = Question(
    "two_systems",
    texts.TWO_SYSTEMS,
    (texts.SYSTEM_TEXT, texts.OTHER_SYSTEM, texts.FIRST_USER),
    [texts.SYSTEM_TEXT, texts.OTHER_SYSTEM],
)
SYSTEM_ONLY = Question("system_only", texts.SYSTEM_ONLY, [texts.SYSTEM_TEXT], [texts.SYSTEM_TEXT])
DEVELOPER = Question("developer", texts.DEVELOPER, (texts.SYSTEM_TEXT, texts.FIRST_USER), [texts.SYSTEM_TEXT])
NO_USER = Question("no_user", texts.NO_USER, (texts.FIRST_ANSWER, texts.NEXT_USER), [texts.FIRST_ANSWER])
UNKNOWN_ROLE = Question(
    "unknown_role", texts.UNKNOWN_ROLE, (texts.FIRST_USER, texts.CRITIC_TEXT, texts.NEXT_USER), [texts.CRITIC_TEXT]
)
ORPHAN_TOOL_RESULT = Question(
    "orphan_tool_result", texts.ORPHAN_RESULT, (texts.FIRST_USER, texts.RESULT_TEXT), [texts.RESULT_TEXT]
)

_KEY = "same_role_twice"
TWO_USERS = Question(_KEY, texts.TWO_USERS, *[(texts.FIRST_USER, texts.NEXT_USER)] * 2)
_ANSWERS = (texts.FIRST_ANSWER, texts.NEXT_ANSWER)
TWO_ASSISTANTS = Question(_KEY, texts.TWO_ASSISTANTS, (texts.FIRST_USER, *_ANSWERS, texts.NEXT_USER), _ANSWERS)


def same_role_twice(prompts: Prompts) -> Behaviour:
    """Two users, then two assistants: the worse outcome; the detail has both, as `users: … · assistants: …`."""
    found = [("users", TWO_USERS.judge(prompts)), ("assistants", TWO_ASSISTANTS.judge(prompts))]
    outcome = worst([behaviour.outcome for _, behaviour in found], WORST_FIRST)
    behaviour = next(behaviour for _, behaviour in found if behaviour.outcome == outcome)
    detail = SEPARATOR.join([f"{who}: {_said(behaviour)}" for who, behaviour in found])
    return Behaviour(_KEY, outcome, detail, behaviour.evidence, behaviour.line)


def _said(behaviour: Behaviour) -> str:
    detail = behaviour.detail.replace(SEPARATOR, ", ")
    return f"{behaviour.outcome} ({shortened(detail)})" if detail else behaviour.outcome
