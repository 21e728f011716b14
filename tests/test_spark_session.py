"""The session on real Spark: state that survives a restart, and the way through Kafka."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.services.kafka import Broker


def test_collect_set_in_update_mode_goes_on_after_a_restart(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = tmp_path / "a source"
    source.mkdir()
    batches: list[dict[str, set[int]]] = []

    def keep(batch: DataFrame, _: int) -> None:
        batches.append({row.key: set(row.values) for row in batch.collect()})

    def run(name: str, rows: list[tuple[str, int]]) -> None:
        lines = [json.dumps({"key": key, "value": value}) for key, value in rows]
        (source / name).write_text("\n".join(lines))
        query = (
            spark.readStream.schema("key string, value long")
            .json(str(source))
            .groupBy("key")
            .agg(F.collect_set("value").alias("values"))
            .writeStream.outputMode("update")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .foreachBatch(keep)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    run("1.json", [("a", 1), ("b", 2), ("a", 3)])
    run("2.json", [("a", 9)])
    assert batches == [{"a": {1, 3}, "b": {2}}, {"a": {1, 3, 9}}]


def test_kafka_to_spark_and_back(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    here, there = kafka.fresh_topic(3), kafka.fresh_topic()
    producer = kafka.producer()
    for number in range(30):
        producer.send(here, value=str(number).encode(), partition=number % 3, timestamp_ms=1)
    producer.close()
    stream = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", kafka.bootstrap)
        .option("subscribe", here)
        .option("startingOffsets", "earliest")
        .load()
    )
    query = (
        stream.select("value")
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", kafka.bootstrap)
        .option("topic", there)
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    rows = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", kafka.bootstrap)
        .option("subscribe", there)
        .load()
        .collect()
    )
    assert sorted(int(row.value.decode()) for row in rows) == list(range(30))
    assert {row.timestampType for row in rows} == {1}  # the broker's clock, not the producer's


def test_python_functions_run_on_the_own_interpreter_with_arrow(spark: SparkSession) -> None:
    def where(batches):  # type: ignore[no-untyped-def]
        import pyarrow

        for batch in batches:
            yield pyarrow.RecordBatch.from_pydict(
                {"python": [sys.executable], "rows": [batch.num_rows]}
            )

    rows = spark.range(10, numPartitions=1).mapInArrow(where, "python string, rows long").collect()
    assert [(row.python, row.rows) for row in rows] == [(sys.executable, 10)]
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"


def test_a_session_says_nothing_on_the_terminal_and_logs_to_its_file(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = tmp_path / "with blanks" / "spark.log"
    code = (
        "import sys; from pathlib import Path; from monitor.spark_session import session;"
        "s = session(log_file=Path(sys.argv[1])); s.range(3).count();"
        "s._jvm.org.slf4j.LoggerFactory.getLogger('x').warn('a warning of Spark'); s.stop()"
    )
    done = subprocess.run([sys.executable, "-c", code, log], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert "a warning of Spark" in log.read_text()
