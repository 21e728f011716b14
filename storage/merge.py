"""The SQL that turns staged changes and a complete τ into what the store says. One statement.

A batch touches the answers of its changes, and those with a triple whose deadline has come. All
triples of a touched answer, staged and stored, are judged together:

    live      pending now: no arrival took it out, its deadline has not come, and no triple of the
              answer is confirmed
    shown     the one that speaks for the answer: the confirmed one; else the live one that closes
              first; else the one that left last, rather by its deadline, then by the smallest text

and the answer's status, since and decided_at follow. So a batch costs what it touches, whatever is
stored; and every part of the statement sees the store as it was before, which makes "before" and
"after" of each answer plain to compare, for counts and alerts.

Rows are found again by their place (`ctid`): the run's row is locked, and nobody else writes them.
"""

from __future__ import annotations

__all__ = ["COLUMNS", "DEADLINE_ALERTS", "DUPLICATES", "MERGE"]

COLUMNS = (
    "query, answer, bindings, premise, evidence, arrivals, hypotheses, closes, conditions, "
    "deadline, reason, start_tau, end_tau"
)

_STAGED = "run = %(run)s and batch = %(batch)s"

# Two groups may have said the same triple; the one that was complete first stays.
DUPLICATES = f"""
delete from staged_changes where ctid in (
    select ctid from (
        select ctid, row_number() over (
            partition by id order by op desc, start_tau, evidence::text collate "C", ctid) as place
        from staged_changes where {_STAGED}) numbered
    where place > 1)
"""

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


MERGE = f"""
with staged as not materialized (  -- read twice; a copy costs more than the second time
    select ctid as place, id, answer_id, query, op = 'put' as put, start_tau, end_tau, deadline,
           reason, hypotheses = '[]' as whole
    from staged_changes where {_STAGED}
),
touched as (
    select answer_id from staged
    union
    -- What was over before is not live; the bound spares a look at what vacuum has yet to clear.
    select answer_id from {{triples}}
    where live and deadline > %(before)s and deadline <= %(tau)s
    order by answer_id  -- neighbours in the index one after the other
),
stored as (
    select t.* from touched
    cross join lateral (
        select ctid as place, id, answer_id, query, start_tau, end_tau, deadline, reason,
               hypotheses = '[]' as whole, live, shown, status, since, decided_at
        from {{triples}} x where x.answer_id = touched.answer_id
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
           t.live as was_live, t.shown as was_shown, t.status as was_status,
           t.since as was_since, t.decided_at as was_decided_at
    from staged s
    full join stored t on t.answer_id = s.answer_id and t.id = s.id
    offset 0  -- what is said of a triple is worked out once, not again in each place that asks
),
weighed as (
    select *, there and whole as confirmed,
           there and not whole and end_tau is null and (deadline is null or deadline > %(tau)s)
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
           min(start_tau) filter (where there) over answer as since_now,
           max(was_status) filter (where was_shown) over answer as status_before
    from weighed
    window answer as (partition by answer_id order by there desc, confirmed desc,
                      case when confirmed then start_tau end, possible desc,
                      case when possible then deadline end, left_at desc nulls last, closed desc,
                      reason collate "C", id
                      rows between unbounded preceding and unbounded following)
),
final as materialized (
    select answer_id, query, staged_at, stored_at, there, first,
           possible and not any_confirmed as live, was_live, was_shown,
           was_status, was_since, was_decided_at, deadline, status_before,
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
                           status, since, decided_at, changed_at)
    select s.run, s.answer_id, s.id, {", ".join("s." + c.strip() for c in COLUMNS.split(","))},
           s.batch, now(), f.live, f.shown, f.status, f.since, f.decided_at,
           case when f.shown then now() end
    from final f join staged_changes s on s.ctid = f.staged_at
    where f.stored_at is null and f.there
),
replaced as (
    update {{triples}} t
    set ({COLUMNS}, batch, live, shown, status, since, decided_at, changed_at) = row(
        {", ".join("s." + c.strip() for c in COLUMNS.split(","))}, s.batch,
        f.live, f.shown, f.status, f.since, f.decided_at,
        case when not f.shown then null
             when f.was_shown and f.status = f.was_status then t.changed_at else now() end)
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
    select * from final where first and status is distinct from status_before
),
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
),
alerts as (
    insert into outbox ({_ALERT_COLUMNS})
    select {
    _alert(
        "c.status",
        "c.answer_id",
        "coalesce(c.decided_at, c.since)",
        "c.since",
        "c.decided_at",
        "c.why",
    )
}
    from endpoints e
    join told c on c.status is not null
    cross join lateral (
        select query, answer, bindings, evidence, arrivals, hypotheses, closes, conditions, deadline
        from staged_changes where ctid = c.staged_at
        union all
        select query, answer, bindings, evidence, arrivals, hypotheses, closes, conditions, deadline
        from {{triples}} where ctid = c.stored_at and c.staged_at is null
    ) w
    where {_wanted("c.status")}
    on conflict do nothing
)
select coalesce(sum(pending), 0)::bigint, coalesce(sum(confirmed), 0)::bigint,
       coalesce(sum(refuted), 0)::bigint
from sums
"""

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
