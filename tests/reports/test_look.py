"""The stylesheet keeps its promises: contrast AA in both schemes, nothing from elsewhere."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

STYLE = files("reports").joinpath("static", "style.css").read_text()
AA = 4.5


def schemes() -> dict[str, dict[str, str]]:
    light, dark = [
        dict(re.findall(r"--([\w-]+):\s*(#\w+)", block)) for block in re.findall(r":root \{([^}]*)\}", STYLE)
    ]
    return {"light": light, "dark": light | dark}


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(digit * 2 for digit in colour[1:])
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("ink", ["text", "quiet", "accent", "error"])
@pytest.mark.parametrize("ground", ["ground", "raised", "tint", "error-ground"])
def test_contrast(scheme: str, ink: str, ground: str) -> None:
    colours = schemes()[scheme]
    lighter, darker = sorted((luminance(colours[ink]), luminance(colours[ground])), reverse=True)
    assert (lighter + 0.05) / (darker + 0.05) >= AA


def test_nothing_is_fetched() -> None:
    assert "url(" not in STYLE
    assert "@import" not in STYLE
