"""The behaviours that prompts show, judged twice: on our own prompts, and on those of a real llama-server.

`python -m tests.behaviour_oracle [FOLDER]` asks the real server about every template of a folder (default: the corpus
of the shared data) and prints, for each key, how many outcomes and details agree, then every difference. It exits with
1 where an outcome differs. About half a second a template.

The same judges work on both sides; only where the prompts come from differs. The server's clock cannot be set, but
its time zone can: the requests that are put "a day later" go to a server far in the east.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from scanner import oracle
from scanner.chat.server import Vocabulary
from scanner.oracle import Question, Reply
from scanner.probe.behaviours import JUDGES, Requests
from scanner.probe.behaviours.asking import A_DAY_LATER
from scanner.probe.behaviours.base import Answer, Failure, Inquiry
from scanner.probe.behaviours.conversations import INQUIRIES
from scanner.probe.behaviours.settings import server_starts
from scanner.rendering import bare_template
from scanner.results import Behaviour
from scanner.serving import serve

VOCABULARY = Vocabulary("<s>", "</s>", add_bos=True)
"""That of the oracle's model."""
NOW_INQUIRIES = tuple([inquiry for inquiry in INQUIRIES if not inquiry.later])
LATER_INQUIRIES = tuple([inquiry for inquiry in INQUIRIES if inquiry.later])
NO_PARSER = "Unable to generate parser for this template"
"""A server's refusal that is not examined: its autoparser made nothing of the template."""


@dataclass(slots=True)
class ServersPrompts:
    """What a real server answered, by the names of the requests."""

    source: bytes
    replies: Mapping[str, Reply]

    def ask(self, inquiry: Inquiry) -> Answer:
        """The server's answer."""
        reply = self.replies[inquiry.name]
        if reply.error is None:
            return Answer((reply.prompt or "").encode())
        error = oracle.parse_error(reply.error, self.source)
        return Answer(failure=Failure(error.message, error.line, reply.error))


@dataclass(frozen=True, slots=True)
class Pair:
    """One key of one template on both sides."""

    template: str
    ours: Behaviour
    theirs: Behaviour

    @property
    def same_outcome(self) -> bool:
        return self.ours.outcome == self.theirs.outcome

    @property
    def same(self) -> bool:
        """Outcome, detail and line."""
        return self.same_outcome and (self.ours.detail, self.ours.line) == (self.theirs.detail, self.theirs.line)


@dataclass(slots=True)
class Report:
    """All pairs, and the templates whose server refuses to start though its conversations can be rendered."""

    pairs: list[Pair] = field(default_factory=list)
    without_parser: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """The table, then the differences."""
        counted, outcomes, details = Counter[str](), Counter[str](), Counter[str]()
        for pair in self.pairs:
            counted[pair.ours.key] += 1
            outcomes[pair.ours.key] += pair.same_outcome
            details[pair.ours.key] += pair.same
        yield f"{'key':20} {'asked':>6} {'outcome':>8} {'detail':>8}"
        for key, count in counted.items():
            yield f"{key:20} {count:6} {outcomes[key]:8} {details[key]:8}"
        for name in self.without_parser:
            yield f"{name}: the server does not start, its autoparser makes nothing of the template (not examined)"
        for pair in self.pairs:
            if not pair.same:
                yield f"{pair.template} {pair.ours.key}"
                yield from (f"  {said.outcome} | {said.detail} | {said.line}" for said in (pair.ours, pair.theirs))


@contextmanager
def clock_ahead(seconds: int) -> Iterator[None]:
    """Processes started inside live so many seconds ahead of UTC; this process is in UTC."""
    before = os.environ.get("TZ")
    hours, rest = divmod(seconds, 3600)
    os.environ["TZ"] = f"XXX-{hours}:{rest // 60:02}:{rest % 60:02}"
    try:
        yield
    finally:
        if before is None:
            del os.environ["TZ"]
        else:
            os.environ["TZ"] = before


def ask(sources: Sequence[bytes], inquiries: Sequence[Inquiry]) -> list[oracle.Answer]:
    """The real server's answers to these requests, for each template."""
    bodies = tuple([inquiry.body for inquiry in inquiries])
    return list(oracle.ask_all(Question(source, bodies) for source in sources))


def examine(templates: Mapping[str, bytes]) -> Report:
    """Judge every template on both sides. Call it in a process that is in UTC."""
    report = Report()
    sources = list(templates.values())
    today = ask(sources, NOW_INQUIRIES)
    with clock_ahead(A_DAY_LATER):
        tomorrow = ask(sources, LATER_INQUIRIES)
    for (name, source), answers in zip(templates.items(), zip(today, tomorrow, strict=True), strict=True):
        _examine_one(name, source, answers, report)
    return report


def _examine_one(name: str, source: bytes, answers: tuple[oracle.Answer, oracle.Answer], report: Report) -> None:
    serving = serve(bare_template(source), VOCABULARY)
    if not answers[0].started and NO_PARSER in (answers[0].reason or "") and serving.start.ok:
        report.without_parser.append(name)
        return
    started = Behaviour("server_starts", "yes" if answers[0].started else "no")
    ours = server_starts(serving.start)
    report.pairs.append(Pair(name, Behaviour(ours.key, ours.outcome), started))
    if not answers[0].started:
        return
    named = chain(
        zip(NOW_INQUIRIES, answers[0].replies, strict=True), zip(LATER_INQUIRIES, answers[1].replies, strict=True)
    )
    theirs = ServersPrompts(source, {inquiry.name: reply for inquiry, reply in named})
    requests = Requests(serving.server, time.time())
    report.pairs += [Pair(name, judge(requests), judge(theirs)) for judge in JUDGES.values()]


def in_utc() -> None:
    """Put this process into UTC."""
    os.environ["TZ"] = "UTC0"
    time.tzset()


def main() -> int:
    """Ask about a folder of templates."""
    in_utc()
    shared = Path(os.environ.get("CAPSCAN_SHARED") or Path(__file__).resolve().parents[2] / "shared")
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else shared / "corpus" / "templates"
    report = examine({path.name: path.read_bytes() for path in sorted(folder.glob("*.jinja"))})
    sys.stdout.writelines(f"{line}\n" for line in report.lines())
    return 0 if all(pair.same_outcome for pair in report.pairs) else 1


if __name__ == "__main__":
    sys.exit(main())
