"""Where tests find the shared corpus and golden data, which are no part of the project."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


def shared_path(*parts: str) -> Path:
    """A file or folder of the shared data, in `$CAPSCAN_SHARED` or beside the repository.

    Skips the running test, with the reason, where it is absent.
    """
    root = Path(os.environ.get("CAPSCAN_SHARED") or REPOSITORY.parent / "shared")
    path = root.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"shared data absent: {path} (set CAPSCAN_SHARED)")
    return path
