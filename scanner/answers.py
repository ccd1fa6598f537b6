"""The answers of the command line, as text: from results and stored data to what a person reads."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import click

from scanner.chat.selection import CHATML, select_of_file
from scanner.console import clip, pad, severity, table, visible, wrapped
from scanner.console import columns as terminal_columns
from scanner.errors import UsageError
from scanner.extract.roles import WHY_NO_TEMPLATE
from scanner.judge import AnyRule
from scanner.judge.verdicts import (
    Claim,
    claims,
    difference_text,
    first_line,
    is_usual,
    really_word,
)
from scanner.probe.efforts import FreeText, effort_summary
from scanner.results import (
    CAPABILITIES,
    NOT_LOADED,
    Agreement,
    Behaviour,
    ChatTemplate,
    EffortOutcome,
    FileResult,
    Outcome,
    ProbeRun,
    Read,
    Role,
    StartCheck,
    TemplateResult,
    Verdict,
    Verification,
)
from scanner.silence import FoundIn

OUTLIERS_SHOWN = 10
"""Outliers that a summary lists before it points to the query."""

SHOWN_REASON = 60
"""Columns of the reason that a line of facts gives for a server that does not start; the finding has all of it."""

SHOWN_WHY = 46
"""Columns of a flag's reason in a table."""

CHATML_START = StartCheck(ok=True, enable_thinking=False)
"""What the start check says of llama.cpp's own ChatML template."""

ROLES: Mapping[str, tuple[str, str]] = {
    Role.PROJECTOR: ("projector", "projectors"),
    Role.ADAPTER: ("adapter", "adapters"),
    Role.DRAFT: ("draft model", "draft models"),
    Role.VOCABULARY: ("vocabulary", "vocabularies"),
    Role.IMATRIX: ("importance matrix", "importance matrices"),
}
"""What a person calls a file that is no model of its own: one, and several."""

NOT_SERVED = frozenset((Role.PROJECTOR, Role.ADAPTER, Role.VOCABULARY, Role.IMATRIX))
"""Roles of files that no server starts with."""

SHOWN_HASH = 12
"""Digits of a SHA-256 that a person sees; enough to name a template."""


def words(capability: str) -> str:
    """A capability's short name as words."""
    return capability.replace("_", " ")


def roles_line(counts: Mapping[str, int]) -> str | None:
    """How many files are no models of their own, by what they are; None: none."""
    parts = []
    for role, count in counts.items():
        one, several = ROLES.get(role, (role, role))
        parts.append(f"{count:,} {one if count == 1 else several}")
    return f"Not models of their own: {' · '.join(parts)}" if parts else None


def role_remark(result: FileResult) -> str | None:
    """What a file is that holds templates and is no model of its own; without templates its reason says so."""
    role = result.metadata.role
    if role is None or role not in ROLES or not result.templates:
        return None
    return WHY_NO_TEMPLATE[Role(role)]


def remarks_on_file(result: FileResult) -> Iterator[str]:
    """What is to be said of a file that holds templates, and is no model of its own, or lacks a shard."""
    remark = role_remark(result)
    if remark is not None:
        yield remark
    yield from (note for note in result.notes if note.startswith(NOT_LOADED))


def is_served(result: FileResult) -> bool:
    """Whether it is known what a server would make of a file."""
    if result.metadata.role in NOT_SERVED or any(note.startswith(NOT_LOADED) for note in result.notes):
        return False
    return bool(result.templates) or result.outcome is Outcome.NO_TEMPLATE


def template_answer(
    template: ChatTemplate, source: str, result: TemplateResult, *, everything: bool = False
) -> Iterator[str]:
    """What `probe` and `show` say of one template, line by line; `everything`: also the behaviours that are usual."""
    yield " · ".join(_facts(template, source, result))
    if result.capabilities is None:
        yield outcome_line(result)
    else:
        yield claims_answer(result)
    yield from efforts_answer(result)
    yield from behaviours_answer(result, everything)
    if result.start is not None and result.start.enable_thinking is not None:
        yield f"thinking is {'on' if result.start.enable_thinking else 'off'} unless a request says otherwise"
    for finding in result.findings:
        place = f"  line {finding.line}" if finding.line is not None else ""
        yield f"{severity(finding.severity)} {finding.rule}{place}"
        yield from wrapped("         ", visible(finding.text))


def _facts(template: ChatTemplate, source: str, result: TemplateResult) -> list[str]:
    name = visible(Path(source).name if source != "-" else "standard input")
    variant = "" if template.variant == "default" else f" ({visible(template.variant)})"
    return [
        click.style(name + variant, bold=True),
        f"{len(template.source):,} bytes",
        f"sha256 {result.sha256[:SHOWN_HASH]}",
        f"profile {result.profile}",
        f"handler {result.handler}",
        *([] if result.outcome is Outcome.NO_TEMPLATE else [start_fact(result.server_start)]),
    ]


