-- The tables of the store. Frozen: a change is another migration.

CREATE TABLE all_late_facts (
    run INTEGER NOT NULL,
    event TEXT NOT NULL,
    source TEXT NOT NULL,
    place TEXT NOT NULL,
    arrival BIGINT,
    reason TEXT NOT NULL,
    fact TEXT,
    stream TEXT,
    time BIGINT,
    delay BIGINT,
    batch BIGINT NOT NULL,
    recorded_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL
) PARTITION BY RANGE (recorded_at);
CREATE INDEX all_late_facts_run_recorded_at_idx ON all_late_facts (run, recorded_at);
COMMENT ON TABLE all_late_facts IS 'Facts of all runs that arrived after their delay bound.';
COMMENT ON COLUMN all_late_facts.run IS 'run that says so';
COMMENT ON COLUMN all_late_facts.event IS 'the event as it came';
COMMENT ON COLUMN all_late_facts.source IS 'source it was read from';
COMMENT ON COLUMN all_late_facts.place IS 'place in the source: file:line, partition/offset';
COMMENT ON COLUMN all_late_facts.arrival IS 'τ at which it arrived';
COMMENT ON COLUMN all_late_facts.reason IS 'why it takes no part in any answer';
COMMENT ON COLUMN all_late_facts.fact IS 'the fact as text';
COMMENT ON COLUMN all_late_facts.stream IS 'stream predicate';
COMMENT ON COLUMN all_late_facts.time IS 'time point at which the fact held';
COMMENT ON COLUMN all_late_facts.delay IS 'its delay bound δ';
COMMENT ON COLUMN all_late_facts.batch IS 'batch that read it';
COMMENT ON COLUMN all_late_facts.recorded_at IS 'wall time at which the store was told';

CREATE TABLE all_rejected_events (
    run INTEGER NOT NULL,
    event TEXT NOT NULL,
    source TEXT NOT NULL,
    place TEXT NOT NULL,
    arrival BIGINT,
    reason TEXT NOT NULL,
    batch BIGINT NOT NULL,
    recorded_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL
) PARTITION BY RANGE (recorded_at);
CREATE INDEX all_rejected_events_run_recorded_at_idx ON all_rejected_events (run, recorded_at);
COMMENT ON TABLE all_rejected_events IS 'Events of all runs that are no facts of their program.';
COMMENT ON COLUMN all_rejected_events.run IS 'run that says so';
COMMENT ON COLUMN all_rejected_events.event IS 'the event as it came; bytes that are no text shown as \xNN';
COMMENT ON COLUMN all_rejected_events.source IS 'source it was read from';
COMMENT ON COLUMN all_rejected_events.place IS 'place in the source: file:line, partition/offset';
COMMENT ON COLUMN all_rejected_events.arrival IS 'τ at which it arrived, where known';
COMMENT ON COLUMN all_rejected_events.reason IS 'why it was rejected';
COMMENT ON COLUMN all_rejected_events.batch IS 'batch that read it';
COMMENT ON COLUMN all_rejected_events.recorded_at IS 'wall time at which the store was told';

