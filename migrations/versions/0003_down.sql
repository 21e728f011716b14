-- Back to a row for each triple.

insert into triples (run, answer_id, id, query, answer, bindings, premise, evidence, arrivals, hypotheses, closes,
                     conditions, deadline, reason, start_tau, end_tau, batch, recorded_at, live, shown, first_tau)
select t.run, t.answer_id, p.id, t.query, t.answer, t.bindings, p.premise, p.evidence, p.arrivals, p.hypotheses,
       p.closes, p.conditions, p.deadline, p.reason, p.start_tau, p.end_tau, t.batch, t.recorded_at, false, false,
       p.start_tau
from triples t
cross join lateral unpacked(t.past) p
where t.past is not null;

-- What is over as soon as its time point is complete was pending, then.
update triples t
set live = t.deadline > coalesce(r.complete_tau, -1) and t.end_tau is null and t.hypotheses <> '[]'
from runs r
where r.id = t.run and exists (
    select from triples s where s.run = t.run and s.answer_id = t.answer_id and s.shown and s.status = 'refuted'
        and s.decided_at > coalesce(r.complete_tau, -1));
update triples t set status = 'pending', decided_at = null
from runs r
where r.id = t.run and t.shown and t.status = 'refuted' and t.decided_at > coalesce(r.complete_tau, -1);
update triples t set since = s.since
from triples s
where s.run = t.run and s.answer_id = t.answer_id and s.shown and t.live and t.since is null;

-- For a pending answer the one is shown that closes first.
with ordered as (
    select ctid as place, tableoid as part, run, answer_id,
           row_number() over (partition by run, answer_id order by deadline, reason collate "C", id) = 1 as first
    from triples where live
),
moved as (
    select s.run, s.answer_id, s.status, s.changed_at
    from triples s join ordered o on o.part = s.tableoid and o.place = s.ctid
    where s.shown and s.status = 'pending' and not o.first
)
update triples t
set shown = o.first, status = case when o.first then m.status end, changed_at = case when o.first then m.changed_at end
from ordered o join moved m on m.run = o.run and m.answer_id = o.answer_id
where t.tableoid = o.part and t.ctid = o.place and (o.first or t.shown);

create or replace view answers as
select t.run, t.answer_id as id, t.query, t.answer, t.bindings, t.status, t.since, t.decided_at,
       case when t.live then t.deadline end as deadline,
       case when t.status = 'refuted' and (t.end_tau is null or t.deadline <= t.end_tau)
            then t.reason end as reason,
       t.id as shown, t.evidence, t.arrivals, t.hypotheses, t.closes, t.conditions,
       t.changed_at as recorded_at
from triples t
where t.shown;

create or replace view all_refuted_answers as
select t.query, t.answer, t.bindings, t.evidence, t.hypotheses, t.conditions, t.deadline, t.since,
       t.decided_at, case when t.end_tau is null or t.deadline <= t.end_tau then t.reason end as reason, r.name as program, t.run, t.answer_id, t.id as triple,
       t.arrivals, t.closes, t.start_tau, r.complete_tau, t.changed_at as recorded_at
from triples t
join runs r on r.id = t.run
where t.shown and t.status = 'refuted';

create or replace view refuted_answers as
select t.query, t.answer, t.bindings, t.evidence, t.hypotheses, t.conditions, t.deadline, t.since,
       t.decided_at, case when t.end_tau is null or t.deadline <= t.end_tau then t.reason end as reason, r.name as program, t.run, t.answer_id, t.id as triple,
       t.arrivals, t.closes, t.start_tau, r.complete_tau, t.changed_at as recorded_at
from triples t
join runs r on r.id = t.run
where t.shown and t.status = 'refuted' and r.current;

comment on view answers is
    'Every answer θ of every run with its status now; pending: the triple that closes first.';

create or replace view history as
with lives as not materialized (
    select t.run, t.answer_id, t.id, t.hypotheses, t.start_tau, t.end_tau, t.deadline, t.recorded_at, t.shown,
           t.status, t.decided_at, t.changed_at,
           min(t.start_tau) over (partition by t.run, t.answer_id) as first_tau,
           max(coalesce(least(t.end_tau, t.deadline), 9223372036854775807)) over (
               partition by t.run, t.answer_id order by t.start_tau, t.id
               rows between unbounded preceding and 1 preceding) as covered_to
    from triples t
)
select run, answer_id, id as triple,
       case when hypotheses = '[]' then 'confirmed'
            when start_tau = first_tau then 'pending'
            else 'progressed' end as event,
       start_tau as tau, recorded_at, jsonb_array_length(hypotheses) as waits_for
from lives
union all
select run, answer_id, null, 'refuted', covered_to, null, null
from lives
where start_tau > covered_to
union all
select run, answer_id, id, 'refuted', decided_at, changed_at, jsonb_array_length(hypotheses)
from lives
where shown and status = 'refuted';

create or replace view answer_history as
select a.query, a.answer, h.event, h.tau, h.recorded_at, h.waits_for, t.evidence, t.hypotheses,
       t.conditions, t.deadline, r.name as program, h.run, h.answer_id, h.triple
from history h
join runs r on r.id = h.run
join triples a on a.run = h.run and a.answer_id = h.answer_id and a.shown
left join triples t on t.run = h.run and t.answer_id = h.answer_id and t.id = h.triple
where r.current;

drop view lives;
drop function unpacked(text);
alter table triples drop past, drop first_tau;
comment on table triples is
    'Every ⟨θ, E, H, C⟩ that was in S_τ, with the interval in which it was: start_tau <= τ < least(end_tau, deadline), null being infinity. One of each answer''s triples is shown for it, and carries its status.';
