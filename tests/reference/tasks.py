"""What worker processes are asked to do."""

from __future__ import annotations

from scanner.reference import ReferenceProcess, ReferenceResult


def render_twice(source: str) -> tuple[ReferenceResult, ...]:
    """Two renders of a template, in a child of this worker."""
    with ReferenceProcess(seconds=1) as process:
        return process.render_all(source.encode(), [{"x": 1}, {"x": 2}])
