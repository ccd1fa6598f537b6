"""The queries that `capscan query` knows by name: portable SQL with named parameters, each of which may be left out.

A parameter that is left out is null; an empty text means the same, for tools that know no null (Datasette). Values are
bound by the database's driver and never become part of the SQL. `docs/queries.md` is written from this table
(`python -m tests.write_docs`).
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from inspect import cleandoc

from scanner.errors import UsageError
from scanner.results import CAPABILITIES, Outcome, Severity


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a query. `choices`: the only values that make sense, if there are but a few; `number`: it is
    one; `example` is a value for the documentation."""

    name: str
    description: str
    example: str
    choices: tuple[str, ...] = ()
    number: bool = False


@dataclass(frozen=True, slots=True)
class NamedQuery:
    """A query with a name, for `capscan query NAME`; the SQL has every parameter as `:name`."""

    name: str
    description: str
    sql: str
    parameters: tuple[Parameter, ...] = ()

    def bound(self, given: Mapping[str, str]) -> dict[str, str | None]:
        """The value of every parameter, None for those not given. Raises UsageError for a value that makes no sense, or
        that no parameter takes."""
        names = [parameter.name for parameter in self.parameters]
        unknown = [name for name in given if name not in names]
        if unknown:
            known = f"it takes {', '.join(names)}" if names else "it takes none"
            raise UsageError(f"the query {self.name} has no parameter {unknown[0]!r}: {known}")
        return {parameter.name: _checked(parameter, given.get(parameter.name)) for parameter in self.parameters}


def _checked(parameter: Parameter, value: str | None) -> str | None:
    if not value:
        return None
    if parameter.choices and value not in parameter.choices:
        raise UsageError(f"{parameter.name}={value}: choose one of {', '.join(parameter.choices)}")
    if parameter.number and not (value.isascii() and value.isdecimal() and len(value) <= 18):
        raise UsageError(f"{parameter.name}={value}: give a number")
    return value


# -- parts of SQL ------------------------------------------------------------------------------------------------------


def _listed(names: Iterable[str], alias: str = "") -> str:
    """Columns one after another, in lines of a length that can be read."""
    columns = ", ".join([f"{alias}{name}" for name in names])
    return textwrap.fill(columns, 100, subsequent_indent=" " * 15, break_long_words=False, break_on_hyphens=False)


_FLAGS = tuple(f"supports_{name}" for name in CAPABILITIES)
_OBSERVED = tuple(f"observed_{name}" for name in CAPABILITIES)
_ALL_FLAGS = _listed((*_FLAGS, *_OBSERVED))
_CLAIMS = _listed(_FLAGS)
_DIFFERING = "\n                        OR ".join([f"COUNT(DISTINCT {name}) > 1" for name in _FLAGS])


def _unset(name: str) -> str:
    """Whether a parameter is left out. PostgreSQL has to be told its type."""
    return f"COALESCE(CAST(:{name} AS TEXT), '') = ''"


def _equal(column: str, name: str) -> str:
    """Whether a column has the value of a parameter, if there is one."""
    return f"({_unset(name)} OR {column} = :{name})"


def _holding(column: str, name: str) -> str:
    """Whether a parameter's text, if there is one, is in a column's; LIKE would make signs of some letters, and only
    on some systems tell small ones from capitals."""
    return f"({_unset(name)} OR REPLACE({column}, :{name}, '') <> {column})"


def _beginning(column: str, name: str) -> str:
    """Whether a column begins with the text of a parameter, if there is one."""
    return f"({_unset(name)} OR SUBSTR({column}, 1, LENGTH(:{name})) = LOWER(:{name}))"


def _claiming(name: str) -> str:
    """Whether the capability that a parameter names, if it does, is claimed."""
    cases = "\n            ".join([f"WHEN '{capability}' THEN supports_{capability}" for capability in CAPABILITIES])
    return f"({_unset(name)} OR CASE CAST(:{name} AS TEXT)\n            {cases} END)"


