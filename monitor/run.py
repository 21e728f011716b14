"""`whilst run`: from sources to answers in the store, batch by batch.

The driver's part of a batch is small: it says what was complete before it, lets Spark run the one
action, and commits what the executors staged. See docs/design/pipeline.md.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, TypeAlias

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.streaming.listener import JStreamingQueryListener, StreamingQueryListener

from monitor.batch import SUMMARY, KernelStep
from monitor.checkpoint import Checkpoint
from monitor.clock import Clock, Ticks
from monitor.doubt import COMPLETE, Doubt, Rules
from monitor.eviction import Eviction
from monitor.parse import Streams
from monitor.patience import ExecutorLost
from monitor.plan import ASKED, READ, Horizon, grouped, routed, targeted
from monitor.shipped import Shipped
from monitor.sources import Files, Topic, json_and_csv
from resolution.errors import WhilstError
from resolution.program import Program
from resolution.routing import Routing
from storage.errors import StoreError, translated
from storage.writer import Applied, BatchFigures, Writer


@dataclass(frozen=True, slots=True)
class Options:
    """How to run: what `whilst run` was told, as far as Spark and the clock are concerned."""

    once: bool = False
    until: int | None = None
    trigger: str = "1 second"
    arrival_field: str | None = None
    """The field with the arrival; None: `arrival` for files, the log's own stamp for Kafka."""
    skew: int | None = None
    grace: int = 2000
    most_files: int | None = None
    most_offsets: int | None = None

    @property
    def limited(self) -> bool:
        """Whether a batch may leave behind something that had been logged when it was planned."""
        return bool(self.most_files or self.most_offsets)


@dataclass(frozen=True, slots=True)
class BatchDone:
    """What a batch came to, for whoever watches."""

    batch: int
    figures: BatchFigures
    late: int
    rejected: int
    applied: Applied
    complete: int | None
    seconds: float

    @property
    def events(self) -> int:
        return self.figures.facts + self.late + self.rejected


@dataclass(frozen=True, slots=True)
class Clocked:
    """A time point became complete while there was nothing to read."""

    complete: int
    applied: Applied


@dataclass(frozen=True, slots=True)
class Progress:
    """What Spark says of itself after a batch."""

    batch: int
    input_rows: int
    milliseconds: dict[str, int]
    state_rows: int
    state_bytes: int
    behind: int | None
    """Events in the topics that the batch has left unread; None for files."""


Happening: TypeAlias = BatchDone | Clocked | Progress


