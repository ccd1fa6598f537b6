"""The only writer: one object that records one scan.

What it is given gathers in memory and is written in short transactions, so that a scan that is interrupted keeps what
it did, that memory stays bounded, and that other programs can read and write in between.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, Self

from sqlalchemy import Connection, Engine, bindparam, case, delete, func, insert, literal, null, select, update

from scanner.results import (
    CAPABILITIES,
    GO,
    GO_TEMPLATE,
    JINJA,
    Behaviour,
    ChatTemplate,
    Effort,
    FileResult,
    Finding,
    ModelFile,
    ModelMetadata,
    ModelName,
    Observation,
    Outcome,
    PassedOver,
    ProbeRun,
    StandardRender,
    TemplateResult,
    Verification,
)
from scanner.store.models import (
    AnalysisRow,
    AppearanceRow,
    BehaviourRow,
    EffortRow,
    FindingRow,
    ModelFileRow,
    ModelNameRow,
    ObservationRow,
    ProbeRunRow,
    ReadRow,
    RenderRow,
    ScanRow,
    TemplateRow,
    VerificationRow,
)
from scanner.store.session import connection_scope, for_writing, translated

BATCH_ITEMS = 200
"""Files and analyses that may wait before they are written."""

BATCH_BYTES = 8 * 1024 * 1024
"""Bytes of templates and outputs that may wait before they are written."""

BATCH_TIME = timedelta(seconds=1)
"""How long something may wait before the next call writes it."""

CHUNK = 50
"""Templates read at once."""

NOT_ANALYSED_YET = "not analysed yet"
"""The reason of an appearance whose template has no analysis: it is skipped until there is one."""

_INT64 = range(-(2**63), 2**63)


@dataclass(slots=True)
class _Pending:
    """What waits to be written."""

    files: dict[str, FileResult] = field(default_factory=dict)
    unchanged: dict[int, tuple[ModelName, ...]] = field(default_factory=dict)
    """The numbers of the files, and what they are called now."""
    templates: dict[str, bytes] = field(default_factory=dict)
    analyses: dict[tuple[str, str], TemplateResult] = field(default_factory=dict)
    findings: dict[str, tuple[Finding, ...]] = field(default_factory=dict)
    bytes_held: int = 0

    def items(self) -> int:
        held: tuple[Sized, ...] = (self.files, self.unchanged, self.templates, self.analyses, self.findings)
        return sum(map(len, held))


class ScanWriter:
    """Records one scan: `begin`, then files, templates and analyses in any order, then `finish`.

    `now` gives the time (aware), `version` is Capscan's, `profile` the engine profile the scan shows; an analysis may
    be of another profile. `analysis_version` grows when the same Capscan version comes to judge differently. One
    writer belongs to one thread, and is closed at the end of a `with` block. Every method raises DatabaseError when
    the database refuses.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        now: Callable[[], datetime],
        version: str,
        profile: str,
        analysis_version: int = 1,
    ) -> None:
        self._engine = for_writing(engine)
        self._reading_engine = engine
        self._now = now
        self._version = version
        self._profile = profile
        self._analysis_version = analysis_version
        self._pending = _Pending()
        self._written_at = now()
        self._scan: int | None = None
        self._passed_over: list[PassedOver] = []
        self._reader: Connection | None = None

    def begin(self, sources: Sequence[str]) -> int:
        """Opens the scan of `sources` (as the person gave them) and returns its number."""
        self._written_at = self._now()
        with connection_scope(self._engine) as connection:
            row = {
                "started_at": self._written_at,
                "status": "running",
                "sources": list(sources),
                "capscan_version": self._version,
                "profile": self._profile,
                "files_seen": 0,
                "files_unchanged": 0,
                "passed_over": [],
            }
            self._scan = connection.execute(insert(ScanRow).values(row).returning(ScanRow.id)).scalar_one()
        return self._scan

    def file_unchanged(self, file: ModelFile) -> bool:
        """Whether the file is as an earlier scan recorded it: then that record also stands for this scan, and the file
        need not be opened. What it is called is that of this scan all the same.

        A failure is taken over only when it lay in the bytes (not a model file, or wrong at a known offset) and this
        version of Capscan saw it: a refused permission may be granted by now, and a newer reader may read more.
        """
        known = self._known(file.path)
        if known is None or (known.fingerprint, known.kind) != (file.fingerprint, file.kind):
            return False
        if not self._stands(known):
            return False
        if known.last_seen_scan_id != self._scan_id():
            self._pending.unchanged[known.id] = file.names
            self._flush_if_due()
        return True

    def add_file(self, result: FileResult) -> None:
        """Records a file that was opened, with its templates. A second result of the same path replaces the first."""
        self._pending.files[result.file.path] = result
        self._pending.bytes_held += sum(len(template.source) for template in result.templates)
        self._flush_if_due()

    def add_passed_over(self, passed: PassedOver) -> None:
        """Records a path that discovery did not take; written when the scan ends."""
        self._passed_over.append(passed)

    def add_template(self, source: bytes) -> str:
        """Records a template by itself and returns its SHA-256; `add_file` does this for those of a file."""
        sha256 = hashlib.sha256(source).hexdigest()
        self._pending.templates[sha256] = source
        self._pending.bytes_held += len(source)
        self._flush_if_due()
        return sha256

    def needs_analysis(self, sha256: str, profile: str | None = None) -> bool:
        """Whether there is no analysis of this template under the profile (None: the scan's) by this version yet."""
        wanted = profile or self._profile
        if (sha256, wanted) in self._pending.analyses:
            return False
        statement = (
            select(AnalysisRow.id)
            .join(TemplateRow, TemplateRow.id == AnalysisRow.template_id)
            .where(TemplateRow.sha256 == sha256, *self._same_analysis(wanted, self._version), _is_settled())
        )
        with translated(self._engine):
            return self._reading().execute(statement).first() is None

    def templates_without_analysis(
        self, profile: str | None = None, version: str | None = None
    ) -> Iterator[tuple[str, bytes]]:
        """The SHA-256 and bytes of every stored Jinja template that has no analysis under the profile and by the
        version of Capscan (None: the scan's own), oldest first; also those that an interrupted scan left, and those
        that were lost to a time-out or a dead worker. Analyses may be added while this runs."""
        self.flush()
        analysed = select(AnalysisRow.template_id).where(
            *self._same_analysis(profile or self._profile, version or self._version), _is_settled()
        )
        last = 0
        while True:
            statement = (
                select(TemplateRow.id, TemplateRow.sha256, TemplateRow.source)
                .where(TemplateRow.id > last, TemplateRow.kind == JINJA, TemplateRow.id.not_in(analysed))
                .order_by(TemplateRow.id)
                .limit(CHUNK)
            )
            with connection_scope(self._reading_engine) as connection:
                rows = connection.execute(statement).all()
            if not rows:
                return
            for row in rows:
                yield row.sha256, row.source
            last = rows[-1].id

    def add_analysis(self, result: TemplateResult) -> None:
        """Records the analysis of a template that was added before; replaces one of the same profile and version.
        Raises ValueError, when it is written, for a template that was never added."""
        self._pending.analyses[result.sha256, result.profile] = result
        self._pending.bytes_held += _characters_held(result)
        self._flush_if_due()

    def add_file_findings(self, path: str, findings: Iterable[Finding]) -> None:
        """Records what was found of a file as a whole in this scan; replaces what was recorded before. Raises
        ValueError, when it is written, for a file that was never added."""
        self._pending.findings[path] = tuple(findings)
        self._flush_if_due()

    def flush(self) -> None:
        """Writes what waits, in one transaction. If that fails nothing of it is kept, in the database or here; after
        KeyboardInterrupt it still waits, so that `finish` can write it."""
        self._stop_reading()
        self._written_at = self._now()
        if self._pending.items() == 0:
            return
        try:
            self._write(self._pending)
        except Exception:
            # What failed would fail again, and keep the scan from being finished.
            self._pending = _Pending()
            raise
        self._pending = _Pending()

    def _write(self, pending: _Pending) -> None:
        scan = self._scan_id()
        with connection_scope(self._engine) as connection:
            template_ids = _write_templates(connection, pending)
            _write_files(connection, scan, self._version, list(pending.files.values()), template_ids)
            _carry_forward(connection, scan, pending.unchanged)
            for result in pending.analyses.values():
                self._write_analysis(connection, result)
            _write_file_findings(connection, scan, pending.findings)

    def finish(self, status: Literal["finished", "interrupted"]) -> None:
        """Writes what waits and closes the scan: every template's appearance gets the outcome of its analysis."""
        self.flush()
        passed_over = [{"path": passed.path, "reason": passed.reason} for passed in self._passed_over]
        with connection_scope(self._engine) as connection:
            _close_scan(
                connection,
                self._scan_id(),
                self._profile,
                status=status,
                finished_at=self._now(),
                passed_over=passed_over,
            )
        self._scan = None
        self._passed_over = []

    def close(self) -> None:
        """Lets the database go. What waits is forgotten and an unfinished scan stays `running`, so `finish` first."""
        self._stop_reading()
        self._pending = _Pending()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _scan_id(self) -> int:
        if self._scan is None:
            raise ValueError("no scan was begun")
        return self._scan

    def _known(self, path: str) -> Any:
        with translated(self._engine):
            return self._reading().execute(_KNOWN_FILE, {"wanted": path}).first()

    def _stands(self, known: Any) -> bool:
        if known.outcome in (Outcome.ANALYSED, Outcome.NO_TEMPLATE):
            return known.last_seen_scan_id is not None
        in_the_bytes = known.outcome == Outcome.NOT_A_MODEL or (
            known.outcome == Outcome.UNREADABLE and known.byte_offset is not None
        )
        return in_the_bytes and known.capscan_version == self._version and known.last_seen_scan_id is not None

    def _same_analysis(self, profile: str, version: str) -> tuple[Any, ...]:
        return (
            AnalysisRow.profile == profile,
            AnalysisRow.analysis_version == self._analysis_version,
            AnalysisRow.capscan_version == version,
        )

    def _reading(self) -> Connection:
        """One connection for the look-ups between two writes: taking one for each would cost more than the look-up."""
        if self._reader is None:
            self._reader = self._reading_engine.connect()
        return self._reader

    def _stop_reading(self) -> None:
        # A reader left open would keep SQLite's log from being folded into the file.
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _flush_if_due(self) -> None:
        if (
            self._pending.items() >= BATCH_ITEMS
            or self._pending.bytes_held >= BATCH_BYTES
            or self._now() - self._written_at >= BATCH_TIME
        ):
            self.flush()

    def _write_analysis(self, connection: Connection, result: TemplateResult) -> None:
        template = connection.execute(select(TemplateRow.id).where(TemplateRow.sha256 == result.sha256)).scalar()
        if template is None:
            raise ValueError(f"an analysis of a template that was never added: {result.sha256}")
        connection.execute(
            delete(AnalysisRow).where(
                AnalysisRow.template_id == template, *self._same_analysis(result.profile, self._version)
            )
        )
        row = _analysis_row(result) | {
            "template_id": template,
            "capscan_version": self._version,
            "analysis_version": self._analysis_version,
            "created_at": self._now(),
        }
        analysis = connection.execute(insert(AnalysisRow).values(row).returning(AnalysisRow.id)).scalar_one()
        _write_probes(connection, analysis, result.probes)
        for table, rows in (
            (ObservationRow, [_observation_row(one) for one in result.observations]),
            (EffortRow, [_effort_row(one) for one in result.efforts]),
            (BehaviourRow, [_behaviour_row(one) for one in result.behaviours]),
            (RenderRow, [_render_row(one) for one in result.renders]),
        ):
            numbered = [row | {"analysis_id": analysis, "position": place} for place, row in enumerate(rows)]
            _insert_all(connection, table, numbered)
        _insert_all(connection, FindingRow, _finding_rows(result.findings, analysis_id=analysis))


