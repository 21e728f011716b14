"""The SQL that turns staged changes and a complete τ into what the store says.

A batch touches the answers of its changes, and those whose shown triple closes. Of an answer that
it tells first, `storage.packing` has worked out all there is to say: its rows are inserted. All
other touched answers are judged by their triples, staged and stored:

    live      pending now: no arrival took it out, it is not over, and no triple of the answer is
              confirmed
    shown     the one that speaks for the answer: the confirmed one; else the last to leave, rather
              one that is live, and rather by its deadline; then by the smallest text

and the answer's status, since and decided_at follow. Where triples are new and nothing else has
changed, what was shown stands for all that is stored: an answer with a long history costs no more
than another. Every part of a statement sees the store as it was before, which makes "before" and
"after" of each answer plain to compare, for counts and alerts.

`over` is the last time point after which nothing is waited for: the complete τ; or, while a log is
read that has an end, the latest arrival, which will be complete then. What closed by it is written
down at once, and counts once it is complete.

Rows are found again by their place (`ctid`): the run's row is locked, and nobody else writes them.
"""

from __future__ import annotations

__all__ = ["CLOSED", "COLUMNS", "DEADLINE_ALERTS", "MERGE", "SWEPT", "UNPACKED"]

COLUMNS = (
    "query, answer, bindings, premise, evidence, arrivals, hypotheses, closes, conditions, "
    "deadline, reason, start_tau, end_tau"
)

_STAGED = "run = %(run)s and batch = %(batch)s"


def _of(table: str, columns: str = COLUMNS) -> str:
    return ", ".join(f"{table}.{column.strip()}" for column in columns.split(","))


# Where something is said anew of a triple that was told before, it may be packed: then all packed
# triples of its answer become rows again. The second is for where the first found any.
_AGAIN = (
    f"(select distinct answer_id from staged_changes where {_STAGED} and op in ('put', 'drop'))"
)

UNPACKED = (
    f"""
insert into {{triples}} (run, answer_id, id, {COLUMNS}, batch, recorded_at, live, shown, first_tau)
select t.run, t.answer_id, l.id, t.query, t.answer, t.bindings, l.premise, l.evidence, l.arrivals,
       l.hypotheses, l.closes, l.conditions, l.deadline, l.reason, l.start_tau, l.end_tau, t.batch,
       t.recorded_at, false, false, l.start_tau
from {_AGAIN} k
join {{triples}} t on t.answer_id = k.answer_id and t.past is not null
cross join lateral unpacked(t.past) l
""",
    f"""
update {{triples}} t set past = null, first_tau = start_tau
from {_AGAIN} k where t.answer_id = k.answer_id and t.past is not null
""",
)

_ALERT_COLUMNS = "endpoint, webhook_id, event, run, program, query, answer_id, tau, body"


def _alert(event: str, answer: str, tau: str, since: str, decided_at: str, reason: str) -> str:
    """Columns of an outbox row for the row `w` of answers and the endpoint `e`."""
    return f"""
    e.id, 'msg_' || md5(concat_ws(E'\\x1f', %(program)s::text, w.query, w.answer, {event})),
    {event}, %(run)s, %(program)s, w.query, {answer}, {tau},
    jsonb_build_object('answer', w.answer, 'bindings', w.bindings, 'evidence', w.evidence,
        'arrivals', to_jsonb(w.arrivals), 'hypotheses', w.hypotheses, 'closes', to_jsonb(w.closes),
        'conditions', w.conditions, 'deadline', w.deadline, 'since', {since},
        'decided_at', {decided_at}, 'reason', {reason}, 'unit_ms', %(unit)s::bigint)"""


def _wanted(event: str) -> str:
    return f"""e.status = 'enabled' and {event} = any (e.events)
      and (e.program is null or e.program = %(program)s)
      and (e.queries is null or w.query = any (e.queries))
      and w.bindings @> e.filter"""


_SUMS = """
sums as (
    select query,
           count(*) filter (where status = 'pending') as pending,
           count(*) filter (where status = 'confirmed') as confirmed,
           count(*) filter (where status = 'refuted') as refuted,
           count(*) filter (where status_before = 'pending') as was_pending,
           count(*) filter (where status_before = 'confirmed') as was_confirmed,
           count(*) filter (where status_before = 'refuted') as was_refuted
    from told group by query
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
)"""
"""Counts of the answers in `told`, whose status was another one before."""

_COUNTED = """
select coalesce(sum(pending), 0)::bigint, coalesce(sum(confirmed), 0)::bigint,
       coalesce(sum(refuted), 0)::bigint
from sums
"""

_BODY = "query, answer, bindings, evidence, arrivals, hypotheses, closes, conditions, deadline"


def _by(status: str, decided_at: str, tau: str) -> str:
    """The status of an answer at a complete τ."""
    return (
        f"case when {status} = 'refuted' and {decided_at} > {tau} then 'pending' else {status} end"
    )


