"""The tables and views, and how values that a database would refuse are stored in them.

The schema itself is made by `migrations`; a test holds the two equal.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any, ClassVar

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Dialect,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from scanner.results import CAPABILITIES, JINJA

ESCAPE = "\u241b"
"""Stands before the four hexadecimal digits of a character that a database would refuse (see `SafeText`)."""

_UNSAFE = re.compile("[\x00\ud800-\udfff" + ESCAPE + "]")
_ESCAPED = re.compile(ESCAPE + "([0-9A-F]{4})")


def _escape(match: re.Match[str]) -> str:
    return f"{ESCAPE}{ord(match.group()):04X}"


def _unescape(match: re.Match[str]) -> str:
    return chr(int(match.group(1), 16))


class SafeText(TypeDecorator[str]):
    """Text of any origin, without loss, on every database.

    PostgreSQL refuses NUL in text, and no driver encodes a lone surrogate (what Python makes of a byte that is not
    UTF-8). Both are stored as U+241B, the symbol for escape, and four hexadecimal digits: NUL is `␛0000`, the byte
    FF in a file name `␛DCFF`, and U+241B itself `␛241B`. All else is stored as it is, so SQL by hand reads and
    compares plain text, and sees the rare exceptions instead of losing them.
    """

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002 - the interface
        """Python's text to the stored text."""
        return None if value is None else _UNSAFE.sub(_escape, value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002 - the interface
        """The stored text to Python's text."""
        return None if value is None else _ESCAPED.sub(_unescape, value)


class JsonText(TypeDecorator[Any]):
    """JSON-compatible data as JSON in a text column; key order is kept.

    Not the databases' own JSON types: PostgreSQL's refuses `\\u0000`. Surrogates go through `SafeText` instead of
    JSON's escapes, because two escapes in a row would come back as one character.
    """

    impl = SafeText
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:  # noqa: ARG002 - the interface
        """Data to JSON; None stays null."""
        return None if value is None else _UNSAFE.sub(_escape, json.dumps(value, ensure_ascii=False))

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:  # noqa: ARG002 - the interface
        """JSON to data."""
        return None if value is None else json.loads(_ESCAPED.sub(_unescape, value))


class LineRanges(TypeDecorator[tuple[int, ...]]):
    """Sorted line numbers as the first and last of each row of neighbours: `[[1,5],[8,8]]`. Null, where they are not
    recorded, comes back as none."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: tuple[int, ...] | None, dialect: Dialect) -> str | None:  # noqa: ARG002 - the interface
        """Line numbers to JSON; None stays null."""
        if value is None:
            return None
        ranges: list[list[int]] = []
        for number in value:
            if ranges and number == ranges[-1][1] + 1:
                ranges[-1][1] = number
            else:
                ranges.append([number, number])
        return json.dumps(ranges, separators=(",", ":"))

    def process_result_value(self, value: str | None, dialect: Dialect) -> tuple[int, ...]:  # noqa: ARG002 - the interface
        """JSON to line numbers."""
        ranges = [] if value is None else json.loads(value)
        return tuple([number for first, last in ranges for number in range(first, last + 1)])


class UtcDateTime(TypeDecorator[datetime]):
    """A moment: an aware datetime, stored in UTC without a zone, because SQLite has none. Raises ValueError for a
    datetime that does not say its zone."""

    impl = DateTime
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002 - the interface
        """An aware datetime to the stored one."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a datetime without a zone")
        return value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002 - the interface
        """The stored datetime to an aware one, in UTC."""
        return None if value is None else value.replace(tzinfo=UTC)


# SQLite numbers rows by itself only for a key of the type INTEGER, which holds 64 bits there.
Int64 = BigInteger().with_variant(Integer(), "sqlite")