CREATE TABLE batches (
    run INTEGER NOT NULL,
    batch BIGINT NOT NULL,
    recorded_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    tau BIGINT,
    latest_arrival BIGINT,
    facts BIGINT DEFAULT 0 NOT NULL,
    matched BIGINT DEFAULT 0 NOT NULL,
    late BIGINT DEFAULT 0 NOT NULL,
    rejected BIGINT DEFAULT 0 NOT NULL,
    changes BIGINT DEFAULT 0 NOT NULL,
    read_ms DOUBLE PRECISION,
    kernel_ms DOUBLE PRECISION,
    store_ms DOUBLE PRECISION,
    total_ms DOUBLE PRECISION,
    lag_ms DOUBLE PRECISION,
    behind BIGINT,
    state_rows BIGINT,
    state_bytes BIGINT,
    CONSTRAINT batches_pkey PRIMARY KEY (run, batch, recorded_at)
) PARTITION BY RANGE (recorded_at);
CREATE INDEX batches_run_recorded_at_idx ON batches (run, recorded_at);
COMMENT ON TABLE batches IS 'Every batch that was applied: figures over time.';
COMMENT ON COLUMN batches.run IS 'run that says so';
COMMENT ON COLUMN batches.batch IS 'its number';
COMMENT ON COLUMN batches.recorded_at IS 'wall time at which the store was told';
COMMENT ON COLUMN batches.tau IS 'last complete τ after it';
COMMENT ON COLUMN batches.latest_arrival IS 'largest arrival read so far';
COMMENT ON COLUMN batches.facts IS 'facts read';
COMMENT ON COLUMN batches.matched IS 'facts that match an atom of a premise set';
COMMENT ON COLUMN batches.late IS 'late facts';
COMMENT ON COLUMN batches.rejected IS 'rejected events';
COMMENT ON COLUMN batches.changes IS 'triples put or dropped';
COMMENT ON COLUMN batches.read_ms IS 'milliseconds in Spark, from reading to staging';
COMMENT ON COLUMN batches.kernel_ms IS 'milliseconds in the kernel';
COMMENT ON COLUMN batches.store_ms IS 'milliseconds in the store';
COMMENT ON COLUMN batches.total_ms IS 'milliseconds in all';
COMMENT ON COLUMN batches.lag_ms IS 'milliseconds from arrival in the log to being applied, of its oldest fact';
COMMENT ON COLUMN batches.behind IS 'events in the log that are not read yet';
COMMENT ON COLUMN batches.state_rows IS 'groups in Spark''s state';
COMMENT ON COLUMN batches.state_bytes IS 'bytes of Spark''s state';

CREATE TABLE delivery_attempts (
    outbox BIGINT NOT NULL,
    endpoint INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    recorded_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    status_code INTEGER,
    latency_ms DOUBLE PRECISION,
    error TEXT
) PARTITION BY RANGE (recorded_at);
CREATE INDEX delivery_attempts_endpoint_recorded_at_idx ON delivery_attempts (endpoint, recorded_at);
CREATE INDEX delivery_attempts_outbox_idx ON delivery_attempts (outbox);
COMMENT ON TABLE delivery_attempts IS 'Every try to deliver an alert.';
COMMENT ON COLUMN delivery_attempts.outbox IS 'alert';
COMMENT ON COLUMN delivery_attempts.endpoint IS 'where it went';
COMMENT ON COLUMN delivery_attempts.attempt IS 'from 1';
COMMENT ON COLUMN delivery_attempts.recorded_at IS 'wall time at which it was sent';
COMMENT ON COLUMN delivery_attempts.status_code IS 'HTTP status of the reply; null: there was none';
COMMENT ON COLUMN delivery_attempts.latency_ms IS 'milliseconds to the reply';
COMMENT ON COLUMN delivery_attempts.error IS 'what went wrong, secrets masked';

CREATE TABLE endpoints (
    id INTEGER GENERATED BY DEFAULT AS IDENTITY,
    name TEXT NOT NULL,
    url TEXT NOT NULL,
    secret_from TEXT,
    program TEXT,
    queries TEXT[],
    events TEXT[] DEFAULT '{confirmed}' NOT NULL,
    within BIGINT,
    within_ms BIGINT,
    filter JSONB DEFAULT '{}' NOT NULL,
    format TEXT DEFAULT 'standard' NOT NULL,
    headers JSONB DEFAULT '{}' NOT NULL,
    options JSONB DEFAULT '{}' NOT NULL,
    status TEXT DEFAULT 'enabled' NOT NULL,
    status_reason TEXT,
    changed_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT endpoints_pkey PRIMARY KEY (id),
    CONSTRAINT endpoints_status_check CHECK (status in ('enabled', 'disabled')),
    CONSTRAINT endpoints_name_key UNIQUE (name)
);
COMMENT ON TABLE endpoints IS 'Where alerts go. Secrets are not kept here, only where to find them.';
COMMENT ON COLUMN endpoints.id IS 'number';
COMMENT ON COLUMN endpoints.name IS 'name in the configuration';
COMMENT ON COLUMN endpoints.url IS 'where to post, without what is secret in it';
COMMENT ON COLUMN endpoints.secret_from IS 'where the secrets are found: env:NAME or file:PATH';
COMMENT ON COLUMN endpoints.program IS 'only of this program; null: of any';
COMMENT ON COLUMN endpoints.queries IS 'only these queries; null: all';
COMMENT ON COLUMN endpoints.events IS 'confirmed, pending, refuted, deadline';
COMMENT ON COLUMN endpoints.within IS 'event `deadline`: when fewer than that many time points are left';
COMMENT ON COLUMN endpoints.within_ms IS 'event `deadline`: the same in milliseconds, for programs of any unit';
COMMENT ON COLUMN endpoints.filter IS 'only answers whose bindings contain this';
COMMENT ON COLUMN endpoints.format IS 'standard, or the name of a template';
COMMENT ON COLUMN endpoints.headers IS 'more headers; secret ones as env:NAME';
COMMENT ON COLUMN endpoints.options IS 'limits and permissions of its delivery';
COMMENT ON COLUMN endpoints.status IS 'enabled or disabled';
COMMENT ON COLUMN endpoints.status_reason IS 'why it is disabled';
COMMENT ON COLUMN endpoints.changed_at IS 'wall time of the last change';

