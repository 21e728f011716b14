"""What a store holds and for how long: sizes, settings, and pruning.

Nothing is deleted row by row. What is only appended is in partitions of a week, and a week that is
over for long enough is dropped. A run that is no longer current is dropped with its partition. The
partition of a run that goes on is exchanged for one with the rows that are kept: of an answer that
was decided before the limit of `history`, the triple that is shown; of one decided before the
limit of `answers`, nothing. Both limits must be longer than the longest window
of the program (`whilst explain`), since what is in a window may still change.

Alerts that were delivered or given up are the exception: `outbox` is one table, since an alert is
sent once whatever the week, and so they are deleted, some thousands in a transaction.

`prune(engine, thorough=False)` is what a run calls every few minutes: it asks small tables alone
whether there is enough to do, and gives way to whoever holds a table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from psycopg import errors as pg
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from storage.errors import StoreError
from storage.printing import size
from storage.writer import STAGED

__all__ = ["KINDS", "Pruned", "Size", "keep", "kept", "prune", "report", "sizes"]

WEEKLY = {
    "late_facts": "all_late_facts",
    "rejected_events": "all_rejected_events",
    "batches": "batches",
    "delivery_attempts": "delivery_attempts",
}
KINDS = (*WEEKLY, "history", "answers", "alerts", "runs")
_WORTH = 0.2
"""Share of a run's rows that must go before its partition is exchanged."""
_SLICE = 10_000
"""Alerts that are deleted in one transaction."""
_LOCK = 0x57686C737431


@dataclass(frozen=True, slots=True)
class Pruned:
    """Something that was dropped, or would be."""

    what: str
    table: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Size:
    table: str
    rows: int
    bytes: int


def kept(db: Connection) -> dict[str, int | None]:
    """Days for which each kind is kept; None: for ever."""
    rows = db.execute(text("select what, days from retention order by what")).all()
    return {row.what: row.days for row in rows}


def keep(engine: Engine, what: str, days: int | None) -> None:
    """Set for how long a kind is kept."""
    _check(what, days)
    with engine.begin() as db:
        db.execute(
            text(
                "insert into retention (what, days) values (:what, :days) "
                "on conflict (what) do update set days = excluded.days"
            ),
            {"what": what, "days": days},
        )


def _check(what: str, days: int | None) -> None:
    if what not in KINDS:
        raise StoreError(f"there is no {what!r} to keep: it is one of {', '.join(KINDS)}")
    if what in ("history", "answers") and days == 0:
        raise StoreError(f"{what} of today may still change: keep them for 1 day or more")


def prune(
    engine: Engine,
    *,
    dry: bool = False,
    thorough: bool = True,
    keeping: Mapping[str, int | None] | None = None,
    now: datetime | None = None,
) -> list[Pruned]:
    """Drop what is older than its setting says; with `dry`, only tell what would go.

    Needs the owner's engine. `keeping` takes the place of settings without changing them. Without
    `thorough`, a call that finds little to do costs a few milliseconds, and what somebody reads at
    that moment, or another process prunes, stays for the next call.
    """
    now = now or datetime.now(UTC)
    for what, kept_for in (keeping or {}).items():
        _check(what, kept_for)
    with engine.connect() as db:
        settings = {**kept(db), **(keeping or {})}
    limits = {what: now - timedelta(days=d) for what, d in settings.items() if d is not None}
    done: list[Pruned] = []
    with _alone(engine, thorough) as alone:
        if not alone:
            return []
        for what, parent in WEEKLY.items():
            if what in limits:
                with _step(engine, thorough) as db:
                    done += _weeks(db, what, parent, limits[what], dry)
        if "runs" in limits:
            with _step(engine, thorough) as db:
                done += _runs(db, limits["runs"], dry)
        if "alerts" in limits:
            done += _alerts(engine, limits["alerts"], dry)
        done += _decided(engine, limits.get("history"), limits.get("answers"), dry, thorough)
    return done


@contextmanager
def _alone(engine: Engine, thorough: bool) -> Iterator[bool]:
    """One process prunes a store at a time; whoever is thorough waits for its turn."""
    how = "pg_advisory_lock" if thorough else "pg_try_advisory_lock"
    with engine.connect() as db:  # its end lets the lock go
        yield db.execute(text(f"select {how}(:key)"), {"key": _LOCK}).scalar() is not False


