"""Lines into a topic, a file or a folder: as fast as it goes, at a rate, or when each arrives."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from monitor.sources import SourceError, Topic
from monitor.topics import client_options


class Outlet(Protocol):
    """Somewhere to put events."""

    def put(self, line: bytes) -> None: ...

    def flush(self) -> None: ...


class _Stdout:
    def put(self, line: bytes) -> None:
        sys.stdout.buffer.write(line + b"\n")

    def flush(self) -> None:
        sys.stdout.buffer.flush()


class _File:
    def __init__(self, path: Path) -> None:
        self._file = path.open("ab")

    def put(self, line: bytes) -> None:
        self._file.write(line + b"\n")

    def flush(self) -> None:
        self._file.flush()


class _Folder:
    """A file for what was put since the last flush: it appears whole, as a reader wants it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines: list[bytes] = []
        self._number = 0

    def put(self, line: bytes) -> None:
        self._lines.append(line)

    def flush(self) -> None:
        if not self._lines:
            return
        name = f"{time.time_ns()}-{self._number}.jsonl"
        hidden = self._path / f".{name}"
        hidden.write_bytes(b"\n".join(self._lines) + b"\n")
        hidden.rename(self._path / name)
        self._lines.clear()
        self._number += 1


class _Kafka:
    def __init__(self, topic: Topic) -> None:
        from kafka import KafkaProducer
        from kafka.errors import KafkaError, KafkaTimeoutError

        try:
            self._producer = KafkaProducer(
                bootstrap_servers=topic.servers,
                acks="all",
                linger_ms=20,
                batch_size=256 * 1024,
                max_request_size=16 * 1024 * 1024,
                **client_options(topic.options),
            )
        except (KafkaError, OSError) as error:
            raise SourceError(
                f"{topic}: no broker answers at {topic.servers} ({error}): "
                "start it, or check the address"
            ) from None
        self._topic = topic
        self._failed: BaseException | None = None
        try:
            self._producer.partitions_for(topic.name)
        except KafkaTimeoutError:
            self.close()
            raise SourceError(
                f"{topic}: there is no such topic: make it, or check the name"
            ) from None

    def put(self, line: bytes) -> None:
        from kafka.errors import KafkaError

        try:
            self._producer.send(self._topic.name, line).add_errback(self._fail)
        except KafkaError as error:
            self._fail(error)
        self._raise()

    def flush(self) -> None:
        self._producer.flush()
        self._raise()

    def close(self) -> None:
        self._producer.close()

    def _fail(self, error: BaseException) -> None:
        self._failed = self._failed or error

    def _raise(self) -> None:
        if self._failed is not None:
            raise SourceError(f"{self._topic}: the broker did not take a record ({self._failed})")


@contextmanager
def outlet(target: Topic | Path | None) -> Iterator[Outlet]:
    """A topic, a folder, a file to append to, or standard output."""
    if isinstance(target, Topic):
        kafka = _Kafka(target)
        try:
            yield kafka
            kafka.flush()
        finally:
            kafka.close()
        return
    if target is None:
        made: Outlet = _Stdout()
        yield made
        made.flush()
        return
    try:
        made = _Folder(target) if target.is_dir() else _File(target)
        yield made
        made.flush()
    except OSError as error:
        raise SourceError(f"{target}: cannot be written: {error.strerror or error}") from None


def at_rate(lines: Iterable[bytes], into: Outlet, rate: float | None) -> int:
    """Put lines, at most so many a second. How many there were."""
    began = time.monotonic()
    sent = 0
    for line in lines:
        if rate is not None and (ahead := began + sent / rate - time.monotonic()) > 0:
            into.flush()
            time.sleep(ahead)
        into.put(line)
        sent += 1
    into.flush()
    return sent


def when_due(lines: Iterable[tuple[int, bytes]], into: Outlet, unit: float) -> int:
    """Put lines as their arrivals (in time points of so many seconds) pass by from now on."""
    sent = 0
    origin: float | None = None
    for arrival, line in lines:
        if origin is None:
            origin = time.time() - arrival * unit
        if (ahead := origin + arrival * unit - time.time()) > 0:
            into.flush()
            time.sleep(ahead)
        into.put(line)
        sent += 1
    into.flush()
    return sent
