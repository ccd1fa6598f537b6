"""How a diff of two scans is shown: to a person, as JSON, as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import TypeVar

from reports.markdown import escaped
from scanner.console import clip, columns, markdown_table, pad, visible, width_of
from scanner.diff import Came, Cause, Diff, FileChange, Flip, Holder, TemplateChange, What
from scanner.store.records import ScanRecord

Item = TypeVar("Item")

SHOWN = 40
"""Entries of a list that a person is shown; the other formats have all."""
SHOWN_HASH = 12
SOURCE_LINES = 80
"""Lines of the difference of two templates that are shown."""

SourceDiffs = Mapping[tuple[str, str], Sequence[str]]
"""The lines of a unified diff, by the SHA-256 of the old and the new template."""

_NOTHING = "Nothing changed."


def first_scan_line(scan: int | None) -> str:
    """What is said where there is no scan to compare with."""
    if scan is None:
        return "There is no finished scan yet."
    return f"Scan {scan} is the first of its sources: there is nothing to compare it with."


# -- in the terminal ---------------------------------------------------------------------------------------------------


def diff_lines(diff: Diff, sources: SourceDiffs) -> Iterator[str]:
    """The diff as a person reads it; `sources` holds the differences of templates that are to be shown."""
    yield f"Scan {_scan(diff.new)} against scan {_scan(diff.old)} · {_profiles(diff)}"
    if not diff.changed:
        yield _NOTHING
        return
    folder = common_folder(_paths(diff))
    if folder:
        yield f"Paths below {visible(folder)}"
    yield from _file_lines(diff.files, folder)
    yield from _template_lines(diff.templates, sources, folder)
    yield from _flip_lines(diff, folder)


def summary_line(diff: Diff) -> str:
    """What changed, in one line; empty where nothing did."""
    return " · ".join(_counts(diff))


def _counts(diff: Diff) -> Iterator[str]:
    for change in (Came.NEW, Came.GONE, Came.CHANGED):
        count = sum(one.change is change for one in diff.files)
        if count:
            yield f"{_number(count, 'model')} {change}"
    if diff.templates:
        yield f"{_number(len(diff.templates), 'template')} replaced, new or gone"
    findings = sum(flip.what is What.FINDING for flip in diff.flips)
    if findings:
        yield f"{_number(findings, 'finding')} new or gone"
    if len(diff.flips) > findings:
        yield f"{_number(len(diff.flips) - findings, 'answer')} flipped"


def _file_lines(files: Sequence[FileChange], folder: str) -> Iterator[str]:
    if not files:
        return
    counts = [
        f"{sum(file.change is change for file in files):,} {change}" for change in (Came.NEW, Came.GONE, Came.CHANGED)
    ]
    yield f"\nModels: {', '.join(counts)}"
    yield from _aligned([(file.change, _below(folder, file.path), _file_words(file)) for file in files[:SHOWN]])
    yield from _more(len(files))


def _file_words(file: FileChange) -> str:
    if file.change is Came.GONE:
        return ""
    words = str(file.new_outcome)
    if file.change is Came.CHANGED:
        words = words if file.old_outcome is file.new_outcome else f"{file.old_outcome} → {file.new_outcome}"
    parts = [words, file.reason, _rewritten(file)]
    return " · ".join([part for part in parts if part])


def _rewritten(file: FileChange) -> str | None:
    if not file.rewritten:
        return None
    if file.old_size is None or file.new_size is None or file.old_size == file.new_size:
        return "the file was written again"
    return f"the file has {file.new_size:,} bytes, not {file.old_size:,}"


def _template_lines(templates: Sequence[TemplateChange], sources: SourceDiffs, folder: str) -> Iterator[str]:
    if not templates:
        return
    yield f"\nTemplates in models that stayed: {_by_change(templates)}"
    for change in templates[:SHOWN]:
        yield from _aligned([(change.change, _places(change.holders, folder), _hashes(change))])
        if change.old_sha256 and change.new_sha256:
            yield from [f"    {clip(visible(line), columns() - 4)}" for line in sources.get(_pair(change), ())]
    yield from _more(len(templates))


def _by_change(templates: Sequence[TemplateChange]) -> str:
    counts = {change: sum(one.change is change for one in templates) for change in (Came.REPLACED, Came.NEW, Came.GONE)}
    return ", ".join([f"{count:,} {change}" for change, count in counts.items() if count])


def _flip_lines(diff: Diff, folder: str) -> Iterator[str]:
    if not diff.flips:
        return
    yield f"\nFlipped: {len(diff.flips):,}"
    shown = diff.flips[:SHOWN]
    for causes, flips in groupby(shown, key=lambda flip: flip.causes):
        yield f"  because of {because(causes, diff)}"
        yield from _aligned([(_about(flip), _told(flip), _places(flip.holders, folder)) for flip in flips], indent=4)
    yield from _more(len(diff.flips))


def because(causes: Iterable[Cause], diff: Diff) -> str:
    """Causes in words, with what was before and what is now."""
    details = {
        Cause.PROFILE: f" ({diff.old.profile} → {diff.new.profile})",
        Cause.CAPSCAN: f" ({diff.capscan[0]} → {diff.capscan[1]})" if diff.capscan else "",
    }
    words = {
        Cause.TEMPLATE: "a new template",
        Cause.FILE: "a changed file",
        Cause.PROFILE: "another profile",
        Cause.CAPSCAN: "another Capscan",
        Cause.AGAIN: "a second examination",
    }
    return " and ".join([f"{words[cause]}{details.get(cause, '')}" for cause in causes])


def _about(flip: Flip) -> str:
    return f"{flip.what} {flip.name}".strip()


def _told(flip: Flip) -> str:
    if flip.what is not What.FINDING:
        return f"{flip.old} → {flip.new}"
    if flip.old is None:
        return f"new, {flip.new}: {flip.text}"
    if flip.new is None:
        return f"gone, {flip.old}: {flip.text}"
    return f"{flip.old} → {flip.new}: {flip.text}"


def _aligned(rows: Sequence[tuple[str, str, str]], *, indent: int = 2) -> Iterator[str]:
    """Three columns; the last is cut where it does not fit, the second where it would leave it no room."""
    shown = [tuple(visible(cell) for cell in row) for row in rows]
    width = columns() - indent
    first = max(width_of(row[0]) for row in shown)
    second = min(max(width_of(row[1]) for row in shown), width // 2)
    for label, text, rest in shown:
        start = f"{' ' * indent}{pad(label, first)}  {pad(clip(text, second), second)}  "
        yield (start + clip(rest, max(10, width + indent - width_of(start)))).rstrip()


def _more(count: int) -> Iterator[str]:
    if count > SHOWN:
        yield f"  … {count - SHOWN:,} more: --format json or markdown has all"


def _places(holders: Sequence[Holder], folder: str) -> str:
    """The first place, and how many others."""
    first = holders[0]
    variant = f" ({first.variant})" if first.variant not in ("", "default") else ""
    more = f" +{len(holders) - 1:,}" if len(holders) > 1 else ""
    return f"{_below(folder, first.path)}{variant}{more}"


def _hashes(change: TemplateChange) -> str:
    hashes = [sha256[:SHOWN_HASH] for sha256 in (change.old_sha256, change.new_sha256) if sha256]
    return " → ".join(hashes)


def _pair(change: TemplateChange) -> tuple[str, str]:
    return change.old_sha256 or "", change.new_sha256 or ""


def _scan(scan: ScanRecord) -> str:
    when = f"{scan.finished_at or scan.started_at:%Y-%m-%d %H:%M}"
    return f"{scan.id} ({when}{'' if scan.status == 'finished' else ', ' + scan.status})"


def _profiles(diff: Diff) -> str:
    if diff.old.profile == diff.new.profile:
        return f"profile {diff.new.profile}"
    return f"profile {diff.old.profile} → {diff.new.profile}"


def _number(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _paths(diff: Diff) -> list[str]:
    changed: list[TemplateChange | Flip] = [*diff.templates, *diff.flips]
    return [*[file.path for file in diff.files], *[place.path for one in changed for place in one.holders]]


def common_folder(paths: Sequence[str]) -> str:
    """The deepest folder that all paths are in, with the slash behind it; '' where there is none."""
    if not paths:
        return ""
    first, last = min(paths), max(paths)
    pairs = enumerate(zip(first, last, strict=False))
    length = next((at for at, (one, other) in pairs if one != other), min(len(first), len(last)))
    return first[: first.rfind("/", 0, length) + 1]


def _below(folder: str, path: str) -> str:
    return path[len(folder) :]


# -- for other programs ------------------------------------------------------------------------------------------------


def diff_document(diff: Diff, sources: SourceDiffs) -> dict[str, object]:
    """The diff as JSON-compatible data; a template that was replaced has its difference under `source`, if shown."""
    return {
        "changed": diff.changed,
        "old": _scan_document(diff.old),
        "new": _scan_document(diff.new),
        "capscan": None if diff.capscan is None else list(diff.capscan),
        "files": [asdict(file) for file in diff.files],
        "templates": [
            {**asdict(change), **({"source": list(sources[_pair(change)])} if _pair(change) in sources else {})}
            for change in diff.templates
        ],
        "flips": [asdict(flip) for flip in diff.flips],
    }


def empty_document(scan: int | None) -> dict[str, object]:
    """The document where there is nothing to compare with."""
    new = None if scan is None else {"id": scan}
    return {"changed": False, "old": None, "new": new, "capscan": None, "files": [], "templates": [], "flips": []}


def _scan_document(scan: ScanRecord) -> dict[str, object]:
    return {
        "id": scan.id,
        "started_at": scan.started_at.isoformat(),
        "finished_at": None if scan.finished_at is None else scan.finished_at.isoformat(),
        "status": scan.status,
        "profile": scan.profile,
        "capscan_version": scan.capscan_version,
    }


def diff_markdown(diff: Diff, sources: SourceDiffs) -> Iterator[str]:
    """The diff for a chat or an issue."""
    yield f"### Scan {_scan(diff.new)} against scan {_scan(diff.old)} · {escaped(_profiles(diff))}\n"
    if not diff.changed:
        yield _NOTHING
        return
    yield from _section(
        "Models", ("", "model", "now"), diff.files, lambda one: (one.change, one.path, _file_words(one))
    )
    yield from _section(
        "Templates in models that stayed",
        ("", "where", "templates"),
        diff.templates,
        lambda one: (one.change, _places(one.holders, ""), _hashes(one)),
    )
    for change in diff.templates:
        yield from _fenced(sources.get(_pair(change), ()))
    yield from _section(
        "Flipped",
        ("what", "was → is", "where", "because of"),
        diff.flips,
        lambda one: (_about(one), _told(one), _places(one.holders, ""), because(one.causes, diff)),
    )


def _section(
    title: str, headers: Sequence[str], items: Sequence[Item], row: Callable[[Item], Sequence[object]]
) -> Iterator[str]:
    if items:
        yield f"**{title}: {len(items):,}**\n"
        yield markdown_table(headers, map(row, items))
        yield ""


def _fenced(lines: Sequence[str]) -> Iterator[str]:
    """Lines of a diff as code; the fence is longer than any run of backticks in it."""
    if not lines:
        return
    longest = max((len(run) for line in lines for run in _runs_of_backticks(line)), default=0)
    fence = "`" * max(3, longest + 1)
    yield f"{fence}diff"
    yield from map(visible, lines)
    yield f"{fence}\n"


def _runs_of_backticks(line: str) -> list[str]:
    return ["".join(run) for sign, run in groupby(line) if sign == "`"]
