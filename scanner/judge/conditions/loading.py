"""What keeps llama.cpp, or Capscan, from working with a template at all."""

from __future__ import annotations

from collections.abc import Iterator

from scanner.judge.rule import RAISED, RAISES, Match, TemplateFacts, error_of, said
from scanner.judge.verdicts import STARTING_CONVERSATIONS
from scanner.results import STOPS_ENGINE, Outcome, ProbeRun, RunError, StartCheck

NOT_EXAMINED = "not examined"
"""The outcome of a behaviour for which a budget of ours ran out."""
OF_JINJA2 = "reference"
"""The behaviour that rests on another engine's budget too, which says nothing about llama.cpp."""


def not_parseable(facts: TemplateFacts) -> Iterator[Match]:
    """llama.cpp cannot lex or parse it (`chat.md` section 1)."""
    error = facts.result.parse_error
    if facts.result.outcome is Outcome.NOT_PARSEABLE and error is not None:
        yield Match(f"llama.cpp cannot parse it: {said(error.message)}", f"{error.kind} error", error.line)


def start_fails(facts: TemplateFacts) -> Iterator[Match]:
    """A template that parses (`chat.md` section 6); of others `not-parseable` speaks, and the rule about files."""
    crash = _crashing_probe(facts)
    if crash is not None:
        run, error = crash
        text = f"llama-server would crash as it loads the template: {said(error.message)}"
        yield Match(text, f"probe {run.name}", error.line)
    elif facts.result.start is not None and not facts.result.start.ok:
        yield from _start_failure("llama-server would not start", facts.result.start)


def logged_start_fails(facts: TemplateFacts) -> Iterator[Match]:
    """The longer conversation, which is rendered for a server's log only, and is all that fails."""
    if facts.result.start is not None and facts.result.start.ok:
        yield from _start_failure("llama-server -lv 4 would not start", facts.result.start)


def _start_failure(what: str, start: StartCheck) -> Iterator[Match]:
    if start.error is None or start.conversation is None:
        return
    conversation = STARTING_CONVERSATIONS.get(start.conversation, start.conversation)
    text = f"{what}: {said(start.error.message)} ({conversation})"
    yield Match(text, f"start-up conversation {start.conversation}", start.error.line)


def limit_exceeded(facts: TemplateFacts) -> Iterator[Match]:
    """A budget of ours ran out for the whole analysis."""
    result = facts.result
    if result.outcome is not Outcome.LIMIT_EXCEEDED:
        return
    if _crashing_probe(facts) is not None:
        return
    if result.parse_error is not None:
        yield Match(f"not examined: {said(result.parse_error.message)}", "parser", result.parse_error.line)
        return
    limited = next((run for run in result.probes if run.error is not None and run.error.kind == "limit"), None)
    text = f"not examined: {said(result.reason or 'no reason is known')}"
    yield Match(text, f"probe {limited.name}" if limited is not None else "analysis")


def partly_examined(facts: TemplateFacts) -> Iterator[Match]:
    """A budget of ours ran out for some behaviours, or all; the flags are known."""
    ours = [one for one in facts.result.behaviours if one.key != OF_JINJA2]
    missing = [one for one in ours if one.outcome == NOT_EXAMINED]
    if missing:
        what = "what is really true" if len(missing) == len(ours) > 1 else ", ".join([one.key for one in missing])
        text = f"{what} was not examined: {said(missing[0].detail)}"
        yield Match(text, f"behaviour {missing[0].key}")


def crashes_engine(facts: TemplateFacts) -> Iterator[Match]:
    """The first run, of a probe, an observation or a request, that reaches what ends the llama.cpp process."""
    crash = _crashing_probe(facts)
    if crash is not None:
        run, error = crash
        yield Match(f"llama-server would crash: {said(error.message)}", f"probe {run.name}", error.line)
        return
    for one in facts.result.behaviours:
        # A template may raise any text, but not without the engine's words before it.
        if one.outcome == RAISES and STOPS_ENGINE in one.detail and RAISED not in one.detail:
            yield Match(f"a request would crash llama-server: {said(one.detail)}", f"behaviour {one.key}", one.line)
            return


def _crashing_probe(facts: TemplateFacts) -> tuple[ProbeRun, RunError] | None:
    for run in facts.result.probes:
        if run.error is not None and run.error.stops_engine:
            return run, run.error
    return None


def plain_chat_raises(facts: TemplateFacts) -> Iterator[Match]:
    """One user message fails, or the second turn of a plain chat. Told from whole requests; where there are none, as
    under an older build, from the first probe."""
    alone, chat = facts.behaviour("default_system"), facts.behaviour("history")
    if alone is None:
        yield from _first_probe_raises(facts)
    elif alone.outcome == RAISES:
        yield Match(f"a single user message fails: {said(alone.detail)}", "behaviour default_system", alone.line)
    elif chat is not None and chat.outcome == RAISES:
        yield Match(f"user, assistant, user fails: {said(chat.detail)}", "behaviour history", chat.line)


def _first_probe_raises(facts: TemplateFacts) -> Iterator[Match]:
    run, claims = facts.probe("typed_content"), facts.result.capabilities
    message = error_of(run)
    # An old build's probe sends a null for a tool, which is no plain chat.
    if message is None or run is None or claims is None or claims.typed_content or run.variables.get("tools"):
        return
    yield Match(f"a single user message fails: {message}", "probe typed_content", run.error.line if run.error else None)
