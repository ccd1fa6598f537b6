"""The command line: commands, options, exit codes. It composes the rest; nobody imports it.

Exit codes: 0 done · 1 findings at or above `--fail-on` · 2 usage · 3 could not run or finish · 130 interrupted.
"""

from __future__ import annotations

import json
import os
import sys
import time
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn, TypeVar

import click

from scanner import __version__, answers
from scanner.console import Bar, rows_as, visible
from scanner.discover import discover
from scanner.errors import CapscanError, UsageError
from scanner.export import template_document
from scanner.extract import extract
from scanner.judge import ALL_RULES
from scanner.pipeline import analyse_template
from scanner.probe.profiles import CURRENT, PROFILES
from scanner.results import (
    ChatTemplate,
    FileResult,
    ModelFile,
    Outcome,
    PassedOver,
    Severity,
    SourceKind,
    TemplateResult,
)

Command = TypeVar("Command", bound=Callable[..., object])

EXIT_FINDINGS = 1
EXIT_USAGE = 2
EXIT_FAILED = 3
EXIT_INTERRUPTED = 130

DEFAULT_DATABASE = "capscan.db"
DEMO_DIRECTORY = "capscan-demo"

database_option = click.option(
    "--db",
    "database",
    envvar="CAPSCAN_DB",
    default=DEFAULT_DATABASE,
    show_default=True,
    metavar="URL|FILE",
    help="Database: a file, or an SQLAlchemy URL. Also $CAPSCAN_DB.",
)
profile_option = click.option(
    "--profile",
    type=click.Choice(sorted(PROFILES)),
    default=CURRENT.name,
    show_default=True,
    help="Engine profile: the llama.cpp build whose flags are computed.",
)


def format_option(*forms: str) -> Callable[[Command], Command]:
    """`--format` with these choices, the first of them the default."""
    return click.option("--format", "form", type=click.Choice(forms), default=forms[0], show_default=True)


class Clock(click.ParamType[float]):
    """`--now`: seconds since the epoch, or an ISO date and time (UTC where it names no zone)."""

    name = "EPOCH|ISO"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The time in seconds since the epoch."""
        if isinstance(value, float):
            return value
        text = str(value)
        try:
            return float(text)
        except ValueError:
            pass
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            self.fail(f"{text!r} is neither seconds since the epoch nor an ISO date and time", param, ctx)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


now_option = click.option("--now", "clock", type=Clock(), help="What the templates take for the present time.")


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
@click.option("--trace", metavar="PROBE", help="Show how one probe ran.")
@click.option("--variant", help="Only this variant (default, tool_use, ...).")
def probe(
    paths: tuple[str, ...], profile: str, clock: float | None, form: str, trace: str | None, variant: str | None
) -> int:
    """Work out the flags of templates, without a database.

    Takes template files, GGUF files, model directories, or - for a template on standard input.
    """
    failed = False
    documents = []
    for result in _model_files(paths):
        if not result.templates:
            failed = failed or result.outcome is not Outcome.NO_TEMPLATE
            click.echo(f"{result.file.path}: {result.outcome}: {result.reason}", err=True)
            continue
        line = answers.selection_line(result)
        for template in result.templates:
            if variant is not None and template.variant != variant:
                continue
            analysis = analyse_template(template.source, profile=profile, now=clock)
            if trace is not None:
                _print_trace(analysis, trace)
            elif form == "table":
                _print_lines(answers.template_answer(template, result.file.path, analysis))
            elif form == "jsonl":
                click.echo(json.dumps(template_document(template, result.file.path, analysis), ensure_ascii=False))
            else:
                documents.append(template_document(template, result.file.path, analysis))
        if form == "table" and line and trace is None:
            click.echo(line)
    if form == "json":
        click.echo(json.dumps(documents, ensure_ascii=False, indent=2))
    return EXIT_FAILED if failed else 0


def _model_files(paths: Sequence[str]) -> Iterator[FileResult]:
    """Each path's model files, opened, in the order given."""
    for path in paths:
        if path == "-":
            yield _standard_input()
            continue
        found = False
        for item in discover([path]):
            if isinstance(item, PassedOver):
                raise UsageError(f"{item.path}: {item.reason}")
            found = True
            yield extract(item)
        if not found:
            raise UsageError(f"{path}: there is no template and no model file in it")


