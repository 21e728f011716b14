"""The streaming plan: events in, the groups that a batch changed out.

    events -> parse -> judge -> (doubtful, late: ask Python) -> explode to groups -> collect_set

The state is Spark's: for each group the facts in its block. It goes when the clock stream says
that the block has closed: `closes` is the event-time column of the aggregation, and the watermark
on it comes from the clock stream alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from monitor.doubt import COLUMNS, FACT, NEVER, Doubt, Rules
from monitor.parse import Streams, parsed, parsed_csv
from monitor.route import Router
from resolution.program import Program
from resolution.routing import SEPARATOR, Routing

READ, ASKED = "read", "asked"
"""What is observed of a batch: the facts that SQL knew for sure, and those it asked about."""


@dataclass(frozen=True, slots=True)
class Horizon:
    """What the JVM needs to know to see that an event wants judging in Python."""

    complete: int | None
    """The last complete time point at the start of the run."""
    grace: int | None
    """Live: how far (ms) behind the time of a batch a time point may be complete already."""


def routed(
    streams_of_events: list[tuple[DataFrame, tuple[str, ...] | None]],
    program: Program,
    routing: Routing,
    rules: Rules,
    horizon: Horizon,
) -> tuple[DataFrame, Column]:
    """Events with the columns of clean facts, and whether they go on; and to which groups.

    `matches`: to a group; `doubtful`: to Python, which knows what they are; `suspect`: to Python,
    which knows whether their arrival contradicts the clock.
    """
    streams = Streams.of(program)
    found: list[DataFrame] = []
    for events, header in streams_of_events:
        rows = events.withColumn("now", _batch_time())
        if header is None:
            found.append(parsed(rows, program, rules.arrival_field))
        else:
            found.append(parsed_csv(rows, program, rules.arrival_field, header))
    rows = reduce(DataFrame.unionByName, found)
    router = Router(rows.sparkSession, streams, routing, program.delays)
    rows = router.judged(rows)
    arrival = F.col("arrival")
    doubtful = F.col("predicate").isNull() | (arrival > F.col("time") + F.col("delay"))
    if rules.skew is not None:
        newest = F.call_function("div", F.col("now") + rules.skew, F.lit(program.unit))
        doubtful |= arrival > newest
    suspect = F.lit(False)
    if horizon.complete is not None:
        suspect |= arrival <= horizon.complete
    if horizon.grace is not None:
        passed = F.call_function("div", F.col("now") - horizon.grace, F.lit(program.unit))
        suspect |= arrival < passed
    rows = rows.withColumn("doubtful", F.coalesce(doubtful, F.lit(True)))
    rows = rows.withColumn("suspect", ~F.col("doubtful") & suspect)
    if rules.until is not None:
        rows = rows.where(F.col("doubtful") | (arrival <= rules.until))
    return rows, F.when(~F.col("doubtful"), router.targets())


def _batch_time() -> Column:
    """When Spark took up the batch, in milliseconds.

    As a plain number it would stand in the code that Spark generates, and Java would compile that
    anew in each batch and never get it warm. Spark evaluates `transform` without generated code.
    """
    now = F.unix_millis(F.current_timestamp())
    return F.get(F.transform(F.array(now), lambda time: time), F.lit(0))


def targeted(rows: DataFrame, targets: Column, width: int, doubt: Doubt) -> DataFrame:
    """Routed events as rows of groups: one for each group that a fact goes to."""
    wanted = F.col("doubtful") | F.col("suspect")
    arrival = F.when(~wanted, F.col("arrival"))
    rows = rows.observe(READ, *_seen(arrival, arrival))
    rows = rows.where(wanted | F.col("matches"))
    asked = [F.when(wanted, _asked(name)) for name in COLUMNS]
    rows = rows.withColumn("f", _ask(doubt)(*asked))
    cleared = F.when(F.col("suspect") & F.col("f").isNull(), F.col("arrival"))
    arrival = F.coalesce(F.col("f.arrival"), cleared)
    in_time = F.when(F.coalesce(~F.col("f.late"), F.lit(True)), arrival)
    rows = rows.observe(ASKED, *_seen(in_time, arrival))
    texts = [F.col(f"a{place}") for place in range(width)]
    args = F.concat_ws(SEPARATOR, *texts) if texts else F.lit(None).cast("string")
    own = {
        "predicate": F.col("predicate"),
        "args": F.when(F.length(args) > 0, args),
        "time": F.col("time"),
        "arrival": F.col("arrival"),
        "late": F.lit(False),
        "targets": targets,
    }
    told = F.col("f").isNotNull()
    fact = {name: F.when(told, F.col(f"f.{name}")).otherwise(c) for name, c in own.items()}
    goals = fact.pop("targets")
    goal = F.posexplode(F.array_compact(goals)).alias("copy", "t")
    rows = rows.select(*(c.alias(name) for name, c in fact.items()), "now", goal)
    marker = F.col("now") * 2 + (F.col("copy") > 0).cast("long")
    return rows.select(
        "t.query", "t.key", "t.closes", F.struct(*fact, marker.alias("marker")).alias("fact")
    )


def _seen(fact: Column, arrival: Column) -> list[Column]:
    return [
        F.count(fact).alias("facts"),
        F.max(arrival).alias("arrival"),
        F.min(fact).alias("oldest"),
    ]


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
