"""What the queries give: records for the command line and the reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from scanner.results import (
    JINJA,
    Agreement,
    Behaviour,
    Capabilities,
    FileResult,
    Finding,
    ModelName,
    Outcome,
    PassedOver,
    Severity,
    SourceKind,
    SpecialToken,
    StartCheck,
    TemplateResult,
    Verification,
)

Verdicts = Mapping[str, bool | None]
"""What was observed of every capability; None: not told."""


@dataclass(frozen=True, slots=True)
class ScanRecord:
    """One scan; `finished_at` is None until it ended. Times are in UTC."""

    id: int
    started_at: datetime
    finished_at: datetime | None
    status: str
    sources: tuple[str, ...]
    capscan_version: str
    profile: str
    files_seen: int
    files_unchanged: int
    passed_over: tuple[PassedOver, ...]


@dataclass(frozen=True, slots=True)
class ClaimCount:
    """How many templates, and files with such a template, claim a capability (of so many `analysed`), really have it
    (`observed`, of so many `judged`), and where the two disagree."""

    profile: str
    capability: str
    templates_claiming: int
    templates_analysed: int
    templates_observed: int
    templates_judged: int
    templates_overclaiming: int
    templates_underclaiming: int
    files_claiming: int
    files_analysed: int
    files_observed: int
    files_judged: int
    files_overclaiming: int
    files_underclaiming: int


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A capability of a template whose claim is not what was observed, the reason of that, and the line of the error
    where one was raised. `files` hold the template, `path` is the first of them."""

    profile: str
    sha256: str
    path: str
    files: int
    capability: str
    agreement: Agreement
    reason: str
    line: int | None


@dataclass(frozen=True, slots=True)
class ScanSummary:
    """What one scan saw. A file whose variants fared differently counts under each of its outcomes. `new_templates`
    were in no scan before; `claims` are of this scan's files and profile, in the order of CAPABILITIES. Of
    `partly_examined` templates the flags are known, but not all that is really true. All of these are Jinja templates;
    `go_templates` are the others, which only Ollama reads, in so many files (`go_files`). `roles` counts the files that
    are no models of their own; of `not_loaded` split models shards are missing, or are not what their names say."""

    scan: ScanRecord
    files_by_outcome: Mapping[Outcome, int]
    variants: Mapping[str, int]
    templates: int
    new_templates: int
    claims: tuple[ClaimCount, ...]
    partly_examined: int = 0
    go_templates: int = 0
    go_files: int = 0
    roles: Mapping[str, int] = field(default_factory=dict)
    not_loaded: int = 0


@dataclass(frozen=True, slots=True)
class LatestFile:
    """One variant of one model file, as a scan recorded it: the one that was asked for, or the newest finished one that
    saw the file. `capabilities` is None without a verdict; `variant` is '' and `sha256` None for a file without
    templates. `name` is what a store calls the file, `repository` where it comes from; `role` says what a file is that
    is no model of its own (`results.Role`)."""

    path: str
    variant: str
    sha256: str | None
    outcome: Outcome
    reason: str | None
    offset: int | None
    expected: str | None
    kind: SourceKind
    size: int
    architecture: str | None
    file_type: str | None
    quantized_by: str | None
    profile: str
    scan_id: int
    capabilities: Capabilities | None
    observed: Verdicts
    name: str | None = None
    repository: str | None = None
    role: str | None = None


@dataclass(frozen=True, slots=True)
class TemplateSummary:
    """One template that is held, under one profile. `files` hold it, `path` is the first of them; `server_starts` is
    None where that was not examined."""

    sha256: str
    size: int
    profile: str
    outcome: Outcome
    reason: str | None
    handler: str | None
    server_starts: bool | None
    files: int
    path: str
    capabilities: Capabilities | None
    observed: Verdicts
    errors: int
    warnings: int
    notes: int


@dataclass(frozen=True, slots=True)
class Analysis:
    """One analysis as it was made. `observed` maps every capability to its verdict, None where there is none."""

    result: TemplateResult
    observed: Verdicts
    capscan_version: str
    analysis_version: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Appearance:
    """A template in a file, in the newest scan, or the newest up to some scan, in which the file holds it."""

    path: str
    variant: str
    origin: str | None
    scan_id: int


