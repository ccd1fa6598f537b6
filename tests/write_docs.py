"""Writes what docs/ has of the code: `python -m tests.write_docs` (the rules: `python -m tests.judge.write_docs`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from sqlalchemy import Boolean, DateTime, Float, Integer, LargeBinary, Table
from sqlalchemy.types import BigInteger

from scanner.store import models
from scanner.store.described import TABLES, VIEWS, Described
from scanner.store.named import NAMED, NamedQuery

DOCS = Path(__file__).resolve().parents[1] / "docs"

QUERIES_HEAD = """\
# Queries

`capscan query NAME` asks the database one of the questions below; `capscan query --list` lists them. Parameters go
behind the name, and all may be left out:

```
capscan query files capability=tools path=qwen3
capscan query findings --param severity=error --format markdown
capscan query changes scan=7 --format csv
capscan query effort word=high --show-sql
```

The answer is a `--format table`, `csv`, `json` (a list of objects), `jsonl` (one object a line) or `markdown` (for an
issue or a chat; text from files is escaped).

A query of your own is `capscan query --sql "select …"`. It may have parameters too, as `:name`, whose values come from
`name=value` or `--param`. The database itself keeps it from writing, and it is stopped after `--seconds`. What tables
and views there are says [the page about the database](database.md).

## With other tools

The database is one SQLite file, so other tools open it as it is. The queries below are written for them too: a
parameter that is not set, or empty, leaves its condition out.

```
$ sqlite3 -readonly capscan.db
sqlite> .parameter init
sqlite> .parameter set :capability 'tools'
sqlite> SELECT path, variant FROM latest_files WHERE supports_tools;
```

and then the SQL of a query, pasted or by `.read`: `capscan query files --show-sql` prints it.

`datasette capscan.db` shows every table and view, and asks for the parameters of a query that is pasted into its SQL
page. Text from files is stored as it is, but for what a database refuses: NUL and bytes that are not UTF-8 are U+241B
and four hexadecimal digits (`␛0000`).
"""

DATABASE_HEAD = """\
# The database

What `capscan scan` keeps: one SQLite file (`capscan.db`), or a PostgreSQL database. [Queries](queries.md) says how to
ask it. This page is written from the schema (`python -m tests.write_docs`).

The four views are made for people, and stay as they are: a later Capscan may add columns behind those that are there.
The tables are what Capscan itself needs; a migration may change them, and the [changelog](../CHANGELOG.md) says so.
Numbers in columns that end in `_id` are those of the table that stands behind the arrow.
"""


def queries_page() -> str:
    """docs/queries.md."""
    return "\n".join([QUERIES_HEAD, *[line for query in NAMED.values() for line in _query(query)]])


def _query(query: NamedQuery) -> Iterator[str]:
    yield f"## {query.name}\n"
    yield f"{query.description}.\n"
    if query.parameters:
        yield "| parameter | |"
        yield "| --- | --- |"
        for parameter in query.parameters:
            choices = (
                f" One of {', '.join([f'`{choice}`' for choice in parameter.choices])}." if parameter.choices else ""
            )
            yield f"| `{parameter.name}` | {parameter.description}{choices} |"
        example = query.parameters[0]
        value = f"'{example.example}'" if " " in example.example else example.example
        yield f"\n`capscan query {query.name} {example.name}={value}`\n"
    yield f"```sql\n{query.sql}\n```\n"


def database_page() -> str:
    """docs/database.md."""
    lines = [DATABASE_HEAD, "## Views"]
    lines += _all(VIEWS, models.VIEWS.tables, nullable=False)
    lines.append("## Tables")
    lines += _all(TABLES, models.Base.metadata.tables, nullable=True)
    return "\n".join(lines)


def _all(described: Mapping[str, Described], tables: Mapping[str, Table], *, nullable: bool) -> Iterator[str]:
    for name, one in described.items():
        yield f"\n### {name}\n\n{one.row}\n"
        yield "| column | type | |"
        yield "| --- | --- | --- |"
        for column in tables[name].columns:
            # Of a view's columns the schema does not say whether they may be null.
            null = " or null" if nullable and column.nullable else ""
            meaning = one.columns.get(column.name, "").replace("|", "\\|")
            yield f"| `{column.name}` | {_type(column.type)}{null} | {meaning} |"
    yield ""


def _type(kind: object) -> str:
    """A word for a column's type that holds for every database."""
    words: dict[tuple[type, ...], str] = {
        (Boolean,): "boolean",
        (Integer, BigInteger): "integer",
        (Float,): "real",
        (LargeBinary,): "bytes",
        (DateTime, models.UtcDateTime): "time",
    }
    return next((word for kinds, word in words.items() if isinstance(kind, kinds)), "text")


PAGES: Mapping[str, Callable[[], str]] = {"queries.md": queries_page, "database.md": database_page}
"""The pages that are written here, and what they should say."""


if __name__ == "__main__":
    for page, text in PAGES.items():
        (DOCS / page).write_text(text(), encoding="utf-8")