CREATE TABLE programs (
    id INTEGER GENERATED BY DEFAULT AS IDENTITY,
    name TEXT NOT NULL,
    hash TEXT NOT NULL,
    text TEXT NOT NULL,
    unit_ms BIGINT,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT programs_pkey PRIMARY KEY (id),
    CONSTRAINT programs_name_hash_key UNIQUE (name, hash)
);
COMMENT ON TABLE programs IS 'Programs that ran into this store; a changed text is another row.';
COMMENT ON COLUMN programs.id IS 'number';
COMMENT ON COLUMN programs.name IS 'name, by default that of its file';
COMMENT ON COLUMN programs.hash IS 'SHA-256 of the text';
COMMENT ON COLUMN programs.text IS 'the program as written';
COMMENT ON COLUMN programs.unit_ms IS 'length of a time point in milliseconds; null: time points are bare numbers';
COMMENT ON COLUMN programs.created_at IS 'wall time of its first run';

CREATE TABLE retention (
    what TEXT NOT NULL,
    days INTEGER,
    CONSTRAINT retention_pkey PRIMARY KEY (what)
);
COMMENT ON TABLE retention IS 'How long what only grows is kept; read by `whilst db prune`.';
COMMENT ON COLUMN retention.what IS 'late_facts, rejected_events, batches, delivery_attempts, history, answers or runs';
COMMENT ON COLUMN retention.days IS 'days to keep; null: for ever';

CREATE UNLOGGED TABLE staged_changes (
    run INTEGER NOT NULL,
    batch BIGINT NOT NULL,
    part INTEGER NOT NULL,
    op TEXT NOT NULL,
    id UUID NOT NULL,
    answer_id UUID NOT NULL,
    query TEXT NOT NULL,
    answer TEXT NOT NULL,
    bindings JSONB NOT NULL,
    premise INTEGER NOT NULL,
    evidence JSONB NOT NULL,
    arrivals BIGINT[] NOT NULL,
    hypotheses JSONB NOT NULL,
    closes BIGINT[] NOT NULL,
    conditions JSONB NOT NULL,
    deadline BIGINT,
    reason TEXT,
    start_tau BIGINT NOT NULL,
    end_tau BIGINT
);
CREATE INDEX staged_changes_run_batch_part_idx ON staged_changes (run, batch, part);
COMMENT ON TABLE staged_changes IS 'Changes of a batch that is not applied yet; see `storage.staging`.';
COMMENT ON COLUMN staged_changes.run IS 'run that says so';
COMMENT ON COLUMN staged_changes.batch IS 'batch';
COMMENT ON COLUMN staged_changes.part IS 'partition of the batch';
COMMENT ON COLUMN staged_changes.op IS 'put or drop';
COMMENT ON COLUMN staged_changes.id IS 'triple';
COMMENT ON COLUMN staged_changes.answer_id IS 'its answer θ';
COMMENT ON COLUMN staged_changes.query IS 'predicate of the query';
COMMENT ON COLUMN staged_changes.answer IS 'the answer as text';
COMMENT ON COLUMN staged_changes.bindings IS 'value of each variable';
COMMENT ON COLUMN staged_changes.premise IS 'number of its premise set';
COMMENT ON COLUMN staged_changes.evidence IS 'facts that speak for it';
COMMENT ON COLUMN staged_changes.arrivals IS 'their arrivals';
COMMENT ON COLUMN staged_changes.hypotheses IS 'atoms it waits for';
COMMENT ON COLUMN staged_changes.closes IS 'when each of them closes';
COMMENT ON COLUMN staged_changes.conditions IS 'comparisons not decided yet';
COMMENT ON COLUMN staged_changes.deadline IS 'when it closes';
COMMENT ON COLUMN staged_changes.reason IS 'hypothesis that closes then';
COMMENT ON COLUMN staged_changes.start_tau IS 'τ at which it entered S_τ';
COMMENT ON COLUMN staged_changes.end_tau IS 'τ at which an arrival took it out';

