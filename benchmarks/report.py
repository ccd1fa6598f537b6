"""How long a report takes, and how large it is.

    python benchmarks/report.py [--files N] [--templates N] [--from FOLDER]

Makes a database of N model files and N templates (10,000 and 500), each template a variation of those in FOLDER
(`*.jinja`; else the shared corpus, else one of our own), and writes its report twice: anew, and over itself. Printed:
seconds, those that the processor worked, pages, megabytes, and the largest pages. The target: under 10 s.
"""

# ruff: noqa: T201

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Engine

from reports import write_report
from scanner import __version__
from scanner.pipeline import analyse_template
from scanner.probe.profiles import CURRENT
from scanner.results import ChatTemplate, FileResult, ModelFile, ModelMetadata, Outcome, SourceKind, TemplateResult
from scanner.store import migrate
from scanner.store.session import open_database
from scanner.store.writer import ScanWriter

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("CAPSCAN_SHARED") or ROOT.parent / "shared")
OWN = b"""{%- for message in messages %}
{{- '<|' + message.role + '|>' + message.content + '\\n' }}
{%- for call in message.tool_calls or [] %}{{- call.function.name }}{% endfor %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|assistant|>' }}{% endif %}
"""
QUANTIZATIONS = ("Q4_K_M", "Q5_K_M", "Q6_K", "Q8_0", "F16")
EVERY_NTH_FAILS = 23


def main() -> None:
    arguments = _arguments()
    sources = [path.read_bytes() for path in sorted(arguments.source.glob("*.jinja"))] or [OWN]
    with tempfile.TemporaryDirectory() as folder:
        engine = open_database(str(Path(folder, "capscan.db")))
        migrate.ensure_current(engine, create=True)
        fill(engine, sources, arguments.files, arguments.templates)
        for what in ("anew", "again"):
            started, worked = time.perf_counter(), time.process_time()
            summary = write_report(engine, Path(folder, "report"), now=_now)
            seconds, work = time.perf_counter() - started, time.process_time() - worked
            print(
                f"{what:6} {seconds:6.2f} s, {work:.2f} s of it work  "
                f"{summary.pages} pages, {summary.unchanged} unchanged, {summary.bytes / 1e6:.1f} MB"
            )
        pages = sorted(Path(folder, "report").rglob("*.html"), key=lambda page: -page.stat().st_size)
        for page in pages[:4]:
            print(f"       {page.name:32} {page.stat().st_size / 1e6:.2f} MB")
        engine.dispose()


def fill(engine: Engine, sources: Sequence[bytes], files: int, templates: int) -> None:
    """One finished scan of so many files over so many templates."""
    analyses = [analyse_template(source, now=0) for source in sources]
    with ScanWriter(engine, now=_now, version=__version__, profile=CURRENT.name) as writer:
        writer.begin(["/models"])
        held = []
        for number in range(templates):
            template = ChatTemplate("default", sources[number % len(sources)] + b"{# %d #}" % number, "a key")
            held.append(template)
            writer.add_template(template.source)
            writer.add_analysis(_renamed(analyses[number % len(sources)], template.sha256))
        for number in range(files):
            writer.add_file(_file(number, held[number % templates]))
        writer.finish("finished")


def _renamed(analysis: TemplateResult, sha256: str) -> TemplateResult:
    return replace(analysis, sha256=sha256)


def _file(number: int, template: ChatTemplate) -> FileResult:
    path = f"/models/somebody-{number % 40}/A-Model-{number % 900}-Instruct-GGUF/model-{number}.gguf"
    file = ModelFile(path, "/models", SourceKind.GGUF, 4_000_000_000, 0, str(number))
    if number % EVERY_NTH_FAILS == 0:
        return FileResult(file, Outcome.UNREADABLE, reason="the file ends early", offset=number, expected="a key")
    metadata = ModelMetadata(
        architecture="llama", file_type=QUANTIZATIONS[number % len(QUANTIZATIONS)], quantized_by="somebody"
    )
    return FileResult(file, Outcome.ANALYSED, (template,), metadata)


def _now() -> datetime:
    return datetime.now(UTC)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="How long a report takes, and how large it is.")
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--templates", type=int, default=500)
    parser.add_argument("--from", dest="source", type=Path, default=SHARED / "corpus" / "templates")
    return parser.parse_args()


if __name__ == "__main__":
    main()
