"""Writes docs/rules.md from the table of the rules and the cases of the tests: `python -m tests.judge.write_docs`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from scanner.judge import ALL_RULES
from scanner.judge.rules import AnyRule
from scanner.results import Severity
from tests.judge.cases import FILES, TEMPLATES, Case

PAGE = Path(__file__).resolve().parents[2] / "docs" / "rules.md"
HEAD = """\
# Rules

A finding says that something about a template, or about a model file, is not as one would think. This page explains
each rule: what it means, why it matters, an example with what Capscan says of it, and what to do. It is written from
the rules themselves and from the cases of their tests (`python -m tests.judge.write_docs`).

An *error* keeps a model from being served or examined. A *warning* is something that the model does not see as it was
sent, or that clients are told wrongly. A *note* is worth knowing. `capscan rules` lists the rules, `capscan rules RULE`
explains one.

A finding that is known can be silenced by a `.capscan.toml` in the current folder. It no longer counts for `--fail-on`,
and is still counted and listed.

```toml
[[silence]]
rule = "clock-dependent"        # or a list of rules
path = "models/old/**"          # seen from the folder of this file; `**` is any number of folders
template = "c3cf41d2"           # how the SHA-256 of a template begins; path and template may both be left out
reason = "known, ships next week"
```
"""
TITLES = {Severity.ERROR: "Errors", Severity.WARNING: "Warnings", Severity.NOTE: "Notes"}


def document() -> str:
    """The whole page."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield HEAD
    for severity, title in TITLES.items():
        rules = [rule for rule in ALL_RULES if rule.severity is severity]
        yield f"- {title}: {', '.join([f'[{rule.slug}](#{rule.slug})' for rule in rules])}"
    for severity, title in TITLES.items():
        yield f"\n## {title}"
        for rule in ALL_RULES:
            if rule.severity is severity:
                yield from _section(rule)


def _section(rule: AnyRule) -> Iterator[str]:
    case = (TEMPLATES.get(rule.slug) or FILES[rule.slug]).holds
    author, _, serving = rule.remedy.partition(" Serving: ")
    yield f'\n<a id="{rule.slug}"></a>\n\n### {rule.slug}\n'
    yield f"{_prose(rule.meaning)}\n"
    yield f"**Why it matters.** {_prose(rule.why)}\n"
    yield from _example(case)
    text = next(finding.text for finding in case.findings() if finding.rule == rule.slug)
    yield f"> {rule.severity}: {_code(text)}\n"
    yield f"**What to do.** Who writes the template: {_prose(author.removeprefix('Author: '))}\n"
    yield f"Who serves it: {_prose(serving)}"


def _example(case: Case) -> Iterator[str]:
    if case.default is None:
        yield "For example, a file without `tokenizer.chat_template`.\n"
        return
    if case.notes:
        yield "For example, `NAME-00001-of-00003.gguf` in a folder without the two others.\n"
        return
    yield f"```jinja\n{case.default.strip()}\n```\n"
    if case.tool_use is not None:
        yield f"and as `tool_use`:\n\n```jinja\n{case.tool_use.strip()}\n```\n"
    if case.bos.added:
        yield f"in a file whose tokenizer adds `{case.bos.text}` itself.\n"
    if len(case.profiles) > 1:
        yield f"under the profiles {', '.join(case.profiles)}.\n"


def _prose(text: str) -> str:
    """A text in which nothing but code in backticks is Markdown."""
    parts = text.split("`")
    shown = [part if at % 2 else _escaped(part) for at, part in enumerate(parts)]
    return "`".join(shown)


def _escaped(text: str) -> str:
    for sign in "\\*<|":
        text = text.replace(sign, f"\\{sign}")
    return text


def _code(text: str) -> str:
    return f"`` {text} ``" if "`" in text else f"`{text}`"


if __name__ == "__main__":
    PAGE.write_text(document(), encoding="utf-8")
