"""Everything that a scan saw and found, as JSON: one document, or an object a line, written piece by piece."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from itertools import groupby

from sqlalchemy import Engine

from scanner.export import finding_document, template_document
from scanner.exports.state import State
from scanner.judge import ALL_RULES
from scanner.results import ChatTemplate
from scanner.store import queries
from scanner.store.records import LatestFile, ScanRecord

FORMAT = 1
"""Grows when something in the documents comes to mean something else; new keys may come at any time."""

Object = dict[str, object]


def head(state: State, version: str) -> Object:
    """What there is to say before the files: which scan, by which Capscan, and the rules that findings name."""
    return {
        "format": FORMAT,
        "capscan_version": version,
        "scan": _scan(state.scan),
        "rules": [{"rule": rule.slug, "severity": str(rule.severity), "meaning": rule.meaning} for rule in ALL_RULES],
    }


def document(engine: Engine, state: State, version: str) -> Iterator[str]:
    """One JSON object in pieces: the head, `files` by path and `templates` by SHA-256."""
    yield _json(head(state, version))[:-1]
    for key, items in (("files", files(engine, state)), ("templates", templates(engine, state))):
        yield f', "{key}": ['
        for at, item in enumerate(items):
            yield f"{',' if at else ''}\n{_json(item)}"
        yield "]"
    yield "}\n"


def lines(engine: Engine, state: State, version: str) -> Iterator[str]:
    """An object a line, with what it is under `kind`: the head (`scan`), then each `file` and each `template`."""
    yield _json({"kind": "scan", **head(state, version)}) + "\n"
    for kind, items in (("file", files(engine, state)), ("template", templates(engine, state))):
        for item in items:
            yield _json({"kind": kind, **item}) + "\n"


def files(engine: Engine, state: State) -> Iterator[Object]:
    """Every model file of the scan, with its variants and what was found of it as a whole."""
    rows = queries.files(engine, state.scan.id)
    for path, seen in groupby(rows, key=lambda row: row.path):
        variants = list(seen)
        yield {
            "path": path,
            **_file(variants[0]),
            "variants": [_variant(row) for row in variants],
            "findings": [
                {**finding_document(one), "silenced": state.reason_for(one, path, None)}
                for one in state.file_findings.get(path, ())
            ],
        }


def templates(engine: Engine, state: State) -> Iterator[Object]:
    """Every template of the scan, in the shape of `capscan probe`, with its text and the files that hold it; one at a
    time, because an analysis is large."""
    places: dict[str, list[tuple[str, str]]] = {}
    for seen in state.sightings:
        if seen.sha256 is not None:
            places.setdefault(seen.sha256, []).append((seen.path, seen.variant))
    for sha256, held_by in sorted(places.items()):
        source = state.sources.get(sha256, b"")
        told: Object = {
            "sha256": sha256,
            "text": source.decode("utf-8", "backslashreplace"),
            "held_by": [{"path": path, "variant": variant} for path, variant in held_by],
        }
        judged = state.judged.get(sha256)
        analysis = None if judged is None else queries.analysis(engine, judged.number)
        if analysis is not None:
            path, variant = held_by[0]
            told |= {
                "capscan_version": analysis.capscan_version,
                "analysis_version": analysis.analysis_version,
                **template_document(ChatTemplate(variant, source, ""), path, analysis.result),
            }
        yield told


def _scan(scan: ScanRecord) -> Object:
    times = {"started_at": scan.started_at, "finished_at": scan.finished_at}
    return {
        **asdict(scan),
        **{name: None if moment is None else moment.isoformat() for name, moment in times.items()},
    }


def _file(row: LatestFile) -> Object:
    return {
        "kind_of_file": str(row.kind),
        "size": row.size,
        "architecture": row.architecture,
        "file_type": row.file_type,
        "quantized_by": row.quantized_by,
        "name": row.name,
        "repository": row.repository,
        "role": row.role,
    }


def _variant(row: LatestFile) -> Object:
    return {
        "variant": row.variant,
        "sha256": row.sha256,
        "outcome": str(row.outcome),
        "reason": row.reason,
        "offset": row.offset,
        "expected": row.expected,
    }


def _json(item: Object) -> str:
    # All ASCII: a lone surrogate has no UTF-8, and no text can drive a terminal.
    return json.dumps(item)
