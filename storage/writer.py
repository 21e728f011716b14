"""The one writer: a batch of changes becomes answers, history and alerts in one transaction.

What the store says is a function of the triples that were put and not dropped, and of the last
complete time point: `storage.merge` says how. Arrivals count as soon as they are read, deadlines by
the last complete τ. An answer is judged by all its triples where something is said anew of one of
them, so the cut into batches, and facts that are read out of the order of their arrival, change
nothing.

A batch that was applied before changes nothing: batches of a run are applied in order, the last one
is in the run's row, and that row is locked by whoever applies one.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import psycopg
from psycopg import errors as pg

from storage import merge
from storage.errors import StagingLost, StoreError, StoreReadOnly, translated

__all__ = ["CHANNEL", "Applied", "BatchFigures", "Writer"]

_WORTH_EMPTYING = 10_000
"""Rows of a batch from which on emptying the staging tables is quicker than deleting."""

STAGED = ("staged_changes", "staged_events", "staged_parts", "staged_marks")

CHANNEL = "whilst"
"""NOTIFY channel; the payload is JSON: run, batch (null for the clock), tau, changes."""


@dataclass(frozen=True, slots=True)
class BatchFigures:
    """What a batch cost and read, for the dashboard."""

    latest_arrival: int | None = None
    facts: int = 0
    matched: int = 0
    changes: int = 0
    """Triples put or dropped, those too that are kept in a row with others."""
    read_ms: float | None = None
    kernel_ms: float | None = None
    lag_ms: float | None = None
    behind: int | None = None
    state_rows: int | None = None
    state_bytes: int | None = None
    started: float | None = None
    """`time.monotonic()` at the start of the batch: gives its whole time."""
    delays: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """(stream, arrival - time) -> facts."""


@dataclass(frozen=True, slots=True)
class Applied:
    """What a call did; `replayed` where the batch had been applied before."""

    replayed: bool
    pending: int
    confirmed: int
    refuted: int


class Writer:
    """Writes into one store by the writer's role. Use one at a time for a run; `close()` it."""

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo
        self._db: psycopg.Connection[Any] | None = None

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None

    def commit_batch(
        self,
        run: int,
        batch: int,
        complete_tau: int | None,
        figures: BatchFigures | None = None,
        over: int | None = None,
    ) -> Applied:
        """Apply what was staged for the batch, and close what is over by `complete_tau`.

        `over`: a later time point that will be complete by the end whatever is read till then.
        """
        return self._in_transaction(run, batch, complete_tau, figures or BatchFigures(), over)

    def complete(self, run: int, tau: int) -> Applied:
        """The clock alone: τ is complete, so what waited until then is over."""
        return self._in_transaction(run, None, tau, None, None)

    def discard(self, run: int) -> None:
        """Throw away what was staged and never applied (after a crash, before going on)."""
        with self._transaction() as cursor:
            _unstage(cursor, run, None)

    # --- one transaction -----------------------------------------------------------------------

    def _transaction(self) -> _Transaction:
        if self._db is None or self._db.closed:
            self._db = _connected(self._conninfo)
        return _Transaction(self._db)

    def _in_transaction(
        self,
        run: int,
        batch: int | None,
        tau: int | None,
        figures: BatchFigures | None,
        over: int | None,
    ) -> Applied:
        began = time.monotonic()
        with self._transaction() as cursor:
            cursor.execute(
                "select r.complete_tau, r.last_batch, r.name, p.unit_ms, now() "
                "from runs r join programs p on p.id = r.program where r.id = %s for update of r",
                (run,),
            )
            row = cursor.fetchone()
            if row is None:
                raise StoreError(f"there is no run {run} in the store: it was pruned; start anew")
            before, last_batch, program, unit, now = row
            if batch is not None and batch <= last_batch:
                _unstage(cursor, run, batch)
                return Applied(True, 0, 0, 0)
            tau = max((t for t in (before, tau) if t is not None), default=None)
            complete = -1 if tau is None else tau
            values: dict[str, Any] = {
                "run": run,
                "batch": batch,
                "tau": complete,
                "before": -1 if before is None else before,
                "over": complete if over is None else max(complete, over),
                "program": program,
                "unit": unit,
            }
            cursor.execute("select ensure_partitions(%s)", (now,))
            rows, again = (0, 0) if batch is None else _staged(cursor, values)
            counted = _merged(cursor, values, again > 0)
            if batch is not None:
                assert figures is not None
                _events_and_figures(cursor, values, rows, figures, began)
            cursor.execute(
                "update runs set complete_tau = %s, last_batch = coalesce(%s, last_batch), "
                "seen_at = now() where id = %s",
                (tau, batch, run),
            )
            changes = 0 if figures is None else figures.changes
            told = {"run": run, "batch": batch, "tau": tau, "changes": changes}
            cursor.execute("select pg_notify(%s, %s)", (CHANNEL, json.dumps(told)))
        return Applied(False, *counted)


