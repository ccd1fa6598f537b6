"""The command line: commands, options, exit codes. It composes the rest; nobody imports it.

Exit codes: 0 done · 1 findings at or above `--fail-on` · 2 usage · 3 could not run or finish · 130 interrupted.
"""

from __future__ import annotations

import io
import json
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from scanner import __version__, answers
from scanner.chat.selection import DEFAULT
from scanner.commands.db import db
from scanner.commands.diff import diff
from scanner.commands.export import export
from scanner.commands.options import (
    DEFAULT_DATABASE,
    EXIT_FAILED,
    EXIT_FINDINGS,
    EXIT_INTERRUPTED,
    EXIT_USAGE,
    Finite,
    database_option,
    format_option,
    model_files,
    now_option,
    print_lines,
    profile_option,
    profiles_of,
)
from scanner.commands.query import query
from scanner.commands.render import render
from scanner.commands.report import report, write_report_of
from scanner.commands.scan import scan
from scanner.commands.sources import sources
from scanner.console import rows_as, visible
from scanner.errors import CapscanError, UsageError
from scanner.explain import explain_answer
from scanner.export import template_document
from scanner.judge import ALL_RULES
from scanner.pipeline import analyse_profiles
from scanner.results import GO, GO_TEMPLATE, Outcome, Verdict, Verification
from scanner.verify import (
    Held,
    Server,
    ask_server,
    held_by,
    judge_server,
    runs,
    server_document,
    server_lines,
    verify_templates,
)

if TYPE_CHECKING:
    from sqlalchemy import Engine

DEMO_DIRECTORY = "capscan-demo"

behaviours_option = click.option("--behaviours", is_flag=True, help="Show all behaviours, also the usual ones.")


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="capscan")
def cli() -> None:
    """What llama.cpp will believe about the chat templates of your models, and why."""


# -- probe -------------------------------------------------------------------------------------------------------------


@cli.command()
@click.argument("paths", nargs=-1, required=True, metavar="TEMPLATE|FILE|-...")
@profile_option
@now_option
@format_option("table", "json", "jsonl")
@click.option("--trace", metavar="PROBE|CAPABILITY", help="Show how one probe, or our own conversation, ran.")
@click.option("--explain", metavar="CAPABILITY|all", help="Explain a flag in words.")
@behaviours_option
@click.option("--variant", help="Only this variant (default, tool_use, ...).")
def probe(
    paths: tuple[str, ...],
    profile: str,
    clock: float | None,
    form: str,
    trace: str | None,
    explain: str | None,
    behaviours: bool,
    variant: str | None,
) -> int:
    """Work out the flags of templates, without a database.

    Takes template files, GGUF files, model directories, or - for a template on standard input.
    """
    failed = False
    documents = []
    for result in model_files(paths):
        if not result.templates:
            failed = failed or not (result.outcome is Outcome.NO_TEMPLATE or result.metadata.role)
            click.echo(visible(f"{result.file.path}: {result.outcome}: {result.reason}"), err=True)
            continue
        unparseable = set()
        for template in result.templates:
            if template.kind == GO:
                click.echo(visible(f"{result.file.path} ({template.variant}): skipped: {GO_TEMPLATE}"), err=True)
                continue
            if variant is not None and template.variant != variant:
                continue
            analyses = analyse_profiles(template.source, profiles_of(profile), now=clock)
            if analyses[0].outcome is Outcome.NOT_PARSEABLE:
                unparseable.add(template.variant)
            if trace is not None:
                print_lines(answers.trace_of(analyses[0], trace))
            elif explain is not None:
                print_lines(explain_answer(analyses[0], explain))
            elif form == "table":
                print_lines(answers.template_answer(template, result.file.path, analyses[0], everything=behaviours))
                print_lines(answers.builds_answer(analyses))
            else:
                documents += [template_document(template, result.file.path, analysis) for analysis in analyses]
        if form == "jsonl":
            for document in documents:
                click.echo(json.dumps(document, ensure_ascii=False))
            documents.clear()
        line = answers.selection_line(result, unparseable)
        if form == "table" and trace is None and explain is None:
            print_lines(iter([line] if line else []))
            print_lines(map(visible, answers.remarks_on_file(result)))
    if form == "json":
        click.echo(json.dumps(documents, ensure_ascii=False, indent=2))
    return EXIT_FAILED if failed else 0


