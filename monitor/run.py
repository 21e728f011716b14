"""`whilst run`: from sources to answers in the store, batch by batch.

The driver's part of a batch is small: it says what was complete before it, lets Spark run the one
action, and commits what the executors staged. See docs/design/pipeline.md.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from monitor.batch import SUMMARY, KernelStep
from monitor.checkpoint import Checkpoint
from monitor.clock import Clock
from monitor.doubt import COMPLETE, Doubt, Rules
from monitor.parse import Streams
from monitor.plan import ASKED, READ, Horizon, grouped, routed, targeted
from monitor.shipped import Shipped
from monitor.sources import Files, Topic, events
from resolution.program import Program
from resolution.routing import Routing
from storage.writer import BatchFigures, Writer


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
    events: int
    late: int
    rejected: int
    changes: int
    pending: int
    confirmed: int
    refuted: int
    latest_arrival: int | None
    complete: int | None
    seconds: float


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
    watch: Callable[[BatchDone], None] = lambda _: None

    def __post_init__(self) -> None:
        self._writer = Writer(self.conninfo)
        self._writing = threading.Lock()
        self._latest = self.clock.latest
        self.spark = self.spark.newSession()  # its settings and streams are this run's own
        for key, value in _CONF.items():
            self.spark.conf.set(key, value)
        self._shipped = Shipped.of(self.spark.sparkContext, self.program, self.routing)
        self.failure: BaseException | None = None

    def start(self) -> StreamingQuery:
        self._writer.discard(self.number)
        writer = (
            self._plan()
            .writeStream.outputMode("update")
            .option("checkpointLocation", str(self.checkpoint.spark))
            .foreachBatch(self._batch)
        )
        if self.options.once:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=self.options.trigger).start()

    def finish(self) -> None:
        """At the end of `--once`: the last arrival, or what was given, is complete."""
        tau = self.options.until if self.options.until is not None else self._latest
        if tau is not None:
            with self._writing:
                self._writer.complete(self.number, tau)

    def close(self) -> None:
        self._writer.close()

    def _plan(self) -> DataFrame:
        stamped = self.options.arrival_field is None
        rules = Rules(
            self.options.arrival_field or "arrival", self.options.until, self.options.skew
        )
        horizon = Horizon(self.clock.complete, None if self.options.once else self.options.grace)
        rows = events(
            self.spark,
            self.sources,
            stamped=stamped,
            most_files=self.options.most_files,
            most_offsets=self.options.most_offsets,
        )
        rows = routed(rows, self.program, self.routing, rules, horizon)
        doubt = Doubt(self._shipped, rules, self.conninfo, self.number)
        rows = targeted(rows, Streams.of(self.program).width, doubt)
        return grouped(rows, self.checkpoint.clock)

    def _batch(self, groups: DataFrame, number: int) -> None:
        try:
            self._run_batch(groups, number)
        except BaseException as error:
            self.failure = error
            raise

    def _run_batch(self, groups: DataFrame, number: int) -> None:
        began = time.monotonic()
        context = self.spark.sparkContext
        execution = _execution(self.spark, context.getLocalProperty("sql.streaming.queryId"))
        complete = self.checkpoint.complete_before(number, self.clock.complete)
        context.setLocalProperty(COMPLETE, "" if complete is None else str(complete))
        marker = execution.offsetSeqMetadata().batchTimestampMs()
        step = KernelStep(self._shipped, self.conninfo, self.number, number, marker)
        parts = groups.mapInArrow(step, SUMMARY).collect()
        read, asked = (_observed(execution, name) for name in (READ, ASKED))
        arrivals = [a for a in (read["arrival"], asked["arrival"], self._latest) if a is not None]
        self._latest = max(arrivals, default=None)
        with self._writing:
            late, rejected = self._staged(number, [text for part in parts for text in part.same])
            figures = BatchFigures(
                latest_arrival=self._latest,
                facts=read["events"] - late - rejected,
                matched=sum(part.fresh for part in parts),
                kernel_ms=sum(part.milliseconds for part in parts),
                started=began,
            )
            tau = self.clock.complete_now(limited=self.options.limited)
            applied = self._writer.commit_batch(self.number, number, tau, figures)
        self.clock.batch_done()
        self.watch(
            BatchDone(
                number,
                read["events"],
                late,
                rejected,
                applied.changes,
                applied.pending,
                applied.confirmed,
                applied.refuted,
                self._latest,
                tau,
                time.monotonic() - began,
            )
        )

    def _staged(self, batch: int, same: list[str]) -> tuple[int, int]:
        """How many late and rejected events were staged, less late copies of facts in time."""
        import psycopg

        with psycopg.connect(self.conninfo) as db:
            if same:
                for table in ("staged_events", "all_late_facts"):
                    db.execute(
                        f"delete from {table} where run = %s and fact = any(%s)",
                        (self.number, same),
                    )
            rows = db.execute(
                "select kind, count(*) from staged_events where run = %s and batch = %s group by 1",
                (self.number, batch),
            ).fetchall()
        counts = dict(rows)
        return counts.get("late", 0), counts.get("rejected", 0)


_CONF = {
    "spark.sql.caseSensitive": "true",  # fields of events are told apart by case
    # Closing needs no batch, so none is made to evict state: the next one with data does it.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}


def _execution(spark: SparkSession, query: str) -> Any:
    """The batch that Spark is running, with its metrics: they are complete after its action."""
    return spark.streams.get(query)._jsq.streamingQuery().lastExecution()


def _observed(execution: Any, name: str) -> dict[str, Any]:
    metrics = execution.observedMetrics()
    if not metrics.contains(name):
        return {"events": 0, "facts": 0, "arrival": None}
    row = metrics.apply(name)
    return {field: row.getAs(field) for field in row.schema().fieldNames()}
