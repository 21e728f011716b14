"""What delivery says to the store: endpoints, claims, what came of attempts. SQL and no HTTP.

A deliverer holds an advisory lock with its number for as long as its session lives, and writes the
number into the rows it has in hand. A claim counts while somebody holds that lock: so no
transaction is open while an alert is on its way, no other deliverer sends it, and the claims of one
that died are free at once. Rows are claimed under `for update skip locked`, so that deliverers do
not wait for each other.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, LiteralString

import psycopg
from psycopg.rows import dict_row

from monitor.alerts import secrets
from monitor.alerts.body import Message
from monitor.alerts.declarations import Alert
from monitor.alerts.errors import AlertError
from monitor.alerts.sending import Outcome
from storage.reading import Rows

UNDECLARED = "it is no longer declared"

_RETRIED: LiteralString = "whilst_alerts_retried"
"""The channel on which running deliverers hear of `retry`: a rest is in their memory alone."""

_LOCKS = 0x57484C41  # the family of our advisory locks


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A row of `endpoints`: a declaration that is registered."""

    id: int
    alert: Alert
    status: str
    status_reason: str | None


@dataclass(frozen=True, slots=True)
class Claimed:
    """A row of the outbox that this deliverer has in hand."""

    id: int
    endpoint: int
    attempts: int
    deliverer: int
    message: Message


@dataclass(frozen=True, slots=True)
class Result:
    """What is written back for a claimed row: `wait` seconds until the next attempt, or none."""

    claimed: Claimed
    outcome: Outcome
    sent_at: datetime
    wait: float | None

    @property
    def status(self) -> str:
        if self.outcome.delivered:
            return "delivered"
        return "dead" if self.wait is None else "waiting"


# --- endpoints ---------------------------------------------------------------------------------

_OPTIONS = (
    "previous_secret",
    "template",
    "allow_private",
    "allow_link_local",
    "redirects",
    "timeout",
    "concurrency",
    "ca_file",
)

_REGISTER = """
insert into endpoints as e (name, url, secret_from, program, queries, events, within, within_ms,
                            filter, format, headers, options)
values (%(name)s, %(url)s, %(secret)s, %(program)s, %(queries)s, %(events)s, %(within)s,
        %(within_ms)s, %(filter)s, %(format)s, %(headers)s, %(options)s)
on conflict (name) do update
set (url, secret_from, program, queries, events, within, within_ms, filter, format, headers,
     options, status, status_reason, changed_at) = row(
    excluded.url, excluded.secret_from, excluded.program, excluded.queries, excluded.events,
    excluded.within, excluded.within_ms, excluded.filter, excluded.format, excluded.headers,
    excluded.options,
    case when e.status_reason = %(undeclared)s then 'enabled' else e.status end,
    case when e.status_reason = %(undeclared)s then null else e.status_reason end, now())
"""


def register(url: str, alerts: Sequence[Alert], origin: str) -> tuple[Endpoint, ...]:
    """Put declarations into the store, from when on its writer fills the outbox for them.

    What the same origin (a configuration file, a command line) declared before and does not now is
    disabled. An endpoint that a person or a 410 disabled stays so.
    """
    names = [alert.name for alert in alerts]
    with _connected(url) as db, db.transaction():
        for alert in alerts:
            db.execute(_REGISTER, {**_row(alert, origin), "undeclared": UNDECLARED})
        db.execute(
            "update endpoints set status = 'disabled', status_reason = %s, changed_at = now() "
            "where options->>'origin' = %s and name <> all (%s) and status = 'enabled'",
            (UNDECLARED, origin, names),
        )
        return tuple(one for one in _endpoints(db) if one.alert.name in names)


def _row(alert: Alert, origin: str) -> dict[str, Any]:
    options = {name: getattr(alert, name) for name in _OPTIONS}
    return {
        "name": alert.name,
        "url": alert.url,
        "secret": alert.secret,
        "program": alert.program,
        "queries": None if alert.queries is None else list(alert.queries),
        "events": list(alert.events),
        "within": alert.within,
        "within_ms": alert.within_ms,
        "filter": json.dumps(dict(alert.filter)),
        "format": alert.format,
        "headers": json.dumps(dict(alert.headers)),
        "options": json.dumps({**options, "origin": origin}),
    }


_ENDPOINTS = """
select id, name, url, secret_from, program, queries, events, within, within_ms, filter, format,
       headers, options, status, status_reason
from endpoints order by name
"""


def _endpoints(db: psycopg.Connection[Any]) -> list[Endpoint]:
    return [_endpoint(row) for row in db.cursor(row_factory=dict_row).execute(_ENDPOINTS)]