@dataclass(frozen=True, slots=True)
class StoredVerification:
    """What the real llama.cpp said of a template, when, and which Capscan asked."""

    verification: Verification
    capscan_version: str
    verified_at: datetime


@dataclass(frozen=True, slots=True)
class TemplateDetail:
    """Everything known of one template: its newest analysis under every profile, the files that hold or held it, and
    what the real llama.cpp said of it. A Go template (`kind`) has neither analysis nor verification."""

    sha256: str
    source: bytes
    analyses: tuple[Analysis, ...]
    appearances: tuple[Appearance, ...]
    verifications: tuple[StoredVerification, ...] = ()
    kind: str = JINJA


@dataclass(frozen=True, slots=True)
class FileDetail:
    """One model file as it was when last opened, its variants with their verdicts (empty before the first finished
    scan), and what was found of the file as a whole in the newest scan that saw it. `starts` says of its templates, by
    SHA-256, whether llama-server starts with them; those not examined are left out."""

    result: FileResult
    first_seen_scan: int | None
    last_seen_scan: int | None
    variants: tuple[LatestFile, ...]
    findings: tuple[Finding, ...]
    starts: Mapping[str, StartCheck] = field(default_factory=dict)

    @property
    def names(self) -> tuple[ModelName, ...]:
        """What stores called it in the newest scan that saw it."""
        return self.result.file.names


@dataclass(frozen=True, slots=True)
class HeldFinding:
    """A finding in a file that has it; `sha256` is that of the template, None for one about the file itself."""

    rule: str
    severity: Severity
    path: str
    sha256: str | None


@dataclass(frozen=True, slots=True)
class FileFinding:
    """A finding of a model file as a whole."""

    path: str
    severity: Severity
    rule: str
    text: str
    evidence: str


@dataclass(frozen=True, slots=True)
class HeldVariant:
    """One variant of a model file, and what its analysis came to; `bos` is its behaviour of that name, if known."""

    variant: str
    outcome: Outcome
    capabilities: Capabilities | None
    bos: Behaviour | None = None


@dataclass(frozen=True, slots=True)
class HeldFile:
    """A model file as a scan saw it; `outcome` and `notes` are those of its extraction, `bos` the token as the file has
    it."""

    path: str
    outcome: Outcome
    variants: tuple[HeldVariant, ...]
    bos: SpecialToken = field(default_factory=SpecialToken)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outlier:
    """A template with an error or a warning, or with a rare set of flags, which alone counts as a note.

    `rule`, `line` and `text` are those of its first, worst finding, or `text` says how rare its flags are. `alike`
    templates have its set of flags (None: it has none), of `templates` in the collection.
    """

    profile: str
    sha256: str
    path: str
    files: int
    severity: Severity
    errors: int
    warnings: int
    rule: str | None
    line: int | None
    text: str
    alike: int | None
    templates: int | None


@dataclass(frozen=True, slots=True)
class Failure:
    """A file, or one variant of it, that a scan could not examine; `offset` is the byte where reading failed."""

    path: str
    variant: str
    outcome: Outcome
    reason: str | None
    offset: int | None


@dataclass(frozen=True, slots=True)
class Change:
    """A template that `appeared`, is `gone` or was `replaced` at a path and variant, from an older scan to a newer one.

    An outcome is what became of the template in that scan; where there is no template, of the file: unreadable, say.
    It is None where the scan did not see the file, or saw only other variants of it.
    """

    change: str
    path: str
    variant: str
    old_sha256: str | None
    new_sha256: str | None
    old_outcome: Outcome | None
    new_outcome: Outcome | None
    old_scan_id: int
    new_scan_id: int


@dataclass(frozen=True, slots=True)
class Combination:
    """One set of flags that occurs; None where a profile knows no such flag. `path` is the first file."""

    profile: str
    flags: Mapping[str, bool | None]
    templates: int
    files: int
    path: str