_CAPABILITY = Parameter("capability", "Only what claims this capability.", "tools", CAPABILITIES)
_PATH = Parameter("path", "Only paths with this text in them.", "qwen3")
_SHA256 = Parameter("sha256", "Only the template whose SHA-256 begins so.", "c3cf41d2")
_PROFILE = Parameter("profile", "Only this engine profile.", "b11549")
_RULE = Parameter("rule", "Only findings of this rule.", "late-system-raises")
_SEVERITY = Parameter("severity", "Only this severity.", "error", tuple(Severity))
_OUTCOME = Parameter("outcome", "Only this outcome.", "unreadable", tuple(Outcome))

_NEWEST = "SELECT MAX(id) FROM analyses GROUP BY template_id, profile"
"""The newest analysis of every template under every profile: numbers grow with time."""

_HELD = """JOIN analyses ON analyses.id = {}.analysis_id
        JOIN (SELECT template_id, sha256, MIN(path) AS path, COUNT(DISTINCT model_file_id) AS files
              FROM latest_files WHERE template_id IS NOT NULL GROUP BY template_id, sha256) AS held
          ON held.template_id = analyses.template_id
        WHERE analyses.id IN (SELECT MAX(id) FROM analyses GROUP BY template_id, profile)"""
"""Ties the rows of an analysis's table to the templates of the latest files."""


def _named(*queries: NamedQuery) -> Mapping[str, NamedQuery]:
    return {query.name: query for query in queries}


def _query(name: str, description: str, sql: str, parameters: Sequence[Parameter] = ()) -> NamedQuery:
    return NamedQuery(name, description, cleandoc(sql), tuple(parameters))


