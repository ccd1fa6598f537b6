"""JUnit XML, for the gates of CI servers, as Jenkins and GitLab read it (https://llg.cubic.org/docs/junit/).

One suite for the scan, one case for each template in each model file, or for a file without one. A case fails on
warnings and errors that are not silenced, errs where something could not be examined, and is skipped where there is no
template. Notes are in its output.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from xml.sax.saxutils import escape, quoteattr

from scanner.chat.selection import DEFAULT
from scanner.console import visible
from scanner.exports.state import NOT_EXAMINED, State
from scanner.results import Finding, Outcome, Severity
from scanner.store.history import Sighting

_FAILING = (Severity.ERROR, Severity.WARNING)
_SKIPPED = (Outcome.NO_TEMPLATE, Outcome.SKIPPED)
# XML 1.0 knows no other characters, not even escaped (https://www.w3.org/TR/xml/#charsets).
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Case:
    """One case: at most one of `failure`, `error` and `skipped` is there, each with its kind, a line and the rest."""

    folder: str
    name: str
    failure: tuple[str, str, str] | None = None
    error: tuple[str, str, str] | None = None
    skipped: str | None = None
    output: str = ""


def document(state: State, root: PurePath) -> Iterator[str]:
    """The document in pieces. Paths below the folder `root` are relative to it."""
    cases = list(_cases(state, root))
    counts = {
        "tests": len(cases),
        "failures": sum(case.failure is not None for case in cases),
        "errors": sum(case.error is not None for case in cases),
        "skipped": sum(case.skipped is not None for case in cases),
    }
    counted = " ".join([f'{name}="{count}"' for name, count in counts.items()])
    yield f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="capscan" {counted}>\n'
    name = _attribute(f"capscan scan {state.scan.id}: {', '.join(state.scan.sources)}")
    started = f"{state.scan.started_at:%Y-%m-%dT%H:%M:%S}"
    yield f'  <testsuite name={name} {counted} time="{_seconds(state)}" timestamp="{started}">\n'
    yield "    <properties>\n"
    for key, value in (("profile", state.scan.profile), ("capscan", state.scan.capscan_version)):
        yield f"      <property name={_attribute(key)} value={_attribute(value)}/>\n"
    yield "    </properties>\n"
    for case in cases:
        yield from _case(case)
    yield "  </testsuite>\n</testsuites>\n"


def _seconds(state: State) -> str:
    if state.scan.finished_at is None:
        return "0"
    return f"{(state.scan.finished_at - state.scan.started_at).total_seconds():.3f}"


def _cases(state: State, root: PurePath) -> Iterator[Case]:
    for path, sightings in state.files():
        for at, seen in enumerate(sightings):
            # What is found of the file as a whole is told once.
            found = (*(state.findings_of_file(path) if at == 0 else ()), *state.findings_at(seen))
            yield _judged(seen, found, root)


def _judged(seen: Sighting, found: Sequence[Finding], root: PurePath) -> Case:
    path = PurePath(seen.path)
    shown = path.relative_to(root) if path.is_relative_to(root) and path != root else path
    folder, name = shown.parent.as_posix(), f"{shown.name}{_variant(seen)}"
    failing = [finding for finding in found if finding.severity in _FAILING]
    notes = "\n".join([_told(finding) for finding in found if finding.severity not in _FAILING])
    reason = seen.reason or ""
    if failing:
        told = "\n".join([_told(finding) for finding in failing])
        return Case(folder, name, failure=(failing[0].rule, failing[0].text, told), output=notes)
    if seen.outcome in _SKIPPED:
        return Case(folder, name, skipped=f"{seen.outcome}: {reason}", output=notes)
    if seen.outcome not in NOT_EXAMINED:
        return Case(folder, name, output=notes)
    return Case(
        folder, name, error=(str(seen.outcome), reason, f"{seen.outcome}, not examined: {reason}"), output=notes
    )


def _variant(seen: Sighting) -> str:
    return "" if seen.variant in ("", DEFAULT) else f" ({seen.variant})"


def _told(finding: Finding) -> str:
    line = "" if finding.line is None else f" (line {finding.line})"
    return visible(f"{finding.severity} {finding.rule}{line}: {finding.text}")


def _case(case: Case) -> Iterator[str]:
    yield f'    <testcase classname={_attribute(case.folder)} name={_attribute(case.name)} time="0">\n'
    for element, problem in (("failure", case.failure), ("error", case.error)):
        if problem is not None:
            kind, message, text = problem
            head = f"type={_attribute(kind)} message={_attribute(message)}"
            yield f"      <{element} {head}>{_text(text)}</{element}>\n"
    if case.skipped is not None:
        yield f"      <skipped message={_attribute(case.skipped)}/>\n"
    if case.output:
        yield f"      <system-out>{_text(case.output)}</system-out>\n"
    yield "    </testcase>\n"


def _attribute(text: str) -> str:
    """A text as a quoted attribute, with what does not show as an escape."""
    return quoteattr(_xml(visible(text)))


def _text(text: str) -> str:
    return escape(_xml(text))


def _xml(text: str) -> str:
    return _NO_XML.sub(lambda match: match[0].encode("unicode_escape", "surrogatepass").decode(), text)
