"""Everything a report reads of the database but the templates themselves, fetched once."""

from __future__ import annotations

import os.path
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import Engine

from reports.builds import oldest_first
from scanner.judge.verdicts import Claim, claims
from scanner.results import Effort, Finding, Outcome
from scanner.store import queries
from scanner.store.queries import (
    Change,
    FileFinding,
    LatestFile,
    Outlier,
    ScanSummary,
    TemplateDetail,
    TemplateSummary,
)

SHORT = 16
"""How many digits of a SHA-256 name a template's page."""


@dataclass(frozen=True, slots=True)
class OldScan:
    """The scan that a report is of, where a newer one has finished: every page says so."""

    id: int
    started_at: datetime
    newest: int


@dataclass(frozen=True, slots=True)
class Overview:
    """The database as a report sees it: the newest state of all files, or what one scan saw. `root` is the folder that
    all files lie in, with a slash at its end."""

    scan: ScanSummary
    root: str
    files: tuple[LatestFile, ...]
    templates: tuple[TemplateSummary, ...]
    outliers: tuple[Outlier, ...]
    changes: tuple[Change, ...]
    former: tuple[TemplateSummary, ...]
    """The templates that the scan before saw, where anything changed since."""
    file_findings: tuple[FileFinding, ...]
    verified: Mapping[str, int]
    """How many of the templates that files hold the real llama.cpp was asked about, by its verdict."""
    held: Mapping[str, frozenset[tuple[str, str]]]
    """For each template's SHA-256 the paths and variants that hold it."""
    starts: Mapping[tuple[str, str], bool]
    """Whether llama-server starts with a file, by its path and the variant that decides it: the one whose template
    serves plain requests. Those not examined are left out."""
    newest: int | None
    """The newest finished scan, where the report is of an older one."""
    names: Mapping[str, str] = field(default_factory=dict)
    """By path, what stores call files."""
    new: frozenset[str] = frozenset()
    """The templates that no scan before this one saw, by their SHA-256."""

    @property
    def sha256s(self) -> frozenset[str]:
        """The templates that have a page, by SHA-256."""
        return frozenset(template.sha256 for template in self.templates)

    @property
    def old_scan(self) -> OldScan | None:
        """What every page has to say where the report is of an old scan."""
        scan = self.scan.scan
        return None if self.newest is None else OldScan(scan.id, scan.started_at, self.newest)

    def variant(self, sha256: str, path: str) -> str:
        """Under which name the file holds the template; the first one, where there are several."""
        names = sorted(variant for holder, variant in self.held.get(sha256, ()) if holder == path)
        return names[0] if names else ""

    def shown(self, path: str) -> str:
        """A file as the pages show it: by the name that a store has for it, else by its path without the folder that
        all of them share."""
        return self.names.get(path) or path.removeprefix(self.root)

    def place(self, path: str) -> str | None:
        """The path of a file that pages show by a name, without the folder that all share; else None."""
        return path.removeprefix(self.root) if path in self.names else None


@dataclass(frozen=True, slots=True)
class TemplateNotes:
    """What the pages about all templates tell of one under one profile: its findings, why its flags are so, and its
    reasoning efforts as they were tried."""

    findings: tuple[Finding, ...]
    claims: tuple[Claim, ...]
    efforts: tuple[Effort, ...] = ()


AllNotes = Mapping[tuple[str, str], TemplateNotes]
"""By SHA-256 and profile."""


def read_overview(engine: Engine, scan_id: int | None = None) -> Overview:
    """Reads the database: its newest state, or with a number what that scan saw. Raises UsageError when there is no
    such scan, or none yet; DatabaseError when the database fails."""
    scan = queries.scan_summary(engine, scan_id)
    files = tuple(queries.files(engine, scan_id))
    templates = queries.templates(engine, scan_id)
    changes = queries.changes_of_scan(engine, scan_id)
    return Overview(
        scan=scan,
        root=_common_folder(file.path for file in files),
        files=files,
        templates=templates,
        outliers=queries.outlier_list(engine, scan_id),
        changes=changes,
        former=queries.templates(engine, changes[0].old_scan_id) if changes else (),
        file_findings=queries.file_findings(engine, scan_id),
        verified=_verified(engine, files),
        held=_held(files),
        starts=_starts(files, chosen(templates, scan.scan.profile)),
        newest=_newer_scan(engine, scan_id),
        names={file.path: file.name for file in files if file.name is not None},
        new=queries.new_templates(engine, scan.scan.id),
    )