NAMED: Mapping[str, NamedQuery] = _named(
    _query(
        "files",
        "Every variant of every model file, with what llama.cpp claims of it and what is really true",
        f"""
        SELECT path, variant, outcome, reason, architecture, file_type, quantized_by, sha256,
               {_ALL_FLAGS}
        FROM latest_files
        WHERE {_claiming("capability")}
          AND {_equal("outcome", "outcome")}
          AND {_equal("architecture", "architecture")}
          AND {_holding("path", "path")}
        ORDER BY path, variant""",  # noqa: S608 - constants
        (_CAPABILITY, _OUTCOME, Parameter("architecture", "Only this architecture.", "qwen3"), _PATH),
    ),
    _query(
        "templates",
        "Every template, how many files hold it, what llama.cpp claims of it and what is really true",
        f"""
        SELECT sha256, profile, outcome, COUNT(DISTINCT model_file_id) AS files, MIN(path) AS path,
               {_ALL_FLAGS}
        FROM latest_files
        WHERE sha256 IS NOT NULL
          AND {_claiming("capability")}
          AND {_holding("path", "path")}
        GROUP BY sha256, profile, outcome,
               {_ALL_FLAGS}
        ORDER BY files DESC, sha256, profile""",  # noqa: S608 - constants
        (_CAPABILITY, _PATH),
    ),
    _query(
        "template",
        "Where a template is: the files and variants that hold it",
        f"""
        SELECT sha256, path, variant, outcome, reason, profile, architecture, file_type, quantized_by
        FROM latest_files
        WHERE sha256 IS NOT NULL AND {_beginning("sha256", "sha256")}
        ORDER BY sha256, path, variant""",  # noqa: S608 - constants
        (_SHA256,),
    ),
    _query(
        "names",
        "What stores (Ollama, Hugging Face's cache, …) call the latest files, and where these come from",
        f"""
        SELECT model_names.store, model_names.name, model_names.repository, model_names.revision, model_files.path,
               model_files.outcome
        FROM (SELECT DISTINCT model_file_id, scan_id FROM latest_files) AS held
        JOIN model_names ON model_names.model_file_id = held.model_file_id AND model_names.scan_id = held.scan_id
        JOIN model_files ON model_files.id = held.model_file_id
        WHERE {_equal("model_names.store", "store")} AND {_holding("model_names.name", "name")}
        ORDER BY model_names.store, model_names.name, model_names.revision, model_files.path""",  # noqa: S608 - constants
        (
            Parameter("store", "Only this store.", "ollama"),
            Parameter("name", "Only names with this text in them.", "llama3"),
        ),
    ),
    _query(
        "spread",
        "How far each template is spread: over files, models (by their names, else paths) and repositories",
        f"""
        SELECT held.sha256, COUNT(DISTINCT held.model_file_id) AS files,
               COUNT(DISTINCT COALESCE(model_names.name, held.path)) AS models,
               COUNT(DISTINCT model_names.repository) AS repositories
        FROM latest_files AS held
        LEFT JOIN model_names ON model_names.model_file_id = held.model_file_id
          AND model_names.scan_id = held.scan_id
        WHERE held.sha256 IS NOT NULL AND {_beginning("held.sha256", "sha256")}
        GROUP BY held.sha256
        ORDER BY models DESC, files DESC, held.sha256""",  # noqa: S608 - constants
        (_SHA256,),
    ),
    _query(
        "flags",
        "How many templates and files claim each capability, really have it, and claim too much or too little",
        f"""
        SELECT capability, templates_analysed AS templates, templates_claiming AS claimed,
               templates_observed AS really, templates_overclaiming AS over, templates_underclaiming AS under,
               files_analysed AS files, files_claiming AS files_claimed, files_observed AS files_really, profile
        FROM flag_distribution
        WHERE {_equal("capability", "capability")} AND {_equal("profile", "profile")}
        ORDER BY profile, templates_claiming DESC, capability""",  # noqa: S608 - constants
        (Parameter("capability", "Only this capability.", "tools", CAPABILITIES), _PROFILE),
    ),
    _query(
        "failures",
        "Everything that is not analysed, and why",
        f"""
        SELECT outcome, path, variant, reason, byte_offset, expected, sha256
        FROM latest_files
        WHERE outcome <> 'analysed' AND {_equal("outcome", "outcome")} AND {_holding("path", "path")}
        ORDER BY outcome, path, variant""",  # noqa: S608 - constants
        (_OUTCOME, _PATH),
    ),
    _query(
        "outliers",
        "Templates with an error or a warning, or with flags that few others have, worst first",
        f"""
        SELECT severity, path, files, errors + warnings AS findings, rule, line, text, sha256, profile
        FROM outliers
        WHERE {_equal("severity", "severity")} AND {_equal("rule", "rule")} AND {_holding("path", "path")}
        ORDER BY CASE severity WHEN 'error' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END,
                 CASE WHEN SUBSTR(rule, 1, 7) IN ('overcla', 'undercl', 'effort-') THEN 0 ELSE 1 END,
                 files DESC, errors DESC, warnings DESC, path, sha256, profile""",  # noqa: S608 - constants
        (_SEVERITY, Parameter("rule", "Only those whose worst finding is of this rule.", "effort-rejected"), _PATH),
    ),
    _query(
        "disagreements",
        "Where what llama.cpp claims of a template is not what its output shows, and why",
        f"""
        SELECT observations.capability,
               CASE observations.agreement WHEN 'overclaims' THEN 'yes' ELSE 'no' END AS claimed,
               CASE observations.agreement WHEN 'overclaims' THEN 'no' ELSE 'yes' END AS really,
               observations.reason, observations.error_line AS line, held.files, held.path, held.sha256,
               analyses.profile
        FROM observations
        {_HELD.format("observations")}
          AND observations.agreement <> 'agrees'
          AND {_equal("observations.capability", "capability")}
        ORDER BY observations.capability, claimed DESC, held.files DESC, held.path, held.sha256, analyses.profile""",  # noqa: S608 - constants
        (Parameter("capability", "Only this capability.", "system_role", CAPABILITIES),),
    ),
    _query(
        "efforts",
        "What each reasoning effort does, over templates; inert: accepted, but alike for every effort",
        f"""
        SELECT analyses.profile, efforts.word, COUNT(*) AS templates,
               SUM(CASE WHEN efforts.outcome = 'accepted' THEN 1 ELSE 0 END) AS accepted,
               SUM(CASE WHEN efforts.outcome = 'accepted' AND tried.outputs = 1 THEN 1 ELSE 0 END) AS inert,
               SUM(CASE WHEN efforts.outcome = 'accepted' AND efforts.equals_unset THEN 1 ELSE 0 END) AS as_unset,
               SUM(CASE WHEN efforts.prints_word THEN 1 ELSE 0 END) AS prints_word,
               SUM(CASE WHEN efforts.outcome = 'raises' THEN 1 ELSE 0 END) AS raises
        FROM efforts
        JOIN (SELECT analysis_id, COUNT(DISTINCT group_number) AS outputs FROM efforts GROUP BY analysis_id) AS tried
          ON tried.analysis_id = efforts.analysis_id
        {_HELD.format("efforts")}
          AND {_equal("analyses.profile", "profile")}
        GROUP BY analyses.profile, efforts.word
        ORDER BY analyses.profile, CASE WHEN efforts.word IS NULL THEN 0 ELSE 1 END, templates DESC,
                 MIN(efforts.position), efforts.word""",  # noqa: S608 - constants
        (_PROFILE,),
    ),
    _query(
        "effort",
        "What each template does with a reasoning effort; a group is of words that give one output",
        f"""
        SELECT efforts.word, efforts.outcome, held.path, held.files, efforts.message, efforts.line,
               efforts.group_number, efforts.equals_unset, efforts.prints_word, held.sha256, analyses.profile
        FROM efforts
        {_HELD.format("efforts")}
          AND {_equal("efforts.word", "word")}
          AND {_equal("efforts.outcome", "outcome")}
        ORDER BY CASE WHEN efforts.word IS NULL THEN 0 ELSE 1 END, efforts.word, efforts.outcome DESC,
                 held.files DESC, held.path, held.sha256, analyses.profile""",  # noqa: S608 - constants
        (
            Parameter("word", "Only this effort.", "high"),
            Parameter("outcome", "Only where it is accepted, or where it raises.", "raises", ("accepted", "raises")),
        ),
    ),
    _query(
        "behaviours",
        "What templates do beyond their flags: how many templates and files have each outcome",
        f"""
        SELECT behaviours.key, behaviours.outcome, COUNT(DISTINCT held.template_id) AS templates,
               COUNT(DISTINCT held.model_file_id) AS files, MIN(held.path) AS path, analyses.profile
        FROM behaviours
        JOIN analyses ON analyses.id = behaviours.analysis_id
        JOIN latest_files AS held ON held.template_id = analyses.template_id
        WHERE analyses.id IN ({_NEWEST})
          AND {_equal("behaviours.key", "key")}
        GROUP BY analyses.profile, behaviours.key, behaviours.outcome
        ORDER BY analyses.profile, MIN(behaviours.position), behaviours.key, templates DESC, behaviours.outcome""",  # noqa: S608 - constants
        (Parameter("key", "Only this behaviour.", "late_system"),),
    ),
    _query(
        "behaviour",
        "What each template does beyond its flags, with the detail",
        f"""
        SELECT behaviours.key, behaviours.outcome, held.path, held.files, behaviours.detail, behaviours.line,
               held.sha256, analyses.profile
        FROM behaviours
        {_HELD.format("behaviours")}
          AND {_equal("behaviours.key", "key")}
          AND {_equal("behaviours.outcome", "outcome")}
          AND {_beginning("held.sha256", "sha256")}
        ORDER BY behaviours.position, behaviours.key, behaviours.outcome, held.files DESC, held.path, held.sha256,
                 analyses.profile""",  # noqa: S608 - constants
        (
            Parameter("key", "Only this behaviour.", "late_system"),
            Parameter("outcome", "Only this outcome.", "raises"),
            _SHA256,
        ),
    ),
    _query(
        "not-starting",
        "Templates that keep llama-server from starting, how many files hold them, and how many it affects",
        # As `scanner.chat.selection`: without a default, a tool_use template that parses takes its place.
        f"""
        SELECT held.sha256, MIN(held.path) AS path, COUNT(DISTINCT held.model_file_id) AS files,
               COUNT(DISTINCT served.model_file_id) AS affected,
               COALESCE(analyses.start_error_line, analyses.parse_error_line) AS line,
               COALESCE(analyses.start_error_message, analyses.parse_error_message) AS reason
        FROM analyses
        JOIN latest_files AS held ON held.template_id = analyses.template_id AND held.profile = analyses.profile
        LEFT JOIN (SELECT model_file_id, MIN(variant) AS variant FROM latest_files
                   WHERE (variant = 'default' AND outcome <> 'no template')
                      OR (variant = 'tool_use' AND outcome <> 'not parseable')
                   GROUP BY model_file_id) AS served
          ON served.model_file_id = held.model_file_id AND served.variant = held.variant
        WHERE analyses.id IN ({_NEWEST})
          AND NOT analyses.server_starts
          AND {_holding("held.path", "path")}
        GROUP BY held.sha256, analyses.id, analyses.start_error_line, analyses.parse_error_line,
                 analyses.start_error_message, analyses.parse_error_message
        ORDER BY affected DESC, files DESC, path, held.sha256""",  # noqa: S608 - constants
        (_PATH,),
    ),
    _query(
        "findings",
        "Every finding of the latest files: of their templates, and of the files as a whole",
        f"""
        SELECT severity, rule, path, sha256, line, text, evidence
        FROM (SELECT findings.severity, findings.rule, held.path, held.sha256, findings.line, findings.text,
                     findings.evidence
              FROM findings
              JOIN analyses ON analyses.id = findings.analysis_id
              JOIN (SELECT template_id, sha256, profile, MIN(path) AS path FROM latest_files
                    WHERE template_id IS NOT NULL GROUP BY template_id, sha256, profile) AS held
                ON held.template_id = analyses.template_id AND held.profile = analyses.profile
              WHERE analyses.id IN ({_NEWEST})
              UNION ALL
              SELECT findings.severity, findings.rule, held.path, NULL, findings.line, findings.text,
                     findings.evidence
              FROM findings
              JOIN (SELECT DISTINCT model_file_id, scan_id, path FROM latest_files) AS held
                ON held.model_file_id = findings.model_file_id AND held.scan_id = findings.scan_id) AS found
        WHERE {_equal("rule", "rule")}
          AND {_equal("severity", "severity")}
          AND {_holding("path", "path")}
          AND {_beginning("sha256", "sha256")}
        ORDER BY 1, 2, 3, 4, 5, 6""",  # noqa: S608 - constants
        (_RULE, _SEVERITY, _PATH, _SHA256),
    ),
    _query(
        "combinations",
        "The sets of flags that occur, commonest first",
        f"""
        SELECT COUNT(DISTINCT template_id) AS templates, COUNT(DISTINCT model_file_id) AS files,
               MIN(path) AS path, profile,
               {_CLAIMS}
        FROM latest_files
        WHERE COALESCE({_CLAIMS}) IS NOT NULL
          AND {_equal("profile", "profile")}
        GROUP BY profile,
               {_CLAIMS}
        ORDER BY templates DESC, files DESC, path, profile""",  # noqa: S608 - constants
        (_PROFILE,),
    ),
    _query(
        "builds",
        "Templates whose flags depend on the llama.cpp build (scan with --profile all), one row for each profile",
        f"""
        SELECT sha256, profile, MIN(path) AS path,
               {_CLAIMS}
        FROM (SELECT held.sha256, analyses.profile, held.path,
               {_listed(_FLAGS, "analyses.")}
              FROM analyses
              JOIN (SELECT template_id, sha256, MIN(path) AS path FROM latest_files
                    WHERE template_id IS NOT NULL GROUP BY template_id, sha256) AS held
                ON held.template_id = analyses.template_id
              WHERE analyses.id IN ({_NEWEST})
                AND analyses.template_id IN (
                    SELECT template_id FROM analyses
                    WHERE id IN ({_NEWEST})
                    GROUP BY template_id
                    HAVING {_DIFFERING})) AS told
        WHERE {_beginning("sha256", "sha256")}
        GROUP BY sha256, profile,
               {_CLAIMS}
        ORDER BY path, sha256, profile DESC""",  # noqa: S608 - constants
        (_SHA256,),
    ),
    _query(
        "changes",
        "Templates that appeared, are gone or were replaced from one scan to the next; capscan diff tells more",
        # As the view `changes`, but for any scan: a view takes no parameters.
        """
        WITH chosen AS (
            SELECT id, sources, status FROM scans
            WHERE id = COALESCE(CAST(NULLIF(CAST(:scan AS TEXT), '') AS BIGINT),
                                (SELECT MAX(id) FROM scans WHERE status = 'finished'))
        ), before AS (
            SELECT MAX(scans.id) AS id FROM scans
            JOIN chosen ON scans.id < chosen.id AND scans.sources = chosen.sources
            WHERE scans.status = 'finished'
        ), holds AS (
            SELECT appearances.model_file_id, appearances.variant, appearances.template_id FROM appearances
            JOIN chosen ON chosen.id = appearances.scan_id
            WHERE appearances.template_id IS NOT NULL
        ), held AS (
            SELECT appearances.model_file_id, appearances.variant, appearances.template_id FROM appearances
            JOIN before ON before.id = appearances.scan_id
            WHERE appearances.template_id IS NOT NULL
        ), differing AS (
            SELECT CASE WHEN held.template_id IS NULL THEN 'appeared' ELSE 'replaced' END AS change,
                   holds.model_file_id, holds.variant, held.template_id AS old_template,
                   holds.template_id AS new_template
            FROM holds
            JOIN before ON before.id IS NOT NULL
            LEFT JOIN held ON held.model_file_id = holds.model_file_id AND held.variant = holds.variant
            WHERE held.template_id IS NULL OR held.template_id <> holds.template_id
            UNION ALL
            SELECT 'gone', held.model_file_id, held.variant, held.template_id, NULL
            FROM held
            CROSS JOIN chosen
            LEFT JOIN holds ON holds.model_file_id = held.model_file_id AND holds.variant = held.variant
            WHERE holds.template_id IS NULL
              AND (chosen.status = 'finished' OR held.model_file_id IN (
                   SELECT model_file_id FROM appearances WHERE scan_id = chosen.id))
        )
        SELECT differing.change, model_files.path, differing.variant, old_templates.sha256 AS old_sha256,
               new_templates.sha256 AS new_sha256
        FROM differing
        JOIN model_files ON model_files.id = differing.model_file_id
        LEFT JOIN templates AS old_templates ON old_templates.id = differing.old_template
        LEFT JOIN templates AS new_templates ON new_templates.id = differing.new_template
        ORDER BY model_files.path, differing.variant, differing.change""",
        (
            Parameter(
                "scan",
                "The scan that is compared with the finished one of the same sources before it; else the newest "
                "finished one is.",
                "7",
                number=True,
            ),
        ),
    ),
    _query(
        "scans",
        "All scans, newest first",
        f"""
        SELECT id, started_at, finished_at, status, files_seen, files_unchanged, capscan_version, profile, sources
        FROM scans
        WHERE {_equal("status", "status")}
        ORDER BY id DESC""",  # noqa: S608 - constants
        (Parameter("status", "Only scans of this status.", "finished", ("running", "finished", "interrupted")),),
    ),
)
"""The queries, by name."""


def find(name: str) -> NamedQuery:
    """The query of a name. Raises UsageError for another."""
    query = NAMED.get(name)
    if query is None:
        raise UsageError(f"there is no query {name!r}: choose one of {', '.join(sorted(NAMED))}")
    return query