# -- verify ------------------------------------------------------------------------------------------------------------


@cli.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@database_option
@click.option("--server", metavar="URL", help="A running llama-server to check instead.")
@click.option("--api-key", envvar="LLAMA_API_KEY", help="Its API key, if it wants one. Also $LLAMA_API_KEY.")
@click.option("--workers", type=click.IntRange(1, 64), default=2, show_default=True, help="Engines at once.")
@click.option("--timeout", type=Finite(min=0.1), default=60.0, show_default=True, help="Seconds for one answer.")
@format_option("table", "json")
def verify(
    paths: tuple[str, ...],
    database: str,
    server: str | None,
    api_key: str | None,
    workers: int,
    timeout: float,
    form: str,
) -> int:
    """Hold our flags against the real llama.cpp.

    Without --server, the templates of the paths, or of the database, are put to the engine of the extra `oracle`, and
    what it says is kept in the database. With --server, a running server's own template and flags are checked, and
    whether it runs the template of PATH, or one that the database knows. Exit code 1 on any difference.
    """
    if server is not None:
        return _verify_server(server, api_key, timeout, paths, database, form)
    chosen = _templates_to_verify(paths, database)
    results = list(verify_templates(chosen, workers=workers, timeout=timeout))
    _keep_verifications(database, results)
    if form == "json":
        click.echo(json.dumps([answers.verification_document(result) for result in results], indent=2))
    else:
        print_lines(answers.verification_lines(results))
    return EXIT_FINDINGS if any(result.verdict is Verdict.DIFFERENT for result in results) else 0


def _templates_to_verify(paths: Sequence[str], database: str) -> list[tuple[str, bytes]]:
    """Each template once, by SHA-256."""
    if paths:
        held = [template for result in model_files(paths) for template in result.jinja]
        return sorted({template.sha256: template.source for template in held}.items())
    from scanner.store import queries
    from scanner.store.migrate import ensure_current
    from scanner.store.session import open_database

    engine = open_database(database)
    ensure_current(engine, create=False)
    return list(queries.template_sources(engine))


def _keep_verifications(database: str, results: Sequence[Verification]) -> None:
    """In the database, if there is one; what it does not hold is only printed."""
    from scanner.scan import utc_now
    from scanner.store.writer import store_verifications

    engine = _database_if_any(database)
    if engine is not None:
        store_verifications(engine, results, now=utc_now(), version=__version__)


def _database_if_any(database: str) -> Engine | None:
    """The database, where there is one that this Capscan can read."""
    from scanner.store.migrate import ensure_current
    from scanner.store.session import open_database

    engine = open_database(database)
    try:
        ensure_current(engine, create=False)
    except CapscanError:
        return None
    return engine


def _verify_server(
    url: str, api_key: str | None, timeout: float, paths: Sequence[str], database: str, form: str
) -> int:
    verdict = judge_server(ask_server(url, api_key=api_key, timeout=timeout))
    held = _known_as(verdict.server, paths, database)
    if form == "json":
        click.echo(json.dumps(server_document(verdict, held), indent=2))
    else:
        print_lines(server_lines(verdict, held, asked=bool(paths)))
    another = bool(paths) and not any(found.runs for found in held)
    return EXIT_FINDINGS if verdict.differences or another else 0


def _known_as(server: Server, paths: Sequence[str], database: str) -> list[Held]:
    """The model files given, or those of the database, and whether the server runs their template."""
    from scanner.store import queries

    if paths:
        return [held for result in model_files(paths) for held in held_by(server, result)]
    engine = _database_if_any(database)
    if engine is None:
        return []
    running = [sha256 for sha256, source in queries.template_sources(engine) if runs(server, source)]
    return [
        Held(appearance.path, appearance.variant, True)
        for sha256 in running
        for appearance in queries.template_detail(engine, sha256).appearances
        if appearance.variant == DEFAULT
    ]