class _Transaction:
    """One transaction of the connection, its errors in our words; a lost connection is dropped."""

    def __init__(self, db: psycopg.Connection[Any]) -> None:
        self._db = db
        self._context = db.transaction()

    def __enter__(self) -> psycopg.Cursor[Any]:
        try:
            self._context.__enter__()
        except psycopg.Error as error:
            self._db.close()
            raise translated(error) or error from error
        return self._db.cursor()

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        try:
            self._context.__exit__(kind, error, trace)
        except psycopg.Error as failed:
            self._db.close()
            raise translated(failed) or failed from failed
        if isinstance(error, psycopg.Error):
            if self._db.broken:
                self._db.close()
            if (ours := translated(error)) is not None:
                if isinstance(ours, StoreReadOnly):
                    self._db.close()  # a session may keep what its database was set to
                raise ours from error


def _connected(conninfo: str) -> psycopg.Connection[Any]:
    try:
        db: psycopg.Connection[Any] = psycopg.connect(
            conninfo, autocommit=True, application_name="whilst writer"
        )
        # A batch costs what it touches only by way of the indexes, also before the server has
        # statistics of a new run; and each batch is planned for itself, not for an average one.
        db.prepare_threshold = None
        for plan in ("seqscan", "bitmapscan", "mergejoin"):
            db.execute(f"set enable_{plan} = off")
        db.execute("set work_mem = '128MB'")
    except psycopg.Error as error:
        raise translated(error) or error from error
    return db


# --- merging -----------------------------------------------------------------------------------


def _staged(cursor: psycopg.Cursor[Any], values: dict[str, Any]) -> tuple[int, int]:
    """How many rows are staged for the batch, none lost in a crash; and how many say something anew
    of a triple that the store may have."""
    cursor.execute(
        "select count(*), count(*) filter (where op in ('put', 'drop')) from staged_changes "
        "where run = %(run)s and batch = %(batch)s",
        values,
    )
    rows, again = _one(cursor)
    cursor.execute(
        "select 1 from staged_parts p where run = %(run)s and batch = %(batch)s and not exists "
        "(select from staged_marks m where (m.run, m.batch, m.kind, m.part) "
        "= (p.run, p.batch, p.kind, p.part)) limit 1",
        values,
    )
    if cursor.fetchone() is not None:
        raise StagingLost(
            f"what was staged for batch {values['batch']} is gone, the store crashed meanwhile: "
            "compute the batch again"
        )
    return rows, again


def _merged(
    cursor: psycopg.Cursor[Any], values: dict[str, Any], again: bool
) -> tuple[int, int, int]:
    """Make the store say what was staged; how many answers became pending, confirmed, refuted."""
    counted = [0, 0, 0]

    def do(step: str) -> int:
        return cursor.execute(step.format(triples=f"triples_{values['run']:d}"), values).rowcount

    if again:
        rows, rest = merge.UNPACKED
        if do(rows):
            do(rest)
    for step in (merge.MERGE, merge.SWEPT, merge.CLOSED, merge.DEADLINE_ALERTS):
        do(step)
        if step in (merge.MERGE, merge.CLOSED):
            counted = [so_far + more for so_far, more in zip(counted, _one(cursor), strict=True)]
    pending, confirmed, refuted = counted
    return pending, confirmed, refuted


