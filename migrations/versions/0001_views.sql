-- The views and functions of the store. Frozen: a change is another migration.

create function ensure_partitions(at timestamptz) returns void
language plpgsql security definer set search_path from current
as $$
declare
    parent text;
    week timestamptz;
    name text;
begin
    foreach parent in array array['all_late_facts', 'all_rejected_events', 'batches',
                                  'delivery_attempts'] loop
        for step in 0..1 loop
            week := date_trunc('week', at, 'UTC') + step * interval '7 days';
            name := parent || '_' || to_char(week at time zone 'UTC', 'YYYYMMDD');
            if to_regclass(name) is null then
                execute format('create table %I partition of %I for values from (%L) to (%L)',
                               name, parent, week, week + interval '7 days');
            end if;
        end loop;
    end loop;
end
$$;
comment on function ensure_partitions(timestamptz) is
    'Makes the weekly partitions for that week and the next, where they are not there.';

create view answers as
select t.run, t.answer_id as id, t.query, t.answer, t.bindings, t.status, t.since, t.decided_at,
       case when t.live then t.deadline end as deadline,
       case when t.status = 'refuted' and (t.end_tau is null or t.deadline <= t.end_tau)
            then t.reason end as reason,
       t.id as shown, t.evidence, t.arrivals, t.hypotheses, t.closes, t.conditions,
       t.changed_at as recorded_at
from triples t
where t.shown;
comment on view answers is
    'Every answer θ of every run with its status now; pending: the triple that closes first.';

create view all_pending_answers as
select t.query, t.answer, t.bindings, t.evidence, t.hypotheses, t.conditions, t.deadline, t.since,
       null::bigint as decided_at, null::text as reason, r.name as program, t.run, t.answer_id, t.id as triple,
       t.arrivals, t.closes, t.start_tau, r.complete_tau, t.recorded_at as recorded_at
from triples t
join runs r on r.id = t.run
where t.live;
comment on view all_pending_answers is
    'Pending answers of every run, one row for each way to complete one.';

create view all_confirmed_answers as
select t.query, t.answer, t.bindings, t.evidence, t.hypotheses, t.conditions, t.deadline, t.since,
       t.decided_at, null::text as reason, r.name as program, t.run, t.answer_id, t.id as triple,
       t.arrivals, t.closes, t.start_tau, r.complete_tau, t.changed_at as recorded_at
from triples t
join runs r on r.id = t.run
where t.shown and t.status = 'confirmed';
comment on view all_confirmed_answers is
    'Confirmed answers of every run.';

create view all_refuted_answers as
select t.query, t.answer, t.bindings, t.evidence, t.hypotheses, t.conditions, t.deadline, t.since,
       t.decided_at, case when t.end_tau is null or t.deadline <= t.end_tau then t.reason end as reason, r.name as program, t.run, t.answer_id, t.id as triple,
       t.arrivals, t.closes, t.start_tau, r.complete_tau, t.changed_at as recorded_at
from triples t
join runs r on r.id = t.run
where t.shown and t.status = 'refuted';
comment on view all_refuted_answers is
    'Refuted answers of every run, with the triple that closed last.';

create view pending_answers as
select t.query, t.answer, t.bindings, t.evidence, t.hypotheses, t.conditions, t.deadline, t.since,
       null::bigint as decided_at, null::text as reason, r.name as program, t.run, t.answer_id, t.id as triple,
       t.arrivals, t.closes, t.start_tau, r.complete_tau, t.recorded_at as recorded_at
from triples t
join runs r on r.id = t.run
where t.live and r.current;
comment on view pending_answers is
    'Pending answers of the current run of each program, one row for each way to complete one.';

create view confirmed_answers as
select t.query, t.answer, t.bindings, t.evidence, t.hypotheses, t.conditions, t.deadline, t.since,
       t.decided_at, null::text as reason, r.name as program, t.run, t.answer_id, t.id as triple,
       t.arrivals, t.closes, t.start_tau, r.complete_tau, t.changed_at as recorded_at
