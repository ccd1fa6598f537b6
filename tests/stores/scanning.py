"""Scans of stores through the command line, and what the database says of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scanner.cli import run


class Scanned:
    """A database, and the home of someone with stores."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.home = folder / "home"
        self.home.mkdir()
        self.database = str(folder / "c.db")
        self.capsys = capsys

    def scan(self, *arguments: str | Path) -> int:
        code = run(["scan", *map(str, arguments), "--db", self.database, "--quiet", "--workers", "1"])
        self.summary = self.capsys.readouterr().out
        return code

    def document(self, *arguments: str | Path) -> dict[str, object]:
        """The summary of a scan as JSON."""
        self.scan(*arguments, "--format", "json")
        found = json.loads(self.summary)
        assert isinstance(found, dict)
        return found

    def query(self, name: str) -> list[dict[str, object]]:
        assert run(["query", name, "--db", self.database, "--format", "json"]) == 0
        found = json.loads(self.capsys.readouterr().out)
        assert isinstance(found, list)
        return found

    def names(self) -> list[tuple[object, ...]]:
        """Name, repository, revision and the end of the path, of every name."""
        return [
            (row["name"], row["repository"], row["revision"], Path(str(row["path"])).name)
            for row in self.query("names")
        ]

    def show(self, *arguments: str) -> str:
        assert run(["show", *arguments, "--db", self.database]) == 0
        return self.capsys.readouterr().out


def passed_over(document: dict[str, object], root: Path) -> dict[str, str]:
    """What was passed over, by the path below `root`."""
    listed = document["passed_over"]
    assert isinstance(listed, list)
    return {str(Path(one["path"]).relative_to(root)): one["reason"] for one in listed}