@dataclass
class Run:
    """One run on one checkpoint into one store. `start`, then `wait`."""

    spark: SparkSession
    program: Program
    routing: Routing
    sources: list[Files | Topic]
    conninfo: str
    number: int
    checkpoint: Checkpoint
    clock: Clock
    options: Options = field(default_factory=Options)
    watch: Callable[[Happening], None] = lambda _: None
    failure: WhilstError | None = field(default=None, init=False)
    """What went wrong beside the stream itself: it must not go on."""

    def __post_init__(self) -> None:
        self.spark = self.spark.newSession()  # its settings and streams are this run's own
        for key, value in _CONF.items():
            self.spark.conf.set(key, value)
        self._writer = Writer(self.conninfo)
        self._turn = threading.Lock()  # of the batch, or of the clock between batches
        self._busy = False
        self._batch_number = self._committed = self._planned_before = -1
        self._progress: Progress | None = None
        self._told: int | None = None  # the last complete τ that the store knows of
        self._done = threading.Condition()
        self._shipped = Shipped.of(self.spark.sparkContext, self.program, self.routing)
        lengths = [q.blocks.length for q in self.routing.queries if q.blocks is not None]
        self._ticks = Ticks(self.checkpoint.clock, min(lengths, default=0) // 2)
        self._eviction = Eviction(self.spark.sparkContext._jvm)
        self._listener = _Listener(self)
        self.spark.streams.addListener(self._listener)

    def start(self) -> StreamingQuery:
        self._writer.discard(self.number)
        self._planned_before = self.checkpoint.last_planned
        writer = (
            self._plan()
            .writeStream.outputMode("update")
            .option("checkpointLocation", str(self.checkpoint.spark))
            .foreachBatch(self._batch)
        )
        if self.options.once:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=self.options.trigger).start()

    def finish(self) -> int | None:
        """At the end of `--once`: the last arrival, or what was given, is complete."""
        until = self.options.until
        tau = until if until is not None else self.clock.latest
        if tau is not None:
            self._writer.complete(self.number, tau)
            self.clock.complete = tau
        return tau

    def let_batch_end(self, query: StreamingQuery) -> None:
        """Wait for the batch at hand, if there is one, so that it need not be read again."""
        with self._turn:
            batch = self._batch_number if self._busy else -1
        ends = time.monotonic() + _PATIENCE
        with self._done:
            # Nobody tells of a batch that fails: the stream is over then.
            while self._committed < batch and query.isActive and time.monotonic() < ends:
                self._done.wait(0.25)

    def close(self) -> None:
        with suppress(Py4JError, ConnectionError):  # Java has ended, and its streams with it
            self.spark.streams.removeListener(self._listener)
        self._writer.close()

    def committed(self, progress: Progress) -> None:
        """Spark has a batch behind it."""
        with self._done:
            self._committed = progress.batch
            self._done.notify_all()
        self._progress = progress
        self.watch(progress)

    def idle_at(self, milliseconds: float) -> None:
        """Spark looked after then and found nothing new: closing needs no batch."""
        with self._turn:
            if self._busy or self.options.once:
                return
            tau = self.clock.read_everything_before(milliseconds)
            if tau is None or tau == self._told:
                return
            try:
                applied = self._writer.complete(self.number, tau)
            except StoreError:  # said again at the next look, and by the next batch
                return
            self._told = tau
            self.watch(Clocked(tau, applied))

    def _plan(self) -> DataFrame:
        options = self.options
        rules = Rules(options.arrival_field or "arrival", options.until, options.skew)
        horizon = Horizon(self.clock.complete, None if options.once else options.grace)
        found = json_and_csv(
            self.spark,
            self.sources,
            stamped=options.arrival_field is None,
            most_files=options.most_files,
            most_offsets=options.most_offsets,
        )
        rows, targets = routed(found, self.program, self.routing, rules, horizon)
        doubt = Doubt(self._shipped, rules, self.conninfo, self.number)
        rows = targeted(rows, targets, Streams.of(self.program).width, doubt)
        return grouped(rows, self.checkpoint.clock)

    def _batch(self, groups: DataFrame, number: int) -> None:
        with self._turn:
            self._busy, self._batch_number = True, number
        try:
            self._run_batch(groups, number)
        finally:
            with self._turn:
                self._busy = False

    def _run_batch(self, groups: DataFrame, number: int) -> None:
        began = time.monotonic()
        self._writer.discard(self.number)  # what an attempt that died has left
        context = self.spark.sparkContext
        execution = _execution(self.spark)
        complete = self.checkpoint.complete_before(number, self.clock.complete)
        context.setLocalProperty(COMPLETE, "" if complete is None else str(complete))
        marker = execution.offsetSeqMetadata().batchTimestampMs()
        # A batch that was planned before this start read what was logged then, and no more.
        everything = not self.options.limited and number > self._planned_before
        tau = self.clock.after_batch(everything=everything)
        over = None if self.options.once else -1 if tau is None else tau
        step = KernelStep(self._shipped, self.conninfo, self.number, number, marker, over)
        self._eviction.prepare(execution, self._progress.state_rows if self._progress else None)
        there = _executors(context)
        parts = groups.mapInArrow(step, SUMMARY).collect()
        if there - _executors(context):
            raise ExecutorLost(f"an executor was lost under batch {number}: it is computed again")
        read, asked = (_observed(execution, name) for name in (READ, ASKED))
        self.clock.arrived(read["arrival"], asked["arrival"])
        oldest = [seen["oldest"] for seen in (read, asked) if seen["oldest"] is not None]
        same, late, rejected = self._staged(number, [t for part in parts for t in part.same])
        figures = BatchFigures(
            latest_arrival=self.clock.latest,
            facts=read["facts"] + asked["facts"] + same,
            matched=sum(part.fresh for part in parts),
            changes=sum(part.changes for part in parts),
            read_ms=(time.monotonic() - began) * 1000,
            kernel_ms=sum(part.milliseconds for part in parts),
            lag_ms=self.clock.since(min(oldest, default=None)),
            behind=self._progress.behind if self._progress else None,
            state_rows=self._progress.state_rows if self._progress else None,
            state_bytes=self._progress.state_bytes if self._progress else None,
            started=began,
            delays=self._delays(parts),
        )
        self._eviction.read(figures.matched)
        over = self.clock.latest if self.options.once else tau
        applied = self._writer.commit_batch(self.number, number, tau, figures, over)
        self._told = tau
        self.clock.batch_done(tau)
        if not self.options.once and figures.facts:
            self._ticks.tell(tau)
        seconds = time.monotonic() - began
        self.watch(BatchDone(number, figures, late, rejected, applied, tau, seconds))

    def _delays(self, parts: list[Any]) -> dict[tuple[str, int], int]:
        """How many facts of each stream came with which delay."""
        names = Streams.of(self.program).names
        found: Counter[tuple[str, int]] = Counter()
        for part in parts:
            for seen in part.delays:
                found[names[seen.predicate], seen.delay] += seen.facts
        return found

    def _staged(self, batch: int, same: list[str]) -> tuple[int, int, int]:
        """How many events were late copies of facts in time, and so none; late; and rejected."""
        import psycopg

        copies = 0
        try:
            with psycopg.connect(self.conninfo) as db:
                if same:
                    for table in ("all_late_facts", "staged_events"):
                        copies = db.execute(
                            f"delete from {table} where run = %s and fact = any(%s)",
                            (self.number, same),
                        ).rowcount
                rows = db.execute(
                    "select kind, count(*) from staged_events where run = %s and batch = %s "
                    "group by 1",
                    (self.number, batch),
                ).fetchall()
        except psycopg.Error as error:
            raise translated(error) or error from error
        counts: dict[str, int] = dict(rows)
        return copies, counts.get("late", 0), counts.get("rejected", 0)