CREATE UNLOGGED TABLE staged_events (
    run INTEGER NOT NULL,
    batch BIGINT NOT NULL,
    part INTEGER NOT NULL,
    kind TEXT NOT NULL,
    event TEXT NOT NULL,
    source TEXT NOT NULL,
    place TEXT NOT NULL,
    arrival BIGINT,
    reason TEXT NOT NULL,
    fact TEXT,
    stream TEXT,
    time BIGINT,
    delay BIGINT
);
CREATE INDEX staged_events_run_batch_part_idx ON staged_events (run, batch, part);
COMMENT ON TABLE staged_events IS 'Late facts and rejected events of a batch that is not applied yet.';
COMMENT ON COLUMN staged_events.run IS 'run that says so';
COMMENT ON COLUMN staged_events.batch IS 'batch';
COMMENT ON COLUMN staged_events.part IS 'partition of the batch';
COMMENT ON COLUMN staged_events.kind IS 'late or rejected';
COMMENT ON COLUMN staged_events.event IS 'the event as it came';
COMMENT ON COLUMN staged_events.source IS 'source it was read from';
COMMENT ON COLUMN staged_events.place IS 'place in the source';
COMMENT ON COLUMN staged_events.arrival IS 'τ at which it arrived';
COMMENT ON COLUMN staged_events.reason IS 'why it takes no part';
COMMENT ON COLUMN staged_events.fact IS 'late: the fact as text';
COMMENT ON COLUMN staged_events.stream IS 'late: its stream predicate';
COMMENT ON COLUMN staged_events.time IS 'late: time point at which it held';
COMMENT ON COLUMN staged_events.delay IS 'late: its delay bound δ';

CREATE UNLOGGED TABLE staged_marks (
    run INTEGER NOT NULL,
    batch BIGINT NOT NULL,
    kind TEXT NOT NULL,
    part INTEGER NOT NULL,
    CONSTRAINT staged_marks_pkey PRIMARY KEY (run, batch, kind, part)
);
COMMENT ON TABLE staged_marks IS 'The same as `staged_parts`, until a crash empties it with what was staged.';
COMMENT ON COLUMN staged_marks.run IS 'run that says so';
COMMENT ON COLUMN staged_marks.batch IS 'batch';
COMMENT ON COLUMN staged_marks.kind IS 'changes or events';
COMMENT ON COLUMN staged_marks.part IS 'partition of the batch';

CREATE TABLE staged_parts (
    run INTEGER NOT NULL,
    batch BIGINT NOT NULL,
    kind TEXT NOT NULL,
    part INTEGER NOT NULL,
    CONSTRAINT staged_parts_pkey PRIMARY KEY (run, batch, kind, part)
);
COMMENT ON TABLE staged_parts IS 'Partitions of a batch that have staged something. Kept through a crash, unlike `staged_marks`: a part without its mark has lost what it staged.';
COMMENT ON COLUMN staged_parts.run IS 'run that says so';
COMMENT ON COLUMN staged_parts.batch IS 'batch';
COMMENT ON COLUMN staged_parts.kind IS 'changes or events';
COMMENT ON COLUMN staged_parts.part IS 'partition of the batch';

