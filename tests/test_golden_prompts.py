"""Prompts of real templates, held against what a real server answered to fifty requests for each (`golden/` of the
shared data, skipped where that is absent), and against the table in `docs/prompts.md`."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from scanner.chat.prompt import Prompt, make_prompt
from scanner.chat.rewriting import BAD_ARGUMENTS
from scanner.chat.server import Vocabulary
from scanner.oracle import parse_error
from scanner.rendering import bare_template
from scanner.serving import serve
from tests.shared_data import shared_path

DOCS = (Path(__file__).resolve().parent.parent / "docs" / "prompts.md").read_text(encoding="utf-8")
TABLE = {
    name: (int(templates), int(answers), int(equal))
    for name, templates, answers, equal in re.findall(
        r"^\| ([^|]+?) \| (\d+) \| (\d+) \| (\d+) \|$", DOCS, re.MULTILINE
    )
}
VOCABULARY = Vocabulary("<s>", "</s>", add_bos=True)


def test_every_real_template_gives_the_servers_prompts_handler_by_handler() -> None:
    folder = shared_path("corpus", "templates")
    scenarios = json.loads(shared_path("golden", "scenarios.json").read_text(encoding="utf-8"))
    templates: Counter[str] = Counter()
    answers: Counter[str] = Counter()
    equal: Counter[str] = Counter()
    for line in shared_path("golden", "prompts.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if record["prompts"] is None:
            continue
        now = datetime.fromisoformat(record["date"]).timestamp()
        source = (folder / record["template"]).read_bytes()
        serving = serve(bare_template(source), VOCABULARY, now=now)
        handler = serving.server.default.handler
        templates[handler] += 1
        for name, body in scenarios.items():
            answers[handler] += 1
            equal[handler] += agrees(make_prompt(serving.server, body, now=now), record["prompts"][name], source)
    measured = {name: (templates[name], answers[name], equal[name]) for name in templates}
    assert measured == {name: counts for name, counts in TABLE.items() if name != "all"}
    assert TABLE["all"] == (templates.total(), answers.total(), equal.total())


def agrees(prompt: Prompt, answer: Mapping[str, Any], source: bytes) -> bool:
    """The prompt byte for byte, an error by its innermost message and its place."""
    if "prompt" in answer:
        return prompt.ok and prompt.prompt.decode("utf-8", "replace") == answer["prompt"]
    if prompt.error is None:
        return False
    wanted = parse_error(answer["error"], source)
    if wanted.message.startswith(BAD_ARGUMENTS):
        return prompt.error.text.startswith(BAD_ARGUMENTS)
    return (prompt.error.message, prompt.error.line, prompt.error.column) == (
        wanted.message,
        wanted.line,
        wanted.column,
    )