def _characters_held(result: TemplateResult) -> int:
    """About how much an analysis takes while it waits; an output is there twice, as a whole and in parts."""
    runs = [*result.probes, *[one.run for one in result.observations if one.run is not None]]
    outputs = sum(2 * len(run.output) for run in runs)
    return (
        outputs + sum(len(one.evidence) for one in result.behaviours) + sum(len(one.output) for one in result.renders)
    )


def _is_settled() -> Any:
    """Whether an analysis says something of its template. One that was lost to a time-out or a dead worker (a limit,
    with neither a parse error nor a probe run) says more of the machine, so it is tried again."""
    ran = select(ProbeRunRow.analysis_id).where(ProbeRunRow.analysis_id == AnalysisRow.id).exists()
    return (AnalysisRow.outcome != Outcome.LIMIT_EXCEEDED) | AnalysisRow.parse_error_kind.is_not(None) | ran


_KNOWN_FILE = select(
    ModelFileRow.id,
    ModelFileRow.fingerprint,
    ModelFileRow.kind,
    ModelFileRow.outcome,
    ModelFileRow.byte_offset,
    ModelFileRow.capscan_version,
    ModelFileRow.last_seen_scan_id,
).where(ModelFileRow.path == bindparam("wanted"))


def close_killed_scans(engine: Engine, *, now: datetime) -> tuple[int, ...]:
    """Marks the scans that are still `running` as interrupted, and gives their numbers: for one who holds the lock of
    the database, when no process can be at work on them. When they ended nobody knows; they are closed at `now`."""
    running = select(ScanRow.id, ScanRow.profile).where(ScanRow.status == "running").order_by(ScanRow.id)
    with connection_scope(for_writing(engine)) as connection:
        killed = connection.execute(running).all()
        for scan in killed:
            _close_scan(connection, scan.id, scan.profile, status="interrupted", finished_at=now)
    return tuple([scan.id for scan in killed])