MERGE = f"""
with staged as not materialized (  -- read twice; a copy costs more than the second time
    select ctid as place, id, answer_id, query, op <> 'drop' as put, op <> 'new' as again,
           start_tau, end_tau, deadline, reason, hypotheses = '[]' as whole, first_tau
    from staged_changes where {_STAGED} and op <> 'first'
),
asked as (
    select answer_id, bool_or(again or whole) as anew,
           min(first_tau) filter (where put) as first_tau
    from (
        select answer_id, again, whole, first_tau, put from staged
        union all
        -- What was over before is not live: the bound spares what vacuum has yet to clear.
        select answer_id, true, false, null, false from {{triples}}
        where live and shown and deadline > %(before)s and deadline <= %(over)s
    ) asking
    group by answer_id
    order by answer_id  -- neighbours in the index one after the other
),
touched as (
    select a.answer_id, a.anew or coalesce(a.first_tau < s.since, false) as anew
    from asked a
    left join lateral (
        select since from {{triples}} x
        where x.answer_id = a.answer_id and x.shown and not a.anew offset 0
    ) s on true
),
stored as (
    select t.* from touched
    cross join lateral (
        select ctid as place, id, answer_id, query, start_tau, end_tau, deadline, reason,
               hypotheses = '[]' as whole, first_tau as first, live, shown, status, since,
               decided_at
        from {{triples}} x where x.answer_id = touched.answer_id and touched.anew
        union all
        select ctid, id, answer_id, query, start_tau, end_tau, deadline, reason,
               hypotheses = '[]', since, live, shown, status, since, decided_at
        from {{triples}} x where x.answer_id = touched.answer_id and x.shown and not touched.anew
        offset 0  -- keeps this a look into the index for each, never a scan of everything
    ) t
),
both_of as (
    select coalesce(s.answer_id, t.answer_id) as answer_id, coalesce(s.id, t.id) as id,
           coalesce(s.query, t.query) as query, coalesce(s.put, true) as there,
           s.place as staged_at, t.place as stored_at,
           case when s.put then s.start_tau else t.start_tau end as start_tau,
           case when s.put then s.end_tau else t.end_tau end as end_tau,
           case when s.put then s.deadline else t.deadline end as deadline,
           case when s.put then s.reason else t.reason end as reason,
           case when s.put then s.whole else t.whole end as whole,
           case when s.put then s.first_tau else t.first end as first,
           t.live as was_live, t.shown as was_shown, t.status as was_status,
           t.since as was_since, t.decided_at as was_decided_at
    from staged s
    full join stored t on t.answer_id = s.answer_id and t.id = s.id
    offset 0  -- what is said of a triple is worked out once, not again in each place that asks
),
weighed as (
    select *, there and whole as confirmed,
           there and not whole and end_tau is null and (deadline is null or deadline > %(over)s)
               as possible,
           least(end_tau, deadline) as left_at,
           deadline is not null and (end_tau is null or deadline <= end_tau) as closed
    from both_of
    offset 0
),
-- One window for all. The first triple is confirmed if any is, else possible if any is: so says the
-- order.
judged as (
    select answer_id, query, staged_at, stored_at, there, deadline, reason, left_at, start_tau,
           closed, possible, was_live, was_shown, was_status, was_since, was_decided_at,
           row_number() over answer = 1 as first,
           first_value(confirmed) over answer as any_confirmed,
           count(staged_at) over answer > 0 as any_staged,
           min(first) filter (where there) over answer as since_now,
           max({_by("was_status", "was_decided_at", "%(before)s")}) filter (where was_shown)
               over answer as status_before
    from weighed
    window answer as (partition by answer_id order by there desc, confirmed desc,
                      case when confirmed then start_tau end, possible desc,
                      left_at desc nulls first, closed desc, reason collate "C", id
                      rows between unbounded preceding and unbounded following)
),
final as materialized (
    select answer_id, query, staged_at, stored_at, there, first, any_staged,
           possible and not any_confirmed as live, was_live, was_shown,
           was_status, was_since, was_decided_at, status_before,
           there and first as shown,
           case when there and first then
               case when any_confirmed then 'confirmed' when possible then 'pending'
                    else 'refuted' end end as status,
           case when (there and first) or possible and not any_confirmed then since_now end
               as since,
           case when there and first then
               case when any_confirmed then start_tau when not possible then left_at end
           end as decided_at,
           case when there and first and closed and not any_confirmed and not possible
                then reason end as why
    from judged
),
inserted as (
    insert into {{triples}} (run, answer_id, id, {COLUMNS}, batch, recorded_at, live, shown,
                           status, since, decided_at, changed_at, first_tau, past)
    select s.run, s.answer_id, s.id, {_of("s")}, s.batch, now(), f.live, f.shown, f.status, f.since,
           f.decided_at, case when f.shown then now() end, s.first_tau, s.past
    from final f join staged_changes s on s.ctid = f.staged_at
    where f.stored_at is null and f.there
),
inserted_first as (
    insert into {{triples}} (run, answer_id, id, {COLUMNS}, batch, recorded_at, live, shown,
                           status, since, decided_at, changed_at, first_tau, past)
    select run, answer_id, id, {COLUMNS}, batch, now(), live, shown, status, since, decided_at,
           case when shown then now() end, first_tau, past
    from staged_changes where {_STAGED} and op = 'first'
),
replaced as (
    update {{triples}} t
    set ({COLUMNS}, batch, live, shown, status, since, decided_at, changed_at, first_tau) = row(
        {_of("s")}, s.batch,
        f.live, f.shown, f.status, f.since, f.decided_at,
        case when not f.shown then null
             when f.was_shown and f.status = f.was_status then t.changed_at else now() end,
        s.first_tau)
    from final f join staged_changes s on s.ctid = f.staged_at
    where f.stored_at is not null and f.there and t.ctid = f.stored_at
),
marked as (
    update {{triples}} t
    set (live, shown, status, since, decided_at, changed_at) = row(
        f.live, f.shown, f.status, f.since, f.decided_at,
        case when not f.shown then null
             when f.was_shown and f.status = f.was_status then t.changed_at else now() end)
    from final f
    where f.stored_at is not null and f.staged_at is null and t.ctid = f.stored_at
      and (f.live, f.shown, f.status, f.since, f.decided_at) is distinct from
          (f.was_live, f.was_shown, f.was_status, f.was_since, f.was_decided_at)
),
removed as (
    delete from {{triples}} t using final f
    where f.stored_at is not null and not f.there and t.ctid = f.stored_at
),
told as not materialized (
    select * from (
        select answer_id, query, {_by("status", "decided_at", "%(tau)s")} as status, status_before,
               since, decided_at, why, staged_at, stored_at
        from final where first and any_staged
    ) judged
    where status is distinct from status_before
    union all
    select answer_id, query, {_by("status", "decided_at", "%(tau)s")}, null, since, decided_at,
           case when status = 'refuted' and (end_tau is null or deadline <= end_tau)
                then reason end, ctid, null
    from staged_changes where {_STAGED} and op = 'first' and shown
),
{_SUMS},
alerts as (
    insert into outbox ({_ALERT_COLUMNS})
    select {
    _alert(
        "c.status",
        "c.answer_id",
        "case when c.status = 'pending' then c.since else coalesce(c.decided_at, c.since) end",
        "c.since",
        "case when c.status <> 'pending' then c.decided_at end",
        "case when c.status = 'refuted' then c.why end",
    )
}
    from endpoints e
    join told c on c.status is not null
    cross join lateral (
        select {_BODY} from staged_changes where ctid = c.staged_at
        union all
        select {_BODY} from {{triples}} where ctid = c.stored_at and c.staged_at is null
    ) w
    where {_wanted("c.status")}
    on conflict do nothing
)
{_COUNTED}"""

