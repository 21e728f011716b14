"""Programs and runs in the store: what `monitor` says of a checked program, and a run's number."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from psycopg import sql
from sqlalchemy import Connection, Engine, text

from storage import typed_views
from storage.typed_views import raw

__all__ = ["ProgramInfo", "QueryInfo", "StreamInfo", "VariableInfo", "end_run", "register_run"]

_INDEXED = 4
"""Object variables of a program that get an index: each costs a batch some 3 µs a new answer."""

Type: TypeAlias = Literal["text", "number", "time"]


@dataclass(frozen=True, slots=True)
class VariableInfo:
    """A variable of a query. `column` names its column in the typed view; by default that is the
    variable in lower case. A `time` variable always gets the columns `tau` and `time`."""

    name: str
    type: Type = "text"
    column: str | None = None


@dataclass(frozen=True, slots=True)
class QueryInfo:
    """A query: its predicate, itself as written, and its variables in order."""

    name: str
    atom: str
    variables: tuple[VariableInfo, ...]
    explained: Any = None  # JSON: premise sets and windows, as `whilst explain` gives them


@dataclass(frozen=True, slots=True)
class StreamInfo:
    """A stream predicate: fields as (name, type or None), its δ and the largest of instances."""

    name: str
    fields: tuple[tuple[str, str | None], ...]
    delay: int
    longest_delay: int | None = None


@dataclass(frozen=True, slots=True)
class ProgramInfo:
    """A checked program. Runs of the same `name` supersede each other in the views."""

    name: str
    text: str
    unit_ms: int | None
    queries: tuple[QueryInfo, ...]
    streams: tuple[StreamInfo, ...] = field(default=())


def register_run(
    engine: Engine, program: ProgramInfo, checkpoint: str, sources: Sequence[str] = ()
) -> int:
    """The number of the run of this program that goes on from this checkpoint.

    A new checkpoint is a new run; the run becomes the current one of its program's name. Needs
    the owner's engine: a new run gets partitions, and its queries typed views.
    """
    with engine.begin() as db:
        db.execute(
            text("select pg_advisory_xact_lock(hashtext('whilst'), hashtext(:name))"),
            {"name": program.name},
        )
        number = _program(db, program)
        values = {
            "program": number,
            "name": program.name,
            "checkpoint": checkpoint,
            "sources": json.dumps(list(sources)),
        }
        run = db.execute(
            text("select id from runs where program = :program and checkpoint = :checkpoint"),
            values,
        ).scalar()
        db.execute(text("update runs set current = false where name = :name and current"), values)
        if run is None:
            run = db.execute(
                text(
                    "insert into runs (program, name, checkpoint, sources) "
                    "values (:program, :name, :checkpoint, cast(:sources as jsonb)) returning id"
                ),
                values,
            ).scalar_one()
            _partition(db, run, program)
        else:
            db.execute(
                text(
                    "update runs set current = true, status = 'running', ended_at = null, "
                    "error = null, sources = cast(:sources as jsonb) where id = :run"
                ),
                {**values, "run": run},
            )
        db.execute(
            text(
                "insert into counts (run, query) select distinct cast(:run as integer), name "
                "from queries where program = :program on conflict do nothing"
            ),
            {"run": run, "program": number},
        )
        db.execute(text("select ensure_partitions(now())"))
        return int(run)


def end_run(engine: Engine, run: int, error: str | None = None) -> None:
    """Say that a run ended, by itself or with an error."""
    with engine.begin() as db:
        db.execute(
            text(
                "update runs set status = :status, error = :error, ended_at = now() where id = :run"
            ),
            {"run": run, "error": error, "status": "failed" if error else "finished"},
        )


def _program(db: Connection, program: ProgramInfo) -> int:
    hashed = hashlib.sha256(program.text.encode()).hexdigest()
    number = db.execute(
        text(
            "insert into programs (name, hash, text, unit_ms) values (:name, :hash, :text, :unit) "
            "on conflict (name, hash) do update set unit_ms = excluded.unit_ms returning id"
        ),
        {"name": program.name, "hash": hashed, "text": program.text, "unit": program.unit_ms},
    ).scalar_one()
    queries = [_query(number, place, query) for place, query in enumerate(program.queries)]
    known = db.execute(
        text(
            "select number, name, atom, variables, explained from queries "
            "where program = :program order by number"
        ),
        {"program": number},
    ).all()
    streams = [
        {
            "program": number,
            "name": stream.name,
            "fields": json.dumps([{"name": n, "type": t} for n, t in stream.fields]),
            "delay": stream.delay,
            "longest": stream.delay if stream.longest_delay is None else stream.longest_delay,
        }
        for stream in program.streams
    ]
    db.execute(text("delete from streams where program = :program"), {"program": number})
    if streams:
        db.execute(
            text(
                "insert into streams (program, name, fields, delay, longest_delay) values "
                "(:program, :name, cast(:fields as jsonb), :delay, :longest)"
            ),
            streams,
        )
    if known != [_row(query) for query in queries] or not typed_views.there(db, number):
        typed_views.drop(db, program.name)
        db.execute(text("delete from queries where program = :program"), {"program": number})
        if queries:
            db.execute(
                text(
                    "insert into queries (program, number, name, atom, variables, explained) "
                    "values (:program, :number, :name, :atom, cast(:variables as jsonb), "
                    "cast(:explained as jsonb))"
                ),
                queries,
            )
        typed_views.make(db, number)
    return int(number)


def _query(program: int, number: int, query: QueryInfo) -> dict[str, Any]:
    variables = [
        {"name": v.name, "type": v.type, "column": v.column or v.name.lower()}
        for v in query.variables
    ]
    return {
        "program": program,
        "number": number,
        "name": query.name,
        "atom": query.atom,
        "variables": json.dumps(variables),
        "explained": None if query.explained is None else json.dumps(query.explained),
    }


def _row(query: Mapping[str, Any]) -> tuple[Any, ...]:
    explained = query["explained"]
    return (
        query["number"],
        query["name"],
        query["atom"],
        json.loads(query["variables"]),
        None if explained is None else json.loads(explained),
    )


def _partition(db: Connection, run: int, program: ProgramInfo) -> None:
    """The run's part of `triples`, with an index for each variable that people search by.

    A B-tree refuses values of some thousand characters, and a batch with one would never be done.
    SP-GiST takes any: for 1 to 2 µs more a row, and up to five times the room.
    """
    db.execute(text(f"create table triples_{run} partition of triples for values in ({run})"))
    objects = dict.fromkeys(
        v.name for q in program.queries for v in q.variables if v.type != "time"
    )
    for name in list(objects)[:_INDEXED]:
        statement = sql.SQL(
            "create index on {} using spgist ((bindings ->> {})) where shown"
        ).format(sql.Identifier(f"triples_{run}"), sql.Literal(name))
        raw(db).execute(statement)
