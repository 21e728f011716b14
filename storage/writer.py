"""The one writer: a batch of changes becomes answers, history and alerts in one transaction.

What the store says is a function of the triples that were put and not dropped, and of the last
complete time point: a triple is *live* (pending now) while no arrival took it out and its deadline
has not come. Arrivals count as soon as they are read, deadlines by the last complete τ. The row of
every touched answer is computed anew from all its triples, so the cut into batches, and facts that
are read out of the order of their arrival, change nothing.

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

from storage.errors import StoreError, translated

__all__ = ["CHANNEL", "Applied", "BatchFigures", "Writer"]

CHANNEL = "whilst"
"""NOTIFY channel; the payload is JSON: run, batch (null for the clock), tau, changes."""


@dataclass(frozen=True, slots=True)
class BatchFigures:
    """What a batch cost and read, for the dashboard."""

    latest_arrival: int | None = None
    facts: int = 0
    matched: int = 0
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
    changes: int
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
        self, run: int, batch: int, complete_tau: int | None, figures: BatchFigures | None = None
    ) -> Applied:
        """Apply what was staged for the batch, and close what is over by `complete_tau`."""
        return self._in_transaction(run, batch, complete_tau, figures or BatchFigures())

    def complete(self, run: int, tau: int) -> Applied:
        """The clock alone: τ is complete, so what waited until then is over."""
        return self._in_transaction(run, None, tau, None)

    def discard(self, run: int) -> None:
        """Throw away what was staged and never applied (after a crash, before going on)."""
        with self._transaction() as cursor:
            for table in ("staged_changes", "staged_events"):
                cursor.execute(f"delete from {table} where run = %s", (run,))

    # --- one transaction -----------------------------------------------------------------------

    def _transaction(self) -> _Transaction:
        if self._db is None or self._db.closed:
            self._db = _connected(self._conninfo)
        return _Transaction(self._db)

    def _in_transaction(
        self, run: int, batch: int | None, tau: int | None, figures: BatchFigures | None
    ) -> Applied:
        began = time.monotonic()
        with self._transaction() as cursor:
            cursor.execute(
                "select complete_tau, last_batch, name, now() from runs where id = %s for update",
                (run,),
            )
            row = cursor.fetchone()
            if row is None:
                raise StoreError(f"there is no run {run} in the store: it was pruned; start anew")
            before, last_batch, program, now = row
            if batch is not None and batch <= last_batch:
                for table in ("staged_changes", "staged_events"):
                    cursor.execute(
                        f"delete from {table} where run = %s and batch = %s", (run, batch)
                    )
                return Applied(True, 0, 0, 0, 0)
            tau = max((t for t in (before, tau) if t is not None), default=None)
            values: dict[str, Any] = {
                "run": run,
                "batch": batch,
                "tau": -1 if tau is None else tau,
                "program": program,
            }
            cursor.execute("select ensure_partitions(%s)", (now,))
            changes = 0
            if batch is not None:
                changes = _merge(cursor, values)
            counted = _recompute(cursor, values)
            cursor.execute(_CLOSE, values)
            cursor.execute(_DEADLINE_ALERTS, {**values, "before": -1 if before is None else before})
            if batch is not None:
                assert figures is not None
                _events_and_figures(cursor, values, changes, figures, began)
            cursor.execute(
                "update runs set complete_tau = %s, last_batch = coalesce(%s, last_batch), "
                "seen_at = now() where id = %s",
                (tau, batch, run),
            )
            told = {"run": run, "batch": batch, "tau": tau, "changes": changes}
            cursor.execute("select pg_notify(%s, %s)", (CHANNEL, json.dumps(told)))
        return Applied(False, changes, *counted)


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
                raise ours from error


def _connected(conninfo: str) -> psycopg.Connection[Any]:
    try:
        return psycopg.connect(conninfo, autocommit=True, application_name="whilst writer")
    except psycopg.Error as error:
        raise translated(error) or error from error


# --- merging -----------------------------------------------------------------------------------

_COLUMNS = (
    "query, premise, evidence, arrivals, hypotheses, closes, conditions, deadline, reason, "
    "start_tau, end_tau"
)

# A triple is recorded when the store first hears of it; a correction of it keeps that time.
_PUT = f"""
insert into triples (run, answer_id, id, {_COLUMNS}, live, batch, recorded_at)
select run, answer_id, id, {_COLUMNS},
       end_tau is null and hypotheses <> '[]' and (deadline is null or deadline > %(tau)s),
       batch, now()
