"""SARIF 2.1.0 (https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/), for code scanning.

One run, with all rules. A finding is one result for each template, however many files hold it: its locations are the
model files, with the line in the template. What is silenced is there, suppressed; what could not be examined is a
notification of the run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import datetime
from pathlib import PurePath
from urllib.parse import quote

from scanner.console import visible
from scanner.exports.state import Place, Result, State, not_examined, results
from scanner.judge import ALL_RULES, AnyRule
from scanner.results import Severity
from scanner.silence import FILE_NAME

VERSION = "2.1.0"
SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT = "%SRCROOT%"
"""What code scanning calls the folder of the repository; files in the current folder are named from there."""
MOST_LOCATIONS = 100
"""Files that a result names; how many there are is its `occurrenceCount` (section 3.27.11)."""
MOST_SNIPPET = 200
"""Characters of a template's line that a result shows."""

LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}
"""SARIF's words for severities (section 3.27.10)."""

Object = dict[str, object]


def document(state: State, root: PurePath, version: str) -> Object:
    """The whole log. Paths below the folder `root` are relative to it; `version` is Capscan's."""
    indexes = {rule.slug: index for index, rule in enumerate(ALL_RULES)}
    lines = {sha256: source.decode("utf-8", "replace").split("\n") for sha256, source in state.sources.items()}
    run: Object = {
        "tool": {"driver": _driver(version)},
        "automationDetails": {"id": f"capscan/{state.scan.profile}/"},
        "originalUriBaseIds": {ROOT: {"uri": f"{_file_uri(root)}/"}},
        "columnKind": "unicodeCodePoints",
        "invocations": [_invocation(state, root)],
        "results": [_result(found, indexes, lines, root) for found in results(state)],
        "properties": {"profile": state.scan.profile, "scan": state.scan.id},
    }
    return {"$schema": SCHEMA, "version": VERSION, "runs": [run]}


def _driver(version: str) -> Object:
    return {
        "name": "Capscan",
        "version": version,
        "semanticVersion": version,
        "shortDescription": {"text": "What llama.cpp will believe about chat templates, and what is really true."},
        "rules": [_rule(rule) for rule in ALL_RULES],
    }


def _rule(rule: AnyRule) -> Object:
    """A reportingDescriptor (section 3.49): what is so, what it costs, and what to do."""
    help_text = f"{rule.meaning}\n\nWhy it matters: {rule.why}\n\nWhat to do: {rule.remedy}"
    markdown = f"{rule.meaning}\n\n**Why it matters.** {rule.why}\n\n**What to do.** {rule.remedy}"
    return {
        "id": rule.slug,
        "name": "".join([word.capitalize() for word in rule.slug.replace("_", "-").split("-")]),
        "shortDescription": {"text": rule.meaning},
        "fullDescription": {"text": f"{rule.meaning} {rule.why}"},
        "help": {"text": help_text, "markdown": markdown},
        "defaultConfiguration": {"level": LEVELS[rule.severity]},
        "properties": {"tags": ["chat-template"]},
    }


def _invocation(state: State, root: PurePath) -> Object:
    """Section 3.20: how the scan went, and what it could not examine."""
    invocation: Object = {
        "executionSuccessful": state.scan.status == "finished",
        "startTimeUtc": _time(state.scan.started_at),
        "toolExecutionNotifications": [
            {
                "level": "warning",
                "message": {"text": visible(f"{seen.outcome}, not examined: {seen.reason or 'no reason is known'}")},
                "locations": [_location(Place(seen.path, seen.variant), None, root)],
            }
            for seen in not_examined(state)
        ],
    }
    if state.scan.finished_at is not None:
        invocation["endTimeUtc"] = _time(state.scan.finished_at)
    return invocation


def _time(moment: datetime) -> str:
    """In UTC, as section 3.9 has it."""
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _result(found: Result, indexes: dict[str, int], lines: dict[str, list[str]], root: PurePath) -> Object:
    finding = found.finding
    region = _region(finding.line, lines.get(found.sha256 or "", []))
    result: Object = {
        "ruleId": finding.rule,
        "level": LEVELS[finding.severity],
        "message": {"text": _message(found)},
        "locations": [_location(place, region, root) for place in found.places[:MOST_LOCATIONS]],
        "occurrenceCount": len(found.places),
        "partialFingerprints": dict(_fingerprints(found, root)),
        # An empty list says that nobody silenced it (section 3.27.23).
        "suppressions": [{"kind": "external", "status": "accepted", "justification": why} for why in _reasons(found)],
        "properties": {"evidence": visible(finding.evidence)},
    }
    if finding.rule in indexes:
        result["ruleIndex"] = indexes[finding.rule]
    if found.sha256 is not None:
        result["properties"] = {"evidence": visible(finding.evidence), "template": found.sha256}
    return result


def _message(found: Result) -> str:
    count = len(found.places)
    text = visible(found.finding.text)
    return text if count == 1 else f"{text} (in {count:,} places)"


def _reasons(found: Result) -> Iterator[str]:
    for reason in found.reasons:
        yield f"{reason} ({FILE_NAME})"


def _region(line: int | None, lines: list[str]) -> Object | None:
    """The line in the template (section 3.30). What it says is shown too: a model file shows no lines."""
    if line is None or line < 1:
        return None
    region: Object = {"startLine": line}
    if line <= len(lines):
        region["snippet"] = {"text": visible(lines[line - 1])[:MOST_SNIPPET]}
    return region


def _location(place: Place, region: Object | None, root: PurePath) -> Object:
    physical: Object = {"artifactLocation": _artifact(place.path, root)}
    if region is not None:
        physical["region"] = region
    location: Object = {"physicalLocation": physical}
    if place.variant:
        location["logicalLocations"] = [{"name": place.variant, "kind": "template"}]
    return location


def _artifact(path: str, root: PurePath) -> Object:
    """A relative reference from the root, or a URI (section 3.4). All but plain characters are escaped."""
    below = _below(path, root)
    return {"uri": _file_uri(PurePath(path))} if below is None else {"uri": quote(below, safe="/"), "uriBaseId": ROOT}


def _below(path: str, root: PurePath) -> str | None:
    found = PurePath(path)
    return found.relative_to(root).as_posix() if found.is_relative_to(root) and found != root else None


def _file_uri(path: PurePath) -> str:
    return f"file://{quote(path.as_posix(), safe='/')}"


def _fingerprints(found: Result, root: PurePath) -> Iterator[tuple[str, str]]:
    """Section 3.27.17. The first stays while the file, or first file, keeps its place, whatever becomes of the template
    and its lines; code scanning takes it. The second stays while the template is the same, wherever it is."""
    first = found.places[0]
    path = _below(first.path, root) or first.path
    yield "primaryLocationLineHash", f"{_digest(found.finding.rule, path, first.variant, str(found.number))}:1"
    if found.sha256 is not None:
        yield "capscanTemplate/v1", _digest(found.finding.rule, found.sha256, str(found.number))


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "backslashreplace")).hexdigest()[:32]
