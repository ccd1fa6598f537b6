"""The wheel holds all that the installed program needs."""

from __future__ import annotations

import site
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("build")
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def test_an_installed_wheel_runs_from_another_folder(built: Path, tmp_path: Path) -> None:
    environment = tmp_path / "venv"
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    (wheel,) = built.glob("*.whl")
    install = [str(python), "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    # The dependencies are those of this environment; the project itself must come from the wheel.
    borrowed = next((environment / "lib").glob("python*/site-packages")) / "borrowed.pth"
    borrowed.write_text("\n".join(site.getsitepackages()))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = subprocess.run(
        [str(environment / "bin" / "capscan"), "demo"], cwd=elsewhere, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (elsewhere / "capscan-demo" / "report" / "index.html").is_file()
    where = subprocess.run(
        [str(python), "-c", "import scanner; print(scanner.__file__)"], cwd=elsewhere, capture_output=True, check=True
    )
    assert str(environment) in where.stdout.decode()


def test_the_sdist_holds_packages_and_tests(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    assert {"scanner/cli.py", "reports/__init__.py", "migrations/env.py", "tests/test_cli.py", "LICENSE"} <= names