def _standard_input() -> FileResult:
    source = sys.stdin.buffer.read()
    file = ModelFile("-", "-", SourceKind.JINJA, len(source), 0, "")
    return FileResult(file, Outcome.ANALYSED, (ChatTemplate("default", source, "standard input"),))


def _print_trace(analysis: TemplateResult, name: str) -> None:
    run = next((run for run in analysis.probes if run.name == name or run.name.startswith(name)), None)
    if run is None:
        ran = ", ".join(run.name for run in analysis.probes) or "none"
        raise UsageError(f"there was no probe {name}; those that ran: {ran}")
    _print_lines(answers.trace_answer(run))


def _print_lines(lines: Iterator[str]) -> None:
    for line in lines:
        click.echo(line)


# -- scan --------------------------------------------------------------------------------------------------------------


@cli.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@database_option
@profile_option
@now_option
@format_option("table", "json")
@click.option("--workers", type=click.IntRange(1, 256), default=os.cpu_count() or 1, show_default=True)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.1),
    default=30.0,
    show_default=True,
    help="Seconds for one file or template.",
)
@click.option("--memory", type=click.IntRange(min=256), default=2048, show_default=True, help="MiB for one worker.")
@click.option(
    "--fail-on",
    "fail_on",
    metavar="error|warning|note|RULE",
    help="Exit with 1 on findings of this severity or worse, or of this rule.",
)
@click.option("--quiet", is_flag=True, help="No progress bar.")
def scan(
    paths: tuple[str, ...],
    database: str,
    profile: str,
    clock: float | None,
    form: str,
    workers: int,
    timeout: float,
    memory: int,
    fail_on: str | None,
    quiet: bool,
) -> int:
    """Scan files and folders into the database and say what was found.

    Files that have not changed since the last scan are not opened again.
    """
    from scanner.pool import TaskLimits
    from scanner.scan import ScanOptions, run_scan
    from scanner.store.session import open_database

    _check_fail_on(fail_on)
    options = ScanOptions(workers, profile, clock, TaskLimits(timeout, memory * 1024**2))
    engine = open_database(database)
    bar = Bar(quiet=quiet)
    started = time.perf_counter()
    try:
        number = run_scan(engine, paths, options, progress=bar)
    finally:
        bar.close()
    _print_summary(database, number, form, time.perf_counter() - started)
    return EXIT_FINDINGS if fail_on and _findings_at(database, fail_on) else 0


def _check_fail_on(fail_on: str | None) -> None:
    known = {*Severity, *[rule.slug for rule in ALL_RULES]}
    if fail_on is not None and fail_on not in known:
        raise UsageError(f"--fail-on {fail_on}: neither error, warning, note nor a rule (capscan rules lists them)")


def _findings_at(database: str, fail_on: str) -> bool:
    from scanner.store import queries
    from scanner.store.session import open_database

    worst = list(Severity)
    accepted = [str(level) for level in worst[: worst.index(Severity(fail_on)) + 1]] if fail_on in worst else []
    rows = queries.run_named(open_database(database), "findings")
    severity, rule = rows.columns.index("severity"), rows.columns.index("rule")
    return any(row[severity] in accepted or row[rule] == fail_on for row in rows.rows)


def _print_summary(database: str, number: int, form: str, seconds: float) -> None:
    from scanner.store.session import open_database
    from scanner.summary import read_summary, summary_document, summary_lines

    summary = read_summary(open_database(database), number)
    if form == "json":
        click.echo(json.dumps(summary_document(summary), ensure_ascii=False, indent=2))
    else:
        _print_lines(summary_lines(summary, seconds, _database_hint(database)))


def _database_hint(database: str) -> str:
    """What has to be added to the next command for the same database."""
    return "" if database == DEFAULT_DATABASE or os.environ.get("CAPSCAN_DB") == database else f" --db {database}"


# -- asking the database -----------------------------------------------------------------------------------------------