SIDES: Mapping[Agreement | None, str] = {Agreement.OVERCLAIMS: "over", Agreement.UNDERCLAIMS: "under"}
"""How a table marks that a claim is too much or too little."""


def claims_answer(result: TemplateResult) -> str:
    """The flags as a table: what is claimed, what is really true, and why; disagreements stand out."""
    told = claims(result.capabilities, result.probes, result.observations)
    shown = table(
        ["capability", "claimed", "really", "", "why"],
        [
            [
                claim.capability,
                flag_word(claim.claimed),
                really_word(claim),
                SIDES.get(claim.agreement, ""),
                _short_why(claim),
            ]
            for claim in told
        ],
    )
    head, *lines = shown.split("\n")
    rows = [
        click.style(line, fg="yellow") if claim.agreement in SIDES else line
        for line, claim in zip(lines, told, strict=True)
    ]
    return "\n".join([head, *rows])


def flag_word(flag: bool | None) -> str:
    """A flag as a word; `?` where it is not known."""
    return "?" if flag is None else "yes" if flag else "no"


def efforts_answer(result: TemplateResult) -> Iterator[str]:
    """What the reasoning efforts do, in words; nothing where none of them makes a difference or fails."""
    matters = any(effort.outcome is EffortOutcome.RAISES or not effort.equals_unset for effort in result.efforts)
    if matters or getattr(result.capabilities, "reasoning_effort", False):
        yield from wrapped("efforts: ", efforts_words(result))


def efforts_words(result: TemplateResult) -> str:
    """The efforts in one line, without what no terminal should get."""
    said = visible(effort_summary(result.efforts))
    return f"{said}; any other word is printed" if result.free_text_effort == FreeText.PRINTED else said


def behaviours_answer(result: TemplateResult, everything: bool) -> Iterator[str]:
    """How a template behaves beyond its flags: what is not usual, or `everything`."""
    shown = [one for one in result.behaviours if everything or not is_usual(one)]
    if not shown:
        return
    yield table(["behaviour", "outcome", "detail"], [[one.key, one.outcome, _detail(one)] for one in shown])
    hidden = len(result.behaviours) - len(shown)
    if hidden:
        yield f"  {hidden} more as usual (--behaviours)"


def _detail(behaviour: Behaviour) -> str:
    """The detail in one line, with the line of the template that it comes from in front, which must not be cut off."""
    said = " ".join(behaviour.detail.removeprefix("Jinja Exception: ").split())
    known = behaviour.line is None or f"line {behaviour.line}" in said
    return said if known else f"line {behaviour.line}: {said}"


def why(claim: Claim) -> str:
    """A flag's reason, with its place in the template."""
    return claim.why if claim.place is None else f"{claim.why} at {claim.place.line}:{claim.place.column}"


def _short_why(claim: Claim) -> str:
    """The reason in a narrow column: of a long path the end says most, and behind it stands the place."""
    said = why(claim)
    is_path = "[" in claim.why.partition(" ")[0]
    return said if len(said) <= SHOWN_WHY or not is_path else "…" + said[1 - SHOWN_WHY :]


def start_fact(start: StartCheck | None) -> str:
    """Whether a server starts with a template, and if not, why; of a parse error its own line tells."""
    if start is None:
        return "server start not examined"
    said = "server starts" if start.ok else "server does not start"
    if start.conversation is None:
        return said
    return f"{said}{', but not with -lv 4' if start.ok else ''}: {_start_reason(start)}"


def _start_reason(start: StartCheck) -> str:
    """llama.cpp's message, short, and the template's line."""
    if start.error is None:
        return "no reason is known"
    place = "" if start.error.line is None else f" (line {start.error.line})"
    return clip(visible(first_line(start.error.message)), SHOWN_REASON) + place


def start_of_file(
    result: FileResult, unparseable: Collection[str], starts: Mapping[str, StartCheck]
) -> StartCheck | None:
    """Whether a server starts with a model file, given the variants that do not parse, and what is known of its
    templates by SHA-256: the template that serves plain requests decides. None: not examined."""
    default = select_of_file(result, unparseable).default
    return CHATML_START if default.source == CHATML else starts.get(default.sha256)


def start_line(start: StartCheck | None) -> str:
    """The same in words."""
    if start is None:
        return "whether llama-server starts with it was not examined"
    if not start.ok:
        return f"llama-server would not start with it: {_start_reason(start)}"
    exception = "" if start.error is None else f", but not with -lv 4: {_start_reason(start)}"
    return f"llama-server starts with it{exception}"


