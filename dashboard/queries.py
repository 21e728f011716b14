"""All SQL of the dashboard. Each question asks for what one screen shows, and for nothing else.

Long lists are paged by key: a page begins after the last row of the one before, so that the
thousandth page costs what the first one does.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias
from uuid import UUID

from psycopg.rows import class_row, dict_row

from dashboard.reading import Database

PAGE = 50
"""Rows of a page."""

Status: TypeAlias = Literal["pending", "confirmed", "refuted"]


# --- runs ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Run:
    """A run, with what is needed to show its times."""

    id: int
    program: int
    name: str
    unit_ms: int | None
    status: str
    current: bool
    sources: list[str]
    complete_tau: int | None
    last_batch: int
    started_at: datetime
    seen_at: datetime
    ended_at: datetime | None
    error: str | None


_RUN = """
select r.id, r.program, r.name, p.unit_ms, r.status, r.current, r.sources, r.complete_tau,
       r.last_batch, r.started_at, r.seen_at, r.ended_at, r.error
from runs r join programs p on p.id = r.program
"""


def current_runs(db: Database) -> list[Run]:
    """The current run of each program, by name."""
    with db.cursor(row_factory=class_row(Run)) as cursor:
        return cursor.execute(_RUN + "where r.current order by r.name").fetchall()


def run(db: Database, number: int) -> Run | None:
    with db.cursor(row_factory=class_row(Run)) as cursor:
        return cursor.execute(_RUN + "where r.id = %s", (number,)).fetchone()


@dataclass(frozen=True, slots=True)
class QueryNow:
    """A query with how many answers it has, and had since some hour."""

    query: str
    atom: str
    pending: int
    confirmed: int
    refuted: int
    confirmed_since: int
    refuted_since: int


def queries_now(db: Database, number: int, since: datetime) -> list[QueryNow]:
    with db.cursor(row_factory=class_row(QueryNow)) as cursor:
        return cursor.execute(
            """
            select q.name as query, q.atom, coalesce(c.pending, 0) as pending,
                   coalesce(c.confirmed, 0) as confirmed, coalesce(c.refuted, 0) as refuted,
                   coalesce(t.confirmed, 0)::bigint as confirmed_since,
                   coalesce(t.refuted, 0)::bigint as refuted_since
            from runs r
            join lateral (select name, min(number) as number, string_agg(atom, ', ') as atom
                          from queries where program = r.program group by name) q on true
            left join counts c on c.run = r.id and c.query = q.name
            left join lateral (select sum(confirmed) as confirmed, sum(refuted) as refuted
                               from tallies where run = r.id and query = q.name and hour >= %s) t
                on true
            where r.id = %s
            order by q.number
            """,
            (since, number),
        ).fetchall()


@dataclass(frozen=True, slots=True)
class Pulse:
    """How a run does: over the last ten seconds with batches, and over the last hour."""

    facts_per_second: float | None
    lag_ms: float | None
    behind: int | None
    late: int
    rejected: int


def pulse(db: Database, number: int) -> Pulse:
    with db.cursor(row_factory=class_row(Pulse)) as cursor:
        found = cursor.execute(
            """
            select (sum(facts) filter (where recorded_at > now() - interval '10 seconds'))::float8
                       / 10 as facts_per_second,
                   (array_agg(lag_ms order by recorded_at desc))[1] as lag_ms,
                   (array_agg(behind order by recorded_at desc))[1] as behind,
                   coalesce(sum(late), 0)::bigint as late,
                   coalesce(sum(rejected), 0)::bigint as rejected
            from batches where run = %s and recorded_at > now() - interval '1 hour'
            """,
            (number,),
        ).fetchone()
    assert found is not None
    return found


# --- pending answers -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pending:
    """A pending triple: one way to complete an answer."""

    run: int
    answer_id: UUID
    triple: UUID
    query: str
    answer: str
    evidence: list[str]
    hypotheses: list[str]
    conditions: list[str]
    deadline: int | None
    since: int


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page begins: after (or, going back, before) this row."""

    deadline: int | None
    answer_id: UUID
    triple: UUID