CREATE TABLE triples (
    answer_id UUID NOT NULL,
    id UUID NOT NULL,
    run INTEGER NOT NULL,
    query TEXT NOT NULL,
    answer TEXT NOT NULL,
    bindings JSONB NOT NULL,
    premise INTEGER NOT NULL,
    evidence JSONB NOT NULL,
    arrivals BIGINT[] NOT NULL,
    hypotheses JSONB NOT NULL,
    closes BIGINT[] NOT NULL,
    conditions JSONB NOT NULL,
    deadline BIGINT,
    reason TEXT,
    start_tau BIGINT NOT NULL,
    end_tau BIGINT,
    batch BIGINT NOT NULL,
    recorded_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    live BOOLEAN NOT NULL,
    shown BOOLEAN NOT NULL,
    status TEXT,
    since BIGINT,
    decided_at BIGINT,
    changed_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT triples_pkey PRIMARY KEY (answer_id, id, run),
    CONSTRAINT triples_status_check CHECK (status in ('pending', 'confirmed', 'refuted'))
) PARTITION BY LIST (run);
CREATE INDEX triples_decided_idx ON triples (status, decided_at, query) WHERE shown and status <> 'pending';
CREATE INDEX triples_pending_idx ON triples (deadline, query) WHERE live;
COMMENT ON TABLE triples IS 'Every ⟨θ, E, H, C⟩ that was in S_τ, with the interval in which it was: start_tau <= τ < least(end_tau, deadline), null being infinity. One of each answer''s triples is shown for it, and carries its status.';
COMMENT ON COLUMN triples.answer_id IS 'hash of query and θ';
COMMENT ON COLUMN triples.id IS 'hash of query, θ, H and C';
COMMENT ON COLUMN triples.run IS 'run that says so';
COMMENT ON COLUMN triples.query IS 'predicate of the query';
COMMENT ON COLUMN triples.answer IS 'the answer as text, Malf(wt2, 1)';
COMMENT ON COLUMN triples.bindings IS 'value of each variable of the query';
COMMENT ON COLUMN triples.premise IS 'number of the premise set it comes from';
COMMENT ON COLUMN triples.evidence IS 'facts that speak for it';
COMMENT ON COLUMN triples.arrivals IS 'arrival of each fact of the evidence';
COMMENT ON COLUMN triples.hypotheses IS 'atoms it waits for; empty: confirmed';
COMMENT ON COLUMN triples.closes IS 'for each hypothesis the τ at which it closes; null: never';
COMMENT ON COLUMN triples.conditions IS 'comparisons not decided yet';
COMMENT ON COLUMN triples.deadline IS 'first τ at which it is closed if nothing more arrives; null: never';
COMMENT ON COLUMN triples.reason IS 'hypothesis that closes at the deadline';
COMMENT ON COLUMN triples.start_tau IS 'τ at which it entered S_τ';
COMMENT ON COLUMN triples.end_tau IS 'τ at which an arrival took it out of S_τ; null: none did';
COMMENT ON COLUMN triples.batch IS 'batch that said so last';
COMMENT ON COLUMN triples.recorded_at IS 'wall time at which the store was told first';
COMMENT ON COLUMN triples.live IS 'pending now';
COMMENT ON COLUMN triples.shown IS 'the one that is shown for its answer';
COMMENT ON COLUMN triples.status IS 'of the answer, where this one is shown: pending, confirmed or refuted';
COMMENT ON COLUMN triples.since IS 'τ at which the answer first was pending or confirmed; live or shown ones have it';
COMMENT ON COLUMN triples.decided_at IS 'τ of the answer''s confirmation or refutation, where this one is shown';
COMMENT ON COLUMN triples.changed_at IS 'wall time at which the store was told of the status, where this one is shown';