def _verified(engine: Engine, files: Sequence[LatestFile]) -> dict[str, int]:
    held = {file.sha256 for file in files}
    told = [found.verification for found in queries.verifications(engine)]
    return dict(sorted(Counter(str(one.verdict) for one in told if one.sha256 in held).items()))


def notes_of(detail: TemplateDetail) -> dict[tuple[str, str], TemplateNotes]:
    """The notes of one template under each profile."""
    return {
        (detail.sha256, analysis.result.profile): TemplateNotes(
            findings=analysis.result.findings,
            claims=claims(analysis.result.capabilities, analysis.result.probes, analysis.result.observations),
            efforts=analysis.result.efforts,
        )
        for analysis in detail.analyses
    }


def preferred(profiles: Iterable[str], wanted: str) -> str:
    """The one of these profiles, at least one, under which a template is shown: the one that is wanted, which is that
    of the report's scan, or else that of the newest build."""
    known = oldest_first(profiles)
    return wanted if wanted in known else known[-1]


def chosen(templates: Iterable[TemplateSummary], wanted: str) -> tuple[TemplateSummary, ...]:
    """Each template once, under the profile that it is shown under, in their order."""
    listed = tuple(templates)
    analysed: dict[str, list[str]] = {}
    for one in listed:
        analysed.setdefault(one.sha256, []).append(one.profile)
    profiles = {sha256: preferred(found, wanted) for sha256, found in analysed.items()}
    return tuple(one for one in listed if profiles[one.sha256] == one.profile)


def page_id(sha256: str) -> str:
    """The name of a template's page."""
    return sha256[:SHORT]


def _common_folder(paths: Iterable[str]) -> str:
    folders = {os.path.dirname(path) for path in paths}  # noqa: PTH120 - the text of the path, which may be anything
    try:
        folder = os.path.commonpath(folders)
    except ValueError:
        # No files at all, or paths that have nothing in common.
        return ""
    return "" if folder in ("", "/") else f"{folder}/"


def _held(files: Iterable[LatestFile]) -> dict[str, frozenset[tuple[str, str]]]:
    held: dict[str, set[tuple[str, str]]] = {}
    for file in files:
        if file.sha256 is not None:
            held.setdefault(file.sha256, set()).add((file.path, file.variant))
    return {sha256: frozenset(holders) for sha256, holders in held.items()}


def _starts(files: Iterable[LatestFile], templates: Iterable[TemplateSummary]) -> dict[tuple[str, str], bool]:
    known = {template.sha256: template.server_starts for template in templates}
    found = {}
    for file in _serving(files).values():
        starts = known.get(file.sha256 or "")
        if starts is not None:
            found[file.path, file.variant] = starts
    return found


def _serving(files: Iterable[LatestFile]) -> dict[str, LatestFile]:
    """For each path the variant that serves plain requests, as llama.cpp chooses it (`scanner.chat.selection`): the
    default, or else a tool_use template that parses."""
    serving: dict[str, LatestFile] = {}
    for file in files:
        is_default = file.variant == "default" and file.outcome is not Outcome.NO_TEMPLATE
        stands_in = file.variant == "tool_use" and file.outcome is not Outcome.NOT_PARSEABLE
        if is_default or (stands_in and file.path not in serving):
            serving[file.path] = file
    return serving


def _newer_scan(engine: Engine, scan_id: int | None) -> int | None:
    """The newest finished scan, if it is newer than the one that was asked for."""
    newest = queries.newest_finished(engine)
    return newest if scan_id is not None and newest is not None and newest > scan_id else None
