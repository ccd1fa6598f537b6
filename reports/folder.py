"""The folder of a report: writes what changed, removes what an earlier report left, and touches nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path

from scanner.errors import UsageError

MANIFEST = "report.json"
"""Lists the files that a report wrote, so that the next one knows which are its own."""

_MADE_BY = "capscan report"
_OUR_NAME = re.compile(r"(?:(?:templates|capabilities|compare|static)/)?[a-z0-9_-]+\.(?:html|json|css|js)")


class ReportFolder:
    """A report being written: `claim` the names, `write` each, `finish`."""

    def __init__(self, directory: Path, now: Callable[[], datetime]) -> None:
        self._directory = directory
        self._now = now
        self._former: frozenset[str] = frozenset()
        self._names: frozenset[str] = frozenset()
        self.bytes = 0
        """How much was given to `write`, written or not."""

    def claim(self, names: Iterable[str]) -> None:
        """Says which files will be written. Raises UsageError when one of them is there and no report wrote it."""
        self._former = _listed(self._directory / MANIFEST)
        self._names = frozenset(names)
        foreign = sorted(name for name in self._names - self._former if self._path(name).exists())
        if foreign:
            raise UsageError(
                f"{self._path(foreign[0])} was not written by a report and would be overwritten: "
                "choose another folder, or remove it"
            )
        for folder in {self._path(name).parent for name in self._names}:
            folder.mkdir(parents=True, exist_ok=True)
        # Should this report be cut short, the next one still knows its files.
        self._note(self._former | self._names)

    def write(self, name: str, content: bytes) -> bool:
        """Writes a claimed file unless it holds the same already; says whether it did."""
        self.bytes += len(content)
        return put(self._path(name), content)

    def written(self, size: int) -> None:
        """Counts what somebody else wrote into a claimed file, by `put`."""
        self.bytes += size

    def finish(self) -> int:
        """Removes the files that a former report wrote and this one did not; returns how many."""
        stale = [self._path(name) for name in sorted(self._former - self._names)]
        removable = [path for path in stale if self._is_inside(path) and path.is_file() and not path.is_symlink()]
        for path in removable:
            path.unlink()
        self._note(self._names)
        return len(removable)

    def _path(self, name: str) -> Path:
        return self._directory / name

    def _is_inside(self, path: Path) -> bool:
        """A folder of ours may have been replaced by a link that leads elsewhere."""
        return path.parent.resolve().is_relative_to(self._directory.resolve())

    def _note(self, names: Iterable[str]) -> None:
        manifest = {"made_by": _MADE_BY, "written_at": self._now().isoformat(), "files": sorted(names)}
        _replace(self._path(MANIFEST), json.dumps(manifest, indent=1).encode() + b"\n")


def put(path: Path, content: bytes) -> bool:
    """Writes a file unless it holds the same already; says whether it did."""
    if path.is_file() and path.read_bytes() == content:
        return False
    _replace(path, content)
    return True


def _listed(manifest: Path) -> frozenset[str]:
    """The files of a former report; none where there is no manifest of ours. Names that no report gives are ignored."""
    try:
        data = json.loads(manifest.read_bytes())
    except (OSError, ValueError):
        return frozenset()
    if not isinstance(data, dict) or data.get("made_by") != _MADE_BY or not isinstance(data.get("files"), list):
        return frozenset()
    return frozenset(name for name in data["files"] if isinstance(name, str) and _OUR_NAME.fullmatch(name))


def _replace(path: Path, content: bytes) -> None:
    """A reader sees the old file or the new one, never half of one."""
    unfinished = path.with_name(f".{path.name}.new")
    unfinished.write_bytes(content)
    unfinished.replace(path)
