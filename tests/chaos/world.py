"""Everything a round needs, real and each in a process of its own, and the faults it can have."""

from __future__ import annotations

import os
import random
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.chaos.plan import PARTITIONS, TOPICS, Fault, Plan
from tests.chaos.processes import Child, command_line, family, signalled
from tests.chaos.proxy import Proxy
from tests.services import ports
from tests.services.cluster import SparkCluster
from tests.services.kafka import Broker
from tests.services.postgres import Postgres

ROOT = Path(__file__).resolve().parents[2]
DISK = 400
"""Megabytes of the small file system with the store and the checkpoints."""

_MAIN = "from monitor.cli import main; main()"
_ALERTS = """
[[alert]]
name = "hook"
url = "{url}"
secret_env = "HOOK_SECRET"
events = ["confirmed", "refuted"]
allow_private = true
timeout = "3s"
"""


class SmallDisk:
    """A file system of its own where root may mount one; else a folder, that never is full."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="whilst-chaos-"))
        self.folder.chmod(0o711)
        options = f"size={DISK}m,mode=0711"
        mount = ["mount", "-t", "tmpfs", "-o", options, "whilst-chaos", str(self.folder)]
        done = subprocess.run(mount, capture_output=True) if os.geteuid() == 0 else None
        self.small = done is not None and done.returncode == 0

    def fill(self) -> None:
        block = bytes(1 << 20)
        with suppress(OSError), (self.folder / "full").open("wb", buffering=0) as file:
            while self.small and file.write(block) == len(block):
                pass

    def free(self) -> None:
        (self.folder / "full").unlink(missing_ok=True)

    def remove(self) -> None:
        if self.small:
            subprocess.run(["umount", "--lazy", str(self.folder)], check=True)
        shutil.rmtree(self.folder, ignore_errors=True)


class ProxiedBroker(Broker):
    """A broker with a second listener, whose clients come by way of a proxy."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        (self.inner,) = ports.free(1)
        self.proxy = Proxy(self.inner)

    def _format(self, properties: Path) -> None:
        super()._format(properties)
        text = properties.read_text()
        for key, port in (("listeners", self.inner), ("advertised.listeners", self.proxy.port)):
            text = text.replace(f"\n{key}=", f"\n{key}=PROXIED://127.0.0.1:{port},")
        text = text.replace(
            "map=CONTROLLER:PLAINTEXT", "map=PROXIED:PLAINTEXT,CONTROLLER:PLAINTEXT"
        )
        properties.write_text(f"{text}\ninter.broker.listener.name=PLAINTEXT\n")


