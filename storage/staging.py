"""Changes and events on their way into the store, from wherever a batch was computed.

Runs on a Spark executor as well as on the driver, with psycopg and pyarrow alone. Rows go by COPY
into an unlogged staging table, as text that Arrow writes a column at a time. A task that is tried
again, or run twice at once, replaces what its partition staged before: it takes a lock on (run,
batch, partition), deletes and copies in one transaction. That it staged something is written into
a table that a crash of the server does not empty, so that no batch is applied with a part lost.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from storage.errors import translated

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
}
"""Column of `resolution.changes.CHANGES` -> column of `staged_changes`."""


def stage_changes(
    conninfo: str, run: int, batch: int, part: int, batches: Iterable[pa.RecordBatch]
) -> int:
    """Stage one partition's changes (`resolution.changes.CHANGES`); how many rows there were."""
    return _stage(
        conninfo,
        "changes",
        (run, batch, part),
        list(_CHANGES.values()),
        (_changes(rows.select(list(_CHANGES))) for rows in batches),
    )


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
    batches: Iterator[pa.RecordBatch],
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
            inner = field.type.value_type
            column = _json_array(column) if _is_text(inner) else _number_array(column)
        elif field.name == "bindings":
            column = _storable_json(column)
        elif _is_text(field.type):
            column = _storable(column)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, names=list(_CHANGES.values()))


def _events(rows: pa.RecordBatch) -> pa.RecordBatch:
    columns = []
    for field, column in zip(rows.schema, rows.columns, strict=True):
        if field.name == "event":
            column = _shown(column)
        if _is_text(column.type):
            column = _storable(column)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, names=rows.schema.names)


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def _joined(column: Any, values: Any, separator: str) -> Any:
    """Each list's values joined; an empty list gives an empty string."""
    lists = pa.ListArray.from_arrays(_offsets(column), values)
    return pc.binary_join(lists, separator)


def _offsets(column: Any) -> Any:
    start = column.offsets[0].as_py()
    return pc.cast(pc.subtract(column.offsets, start), pa.int32())


def _json_array(column: Any) -> Any:
    values = _escaped(pc.cast(column.flatten(), pa.string()))
    body = _joined(column, values, '","')
    empty = pc.equal(pc.list_value_length(column), 0)
    return pc.if_else(empty, "[]", pc.binary_join_element_wise('["', body, '"]', ""))


def _number_array(column: Any) -> Any:
    values = pc.fill_null(pc.cast(column.flatten(), pa.string()), "NULL")
    return pc.binary_join_element_wise("{", _joined(column, values, ","), "}", "")


_CONTROL = r"[\x01-\x1f]"


def _escaped(values: Any) -> Any:
    """Text as it stands between the quotes of a JSON string."""
    values = _storable(values)
    values = pc.replace_substring(values, "\\", "\\\\")
    values = pc.replace_substring(values, '"', '\\"')
    if pc.any(pc.match_substring_regex(values, _CONTROL)).as_py():
        for code in range(1, 32):
            values = pc.replace_substring(values, chr(code), f"\\u{code:04x}")
    return values


def _storable(values: Any) -> Any:
    """Postgres keeps no zero character in a text: it is shown as U+FFFD."""
    if pc.any(pc.match_substring(values, "\0")).as_py():
        return pc.replace_substring(values, "\0", "\ufffd")
    return values


_UNSTORABLE = r"\\u0000|\\u[dD][89a-fA-F]"


def _storable_json(values: Any) -> Any:
    """JSON that `jsonb` takes: no zero character, no half of a surrogate pair."""
    doubtful = pc.match_substring_regex(values, _UNSTORABLE)
    if not pc.any(doubtful).as_py():
        return values
    return pa.array([_clean(text) for text in values.to_pylist()], pa.string())


def _clean(text: str) -> str:
    value = json.dumps(json.loads(text), ensure_ascii=False)
    value = value.encode("utf-8", "replace").decode()
    return re.sub(r"(?<!\\)((?:\\\\)*)\\u0000", "\\1\ufffd", value)


def _shown(events: Any) -> Any:
    """Events as text; bytes that are none are shown as \\xNN."""
    if _is_text(events.type):
        return events
    try:
        return pc.cast(events, pa.string())
    except pa.ArrowInvalid:
        shown = [
            None if e is None else e.decode("utf-8", "backslashreplace") for e in events.to_pylist()
        ]
        return pa.array(shown, pa.string())