def _endpoint(row: Mapping[str, Any]) -> Endpoint:
    alert = Alert(
        name=row["name"],
        url=row["url"],
        secret=row["secret_from"],
        program=row["program"],
        queries=None if row["queries"] is None else tuple(row["queries"]),
        events=tuple(row["events"]),
        within=row["within"],
        within_ms=row["within_ms"],
        filter=row["filter"],
        headers=row["headers"],
        format=row["format"],
        **{name: row["options"][name] for name in _OPTIONS if name in row["options"]},
    )
    return Endpoint(row["id"], alert, row["status"], row["status_reason"])


# --- commands ----------------------------------------------------------------------------------


def endpoint(url: str, name: str) -> Endpoint:
    with _connected(url) as db:
        return _named(db, name)


def _named(db: psycopg.Connection[Any], name: str) -> Endpoint:
    found = _endpoints(db)
    for one in found:
        if one.alert.name == name:
            return one
    known = ", ".join(one.alert.name for one in found)
    there = f"there are {known}" if known else "declare one in whilst.toml, as [[alert]]"
    raise AlertError(f"there is no alert {name!r}; {there}")


def switch(url: str, name: str, status: str, reason: str | None) -> None:
    """Enable or disable an endpoint. What is waiting for it stays."""
    with _connected(url) as db:
        db.execute(
            "update endpoints set status = %s, status_reason = %s, changed_at = now() "
            "where id = %s",
            (status, reason, _named(db, name).id),
        )


def retry(url: str, name: str | None, ids: Sequence[int]) -> tuple[int, list[str]]:
    """Make dead alerts waiting again, and waiting ones due now: of an endpoint, or by number.

    How many, and which of their endpoints are disabled: nothing is sent there before they are
    enabled. A number that stands for nothing to be sent is refused, and then nothing is changed.
    """
    with _connected(url) as db, db.transaction():
        chosen = None if name is None else _named(db, name).id
        rows = db.execute(
            "update outbox o set status = 'waiting', next_at = least(next_at, now()), "
            "done_at = null, attempts = case when o.status = 'dead' then 0 else attempts end "
            "from endpoints e where e.id = o.endpoint and o.status <> 'delivered' "
            "and (o.endpoint = %(endpoint)s or o.id = any (%(ids)s)) "
            "returning o.id, e.id, e.name, e.status",
            {"endpoint": chosen, "ids": list(ids)},
        ).fetchall()
        if missing := set(ids) - {row[0] for row in rows}:
            raise AlertError(
                f"no alert {min(missing)} waits or was given up; see `whilst alerts list --dead`"
            )
        for number in {row[1] for row in rows}:
            db.execute("select pg_notify(%s, %s)", (_RETRIED, str(number)))
    return len(rows), sorted({name for *_, name, status in rows if status == "disabled"})


def waiting(url: str) -> int:
    """How many alerts wait for endpoints that are enabled."""
    with _connected(url) as db:
        row = db.execute(
            "select count(*) from outbox o join endpoints e on e.id = o.endpoint "
            "where o.status = 'waiting' and e.status = 'enabled'"
        ).fetchone()
    return 0 if row is None else int(row[0])


_SUMMARY = """
select e.name, e.url, e.status, e.status_reason, e.events, e.queries, e.format,
       o.waiting, o.delivered, o.dead, o.oldest_waiting, a.recorded_at as last_attempt_at,
       a.status_code as last_status, round(a.latency_ms::numeric, 1)::float8 as last_latency_ms,
       a.error as last_error
from endpoints e
cross join lateral (
    select count(*) filter (where status = 'waiting') as waiting,
           count(*) filter (where status = 'delivered') as delivered,
           count(*) filter (where status = 'dead') as dead,
           min(created_at) filter (where status = 'waiting') as oldest_waiting
    from outbox where endpoint = e.id
) o
left join lateral (
    select * from delivery_attempts where endpoint = e.id order by recorded_at desc limit 1
) a on true
order by e.name
"""

_DEAD = """
select o.id, e.name, o.event, o.body->>'answer' as answer, o.attempts, o.done_at, o.webhook_id,
       a.status_code as last_status, a.error as last_error
from outbox o
join endpoints e on e.id = o.endpoint
left join lateral (
    select * from delivery_attempts where outbox = o.id order by recorded_at desc limit 1
) a on true
where o.status = 'dead' order by o.done_at desc, o.id limit %s
"""


