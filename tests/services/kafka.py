"""A real Kafka broker: one KRaft node from the fetched jars, in a folder of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
import uuid
from pathlib import Path
from typing import Self

from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import KafkaError

from monitor.setup import jars, java
from tests.services import ports
from tests.services.service import Service

START_SECONDS = 90  # it takes three; a loaded machine may take longer

_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
# A killed broker is forgotten quickly, so its next start need not wait.
broker.session.timeout.ms=1500
broker.heartbeat.interval.ms=300
"""


class Broker(Service):
    """Started by `start` or `with`; its data survives `kill` and `stop` until the folder goes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "broker.log"
        self.port, self._controller = ports.free(2)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        return self._running().pid

    def start(self) -> Self:
        properties = self.folder / "server.properties"
        if not properties.exists():
            self._format(properties)
        with self.log.open("ab") as log:
            # A group of its own: Ctrl-C in the terminal ends the tests, and they end the broker.
            self._process = subprocess.Popen(
                self._command("kafka.Kafka", str(properties)),
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._await_answer()
        return self

    def stop(self) -> None:
        """End it in good order. Nothing happens where it has ended already."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._reap()

    def kill(self) -> None:
        """kill -9: no farewell, no flush."""
        self._running().kill()
        self._reap()

    def pause(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def restart(self) -> Self:
        self.stop()
        return self.start()

    def create_topic(
        self, name: str, partitions: int = 1, *, log_append_time: bool = True, **config: str
    ) -> str:
        """With `log_append_time` the broker's clock stamps each record, as `whilst run` wants."""
        kind = "LogAppendTime" if log_append_time else "CreateTime"
        topic = NewTopic(
            name, partitions, 1, topic_configs={"message.timestamp.type": kind} | config
        )
        admin = KafkaAdminClient(bootstrap_servers=self.bootstrap)
        try:
            admin.create_topics([topic])
        finally:
            admin.close()
        return name

    def fresh_topic(self, partitions: int = 1, *, log_append_time: bool = True) -> str:
        """A topic that no other test knows."""
        name = f"facts-{uuid.uuid4().hex[:12]}"
        return self.create_topic(name, partitions, log_append_time=log_append_time)

    def producer(self) -> KafkaProducer:
        return KafkaProducer(bootstrap_servers=self.bootstrap, acks="all")

    def consumer(self, topic: str) -> KafkaConsumer:
        return KafkaConsumer(
            topic, bootstrap_servers=self.bootstrap, auto_offset_reset="earliest", group_id=None
        )

    def _format(self, properties: Path) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        text = _PROPERTIES.format(
            port=self.port, controller=self._controller, data=self.folder / "data"
        )
        properties.write_text(text)
        arguments = ("format", "--standalone", "-t", str(uuid.uuid4()), "-c", str(properties))
        done = subprocess.run(
            self._command("kafka.tools.StorageTool", *arguments), capture_output=True, text=True
        )
        if done.returncode != 0:
            properties.unlink()
            raise RuntimeError(f"Kafka could not format its storage: {done.stdout}{done.stderr}")

    def _command(self, main: str, *arguments: str) -> list[str]:
        logging = Path(__file__).with_name("log4j2-kafka.properties")
        # fmt: off
        return [
            str(java.require().command), "-Xmx256m", "-XX:TieredStopAtLevel=1",
            f"-Dlog4j2.configurationFile={logging.as_uri()}",
            "-cp", os.pathsep.join(map(str, jars.kafka_jars())), main, *arguments,
        ]
        # fmt: on

    def _await_answer(self) -> None:
        """Ready is when it answers a client, not when its port is open."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self._running().poll() is not None:
                code = self._running().returncode
                self._process = None
                raise RuntimeError(f"Kafka ended at its start ({code}):\n{self.log_tail()}")
            if self._answers():
                return
            time.sleep(0.05)
        self.stop()
        raise RuntimeError(f"Kafka did not answer in {START_SECONDS} s:\n{self.log_tail()}")

    def _answers(self) -> bool:
        try:  # a client that finds the port closed backs off for seconds, a socket does not
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            admin = KafkaAdminClient(bootstrap_servers=self.bootstrap, request_timeout_ms=5000)
        except (OSError, KafkaError):
            return False
        try:
            return bool(admin.describe_cluster()["brokers"])
        except KafkaError:
            return False
        finally:
            admin.close()

    def log_tail(self, lines: int = 30) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "the broker is not started"
        return self._process

    def _reap(self) -> None:
        self._running().wait()
        self._process = None
