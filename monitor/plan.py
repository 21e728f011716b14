"""The streaming plan: events in, the groups that a batch changed out.

    events -> parse -> judge -> (doubtful, late: ask Python) -> explode to groups -> collect_set

The state is Spark's: for each group the facts in its block. It goes when the clock stream says
that the block has closed: `closes` is the event-time column of the aggregation, and the watermark
on it comes from the clock stream alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from monitor.doubt import COLUMNS, FACT, NEVER, Doubt, Rules
from monitor.parse import Streams, parsed
from monitor.route import Router
from resolution.program import Program
from resolution.routing import SEPARATOR, Routing

READ, ASKED = "read", "asked"
"""Names of the observed metrics of a batch: over all events, and over those that Python judged."""


@dataclass(frozen=True, slots=True)
class Horizon:
    """What the JVM needs to know to see that an event wants judging in Python."""

    complete: int | None
    """The last complete time point at the start of the run."""
    grace: int | None
    """Live: how far (ms) behind the time of a batch a time point may be complete already."""


def routed(
    events: DataFrame, program: Program, routing: Routing, rules: Rules, horizon: Horizon
) -> DataFrame:
    """Events with the columns of clean facts, `matches`, and `doubtful`: for Python to judge."""
    streams = Streams.of(program)
    rows = events.withColumn("now", F.unix_millis(F.current_timestamp()))
    rows = parsed(rows, program, rules.arrival_field)
    router = Router(events.sparkSession, streams, routing, program.delays)
    rows = router.judged(rows)
    arrival = F.col("arrival")
    doubtful = F.col("predicate").isNull() | (arrival > F.col("time") + F.col("delay"))
    if horizon.complete is not None:
        doubtful |= arrival <= horizon.complete
    if horizon.grace is not None:
        passed = F.call_function("div", F.col("now") - horizon.grace, F.lit(program.unit))
        doubtful |= arrival < passed
    if rules.skew is not None:
        newest = F.call_function("div", F.col("now") + rules.skew, F.lit(program.unit))
        doubtful |= arrival > newest
    rows = rows.withColumn("doubtful", F.coalesce(doubtful, F.lit(True)))
    if rules.until is not None:
        rows = rows.where(F.col("doubtful") | (arrival <= rules.until))
    return rows.withColumn("targets", F.when(~F.col("doubtful"), router.targets()))


def targeted(rows: DataFrame, width: int, doubt: Doubt) -> DataFrame:
    """Routed events as rows of groups: one for each group that a fact goes to."""
    fact = F.when(~F.col("doubtful"), F.col("arrival"))
    rows = rows.observe(READ, F.count("*").alias("events"), F.max(fact).alias("arrival"))
    rows = rows.where(F.col("doubtful") | F.col("matches"))
    asked = _ask(doubt)(*(F.when(F.col("doubtful"), _asked(name)) for name in COLUMNS))
    texts = [F.col(f"a{place}") for place in range(width)]
    rows = rows.withColumn("f", asked)
    rows = rows.observe(
        ASKED,
        F.count("f").alias("facts"),
        F.max("f.arrival").alias("arrival"),
    )
    own = F.struct(
        F.coalesce(F.col("f.predicate"), F.col("predicate")).alias("predicate"),
        F.when(F.col("doubtful"), F.col("f.args"))
        .otherwise(F.concat_ws(SEPARATOR, *texts) if texts else F.lit(None))
        .alias("args"),
        F.coalesce(F.col("f.time"), F.col("time")).alias("time"),
        F.coalesce(F.col("f.arrival"), F.col("arrival")).alias("arrival"),
        F.col("now").alias("marker"),
        F.coalesce(F.col("f.late"), F.lit(False)).alias("late"),
    )
    targets = F.coalesce(F.col("f.targets"), F.col("targets"))
    rows = rows.select(own.alias("fact"), F.explode(targets).alias("t")).where("t is not null")
    return rows.select("t.query", "t.key", F.col("t.closes").alias("closes"), "fact")


def grouped(rows: DataFrame, clock: Path) -> DataFrame:
    """The facts of every group that the rows changed, kept until the clock says it has closed."""
    spark = rows.sparkSession
    rows = rows.withColumn("closes", F.timestamp_millis(F.least(F.col("closes"), F.lit(NEVER))))
    kind = rows.schema["fact"].dataType
    ticks = (
        spark.readStream.format("text")
        .option("maxFileAge", "36500d")
        .load(str(clock))
        .select(F.timestamp_millis(F.col("value").cast("long")).alias("closes"))
        .withWatermark("closes", "0 seconds")
        .where(F.col("closes") < F.timestamp_millis(F.lit(0)))  # none goes on: they only tell time
        .select(
            F.lit(0).alias("query"),
            F.lit("").alias("key"),
            "closes",
            F.lit(None).cast(kind).alias("fact"),
        )
    )
    facts = F.collect_set("fact").alias("facts")
    return (
        ticks.unionByName(rows)
        .groupBy("query", "key", "closes")
        .agg(facts)
        .withColumn("closes", F.unix_millis("closes"))
    )


def _ask(doubt: Doubt) -> Any:
    def ask(columns: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        return doubt(columns)

    ask.__annotations__ = {
        "columns": Iterator[tuple[pa.Array, ...]],
        "return": Iterator[pa.Array],
    }
    return F.arrow_udf(ask, FACT)


def _asked(name: str) -> Column:
    return F.col(name).cast("binary") if name == "value" else F.col(name)