CREATE TABLE outbox (
    id BIGINT GENERATED BY DEFAULT AS IDENTITY,
    endpoint INTEGER NOT NULL,
    webhook_id TEXT NOT NULL,
    event TEXT NOT NULL,
    run INTEGER NOT NULL,
    program TEXT NOT NULL,
    query TEXT NOT NULL,
    answer_id UUID NOT NULL,
    tau BIGINT NOT NULL,
    body JSONB NOT NULL,
    status TEXT DEFAULT 'waiting' NOT NULL,
    attempts INTEGER DEFAULT 0 NOT NULL,
    next_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    claimed_by INTEGER,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    done_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT outbox_pkey PRIMARY KEY (id),
    CONSTRAINT outbox_status_check CHECK (status in ('waiting', 'delivered', 'dead')),
    CONSTRAINT outbox_endpoint_webhook_id_key UNIQUE (endpoint, webhook_id),
    CONSTRAINT outbox_endpoint_fkey FOREIGN KEY(endpoint) REFERENCES endpoints (id) ON DELETE CASCADE
);
CREATE INDEX outbox_answer_idx ON outbox (answer_id, endpoint, id);
CREATE INDEX outbox_due_idx ON outbox (endpoint, next_at, id) WHERE status = 'waiting';
COMMENT ON TABLE outbox IS 'Alerts, written with the answers they are about; delivered from here.';
COMMENT ON COLUMN outbox.id IS 'order of writing';
COMMENT ON COLUMN outbox.endpoint IS 'where it goes';
COMMENT ON COLUMN outbox.webhook_id IS 'hash of program, answer and event: the same after retries, restarts and replays';
COMMENT ON COLUMN outbox.event IS 'confirmed, pending, refuted or deadline';
COMMENT ON COLUMN outbox.run IS 'run that says so';
COMMENT ON COLUMN outbox.program IS 'name of the program';
COMMENT ON COLUMN outbox.query IS 'predicate of the query';
COMMENT ON COLUMN outbox.answer_id IS 'answer';
COMMENT ON COLUMN outbox.tau IS 'τ of the event';
COMMENT ON COLUMN outbox.body IS 'answer, bindings, evidence, arrivals, hypotheses, conditions, deadline, since, reason, unit_ms at the time of the event';
COMMENT ON COLUMN outbox.status IS 'waiting, delivered or dead';
COMMENT ON COLUMN outbox.attempts IS 'how often it was tried';
COMMENT ON COLUMN outbox.next_at IS 'wall time before which it is not tried';
COMMENT ON COLUMN outbox.claimed_by IS 'deliverer that has it in hand; void once that one is gone';
COMMENT ON COLUMN outbox.created_at IS 'wall time at which the store was told';
COMMENT ON COLUMN outbox.done_at IS 'wall time of its delivery or of giving up';

CREATE TABLE queries (
    program INTEGER NOT NULL,
    number SMALLINT NOT NULL,
    name TEXT NOT NULL,
    atom TEXT NOT NULL,
    variables JSONB NOT NULL,
    views TEXT[] DEFAULT '{}' NOT NULL,
    explained JSONB,
    CONSTRAINT queries_pkey PRIMARY KEY (program, number),
    CONSTRAINT queries_program_fkey FOREIGN KEY(program) REFERENCES programs (id) ON DELETE CASCADE
);
COMMENT ON TABLE queries IS 'Queries of each program, in its order.';
COMMENT ON COLUMN queries.program IS 'program';
COMMENT ON COLUMN queries.number IS 'place in the program, from 0';
COMMENT ON COLUMN queries.name IS 'predicate';
COMMENT ON COLUMN queries.atom IS 'the query as written, Malf(X, T)';
COMMENT ON COLUMN queries.variables IS 'its variables in order: a list of {name, type, column}';
COMMENT ON COLUMN queries.views IS 'its typed views, as schema.name';
COMMENT ON COLUMN queries.explained IS 'its premise sets, windows and rules as `whilst explain` gives them';

