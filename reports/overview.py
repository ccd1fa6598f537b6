"""Everything a report reads of the database but the templates themselves, fetched once."""

from __future__ import annotations

import os.path
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Engine

from scanner.judge.verdicts import Claim, claims
from scanner.results import Effort, Finding, Outcome
from scanner.store import queries
from scanner.store.queries import (
    Change,
    ClaimCount,
    Combination,
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
    claim_counts: tuple[ClaimCount, ...]
    combinations: tuple[Combination, ...]
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

    @property
    def old_scan(self) -> OldScan | None:
        """What every page has to say where the report is of an old scan."""
        scan = self.scan.scan
        return None if self.newest is None else OldScan(scan.id, scan.started_at, self.newest)

    @property
    def profiles(self) -> tuple[str, ...]:
        """The engine profiles of the analyses, sorted."""
        return tuple(sorted({template.profile for template in self.templates} | {self.scan.scan.profile}))

    def variant(self, sha256: str, path: str) -> str:
        """Under which name the file holds the template; the first one, where there are several."""
        names = sorted(variant for holder, variant in self.held.get(sha256, ()) if holder == path)
        return names[0] if names else ""

    def shown(self, path: str) -> str:
        """A path as the pages show it: without the folder that all of them share."""
        return path.removeprefix(self.root)


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
        claim_counts=queries.claim_counts(engine, scan_id),
        combinations=queries.combinations(engine, scan_id),
        outliers=queries.outlier_list(engine, scan_id),
        changes=changes,
        former=queries.templates(engine, changes[0].old_scan_id) if changes else (),
        file_findings=queries.file_findings(engine, scan_id),
        verified=_verified(engine, files),
        held=_held(files),
        starts=_starts(files, templates),
        newest=_newer_scan(engine, scan_id),
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
    known = {(template.sha256, template.profile): template.server_starts for template in templates}
    found = {}
    for file in _serving(files).values():
        starts = known.get((file.sha256 or "", file.profile))
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
