"""A view for each query with real columns, so that ordinary SQL and BI tools work.

The query `Malf(X, T)` of the program `turbines` becomes `turbines.malf`, and plain `malf` where no
table or view of that name is there. Its columns: one for each object variable (`text`, or `numeric`
where it is declared a number), `tau` and, where the unit of the program is a duration, `time` for
the time variable; then status, since, decided_at and the rest of the answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import psycopg
from psycopg import sql
from sqlalchemy import Connection, text

__all__ = ["drop", "drop_all", "make", "make_all", "raw", "there"]

_LONGEST = 63  # bytes of a name in Postgres
_REST = (
    "status",
    "since",
    "decided_at",
    "deadline",
    "reason",
    "answer",
    "bindings",
    "evidence",
    "hypotheses",
    "conditions",
    "answer_id",
    "run",
    "recorded_at",
)
_TIMES = ("since", "decided_at", "deadline")
_SYSTEM = ("public", "information_schema", "pg_")
_YEAR_9999 = 253_402_300_799_999
"""Milliseconds; what is later is no timestamp that clients can show."""


def there(db: Connection, program: int) -> bool:
    """Whether the views of the program are those that exist now (a newer text replaces them)."""
    return bool(
        db.execute(
            text(
                "select coalesce(bool_and(cardinality(views) > 0), true) from queries "
                "where program = :program"
            ),
            {"program": program},
        ).scalar()
    )


def make_all(db: Connection) -> None:
    """The views of the current programs, after a change of the schema."""
    for (program,) in db.execute(text("select program from runs where current order by id")).all():
        make(db, program)


def drop_all(db: Connection) -> None:
    for (name,) in db.execute(text("select distinct name from programs")).all():
        drop(db, name)


def drop(db: Connection, name: str) -> None:
    """Take the typed views of every text of that program away."""
    rows = db.execute(
        text(
            "select q.views from queries q join programs p on p.id = q.program "
            "where p.name = :name and cardinality(q.views) > 0"
        ),
        {"name": name},
    ).all()
    for (views,) in rows:
        for view in views:
            _run(db, sql.SQL("drop view if exists {}").format(_qualified(view)))
    db.execute(
        text(
            "update queries set views = '{}' from programs p "
            "where p.id = queries.program and p.name = :name and cardinality(queries.views) > 0"
        ),
        {"name": name},
    )


def make(db: Connection, program: int) -> None:
    """The typed views of a program's queries."""
    name, unit = db.execute(
        text("select name, unit_ms from programs where id = :program"), {"program": program}
    ).one()
    rows = db.execute(
        text("select name, variables from queries where program = :program order by number"),
        {"program": program},
    ).all()
    queries: dict[str, list[dict[str, Any]]] = {}
    for query, variables in rows:  # two queries of one predicate share a view
        known = queries.setdefault(query, [])
        known += [v for v in variables if v["name"] not in {k["name"] for k in known}]
    schema = _schema(name)
    here = db.execute(text("select current_schema()")).scalar_one()
    _run(db, sql.SQL("create schema if not exists {}").format(sql.Identifier(schema)))
    taken: set[str] = set()
    for query, variables in queries.items():
        view = _unique(query.lower(), taken)
        select = _select(name, query, unit, variables)
        made = []
        for place in (schema, here):
            if place == here and _exists(db, here, view):
                continue
            full = sql.Identifier(place, view)
            _run(db, sql.SQL("create view {} as {}").format(full, select))
            _run(
                db,
                sql.SQL("comment on view {} is {}").format(
                    full, sql.Literal(f"Answers of the query {query} of {name}, current run.")
                ),
            )
            made.append(f"{place}.{view}")
        db.execute(
            text("update queries set views = :views where program = :program and name = :name"),
            {"views": made, "program": program, "name": query},
        )
    if db.execute(text("select 1 from pg_roles where rolname = 'whilst_reader'")).scalar():
        place = sql.Identifier(schema)
        for grant in ("usage on schema {}", "select on all tables in schema {}"):
            _run(db, sql.SQL("grant " + grant + " to whilst_reader").format(place))


def _select(
    program: str, query: str, unit: int | None, variables: Iterable[dict[str, Any]]
) -> sql.Composed:
    taken = {*_REST, "tau", "time", *(f"{name}_time" for name in _TIMES)}
    columns = []
    for variable in variables:
        value = sql.SQL("a.bindings -> {}").format(sql.Literal(variable["name"]))
        if variable["type"] == "time":
            number = _number(value, "bigint")
            columns.append(sql.SQL("{} as tau").format(number))
            if unit is not None:
                columns.append(sql.SQL("{} as time").format(_instant(number, unit)))
            continue
        column = sql.Identifier(_unique(variable["column"].lower(), taken))
        if variable["type"] == "number":
            shown: sql.Composable = _number(value, "numeric")
        else:
            shown = sql.SQL("a.bindings ->> {}").format(sql.Literal(variable["name"]))
        columns.append(sql.SQL("{} as {}").format(shown, column))
    for name in _REST:
        source = "id" if name == "answer_id" else name
        columns.append(
            sql.SQL("{} as {}").format(sql.Identifier("a", source), sql.Identifier(name))
        )
        if name in _TIMES and unit is not None:
            instant = _instant(sql.Identifier("a", name), unit)
            columns.append(sql.SQL("{} as {}").format(instant, sql.Identifier(f"{name}_time")))
    return sql.SQL(
        "select {} from answers a join runs r on r.id = a.run "
        "where r.current and r.name = {} and a.query = {}"
    ).format(sql.SQL(", ").join(columns), sql.Literal(program), sql.Literal(query))


def _number(value: sql.Composable, type_: str) -> sql.Composed:
    # A value that is no number shows as null: one such row must not break every query of the view.
    return sql.SQL("case when jsonb_typeof({0}) = 'number' then ({0})::{1} end").format(
        value, sql.SQL(type_)
    )


def _instant(number: sql.Composable, unit: int) -> sql.Composed:
    return sql.SQL(
        "case when {0} between 0 and {1} then to_timestamp(({0}) * {2} / 1000.0) end"
    ).format(number, sql.Literal(_YEAR_9999 // unit), sql.Literal(unit))


def _schema(program: str) -> str:
    name = _cut(program.lower().replace(".", "_"))
    return _cut(f"program_{name}") if name.startswith(_SYSTEM) else name


def _cut(name: str, room: int = 0) -> str:
    return name.encode()[: _LONGEST - room].decode(errors="ignore")


def _unique(name: str, taken: set[str]) -> str:
    """The name, or with a number where it is taken; and now it is."""
    shown, number = _cut(name), 1
    while shown in taken:
        number += 1
        shown = _cut(name, len(str(number)) + 1) + f"_{number}"
    taken.add(shown)
    return shown


def _qualified(name: str) -> sql.Identifier:
    schema, _, view = name.partition(".")
    return sql.Identifier(schema, view)


def _exists(db: Connection, schema: str, name: str) -> bool:
    return bool(
        db.execute(
            text(
                "select 1 from pg_class where relname = :name "
                "and relnamespace = cast(:schema as regnamespace)"
            ),
            {"name": name, "schema": f'"{schema}"'},
        ).scalar()
    )


def raw(db: Connection) -> psycopg.Connection[Any]:
    """The connection of psycopg below one of SQLAlchemy, for statements made of names."""
    connection = db.connection.driver_connection
    assert isinstance(connection, psycopg.Connection)
    return connection


def _run(db: Connection, statement: sql.Composed) -> None:
    raw(db).execute(statement)
