-- The views and functions of the store. Frozen: a change is another migration.

create function ensure_partitions(at timestamptz) returns void
language plpgsql security definer set search_path from current
as $$
declare
    parent text;
    week timestamptz;
    name text;
begin
    foreach parent in array array['history', 'all_late_facts', 'all_rejected_events', 'batches',
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

create view all_pending_answers as
select t.query, a.answer, a.bindings, t.evidence, t.hypotheses, t.conditions, t.deadline, a.since,
       null::bigint as decided_at, null::text as reason, r.name as program, t.run, t.answer_id,
       t.id as triple, t.arrivals, t.closes, t.start_tau, r.complete_tau, t.recorded_at
from triples t
join answers a on a.run = t.run and a.id = t.answer_id
join runs r on r.id = t.run
where t.live and a.status = 'pending';
comment on view all_pending_answers is
    'Pending answers of every run, one row for each way to complete one (a triple of S_τ).';

create view all_confirmed_answers as
select a.query, a.answer, a.bindings, t.evidence, t.hypotheses, t.conditions, t.deadline, a.since,
       a.decided_at, a.reason, r.name as program, a.run, a.id as answer_id, t.id as triple,
       t.arrivals, t.closes, t.start_tau, r.complete_tau, a.recorded_at
from answers a
join triples t on t.run = a.run and t.answer_id = a.id and t.id = a.shown
join runs r on r.id = a.run
where a.status = 'confirmed';
comment on view all_confirmed_answers is 'Confirmed answers of every run.';

create view all_refuted_answers as
select a.query, a.answer, a.bindings, t.evidence, t.hypotheses, t.conditions, t.deadline, a.since,
       a.decided_at, a.reason, r.name as program, a.run, a.id as answer_id, t.id as triple,
       t.arrivals, t.closes, t.start_tau, r.complete_tau, a.recorded_at
from answers a
join triples t on t.run = a.run and t.answer_id = a.id and t.id = a.shown
join runs r on r.id = a.run
where a.status = 'refuted';
comment on view all_refuted_answers is
    'Refuted answers of every run, with the triple that closed last.';

create view pending_answers as
select t.query, a.answer, a.bindings, t.evidence, t.hypotheses, t.conditions, t.deadline, a.since,
       null::bigint as decided_at, null::text as reason, r.name as program, t.run, t.answer_id,
       t.id as triple, t.arrivals, t.closes, t.start_tau, r.complete_tau, t.recorded_at
from triples t
join answers a on a.run = t.run and a.id = t.answer_id
join runs r on r.id = t.run
where t.live and a.status = 'pending' and r.current;
comment on view pending_answers is
    'Pending answers of the current run of each program, one row for each way to complete one.';

create view confirmed_answers as
select a.query, a.answer, a.bindings, t.evidence, t.hypotheses, t.conditions, t.deadline, a.since,
       a.decided_at, a.reason, r.name as program, a.run, a.id as answer_id, t.id as triple,
       t.arrivals, t.closes, t.start_tau, r.complete_tau, a.recorded_at
from answers a
join triples t on t.run = a.run and t.answer_id = a.id and t.id = a.shown
join runs r on r.id = a.run
where a.status = 'confirmed' and r.current;
comment on view confirmed_answers is 'Confirmed answers of the current run of each program.';

create view refuted_answers as
select a.query, a.answer, a.bindings, t.evidence, t.hypotheses, t.conditions, t.deadline, a.since,
       a.decided_at, a.reason, r.name as program, a.run, a.id as answer_id, t.id as triple,
       t.arrivals, t.closes, t.start_tau, r.complete_tau, a.recorded_at
from answers a
join triples t on t.run = a.run and t.answer_id = a.id and t.id = a.shown
join runs r on r.id = a.run
where a.status = 'refuted' and r.current;
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

create view answer_history as
select a.query, a.answer, h.event, h.tau, h.recorded_at, h.waits_for, t.evidence, t.hypotheses,
       t.conditions, t.deadline, r.name as program, h.run, h.answer_id, h.triple, h.batch
from history h
join runs r on r.id = h.run
left join answers a on a.run = h.run and a.id = h.answer_id
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
                   (select col_description(s.oid, b.attnum)
                    from pg_class s join pg_attribute b on b.attrelid = s.oid
                    where s.relnamespace = v.relnamespace and b.attname = a.attname
                      and s.relname = case
                          when v.relname = 'late_facts' then 'all_late_facts'
                          when v.relname = 'rejected_events' then 'all_rejected_events'
                          when a.attname in ('decided_at', 'since', 'answer', 'bindings')
                              then 'answers'
                          when a.attname in ('event', 'tau', 'waits_for') then 'history'
                          when a.attname = 'complete_tau' then 'runs'
                          else 'triples' end),
                   case a.attname
                       when 'reason' then 'refuted: the atom that closed last'
                       when 'program' then 'name of the program'
                       when 'triple' then 'the triple shown'
                       else a.attname end) as said
        from pg_class v
        join pg_attribute a on a.attrelid = v.oid and a.attnum > 0
        where v.relkind = 'v' and v.relnamespace = current_schema()::regnamespace
    loop
        execute format('comment on column %I.%I is %L', c.view, c.name, c.said);
    end loop;
end
$$;

insert into retention (what, days)
values ('history', 90), ('all_late_facts', 30), ('all_rejected_events', 30), ('batches', 30),
       ('delivery_attempts', 30), ('runs', 30);

select ensure_partitions(now());
