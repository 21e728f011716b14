-- What came and went within one batch is kept in `past` of one triple. Frozen: a change is another migration.

alter table triples add first_tau bigint, add past text;
update triples set first_tau = start_tau;
alter table triples alter first_tau set not null;
-- Long ones are written as they are: compressing them would cost more than all else.
alter table triples alter past set storage external;
comment on table triples is
    'Every ⟨θ, E, H, C⟩ that was in S_τ, with the interval in which it was: start_tau <= τ < least(end_tau, deadline), null being infinity. One of each answer''s triples is shown for it, and carries its status. Triples that came and went within one batch are in `past` of another one; the view `lives` has all.';
comment on column triples.first_tau is 'least start of this triple and of those in `past`';
comment on column triples.past is
    'JSON: triples of the answer that came and went in the batch of this one; see the view `lives`';

-- For a pending answer the one is shown that closes last.
with ordered as (
    select ctid as place, tableoid as part, run, answer_id,
           row_number() over (partition by run, answer_id order by deadline desc nulls first, reason collate "C", id) = 1
               as last
    from triples where live
),
moved as (
    select s.run, s.answer_id, s.status, s.changed_at
    from triples s join ordered o on o.part = s.tableoid and o.place = s.ctid
    where s.shown and s.status = 'pending' and not o.last
)
update triples t
set shown = o.last, status = case when o.last then m.status end, changed_at = case when o.last then m.changed_at end
from ordered o join moved m on m.run = o.run and m.answer_id = o.answer_id
where t.tableoid = o.part and t.ctid = o.place and (o.last or t.shown);

create function unpacked(past text)
returns table (id uuid, premise integer, evidence jsonb, arrivals bigint[], hypotheses jsonb, closes bigint[],
               conditions jsonb, deadline bigint, reason text, start_tau bigint, end_tau bigint)
language sql immutable as $$
    select (p ->> 0)::uuid, (p ->> 1)::integer, p -> 2,
           array(select v::bigint from jsonb_array_elements_text(p -> 3) with ordinality a (v, n) order by n), p -> 4,
           array(select v::bigint from jsonb_array_elements_text(p -> 5) with ordinality a (v, n) order by n), p -> 6,
           (p ->> 7)::bigint, p ->> 8, (p ->> 9)::bigint, (p ->> 10)::bigint
    from jsonb_array_elements(past::jsonb) p
$$;
comment on function unpacked(text) is 'The triples in a value of triples.past.';

create view lives as
select run, answer_id, id, premise, evidence, arrivals, hypotheses, closes, conditions, deadline, reason, start_tau,
       end_tau, live, shown, status, decided_at, recorded_at, changed_at
from triples
union all
select t.run, t.answer_id, p.id, p.premise, p.evidence, p.arrivals, p.hypotheses, p.closes, p.conditions, p.deadline,
       p.reason, p.start_tau, p.end_tau, false, false, null, null, t.recorded_at, null
from triples t
cross join lateral unpacked(t.past) p
where t.past is not null;
comment on view lives is
    'Every triple of every run with the interval in which it was in S_τ, those too that came and went within one batch.';

create or replace view answers as
select t.run, t.answer_id as id, t.query, t.answer, t.bindings,
       case when t.status = 'refuted' and t.decided_at > coalesce(r.complete_tau, -1) then 'pending'
            else t.status end as status,
       t.since,
       case when t.status <> 'refuted' or t.decided_at <= r.complete_tau then t.decided_at end as decided_at,
       case when t.live or t.decided_at > coalesce(r.complete_tau, -1) and t.status = 'refuted' then t.deadline end
           as deadline,
       case when t.status = 'refuted' and t.decided_at <= r.complete_tau
                 and (t.end_tau is null or t.deadline <= t.end_tau) then t.reason end as reason,
       t.id as shown, t.evidence, t.arrivals, t.hypotheses, t.closes, t.conditions,
       t.changed_at as recorded_at
from triples t
join runs r on r.id = t.run
where t.shown;
comment on view answers is
    'Every answer θ of every run with its status now; pending: the triple that closes last.';

create or replace view all_refuted_answers as
select t.query, t.answer, t.bindings, t.evidence, t.hypotheses, t.conditions, t.deadline, t.since,
       t.decided_at, case when t.end_tau is null or t.deadline <= t.end_tau then t.reason end as reason, r.name as program, t.run, t.answer_id, t.id as triple,
       t.arrivals, t.closes, t.start_tau, r.complete_tau, t.changed_at as recorded_at
from triples t
join runs r on r.id = t.run
where t.shown and t.status = 'refuted' and t.decided_at <= r.complete_tau;

create or replace view refuted_answers as
select t.query, t.answer, t.bindings, t.evidence, t.hypotheses, t.conditions, t.deadline, t.since,
       t.decided_at, case when t.end_tau is null or t.deadline <= t.end_tau then t.reason end as reason, r.name as program, t.run, t.answer_id, t.id as triple,
       t.arrivals, t.closes, t.start_tau, r.complete_tau, t.changed_at as recorded_at
from triples t
join runs r on r.id = t.run
where t.shown and t.status = 'refuted' and t.decided_at <= r.complete_tau and r.current;

create or replace view history as
with known as not materialized (
    select l.*,
           min(l.start_tau) over (partition by l.run, l.answer_id) as first_tau,
           max(coalesce(least(l.end_tau, l.deadline), 9223372036854775807)) over (
               partition by l.run, l.answer_id order by l.start_tau, l.id
               rows between unbounded preceding and 1 preceding) as covered_to
    from lives l
)
select run, answer_id, id as triple,
       case when hypotheses = '[]' then 'confirmed'
            when start_tau = first_tau then 'pending'
            else 'progressed' end as event,
       start_tau as tau, recorded_at, jsonb_array_length(hypotheses) as waits_for
from known
union all
select run, answer_id, null, 'refuted', covered_to, null, null
from known
where start_tau > covered_to
union all
select k.run, k.answer_id, k.id, 'refuted', k.decided_at, k.changed_at, jsonb_array_length(k.hypotheses)
from known k
join runs r on r.id = k.run
where k.shown and k.status = 'refuted' and k.decided_at <= r.complete_tau;

create or replace view answer_history as
select a.query, a.answer, h.event, h.tau, h.recorded_at, h.waits_for, t.evidence, t.hypotheses,
       t.conditions, t.deadline, r.name as program, h.run, h.answer_id, h.triple
from history h
join runs r on r.id = h.run
join triples a on a.run = h.run and a.answer_id = h.answer_id and a.shown
left join lives t on t.run = h.run and t.answer_id = h.answer_id and t.id = h.triple
where r.current;

do $$
declare
    c record;
begin
    for c in
        select a.attname as name,
               coalesce(case a.attname when 'id' then 'hash of query, θ, H and C' end,
                        (select col_description('triples'::regclass, b.attnum) from pg_attribute b
                         where b.attrelid = 'triples'::regclass and b.attname = a.attname)) as said
        from pg_attribute a
        where a.attrelid = 'lives'::regclass and a.attnum > 0
    loop
        execute format('comment on column lives.%I is %L', c.name, c.said);
    end loop;
end
$$;
