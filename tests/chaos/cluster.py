"""The same job here and on a cluster: equal answers, and how fast with one and two workers.

`python -m tests.chaos.cluster` prints it. The Python of the executors is one without any packages:
what they import came with the job.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.chaos.check import rows
from tests.chaos.round import terminate_quietly
from tests.monitor.conftest import COLUMNS, comparable
from tests.services.cluster import SparkCluster
from tests.services.kafka import Broker
from tests.services.postgres import Postgres

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """\
unit 1s.
stream Temp(device, level) delay 1.
Flag(X, T) <- Temp(X, high, T).
Cool(X, T+1) <- Flag(X, T), Flag(X, T+1).
Shdn(X, T+1) <- Cool(X, T), Flag(X, T+1).
Malf(X, T-2) <- Shdn(X, T).
query Malf(X, T).
"""


class Job:
    """A log in a topic of three partitions, and runs of it into one Postgres."""

    def __init__(self, folder: Path, broker: Broker, postgres: Postgres, events: int) -> None:
        self.folder, self.postgres = folder, postgres
        self.events = events
        self.topic = broker.fresh_topic(3)
        self.source = f"kafka://{broker.bootstrap}/{self.topic}"
        self._fill(broker)

    def _fill(self, broker: Broker) -> None:
        rng = random.Random(7)
        producer = broker.producer()
        for number in range(self.events):
            time = number * 30 // self.events
            event = {
                "fact": "Temp",
                "args": [
                    f"wt{rng.randrange(max(self.events // 60, 1))}",
                    rng.choice(("high", "high", "low")),
                ],
                "time": time,
                "arrival": time + rng.choice((0, 0, 1, 2)),
            }
            producer.send(self.topic, json.dumps(event).encode(), partition=number % 3)
        producer.flush()
        producer.close()

    def run(self, name: str, master: str, *settings: str, batches: int = 4) -> None:
        """`whilst run --once` as a program of that name."""
        (self.folder / f"{name}.rules").write_text(PROGRAM)
        command = [
            *(sys.executable, "-c", "from monitor.cli import main; main()", "run"),
            *(f"{name}.rules", "--once", "--arrival-field", "arrival", "--source", self.source),
            *("--store", self.postgres.url(password=False), "--master", master),
            *("--max-offsets", str(max(self.events // batches, 1))),
            *(part for setting in settings for part in ("--spark", setting)),
        ]
        environment = os.environ | {
            "PGPASSWORD": self.postgres.password,
            "WHILST_HOME": str(self.folder / f"home-{name}"),
            "PYTHONPATH": str(ROOT),
        }
        done = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True
        )
        if done.returncode != 0:
            raise RuntimeError(f"{name}: {done.stdout}{done.stderr}")

    def answers(self, name: str) -> list[dict[str, Any]]:
        return comparable(
            [
                {"status": status, **line}
                for status in ("pending", "confirmed", "refuted")
                for line in rows(
                    self.postgres.url(),
                    f"select {COLUMNS} from {status}_answers where program = %s",
                    name,
                )
            ]
        )

    def rate(self, name: str) -> float:
        """Events a second over the batches after the first, which loads classes."""
        [found] = rows(
            self.postgres.url(),
            "select sum(b.facts + b.late + b.rejected) / (sum(b.total_ms) / 1000) as rate "
            "from batches b join runs r on r.id = b.run where r.name = %s and b.batch > 0",
            name,
        )
        return float(found["rate"])


def bare_python() -> str:
    """The interpreter that this one's environment was made from: it has none of its packages."""
    return str(Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}")


def on(cluster: SparkCluster) -> tuple[str, ...]:
    return (
        cluster.master,
        "spark.driver.host=127.0.0.1",
        "spark.executor.memory=1g",
        f"spark.pyspark.python={bare_python()}",
    )


@contextmanager
def job(events: int) -> Iterator[Job]:
    with tempfile.TemporaryDirectory(prefix="whilst-cluster-") as text:
        folder = Path(text)
        folder.chmod(0o711)
        with Broker(folder / "kafka") as broker, Postgres(folder / "postgres") as postgres:
            yield Job(folder, broker, postgres, events)


def main() -> int:
    terminate_quietly()
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--events", type=int, default=600_000)
    given = options.parse_args()
    with job(given.events) as one:
        one.run("local", "local[2]")
        wanted = one.answers("local")
        print(f"local[2]: {len(wanted)} answers, {one.rate('local'):,.0f} events/s", flush=True)
        equal = True
        for workers in (1, 2):
            name = f"workers{workers}"
            with SparkCluster(one.folder / f"spark-{workers}", workers, "1500m") as cluster:
                one.run(name, *on(cluster))
            same = one.answers(name) == wanted
            equal &= same
            said = "the same answers" if same else "OTHER ANSWERS"
            print(f"{workers} workers: {said}, {one.rate(name):,.0f} events/s", flush=True)
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