CREATE TABLE runs (
    id INTEGER GENERATED BY DEFAULT AS IDENTITY,
    program INTEGER NOT NULL,
    name TEXT NOT NULL,
    checkpoint TEXT NOT NULL,
    current BOOLEAN DEFAULT true NOT NULL,
    status TEXT DEFAULT 'running' NOT NULL,
    sources JSONB DEFAULT '[]' NOT NULL,
    complete_tau BIGINT,
    last_batch BIGINT DEFAULT -1 NOT NULL,
    started_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    seen_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    ended_at TIMESTAMP WITH TIME ZONE,
    error TEXT,
    CONSTRAINT runs_pkey PRIMARY KEY (id),
    CONSTRAINT runs_status_check CHECK (status in ('running', 'finished', 'failed')),
    CONSTRAINT runs_program_checkpoint_key UNIQUE (program, checkpoint),
    CONSTRAINT runs_program_fkey FOREIGN KEY(program) REFERENCES programs (id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX runs_name_idx ON runs (name) WHERE current;
COMMENT ON TABLE runs IS 'Runs of programs. The plain views show the current run of each program name.';
COMMENT ON COLUMN runs.id IS 'number';
COMMENT ON COLUMN runs.program IS 'program';
COMMENT ON COLUMN runs.name IS 'name of the program';
COMMENT ON COLUMN runs.checkpoint IS 'id of the checkpoint it goes on from; the same one means the same run';
COMMENT ON COLUMN runs.current IS 'latest run of its program name: what views show';
COMMENT ON COLUMN runs.status IS 'running, finished or failed';
COMMENT ON COLUMN runs.sources IS 'list of the sources it reads';
COMMENT ON COLUMN runs.complete_tau IS 'last complete time point τ; it only grows';
COMMENT ON COLUMN runs.last_batch IS 'last batch that was applied; an earlier one is a replay';
COMMENT ON COLUMN runs.started_at IS 'wall time at which it was first started';
COMMENT ON COLUMN runs.seen_at IS 'wall time of its last batch or closing';
COMMENT ON COLUMN runs.ended_at IS 'wall time at which it ended';
COMMENT ON COLUMN runs.error IS 'failed: why';

CREATE TABLE streams (
    program INTEGER NOT NULL,
    name TEXT NOT NULL,
    fields JSONB NOT NULL,
    delay BIGINT NOT NULL,
    longest_delay BIGINT NOT NULL,
    CONSTRAINT streams_pkey PRIMARY KEY (program, name),
    CONSTRAINT streams_program_fkey FOREIGN KEY(program) REFERENCES programs (id) ON DELETE CASCADE
);
COMMENT ON TABLE streams IS 'Stream predicates of each program, with their delay bounds.';
COMMENT ON COLUMN streams.program IS 'program';
COMMENT ON COLUMN streams.name IS 'predicate';
COMMENT ON COLUMN streams.fields IS 'list of {name, type}';
COMMENT ON COLUMN streams.delay IS 'declared delay bound δ in time points';
COMMENT ON COLUMN streams.longest_delay IS 'largest δ of its instances';

CREATE TABLE counts (
    run INTEGER NOT NULL,
    query TEXT NOT NULL,
    pending BIGINT DEFAULT 0 NOT NULL,
    confirmed BIGINT DEFAULT 0 NOT NULL,
    refuted BIGINT DEFAULT 0 NOT NULL,
    CONSTRAINT counts_pkey PRIMARY KEY (run, query),
    CONSTRAINT counts_run_fkey FOREIGN KEY(run) REFERENCES runs (id) ON DELETE CASCADE
);
COMMENT ON TABLE counts IS 'How many answers each query of a run has in each status, now.';
COMMENT ON COLUMN counts.run IS 'run that says so';
COMMENT ON COLUMN counts.query IS 'predicate of the query';
COMMENT ON COLUMN counts.pending IS 'pending answers';
COMMENT ON COLUMN counts.confirmed IS 'confirmed answers';
COMMENT ON COLUMN counts.refuted IS 'refuted answers';

CREATE TABLE delays (
    run INTEGER NOT NULL,
    stream TEXT NOT NULL,
    delay BIGINT NOT NULL,
    facts BIGINT NOT NULL,
    CONSTRAINT delays_pkey PRIMARY KEY (run, stream, delay),
    CONSTRAINT delays_run_fkey FOREIGN KEY(run) REFERENCES runs (id) ON DELETE CASCADE
);
COMMENT ON TABLE delays IS 'Delays really seen: how many facts of a stream came that late.';
COMMENT ON COLUMN delays.run IS 'run that says so';
COMMENT ON COLUMN delays.stream IS 'stream predicate';
COMMENT ON COLUMN delays.delay IS 'arrival minus time, in time points';
COMMENT ON COLUMN delays.facts IS 'how many';

CREATE TABLE tallies (
    run INTEGER NOT NULL,
    query TEXT NOT NULL,
    hour TIMESTAMP WITH TIME ZONE NOT NULL,
    pending BIGINT DEFAULT 0 NOT NULL,
    confirmed BIGINT DEFAULT 0 NOT NULL,
    refuted BIGINT DEFAULT 0 NOT NULL,
    CONSTRAINT tallies_pkey PRIMARY KEY (run, query, hour),
    CONSTRAINT tallies_run_fkey FOREIGN KEY(run) REFERENCES runs (id) ON DELETE CASCADE
);
COMMENT ON TABLE tallies IS 'How many answers became what in each hour of wall time.';
COMMENT ON COLUMN tallies.run IS 'run that says so';
COMMENT ON COLUMN tallies.query IS 'predicate of the query';
COMMENT ON COLUMN tallies.hour IS 'start of the hour, UTC';
COMMENT ON COLUMN tallies.pending IS 'became pending';
COMMENT ON COLUMN tallies.confirmed IS 'became confirmed';
COMMENT ON COLUMN tallies.refuted IS 'became refuted';