class Base(DeclarativeBase):
    """The base of all tables: names of constraints are fixed, so that a migration can name what it changes."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        str: SafeText(),
        int: Int64,
        bool: Boolean(),
        bytes: LargeBinary(),
        datetime: UtcDateTime(),
    }


class ScanRow(Base):
    """One run of `capscan scan`. `finished_at` is null until it ended; one that was killed is `running`
    until the next scan notices."""

    __tablename__ = "scans"
    __table_args__ = (CheckConstraint("status IN ('running', 'finished', 'interrupted')", name="status"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    started_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]
    status: Mapped[str]
    sources: Mapped[list[str]] = mapped_column(JsonText)
    capscan_version: Mapped[str]
    profile: Mapped[str]
    files_seen: Mapped[int]
    files_unchanged: Mapped[int]
    passed_over: Mapped[list[dict[str, str]]] = mapped_column(JsonText)


class ModelFileRow(Base):
    """One model file, as it was when last opened: `outcome` to `notes` and the metadata are of that reading, made by
    `capscan_version`. `last_seen_scan_id` is the newest scan that has appearances of it."""

    __tablename__ = "model_files"

    id: Mapped[int] = mapped_column(primary_key=True)
    path: Mapped[str] = mapped_column(unique=True)
    source: Mapped[str]
    kind: Mapped[str]
    size: Mapped[int]
    mtime_ns: Mapped[int]
    fingerprint: Mapped[str]
    first_seen_scan_id: Mapped[int | None] = mapped_column(ForeignKey("scans.id", ondelete="SET NULL"))
    last_seen_scan_id: Mapped[int | None] = mapped_column(ForeignKey("scans.id", ondelete="SET NULL"))
    capscan_version: Mapped[str]

    outcome: Mapped[str]
    reason: Mapped[str | None]
    byte_offset: Mapped[int | None]
    expected: Mapped[str | None]
    notes: Mapped[list[str]] = mapped_column(JsonText)

    architecture: Mapped[str | None]
    role: Mapped[str | None]
    name: Mapped[str | None]
    basename: Mapped[str | None]
    size_label: Mapped[str | None]
    file_type: Mapped[str | None]
    quantized_by: Mapped[str | None]
    license: Mapped[str | None]
    repo_url: Mapped[str | None]
    tokenizer_pre: Mapped[str | None]
    block_count: Mapped[int | None]
    split_no: Mapped[int | None]
    split_count: Mapped[int | None]
    bos_id: Mapped[int | None]
    bos_text: Mapped[str | None]
    adds_bos: Mapped[bool | None]
    eos_id: Mapped[int | None]
    eos_text: Mapped[str | None]
    adds_eos: Mapped[bool | None]


class TemplateRow(Base):
    """One template, however many files hold it: its exact bytes, and their SHA-256. `kind` is `jinja`, or `go` for one
    that only Ollama reads: it has no analysis. A text that is there as both is a Jinja template."""

    __tablename__ = "templates"

    id: Mapped[int] = mapped_column(primary_key=True)
    sha256: Mapped[str] = mapped_column(unique=True)
    source: Mapped[bytes]
    size: Mapped[int]
    kind: Mapped[str] = mapped_column(server_default=JINJA)


class ModelNameRow(Base):
    """What a store called a model file in one scan, the name to show first at position 0."""

    __tablename__ = "model_names"

    scan_id: Mapped[int] = mapped_column(ForeignKey("scans.id", ondelete="CASCADE"), primary_key=True)
    model_file_id: Mapped[int] = mapped_column(
        ForeignKey("model_files.id", ondelete="CASCADE"), primary_key=True, index=True
    )
    position: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    store: Mapped[str]
    name: Mapped[str] = mapped_column(index=True)
    repository: Mapped[str | None]
    revision: Mapped[str | None]


class AppearanceRow(Base):
    """What one scan saw in one file: a row a variant, in file order; for a file without templates one row with the
    variant '' and no template. `outcome` is the template's where there is one, else the file's. `fingerprint` is the
    file's in this scan, null in what an older Capscan recorded."""

    __tablename__ = "appearances"
    __table_args__ = (Index(None, "model_file_id", "scan_id"), Index(None, "template_id", "scan_id"))

    scan_id: Mapped[int] = mapped_column(ForeignKey("scans.id", ondelete="CASCADE"), primary_key=True)
    model_file_id: Mapped[int] = mapped_column(ForeignKey("model_files.id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    variant: Mapped[str]
    template_id: Mapped[int | None] = mapped_column(ForeignKey("templates.id"))
    origin: Mapped[str | None]
    outcome: Mapped[str]
    reason: Mapped[str | None]
    byte_offset: Mapped[int | None]
    expected: Mapped[str | None]
    fingerprint: Mapped[str | None]


class AnalysisRow(Base):
    """One template under one profile, by one version of Capscan. The nine claims and the nine observed verdicts are
    null where there is no verdict. `duration` is in seconds. `free_text_effort`: what becomes of a made-up effort.
    `lines`: those that hold something to run, null where that is not known.

    `server_starts`: whether llama-server starts with the template as a model's default, null where that was not
    examined. Why not is in `start_…`, or, for a template that does not parse, in `parse_error_…`; where it starts,
    `start_…` says why it does not with `-lv 4`.
    """

    __tablename__ = "analyses"
    __table_args__ = (
        UniqueConstraint("template_id", "profile", "analysis_version", "capscan_version", name="uq_analyses_identity"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    template_id: Mapped[int] = mapped_column(ForeignKey("templates.id", ondelete="CASCADE"))
    profile: Mapped[str]
    capscan_version: Mapped[str]
    analysis_version: Mapped[int]
    created_at: Mapped[datetime]
    duration: Mapped[float]
    outcome: Mapped[str]
    reason: Mapped[str | None]
    handler: Mapped[str | None]
    patches: Mapped[list[str]] = mapped_column(JsonText)

    parse_error_kind: Mapped[str | None]
    parse_error_message: Mapped[str | None]
    parse_error_line: Mapped[int | None]
    parse_error_column: Mapped[int | None]
    parse_error_offset: Mapped[int | None]

    server_starts: Mapped[bool | None]
    thinks_by_default: Mapped[bool | None]
    start_conversation: Mapped[str | None]
    start_error_kind: Mapped[str | None]
    start_error_message: Mapped[str | None]
    start_error_node: Mapped[str | None]
    start_error_offset: Mapped[int | None]
    start_error_line: Mapped[int | None]
    start_error_column: Mapped[int | None]
    start_log: Mapped[str | None]

    free_text_effort: Mapped[str | None]
    lines: Mapped[tuple[int, ...] | None] = mapped_column(LineRanges)

    supports_tools: Mapped[bool | None]
    supports_tool_calls: Mapped[bool | None]
    supports_parallel_tool_calls: Mapped[bool | None]
    supports_system_role: Mapped[bool | None]
    supports_string_content: Mapped[bool | None]
    supports_typed_content: Mapped[bool | None]
    supports_object_arguments: Mapped[bool | None]
    supports_preserve_reasoning: Mapped[bool | None]
    supports_reasoning_effort: Mapped[bool | None]

    observed_tools: Mapped[bool | None]
    observed_tool_calls: Mapped[bool | None]
    observed_parallel_tool_calls: Mapped[bool | None]
    observed_system_role: Mapped[bool | None]
    observed_string_content: Mapped[bool | None]
    observed_typed_content: Mapped[bool | None]
    observed_object_arguments: Mapped[bool | None]
    observed_preserve_reasoning: Mapped[bool | None]
    observed_reasoning_effort: Mapped[bool | None]


class ProbeRunRow(Base):
    """One probe of an analysis: what was sent, what came back, and the error if it failed. `duration` is in seconds,
    `error_offset` in bytes, lines and columns start at 1. `lines`: those of the analysis that ran, null where they are
    not known."""

    __tablename__ = "probe_runs"
    __table_args__ = (UniqueConstraint("analysis_id", "position"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    analysis_id: Mapped[int] = mapped_column(ForeignKey("analyses.id", ondelete="CASCADE"))
    position: Mapped[int]
    name: Mapped[str]
    ok: Mapped[bool]
    output: Mapped[str]
    parts: Mapped[list[dict[str, Any]]] = mapped_column(JsonText)
    variables: Mapped[dict[str, Any]] = mapped_column(JsonText)
    duration: Mapped[float]
    error_kind: Mapped[str | None]
    error_message: Mapped[str | None]
    error_node: Mapped[str | None]
    error_offset: Mapped[int | None]
    error_line: Mapped[int | None]
    error_column: Mapped[int | None]
    lines: Mapped[tuple[int, ...] | None] = mapped_column(LineRanges)


class ReadRow(Base):
    """One value that a probe's request held and the template read."""

    __tablename__ = "reads"

    probe_run_id: Mapped[int] = mapped_column(ForeignKey("probe_runs.id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    path: Mapped[str] = mapped_column(index=True)
    used: Mapped[bool]
    ops: Mapped[list[str]] = mapped_column(JsonText)
    line: Mapped[int | None]
    column: Mapped[int | None]


class FindingRow(Base):
    """What a rule found: of a template's analysis (`analysis_id`), or of a file in a scan (the other two)."""

    __tablename__ = "findings"
    __table_args__ = (
        CheckConstraint("severity IN ('error', 'warning', 'note')", name="severity"),
        Index(None, "model_file_id", "scan_id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    analysis_id: Mapped[int | None] = mapped_column(ForeignKey("analyses.id", ondelete="CASCADE"), index=True)
    model_file_id: Mapped[int | None] = mapped_column(ForeignKey("model_files.id", ondelete="CASCADE"))
    scan_id: Mapped[int | None] = mapped_column(ForeignKey("scans.id", ondelete="CASCADE"), index=True)
    position: Mapped[int]
    rule: Mapped[str] = mapped_column(index=True)
    severity: Mapped[str]
    text: Mapped[str]
    evidence: Mapped[str]
    line: Mapped[int | None]


class VerificationRow(Base):
    """What the real llama.cpp of a profile's build said of our flags for a template; the newest answer only."""

    __tablename__ = "verifications"
    __table_args__ = (
        CheckConstraint("verdict IN ('equal', 'different', 'not comparable')", name="verdict"),
        UniqueConstraint("template_id", "profile"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    template_id: Mapped[int] = mapped_column(ForeignKey("templates.id", ondelete="CASCADE"))
    profile: Mapped[str]
    capscan_version: Mapped[str]
    verdict: Mapped[str]
    reason: Mapped[str | None]
    differences: Mapped[list[dict[str, Any]]] = mapped_column(JsonText)
    verified_at: Mapped[datetime]


class ObservationRow(Base):
    """What the output of a conversation of our own says of a capability: `verdict` null where it could not be told. The
    conversation as it ran is in the columns from `ok` on, all null where nothing was rendered; `duration` is in
    seconds, `error_offset` in bytes, lines and columns start at 1."""

    __tablename__ = "observations"
    __table_args__ = (CheckConstraint("agreement IN ('agrees', 'overclaims', 'underclaims')", name="agreement"),)

    analysis_id: Mapped[int] = mapped_column(ForeignKey("analyses.id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    capability: Mapped[str]
    verdict: Mapped[bool | None]
    reason: Mapped[str]
    agreement: Mapped[str | None]
    ok: Mapped[bool | None]
    variables: Mapped[dict[str, Any] | None] = mapped_column(JsonText)
    output: Mapped[str | None]
    parts: Mapped[list[Any] | None] = mapped_column(JsonText)
    duration: Mapped[float | None]
    error_kind: Mapped[str | None]
    error_message: Mapped[str | None]
    error_node: Mapped[str | None]
    error_offset: Mapped[int | None]
    error_line: Mapped[int | None]
    error_column: Mapped[int | None]


class BehaviourRow(Base):
    """One answer on how a template behaves beyond its flags: an outcome from the closed list of its key."""

    __tablename__ = "behaviours"

    analysis_id: Mapped[int] = mapped_column(ForeignKey("analyses.id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    key: Mapped[str] = mapped_column(index=True)
    outcome: Mapped[str]
    detail: Mapped[str]
    evidence: Mapped[str]
    line: Mapped[int | None]


class EffortRow(Base):
    """One reasoning effort as it was tried; `word` null: unset. Equal outputs share a `group_number`. `line` is that of
    the error that `message` tells."""

    __tablename__ = "efforts"

    analysis_id: Mapped[int] = mapped_column(ForeignKey("analyses.id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    word: Mapped[str | None]
    outcome: Mapped[str]
    message: Mapped[str | None]
    line: Mapped[int | None]
    group_number: Mapped[int | None]
    prints_word: Mapped[bool | None]
    equals_unset: Mapped[bool | None]


class RenderRow(Base):
    """One conversation (`scenario`) rendered by one `engine`: llama.cpp's dialect or the reference. `inputs` are the
    ranges of characters of the output that came from the request, null where that is not known."""

    __tablename__ = "renders"

    analysis_id: Mapped[int] = mapped_column(ForeignKey("analyses.id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    engine: Mapped[str]
    scenario: Mapped[str]
    output: Mapped[str]
    error: Mapped[str | None]
    inputs: Mapped[list[Any] | None] = mapped_column(JsonText)


VIEWS = MetaData()
"""The views, apart from the tables: they are only read, and comparing schemas must not take them for tables."""

latest_files = Table(
    "latest_files",
    VIEWS,
    Column("model_file_id", Int64),
    Column("scan_id", Int64),
    Column("template_id", Int64),
    Column("path", SafeText),
    Column("variant", SafeText),
    Column("sha256", SafeText),
    Column("outcome", SafeText),
    Column("reason", SafeText),
    Column("byte_offset", Int64),
    Column("expected", SafeText),
    Column("kind", SafeText),
    Column("size", Int64),
    Column("architecture", SafeText),
    Column("file_type", SafeText),
    Column("quantized_by", SafeText),
    Column("profile", SafeText),
    *(Column(f"supports_{name}", Boolean) for name in CAPABILITIES),
    *(Column(f"observed_{name}", Boolean) for name in CAPABILITIES),
    Column("name", SafeText),
    Column("repository", SafeText),
    Column("role", SafeText),
)

flag_distribution = Table(
    "flag_distribution",
    VIEWS,
    Column("profile", SafeText),
    Column("capability", SafeText),
    *(
        Column(f"{what}_{word}", Int64)
        for what in ("templates", "files")
        for word in ("claiming", "analysed", "observed", "judged", "overclaiming", "underclaiming")
    ),
)

outliers = Table(
    "outliers",
    VIEWS,
    Column("profile", SafeText),
    Column("sha256", SafeText),
    Column("path", SafeText),
    Column("files", Int64),
    Column("severity", SafeText),
    Column("errors", Int64),
    Column("warnings", Int64),
    Column("rule", SafeText),
    Column("line", Int64),
    Column("text", SafeText),
    Column("alike", Int64),
    Column("templates", Int64),
)

changes = Table(
    "changes",
    VIEWS,
    Column("change", SafeText),
    Column("path", SafeText),
    Column("variant", SafeText),
    Column("old_sha256", SafeText),
    Column("new_sha256", SafeText),
    Column("old_scan_id", Int64),
    Column("new_scan_id", Int64),
)