# -- asking the database -----------------------------------------------------------------------------------------------


@cli.command()
@click.argument("name", metavar="FILE|TEMPLATE")
@database_option
@behaviours_option
@format_option("table", "json")
def show(name: str, database: str, behaviours: bool, form: str) -> int:
    """Show one model file (its path, the end of it, or its name in a store) or one template (the start of its
    SHA-256)."""
    from scanner.store.migrate import ensure_current
    from scanner.store.session import open_database
    from scanner.summary import show_file, show_template

    engine = open_database(database)
    ensure_current(engine, create=False)
    if _is_hash(name):
        print_lines(show_template(engine, name, form, everything=behaviours))
    else:
        path = str(Path(name).absolute()) if Path(name).exists() else name
        print_lines(show_file(engine, path, form, everything=behaviours))
    return 0


def _is_hash(name: str) -> bool:
    return 4 <= len(name) <= 64 and set(name.lower()) <= set("0123456789abcdef") and not Path(name).exists()


@cli.command()
@click.argument("slug", required=False)
@format_option("table", "json")
def rules(slug: str | None, form: str) -> int:
    """List the rules behind the findings, or explain one."""
    if slug is None:
        click.echo(rows_as(form, ["severity", "rule", "meaning"], [(r.severity, r.slug, r.meaning) for r in ALL_RULES]))
        return 0
    rule = next((rule for rule in ALL_RULES if rule.slug == slug), None)
    if rule is None:
        raise UsageError(f"there is no rule {slug!r}; capscan rules lists them")
    print_lines(answers.rule_answer(rule))
    return 0


# -- demo --------------------------------------------------------------------------------------------------------------


@cli.command()
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path), default=Path(DEMO_DIRECTORY))
@click.pass_context
def demo(context: click.Context, directory: Path) -> int:
    """Make a small collection of models, scan it, and write its report into DIRECTORY."""
    from scanner.demo.collection import make_collection

    models = directory / "models"
    try:
        models.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{directory}: {error.strerror}") from error
    make_collection(models)
    database = str(directory / DEFAULT_DATABASE)
    click.echo(f"$ capscan scan {models} --db {database}")
    context.invoke(scan, paths=(str(models),), database=database)
    click.echo(f"\n$ capscan report --db {database} -o {directory / 'report'}")
    index = write_report_of(database, directory / "report")
    click.echo(f"\nOpen {index} in a browser. Next: capscan query outliers --db {database}")
    return 0


cli.add_command(db)
cli.add_command(diff)
cli.add_command(export)
cli.add_command(query)
cli.add_command(render)
cli.add_command(report)
cli.add_command(scan)
cli.add_command(sources)


# -- running -----------------------------------------------------------------------------------------------------------


def run(arguments: Sequence[str]) -> int:
    """Run the command line and give its exit code; every error is one line on standard error."""
    try:
        # Not through click's own main, which turns a closed pipe into a failure.
        with cli.make_context("capscan", list(arguments)) as context:
            return int(cli.invoke(context) or 0)
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        error.show()
        return EXIT_USAGE
    except (click.Abort, KeyboardInterrupt):
        click.echo("capscan: interrupted; what was done is kept", err=True)
        return EXIT_INTERRUPTED
    except UsageError as error:
        click.echo(f"capscan: {visible(str(error))}", err=True)
        return EXIT_USAGE
    except (CapscanError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            # Whoever read our output has had enough; nothing more may be written, not even at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        click.echo(f"capscan: {visible(str(error))}", err=True)
        return EXIT_FAILED


def main() -> NoReturn:
    """The entry point of the `capscan` command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # What goes into a file or a program is UTF-8; a terminal that cannot show a character gets its escape.
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="backslashreplace")
    try:
        code = run(sys.argv[1:])
    except Exception:
        # A fault of ours. Python's own exit code would say that there are findings.
        traceback.print_exc()
        code = EXIT_FAILED
    sys.exit(code)
