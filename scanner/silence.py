"""Findings that are known and need nobody's attention, told in `.capscan.toml` with a reason.

    [[silence]]
    rule = "clock-dependent"        # or a list of rules
    path = "models/old/**"          # a glob, seen from the folder of this file; `**` is any number of folders
    template = "c3cf41d2"           # how the SHA-256 of a template begins; path and template may both be left out
    reason = "known, ships next week"

What is silenced does not count for `--fail-on`, but is still counted and listed:

    sifted = load(Path.cwd()).sift(rows)      # every finding in every file that has it
    failing = reaches(sifted.kept, fail_on)
    sifted.line()                             # "3 findings silenced (.capscan.toml)", or None
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePath
from typing import Any

from scanner.errors import UsageError
from scanner.judge import ALL_RULES
from scanner.results import Severity

FILE_NAME = ".capscan.toml"
TABLE = "silence"
"""The only key of the file."""
KEYS = ("rule", "path", "template", "reason")
HASH = re.compile(r"[0-9a-f]{8,64}")
ANY_FOLDERS = "**"


@dataclass(frozen=True, slots=True)
class FoundIn:
    """One finding in one file that has it. `path` is absolute; `sha256` is that of the template, None for a finding
    about the file itself."""

    rule: str
    severity: Severity
    path: str
    sha256: str | None = None

    @property
    def finding(self) -> tuple[str, str]:
        """What is one finding, in however many files."""
        return self.rule, self.sha256 or self.path


@dataclass(frozen=True, slots=True)
class Silence:
    """One entry. `path` and `template` None: whatever the file, or the template."""

    rules: frozenset[str]
    reason: str
    path: str | None = None
    template: str | None = None

    def holds(self, rule: str, path: str, sha256: str | None, folder: str) -> bool:
        """Whether it silences a finding; its path is seen from `folder`."""
        if rule not in self.rules:
            return False
        if self.template is not None and not (sha256 or "").startswith(self.template):
            return False
        return self.path is None or path_matches(self.path, path, folder)


@dataclass(frozen=True, slots=True)
class SilencedRow:
    """A finding in a file, and why it is silenced."""

    row: FoundIn
    reason: str


@dataclass(frozen=True, slots=True)
class Sifted:
    """Findings parted into those that count and those that are silenced, in their order. A template's finding counts
    as long as one of its files is not silenced."""

    kept: tuple[FoundIn, ...]
    silenced: tuple[SilencedRow, ...] = ()

    @property
    def silenced_findings(self) -> int:
        """How many findings are silenced in every file that has them."""
        counting = {row.finding for row in self.kept}
        return len({silenced.row.finding for silenced in self.silenced} - counting)

    def line(self) -> str | None:
        """What a summary says of it; None where nothing is silenced."""
        count = self.silenced_findings
        return f"{count:,} finding{'' if count == 1 else 's'} silenced ({FILE_NAME})" if count else None


@dataclass(frozen=True, slots=True)
class Silences:
    """The entries of one file, in their order; `folder` is where it stands."""

    folder: str
    entries: tuple[Silence, ...] = ()

    def reason_for(self, rule: str, path: str, sha256: str | None) -> str | None:
        """Why a finding is silenced in a file, told by the first entry that does it; None where none does."""
        for entry in self.entries:
            if entry.holds(rule, path, sha256, self.folder):
                return entry.reason
        return None

    def sift(self, rows: Iterable[FoundIn]) -> Sifted:
        """Part findings into those that count and those that are silenced."""
        kept, silenced = [], []
        for row in rows:
            reason = self.reason_for(row.rule, row.path, row.sha256)
            if reason is None:
                kept.append(row)
            else:
                silenced.append(SilencedRow(row, reason))
        return Sifted(tuple(kept), tuple(silenced))


def reaches(rows: Iterable[FoundIn], threshold: str) -> bool:
    """Whether one of these findings is of a severity (`error`, `warning`, `note`) or worse, or of a rule."""
    order = list(Severity)
    accepted = order[: order.index(Severity(threshold)) + 1] if threshold in order else []
    return any(row.severity in accepted or row.rule == threshold for row in rows)


def path_matches(pattern: str, path: str, folder: str) -> bool:
    """Whether an absolute path matches a glob. One that is not absolute is seen from a folder."""
    if not PurePath(pattern).is_absolute():
        path = os.path.relpath(path, folder)
    return _match(PurePath(pattern).parts, PurePath(path).parts)


def _match(pattern: Sequence[str], parts: Sequence[str]) -> bool:
    """Match the parts of a path, from its end, so that no pattern takes longer than their product."""
    reached = [*[False] * len(parts), True]
    for sign in reversed(pattern):
        if sign == ANY_FOLDERS:
            reached = [any(reached[at:]) for at in range(len(parts) + 1)]
        else:
            reached = [*[fnmatchcase(part, sign) and reached[at + 1] for at, part in enumerate(parts)], False]
    return reached[0]


# -- reading -----------------------------------------------------------------------------------------------------------


def load(folder: str | Path) -> Silences:
    """The silences of a folder; none where it has no `.capscan.toml`. Raises UsageError for one that makes no sense."""
    folder = Path(folder).absolute()
    file = folder / FILE_NAME
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Silences(str(folder))
    except OSError as error:
        raise UsageError(f"{file}: cannot be read ({error.strerror}); allow it, or remove the file") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{file}: is not TOML ({error}); mend it, or remove the file") from error
    return Silences(str(folder), _entries(document, file))


def _entries(document: Mapping[str, Any], file: Path) -> tuple[Silence, ...]:
    other = sorted(document.keys() - {TABLE})
    if other:
        raise UsageError(f"{file}: unknown key {other[0]!r}; entries begin with [[{TABLE}]]")
    tables = document.get(TABLE, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise UsageError(f"{file}: {TABLE} is no list of tables; entries begin with [[{TABLE}]]")
    return tuple([_entry(table, f"{file}: entry {number}") for number, table in enumerate(tables, 1)])


def _entry(table: Mapping[str, Any], where: str) -> Silence:
    """One entry; `where` begins what is said of it."""
    other = sorted(table.keys() - set(KEYS))
    if other:
        raise UsageError(f"{where}: unknown key {other[0]!r}; there are {', '.join(KEYS)}")
    reason = _text(table, "reason", where)
    if reason is None:
        raise UsageError(f"{where}: no reason; say why in a line: reason = …")
    path, template = _text(table, "path", where), _text(table, "template", where)
    if template is not None and not HASH.fullmatch(template.lower()):
        raise UsageError(f"{where}: template {template!r} is not how a SHA-256 begins; give 8 to 64 hexadecimal digits")
    return Silence(_rules(table, where), reason, path, None if template is None else template.lower())


def _rules(table: Mapping[str, Any], where: str) -> frozenset[str]:
    given = table.get("rule")
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise UsageError(f'{where}: no rule; name one, or several: rule = "clock-dependent" or ["…", "…"]')
    known = {rule.slug for rule in ALL_RULES}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UsageError(f"{where}: there is no rule {unknown[0]!r}; capscan rules lists them")
    return frozenset(names)


def _text(table: Mapping[str, Any], key: str, where: str) -> str | None:
    """A text that may be absent, but not empty."""
    value = table.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip():
        instead = "" if key == "reason" else ", or leave it out"
        raise UsageError(f'{where}: {key} is no text; write {key} = "…"{instead}')
    return value.strip()