@cli.command()
@click.argument("name", metavar="FILE|TEMPLATE")
@database_option
@format_option("table", "json")
def show(name: str, database: str, form: str) -> int:
    """Show one model file (its path, or the end of it) or one template (the start of its SHA-256)."""
    from scanner.store.migrate import ensure_current
    from scanner.store.session import open_database
    from scanner.summary import show_file, show_template

    engine = open_database(database)
    ensure_current(engine, create=False)
    if _is_hash(name):
        _print_lines(show_template(engine, name, form))
    else:
        _print_lines(show_file(engine, str(Path(name).absolute()) if Path(name).exists() else name, form))
    return 0


def _is_hash(name: str) -> bool:
    return 4 <= len(name) <= 64 and set(name.lower()) <= set("0123456789abcdef") and not Path(name).exists()


@cli.command()
@click.argument("name", required=False)
@database_option
@click.option("--sql", help="A query of your own; it can read and nothing else.")
@click.option("--list", "listing", is_flag=True, help="List the named queries.")
@click.option(
    "--seconds", type=click.FloatRange(min=0.1), default=60.0, show_default=True, help="Stop the query after this time."
)
@format_option("table", "json", "csv")
def query(name: str | None, database: str, sql: str | None, listing: bool, seconds: float, form: str) -> int:
    """Ask the database: a named query, or SQL."""
    from scanner.store import queries
    from scanner.store.migrate import ensure_current
    from scanner.store.session import open_database

    if listing or (name is None and sql is None):
        named = [(query.name, query.description) for query in queries.NAMED.values()]
        click.echo(rows_as(form, ["name", "what it answers"], named))
        return 0
    if name is not None and sql is not None:
        raise UsageError("give the name of a query or --sql, not both")
    engine = open_database(database)
    ensure_current(engine, create=False)
    answer = (
        queries.run_sql(engine, sql, seconds=seconds)
        if sql is not None
        else queries.run_named(engine, name or "", seconds=seconds)
    )
    rows = list(answer.rows)
    if form == "table":
        _print_lines(answers.query_answer(answer.columns, rows))
    else:
        click.echo(rows_as(form, answer.columns, rows))
    return 0


@cli.command()
@database_option
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("report"),
    show_default=True,
    help="Folder of the report.",
)
@click.option("--open", "opens", is_flag=True, help="Open it in a browser.")
def report(database: str, output: Path, opens: bool) -> int:
    """Write the report as static pages."""
    index = _write_report(database, output)
    if opens:
        webbrowser.open(index.absolute().as_uri())
    return 0


def _write_report(database: str, output: Path) -> Path:
    from reports import write_report
    from scanner.scan import utc_now
    from scanner.store.migrate import ensure_current
    from scanner.store.session import open_database

    engine = open_database(database)
    ensure_current(engine, create=False)
    written = write_report(engine, output, now=utc_now)
    click.echo(f"{written.pages} pages ({written.unchanged} unchanged), {written.bytes / 1e6:.1f} MB: {written.index}")
    return written.index


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
    click.echo(f"{rule.slug} ({rule.severity})\n{rule.meaning}\nWhat to do: {rule.remedy}")
    return 0


@cli.group()
def db() -> None:
    """Look after the database's schema."""


@db.command()
@database_option
def upgrade(database: str) -> int:
    """Create the database, or bring it to this Capscan's schema."""
    from scanner.store.migrate import current, ensure_current
    from scanner.store.session import database_name, open_database

    engine = open_database(database)
    ensure_current(engine, create=True)
    click.echo(f"{database_name(engine)}: revision {current(engine)}")
    return 0


@db.command(name="current")
@database_option
def current_revision(database: str) -> int:
    """Show the schema revision of the database, and the one this Capscan works with."""
    from scanner.store.migrate import current, head
    from scanner.store.session import database_name, open_database

    engine = open_database(database)
    found = current(engine)
    ours = head()
    note = "" if found == ours else f" (this Capscan works with {ours}: capscan db upgrade{_database_hint(database)})"
    click.echo(f"{database_name(engine)}: revision {found or 'none'}{note}")
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
    index = _write_report(database, directory / "report")
    click.echo(f"\nOpen {index} in a browser. Next: capscan query outliers --db {database}")
    return 0


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
    sys.exit(run(sys.argv[1:]))
