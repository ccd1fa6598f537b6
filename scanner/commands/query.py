"""`capscan query`: a named query with parameters, or SQL of a person's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from scanner.answers import query_answer
from scanner.commands.options import Finite, database_option, format_option, is_terminal, print_lines, write
from scanner.console import FORMS, rows_as, wrapped
from scanner.errors import UsageError

if TYPE_CHECKING:
    from scanner.store.named import NamedQuery
    from scanner.store.queries import Rows


@click.command()
@click.argument("name", required=False)
@click.argument("positional", nargs=-1, metavar="[KEY=VALUE]...")
@database_option
@click.option("--param", "params", multiple=True, metavar="KEY=VALUE", help="A parameter of the query; repeatable.")
@click.option("--sql", help="A query of your own; it can read and nothing else. A parameter in it is :KEY.")
@click.option("--list", "listing", is_flag=True, help="List the named queries and their parameters.")
@click.option("--show-sql", "showing", is_flag=True, help="Show the SQL of the query instead of running it.")
@click.option(
    "--seconds", type=Finite(min=0.1), default=60.0, show_default=True, help="Stop the query after this time."
)
@format_option(*FORMS)
def query(
    name: str | None,
    positional: tuple[str, ...],
    database: str,
    params: tuple[str, ...],
    sql: str | None,
    listing: bool,
    showing: bool,
    seconds: float,
    form: str,
) -> int:
    """Ask the database: a named query, or SQL.

    A named query takes parameters, all of which may be left out: capscan query findings severity=error
    """
    from scanner.store import queries

    if sql is not None and name is not None and "=" in name:
        # Without the name of a query, the first parameter stands in its place.
        positional, name = (name, *positional), None
    if listing or (name is None and sql is None):
        _print_list(list(queries.NAMED.values()), form)
        return 0
    if name is not None and sql is not None:
        raise UsageError("give the name of a query or --sql, not both")
    if showing:
        write(f"{sql if sql is not None else queries.find(name or '').sql}\n")
        return 0
    answer = _ask(database, name, sql, dict(_values((*positional, *params))), seconds)
    rows = list(answer.rows)
    if form == "table":
        print_lines(query_answer(answer.columns, rows))
    else:
        _print(answer.columns, rows, form)
    return 0


def _ask(database: str, name: str | None, sql: str | None, values: dict[str, str], seconds: float) -> Rows:
    from scanner.store import queries
    from scanner.store.migrate import ensure_current
    from scanner.store.session import open_database

    engine = open_database(database)
    if name is not None:
        # A wrong parameter is said before a missing database.
        queries.find(name).bound(values)
    ensure_current(engine, create=False)
    if sql is not None:
        return queries.run_sql(engine, sql, seconds=seconds, values=values)
    return queries.run_named(engine, name or "", values, seconds=seconds)


def _values(given: Sequence[str]) -> Iterator[tuple[str, str]]:
    for entry in given:
        key, sign, value = entry.partition("=")
        if not sign or not key.isidentifier() or not key.isascii():
            raise UsageError(f"{entry!r} is no parameter: write KEY=VALUE")
        yield key, value


def _print_list(named: Sequence[NamedQuery], form: str) -> None:
    if form == "table":
        print_lines(_list_lines(named))
    else:
        _print(LISTED, [_listed(each, form) for each in named], form)


def _list_lines(named: Sequence[NamedQuery]) -> Iterator[str]:
    """Each query in a line or two, with its parameters under it."""
    width = max(len(each.name) for each in named) + 2
    for each in named:
        yield from wrapped(each.name.ljust(width), each.description)
        if each.parameters:
            yield from wrapped(" " * width, " ".join([f"{parameter.name}=" for parameter in each.parameters]))


LISTED = ("name", "parameters", "what it answers")


def _listed(named: NamedQuery, form: str) -> tuple[str, object, str]:
    """The names of the parameters for a person, everything of them for a program."""
    if form in ("json", "jsonl"):
        return named.name, [asdict(parameter) for parameter in named.parameters], named.description
    return named.name, ", ".join([parameter.name for parameter in named.parameters]), named.description


def _print(headers: Sequence[str], rows: Sequence[Sequence[object]], form: str) -> None:
    text = rows_as(form, headers, rows, escaped=is_terminal())
    if form == "table":
        click.echo(text)
    elif text:
        write(f"{text}\n")