def _close_scan(connection: Connection, scan: int, profile: str, **values: object) -> None:
    """Every template's appearance gets the outcome of its analysis, the scan its end."""
    _settle_outcomes(connection, scan, profile)
    seen = select(func.count(AppearanceRow.model_file_id.distinct())).where(AppearanceRow.scan_id == scan)
    connection.execute(update(ScanRow).where(ScanRow.id == scan).values(files_seen=seen.scalar_subquery(), **values))


def _insert_all(connection: Connection, table: Any, rows: Sequence[dict[str, Any]]) -> None:
    if rows:
        connection.execute(insert(table), rows)


def _write_templates(connection: Connection, pending: _Pending) -> dict[str, int]:
    """Stores the templates that are new; returns the numbers of all of them."""
    held = [template for result in pending.files.values() for template in result.templates]
    sources = pending.templates | {template.sha256: template.source for template in held}
    jinja = pending.templates.keys() | {template.sha256 for template in held if template.kind == JINJA}
    known = _template_ids(connection, sources)
    new: list[dict[str, Any]] = [
        {"sha256": sha256, "source": source, "size": len(source), "kind": JINJA if sha256 in jinja else GO}
        for sha256, source in sources.items()
        if sha256 not in known
    ]
    _insert_all(connection, TemplateRow, new)
    # A text that was known as a Go template only, and is there as Jinja now.
    also = [known[sha256] for sha256 in jinja if sha256 in known]
    connection.execute(
        update(TemplateRow).where(TemplateRow.id.in_(also), TemplateRow.kind != JINJA).values(kind=JINJA)
    )
    return known | _template_ids(connection, [row["sha256"] for row in new])


