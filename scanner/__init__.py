"""Capscan: what llama.cpp will believe about chat templates, why, and what is really true.

For notebooks and programs: `from scanner import analyze` (docs/python.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scanner.analysis import Analysis, FileAnalysis, TemplateAnalysis, analyze

__version__ = "0.1.0"

__all__ = ["Analysis", "FileAnalysis", "TemplateAnalysis", "__version__", "analyze"]


if not TYPE_CHECKING:
    # A type checker that saw this would believe that there is anything at all.

    def __getattr__(name: str) -> object:
        """Loads the interface when it is first used: the command line needs only the version."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import scanner.analysis

        return getattr(scanner.analysis, name)