class World:
    """`with World(plan, folder)`: all services up, nothing read yet."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan = plan
        self.folder = folder
        self.secret = "whsec_" + b64encode(secrets.token_bytes(32)).decode()
        self.topics = [f"facts-{number}" for number in range(TOPICS)]
        self.hooks = folder / "hooks.jsonl"
        self._rng = random.Random(plan.seed)
        self._held: set[str] = set()  # what is down because a fault wants it so
        self._stack = ExitStack()
        self.cluster: SparkCluster | None = None

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def _start(self) -> None:
        stack = self._stack
        self.disk = SmallDisk()
        stack.callback(self.disk.remove)
        self.broker = ProxiedBroker(self.folder / "kafka")
        stack.enter_context(self.broker.proxy)
        stack.enter_context(self.broker)
        for topic in self.topics:
            self.broker.create_topic(topic, PARTITIONS)
        self.master = "local[2]"
        if self.plan.executors:
            self.cluster = stack.enter_context(SparkCluster(self.folder / "cluster"))
            self.master = self.cluster.master
        self.postgres = stack.enter_context(Postgres(self.disk.folder / "store"))
        self.store_proxy = stack.enter_context(Proxy(self.postgres.port))
        (hook,) = ports.free(1)
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("WHILST_")},
            "WHILST_HOME": str(self.disk.folder / "home"),
            "HOOK_SECRET": self.secret,
            "PGPASSWORD": self.postgres.password,
            "PGCONNECT_TIMEOUT": "10",
            "PYTHONPATH": str(ROOT),
        }
        (self.folder / "chaos.rules").write_text(self.plan.text)
        url = f"http://127.0.0.1:{hook}/hook"
        (self.folder / "whilst.toml").write_text(_ALERTS.format(url=url))
        self.receiver = self._child(
            "receiver", "-m", "tests.chaos.hook", str(hook), str(self.hooks)
        )
        self.driver = self._child("driver", "-c", _MAIN, *self._run())
        store = self.postgres.url(self.store_proxy.port, password=False)
        self.deliverer = self._child("deliverer", "-c", _MAIN, "deliver", "--store", store)

    def _child(self, name: str, *arguments: str) -> Child:
        child = Child(name, [sys.executable, *arguments], self.folder, self.environment)
        self._stack.callback(child.end)
        return child

    def _run(self) -> Iterator[str]:
        yield from ("run", "chaos.rules", "--trigger", "300ms")
        for topic in self.topics:
            yield from ("--source", f"kafka://127.0.0.1:{self.broker.proxy.port}/{topic}")
        yield from ("--store", self.postgres.url(self.store_proxy.port, password=False))
        yield from ("--master", self.master)
        settings = {"spark.driver.memory": "768m"}
        if self.plan.executors:
            settings |= {"spark.executor.memory": "768m", "spark.driver.host": "127.0.0.1"}
        for key, value in settings.items():
            yield from ("--spark", f"{key}={value}")

    @property
    def children(self) -> list[Child]:
        return [self.receiver, self.driver, self.deliverer]

    # --- faults ----------------------------------------------------------------------------------

    def supervise(self) -> None:
        """Start again what has ended, unless a fault holds it down."""
        if not self.postgres.running and "store" not in self._held:
            self.postgres.launch()
        for child in self.children:
            if child.name == "deliverer" and self.driver.starts == 0:
                continue
            if child.name not in self._held:
                child.ensure()

    def break_(self, fault: Fault) -> Callable[[], None]:
        """Begin a fault. What is returned ends it."""
        what = fault.kind.split(" ")[0]
        match fault.kind:
            case "driver killed" | "deliverer killed" | "receiver killed":
                self._named(what).kill()
            case "driver restarted" | "deliverer restarted":
                self._named(what).send(signal.SIGTERM)
            case "driver's JVM killed":
                self._kill_one(lambda line: "pyspark-shell" in line)
            case "Python worker killed":
                self._kill_one(lambda line: "pyspark.daemon" in line)
            case "executor killed":
                self._kill_one(lambda line: "CoarseGrainedExecutorBackend" in line)
            case "broker killed":
                self.broker.kill()
                self.broker.start()
            case "broker restarted":
                self.broker.restart()
            case "store killed":
                self.postgres.kill()
            case "store's backend killed":
                self._kill_backend()
            case "store restarted":
                self.postgres.stop()
            case "log cut off":
                self.broker.proxy.cut()
            case "store cut off":
                self.store_proxy.cut()
            case "driver paused" | "deliverer paused" | "receiver paused" | "store paused":
                pid = self.postgres.pid if what == "store" else self._named(what).pid
                return self._paused(what, pid)
            case "broker paused":
                return self._paused(what, self.broker.pid)
            case "receiver fails":
                Path(f"{self.hooks}.fails").touch()
                return Path(f"{self.hooks}.fails").unlink
            case "log refused" | "store refused":
                proxy = self.broker.proxy if what == "log" else self.store_proxy
                proxy.refuse(True)
                return lambda: proxy.refuse(False)
            case "log silent" | "store silent":
                proxy = self.broker.proxy if what == "log" else self.store_proxy
                proxy.silence(True)
                return lambda: proxy.silence(False)
            case "disk full":
                self.disk.fill()
                return self.disk.free
            case _:
                raise AssertionError(fault.kind)
        return lambda: None

    def _named(self, name: str) -> Child:
        return next(child for child in self.children if child.name == name)

    def _paused(self, name: str, pid: int | None) -> Callable[[], None]:
        """SIGSTOP for it and its family; they go on together."""
        stopped = [] if pid is None else [pid, *family(pid)]
        for one in stopped:
            signalled(one, signal.SIGSTOP)
        self._held.add(name)

        def resume() -> None:
            self._held.discard(name)
            for one in stopped:
                signalled(one, signal.SIGCONT)

        return resume

    def _kill_one(self, wanted: Callable[[str], bool]) -> None:
        """One process of the driver or, where there is one, of the cluster."""
        cluster = self.cluster.processes if self.cluster else []
        parents = [self.driver.pid, *(process.pid for process in cluster)]
        there = [p for parent in parents if parent is not None for p in family(parent)]
        if found := [p for p in there if wanted(command_line(p))]:
            signalled(self._rng.choice(found), signal.SIGKILL)

    def _kill_backend(self) -> None:
        """One that serves a client: the server takes all its shared memory for spoilt."""
        backends = [p for p in family(self.postgres.pid) if "127.0.0.1" in command_line(p)]
        if backends:
            signalled(self._rng.choice(backends), signal.SIGKILL)

    def calm(self, seconds: float = 240) -> None:
        """No fault is left; wait until the store answers."""
        import psycopg

        ends = time.monotonic() + seconds
        while True:
            self.supervise()
            try:
                psycopg.connect(self.postgres.url(), connect_timeout=5).close()
                return
            except psycopg.OperationalError:
                if time.monotonic() > ends:
                    raise
                time.sleep(0.1)
