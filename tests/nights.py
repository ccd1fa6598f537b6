"""A collection that is scanned night after night, in this process and by a clock of the test's own."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from sqlalchemy import Engine

from scanner.discover import discover
from scanner.judge import FileFacts, VariantFacts, judge_file
from scanner.pipeline import ANALYSIS_VERSION, analyse_file, analyse_template
from scanner.results import ChatTemplate, PassedOver, TemplateResult
from scanner.store import migrate, queries
from scanner.store.session import open_database
from scanner.store.writer import ScanWriter
from tests.store.examples import PROFILE, VERSION, Clock

TALK = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}\n{% endfor %}"
"""Prints every message."""
TOOLS = "{% if tools %}{% for t in tools %}{{ t | tojson }}{% endfor %}{% endif %}" + TALK
"""And the tools."""
BROKEN = "{% if tools %}"
"""Does not parse."""


class Nights:
    """A folder of models beside a database in `folder`; each `scan` is a night later than the one before."""

    def __init__(self, folder: Path) -> None:
        self.models = folder / "models"
        self.models.mkdir()
        self.database = folder / "nights.db"
        self.engine: Engine = open_database(str(self.database))
        migrate.ensure_current(self.engine, create=True)
        self.clock = Clock()

    def write(self, name: str, text: str) -> Path:
        """Write a template file; its time of change is the night's."""
        path = self.models / name
        path.write_text(text, encoding="utf-8")
        moment = self.clock().timestamp()
        os.utime(path, (moment, moment))
        return path

    def scan(
        self,
        *,
        profile: str = PROFILE,
        version: str = VERSION,
        judge: Callable[[TemplateResult], TemplateResult] = lambda result: result,
        status: str = "finished",
    ) -> int:
        """Scan the folder as the given Capscan, which judges a template as it is judged here and then by `judge`."""
        self.clock.move(timedelta(days=1).total_seconds())
        with ScanWriter(
            self.engine, now=self.clock, version=version, profile=profile, analysis_version=ANALYSIS_VERSION
        ) as writer:
            number = writer.begin([str(self.models)])
            for file in discover([str(self.models)]):
                assert not isinstance(file, PassedOver)
                if not writer.file_unchanged(file):
                    writer.add_file(analyse_file(file))
            for _, source in writer.templates_without_analysis():
                writer.add_analysis(judge(analyse_template(source, profile=profile, now=0)))
            writer.flush()
            for held in queries.held_in_scan(self.engine, number, profile):
                variants = [
                    VariantFacts(ChatTemplate(one.variant, b"", ""), one.outcome, one.capabilities, one.bos)
                    for one in held.variants
                ]
                writer.add_file_findings(held.path, judge_file(FileFacts(held.outcome, variants, held.bos)))
            self.clock.move(60)
            writer.finish("finished" if status == "finished" else "interrupted")
        return number


def without_flag(capability: str) -> Callable[[TemplateResult], TemplateResult]:
    """What a Capscan that does not see a capability makes of a template."""

    def judge(result: TemplateResult) -> TemplateResult:
        if result.capabilities is None:
            return result
        return replace(result, capabilities=replace(result.capabilities, **{capability: False}))

    return judge
