"""The tables of the store. Analysts read the views that the migrations make; these are below them.

What a run says is in a partition of its own of `triples`, made when the run is registered, exact
for as long as the run lives, and dropped whole. What only grows (`all_late_facts`,
`all_rejected_events`, `batches`, `delivery_attempts`) is in partitions of a week by wall time,
which `whilst db prune` drops. Staging tables are unlogged: a crash empties them, and their batch
is replayed.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    DateTime,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    MetaData,
    SmallInteger,
    Text,
    UniqueConstraint,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

__all__ = ["BY_WEEK", "Base"]

STATUSES = ("pending", "confirmed", "refuted")


class Base(DeclarativeBase):
    # Logs have no key in the database; the ORM is told one in `__mapper_args__`.
    metadata = MetaData(
        naming_convention={
            "pk": "%(table_name)s_pkey",
            "ix": "%(table_name)s_%(column_0_N_name)s_idx",
            "uq": "%(table_name)s_%(column_0_N_name)s_key",
            "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
            "ck": "%(table_name)s_%(constraint_name)s_check",
        }
    )
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        str: Text,
        int: BigInteger,
        float: Double,
        bool: Boolean,
        datetime: DateTime(timezone=True),
        UUID: Uuid,
        dict[str, Any]: JSONB,
        list[str]: JSONB,
        list[int]: ARRAY(BigInteger),
    }


def _one_of(column: str, values: tuple[str, ...]) -> CheckConstraint:
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} in ({listed})", name=column)


def _key(*columns: Any) -> dict[str, Any]:
    return {"primary_key": columns}


def _now(comment: str) -> Mapped[datetime]:
    return mapped_column(server_default=func.now(), comment=comment)


_RUN = "run that says so"
_WALL = "wall time at which the store was told"


# --- programs and their runs -------------------------------------------------------------------


class Program(Base):
    __tablename__ = "programs"
    __table_args__ = (
        UniqueConstraint("name", "hash"),
        {"comment": "Programs that ran into this store; a changed text is another row."},
    )
    id: Mapped[int] = mapped_column(Integer, Identity(), primary_key=True, comment="number")
    name: Mapped[str] = mapped_column(comment="name, by default that of its file")
    hash: Mapped[str] = mapped_column(comment="SHA-256 of the text")
    text: Mapped[str] = mapped_column(comment="the program as written")
    unit_ms: Mapped[int | None] = mapped_column(
        comment="length of a time point in milliseconds; null: time points are bare numbers"
    )
    created_at: Mapped[datetime] = _now("wall time of its first run")


class Query(Base):
    __tablename__ = "queries"
    __table_args__ = ({"comment": "Queries of each program, in its order."},)
    program: Mapped[int] = mapped_column(
        Integer, ForeignKey("programs.id", ondelete="CASCADE"), primary_key=True, comment="program"
    )
    number: Mapped[int] = mapped_column(
        SmallInteger, primary_key=True, autoincrement=False, comment="place in the program, from 0"
    )
    name: Mapped[str] = mapped_column(comment="predicate")
    atom: Mapped[str] = mapped_column(comment="the query as written, Malf(X, T)")
    variables: Mapped[dict[str, Any]] = mapped_column(
        comment="its variables in order: a list of {name, type, column}"
    )
    views: Mapped[list[str]] = mapped_column(
        ARRAY(Text), server_default=text("'{}'"), comment="its typed views, as schema.name"
    )
    explained: Mapped[dict[str, Any] | None] = mapped_column(
        comment="its premise sets, windows and rules as `whilst explain` gives them"
    )


class Stream(Base):
    __tablename__ = "streams"
    __table_args__ = ({"comment": "Stream predicates of each program, with their delay bounds."},)
    program: Mapped[int] = mapped_column(
        Integer, ForeignKey("programs.id", ondelete="CASCADE"), primary_key=True, comment="program"
    )
    name: Mapped[str] = mapped_column(primary_key=True, comment="predicate")
    fields: Mapped[dict[str, Any]] = mapped_column(comment="list of {name, type}")
    delay: Mapped[int] = mapped_column(comment="declared delay bound δ in time points")
    longest_delay: Mapped[int] = mapped_column(comment="largest δ of its instances")


class Run(Base):
    __tablename__ = "runs"
    __table_args__ = (
        _one_of("status", ("running", "finished", "failed")),
        UniqueConstraint("program", "checkpoint"),
        Index(None, "name", unique=True, postgresql_where=text("current")),
        {"comment": "Runs of programs. The plain views show the current run of each program name."},
    )
    id: Mapped[int] = mapped_column(Integer, Identity(), primary_key=True, comment="number")
    program: Mapped[int] = mapped_column(
        Integer, ForeignKey("programs.id", ondelete="CASCADE"), comment="program"
    )
    name: Mapped[str] = mapped_column(comment="name of the program")
    checkpoint: Mapped[str] = mapped_column(
        comment="id of the checkpoint it goes on from; the same one means the same run"
    )
    current: Mapped[bool] = mapped_column(
        server_default=text("true"), comment="latest run of its program name: what views show"
    )
    status: Mapped[str] = mapped_column(
        server_default=text("'running'"), comment="running, finished or failed"
    )
    sources: Mapped[dict[str, Any]] = mapped_column(
        server_default=text("'[]'"), comment="list of the sources it reads"
    )
    complete_tau: Mapped[int | None] = mapped_column(
        comment="last complete time point τ; it only grows"
    )
    last_batch: Mapped[int] = mapped_column(
        server_default=text("-1"), comment="last batch that was applied; an earlier one is a replay"
    )
    started_at: Mapped[datetime] = _now("wall time at which it was first started")
    seen_at: Mapped[datetime] = _now("wall time of its last batch or closing")
    ended_at: Mapped[datetime | None] = mapped_column(comment="wall time at which it ended")
    error: Mapped[str | None] = mapped_column(comment="failed: why")
    pruned_to: Mapped[datetime | None] = mapped_column(
        comment="wall time up to which decided answers were looked at for pruning"
    )


# --- answers -----------------------------------------------------------------------------------


class Triple(Base):
    __tablename__ = "triples"
    __table_args__ = (
        _one_of("status", STATUSES),
        Index("triples_pending_idx", "deadline", "query", postgresql_where=text("live")),
        Index(
            "triples_decided_idx",
            "status",
            "decided_at",
            "query",
            postgresql_where=text("shown and status <> 'pending'"),
        ),
        Index("triples_shown_idx", "answer_id", postgresql_where=text("shown")),
        {
            "comment": (
                "Every ⟨θ, E, H, C⟩ that was in S_τ, with the interval in which it was: "
                "start_tau <= τ < least(end_tau, deadline), null being infinity. One of each "
                "answer's triples is shown for it, and carries its status. Triples that came and "
                "went within one batch are in `past` of another one; the view `lives` has all."
            ),
            "postgresql_partition_by": "LIST (run)",
        },
    )
    answer_id: Mapped[UUID] = mapped_column(primary_key=True, comment="hash of query and θ")
    id: Mapped[UUID] = mapped_column(primary_key=True, comment="hash of query, θ, H and C")
    run: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False, comment=_RUN)
    query: Mapped[str] = mapped_column(comment="predicate of the query")
    answer: Mapped[str] = mapped_column(comment="the answer as text, Malf(wt2, 1)")
    bindings: Mapped[dict[str, Any]] = mapped_column(comment="value of each variable of the query")
    premise: Mapped[int] = mapped_column(Integer, comment="number of the premise set it comes from")
    evidence: Mapped[list[str]] = mapped_column(comment="facts that speak for it")
    arrivals: Mapped[list[int]] = mapped_column(comment="arrival of each fact of the evidence")
    hypotheses: Mapped[list[str]] = mapped_column(comment="atoms it waits for; empty: confirmed")
    closes: Mapped[list[int]] = mapped_column(
        comment="for each hypothesis the τ at which it closes; null: never"
    )
    conditions: Mapped[list[str]] = mapped_column(comment="comparisons not decided yet")
    deadline: Mapped[int | None] = mapped_column(
        comment="first τ at which it is closed if nothing more arrives; null: never"
    )
    reason: Mapped[str | None] = mapped_column(comment="hypothesis that closes at the deadline")
    start_tau: Mapped[int] = mapped_column(comment="τ at which it entered S_τ")
    end_tau: Mapped[int | None] = mapped_column(
        comment="τ at which an arrival took it out of S_τ; null: none did"
    )
    batch: Mapped[int] = mapped_column(comment="batch that said so last")
    recorded_at: Mapped[datetime] = _now(_WALL + " first")
    live: Mapped[bool] = mapped_column(comment="pending now")
    shown: Mapped[bool] = mapped_column(comment="the one that is shown for its answer")
    status: Mapped[str | None] = mapped_column(
        comment="of the answer, where this one is shown: pending, confirmed, or refuted (once "
        "decided_at is complete)"
    )
    since: Mapped[int | None] = mapped_column(
        comment="τ at which the answer first was pending or confirmed; live or shown ones have it"
    )
    decided_at: Mapped[int | None] = mapped_column(
        comment="τ of the answer's confirmation or refutation, where this one is shown"
    )
    changed_at: Mapped[datetime | None] = mapped_column(
        comment="wall time at which the store was told of the status, where this one is shown"
    )
    first_tau: Mapped[int] = mapped_column(
        comment="least start of this triple and of those in `past`"
    )
    past: Mapped[str | None] = mapped_column(
        comment="JSON: triples of the answer that came and went in the batch of this one; see the "
        "view `lives`"
    )


class Count(Base):
    __tablename__ = "counts"
    __table_args__ = ({"comment": "How many answers each query of a run has in each status, now."},)
    run: Mapped[int] = mapped_column(
        Integer, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True, comment=_RUN
    )
    query: Mapped[str] = mapped_column(primary_key=True, comment="predicate of the query")
    pending: Mapped[int] = mapped_column(server_default=text("0"), comment="pending answers")
    confirmed: Mapped[int] = mapped_column(server_default=text("0"), comment="confirmed answers")
    refuted: Mapped[int] = mapped_column(server_default=text("0"), comment="refuted answers")


class Tally(Base):
    __tablename__ = "tallies"
    __table_args__ = ({"comment": "How many answers became what in each hour of wall time."},)
    run: Mapped[int] = mapped_column(
        Integer, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True, comment=_RUN
    )
    query: Mapped[str] = mapped_column(primary_key=True, comment="predicate of the query")
    hour: Mapped[datetime] = mapped_column(primary_key=True, comment="start of the hour, UTC")
    pending: Mapped[int] = mapped_column(server_default=text("0"), comment="became pending")
    confirmed: Mapped[int] = mapped_column(server_default=text("0"), comment="became confirmed")
    refuted: Mapped[int] = mapped_column(server_default=text("0"), comment="became refuted")


# --- what takes no part in answers -------------------------------------------------------------


class LateFact(Base):
    __tablename__ = "all_late_facts"
    __table_args__ = (
        Index(None, "run", "recorded_at"),
        {
            "comment": "Facts of all runs that arrived after their delay bound.",
            "postgresql_partition_by": "RANGE (recorded_at)",
        },
    )
    run: Mapped[int] = mapped_column(Integer, comment=_RUN)
    event: Mapped[str] = mapped_column(comment="the event as it came")
    source: Mapped[str] = mapped_column(comment="source it was read from")
    place: Mapped[str] = mapped_column(comment="place in the source: file:line, partition/offset")
    arrival: Mapped[int | None] = mapped_column(comment="τ at which it arrived")
    reason: Mapped[str] = mapped_column(comment="why it takes no part in any answer")
    fact: Mapped[str | None] = mapped_column(comment="the fact as text")
    stream: Mapped[str | None] = mapped_column(comment="stream predicate")
    time: Mapped[int | None] = mapped_column(comment="time point at which the fact held")
    delay: Mapped[int | None] = mapped_column(comment="its delay bound δ")
    batch: Mapped[int] = mapped_column(comment="batch that read it")
    recorded_at: Mapped[datetime] = _now(_WALL)
    matched: Mapped[bool | None] = mapped_column(
        comment="whether it matches an atom of a premise set"
    )

    __mapper_args__ = _key(run, source, place, recorded_at)


class RejectedEvent(Base):
    __tablename__ = "all_rejected_events"
    __table_args__ = (
        Index(None, "run", "recorded_at"),
        {
            "comment": "Events of all runs that are no facts of their program.",
            "postgresql_partition_by": "RANGE (recorded_at)",
        },
    )
    run: Mapped[int] = mapped_column(Integer, comment=_RUN)
    event: Mapped[str] = mapped_column(
        comment="the event as it came; bytes that are no text shown as \\xNN"
    )
    source: Mapped[str] = mapped_column(comment="source it was read from")
    place: Mapped[str] = mapped_column(comment="place in the source: file:line, partition/offset")
    arrival: Mapped[int | None] = mapped_column(comment="τ at which it arrived, where known")
    reason: Mapped[str] = mapped_column(comment="why it was rejected")
    batch: Mapped[int] = mapped_column(comment="batch that read it")
    recorded_at: Mapped[datetime] = _now(_WALL)

    __mapper_args__ = _key(run, source, place, recorded_at)


# --- what a run costs --------------------------------------------------------------------------


class Batch(Base):
    __tablename__ = "batches"
    __table_args__ = (
        Index(None, "run", "recorded_at"),
        {
            "comment": "Every batch that was applied: figures over time.",
            "postgresql_partition_by": "RANGE (recorded_at)",
        },
    )
    run: Mapped[int] = mapped_column(Integer, primary_key=True, comment=_RUN)
    batch: Mapped[int] = mapped_column(primary_key=True, autoincrement=False, comment="its number")
    recorded_at: Mapped[datetime] = mapped_column(
        primary_key=True, server_default=func.now(), comment=_WALL
    )
    tau: Mapped[int | None] = mapped_column(comment="last complete τ after it")
    latest_arrival: Mapped[int | None] = mapped_column(comment="largest arrival read so far")
    facts: Mapped[int] = mapped_column(server_default=text("0"), comment="facts read")
    matched: Mapped[int] = mapped_column(
        server_default=text("0"), comment="facts that match an atom of a premise set"
    )
    late: Mapped[int] = mapped_column(server_default=text("0"), comment="late facts")
    rejected: Mapped[int] = mapped_column(server_default=text("0"), comment="rejected events")
    changes: Mapped[int] = mapped_column(server_default=text("0"), comment="triples put or dropped")
    read_ms: Mapped[float | None] = mapped_column(
        comment="milliseconds in Spark, from reading to staging"
    )
    kernel_ms: Mapped[float | None] = mapped_column(comment="milliseconds in the kernel")
    store_ms: Mapped[float | None] = mapped_column(comment="milliseconds in the store")
    total_ms: Mapped[float | None] = mapped_column(comment="milliseconds in all")
    lag_ms: Mapped[float | None] = mapped_column(
        comment="milliseconds from arrival in the log to being applied, of its oldest fact"
    )
    behind: Mapped[int | None] = mapped_column(comment="events in the log that are not read yet")
    state_rows: Mapped[int | None] = mapped_column(comment="groups in Spark's state")
    state_bytes: Mapped[int | None] = mapped_column(comment="bytes of Spark's state")


class Delay(Base):
    __tablename__ = "delays"
    __table_args__ = (
        {"comment": "Delays really seen: how many facts of a stream came that late."},
    )
    run: Mapped[int] = mapped_column(
        Integer, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True, comment=_RUN
    )
    stream: Mapped[str] = mapped_column(primary_key=True, comment="stream predicate")
    delay: Mapped[int] = mapped_column(
        primary_key=True, autoincrement=False, comment="arrival minus time, in time points"
    )
    facts: Mapped[int] = mapped_column(comment="how many")


# --- alerts ------------------------------------------------------------------------------------


class Endpoint(Base):
    __tablename__ = "endpoints"
    __table_args__ = (
        _one_of("status", ("enabled", "disabled")),
        {"comment": "Where alerts go. Secrets are not kept here, only where to find them."},
    )
    id: Mapped[int] = mapped_column(Integer, Identity(), primary_key=True, comment="number")
    name: Mapped[str] = mapped_column(unique=True, comment="name in the configuration")
    url: Mapped[str] = mapped_column(comment="where to post, without what is secret in it")
    secret_from: Mapped[str | None] = mapped_column(
        comment="where the secrets are found: env:NAME or file:PATH"
    )
    program: Mapped[str | None] = mapped_column(comment="only of this program; null: of any")
    queries: Mapped[list[str] | None] = mapped_column(
        ARRAY(Text), comment="only these queries; null: all"
    )
    events: Mapped[list[str]] = mapped_column(
        ARRAY(Text),
        server_default=text("'{confirmed}'"),
        comment="confirmed, pending, refuted, deadline",
    )
    within: Mapped[int | None] = mapped_column(
        comment="event `deadline`: when fewer than that many time points are left"
    )
    within_ms: Mapped[int | None] = mapped_column(
        comment="event `deadline`: the same in milliseconds, for programs of any unit"
    )
    filter: Mapped[dict[str, Any]] = mapped_column(
        server_default=text("'{}'"), comment="only answers whose bindings contain this"
    )
    format: Mapped[str] = mapped_column(
        server_default=text("'standard'"), comment="standard, or the name of a template"
    )
    headers: Mapped[dict[str, Any]] = mapped_column(
        server_default=text("'{}'"), comment="more headers; secret ones as env:NAME"
    )
    options: Mapped[dict[str, Any]] = mapped_column(
        server_default=text("'{}'"), comment="limits and permissions of its delivery"
    )
    status: Mapped[str] = mapped_column(
        server_default=text("'enabled'"), comment="enabled or disabled"
    )
    status_reason: Mapped[str | None] = mapped_column(
        comment="why it is disabled, or cannot be sent to"
    )
    changed_at: Mapped[datetime] = _now("wall time of the last change")


class Outbox(Base):
    __tablename__ = "outbox"
    __table_args__ = (
        _one_of("status", ("waiting", "delivered", "dead")),
        UniqueConstraint("endpoint", "webhook_id"),
        Index(
            "outbox_due_idx",
            "endpoint",
            "next_at",
            "id",
            postgresql_where=text("status = 'waiting'"),
        ),
        Index("outbox_answer_idx", "answer_id", "endpoint", "id"),
        Index("outbox_done_idx", "done_at", postgresql_where=text("status <> 'waiting'")),
        {"comment": "Alerts, written with the answers they are about; delivered from here."},
    )
    id: Mapped[int] = mapped_column(Identity(), primary_key=True, comment="order of writing")
    endpoint: Mapped[int] = mapped_column(
        Integer, ForeignKey("endpoints.id", ondelete="CASCADE"), comment="where it goes"
    )
    webhook_id: Mapped[str] = mapped_column(
        comment="hash of program, answer and event: the same after retries, restarts and replays"
    )
    event: Mapped[str] = mapped_column(comment="confirmed, pending, refuted or deadline")
    run: Mapped[int] = mapped_column(Integer, comment=_RUN)
    program: Mapped[str] = mapped_column(comment="name of the program")
    query: Mapped[str] = mapped_column(comment="predicate of the query")
    answer_id: Mapped[UUID] = mapped_column(comment="answer")
    tau: Mapped[int] = mapped_column(comment="τ of the event")
    body: Mapped[dict[str, Any]] = mapped_column(
        comment="answer, bindings, evidence, arrivals, hypotheses, conditions, deadline, since, "
        "reason, unit_ms at the time of the event"
    )
    status: Mapped[str] = mapped_column(
        server_default=text("'waiting'"), comment="waiting, delivered or dead"
    )
    attempts: Mapped[int] = mapped_column(
        Integer, server_default=text("0"), comment="how often it was tried"
    )
    next_at: Mapped[datetime] = _now("wall time before which it is not tried")
    claimed_by: Mapped[int | None] = mapped_column(
        Integer, comment="deliverer that has it in hand; void once that one is gone"
    )
    created_at: Mapped[datetime] = _now(_WALL)
    done_at: Mapped[datetime | None] = mapped_column(
        comment="wall time of its delivery or of giving up"
    )


class DeliveryAttempt(Base):
    __tablename__ = "delivery_attempts"
    __table_args__ = (
        Index(None, "outbox"),
        Index(None, "endpoint", "recorded_at"),
        {
            "comment": "Every try to deliver an alert.",
            "postgresql_partition_by": "RANGE (recorded_at)",
        },
    )
    outbox: Mapped[int] = mapped_column(comment="alert")
    endpoint: Mapped[int] = mapped_column(Integer, comment="where it went")
    attempt: Mapped[int] = mapped_column(Integer, comment="from 1")
    recorded_at: Mapped[datetime] = _now("wall time at which it was sent")
    status_code: Mapped[int | None] = mapped_column(
        Integer, comment="HTTP status of the reply; null: there was none"
    )
    latency_ms: Mapped[float | None] = mapped_column(comment="milliseconds to the reply")
    error: Mapped[str | None] = mapped_column(comment="what went wrong, secrets masked")

    __mapper_args__ = _key(outbox, attempt, recorded_at)


# --- staging and settings ----------------------------------------------------------------------


class StagedChange(Base):
    __tablename__ = "staged_changes"
    __table_args__ = (
        Index(None, "run", "batch", "part"),
        {
            "comment": "Changes of a batch that is not applied yet; see `storage.staging`.",
            "prefixes": ["UNLOGGED"],
        },
    )
    run: Mapped[int] = mapped_column(Integer, comment=_RUN)
    batch: Mapped[int] = mapped_column(comment="batch")
    part: Mapped[int] = mapped_column(Integer, comment="partition of the batch")
    op: Mapped[str] = mapped_column(comment="put, drop, new or first")
    id: Mapped[UUID] = mapped_column(comment="triple")
    answer_id: Mapped[UUID] = mapped_column(comment="its answer θ")
    query: Mapped[str] = mapped_column(comment="predicate of the query")
    answer: Mapped[str] = mapped_column(comment="the answer as text")
    bindings: Mapped[dict[str, Any]] = mapped_column(comment="value of each variable")
    premise: Mapped[int] = mapped_column(Integer, comment="number of its premise set")
    evidence: Mapped[list[str]] = mapped_column(comment="facts that speak for it")
    arrivals: Mapped[list[int]] = mapped_column(comment="their arrivals")
    hypotheses: Mapped[list[str]] = mapped_column(comment="atoms it waits for")
    closes: Mapped[list[int]] = mapped_column(comment="when each of them closes")
    conditions: Mapped[list[str]] = mapped_column(comment="comparisons not decided yet")
    deadline: Mapped[int | None] = mapped_column(comment="when it closes")
    reason: Mapped[str | None] = mapped_column(comment="hypothesis that closes then")
    start_tau: Mapped[int] = mapped_column(comment="τ at which it entered S_τ")
    end_tau: Mapped[int | None] = mapped_column(comment="τ at which an arrival took it out")
    first_tau: Mapped[int] = mapped_column(comment="least start of it and of those in `past`")
    past: Mapped[str | None] = mapped_column(comment="JSON: triples that it stands for besides")
    live: Mapped[bool | None] = mapped_column(comment="first: pending now")
    shown: Mapped[bool | None] = mapped_column(comment="first: shown for its answer")
    status: Mapped[str | None] = mapped_column(comment="first: of the answer")
    since: Mapped[int | None] = mapped_column(comment="first: τ at which the answer first was")
    decided_at: Mapped[int | None] = mapped_column(comment="first: τ at which it was decided")

    __mapper_args__ = _key(run, batch, id)


class StagedEvent(Base):
    __tablename__ = "staged_events"
    __table_args__ = (
        Index(None, "run", "batch", "part"),
        {
            "comment": "Late facts and rejected events of a batch that is not applied yet.",
            "prefixes": ["UNLOGGED"],
        },
    )
    run: Mapped[int] = mapped_column(Integer, comment=_RUN)
    batch: Mapped[int] = mapped_column(comment="batch")
    part: Mapped[int] = mapped_column(Integer, comment="partition of the batch")
    kind: Mapped[str] = mapped_column(comment="late or rejected")
    event: Mapped[str] = mapped_column(comment="the event as it came")
    source: Mapped[str] = mapped_column(comment="source it was read from")
    place: Mapped[str] = mapped_column(comment="place in the source")
    arrival: Mapped[int | None] = mapped_column(comment="τ at which it arrived")
    reason: Mapped[str] = mapped_column(comment="why it takes no part")
    fact: Mapped[str | None] = mapped_column(comment="late: the fact as text")
    stream: Mapped[str | None] = mapped_column(comment="late: its stream predicate")
    time: Mapped[int | None] = mapped_column(comment="late: time point at which it held")
    delay: Mapped[int | None] = mapped_column(comment="late: its delay bound δ")
    matched: Mapped[bool | None] = mapped_column(
        comment="late: whether it matches an atom of a premise set"
    )

    __mapper_args__ = _key(run, batch, part, place)


class StagedPart(Base):
    __tablename__ = "staged_parts"
    __table_args__ = (
        {
            "comment": (
                "Partitions of a batch that have staged something. Kept through a crash, unlike "
                "`staged_marks`: a part without its mark has lost what it staged."
            )
        },
    )
    run: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False, comment=_RUN)
    batch: Mapped[int] = mapped_column(primary_key=True, autoincrement=False, comment="batch")
    kind: Mapped[str] = mapped_column(primary_key=True, comment="changes or events")
    part: Mapped[int] = mapped_column(
        Integer, primary_key=True, autoincrement=False, comment="partition of the batch"
    )


class StagedMark(Base):
    __tablename__ = "staged_marks"
    __table_args__ = (
        {
            "comment": "The same as `staged_parts`, until a crash empties it with what was staged.",
            "prefixes": ["UNLOGGED"],
        },
    )
    run: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False, comment=_RUN)
    batch: Mapped[int] = mapped_column(primary_key=True, autoincrement=False, comment="batch")
    kind: Mapped[str] = mapped_column(primary_key=True, comment="changes or events")
    part: Mapped[int] = mapped_column(
        Integer, primary_key=True, autoincrement=False, comment="partition of the batch"
    )


class Retention(Base):
    __tablename__ = "retention"
    __table_args__ = ({"comment": "How long what only grows is kept; read by `whilst db prune`."},)
    what: Mapped[str] = mapped_column(
        primary_key=True,
        comment="late_facts, rejected_events, batches, delivery_attempts, history, answers, "
        "alerts or runs",
    )
    days: Mapped[int | None] = mapped_column(Integer, comment="days to keep; null: for ever")


BY_WEEK = ("all_late_facts", "all_rejected_events", "batches", "delivery_attempts")
"""Tables with a partition for each week of wall time."""