def outcome_line(result: TemplateResult) -> str:
    """One line for a template that has no flags."""
    if result.outcome is Outcome.NOT_PARSEABLE and result.parse_error is not None:
        error = result.parse_error
        return f"llama.cpp cannot parse it: {visible(error.message)} (line {error.line}, column {error.column})"
    return f"{result.outcome}: {visible(result.reason or '')}"


def selection_line(result: FileResult, unparseable: Collection[str]) -> str | None:
    """Which of a file's templates a server uses, given the variants that do not parse; None where there is only the
    one."""
    chosen = select_of_file(result, unparseable)
    parts = []
    if chosen.fallback:
        parts.append(chosen.fallback)
    if chosen.tool_use is not None:
        parts.append("llama-server reports the flags of tool_use, and uses it for requests with tools")
    if chosen.ignored:
        parts.append(f"llama.cpp ignores {', '.join(map(visible, chosen.ignored))}")
    return "; ".join(parts) or None


OBSERVED_PREFIX = "observed_"
"""Before a capability's name: the conversation of our own, where a probe of llama.cpp has the same name."""


def trace_of(result: TemplateResult, name: str) -> Iterator[str]:
    """The run that a person names: a probe (the beginning of its name is enough), or a capability's own conversation,
    as `observed_system_role` or, where no probe is called so, `tools`. Raises UsageError for another name."""
    probes = {run.name: run for run in result.probes}
    observed = {one.capability: one.run for one in result.observations if one.run is not None}
    if name in probes:
        return trace_answer(probes[name])
    capability = name.removeprefix(OBSERVED_PREFIX)
    if capability in observed:
        return trace_answer(observed[capability], f"observed {capability}")
    begun = next((run for run in result.probes if run.name.startswith(name)), None)
    if begun is not None:
        return trace_answer(begun)
    ran = ", ".join([*probes, *[OBSERVED_PREFIX + known for known in observed]]) or "none"
    raise UsageError(f"there was no run {name}; those that ran: {ran}")


def trace_answer(run: ProbeRun, title: str | None = None) -> Iterator[str]:
    """One run as it went: what was sent, the render with the request's own text highlighted, the reads in order (a
    conversation of our own has none)."""
    yield click.style(title or f"probe {run.name}", bold=True)
    yield "sent"
    for name, value in run.variables.items():
        yield clip(f"  {name} = {json.dumps(value, ensure_ascii=False)}", 2000)
    if run.error is not None:
        yield failure_line(run)
    else:
        yield "rendered (text of the request is marked)"
        for line in "".join([_part(part.text, part.is_input) for part in run.parts]).split("\n"):
            yield f"  {line}"
    if run.reads:
        yield "read"
    for read in sorted(run.reads, key=lambda read: (read.line or 0, read.column or 0, read.path)):
        yield f"  {pad(f'{read.line}:{read.column}', 9)} {read_words(read)}"


def read_words(read: Read) -> str:
    """A value that was read, and how."""
    return f"{read.path}  {' '.join(['used', *read.ops])}"


def failure_line(run: ProbeRun) -> str:
    """How and where a run failed."""
    if run.error is None:
        return "failed"
    place = f" at {run.error.line}:{run.error.column}" if run.error.line is not None else ""
    return f"failed{place}: {visible(run.error.message)}" + (f" ({run.error.node})" if run.error.node else "")


def _part(text: str, is_input: bool) -> str:
    shown = "\n".join([visible(line) for line in text.split("\n")])
    return click.style(shown, reverse=True) if is_input else shown


def count_of(count: int, total: int) -> str:
    """A number with its base."""
    return f"{count:,} of {total:,}"


def builds_answer(analyses: Sequence[TemplateResult]) -> Iterator[str]:
    """The flags of a template under several profiles, if there are several."""
    if len(analyses) < 2:
        return
    rows = [
        [
            analysis.profile,
            "".join([_mark(getattr(analysis.capabilities, name, None)) for name in CAPABILITIES]),
            "" if analysis.capabilities is not None else analysis.outcome,
        ]
        for analysis in analyses
    ]
    yield table(["profile", FLAGS, ""], rows)
    yield from FLAGS_LEGEND


def verification_document(result: Verification) -> dict[str, object]:
    """What the real llama.cpp said of one template, as JSON-compatible data."""
    return asdict(result)