def summary(url: str) -> Rows:
    """Endpoints with how many alerts wait, went and were given up; no URL shows what is secret."""
    found = _listed(url, _SUMMARY, ())
    place = found.columns.index("url")
    masked = ((*row[:place], secrets.shown_url(row[place]), *row[place + 1 :]) for row in found)
    return Rows(found.columns, masked)


def in_short(summary: Rows) -> Rows:
    """What fits a line of a terminal: where to, how it stands, what the last attempt brought."""
    columns = ["name", "url", "status", "waiting", "delivered", "dead", "last_attempt", "said"]

    def lines() -> Iterator[tuple[object, ...]]:
        for row in summary:
            one = dict(zip(summary.columns, row, strict=True))
            at = one["last_attempt_at"]
            yield (
                *(one[name] for name in columns[:6]),
                at and f"{at.astimezone():%Y-%m-%d %H:%M:%S}",
                one["status_reason"] or one["last_error"] or one["last_status"],
            )

    return Rows(columns, lines())


def dead(url: str, limit: int) -> Rows:
    """Alerts that were given up, the last first."""
    return _listed(url, _DEAD, (limit,))


def _listed(url: str, statement: LiteralString, values: tuple[Any, ...]) -> Rows:
    with _connected(url) as db:
        cursor = db.execute(statement, values)
        columns = [column.name for column in cursor.description or ()]
        return Rows(columns, iter(cursor.fetchall()))


def _connected(url: str) -> psycopg.Connection[Any]:
    return psycopg.connect(url, autocommit=True, application_name="whilst alerts")


# --- a deliverer -------------------------------------------------------------------------------

# `alive` is read before any row is locked; whoever takes the lock later has claimed nothing yet.
# What is neither delivered nor dead is waiting; said so, the planner, whatever it believes of a
# table that was empty a moment ago, does not look for an answer's alerts in the index of due ones.
_CLAIM = """
with alive as materialized (
    select objid::bigint as number from pg_locks
    where locktype = 'advisory' and classid = %(locks)s and objsubid = 2 and granted
      and database = (select oid from pg_database where datname = current_database())
),
due as materialized (
    select o.id
    from unnest(%(endpoints)s::integer[], %(rooms)s::integer[]) as lane (endpoint, room)
    join endpoints e on e.id = lane.endpoint and e.status = 'enabled'
    cross join lateral (
        select o.id from outbox o
        where o.endpoint = lane.endpoint and o.status = 'waiting' and o.next_at <= now()
          and (o.claimed_by is null or o.claimed_by not in (select number from alive))
          and not exists (
              select from outbox earlier
              where earlier.answer_id = o.answer_id and earlier.endpoint = o.endpoint
                and earlier.id < o.id and earlier.status not in ('delivered', 'dead'))
        order by o.next_at, o.id
        limit lane.room
        for update skip locked
    ) o
)
update outbox o set claimed_by = %(me)s from due where o.id = due.id
returning o.id, o.endpoint, o.attempts, o.webhook_id, o.event, o.program, o.query, o.tau, o.body,
          o.created_at
"""

# Delivered is delivered, whoever did it; a failure counts only for who still has the claim.
_FINISH = """
update outbox o
set status = r.status, attempts = o.attempts + 1, claimed_by = null,
    next_at = case when r.status = 'waiting' then now() + r.wait else o.next_at end,
    done_at = case when r.status <> 'waiting' then now() end
from unnest(%(ids)s::bigint[], %(deliverers)s::integer[], %(statuses)s::text[],
            %(waits)s::interval[]) as r (id, deliverer, status, wait)
where o.id = r.id and o.status = 'waiting'
  and (r.status = 'delivered' or o.claimed_by = r.deliverer)
"""

_ATTEMPTS = """
insert into delivery_attempts (outbox, endpoint, attempt, recorded_at, status_code, latency_ms,
                               error)
select * from unnest(%(ids)s::bigint[], %(endpoints)s::integer[], %(attempts)s::integer[],
                     %(sent)s::timestamptz[], %(codes)s::integer[], %(latencies)s::float8[],
                     %(errors)s::text[])
"""

_DISABLE = """
update endpoints set status = 'disabled', status_reason = %s, changed_at = now()
where id = any (%s) and status = 'enabled'
"""

_NOTE = """
update endpoints e set status_reason = r.reason, changed_at = now()
from unnest(%s::integer[], %s::text[]) as r (id, reason)
where e.id = r.id and e.status = 'enabled'
"""

