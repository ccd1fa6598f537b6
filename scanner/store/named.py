"""The queries that `capscan query` knows by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scanner.results import CAPABILITIES

_FLAGS = tuple(f"supports_{name}" for name in CAPABILITIES)
_OBSERVED = tuple(f"observed_{name}" for name in CAPABILITIES)


@dataclass(frozen=True, slots=True)
class NamedQuery:
    """A query with a name, for `capscan query NAME`: portable SQL without parameters."""

    name: str
    description: str
    sql: str


def _named(*entries: tuple[str, str, str]) -> Mapping[str, NamedQuery]:
    return {name: NamedQuery(name, description, " ".join(sql.split())) for name, description, sql in entries}


_NEWEST_HELD = """JOIN analyses ON analyses.id = {}.analysis_id
        JOIN (SELECT template_id, sha256, MIN(path) AS path, COUNT(DISTINCT model_file_id) AS files
              FROM latest_files WHERE template_id IS NOT NULL GROUP BY template_id, sha256) AS held
          ON held.template_id = analyses.template_id
        WHERE analyses.id IN (SELECT MAX(id) FROM analyses GROUP BY template_id, profile)"""
"""Ties the rows of an analysis's table to the templates of the latest files."""

NAMED: Mapping[str, NamedQuery] = _named(
    (
        "files",
        "Every variant of every model file, with what llama.cpp claims of it and what is really true",
        "SELECT path, variant, outcome, reason, architecture, file_type, quantized_by, sha256, "  # noqa: S608 - constants
        f"{', '.join((*_FLAGS, *_OBSERVED))} "
        "FROM latest_files ORDER BY path, variant",
    ),
    (
        "templates",
        "Every template, how many files hold it, what llama.cpp claims of it and what is really true",
        f"""SELECT sha256, profile, outcome, COUNT(DISTINCT model_file_id) AS files, MIN(path) AS path,
        {", ".join((*_FLAGS, *_OBSERVED))}
        FROM latest_files WHERE sha256 IS NOT NULL
        GROUP BY sha256, profile, outcome, {", ".join((*_FLAGS, *_OBSERVED))} ORDER BY files DESC, sha256, profile""",  # noqa: S608 - constants
    ),
    (
        "flags",
        "How many templates and files claim each capability, really have it, and claim too much or too little",
        """SELECT capability, templates_analysed AS templates, templates_claiming AS claimed,
        templates_observed AS really, templates_overclaiming AS over, templates_underclaiming AS under,
        files_analysed AS files, files_claiming AS files_claimed, files_observed AS files_really, profile
        FROM flag_distribution ORDER BY profile, templates_claiming DESC, capability""",
    ),
    (
        "failures",
        "Everything that is not analysed, and why",
        """SELECT outcome, path, variant, reason, byte_offset, expected, sha256
        FROM latest_files WHERE outcome <> 'analysed' ORDER BY outcome, path, variant""",
    ),
    (
        "outliers",
        "Templates with an error or a warning, or with flags that few others have, worst first",
        """SELECT severity, path, files, errors + warnings AS findings, rule, line, text, sha256, profile
        FROM outliers
        ORDER BY CASE severity WHEN 'error' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END,
        CASE WHEN SUBSTR(rule, 1, 7) IN ('overcla', 'undercl', 'effort-') THEN 0 ELSE 1 END, files DESC, errors DESC,
                 warnings DESC, path, sha256, profile""",
    ),
    (
        "disagreements",
        "Where what llama.cpp claims of a template is not what its output shows, and why",
        f"""SELECT observations.capability,
        CASE observations.agreement WHEN 'overclaims' THEN 'yes' ELSE 'no' END AS claimed,
        CASE observations.agreement WHEN 'overclaims' THEN 'no' ELSE 'yes' END AS really,
        observations.reason, observations.error_line AS line, held.files, held.path, held.sha256, analyses.profile
        FROM observations
        {_NEWEST_HELD.format("observations")}
        AND observations.agreement <> 'agrees'
        ORDER BY observations.capability, claimed DESC, held.files DESC, held.path, held.sha256, analyses.profile""",  # noqa: S608 - constants
    ),
    (
        "efforts",
        "What each reasoning effort does, over templates; inert: accepted, but alike for every effort",
        f"""SELECT analyses.profile, efforts.word, COUNT(*) AS templates,
        SUM(CASE WHEN efforts.outcome = 'accepted' THEN 1 ELSE 0 END) AS accepted,
        SUM(CASE WHEN efforts.outcome = 'accepted' AND tried.outputs = 1 THEN 1 ELSE 0 END) AS inert,
        SUM(CASE WHEN efforts.outcome = 'accepted' AND efforts.equals_unset THEN 1 ELSE 0 END) AS as_unset,
        SUM(CASE WHEN efforts.prints_word THEN 1 ELSE 0 END) AS prints_word,
        SUM(CASE WHEN efforts.outcome = 'raises' THEN 1 ELSE 0 END) AS raises
        FROM efforts
        JOIN (SELECT analysis_id, COUNT(DISTINCT group_number) AS outputs FROM efforts GROUP BY analysis_id) AS tried
          ON tried.analysis_id = efforts.analysis_id
        {_NEWEST_HELD.format("efforts")}
        GROUP BY analyses.profile, efforts.word
        ORDER BY analyses.profile, CASE WHEN efforts.word IS NULL THEN 0 ELSE 1 END, templates DESC,
                 MIN(efforts.position), efforts.word""",  # noqa: S608 - constants
    ),
    (
        "behaviours",
        "What templates do beyond their flags: how many templates and files have each outcome",
        """SELECT behaviours.key, behaviours.outcome, COUNT(DISTINCT held.template_id) AS templates,
        COUNT(DISTINCT held.model_file_id) AS files, MIN(held.path) AS path, analyses.profile
        FROM behaviours
        JOIN analyses ON analyses.id = behaviours.analysis_id
        JOIN latest_files AS held ON held.template_id = analyses.template_id
        WHERE analyses.id IN (SELECT MAX(id) FROM analyses GROUP BY template_id, profile)
        GROUP BY analyses.profile, behaviours.key, behaviours.outcome
        ORDER BY analyses.profile, MIN(behaviours.position), behaviours.key, templates DESC, behaviours.outcome""",
    ),
    (
        "not-starting",
        "Templates that keep llama-server from starting, how many files hold them, and how many it affects",
        # As `scanner.chat.selection`: without a default, a tool_use template that parses takes its place.
        """SELECT held.sha256, MIN(held.path) AS path, COUNT(DISTINCT held.model_file_id) AS files,
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
        WHERE analyses.id IN (SELECT MAX(id) FROM analyses GROUP BY template_id, profile)
          AND NOT analyses.server_starts
        GROUP BY held.sha256, analyses.id, analyses.start_error_line, analyses.parse_error_line,
                 analyses.start_error_message, analyses.parse_error_message
        ORDER BY affected DESC, files DESC, path, held.sha256""",
    ),
    (
        "findings",
        "Every finding of the latest files: of their templates, and of the files as a whole",
        """SELECT findings.severity, findings.rule, held.path, held.sha256, findings.line, findings.text,
        findings.evidence
        FROM findings
        JOIN analyses ON analyses.id = findings.analysis_id
        JOIN (SELECT template_id, sha256, profile, MIN(path) AS path FROM latest_files
              WHERE template_id IS NOT NULL GROUP BY template_id, sha256, profile) AS held
          ON held.template_id = analyses.template_id AND held.profile = analyses.profile
        WHERE analyses.id IN (SELECT MAX(id) FROM analyses GROUP BY template_id, profile)
        UNION ALL
        SELECT findings.severity, findings.rule, held.path, NULL, findings.line, findings.text, findings.evidence
        FROM findings
        JOIN (SELECT DISTINCT model_file_id, scan_id, path FROM latest_files) AS held
          ON held.model_file_id = findings.model_file_id AND held.scan_id = findings.scan_id
        ORDER BY 1, 2, 3, 4, 5, 6""",
    ),
    (
        "combinations",
        "The sets of flags that occur, commonest first",
        f"""SELECT COUNT(DISTINCT template_id) AS templates, COUNT(DISTINCT model_file_id) AS files,
        MIN(path) AS path, profile, {", ".join(_FLAGS)}
        FROM latest_files WHERE {" OR ".join(f"{name} IS NOT NULL" for name in _FLAGS)}
        GROUP BY profile, {", ".join(_FLAGS)} ORDER BY templates DESC, files DESC, path, profile""",  # noqa: S608 - constants
    ),
    (
        "builds",
        "Templates whose flags depend on the llama.cpp build (scan with --profile all), one row for each profile",
        f"""SELECT sha256, profile, MIN(path) AS path, {", ".join(_FLAGS)}
        FROM (SELECT held.sha256, analyses.profile, held.path, {", ".join(f"analyses.{name}" for name in _FLAGS)}
              FROM analyses
              JOIN (SELECT template_id, sha256, MIN(path) AS path FROM latest_files
                    WHERE template_id IS NOT NULL GROUP BY template_id, sha256) AS held
                ON held.template_id = analyses.template_id
              WHERE analyses.id IN (SELECT MAX(id) FROM analyses GROUP BY template_id, profile)
                AND analyses.template_id IN (
                    SELECT template_id FROM analyses
                    WHERE id IN (SELECT MAX(id) FROM analyses GROUP BY template_id, profile)
                    GROUP BY template_id
                    HAVING {" OR ".join(f"COUNT(DISTINCT {name}) > 1" for name in _FLAGS)})) AS told
        GROUP BY sha256, profile, {", ".join(_FLAGS)} ORDER BY path, sha256, profile DESC""",  # noqa: S608 - constants
    ),
    (
        "changes",
        "Templates that appeared, are gone or were replaced between the two newest finished scans",
        "SELECT change, path, variant, old_sha256, new_sha256 FROM changes ORDER BY path, variant, change",
    ),
    (
        "scans",
        "All scans, newest first",
        """SELECT id, started_at, finished_at, status, files_seen, files_unchanged, capscan_version, profile, sources
        FROM scans ORDER BY id DESC""",
    ),
)
"""The queries that `capscan query` knows by name."""
