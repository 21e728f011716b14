"""Spark's own stream-stream self-join with watermarks: what a Spark user writes.

Each join has the key and the time as equalities and a range on the event time besides, so that
Spark can let go of its state. It runs on the PySpark that Whilst runs on, with Spark's defaults but
for the number of partitions, which is that of the cores.
"""

from __future__ import annotations

import shutil
import time
from functools import reduce
from pathlib import Path
from typing import Any

from protocol import Answer, Job, arguments, files_of, reply, span_of
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

_SCHEMA = "fact string, args array<string>, time long, arrival long"


def _events(spark: SparkSession, job: Job, kind: str, name: str) -> DataFrame:
    """One side of a join: the rows of a kind, with columns `name_k`, `name_t`, `name_ts`."""
    rows = (
        spark.readStream.schema(_SCHEMA)
        .option("maxFilesPerTrigger", job.batch)
        .json(job.events)
        .where(kind)
        .select(
            F.expr("args[0]").alias(f"{name}_k"),
            F.col("time").alias(f"{name}_t"),
            F.timestamp_seconds("time").alias(f"{name}_ts"),
        )
    )
    return rows.withWatermark(f"{name}_ts", f"{job.delay} seconds")


def _chain(spark: SparkSession, job: Job, kinds: list[str], step: int) -> DataFrame:
    """Rows of one key at t, t+step, t+2·step, …: the answer is (key, t) of the first kind."""
    found = _events(spark, job, kinds[0], "a")
    for number, kind in enumerate(kinds[1:], start=1):
        other = _events(spark, job, kind, "b")
        away = number * step
        lapse = f"interval {abs(away)} seconds"
        sign = "+" if away > 0 else "-"
        found = found.join(
            other,
            F.expr(
                f"a_k = b_k and b_t = a_t {sign} {abs(away)} and "
                f"b_ts >= a_ts {sign} {lapse} and b_ts <= a_ts {sign} {lapse}"
            ),
        ).select("a_k", "a_t", "a_ts")
    return found.select(F.col("a_k").alias("k"), F.col("a_t").alias("t"))


def query(spark: SparkSession, job: Job) -> DataFrame:
    if job.task == "turbines":
        return _chain(spark, job, ["args[1] = 'high'"] * 3, 1)
    if job.task == "shortstop":
        away, there = "fact <> 'Pos'", "fact = 'Pos'"
        chains = [_chain(spark, job, [away, *[there] * k, away], -1) for k in (1, 2, 3, 4)]
        return reduce(DataFrame.unionAll, chains)
    success = _events(spark, job, "args[1] = 'success'", "s")
    fail = _events(spark, job, "args[1] = 'fail'", "f")
    within = F.expr(
        "s_k = f_k and s_ts >= f_ts + interval 1 seconds "
        f"and s_ts <= f_ts + interval {job.window} seconds"
    )
    pairs = success.join(fail, within).select("s_k", "s_t", "s_ts")
    return pairs.dropDuplicates(["s_k", "s_t", "s_ts"]).selectExpr("s_k as k", "s_t as t")


def _session(cores: int) -> SparkSession:
    builder = SparkSession.builder.master(f"local[{cores}]").appName("self-join")
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": cores,
        # A batch for each file, so that it is known what had been read when an answer came out.
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def run(spark: SparkSession, job: Job) -> tuple[list[Answer] | None, dict[str, Any]]:
    folder = Path(job.scratch) / f"spark-{time.time_ns()}"
    writer = (
        query(spark, job)
        .writeStream.option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .outputMode("append")
    )
    found: list[Answer] = []
    if job.paced:
        files = files_of(job.events)

        def take(rows: DataFrame, batch: int) -> None:
            read = files[batch * job.batch : (batch + 1) * job.batch]
            first, last = span_of(read)
            found.extend(Answer(row.k, row.t, first, last) for row in rows.collect())

        writer = writer.foreachBatch(take)
    else:
        writer = writer.format("csv").option("path", str(folder / "answers"))
    began = time.perf_counter()
    running = writer.start()
    running.awaitTermination()
    seconds = time.perf_counter() - began
    lost = sum(
        operator["numRowsDroppedByWatermark"]
        for progress in running.recentProgress
        for operator in progress["stateOperators"]
    )
    count = (
        len({(a.key, a.time) for a in found})
        if job.paced
        else spark.read.schema("k string, t long").csv(str(folder / "answers")).distinct().count()
    )
    shutil.rmtree(folder, ignore_errors=True)
    return found if job.paced else None, {"seconds": seconds, "count": count, "lost": lost}


def main() -> None:
    spark = None
    for job in arguments().jobs:
        if spark is None or spark.sparkContext.defaultParallelism != job.cores:
            if spark is not None:
                spark.stop()
            spark = _session(job.cores)
        reply(*run(spark, job))


if __name__ == "__main__":
    main()