@dataclass(frozen=True, slots=True)
class Filter:
    """What to look for; nothing given is nothing asked. `bindings` is JSON, hashable as text."""

    query: str | None = None
    bindings: str | None = None
    text: str | None = None

    def __bool__(self) -> bool:
        return bool(self.query or self.bindings or self.text)


_PENDING = """
select t.run, t.answer_id, t.id as triple, t.query, t.answer, t.evidence, t.hypotheses,
       t.conditions, t.deadline, t.since
from triples t
where t.run = %(run)s and t.live
"""


def _filtered(wanted: Filter) -> tuple[str, dict[str, Any]]:
    clauses = ""
    values: dict[str, Any] = {}
    if wanted.query:
        clauses += " and t.query = %(query)s"
        values["query"] = wanted.query
    if wanted.bindings:
        # The store has an index for the text of a variable, of the triple shown for an answer.
        found = ""
        for number, (name, value) in enumerate(json.loads(wanted.bindings).items()):
            found += f" and s.bindings ->> %(name{number})s::text = %(value{number})s"
            values[f"name{number}"] = name
            values[f"value{number}"] = value if isinstance(value, str) else json.dumps(value)
        clauses += (
            " and t.answer_id in (select s.answer_id from triples s where s.run = %(run)s "
            f"and s.shown{found}) and t.bindings @> %(bindings)s::jsonb"
        )
        values["bindings"] = wanted.bindings
    if wanted.text:
        # A pattern, not `strpos`: the planner knows how rare a long one is.
        clauses += " and t.answer ilike %(text)s"
        values["text"] = "%" + re.sub(r"([\\%_])", r"\\\1", wanted.text) + "%"
    return clauses, values


def soonest(db: Database, number: int, rows: int) -> list[Pending]:
    """The pending answers that are decided next, each by the last way to complete it."""
    with db.cursor(row_factory=class_row(Pending)) as cursor:
        return cursor.execute(
            _PENDING + " and t.shown order by t.deadline limit %(rows)s",
            {"run": number, "rows": rows},
        ).fetchall()


def pending(
    db: Database, number: int, wanted: Filter, place: Place | None = None, back: bool = False
) -> list[Pending]:
    """A page of pending answers by deadline, those without one last; one row more than a page
    tells that there is another. Two ranges of the index: with a deadline, and without."""
    clauses, values = _filtered(wanted)
    values |= {"run": number, "rows": PAGE + 1}
    if place is not None:
        values |= {"deadline": place.deadline, "answer": place.answer_id, "triple": place.triple}
    beyond, down = ("<", " desc") if back else (">", "")
    order = f"t.answer_id{down}, t.id{down}"
    dated = clauses + " and t.deadline is not null"
    undated = clauses + " and t.deadline is null"
    if place is not None and place.deadline is not None:
        dated += (
            f" and t.deadline {beyond}= %(deadline)s and (t.deadline, t.answer_id, t.id) {beyond} "
            "(%(deadline)s, %(answer)s, %(triple)s)"
        )
    elif place is not None:
        undated += f" and (t.answer_id, t.id) {beyond} (%(answer)s, %(triple)s)"
    ranges = [
        (dated, f"t.deadline{down}, {order}"),
        (undated, order),
    ]
    if back:
        ranges.reverse()
    if place is not None and (place.deadline is None) != back:
        ranges = ranges[1:]
    found: list[Pending] = []
    with db.cursor(row_factory=class_row(Pending)) as cursor:
        for condition, ordered in ranges:
            values["rows"] = PAGE + 1 - len(found)
            if values["rows"]:
                statement = f"{_PENDING}{condition} order by {ordered} limit %(rows)s"
                found += cursor.execute(statement, values).fetchall()
    return found[::-1] if back else found


# --- decided answers -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Decided:
    """A confirmed or refuted answer."""

    run: int
    answer_id: UUID
    query: str
    answer: str
    bindings: dict[str, Any]
    since: int
    decided_at: int
    reason: str | None
    changed_at: datetime


