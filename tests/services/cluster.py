"""A Spark cluster on this machine: a standalone master and workers with executors of their own.

`python -m tests.services.cluster up` and `down` (`make cluster-up`, `make cluster-down`) keep one
between commands, with a broker, a topic of three partitions and a Postgres beside it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any, Self

import pyspark

from monitor.setup import java
from monitor.setup.places import cache
from tests.services import ports
from tests.services.kafka import Broker
from tests.services.postgres import Postgres
from tests.services.service import Service

START_SECONDS = 120


class SparkCluster(Service):
    """A master and workers, each with a core. Executors end with the application that has them."""

    def __init__(self, folder: Path, workers: int = 2, memory: str = "1g") -> None:
        self.folder = folder
        self._workers, self._memory = workers, memory
        self.port, self._web = ports.free(2)
        self.processes: list[subprocess.Popen[bytes]] = []

    @property
    def master(self) -> str:
        return f"spark://127.0.0.1:{self.port}"

    def start(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        address = ("--host", "127.0.0.1", "--port", str(self.port), "--webui-port", str(self._web))
        try:
            self._launch("master", "org.apache.spark.deploy.master.Master", *address)
            for number in range(self._workers):
                self._add_worker(number)
            self._await_workers()
        except BaseException:
            self.stop()
            raise
        return self

    def _add_worker(self, number: int) -> None:
        self._launch(
            f"worker-{number}",
            "org.apache.spark.deploy.worker.Worker",
            *("--host", "127.0.0.1", "--cores", "1", "--memory", self._memory),
            *("--webui-port", "0", "--work-dir", str(self.folder / f"work-{number}")),
            self.master,
        )

    def stop(self) -> None:
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.processes.clear()

    def _launch(self, name: str, main: str, *arguments: str) -> None:
        home = Path(pyspark.__file__).parent
        environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))},
            "JAVA_HOME": str(java.home_for_spark()),
            "SPARK_HOME": str(home),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_LOCAL_DIRS": str(self.folder / "scratch"),
        }
        environment.pop("PYTHONPATH", None)  # an executor has what the job brings, and no more
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes.append(
                subprocess.Popen(
                    [str(home / "bin" / "spark-class"), main, *arguments],
                    cwd=self.folder,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            )

    def status(self) -> dict[str, Any]:
        """What the master says of itself."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._web}/json/", timeout=5) as reply:
            found: dict[str, Any] = json.load(reply)
        return found

    def _await_workers(self) -> None:
        ends = time.monotonic() + START_SECONDS
        while time.monotonic() < ends:
            try:
                if self.status()["aliveworkers"] >= self._workers:
                    return
            except (OSError, ValueError):  # not up yet, or with its page for people alone
                pass
            if any(process.poll() is not None for process in self.processes):
                break
            time.sleep(0.1)
        logs = "\n".join(
            path.read_text(errors="replace")[-2000:] for path in self.folder.glob("*.log")
        )
        raise RuntimeError(f"the Spark cluster did not start in {START_SECONDS} s:\n{logs}")


# --- kept between commands -----------------------------------------------------------------------

TOPIC = "facts"
_ENDINGS = {"spark": signal.SIGTERM, "kafka": signal.SIGTERM, "postgres": signal.SIGINT}


def _state() -> Path:
    return cache() / "cluster-services.json"


def up() -> str:
    """Start everything, and say how to use it."""
    if _state().exists():
        raise SystemExit("cluster: it is up already, or was not ended: make cluster-down")
    folder = Path(tempfile.mkdtemp(prefix="whilst-cluster-"))
    folder.chmod(0o711)
    pids: list[tuple[str, int]] = []
    try:
        cluster = SparkCluster(folder / "spark").start()
        pids += [("spark", process.pid) for process in cluster.processes]
        broker = Broker(folder / "kafka").start()
        pids.append(("kafka", broker.pid))
        broker.create_topic(TOPIC, 3)
        postgres = Postgres(folder / "postgres").start()
        pids.append(("postgres", postgres.pid))
    finally:
        _state().parent.mkdir(parents=True, exist_ok=True)
        _state().write_text(json.dumps({"folder": str(folder), "processes": pids}))
    password = folder / "password"
    password.touch(0o600)
    password.write_text(postgres.password)
    return f"""\
two workers, a broker and a Postgres are up; make cluster-down ends them. A run on them:
  export PGPASSWORD="$(cat {password})"
  .venv/bin/whilst run examples/turbines/turbines.rules --master {cluster.master} \\
    --source kafka://{broker.bootstrap}/{TOPIC} --store {postgres.url(password=False)} \\
    --spark spark.driver.host=127.0.0.1 --spark spark.executor.memory=1g"""


def down() -> str:
    if not _state().exists():
        return "there is no cluster"
    kept = json.loads(_state().read_text())
    for name, pid in reversed(kept["processes"]):
        command = Path(f"/proc/{pid}/cmdline")
        # The id may be somebody else's by now: only what lives in the folder is ours.
        if command.exists() and _ours(command.read_bytes(), name):
            os.kill(pid, _ENDINGS[name])
            while command.exists() and _state_of(pid) != "Z":
                time.sleep(0.05)
    _state().unlink()
    subprocess.run(["rm", "-rf", kept["folder"]], check=True)
    return "the cluster is down"


def _ours(command: bytes, name: str) -> bool:
    signs = {"spark": b"org.apache.spark.deploy", "kafka": b"kafka.Kafka", "postgres": b"postgres"}
    return signs[name] in command


def _state_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


if __name__ == "__main__":
    print({"up": up, "down": down}[sys.argv[1]]())