def _template_ids(connection: Connection, sha256s: Iterable[str]) -> dict[str, int]:
    return _ids(connection, TemplateRow.id, TemplateRow.sha256, list(sha256s))


def _file_ids(connection: Connection, paths: Iterable[str]) -> dict[str, int]:
    return _ids(connection, ModelFileRow.id, ModelFileRow.path, list(paths))


def _ids(connection: Connection, number: Any, key: Any, wanted: list[str]) -> dict[str, int]:
    if not wanted:
        return {}
    rows = connection.execute(select(key, number).where(key.in_(wanted)))
    return {row[0]: row[1] for row in rows}


def _write_files(
    connection: Connection, scan: int, version: str, results: Sequence[FileResult], template_ids: dict[str, int]
) -> None:
    known = _file_ids(connection, [result.file.path for result in results])
    rows = {result.file.path: _file_row(result, scan, version) for result in results}
    for path, row in rows.items():
        if path in known:
            connection.execute(update(ModelFileRow).where(ModelFileRow.id == known[path]).values(row))
    new = [row | {"first_seen_scan_id": scan} for path, row in rows.items() if path not in known]
    _insert_all(connection, ModelFileRow, new)
    ids = known | _file_ids(connection, [row["path"] for row in new])
    _forget(connection, scan, ids.values())
    appearances = [
        row | {"scan_id": scan, "model_file_id": ids[result.file.path], "fingerprint": result.file.fingerprint}
        for result in results
        for row in _appearance_rows(result, template_ids)
    ]
    _insert_all(connection, AppearanceRow, appearances)
    _write_names(connection, scan, {ids[result.file.path]: result.file.names for result in results})