def _unstage(cursor: psycopg.Cursor[Any], run: int, batch: int | None, rows: int = 0) -> None:
    """Forget what was staged for a batch, or for all of a run's."""
    tables: tuple[str, ...] = STAGED
    if rows > _WORTH_EMPTYING and _emptied(cursor, run, batch):
        tables = ("staged_parts", "staged_marks")
    for table in tables:
        cursor.execute(
            f"delete from {table} where run = %s and batch = coalesce(%s, batch)", (run, batch)
        )


def _emptied(cursor: psycopg.Cursor[Any], run: int, batch: int | None) -> bool:
    """Empty the staging tables at once, if nobody else uses them: deleted rows would stay in the
    way, on disk and in memory, until the server clears them."""
    try:
        with cursor.connection.transaction():
            cursor.execute(
                "lock table staged_changes, staged_events in access exclusive mode nowait"
            )
            cursor.execute(
                "select 1 from staged_marks where (run, batch) is distinct from (%s, %s) limit 1",
                (run, batch),
            )
            if cursor.fetchone() is not None:
                return False
            cursor.execute("truncate staged_changes, staged_events")
    except pg.LockNotAvailable:
        return False
    return True


def _one(cursor: psycopg.Cursor[Any]) -> tuple[Any, ...]:
    row: tuple[Any, ...] | None = cursor.fetchone()
    assert row is not None
    return row


# --- the rest of a batch -----------------------------------------------------------------------

_LATE_DELAYS = """
    insert into delays as d (run, stream, delay, facts)
    select run, stream, least((arrival - time) / width * width, 8 * greatest(delay, 16)), count(*)
    from staged_events, greatest(delay / 128, 1) as width
    where run = %(run)s and batch = %(batch)s and kind = 'late' and matched is not false
    group by 1, 2, 3
    on conflict (run, stream, delay) do update set facts = d.facts + excluded.facts
"""
"""Late facts among the delays that were seen: as coarse as those in time, and not without end. Of
both only those count that match an atom."""


def _events_and_figures(
    cursor: psycopg.Cursor[Any],
    values: dict[str, Any],
    rows: int,
    figures: BatchFigures,
    began: float,
) -> None:
    moved = {}
    for kind, table, more in (
        ("late", "all_late_facts", ", fact, stream, time, delay, matched"),
        ("rejected", "all_rejected_events", ""),
    ):
        columns = f"event, source, place, arrival, reason{more}"
        cursor.execute(
            f"insert into {table} (run, batch, {columns}) select run, batch, {columns} "
            "from staged_events where run = %(run)s and batch = %(batch)s and kind = %(kind)s",
            {**values, "kind": kind},
        )
        moved[kind] = cursor.rowcount
    if moved["late"]:
        cursor.execute(_LATE_DELAYS, values)
    _unstage(cursor, values["run"], values["batch"], rows)
    if figures.delays:
        cursor.executemany(
            "insert into delays as d (run, stream, delay, facts) values (%s, %s, %s, %s) "
            "on conflict (run, stream, delay) do update set facts = d.facts + excluded.facts",
            [(values["run"], *key, facts) for key, facts in sorted(figures.delays.items())],
        )
    now = time.monotonic()
    row = asdict(figures)
    del row["delays"]
    started = row.pop("started")
    row |= {
        "run": values["run"],
        "batch": values["batch"],
        "tau": values["tau"] if values["tau"] >= 0 else None,
        "late": moved["late"],
        "rejected": moved["rejected"],
        "store_ms": (now - began) * 1000,
        "total_ms": None if started is None else (now - started) * 1000,
    }
    named = ", ".join(row)
    marks = ", ".join(f"%({name})s" for name in row)
    cursor.execute(f"insert into batches ({named}) values ({marks})", row)