_DECIDED = """
select t.run, t.answer_id, t.query, t.answer, t.bindings, t.since, t.decided_at, t.reason,
       t.changed_at
from triples t
where t.run = %(run)s and t.shown and t.status <> 'pending' and t.status = %(status)s
"""


def _so_far(status: Status) -> str:
    """Of the refuted those that count: their time point is complete."""
    complete = " and t.decided_at <= (select complete_tau from runs where id = %(run)s)"
    return complete if status == "refuted" else ""


def decided(
    db: Database,
    number: int,
    status: Status,
    wanted: Filter,
    span: tuple[int | None, int | None] = (None, None),
    place: tuple[int, UUID] | None = None,
    back: bool = False,
    rows: int = PAGE + 1,
) -> list[Decided]:
    """A page of decided answers, the newest first, decided from the first to before the second."""
    clauses, values = _filtered(wanted)
    values |= {"run": number, "status": status, "rows": rows}
    for bound, compared, name in zip(span, (">=", "<"), ("first", "past"), strict=True):
        if bound is not None:
            clauses += f" and t.decided_at {compared} %({name})s"
            values[name] = bound
    if place is not None:
        values |= {"tau": place[0], "answer": place[1]}
        beyond = ">" if back else "<"
        clauses += (
            f" and t.decided_at {beyond}= %(tau)s "
            f"and (t.decided_at, t.answer_id) {beyond} (%(tau)s, %(answer)s)"
        )
    down = "" if back else " desc"
    with db.cursor(row_factory=class_row(Decided)) as cursor:
        found = cursor.execute(
            f"{_DECIDED}{_so_far(status)}{clauses} "
            f"order by t.decided_at{down}, t.answer_id{down} limit %(rows)s",
            values,
        ).fetchall()
    return found[::-1] if back else found


@dataclass(frozen=True, slots=True)
class OverTime:
    """How many answers were decided in each of equal stretches of τ, from `first` on."""

    first: int
    width: int
    counts: list[int]