@contextmanager
def _step(engine: Engine, thorough: bool, patience: str = "1s") -> Iterator[Connection]:
    """A transaction; without `thorough`, one that leaves a table that is in use for the next call.

    Exchanging a partition is work that would be lost: it waits for longer than readers may read.
    """
    try:
        with engine.begin() as db:
            if not thorough:
                db.execute(text(f"set local lock_timeout = '{patience}'"))
            yield db
    except DBAPIError as error:
        if thorough or not isinstance(error.orig, pg.LockNotAvailable):
            raise


def _weeks(db: Connection, what: str, parent: str, limit: datetime, dry: bool) -> list[Pruned]:
    done = []
    for table, bytes_ in _partitions(db, parent):
        start = datetime.strptime(table.rpartition("_")[2], "%Y%m%d").replace(tzinfo=UTC)
        if start + timedelta(days=7) <= limit:
            done.append(Pruned(what, table, bytes_))
            if not dry:
                db.execute(text(f"drop table {table}"))
    return done


def _runs(db: Connection, limit: datetime, dry: bool) -> list[Pruned]:
    done = []
    over = db.execute(
        text("select id from runs where not current and seen_at < :limit for update skip locked"),
        {"limit": limit},
    ).scalars()
    for run in over.all():
        done.append(Pruned("runs", f"triples_{run}", _size(db, f"triples_{run}")))
        if not dry:
            db.execute(text(f"drop table triples_{run}"))
            for table in STAGED:
                db.execute(text(f"delete from {table} where run = :run"), {"run": run})
            db.execute(text("delete from runs where id = :run"), {"run": run})
    return done


def _alerts(engine: Engine, limit: datetime, dry: bool) -> list[Pruned]:
    """Alerts that were delivered or given up before the limit."""
    over = "from outbox o where status <> 'waiting' and done_at < :limit"
    size_of = "select count(*), coalesce(sum(pg_column_size(o.*)), 0)::bigint"
    statement = f"{size_of} {over}"
    if not dry:
        chosen = f"select id {over} order by done_at limit {_SLICE} for update skip locked"
        statement = (
            f"with gone as (delete from outbox where id in ({chosen}) returning outbox.*) "
            f"{size_of} from gone o"
        )
    freed, again = 0, True
    while again:
        with engine.begin() as db:
            rows, bytes_ = db.execute(text(statement), {"limit": limit}).one()
        freed += bytes_
        again = rows == _SLICE and not dry
    return [Pruned("alerts", "outbox", freed)] if freed else []


# --- answers of a run that goes on -------------------------------------------------------------

# Null where a kind is kept for ever: a comparison with it keeps the row.
_GOES = (
    "(s.status <> 'pending' and s.changed_at < :answers) is true or (s.status <> 'pending' "
    "and s.changed_at < :history and not t.shown) is true"
)
# Of an answer that stays, the triples that went with one that is shown.
_PAST_GOES = "(s.status <> 'pending' and s.changed_at < :history) is true"
_PAST = "coalesce(octet_length(t.past), 0) / 400.0"
"""What is in `past`, in rows of the usual length."""


def _decided(
    engine: Engine, history: datetime | None, answers: datetime | None, dry: bool, thorough: bool
) -> list[Pruned]:
    latest = max((limit for limit in (history, answers) if limit is not None), default=None)
    if latest is None:
        return []
    done: list[Pruned] = []
    with engine.connect() as db:
        runs = db.execute(text("select id from runs order by id")).scalars().all()
    for run in runs:
        with engine.connect() as db:
            if not thorough and not _worth_a_look(db, run, latest):
                continue
            share = _share(db, run, history, answers)
        with _step(engine, thorough, "1min") as db:
            if share:
                done += _exchange(db, run, history, answers, share, dry)
            if not dry:
                db.execute(
                    text("update runs set pruned_to = :limit where id = :run"),
                    {"limit": latest, "run": run},
                )
    return done


def _worth_a_look(db: Connection, run: int, limit: datetime) -> bool:
    """Whether enough was decided between the last look and the limit, by the hourly tallies."""
    decided, there = db.execute(
        text(
            "select (select coalesce(sum(confirmed + refuted), 0) from tallies t "
            "join runs r on r.id = t.run where r.id = :run and hour < :limit "
            "and (pruned_to is null or hour >= pruned_to)), "
            "(select coalesce(sum(pending + confirmed + refuted), 0) from counts where run = :run)"
        ),
        {"run": run, "limit": limit},
    ).one()
    return bool(decided and decided >= float(there) * _WORTH)