from {{staged}}
where run = %(run)s and batch = %(batch)s and op = 'put'
on conflict (run, answer_id, id) do update set
    ({_COLUMNS}, live, batch) = row(
        {", ".join(f"excluded.{name.strip()}" for name in _COLUMNS.split(","))},
        excluded.live, excluded.batch)
"""

_DROP = """
delete from triples t using staged_changes s
where s.run = %(run)s and s.batch = %(batch)s and s.op = 'drop'
  and t.run = %(run)s and t.answer_id = s.answer_id and t.id = s.id
"""

# Two groups may have said the same triple; the one that was complete first is shown.
_ONCE = """(select distinct on (id) * from staged_changes
            where run = %(run)s and batch = %(batch)s and op = 'put'
            order by id, start_tau, evidence::text collate "C", part) once"""


def _merge(cursor: psycopg.Cursor[Any], values: dict[str, Any]) -> int:
    """Put and drop the staged triples, and append them to the history."""
    cursor.execute(
        "select count(*), count(*) filter (where op = 'drop') from staged_changes "
        "where run = %(run)s and batch = %(batch)s",
        values,
    )
    row = cursor.fetchone()
    assert row is not None
    changes, drops = row
    if not changes:
        return 0
    cursor.execute(_HISTORY_OF_TRIPLES, values)
    if drops:
        cursor.execute(_DROP, values)
    try:
        with cursor.connection.transaction():
            cursor.execute(_PUT.format(staged="staged_changes"), values)
    except pg.CardinalityViolation:
        cursor.execute(_PUT.format(staged=_ONCE), values)
    return int(changes)


# A triple enters the history when the store first hears of it. Whether it was the first of its
# answer is told by its start, so that the history does not depend on the cut into batches.
_HISTORY_OF_TRIPLES = """
with staged as (
    select distinct on (id) op, id, answer_id, start_tau, hypotheses
    from staged_changes where run = %(run)s and batch = %(batch)s
    order by id, op desc, start_tau
)
insert into history (run, answer_id, triple, event, tau, waits_for, batch, recorded_at)
select %(run)s, s.answer_id, s.id,
       case when s.op = 'drop' then 'withdrawn'
            when s.hypotheses = '[]' then 'confirmed'
            when s.start_tau = least(
                min(s.start_tau) filter (where s.op = 'put') over (partition by s.answer_id),
                a.since) then 'pending'
            else 'progressed' end,
       s.start_tau, jsonb_array_length(s.hypotheses), %(batch)s, now()
