"""What the whole way costs: from a log to rows in Postgres, against the same Spark doing less.

The *floor* is Spark reading, parsing, routing and shuffling the same events in the same batches,
and throwing them away. Times are those of warm batches (the first ones load classes), medians.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from monitor.doubt import Rules
from monitor.plan import Horizon, routed
from monitor.run import BatchDone, Happening, Options, Progress, Run
from monitor.sources import Files, Topic, json_and_csv
from monitor.spark_session import session
from monitor.start import Loaded, make_run
from resolution.program import load
from storage import embedded
from storage.store import Store, open_store

_PROGRAM = """
unit 1s.
stream Temp(device, level) delay 1.
Flag(X, T) <- Temp(X, high, T).
Cool(X, T+1) <- Flag(X, T), Flag(X, T+1).
Shdn(X, T+1) <- Cool(X, T), Flag(X, T+1).
Malf(X, T-2) <- Shdn(X, T).
query Malf(X, T).
"""
_WINDOWS = """
unit 1s.
stream Fail(user) delay {window}.
stream Success(user) delay {window}.
Brute(U, T2) <- Fail(U, T1), Success(U, T2), T1 < T2, T2 <= T1+{window}.
query Brute(U, T).
"""
_DEVICES = 20_000
_EVENTS = 300_000  # a batch
_BATCHES = 6
_WARM = 2  # batches that do not count


def figures(scale: float = 1.0) -> Iterator[dict[str, Any]]:
    """One figure after another, as `whilst bench` prints them."""
    with _bench(scale) as bench:
        for share in (0.01, 0.3):
            yield from bench.throughput(share, kafka=False)
        yield from bench.pending()
        yield from bench.windows()
        for share in (0.01, 0.3):
            yield from bench.throughput(share, kafka=True)
        yield from bench.latency()


def _figure(task: str, figure: str, value: float) -> dict[str, Any]:
    return {"bench": "pipeline", "task": task, "figure": figure, "value": value}


@contextmanager
def _bench(scale: float) -> Iterator[_Bench]:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        spark = session("local[2]", app="bench", kafka=True)
        try:
            with open_store(home=home) as store:
                yield _Bench(spark, store, Path(folder), scale)
        finally:
            spark.stop()
            embedded.remove(home)


@dataclass
class _Bench:
    spark: SparkSession
    store: Store
    folder: Path
    scale: float
    _made: int = 0

    # --- events a second ---------------------------------------------------------------------

    def throughput(self, share: float, *, kafka: bool) -> Iterator[dict[str, Any]]:
        """End to end against the floor, with a share of the events relevant."""
        events = max(round(_EVENTS * self.scale), 1000)
        log = self._log(share, events)
        task = f"{share:.0%} relevant, {'kafka' if kafka else 'files'}"
        loaded = Loaded.of(self._name(), load(_PROGRAM))
        options = Options(once=True, arrival_field="arrival", most_files=1)
        with _broker(self.folder, log, kafka) as source:
            if isinstance(source, Topic):
                options = replace(options, most_files=None, most_offsets=events)
            floor = self._floor(loaded, source, options)
            done, seconds = self._run(loaded, source, options)
        ours = statistics.median(seconds[_WARM:])
        changes = sum(b.figures.changes for b in done[_WARM:])
        yield _figure(task, "events/s", round(events / ours))
        yield _figure(task, "floor events/s", round(events / floor))
        yield _figure(task, "vs floor", round(floor / ours, 2))
        yield _figure(task, "changes/s", round(changes / sum(seconds[_WARM:])))
        if share > 0.1 and not kafka:
            rows = changes // max(len(done) - _WARM, 1)
            copied = self._copy(rows)
            yield _figure(task, "copy rows/s", round(rows / copied))
            yield _figure(task, "vs copy", round(copied * changes / rows / sum(seconds[_WARM:]), 2))

    def _floor(self, loaded: Loaded, source: Files | Topic, options: Options) -> float:
        spark = self.spark.newSession()
        spark.conf.set("spark.sql.caseSensitive", "true")
        found = json_and_csv(
            spark,
            [source],
            stamped=False,
            most_files=options.most_files,
            most_offsets=options.most_offsets,
        )
        rules = Rules("arrival", None, None)
        rows, targets = routed(found, loaded.program, loaded.routing, rules, Horizon(None, None))
        rows = rows.where("matches").select("a0", "a1", "time", F.explode(targets).alias("t"))
        rows = rows.where("t is not null").repartition(2, "t.query", "t.key", "t.closes")
        query = (
            rows.writeStream.format("noop")
            .option("checkpointLocation", str(self.folder / self._name()))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        times = [p["durationMs"]["triggerExecution"] for p in query.recentProgress]
        return statistics.median([t for t in times if t][_WARM:]) / 1000

    def _run(
        self, loaded: Loaded, source: Files | Topic, options: Options
    ) -> tuple[list[BatchDone], list[float]]:
        """What the batches did, and how long each took from one trigger to the next."""
        happened: list[Happening] = []
        run = self._made_run(loaded, source, options, happened)
        query = run.start()
        query.awaitTermination()
        while query.lastProgress is not None and not any(
            isinstance(h, Progress) and h.batch >= query.lastProgress["batchId"] for h in happened
        ):
            time.sleep(0.05)  # Spark tells of its last batch on another thread
        run.finish()
        run.close()
        done = [h for h in happened if isinstance(h, BatchDone)]
        progress = {h.batch: h.milliseconds for h in happened if isinstance(h, Progress)}
        return done, [progress[b.batch]["triggerExecution"] / 1000 for b in done]

    def _made_run(
        self,
        loaded: Loaded,
        source: Files | Topic,
        options: Options,
        happened: list[Happening],
    ) -> Run:
        home = self.folder / "home"
        watch = happened.append
        return make_run(self.spark, self.store, home, loaded, [source], options, watch=watch)

    def _copy(self, rows: int) -> float:
        """Seconds to COPY the changes of the last run, so many of them, into a bare table."""
        with psycopg.connect(self.store.url("owner"), autocommit=True) as db:
            db.execute("drop table if exists plain")
            db.execute(f"create table plain as select * from lives order by run desc limit {rows}")
            with db.cursor() as cursor, cursor.copy("copy plain to stdout") as out:
                data = b"".join(bytes(part) for part in out)
            began = time.perf_counter()
            with db.cursor() as cursor, cursor.copy("copy plain from stdin") as into:
                into.write(data)
            return time.perf_counter() - began

    def _log(self, share: float, events: int) -> list[Path]:
        """Files of events, each of them a batch; a device sends a reading every time point."""
        random.seed(7)
        made: list[Path] = []
        folder = self.folder / self._name()
        folder.mkdir()
        devices = max(round(_DEVICES * min(self.scale, 1)), 100)
        number = 0
        for batch in range(_BATCHES):
            path = folder / f"{batch}.jsonl"
            with path.open("w") as file:
                for _ in range(events):
                    device, time_point = number % devices, number // devices
                    level = "high" if random.random() < share else "low"
                    file.write(
                        f'{{"fact": "Temp", "args": ["wt{device}", "{level}"], '
                        f'"time": {time_point}, "arrival": {time_point}}}\n'
                    )
                    number += 1
            made.append(path)
        return made

    # --- what must not matter --------------------------------------------------------------------

    def pending(self) -> Iterator[dict[str, Any]]:
        """The same batch of one live run, with more and more answers pending in the store."""
        program = """
            unit 1s.
            stream Ordered(order) delay 10000000.
            stream Paid(order) delay 10000000.
            Done(X, T) <- Ordered(X, T), Paid(X, T).
            query Done(X, T).
        """
        loaded = Loaded.of(self._name(), load(program))
        folder = self.folder / self._name()
        folder.mkdir()
        happened: list[Happening] = []
        run = self._made_run(loaded, Files(folder), Options(trigger="0 seconds"), happened)
        query = run.start()
        total = 0

        def read(count: int) -> float:
            """Seconds of the batch in which as many orders more were read."""
            nonlocal total
            self._orders(folder, total, count)
            total += count
            while (done := sum(b.events for b in happened if isinstance(b, BatchDone))) < total:
                if query.exception() is not None:
                    raise RuntimeError(f"{done:,} of {total:,} read") from query.exception()
                time.sleep(0.05)
            # A tick of the clock may have made a batch of its own since.
            last = max(b.batch for b in happened if isinstance(b, BatchDone) and b.events)
            while not (
                told := [h for h in happened if isinstance(h, Progress) and h.batch == last]
            ):
                time.sleep(0.05)
            return told[0].milliseconds["triggerExecution"] / 1000

        try:
            for size in (100_000, 1_000_000, 10_000_000):
                wanted = round(size * self.scale)
                while total < wanted:
                    read(min(500_000, wanted - total))
                seconds = statistics.median(read(1000) for _ in range(7))
                yield _figure("batch of 1,000", f"seconds with {wanted:,} pending", seconds)
        finally:
            query.stop()
            run.close()

    def _orders(self, folder: Path, first: int, count: int) -> None:
        ahead = int(time.time()) + 3600  # no time point that was complete before they were read
        lines = (
            json.dumps({"fact": "Ordered", "args": [f"o{n}"], "time": ahead})
            for n in range(first, first + count)
        )
        hidden = folder / f".{first}"
        hidden.write_text("\n".join(lines) + "\n")
        hidden.rename(folder / f"{first:012}.jsonl")

    def windows(self) -> Iterator[dict[str, Any]]:
        """State against the length of the window and the number of keys, 100,000 facts each."""
        facts = max(round(100_000 * self.scale), 1000)
        for window in (10, 1000):
            for keys in (10, 1000, 10_000):
                loaded = Loaded.of(self._name(), load(_WINDOWS.format(window=window)))
                folder = self.folder / self._name()
                folder.mkdir()
                rows = (
                    {
                        "fact": "Fail",
                        "args": [f"u{n % keys}"],
                        "time": n // keys,
                        "arrival": n // keys,
                    }
                    for n in range(facts)
                )
                (folder / "1.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
                happened: list[Happening] = []
                run = self._made_run(loaded, Files(folder), Options(once=True), happened)
                run.start().awaitTermination()
                run.finish()
                while not any(isinstance(h, Progress) for h in happened):
                    time.sleep(0.05)
                run.close()
                [progress] = [h for h in happened if isinstance(h, Progress)]
                task = f"window {window}, {keys:,} keys"
                yield _figure(task, "state groups", progress.state_rows)
                yield _figure(task, "state bytes a fact", round(progress.state_bytes / facts))

    def latency(self) -> Iterator[dict[str, Any]]:
        """From the append to the log until the row can be read, live with a trigger of 100 ms."""
        from kafka import KafkaProducer

        program = load(_PROGRAM.replace("unit 1s", "unit 100ms").replace("delay 1", "delay 1h"))
        loaded = Loaded.of(self._name(), program)
        with _broker(self.folder, [], True, stamped=True) as source:
            assert isinstance(source, Topic)
            producer = KafkaProducer(bootstrap_servers=source.servers)
            options = Options(trigger="100 milliseconds")
            run = self._made_run(loaded, source, options, [])
            query = run.start()
            seconds: list[float] = []
            with psycopg.connect(self.store.url("reader"), autocommit=True) as db:
                for number in range(30):
                    at = int(time.time() * 10)
                    fact = {"fact": "Temp", "args": [f"wt{number}", "high"], "time": at}
                    sent = producer.send(source.name, json.dumps(fact).encode()).get(30)
                    row = (
                        "select 1 from pending_answers where program = %s and bindings ->> 'X' = %s"
                    )
                    while not db.execute(row, (loaded.name, f"wt{number}")).fetchone():
                        time.sleep(0.005)
                    seconds.append(time.time() - sent.timestamp / 1000)
            query.stop()
            run.close()
            producer.close()
        yield _figure("append to row", "median ms", round(statistics.median(seconds[10:]) * 1000))
        yield _figure("append to row", "worst ms", round(max(seconds[10:]) * 1000))

    def _name(self) -> str:
        self._made += 1
        return f"bench{self._made}"


@contextmanager
def _broker(
    folder: Path, log: list[Path], wanted: bool, stamped: bool = False
) -> Iterator[Files | Topic]:
    """The events in a topic of a broker of their own, or as the files they are."""
    if not wanted:
        yield Files(log[0].parent)
        return
    from monitor.send import at_rate, outlet

    sys.path.append(str(Path(__file__).parents[2]))  # the broker is that of the clone's tests
    from tests.services.kafka import Broker

    with tempfile.TemporaryDirectory(dir=folder) as data, Broker(Path(data)) as broker:
        name = broker.fresh_topic(2, log_append_time=stamped)
        topic = Topic(broker.bootstrap, name)
        with outlet(topic) as into:
            for path in log:
                with path.open("rb") as file:
                    at_rate((line.rstrip() for line in file), into, None)
        yield topic
