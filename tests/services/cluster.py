"""A Spark cluster on this machine: a standalone master and workers with executors of their own.

`python -m tests.services.cluster up|down|status` keeps one between commands, with a broker and a
Postgres beside it: `make cluster-up`.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyspark

from monitor.setup import java
from tests.services import ports

START_SECONDS = 120


class SparkCluster:
    """A master and workers, each with a core. Executors end with the application that has them."""

    def __init__(
        self, folder: Path, workers: int = 2, memory: str = "1g", python: str | None = None
    ) -> None:
        self.folder = folder
        self._workers, self._memory, self._python = workers, memory, python
        self.port, self._web = ports.free(2)
        self.processes: list[subprocess.Popen[bytes]] = []

    @property
    def master(self) -> str:
        return f"spark://127.0.0.1:{self.port}"

    def start(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        address = ("--host", "127.0.0.1", "--port", str(self.port), "--webui-port", str(self._web))
        self._launch("master", "org.apache.spark.deploy.master.Master", *address)
        for number in range(self._workers):
            self.add_worker(number)
        self._await_workers()
        return self

    def add_worker(self, number: int) -> None:
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

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _launch(self, name: str, main: str, *arguments: str) -> None:
        home = Path(pyspark.__file__).parent
        environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))},
            "JAVA_HOME": str(java.home_for_spark()),
            "SPARK_HOME": str(home),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_LOCAL_DIRS": str(self.folder / "scratch"),
            "PYTHONPATH": "",
        }
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
            except OSError:
                pass
            if any(process.poll() is not None for process in self.processes):
                break
            time.sleep(0.1)
        logs = "\n".join(
            path.read_text(errors="replace")[-2000:] for path in self.folder.glob("*.log")
        )
        self.stop()
        raise RuntimeError(f"the Spark cluster did not start in {START_SECONDS} s:\n{logs}")