from triples t
join runs r on r.id = t.run
where t.shown and t.status = 'confirmed' and r.current;
comment on view confirmed_answers is
    'Confirmed answers of the current run of each program.';

create view refuted_answers as
select t.query, t.answer, t.bindings, t.evidence, t.hypotheses, t.conditions, t.deadline, t.since,
       t.decided_at, case when t.end_tau is null or t.deadline <= t.end_tau then t.reason end as reason, r.name as program, t.run, t.answer_id, t.id as triple,
       t.arrivals, t.closes, t.start_tau, r.complete_tau, t.changed_at as recorded_at
from triples t
join runs r on r.id = t.run
where t.shown and t.status = 'refuted' and r.current;
comment on view refuted_answers is
    'Refuted answers of the current run of each program, with the triple that closed last.';

create view late_facts as
select f.event, f.source, f.place, f.arrival, f.reason, f.fact, f.stream, f.time, f.delay,
       r.name as program, f.run, f.batch, f.recorded_at
from all_late_facts f
join runs r on r.id = f.run
where r.current;
comment on view late_facts is 'Facts of the current runs that arrived after their delay bound.';

create view rejected_events as
select e.event, e.source, e.place, e.arrival, e.reason, r.name as program, e.run, e.batch,
       e.recorded_at
from all_rejected_events e
join runs r on r.id = e.run
where r.current;
comment on view rejected_events is 'Events of the current runs that are no facts of their program.';

create view history as
with lives as not materialized (
    select t.*,
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
comment on view history is
    'The life of each answer of every run; one that was over and came back was refuted meanwhile.';

create view answer_history as
select a.query, a.answer, h.event, h.tau, h.recorded_at, h.waits_for, t.evidence, t.hypotheses,
       t.conditions, t.deadline, r.name as program, h.run, h.answer_id, h.triple
from history h
join runs r on r.id = h.run
join triples a on a.run = h.run and a.answer_id = h.answer_id and a.shown
left join triples t on t.run = h.run and t.answer_id = h.answer_id and t.id = h.triple
where r.current;
comment on view answer_history is
    'The life of each answer of the current runs: what happened to it, at which τ and when.';

-- A column of a view means what the column of the table below it means.
do $$
declare
    c record;
begin
    for c in
        select v.relname as view, a.attname as name,
               coalesce(
                   case a.attname
                       when 'id' then 'hash of query and θ'
                       when 'shown' then 'triple that is shown for the answer'
                       when 'reason' then case when v.relname like '%answers'
                                               then 'refuted: the atom that closed last' end
                       when 'program' then 'name of the program'
                       when 'triple' then 'hash of query, θ, H and C'
                       when 'event' then case when v.relname like '%history' then
                            'pending, progressed (another triple of it), confirmed or refuted' end
                       when 'tau' then 'τ at which it happened'
                       when 'waits_for' then 'how many hypotheses were left'
                       when 'since' then 'τ at which it first was pending or confirmed'
                       when 'decided_at' then 'τ of its confirmation or refutation'
                       when 'status' then 'pending, confirmed or refuted'
                       when 'recorded_at' then 'wall time at which the store was told'
                       when 'complete_tau' then 'last complete time point τ of the run'
                   end,
                   (select col_description(s.oid, b.attnum)
                    from pg_class s join pg_attribute b on b.attrelid = s.oid
                    where s.relnamespace = v.relnamespace and b.attname = a.attname
                      and s.relname = case v.relname
                          when 'late_facts' then 'all_late_facts'
                          when 'rejected_events' then 'all_rejected_events'
                          else 'triples' end)) as said
        from pg_class v
        join pg_attribute a on a.attrelid = v.oid and a.attnum > 0
        where v.relkind = 'v' and v.relnamespace = current_schema()::regnamespace
    loop
        execute format('comment on column %I.%I is %L', c.view, c.name, c.said);
    end loop;
end
$$;

insert into retention (what, days)
values ('late_facts', 30), ('rejected_events', 30), ('batches', 30), ('delivery_attempts', 30),
       ('history', 90), ('answers', null), ('runs', 30);

select ensure_partitions(now());