def verification_lines(results: Sequence[Verification]) -> Iterator[str]:
    """What the real llama.cpp said of some templates: all that is not equal, then the count."""
    counts = Counter(result.verdict for result in results)
    for result in results:
        if result.verdict is not Verdict.EQUAL:
            yield f"{result.sha256[:SHOWN_HASH]}  {result.verdict}: {visible(difference_text(result))}"
    parts = [f"{counts[verdict]:,} {verdict}" for verdict in Verdict if counts[verdict]]
    profile = f" by llama.cpp {results[0].profile}" if results else ""
    yield f"{len(results):,} templates verified{profile}: " + (" · ".join(parts) or "none")


def failing_lines(fail_on: str, rows: Sequence[FoundIn]) -> Iterator[str]:
    """Why a scan fails: the findings that `--fail-on` is about, and a file of each."""
    files: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        files.setdefault(row.finding, []).append(row.path)
    if files:
        yield f"capscan: {len(files):,} finding{'' if len(files) == 1 else 's'} at or above --fail-on {fail_on}:"
    for (rule, _), paths in list(files.items())[:OUTLIERS_SHOWN]:
        others = f" +{len(paths) - 1}" if len(paths) > 1 else ""
        yield f"  {rule}  {visible(paths[0])}{others}"
    if len(files) > OUTLIERS_SHOWN:
        yield f"  … {len(files) - OUTLIERS_SHOWN:,} more: capscan query findings"


def rule_answer(rule: AnyRule) -> Iterator[str]:
    """What a rule means, what it costs, and what to do."""
    yield click.style(f"{rule.slug} ({rule.severity})", bold=True)
    for label, text in (("Means", rule.meaning), ("Why it matters", rule.why), ("What to do", rule.remedy)):
        yield from wrapped(f"{label}: ", text)
    yield f"More: {rule.docs}"


FLAGS = "flags"
MARKS = {True: "●", False: "○", None: "·"}
OVER, UNDER = "◐", "◑"
FLAGS_LEGEND = (
    f"flags (● yes  ○ no  {OVER} claimed, not really  {UNDER} really, not claimed  · no verdict):",
    f"  {', '.join(CAPABILITIES[:5])},",
    f"  {', '.join(CAPABILITIES[5:])}",
)


def query_answer(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    """The rows of a query as a person reads them: the nine flags as marks, hashes short, paths below their common
    folder."""
    columns, shown = _with_flag_marks(columns, rows)
    notes: list[str] = []
    if FLAGS in columns:
        notes += FLAGS_LEGEND
    for place, column in enumerate(columns):
        if column == "sha256":
            shown = _changed(shown, place, lambda value: str(value)[:SHOWN_HASH])
        if column == "path":
            folder = _common_folder([str(row[place]) for row in shown])
            if folder:
                notes.append(f"paths below {visible(folder)}")
                shown = _changed(shown, place, partial(_behind, len(folder)))
    yield table(columns, shown, width=terminal_columns())
    yield from notes


def _behind(start: int, value: object) -> str:
    return str(value)[start:]


def _changed(rows: Sequence[Sequence[object]], place: int, change: Callable[[object], str]) -> list[tuple[object, ...]]:
    return [(*row[:place], None if row[place] is None else change(row[place]), *row[place + 1 :]) for row in rows]


def _common_folder(paths: Sequence[str]) -> str:
    """The folder, with its slash, that all absolute paths lie in; empty where that says nothing."""
    absolute = [path for path in paths if path.startswith("/")]
    if len(set(absolute)) < 2 or len(absolute) < len(paths):
        return ""
    folder = os.path.commonpath([Path(path).parent for path in absolute])
    return "" if folder == "/" else folder + "/"


def _with_flag_marks(
    columns: Sequence[str], rows: Sequence[Sequence[object]]
) -> tuple[Sequence[str], Sequence[Sequence[object]]]:
    claimed = [f"supports_{name}" for name in CAPABILITIES]
    if not set(claimed) <= set(columns):
        return columns, rows
    observed = [name.replace("supports_", "observed_") for name in claimed]
    places = [
        (columns.index(claim), columns.index(seen) if seen in columns else None)
        for claim, seen in zip(claimed, observed, strict=True)
    ]
    others = [place for place, column in enumerate(columns) if column not in (*claimed, *observed)]
    marked_rows = [
        (
            *[row[place] for place in others],
            "".join([_mark(row[claim], None if seen is None else row[seen]) for claim, seen in places]),
        )
        for row in rows
    ]
    return (*[columns[place] for place in others], FLAGS), marked_rows


def _mark(claimed: object, observed: object = None) -> str:
    if claimed is None or observed is None or bool(claimed) == bool(observed):
        return MARKS[None if claimed is None else bool(claimed)]
    return OVER if claimed else UNDER
