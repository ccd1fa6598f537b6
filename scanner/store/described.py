"""What every table, view and column of the database means, for people who ask it with SQL.

`docs/database.md` is written from here and from the schema (`python -m tests.write_docs`); a test fails for a column
that is missing here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scanner.results import CAPABILITIES


@dataclass(frozen=True, slots=True)
class Described:
    """A table or a view: what a row of it is, and what its columns hold."""

    row: str
    columns: Mapping[str, str]


def _flags() -> dict[str, str]:
    claimed = {
        f"supports_{name}": f"Whether llama.cpp will claim `{name}` of it; null without a verdict."
        for name in CAPABILITIES
    }
    claimed["supports_reasoning_effort"] += " Also null under profiles whose builds have no such flag."
    observed = {
        f"observed_{name}": f"Whether it really has `{name}`, by what it prints; null where that is not known."
        for name in CAPABILITIES
    }
    return claimed | observed


def _error(prefix: str, of: str) -> dict[str, str]:
    """The columns of an error of a run."""
    return {
        f"{prefix}_kind": f"What kind of error ended {of}: `runtime`, `raised` (by the template itself), "
        "`not_implemented`, `loop_control` or `limit`; null where none did.",
        f"{prefix}_message": "Its message.",
        f"{prefix}_node": "The part of the syntax where it happened, as llama.cpp calls it.",
        f"{prefix}_offset": "Its place in the template, in bytes from 0.",
        f"{prefix}_line": "Its line, from 1.",
        f"{prefix}_column": "Its column, from 1.",
    }


_SHA256 = "The template's SHA-256, in hexadecimal."
_PROFILE = "The engine profile: the llama.cpp build that is meant (`docs/profiles.md`)."
_OUTCOME = (
    "What became of it: `analysed`, `no template`, `not parseable`, `limit exceeded`, `unreadable`, "
    "`not a model file` or `skipped`."
)
_REASON = "Why, in words; null where there is nothing to say."
_OFFSET = "The byte where reading failed."
_EXPECTED = "What should have been at that byte."
_POSITION = "Its place in the order, from 0."
_VARIANT = "`default`, `tool_use` or another name; empty for a file without templates."
_ANALYSIS = "→ `analyses.id`."
_FILE = "→ `model_files.id`."
_SCAN = "→ `scans.id`."
_LINE = "The template's line, from 1; null where there is none."

_RUN = {
    "ok": "Whether the render came to its end.",
    "output": "What was printed.",
    "parts": "The output in pieces, as JSON: `text`, and whether it `is_input`, from the request.",
    "variables": "What was sent, as JSON.",
    "duration": "Seconds that it took.",
    **_error("error", "the run"),
}

_COUNTS = {
    "claiming": "that claim it",
    "analysed": "of which it is known whether they claim it",
    "observed": "that really have it",
    "judged": "of which it is known whether they really have it",
    "overclaiming": "that claim it and do not have it",
    "underclaiming": "that have it and do not claim it",
}

TABLES: Mapping[str, Described] = {
    "scans": Described(
        "One run of `capscan scan`.",
        {
            "id": "Its number; a later scan has a greater one.",
            "started_at": "When it began, in UTC.",
            "finished_at": "When it ended, in UTC; null before.",
            "status": "`running`, `finished` or `interrupted`; one that was killed stays `running` until the next.",
            "sources": "The paths that were given, as a JSON list.",
            "capscan_version": "The Capscan that scanned.",
            "profile": "The profile whose verdicts the scan shows.",
            "files_seen": "How many model files it saw.",
            "files_unchanged": "How many of them had not changed, and were not opened.",
            "passed_over": "Paths that were not taken, as a JSON list of `path` and `reason`.",
        },
    ),
    "model_files": Described(
        "One model file, or the folder of a model, as it was when last opened.",
        {
            "id": "Its number.",
            "path": "Its absolute path.",
            "source": "The path that was given for the scan.",
            "kind": "What it is, and so how it is opened: `gguf`, `huggingface`, `jinja` and the like.",
            "size": "Bytes; for a folder those of the files that matter.",
            "mtime_ns": "When it was changed last, in nanoseconds since 1970; for a folder the newest.",
            "fingerprint": "Changes whenever its size, time or inode does.",
            "first_seen_scan_id": "→ `scans.id`: the first scan that saw it.",
            "last_seen_scan_id": "→ `scans.id`: the newest scan that saw it.",
            "capscan_version": "The Capscan that opened it.",
            "outcome": "What came of opening it; `analysed`: it has templates.",
            "reason": _REASON,
            "byte_offset": _OFFSET,
            "expected": _EXPECTED,
            "notes": "What else was noticed, as a JSON list of sentences.",
            "architecture": "`general.architecture`, or the model type.",
            "role": "What it is where it is no model to talk to by itself (a projector, an adapter, …); null for a "
            "model.",
            "name": "`general.name`: what the file calls the model.",
            "basename": "`general.basename`.",
            "size_label": "`general.size_label`, such as `8B`.",
            "file_type": "Its quantization, such as `Q4_K_M`.",
            "quantized_by": "`general.quantized_by`.",
            "license": "`general.license`.",
            "repo_url": "`general.repo_url`.",
            "tokenizer_pre": "`tokenizer.ggml.pre`.",
            "block_count": "How many layers it has.",
            "split_no": "Which shard of a split model it is, from 0.",
            "split_count": "How many shards there should be.",
            "bos_id": "The number of the beginning-of-sequence token.",
            "bos_text": "Its text.",
            "adds_bos": "Whether the tokenizer adds it itself.",
            "eos_id": "The number of the end-of-sequence token.",
            "eos_text": "Its text.",
            "adds_eos": "Whether the tokenizer adds it itself.",
        },
    ),
    "templates": Described(
        "One template, in however many files it is.",
        {
            "id": "Its number.",
            "sha256": f"{_SHA256} That is its identity.",
            "source": "Its exact bytes.",
            "size": "How many these are.",
            "kind": "`jinja`, or `go` for one that only Ollama reads, of which there is no analysis.",
        },
    ),
    "model_names": Described(
        "What a store (Ollama, a Hugging Face cache, …) called a model file in a scan.",
        {
            "scan_id": _SCAN,
            "model_file_id": _FILE,
            "position": f"{_POSITION} The first is the one to show.",
            "store": "The store, such as `ollama`.",
            "name": "The name.",
            "repository": "Where the store has it from, if it says so.",
            "revision": "Which revision of that, or which tag.",
        },
    ),
    "appearances": Described(
        "What one scan saw in one model file: one variant of it, or that it has none.",
        {
            "scan_id": _SCAN,
            "model_file_id": _FILE,
            "position": f"{_POSITION} As in the file.",
            "variant": _VARIANT,
            "template_id": "→ `templates.id`; null where there is no template.",
            "origin": "Where in the file the template stands, such as `tokenizer.chat_template`.",
            "outcome": f"{_OUTCOME} Of the template where there is one, else of the file.",
            "reason": _REASON,
            "byte_offset": _OFFSET,
            "expected": _EXPECTED,
            "fingerprint": "That of the file in this scan; null in what an older Capscan recorded.",
        },
    ),
    "analyses": Described(
        "One template under one profile, judged by one version of Capscan. The newest has the greatest number: "
        "`id IN (SELECT MAX(id) FROM analyses GROUP BY template_id, profile)`.",
        {
            "id": "Its number; a later one has a greater.",
            "template_id": "→ `templates.id`.",
            "profile": _PROFILE,
            "capscan_version": "The Capscan that judged.",
            "analysis_version": "Grows when the same Capscan version comes to judge differently.",
            "created_at": "When, in UTC.",
            "duration": "Seconds that it took.",
            "outcome": "`analysed`, `not parseable`, `limit exceeded`, or `no template` for one that llama.cpp takes "
            "for none.",
            "reason": _REASON,
            "handler": "The parser of llama.cpp that would read the model's answers.",
            "patches": "The changes that llama.cpp makes to the text before it parses it, as a JSON list of names.",
            "parse_error_kind": "`lexer`, `parser` or `limit` where it does not parse.",
            "parse_error_message": "The message of that.",
            "parse_error_line": "Its line, from 1.",
            "parse_error_column": "Its column, from 1.",
            "parse_error_offset": "Its place, in bytes from 0.",
            "server_starts": "Whether llama-server starts with it as a model's default; null where that was not "
            "examined.",
            "thinks_by_default": "What a request gets for `enable_thinking` that does not say.",
            "start_conversation": "The conversation of the server's own that fails: `thinking` (it does not start), "
            "`example` (it does not with `-lv 4`), `autoparser` (it cannot read the calls).",
            **_error("start_error", "that conversation"),
            "start_log": "What the server logs before it gives up.",
            "free_text_effort": "What becomes of a made-up reasoning effort: `printed`, `ignored` or `raises`.",
            "lines": "The lines that hold something to run, as a JSON list of first and last.",
            **_flags(),
        },
    ),
    "probe_runs": Described(
        "One probe conversation of llama.cpp as it ran.",
        {
            "id": "Its number.",
            "analysis_id": _ANALYSIS,
            "position": _POSITION,
            "name": "The probe, as in `capscan probe --trace`.",
            **_RUN,
            "lines": "The lines of the template that ran, as a JSON list of first and last.",
        },
    ),
    "reads": Described(
        "One value of a probe's request that the template read.",
        {
            "probe_run_id": "→ `probe_runs.id`.",
            "position": _POSITION,
            "path": "The value, such as `messages[0].content`.",
            "used": "Whether llama.cpp marks it as used.",
            "ops": "What was done to it, as a sorted JSON list.",
            "line": "The line of the first read, from 1.",
            "column": "Its column, from 1.",
        },
    ),
    "findings": Described(
        "What a rule found: of an analysis, or else of a model file in a scan.",
        {
            "id": "Its number.",
            "analysis_id": f"{_ANALYSIS} Null for a finding about a file.",
            "model_file_id": f"{_FILE} Null for a finding about a template.",
            "scan_id": f"{_SCAN} Null for a finding about a template.",
            "position": _POSITION,
            "rule": "The rule (`docs/rules.md`).",
            "severity": "`error`, `warning` or `note`.",
            "text": "What was found, in one line.",
            "evidence": "The probe, place or value behind it.",
            "line": _LINE,
        },
    ),
    "verifications": Described(
        "What the real llama.cpp said of our flags for a template (`capscan verify`); the newest answer only.",
        {
            "id": "Its number.",
            "template_id": "→ `templates.id`.",
            "profile": _PROFILE,
            "capscan_version": "The Capscan that asked.",
            "verdict": "`equal`, `different` or `not comparable`.",
            "reason": _REASON,
            "differences": "The flags that differ, as JSON.",
            "verified_at": "When, in UTC.",
        },
    ),
    "observations": Described(
        "What the output of a conversation of our own says of a capability. The columns from `ok` on are null where "
        "nothing was rendered.",
        {
            "analysis_id": _ANALYSIS,
            "position": _POSITION,
            "capability": "The capability.",
            "verdict": "Whether the template really has it; null where that could not be told.",
            "reason": "What was seen: `printed`, `absent`, `dumped`, an error, and the like.",
            "agreement": "`agrees`, `overclaims` or `underclaims`; null where either side has no verdict.",
            **_RUN,
        },
    ),
    "behaviours": Described(
        "One answer on how a template behaves beyond its flags.",
        {
            "analysis_id": _ANALYSIS,
            "position": _POSITION,
            "key": "What was asked.",
            "outcome": "The answer, from the closed list of its key.",
            "detail": "The rest of the answer, in words.",
            "evidence": "The render or the error that it rests on.",
            "line": _LINE,
        },
    ),
    "efforts": Described(
        "One reasoning effort as it was tried.",
        {
            "analysis_id": _ANALYSIS,
            "position": _POSITION,
            "word": "The effort; null: unset.",
            "outcome": "`accepted` or `raises`.",
            "message": "That of the error.",
            "line": "The line of the error, from 1.",
            "group_number": "Words that give one output share it; null where it raises.",
            "prints_word": "Whether the word itself is printed.",
            "equals_unset": "Whether the output is the same as without any.",
        },
    ),
    "renders": Described(
        "One standard conversation as one engine renders it.",
        {
            "analysis_id": _ANALYSIS,
            "position": _POSITION,
            "engine": "`llama.cpp` or `jinja2`.",
            "scenario": "The conversation, as in `capscan render --scenario`.",
            "output": "The prompt.",
            "error": "Why there is none; null where there is.",
            "inputs": "The ranges of characters that came from the request, as JSON; null where that is not known.",
        },
    ),
}
"""The tables, in an order to read them in."""

VIEWS: Mapping[str, Described] = {
    "latest_files": Described(
        "One variant of one model file, as the newest finished scan saw it that saw the file. Files that are gone are "
        "left out: the newest finished scan of the same sources did not see them any more.",
        {
            "model_file_id": _FILE,
            "scan_id": f"{_SCAN} The scan that saw it so.",
            "template_id": "→ `templates.id`; null where there is no template.",
            "path": "The file's absolute path.",
            "variant": _VARIANT,
            "sha256": f"{_SHA256} Null where there is none.",
            "outcome": f"{_OUTCOME} Of the template where there is one, else of the file.",
            "reason": _REASON,
            "byte_offset": _OFFSET,
            "expected": _EXPECTED,
            "kind": "What the file is: `gguf`, `huggingface`, `jinja` and the like.",
            "size": "Its bytes.",
            "architecture": "The model's architecture.",
            "file_type": "Its quantization.",
            "quantized_by": "Who made that.",
            "profile": "The profile of the scan, under which the flags are.",
            **_flags(),
            "name": "What a store calls the file; null outside of stores.",
            "repository": "Where the store has it from.",
            "role": "What it is where it is no model to talk to by itself.",
        },
    ),
    "flag_distribution": Described(
        "One capability under one profile, counted over the templates and the files of `latest_files`.",
        {
            "profile": _PROFILE,
            "capability": "The capability.",
            **{
                f"{what}_{word}": f"How many {what if what == 'templates' else 'files have a template'} {meaning}."
                for what in ("templates", "files")
                for word, meaning in _COUNTS.items()
            },
        },
    ),
    "outliers": Described(
        "A template that is held now and has an error or a warning, or a set of flags that few others have.",
        {
            "profile": _PROFILE,
            "sha256": _SHA256,
            "path": "The first file that holds it.",
            "files": "How many do.",
            "severity": "That of its worst finding; `note` for one that is only rare.",
            "errors": "How many findings are errors.",
            "warnings": "How many are warnings.",
            "rule": "The rule of its first, worst finding.",
            "line": _LINE,
            "text": "What that says, or how rare its flags are.",
            "alike": "How many templates have its set of flags; null where it has none.",
            "templates": "Of how many templates.",
        },
    ),
    "changes": Described(
        "A template that came, went or was replaced at a path and variant, from the last finished scan but one of the "
        "same sources to the newest.",
        {
            "change": "`appeared`, `gone` or `replaced`.",
            "path": "The file's absolute path.",
            "variant": _VARIANT,
            "old_sha256": "The template before; null where it appeared.",
            "new_sha256": "The template now; null where it is gone.",
            "old_scan_id": "→ `scans.id`: the scan before.",
            "new_scan_id": "→ `scans.id`: the newest.",
        },
    ),
}
"""The views, which stay as they are: what is added comes behind."""
