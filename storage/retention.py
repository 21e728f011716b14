"""What a store holds and for how long: sizes, settings, and pruning.

Nothing is deleted row by row. What is only appended is in partitions of a week, and a week that is
over for long enough is dropped. A run that is no longer current is dropped with its partition. The
partition of a run that goes on is exchanged for one with the rows that are kept: of an answer that
was decided before the limit of `history`, the triple that is shown; of one decided before the
limit of `answers`, nothing. Both limits must be longer than the longest window
of the program (`whilst explain`), since what is in a window may still change.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, Engine, text

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
KINDS = (*WEEKLY, "history", "answers", "runs")
_WORTH = 0.2
"""Share of a run's rows that must go before its partition is exchanged."""


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
    if what not in KINDS:
        raise StoreError(f"there is no {what!r} to keep: it is one of {', '.join(KINDS)}")
    with engine.begin() as db:
        db.execute(
            text(
                "insert into retention (what, days) values (:what, :days) "
                "on conflict (what) do update set days = excluded.days"
            ),
            {"what": what, "days": days},
        )


def prune(engine: Engine, *, dry: bool = False, now: datetime | None = None) -> list[Pruned]:
    """Drop what is older than its setting says; with `dry`, only tell what would go."""
    now = now or datetime.now(UTC)
    with engine.connect() as db:
        limits = {
            what: now - timedelta(days=days) for what, days in kept(db).items() if days is not None
        }
    done: list[Pruned] = []
    for what, parent in WEEKLY.items():
        if what in limits:
            with engine.begin() as db:
                done += _weeks(db, what, parent, limits[what], dry)
    if "runs" in limits:
        with engine.begin() as db:
            done += _runs(db, limits["runs"], dry)
    if {"history", "answers"} & limits.keys():
        with engine.connect() as db:
            runs = db.execute(text("select id from runs order by id")).scalars().all()
        for run in runs:
            with engine.begin() as db:
                done += _exchange(db, run, limits.get("history"), limits.get("answers"), dry)
    return done


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


def _exchange(
    db: Connection, run: int, history: datetime | None, answers: datetime | None, dry: bool
) -> list[Pruned]:
    """Put a smaller partition in the place of a run's; its writer waits meanwhile."""
    table = f"triples_{run}"
    there = db.execute(text("select 1 from runs where id = :run for update"), {"run": run}).scalar()
    if there is None:
        return []
    join = f"from {table} t join {table} s on s.answer_id = t.answer_id and s.shown"
    # Null where a kind is kept for ever: a comparison with it keeps the row.
    goes = (
        "(s.status <> 'pending' and s.changed_at < :answers) is true or (s.status <> 'pending' "
        "and s.changed_at < :history and not t.shown) is true"
    )
    limits = {"history": history, "answers": answers}
    rows, going = db.execute(
        text(f"select count(*), count(*) filter (where {goes}) {join}"), limits
    ).one()
    if not going or going < rows * _WORTH:
        return []
    before = _size(db, table)
    done = [Pruned("answers" if answers else "history", table, round(before * going / rows))]
    if dry:
        return done
    db.execute(text(f"create table {table}_kept (like {table} including all)"))
    db.execute(
        text(f"insert into {table}_kept select t.* {join} where not ({goes}) order by t.answer_id"),
        limits,
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
