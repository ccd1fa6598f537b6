"""Imports go one way (`design.md`): a package may import what stands left of it, and nothing else of the project."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

ALLOWED: dict[str, set[str]] = {
    "scanner.errors": set(),
    "scanner.results": set(),
    "scanner.dialect": set(),
    "scanner.shards": {"scanner.results"},
    "scanner.stores": {"scanner.errors", "scanner.results"},
    "scanner.discover": {"scanner.errors", "scanner.results", "scanner.shards", "scanner.stores"},
    "scanner.extract": {"scanner.errors", "scanner.results", "scanner.shards"},
    "scanner.chat": {"scanner.dialect", "scanner.results"},
    "scanner.reference": {"scanner.errors"},
    "scanner.probe": {"scanner.chat", "scanner.dialect", "scanner.reference", "scanner.results"},
    "scanner.judge": {"scanner.results"},
    "scanner.oracle": {"scanner.errors", "scanner.results"},
    "scanner.demo": set(),
    # The store asks the package `migrations` where it is installed.
    "scanner.store": {"migrations", "scanner", "scanner.errors", "scanner.results"},
    "scanner.truth": {"scanner.chat", "scanner.dialect", "scanner.probe", "scanner.reference", "scanner.results"},
    "scanner.pipeline": {
        *("scanner.chat", "scanner.dialect", "scanner.extract", "scanner.judge", "scanner.probe", "scanner.results"),
        "scanner.truth",
    },
    "scanner.processes": set(),
    "scanner.pool": {"scanner.processes"},
    "scanner.diff": {"scanner.results", "scanner.store"},
    "reports": {"scanner.errors", "scanner.judge", "scanner.processes", "scanner.results", "scanner.store"},
    "migrations": {"scanner.errors", "scanner.store"},
}
"""What each package may import of the project, besides itself. Those not named here compose the rest."""


def modules() -> Iterator[tuple[str, Path]]:
    for package in ("scanner", "reports", "migrations"):
        for path in sorted((ROOT / package).rglob("*.py")):
            yield ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"), path


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} if node.module != "scanner" else {f"scanner.{a.name}" for a in node.names}
    return {name for name in names if name.split(".")[0] in ("scanner", "reports", "migrations")}


def owner(module: str) -> str | None:
    return next((name for name in ALLOWED if module == name or module.startswith(f"{name}.")), None)


CASES = [(name, path) for name, path in modules() if owner(name)]


@pytest.mark.parametrize(("module", "path"), CASES, ids=[name for name, _ in CASES])
def test_a_module_imports_only_what_stands_below_it(module: str, path: Path) -> None:
    package = owner(module)
    assert package is not None
    permitted = {package, *ALLOWED[package]}
    foreign = {
        name
        for name in imported(path)
        if not any(name == below or (below != "scanner" and name.startswith(f"{below}.")) for below in permitted)
        and name != "scanner.__version__"
    }
    assert foreign == set()


def test_nobody_imports_the_command_line() -> None:
    users = {name for name, path in modules() if "scanner.cli" in imported(path)}
    assert users == {"scanner.__main__"}


def test_extractors_and_the_store_do_not_know_each_other() -> None:
    for name, path in modules():
        if name.startswith("scanner.extract"):
            assert not any(found.startswith(("scanner.store", "reports")) for found in imported(path)), name
        if name.startswith("scanner.store"):
            assert not any(found.startswith(("scanner.extract", "reports")) for found in imported(path)), name