def _write_names(connection: Connection, scan: int, names: Mapping[int, Sequence[ModelName]]) -> None:
    """Records what files, by their numbers, are called in a scan."""
    rows = [
        {"scan_id": scan, "model_file_id": file, "position": place, **asdict(name)}
        for file, called in names.items()
        for place, name in enumerate(called)
    ]
    _insert_all(connection, ModelNameRow, rows)


def _forget(connection: Connection, scan: int, files: Collection[int]) -> None:
    """A file may be met twice in a scan, through two sources: the later result counts."""
    for table in (AppearanceRow, FindingRow, ModelNameRow):
        connection.execute(delete(table).where(table.scan_id == scan, table.model_file_id.in_(files)))


def _carry_forward(connection: Connection, scan: int, unchanged: Mapping[int, Sequence[ModelName]]) -> None:
    """Repeats, for this scan, what the scan before recorded of unchanged files, under the names they have now."""
    if not unchanged:
        return
    files = list(unchanged)
    examined = AppearanceRow.template_id.is_(None) | _is_go()
    appearances = select(
        literal(scan),
        AppearanceRow.model_file_id,
        AppearanceRow.position,
        AppearanceRow.variant,
        AppearanceRow.template_id,
        AppearanceRow.origin,
        case((examined, AppearanceRow.outcome), else_=Outcome.SKIPPED.value),
        case((examined, AppearanceRow.reason), else_=NOT_ANALYSED_YET),
        AppearanceRow.byte_offset,
        AppearanceRow.expected,
        ModelFileRow.fingerprint,
    ).where(*_recorded_before(AppearanceRow, scan, files))
    findings = select(
        null(),
        FindingRow.model_file_id,
        literal(scan),
        FindingRow.position,
        FindingRow.rule,
        FindingRow.severity,
        FindingRow.text,
        FindingRow.evidence,
        FindingRow.line,
    ).where(*_recorded_before(FindingRow, scan, files))
    connection.execute(insert(AppearanceRow).from_select(_CARRIED_APPEARANCE, appearances))
    connection.execute(insert(FindingRow).from_select(_CARRIED_FINDING, findings))
    connection.execute(delete(ModelNameRow).where(ModelNameRow.scan_id == scan, ModelNameRow.model_file_id.in_(files)))
    _write_names(connection, scan, unchanged)
    connection.execute(update(ModelFileRow).where(ModelFileRow.id.in_(files)).values(last_seen_scan_id=scan))
    connection.execute(
        update(ScanRow).where(ScanRow.id == scan).values(files_unchanged=ScanRow.files_unchanged + len(files))
    )