def _share(db: Connection, run: int, history: datetime | None, answers: datetime | None) -> float:
    """Share of the run's rows that go; 0 where it is not worth it. A look at all of them."""
    rows, going = db.execute(
        text(
            f"select sum(1 + {_PAST}), sum(case when {_GOES} then 1 + {_PAST} "
            f"when {_PAST_GOES} then {_PAST} else 0 end) {_joined(run)}"
        ),
        {"history": history, "answers": answers},
    ).one()
    share = float(going / rows) if rows else 0.0
    return share if share >= _WORTH else 0.0


def _joined(run: int) -> str:
    return f"from triples_{run} t join triples_{run} s on s.answer_id = t.answer_id and s.shown"


def _exchange(
    db: Connection,
    run: int,
    history: datetime | None,
    answers: datetime | None,
    share: float,
    dry: bool,
) -> list[Pruned]:
    """Put a smaller partition in the place of a run's; its writer waits meanwhile."""
    table = f"triples_{run}"
    what = "answers" if answers else "history"
    done = [Pruned(what, table, round(_size(db, table) * share))]
    if dry:
        return done
    there = db.execute(text("select 1 from runs where id = :run for update"), {"run": run}).scalar()
    if there is None:
        return []
    db.execute(text(f"create table {table}_kept (like {table} including all)"))
    db.execute(
        text(
            f"insert into {table}_kept select t.* {_joined(run)} where not ({_GOES}) "
            "order by t.answer_id"
        ),
        {"history": history, "answers": answers},
    )
    db.execute(
        text(
            f"update {table}_kept t set past = null, first_tau = t.start_tau from {table} s "
            f"where t.past is not null and s.answer_id = t.answer_id and s.shown and {_PAST_GOES}"
        ),
        {"history": history},
    )
    db.execute(text(f"drop table {table}"))
    db.execute(text(f"alter table {table}_kept rename to {table}"))
    db.execute(text(f"alter table triples attach partition {table} for values in ({run})"))
    db.execute(
        text(
            "update counts c set (pending, confirmed, refuted) = ("
            "select count(*) filter (where status = 'pending'), "
            "count(*) filter (where status = 'confirmed'), "
            f"count(*) filter (where status = 'refuted') from {table} "
            "where shown and query = c.query) where run = :run"
        ),
        {"run": run},
    )
    return done


def sizes(db: Connection) -> list[Size]:
    """Each table with all its partitions and indexes; rows as the server last estimated them."""
    rows = db.execute(
        text(
            "select c.relname, coalesce(sum(greatest(p.reltuples, 0)), 0)::bigint, "
            "coalesce(sum(pg_total_relation_size(p.oid)), 0)::bigint from pg_class c "
            "cross join lateral (select x.oid, x.reltuples from pg_partition_tree(c.oid) t "
            "join pg_class x on x.oid = t.relid where t.isleaf "
            "union select c.oid, c.reltuples where c.relkind = 'r') p "
            "where c.relnamespace = current_schema()::regnamespace "
            "and c.relkind in ('r', 'p') and not c.relispartition "
            "group by c.relname order by 3 desc, 1"
        )
    ).all()
    return [Size(*row) for row in rows]


def report(db: Connection) -> list[str]:
    """What the store holds and for how long, as lines for people."""
    lines = []
    runs = db.execute(
        text(
            "select r.name, r.id, r.status, r.current, r.complete_tau, r.last_batch, "
            "coalesce(sum(c.pending), 0), coalesce(sum(c.confirmed), 0), "
            "coalesce(sum(c.refuted), 0) from runs r left join counts c on c.run = r.id "
            "group by r.id order by r.name, r.id"
        )
    ).all()
    for name, run, status, current, tau, batch, pending, confirmed, refuted in runs:
        lines.append(
            f"run {run} of {name}: {status}{'' if current else ', superseded'}, τ = {tau}, "
            f"{batch + 1} batches, {pending} pending, {confirmed} confirmed, {refuted} refuted"
        )
    for found in sizes(db):
        lines.append(f"{found.table}: {size(found.bytes)}, about {found.rows} rows")
    limits = ", ".join(
        f"{what} {'for ever' if days is None else f'{days} days'}"
        for what, days in kept(db).items()
    )
    return [*lines, f"kept: {limits} (`whilst db prune --keep WHAT=DAYS`)"]


def _partitions(db: Connection, parent: str) -> list[tuple[str, int]]:
    rows = db.execute(
        text(
            "select relid::regclass::text, pg_total_relation_size(relid) "
            "from pg_partition_tree(:parent) where isleaf order by 1"
        ),
        {"parent": parent},
    ).all()
    return [(name, count) for name, count in rows]


def _size(db: Connection, table: str) -> int:
    return int(db.execute(text("select pg_total_relation_size(:t)"), {"t": table}).scalar_one())
