"""Results as JSON-compatible data, in the shape that other tools rely on (`design.md`, "Command line")."""

from __future__ import annotations

from scanner.results import (
    Behaviour,
    ChatTemplate,
    Effort,
    Finding,
    Observation,
    ParseError,
    ProbeRun,
    RunError,
    StartCheck,
    TemplateResult,
)


def template_document(template: ChatTemplate, source: str, result: TemplateResult) -> dict[str, object]:
    """What `capscan probe` prints of one template; `source` is the path it came from. What is really true of it is left
    out where it was not examined."""
    return {
        "template": {
            "sha256": result.sha256,
            "bytes": len(template.source),
            "variant": template.variant,
            "source": source,
        },
        "profile": result.profile,
        "outcome": str(result.outcome),
        "reason": result.reason,
        "handler": result.handler,
        "patches": list(result.patches),
        "start": start_document(result.server_start),
        "parse_error": _parse_error(result.parse_error),
        "capabilities": None if result.capabilities is None else result.capabilities.as_llama_cpp(),
        "probes": [_probe(run) for run in result.probes],
        **_really(result),
        "findings": [finding_document(finding) for finding in result.findings],
    }


def start_document(start: StartCheck | None) -> dict[str, object] | None:
    """Whether llama-server starts; None: not examined. `message` is that of the `conversation` that fails (`StartCheck`
    says what follows from which), or that of a parse error."""
    if start is None:
        return None
    error = start.error
    return {
        "ok": start.ok,
        "conversation": start.conversation,
        "message": None if error is None else error.message,
        "line": None if error is None else error.line,
        "column": None if error is None else error.column,
        "enable_thinking": start.enable_thinking,
    }


def _really(result: TemplateResult) -> dict[str, object]:
    """The keys of what is really true, those that there is something for."""
    document: dict[str, object] = {}
    if result.observations:
        document["observed"] = {one.capability: _observation(one) for one in result.observations}
    if result.efforts:
        document["efforts"] = [_effort(one) for one in result.efforts]
    if result.free_text_effort is not None:
        document["free_text_effort"] = result.free_text_effort
    if result.behaviours:
        document["behaviours"] = {one.key: _behaviour(one) for one in result.behaviours}
    return document


def _observation(observation: Observation) -> dict[str, object]:
    return {
        "verdict": observation.verdict,
        "reason": observation.reason,
        "agreement": None if observation.agreement is None else str(observation.agreement),
    }


def _effort(effort: Effort) -> dict[str, object]:
    return {
        "word": effort.word,
        "outcome": str(effort.outcome),
        "message": effort.message,
        "group": effort.group,
        "prints_word": effort.prints_word,
        "equals_unset": effort.equals_unset,
    }


def _behaviour(behaviour: Behaviour) -> dict[str, object]:
    return {"outcome": behaviour.outcome, "detail": behaviour.detail, "evidence": behaviour.evidence}


def _parse_error(error: ParseError | None) -> dict[str, object] | None:
    if error is None:
        return None
    return {"kind": error.kind, "message": error.message, "line": error.line, "column": error.column}


def _probe(run: ProbeRun) -> dict[str, object]:
    return {
        "name": run.name,
        "ok": run.ok,
        "output": run.output,
        "error": _run_error(run.error),
        "reads": [
            {
                "path": read.path,
                "used": read.used,
                "ops": list(read.ops),
                "line": read.line,
                "column": read.column,
            }
            for read in run.reads
        ],
    }


def _run_error(error: RunError | None) -> dict[str, object] | None:
    if error is None:
        return None
    return {
        "kind": error.kind,
        "message": error.message,
        "node": error.node,
        "line": error.line,
        "column": error.column,
        "offset": error.offset,
    }


def finding_document(finding: Finding) -> dict[str, object]:
    """A finding."""
    return {
        "rule": finding.rule,
        "severity": str(finding.severity),
        "message": finding.text,
        "evidence": finding.evidence,
        "line": finding.line,
    }