_CARRIED_APPEARANCE = (
    "scan_id",
    "model_file_id",
    "position",
    "variant",
    "template_id",
    "origin",
    "outcome",
    "reason",
    "byte_offset",
    "expected",
    "fingerprint",
)
_CARRIED_FINDING = (
    "analysis_id",
    "model_file_id",
    "scan_id",
    "position",
    "rule",
    "severity",
    "text",
    "evidence",
    "line",
)


def _recorded_before(table: Any, scan: int, files: Collection[int]) -> tuple[Any, ...]:
    return (
        table.model_file_id.in_(files),
        ModelFileRow.id == table.model_file_id,
        ModelFileRow.last_seen_scan_id == table.scan_id,
        # What an interrupted write did write must not be doubled when it is done again.
        table.scan_id != scan,
    )


def _is_go() -> Any:
    """Whether an appearance is that of a Go template."""
    return func.coalesce(AppearanceRow.reason, "") == GO_TEMPLATE


def _settle_outcomes(connection: Connection, scan: int, profile: str) -> None:
    newest = (
        select(func.max(AnalysisRow.id))
        .where(AnalysisRow.template_id == AppearanceRow.template_id, AnalysisRow.profile == profile)
        .correlate(AppearanceRow)
        .scalar_subquery()
    )
    outcome = select(AnalysisRow.outcome).where(AnalysisRow.id == newest).scalar_subquery()
    reason = select(AnalysisRow.reason).where(AnalysisRow.id == newest).scalar_subquery()
    connection.execute(
        update(AppearanceRow)
        .where(AppearanceRow.scan_id == scan, AppearanceRow.template_id.is_not(None), newest.is_not(None))
        .where(~_is_go())
        .values(outcome=outcome, reason=reason)
    )


def _file_row(result: FileResult, scan: int, version: str) -> dict[str, Any]:
    file = result.file
    metadata, misfits = _metadata_row(result.metadata)
    row = {
        "path": file.path,
        "source": file.source,
        "kind": file.kind.value,
        "size": _within_64_bits(file.size),
        "mtime_ns": _within_64_bits(file.mtime_ns),
        "fingerprint": file.fingerprint,
        "last_seen_scan_id": scan,
        "capscan_version": version,
        "outcome": result.outcome.value,
        "reason": result.reason,
        "byte_offset": None if result.offset is None else _within_64_bits(result.offset),
        "expected": result.expected,
        "notes": [*result.notes, *misfits, *_repeated_variants(result.templates)],
    }
    return row | metadata


def _metadata_row(metadata: ModelMetadata) -> tuple[dict[str, Any], list[str]]:
    """The metadata columns, and a note for each number that no database could hold: a file may claim anything."""
    row = {
        "architecture": metadata.architecture,
        "name": metadata.name,
        "basename": metadata.basename,
        "size_label": metadata.size_label,
        "file_type": metadata.file_type,
        "quantized_by": metadata.quantized_by,
        "license": metadata.license,
        "repo_url": metadata.repo_url,
        "tokenizer_pre": metadata.tokenizer_pre,
        "block_count": metadata.block_count,
        "split_no": metadata.split_no,
        "split_count": metadata.split_count,
        "bos_id": metadata.bos.id,
        "bos_text": metadata.bos.text,
        "adds_bos": metadata.bos.added,
        "role": metadata.role,
        "eos_id": metadata.eos.id,
        "eos_text": metadata.eos.text,
        "adds_eos": metadata.eos.added,
    }
    misfits = sorted(name for name, value in row.items() if isinstance(value, int) and value not in _INT64)
    notes = [f"{name} is {row[name]}, more than 64 bits hold, and was left out" for name in misfits]
    return row | dict.fromkeys(misfits), notes


def _within_64_bits(value: int) -> int:
    return max(_INT64.start, min(value, _INT64.stop - 1))


