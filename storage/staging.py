"""Changes and events on their way into the store, from wherever a batch was computed.

Runs on a Spark executor as well as on the driver, with psycopg and pyarrow alone. Rows go by COPY
into an unlogged staging table, as text that Arrow writes a column at a time. A task that is tried
again, or run twice at once, replaces what its partition staged before: it takes a lock on (run,
batch, partition), deletes and copies in one transaction. That it staged something is written into
a table that a crash of the server does not empty, so that no batch is applied with a part lost.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from storage.errors import translated
from storage.packing import JUDGED
from storage.texts import is_text, json_array, number_array, storable, storable_json

__all__ = ["EVENTS", "stage_changes", "stage_events"]

EVENTS = pa.schema(
    [
        pa.field("kind", pa.string(), nullable=False),  # late or rejected
        pa.field("event", pa.binary(), nullable=False),  # as it came
        pa.field("source", pa.string(), nullable=False),
        pa.field("place", pa.string(), nullable=False),  # file:line, partition/offset
        pa.field("arrival", pa.int64()),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("fact", pa.string()),  # the rest for late facts
        pa.field("stream", pa.string()),
        pa.field("time", pa.int64()),
        pa.field("delay", pa.int64()),
        pa.field("matched", pa.bool_()),
    ]
)

_CHANGES = {
    "op": "op",
    "triple": "id",
    "answer_id": "answer_id",
    "query": "query",
    "answer": "answer",
    "bindings": "bindings",
    "premise": "premise",
    "evidence": "evidence",
    "arrivals": "arrivals",
    "hypotheses": "hypotheses",
    "closes": "closes",
    "conditions": "conditions",
    "deadline": "deadline",
    "reason": "reason",
    "start": "start_tau",
    "end": "end_tau",
    **{name: name for name in JUDGED},
}
"""Column of packed changes (`storage.packing`) -> column of `staged_changes`."""

_ROWS = 50_000
"""Rows whose text is made at a time."""


def stage_changes(
    conninfo: str, run: int, batch: int, part: int, tables: Iterable[pa.Table]
) -> int:
    """Stage one partition's changes, packed (`storage.packing`); how many rows there were."""
    return _stage(
        conninfo,
        "changes",
        (run, batch, part),
        list(_CHANGES.values()),
        (_changes(rows) for table in tables for rows in _pieces(table)),
    )


def _pieces(table: pa.Table, size: int = _ROWS) -> Iterator[pa.RecordBatch]:
    """Some rows at a time: the text of all of them would take as much memory again."""
    yield from table.select(list(_CHANGES)).combine_chunks().to_batches(size)


def stage_events(
    conninfo: str, run: int, batch: int, part: int, batches: Iterable[pa.RecordBatch]
) -> int:
    """Stage one partition's late facts and rejected events (`EVENTS`); how many there were."""
    return _stage(
        conninfo,
        "events",
        (run, batch, part),
        EVENTS.names,
        (_events(rows.select(EVENTS.names)) for rows in batches),
    )


def _stage(
    conninfo: str,
    kind: str,
    key: tuple[int, int, int],
    columns: list[str],
    batches: Iterable[pa.RecordBatch],
) -> int:
    staged = 0
    named = ", ".join(("run", "batch", "part", *columns))
    try:
        with psycopg.connect(conninfo) as db, db.cursor() as cursor:
            lock = f"{kind} {key}"
            cursor.execute("select pg_advisory_xact_lock(hashtextextended(%s, 0))", (lock,))
            cursor.execute(
                f"delete from staged_{kind} where (run, batch, part) = (%s, %s, %s)", key
            )
            with cursor.copy(f"copy staged_{kind} ({named}) from stdin (format csv)") as copy:
                for rows in batches:
                    if rows.num_rows:
                        copy.write(_csv(rows, key))
                        staged += rows.num_rows
            for table in ("staged_parts", "staged_marks"):
                cursor.execute(
                    f"insert into {table} (run, batch, kind, part) values (%s, %s, %s, %s) "
                    "on conflict do nothing",
                    (key[0], key[1], kind, key[2]),
                )
    except psycopg.Error as error:
        raise translated(error) or error from error
    return staged


def _csv(rows: pa.RecordBatch, key: tuple[int, int, int]) -> memoryview:
    """CSV as COPY reads it: strings quoted, null as nothing."""
    constants = [pa.repeat(pa.scalar(value), rows.num_rows) for value in key]
    table = pa.RecordBatch.from_arrays(
        [*constants, *rows.columns], names=["run", "batch", "part", *rows.schema.names]
    )
    out = io.BytesIO()
    options = pa_csv.WriteOptions(include_header=False, quoting_style="needed")
    pa_csv.write_csv(table, out, options)
    return out.getbuffer()


# --- columns as text ---------------------------------------------------------------------------


def _changes(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows with lists and JSON in the text forms of Postgres."""
    columns = []
    for field, column in zip(rows.schema, rows.columns, strict=True):
        if pa.types.is_list(field.type) or pa.types.is_large_list(field.type):
            column = (json_array if is_text(field.type.value_type) else number_array)(column)
        elif field.name == "bindings":
            column = storable_json(column)
        elif is_text(field.type) and field.name != "past":
            column = storable(column)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, names=list(_CHANGES.values()))


def _events(rows: pa.RecordBatch) -> pa.RecordBatch:
    columns = []
    for field, column in zip(rows.schema, rows.columns, strict=True):
        if field.name == "event":
            column = _shown(column)
        if is_text(column.type):
            column = storable(column)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, names=rows.schema.names)


def _shown(events: Any) -> Any:
    """Events as text; bytes that are none are shown as \\xNN."""
    if is_text(events.type):
        return events
    try:
        return pc.cast(events, pa.string())
    except pa.ArrowInvalid:
        shown = [
            None if e is None else e.decode("utf-8", "backslashreplace") for e in events.to_pylist()
        ]
        return pa.array(shown, pa.string())