# Where a machine is lost, its session should not live on for the two hours of the usual settings.
_KEEPALIVE = "set tcp_keepalives_idle = 15; set tcp_keepalives_interval = 5"
# A table that was empty a moment ago makes poor plans to keep.
_PLANS = "set plan_cache_mode = force_custom_plan"


class Session:
    """A deliverer's session with the store: its claims live as long as it."""

    def __init__(self, db: psycopg.AsyncConnection[Any], presence: Presence) -> None:
        self._db = db
        self._me = presence.number

    @staticmethod
    async def connected(url: str) -> psycopg.AsyncConnection[Any]:
        db = await psycopg.AsyncConnection.connect(
            url, autocommit=True, application_name="whilst deliver", connect_timeout=10
        )
        await db.execute(f"{_KEEPALIVE}; {_PLANS}")
        return db

    async def endpoints(self) -> list[Endpoint]:
        """Those that are enabled. Also makes sure that attempts of this week have a place."""
        await self._db.execute("select ensure_partitions(now())")
        cursor = self._db.cursor(row_factory=dict_row)
        await cursor.execute(_ENDPOINTS)
        return [one for one in map(_endpoint, await cursor.fetchall()) if one.status == "enabled"]

    async def note(self, reasons: Mapping[int, str | None]) -> None:
        """Say of enabled endpoints why nothing can be sent there, or that it can again."""
        if reasons:
            await self._db.execute(_NOTE, (list(reasons), list(reasons.values())))

    async def claim(self, rooms: Mapping[int, int]) -> list[Claimed]:
        """Due alerts of each endpoint, as many as it has room for, the first of each answer."""
        cursor = self._db.cursor(row_factory=dict_row)
        values = {
            "locks": _LOCKS,
            "me": self._me,
            "endpoints": list(rooms),
            "rooms": list(rooms.values()),
        }
        await cursor.execute(_CLAIM, values)
        claimed = [_claimed(row, self._me) for row in await cursor.fetchall()]
        return sorted(claimed, key=lambda one: one.id)

    async def finish(self, results: Sequence[Result]) -> None:
        """Write down what came of attempts, whole or not at all."""
        gone = {r.claimed.endpoint for r in results if r.outcome.gone}
        async with self._db.transaction():
            await self._db.execute(
                _FINISH,
                {
                    "ids": [r.claimed.id for r in results],
                    "deliverers": [r.claimed.deliverer for r in results],
                    "statuses": [r.status for r in results],
                    "waits": [timedelta(seconds=r.wait or 0) for r in results],
                },
            )
            await self._db.execute(
                _ATTEMPTS,
                {
                    "ids": [r.claimed.id for r in results],
                    "endpoints": [r.claimed.endpoint for r in results],
                    "attempts": [r.claimed.attempts + 1 for r in results],
                    "sent": [r.sent_at for r in results],
                    "codes": [r.outcome.status for r in results],
                    "latencies": [r.outcome.latency_ms for r in results],
                    "errors": [r.outcome.error for r in results],
                },
            )
            if gone:
                reason = "it replied 410: it takes no more alerts"
                await self._db.execute(_DISABLE, (reason, list(gone)))

    async def release(self, claimed: Iterable[Claimed]) -> None:
        """Give back what was not tried."""
        await self._db.execute(
            "update outbox set claimed_by = null where id = any (%s) and claimed_by = %s",
            ([one.id for one in claimed], self._me),
        )


class Presence:
    """Says that a deliverer lives, and hears when the writer has written or somebody retries."""

    def __init__(self, db: psycopg.AsyncConnection[Any]) -> None:
        self._db = db
        self.number = 0

    async def announce(self, channel: LiteralString) -> None:
        taken = None
        while taken is None or not taken[0]:
            self.number = random.randint(1, 2**31 - 1)
            cursor = await self._db.execute(
                "select pg_try_advisory_lock(%s, %s)", (_LOCKS, self.number)
            )
            taken = await cursor.fetchone()
        await self._db.execute(f"listen {channel}; listen {_RETRIED}")

    async def heard(self) -> list[int]:
        """Returns when there may be something to send, with the endpoints that are to be retried.

        Raises where the session is lost.
        """
        heard = [notice async for notice in self._db.notifies(stop_after=1)]
        return [int(one.payload) for one in heard if one.channel == _RETRIED]


def _claimed(row: Mapping[str, Any], deliverer: int) -> Claimed:
    message = Message(
        row["webhook_id"],
        row["event"],
        row["program"],
        row["query"],
        row["tau"],
        row["body"],
        row["created_at"],
    )
    return Claimed(row["id"], row["endpoint"], row["attempts"], deliverer, message)