def _appearance_rows(result: FileResult, template_ids: dict[str, int]) -> list[dict[str, Any]]:
    templates = _first_of_each_variant(result.templates)
    rows = [] if result.jinja else [_file_appearance(result)]
    for template in templates:
        reason = GO_TEMPLATE if template.kind == GO else NOT_ANALYSED_YET
        rows.append(
            {
                "position": len(rows),
                "variant": template.variant,
                "template_id": template_ids[template.sha256],
                "origin": template.origin,
                "outcome": Outcome.SKIPPED.value,
                "reason": reason,
                "byte_offset": None,
                "expected": None,
            }
        )
    return rows


def _file_appearance(result: FileResult) -> dict[str, Any]:
    """That of a file without a template that llama.cpp might read."""
    return {
        "position": 0,
        "variant": "",
        "template_id": None,
        "origin": None,
        "outcome": result.outcome.value,
        "reason": result.reason,
        "byte_offset": None if result.offset is None else _within_64_bits(result.offset),
        "expected": result.expected,
    }


def _first_of_each_variant(templates: Sequence[ChatTemplate]) -> list[ChatTemplate]:
    first: dict[str, ChatTemplate] = {}
    for template in templates:
        first.setdefault(template.variant, template)
    return list(first.values())


def _repeated_variants(templates: Sequence[ChatTemplate]) -> list[str]:
    kept = {id(template) for template in _first_of_each_variant(templates)}
    return [
        f"variant {template.variant} is there again at {template.origin}; the first was kept"
        for template in templates
        if id(template) not in kept
    ]


def _analysis_row(result: TemplateResult) -> dict[str, Any]:
    error = result.parse_error
    claims = {f"supports_{name}": getattr(result.capabilities, name, None) for name in CAPABILITIES}
    verdicts = {one.capability: one.verdict for one in result.observations}
    observed = {f"observed_{name}": verdicts.get(name) for name in CAPABILITIES}
    return (
        claims
        | observed
        | _start_row(result)
        | {
            "profile": result.profile,
            "duration": result.duration,
            "outcome": result.outcome.value,
            "reason": result.reason,
            "handler": result.handler,
            "patches": list(result.patches),
            "free_text_effort": result.free_text_effort,
            "lines": result.lines or None,
            "parse_error_kind": error.kind if error else None,
            "parse_error_message": error.message if error else None,
            "parse_error_line": error.line if error else None,
            "parse_error_column": error.column if error else None,
            "parse_error_offset": error.offset if error else None,
        }
    )


def _start_row(result: TemplateResult) -> dict[str, Any]:
    """That a template which does not parse keeps a server from starting is said once more, why is not."""
    start = result.start
    known = start or result.server_start
    error = start.error if start else None
    return {
        "server_starts": known.ok if known else None,
        "thinks_by_default": start.enable_thinking if start else None,
        "start_conversation": start.conversation if start else None,
        "start_log": start.log if start else None,
        "start_error_kind": error.kind if error else None,
        "start_error_message": error.message if error else None,
        "start_error_node": error.node if error else None,
        "start_error_offset": error.offset if error else None,
        "start_error_line": error.line if error else None,
        "start_error_column": error.column if error else None,
    }


def _write_probes(connection: Connection, analysis: int, probes: Sequence[ProbeRun]) -> None:
    if not probes:
        return
    rows = [_probe_row(probe) | {"analysis_id": analysis, "position": place} for place, probe in enumerate(probes)]
    numbered = insert(ProbeRunRow).returning(ProbeRunRow.id, sort_by_parameter_order=True)
    ids = connection.execute(numbered, rows).scalars().all()
    reads = [
        {
            "probe_run_id": id_,
            "position": place,
            "path": read.path,
            "used": read.used,
            "ops": list(read.ops),
            "line": read.line,
            "column": read.column,
        }
        for id_, probe in zip(ids, probes, strict=True)
        for place, read in enumerate(probe.reads)
    ]
    _insert_all(connection, ReadRow, reads)