from staged s
left join triples t on t.run = %(run)s and t.answer_id = s.answer_id and t.id = s.id
left join answers a on a.run = %(run)s and a.id = s.answer_id
where (t.id is null) = (s.op = 'put')
"""

# --- answers -----------------------------------------------------------------------------------

# Everything about the touched answers in one statement: each part of it sees the store as it was
# before the statement, so `answers` below is what was said before.
_RECOMPUTE = """
with touched as (
    select answer_id from staged_changes where run = %(run)s and batch = %(batch)s
    union
    select answer_id from triples where run = %(run)s and live and deadline <= %(tau)s
),
judged as (
    select t.answer_id, t.id, t.query, t.start_tau, t.deadline, t.reason,
           t.hypotheses = '[]' as confirmed,
           t.hypotheses <> '[]' and t.end_tau is null
               and (t.deadline is null or t.deadline > %(tau)s) as live,
           least(t.end_tau, t.deadline) as left_at,
           t.deadline is not null and (t.end_tau is null or t.deadline <= t.end_tau) as closed
    from touched join triples t using (answer_id)
    where t.run = %(run)s
),
told as materialized (
    select distinct on (answer_id) answer_id, id as shown, query,
           min(start_tau) over (partition by answer_id) as since,
           case when confirmed then 'confirmed' when live then 'pending' else 'refuted' end
               as status,
           case when confirmed then start_tau when not live then left_at end as decided_at,
           case when live then deadline end as deadline,
           case when not confirmed and not live and closed then reason end as reason
    from judged
    order by answer_id, confirmed desc, live desc, case when live then deadline end,
             left_at desc nulls first, closed desc, reason collate "C", id
),
changed as materialized (
    select n.*, a.status as old_status, a.query is null as is_new
    from told n
    left join answers a on a.run = %(run)s and a.id = n.answer_id
    where (a.status, a.since, a.decided_at, a.deadline, a.reason, a.shown)
          is distinct from (n.status, n.since, n.decided_at, n.deadline, n.reason, n.shown)
),
texts as (
    select distinct on (s.answer_id) s.answer_id, s.answer, s.bindings
    from staged_changes s
    where s.run = %(run)s and s.batch = %(batch)s and s.op = 'put'
    order by s.answer_id
),
made as (
    insert into answers (run, id, query, answer, bindings, status, since, decided_at, deadline,
                         reason, shown, recorded_at)
    select %(run)s, c.answer_id, c.query, x.answer, x.bindings, c.status, c.since, c.decided_at,
           c.deadline, c.reason, c.shown, now()
    from changed c join texts x using (answer_id)
    where c.is_new
),
altered as (
    update answers a
    set (status, since, decided_at, deadline, reason, shown, recorded_at) = row(
        c.status, c.since, c.decided_at, c.deadline, c.reason, c.shown,
        case when a.status = c.status then a.recorded_at else now() end)
    from changed c
    where not c.is_new and a.run = %(run)s and a.id = c.answer_id
),
gone as (
    delete from answers a using touched d
    where a.run = %(run)s and a.id = d.answer_id
      and not exists (select from told n where n.answer_id = d.answer_id)
    returning a.query, a.status
),
moves as materialized (
    select query, status, old_status from changed where status is distinct from old_status
    union all
    select query, null, status from gone
),
sums as (
    select query,
           count(*) filter (where status = 'pending') as pending,
           count(*) filter (where status = 'confirmed') as confirmed,
           count(*) filter (where status = 'refuted') as refuted,
           count(*) filter (where old_status = 'pending') as was_pending,
           count(*) filter (where old_status = 'confirmed') as was_confirmed,
           count(*) filter (where old_status = 'refuted') as was_refuted
    from moves group by query
),
counted as (
    insert into counts as c (run, query, pending, confirmed, refuted)
    select %(run)s, query, pending - was_pending, confirmed - was_confirmed, refuted - was_refuted
    from sums
    on conflict (run, query) do update set pending = c.pending + excluded.pending,
        confirmed = c.confirmed + excluded.confirmed, refuted = c.refuted + excluded.refuted
),
tallied as (
    insert into tallies as c (run, query, hour, pending, confirmed, refuted)
    select %(run)s, query, date_trunc('hour', now(), 'UTC'), pending, confirmed, refuted
    from sums where pending + confirmed + refuted > 0
    on conflict (run, query, hour) do update set pending = c.pending + excluded.pending,
        confirmed = c.confirmed + excluded.confirmed, refuted = c.refuted + excluded.refuted
),
closed as (
    insert into history (run, answer_id, triple, event, tau, waits_for, batch, recorded_at)
    select %(run)s, c.answer_id, c.shown, 'refuted', c.decided_at,
           jsonb_array_length(t.hypotheses), %(batch)s, now()
    from changed c
    join triples t on t.run = %(run)s and t.answer_id = c.answer_id and t.id = c.shown
    where c.status = 'refuted' and c.old_status is distinct from 'refuted'
),
alerts as (
    insert into outbox (endpoint, webhook_id, event, run, program, query, answer_id, tau, body)
    select e.id, {webhook_id}, c.status, %(run)s, %(program)s, c.query, c.answer_id,
           coalesce(c.decided_at, c.since), {body}
    from changed c
    cross join endpoints e
    join triples t on t.run = %(run)s and t.answer_id = c.answer_id and t.id = c.shown
    left join texts x on x.answer_id = c.answer_id
    left join answers a on a.run = %(run)s and a.id = c.answer_id
    where c.status is distinct from c.old_status and {wanted}
    on conflict do nothing
)
select coalesce(sum(pending), 0)::bigint, coalesce(sum(confirmed), 0)::bigint,
       coalesce(sum(refuted), 0)::bigint