_PATIENCE = 300.0
"""Seconds that a batch may take to end when the run is told to."""


class DroppedRows(WhilstError):
    """Spark threw rows away behind its watermark: answers may be missing."""


class _Listener(StreamingQueryListener):
    """Spark's news about the streams of a session, on a thread of its own."""

    def __init__(self, run: Run) -> None:
        self._run = run

    @cached_property
    def _jlistener(self) -> Any:
        jvm: Any = self._run.spark.sparkContext._jvm
        return jvm.PythonStreamingQueryListenerWrapper(_Told(self))

    def onQueryStarted(self, event: Any) -> None:
        pass

    def onQueryIdle(self, event: Any) -> None:
        self._run.idle_at(_milliseconds(event.timestamp))

    def onQueryProgress(self, told: dict[str, Any]) -> None:
        operators = told["stateOperators"]
        dropped = sum(o["numRowsDroppedByWatermark"] for o in operators)
        if dropped:
            self._run.failure = DroppedRows(
                f"Spark dropped {dropped} rows behind its watermark in batch {told['batchId']}: "
                "this is a defect of whilst; start anew with --fresh, and tell us"
            )
        self._run.committed(
            Progress(
                told["batchId"],
                told["numInputRows"],
                told["durationMs"],
                sum(o["numRowsTotal"] for o in operators),
                sum(o["memoryUsedBytes"] for o in operators),
                _behind(told["sources"]),
            )
        )

    def onQueryTerminated(self, event: Any) -> None:
        pass


class _Told(JStreamingQueryListener):
    """Takes progress over as JSON, at once: PySpark asks Java for it field by field, and Java looks
    up four hundred names of classes for that, a third of a second in each batch."""

    def onQueryProgress(self, event: Any) -> None:
        self.pylistener.onQueryProgress(json.loads(event.progress().json()))


def _behind(sources: list[dict[str, Any]]) -> int | None:
    """Records in the topics beyond the ends of a batch."""
    left = None
    for source in sources:
        latest, end = source.get("latestOffset"), source.get("endOffset")
        if source["description"].startswith("Kafka") and latest and end:
            beyond = (
                offset - end.get(topic, {}).get(partition, 0)
                for topic, partitions in latest.items()
                for partition, offset in partitions.items()
            )
            left = (left or 0) + sum(beyond)
    return left


def _milliseconds(instant: str) -> float:
    return datetime.fromisoformat(instant).timestamp() * 1000


_CONF = {
    # How often a stream that waits for data says so: closing on time depends on it.
    "spark.sql.streaming.noDataProgressEventInterval": "200",
    "spark.sql.caseSensitive": "true",  # fields of events are told apart by case
    # Closing needs no batch, so none is made to evict state: the next one with data does it.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}


def _execution(spark: SparkSession) -> Any:
    """The batch that Spark is running, with its metrics: they are complete after its action."""
    number = spark.sparkContext.getLocalProperty("sql.streaming.queryId")
    assert number is not None
    query = spark.streams.get(number)
    assert query is not None
    return query._jsq.streamingQuery().lastExecution()


def _executors(context: Any) -> frozenset[str]:
    """Where each process that does tasks listens: one that was started anew is another one."""
    there: str = context._jsc.sc().getExecutorMemoryStatus().keySet().mkString("\n")
    return frozenset(there.split("\n"))


def _observed(execution: Any, name: str) -> dict[str, Any]:
    metrics = execution.observedMetrics()
    if not metrics.contains(name):
        return {"facts": 0, "arrival": None, "oldest": None}
    row = metrics.apply(name)
    return {field: row.getAs(field) for field in row.schema().fieldNames()}