# Other triples that are over: what is shown for their answers waits for longer.
SWEPT = """
update {triples} set live = false
where live and not shown and deadline > %(before)s and deadline <= %(over)s
"""

# Answers that the batch does not speak of, refuted now that their time is complete.
CLOSED = f"""
with told as not materialized (
    select t.ctid as place, t.answer_id, t.query, 'refuted' as status, 'pending' as status_before,
           t.since, t.decided_at,
           case when t.end_tau is null or t.deadline <= t.end_tau then t.reason end as why
    from {{triples}} t
    where t.shown and t.status <> 'pending' and t.status = 'refuted'
      and t.decided_at > %(before)s and t.decided_at <= %(tau)s
      -- `not in` is hashed, however few rows the planner believes in; `not exists` was a loop.
      and t.answer_id not in (
          select answer_id from staged_changes where {_STAGED} and answer_id is not null)
),
{_SUMS},
alerts as (
    insert into outbox ({_ALERT_COLUMNS})
    select {_alert("'refuted'", "c.answer_id", "c.decided_at", "c.since", "c.decided_at", "c.why")}
    from endpoints e
    join told c on true
    cross join lateral (select {_BODY} from {{triples}} where ctid = c.place) w
    where {_wanted("'refuted'")}
    on conflict do nothing
)
{_COUNTED}"""

# Pending answers that have come within an endpoint's span of their deadline since the last time,
# and those of this batch that were within it from the start. Each part reads what is new alone.
DEADLINE_ALERTS = f"""
insert into outbox ({_ALERT_COLUMNS})
select {_alert("'deadline'", "w.answer_id", "%(tau)s", "w.since", "null::bigint", "null::text")}
from endpoints e
cross join lateral (
    select coalesce(e.within, (e.within_ms + %(unit)s::bigint - 1) / %(unit)s::bigint) as points
) span
cross join lateral (
    select t.* from {{triples}} t
    where t.live and t.deadline >= %(before)s + span.points
      and t.deadline < %(tau)s + span.points
    union all
    select t.* from staged_changes s
    join {{triples}} t on t.answer_id = s.answer_id and t.id = s.id
    where s.run = %(run)s and s.batch = %(batch)s
      and t.live and t.deadline < %(before)s + span.points
) w
where w.shown and {_wanted("'deadline'")}
on conflict do nothing
"""