def _probe_row(probe: ProbeRun) -> dict[str, Any]:
    return _run_row(probe) | {"name": probe.name, "lines": probe.lines}


def _run_row(probe: ProbeRun) -> dict[str, Any]:
    """A run without its name, reads and lines."""
    error = probe.error
    return {
        "ok": probe.ok,
        "output": probe.output,
        "parts": [{"text": part.text, "is_input": part.is_input} for part in probe.parts],
        "variables": dict(probe.variables),
        "duration": probe.duration,
        "error_kind": error.kind if error else None,
        "error_message": error.message if error else None,
        "error_node": error.node if error else None,
        "error_offset": error.offset if error else None,
        "error_line": error.line if error else None,
        "error_column": error.column if error else None,
    }


_RUN_COLUMNS = tuple(_run_row(ProbeRun("", False, "")))


def _observation_row(observation: Observation) -> dict[str, Any]:
    run = dict.fromkeys(_RUN_COLUMNS) if observation.run is None else _run_row(observation.run)
    return run | {
        "capability": observation.capability,
        "verdict": observation.verdict,
        "reason": observation.reason,
        "agreement": observation.agreement.value if observation.agreement else None,
    }


def _effort_row(effort: Effort) -> dict[str, Any]:
    return {
        "word": effort.word,
        "outcome": effort.outcome.value,
        "message": effort.message,
        "line": effort.line,
        "group_number": effort.group,
        "prints_word": effort.prints_word,
        "equals_unset": effort.equals_unset,
    }


def _behaviour_row(behaviour: Behaviour) -> dict[str, Any]:
    return {
        "key": behaviour.key,
        "outcome": behaviour.outcome,
        "detail": behaviour.detail,
        "evidence": behaviour.evidence,
        "line": behaviour.line,
    }


def _render_row(render: StandardRender) -> dict[str, Any]:
    return {
        "engine": render.engine,
        "scenario": render.scenario,
        "output": render.output,
        "error": render.error,
        "inputs": None if render.inputs is None else [list(piece) for piece in render.inputs],
    }


def _finding_rows(findings: Iterable[Finding], **owner: int) -> list[dict[str, Any]]:
    return [
        owner
        | {
            "position": place,
            "rule": finding.rule,
            "severity": finding.severity.value,
            "text": finding.text,
            "evidence": finding.evidence,
            "line": finding.line,
        }
        for place, finding in enumerate(findings)
    ]


def _write_file_findings(connection: Connection, scan: int, findings: dict[str, tuple[Finding, ...]]) -> None:
    ids = _file_ids(connection, findings)
    missing = sorted(findings.keys() - ids.keys())
    if missing:
        raise ValueError(f"findings of a file that was never added: {missing[0]}")
    connection.execute(
        delete(FindingRow).where(FindingRow.scan_id == scan, FindingRow.model_file_id.in_(list(ids.values())))
    )
    rows = [
        row for path, found in findings.items() for row in _finding_rows(found, model_file_id=ids[path], scan_id=scan)
    ]
    _insert_all(connection, FindingRow, rows)


def store_verifications(engine: Engine, verifications: Iterable[Verification], *, now: datetime, version: str) -> int:
    """Records what the real llama.cpp said of templates that the database holds, in place of what it said before.
    Gives how many were recorded; others are passed by. Raises DatabaseError."""
    stored = 0
    with connection_scope(for_writing(engine)) as connection:
        for found in verifications:
            template = connection.execute(select(TemplateRow.id).where(TemplateRow.sha256 == found.sha256)).scalar()
            if template is None:
                continue
            same = (VerificationRow.template_id == template, VerificationRow.profile == found.profile)
            connection.execute(delete(VerificationRow).where(*same))
            row = {
                "template_id": template,
                "profile": found.profile,
                "capscan_version": version,
                "verdict": found.verdict,
                "reason": found.reason,
                "differences": [asdict(difference) for difference in found.differences],
                "verified_at": now,
            }
            connection.execute(insert(VerificationRow).values(row))
            stored += 1
    return stored