def over_time(
    db: Database,
    number: int,
    status: Status,
    wanted: Filter,
    span: tuple[int | None, int | None],
    stretches: int,
) -> OverTime | None:
    """None where nothing was decided in that span."""
    clauses, values = _filtered(wanted)
    values |= {"run": number, "status": status}
    limits = db.execute(
        "select min(decided_at), max(decided_at) from triples t where run = %(run)s and shown "
        f"and status <> 'pending' and status = %(status)s{_so_far(status)}",
        values,
    ).fetchone()
    if limits is None or limits[0] is None:
        return None
    first = max(limits[0], span[0]) if span[0] is not None else limits[0]
    last = min(limits[1], span[1] - 1) if span[1] is not None else limits[1]
    if last < first:
        return None
    width = max(1, -(-(last + 1 - first) // stretches))
    counts = [0] * -(-(last + 1 - first) // width)
    rows = db.execute(
        "select (t.decided_at - %(first)s) / %(width)s, count(*) from triples t "
        "where t.run = %(run)s and t.shown and t.status <> 'pending' and t.status = %(status)s "
        f"and t.decided_at between %(first)s and %(last)s{clauses} group by 1",
        {**values, "first": first, "last": last, "width": width},
    ).fetchall()
    for place, found in rows:
        counts[place] = found
    return OverTime(first, width, counts)


# --- one answer ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answer:
    run: int
    id: UUID
    query: str
    answer: str
    bindings: dict[str, Any]
    status: Status
    since: int
    decided_at: int | None
    deadline: int | None
    reason: str | None
    shown: UUID
    recorded_at: datetime


@dataclass(frozen=True, slots=True)
class Triple:
    id: UUID
    premise: int
    evidence: list[str]
    arrivals: list[int]
    hypotheses: list[str]
    closes: list[int | None]
    conditions: list[str]
    deadline: int | None
    reason: str | None
    start_tau: int
    end_tau: int | None
    live: bool


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to an answer."""

    event: str
    tau: int
    hypotheses: list[str] | None


@dataclass(frozen=True, slots=True)
class Alert:
    event: str
    tau: int
    endpoint: str
    status: str
    attempts: int
    created_at: datetime
    done_at: datetime | None
    next_at: datetime
    error: str | None


@dataclass(frozen=True, slots=True)
class Whole:
    """Everything about one answer."""

    answer: Answer
    triples: list[Triple]
    history: list[Event]
    alerts: list[Alert]
    explained: list[dict[str, Any]]
    program: str


_MOST = 50
"""Rows of a list on the page of an answer."""


def whole_answer(db: Database, number: int, answer_id: UUID) -> Whole | None:
    key = {"run": number, "id": answer_id, "rows": _MOST}
    with db.cursor(row_factory=class_row(Answer)) as cursor:
        answer = cursor.execute(
            "select run, id, query, answer, bindings, status, since, decided_at, deadline, reason, "
            "shown, recorded_at from answers where run = %(run)s and id = %(id)s",
            key,
        ).fetchone()
    if answer is None:
        return None
    with db.cursor(row_factory=class_row(Triple)) as cursor:
        triples = cursor.execute(
            "select id, premise, evidence, arrivals, hypotheses, closes, conditions, deadline, "
            "reason, start_tau, end_tau, live from lives "
            "where run = %(run)s and answer_id = %(id)s "
            "order by id = %(shown)s desc, live desc, deadline, start_tau desc, id limit %(rows)s",
            {**key, "shown": answer.shown},
        ).fetchall()
    with db.cursor(row_factory=class_row(Event)) as cursor:
        history = cursor.execute(
            "select h.event, h.tau, t.hypotheses from history h left join lives t "
            "on t.run = h.run and t.answer_id = h.answer_id and t.id = h.triple "
            "where h.run = %(run)s and h.answer_id = %(id)s "
            "order by h.tau desc, h.event desc limit %(rows)s",
            key,
        ).fetchall()
    with db.cursor(row_factory=class_row(Alert)) as cursor:
        alerts = cursor.execute(
            "select o.event, o.tau, e.name as endpoint, o.status, o.attempts, o.created_at, "
            "o.done_at, o.next_at, (select d.error from delivery_attempts d where d.outbox = o.id "
            "order by d.recorded_at desc limit 1) as error "
            "from outbox o join endpoints e on e.id = o.endpoint "
            "where o.answer_id = %(id)s and o.run = %(run)s order by o.id desc limit %(rows)s",
            key,
        ).fetchall()
    explained = db.execute(
        "select q.explained from queries q join runs r on r.program = q.program "
        "where r.id = %s and q.name = %s and q.explained is not null order by q.number",
        (number, answer.query),
    ).fetchall()
    row = db.execute(
        "select p.text from programs p join runs r on r.program = p.id where r.id = %s", (number,)
    ).fetchone()
    text = str(row[0]) if row else ""
    return Whole(answer, triples, history, alerts, [row[0] for row in explained], text)


# --- the program ---------------------------------------------------------------------------------


def program_text(db: Database, program: int) -> str:
    row = db.execute("select text from programs where id = %s", (program,)).fetchone()
    assert row is not None
    return str(row[0])


def explanations(db: Database, program: int) -> list[tuple[str, dict[str, Any] | None]]:
    """Each query as written, and how it is explained."""
    return db.execute(
        "select atom, explained from queries where program = %s order by number", (program,)
    ).fetchall()


@dataclass(frozen=True, slots=True)
class Delays:
    """A stream, its delay bounds, and what came: how many facts with which delay (arrival minus
    time), and how many late ones how far beyond the bound of theirs."""

    stream: str
    fields: list[dict[str, Any]]
    delay: int
    longest_delay: int
    seen: list[tuple[int, int]]
    beyond: list[tuple[int, int]]


_LATEST = 100_000
"""Late facts that are looked at to judge a delay bound."""


def delays(db: Database, number: int) -> list[Delays]:
    late: dict[str, list[tuple[int, int]]] = {}
    for stream, beyond, facts in db.execute(
        """
        select stream, arrival - time - delay, count(*)
        from (select stream, arrival, time, delay from all_late_facts
              where run = %s and matched is not false
              order by recorded_at desc limit %s) newest
        where arrival - time > delay group by 1, 2 order by 1, 2
        """,
        (number, _LATEST),
    ):
        late.setdefault(stream, []).append((beyond, facts))
    rows = db.execute(
        """
        select s.name, s.fields, s.delay, s.longest_delay,
               coalesce((select jsonb_agg(jsonb_build_array(d.delay, d.facts) order by d.delay)
                         from delays d where d.run = r.id and d.stream = s.name), '[]')
        from runs r join streams s on s.program = r.program
        where r.id = %s order by s.name
        """,
        (number,),
    ).fetchall()
    return [
        Delays(name, fields, delay, longest, [(d, n) for d, n in seen], late.get(name, []))
        for name, fields, delay, longest, seen in rows
    ]


# --- health --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NoPart:
    """A late fact or a rejected event."""

    recorded_at: datetime
    event: str
    source: str
    place: str
    arrival: int | None
    reason: str
    time: int | None
    delay: int | None


def newest_events(db: Database, number: int, kind: Literal["late", "rejected"]) -> list[NoPart]:
    table, more = {
        "late": ("all_late_facts", "time, delay"),
        "rejected": ("all_rejected_events", "null::bigint as time, null::bigint as delay"),
    }[kind]
    with db.cursor(row_factory=class_row(NoPart)) as cursor:
        return cursor.execute(
            "select recorded_at, left(event, 400) as event, source, place, arrival, reason, "
            f"{more} from {table} where run = %s order by recorded_at desc limit 20",
            (number,),
        ).fetchall()


@dataclass(frozen=True, slots=True)
class Slice:
    """Figures of the batches in one stretch of wall time."""

    at: datetime
    facts_per_second: float
    late: int
    rejected: int
    lag_ms: float | None
    behind: int | None
    batch_ms: float | None
    state_rows: int | None
    state_bytes: int | None


def slices(db: Database, number: int, seconds: int, stretch: int) -> list[Slice]:
    """The last `seconds`, in stretches of `stretch` seconds."""
    with db.cursor(row_factory=class_row(Slice)) as cursor:
        return cursor.execute(
            """
            select date_bin(make_interval(secs => %(stretch)s), recorded_at, 'epoch') as at,
                   sum(facts)::float8 / %(stretch)s as facts_per_second,
                   sum(late)::bigint as late, sum(rejected)::bigint as rejected,
                   max(lag_ms) as lag_ms, max(behind) as behind, max(total_ms) as batch_ms,
                   max(state_rows) as state_rows, max(state_bytes) as state_bytes
            from batches
            where run = %(run)s and recorded_at > now() - make_interval(secs => %(seconds)s)
            group by 1 order by 1
            """,
            {"run": number, "seconds": seconds, "stretch": stretch},
        ).fetchall()


def endpoints(db: Database) -> list[dict[str, Any]]:
    """Where alerts go, and how that goes: what waits, what came through, what was given up."""
    with db.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(
            """
            select e.name, e.url, e.status, e.status_reason, e.events, e.queries, e.program,
                   o.waiting, o.delivered, o.dead, o.oldest, a.status_code, a.error,
                   a.recorded_at as tried_at, a.latency_ms
            from endpoints e
            left join lateral (
                select count(*) filter (where status = 'waiting') as waiting,
                       count(*) filter (where status = 'delivered') as delivered,
                       count(*) filter (where status = 'dead') as dead,
                       min(created_at) filter (where status = 'waiting') as oldest
                from outbox where endpoint = e.id) o on true
            left join lateral (
                select status_code, error, recorded_at, latency_ms from delivery_attempts
                where endpoint = e.id order by recorded_at desc limit 1) a on true
            order by e.name
            """
        ).fetchall()