from sums
"""

_WEBHOOK_ID = (
    "'msg_' || md5(concat_ws(E'\\x1f', %(program)s::text, c.query, coalesce(x.answer, a.answer), "
    "{event}))"
)
_BODY = """jsonb_build_object(
        'answer', coalesce(x.answer, a.answer), 'bindings', coalesce(x.bindings, a.bindings),
        'evidence', t.evidence, 'arrivals', to_jsonb(t.arrivals), 'hypotheses', t.hypotheses,
        'closes', to_jsonb(t.closes), 'conditions', t.conditions, 'deadline', t.deadline,
        'since', c.since, 'decided_at', c.decided_at, 'reason', c.reason)"""
_WANTED = """e.status = 'enabled' and {event} = any (e.events)
          and (e.program is null or e.program = %(program)s)
          and (e.queries is null or c.query = any (e.queries))
          and coalesce(x.bindings, a.bindings) @> e.filter"""

_RECOMPUTE = _RECOMPUTE.format(
    webhook_id=_WEBHOOK_ID.format(event="c.status"),
    body=_BODY,
    wanted=_WANTED.format(event="c.status"),
)

# Pending triples that have come within an endpoint's span of their deadline since the last time.
_DEADLINE_ALERTS = f"""
insert into outbox (endpoint, webhook_id, event, run, program, query, answer_id, tau, body)
select e.id, {_WEBHOOK_ID.format(event="'deadline'")}, 'deadline', %(run)s, %(program)s, c.query,
       c.answer_id, %(tau)s, {_BODY}
from endpoints e
join triples t on t.run = %(run)s and t.live and t.deadline <= %(tau)s + e.within
    and (t.deadline > %(before)s + e.within or t.batch = %(batch)s)
join answers a on a.run = %(run)s and a.id = t.answer_id and a.status = 'pending'
cross join lateral (select a.id as answer_id, t.query, a.since, a.decided_at, a.reason) c
cross join lateral (select a.answer, a.bindings) x
where {_WANTED.format(event="'deadline'")}
on conflict do nothing
"""

_CLOSE = "update triples set live = false where run = %(run)s and live and deadline <= %(tau)s"


def _recompute(cursor: psycopg.Cursor[Any], values: dict[str, Any]) -> tuple[int, int, int]:
    cursor.execute(_RECOMPUTE, values)
    row = cursor.fetchone()
    assert row is not None
    return row[0], row[1], row[2]


# --- the rest of a batch -----------------------------------------------------------------------


def _events_and_figures(
    cursor: psycopg.Cursor[Any],
    values: dict[str, Any],
    changes: int,
    figures: BatchFigures,
    began: float,
) -> None:
    moved = {}
    for kind, table, more in (
        ("late", "all_late_facts", ", fact, stream, time, delay"),
        ("rejected", "all_rejected_events", ""),
    ):
        columns = f"event, source, place, arrival, reason{more}"
        cursor.execute(
            f"insert into {table} (run, batch, {columns}) select run, batch, {columns} "
            "from staged_events where run = %(run)s and batch = %(batch)s and kind = %(kind)s",
            {**values, "kind": kind},
        )
        moved[kind] = cursor.rowcount
    for table in ("staged_changes", "staged_events"):
        cursor.execute(f"delete from {table} where run = %(run)s and batch = %(batch)s", values)
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
        "changes": changes,
        "store_ms": (now - began) * 1000,
        "total_ms": None if started is None else (now - started) * 1000,
    }
    named = ", ".join(row)
    marks = ", ".join(f"%({name})s" for name in row)
    cursor.execute(f"insert into batches ({named}) values ({marks})", row)
