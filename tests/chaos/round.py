"""One round: start everything, send and break by plan, wait until all is read, compare."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import psycopg
from kafka import KafkaProducer

from tests.chaos.check import Found, checked, log_of, look_at_processes, rows
from tests.chaos.plan import UNIT, Fault, Plan
from tests.chaos.world import World

PATIENCE = 600.0
"""Seconds in which a round must come to rest after its last fault, on a loaded machine."""


@dataclass
class Outcome:
    plan: Plan
    found: Found
    seconds: float = 0.0
    starts: int = 0
    codes: list[int] = field(default_factory=list)
    recovered: dict[str, float] = field(default_factory=dict)
    """Fault -> seconds from its end until everything logged by then was read and closed."""

    @property
    def fine(self) -> bool:
        return not self.found.wrong


def play(plan: Plan, folder: Path, say: Callable[[str], None] = lambda _: None) -> Outcome:
    began = time.monotonic()
    outcome = Outcome(plan, Found())
    with World(plan, folder) as world:
        try:
            _play(world, outcome, say)
        except _Stuck as stuck:
            outcome.found.wrong.append(f"{stuck}; {_last_words(world)}")
    outcome.seconds = time.monotonic() - began
    outcome.starts = world.driver.starts
    outcome.codes = world.driver.codes
    return outcome


class _Stuck(Exception):
    """What was waited for did not come about."""


def _play(world: World, outcome: Outcome, say: Callable[[str], None]) -> None:
    plan = world.plan
    world.supervise()
    _warm(world)
    producer = _Producer(world)
    producer.start()
    watch = _Watch(world)
    watch.start()
    began = time.monotonic()
    todo = list(plan.faults)
    if not world.disk.small and any(fault.kind == "disk full" for fault in todo):
        say("  no small file system can be mounted here: `disk full` does nothing")
    going: list[tuple[float, Fault, Callable[[], None]]] = []
    while todo or going or producer.is_alive():
        now = time.monotonic() - began
        while todo and todo[0].after <= now:
            fault = todo.pop(0)
            say(f"  {now:5.1f} s  {fault.kind}")
            going.append((now + fault.lasts, fault, world.break_(fault)))
            look_at_processes(world, outcome.found)
        for entry in [e for e in going if e[0] <= now]:
            entry[2]()
            watch.over(entry[1])
            going.remove(entry)
        world.supervise()
        time.sleep(0.05)
    world.calm()
    log = log_of(world)
    lost = [p for p in producer.acknowledged if p not in {r.place for r in log}]
    if lost:
        outcome.found.wrong.append(f"the log lost {len(lost)} records that it had taken")
    say(f"  {time.monotonic() - began:5.1f} s  {len(log)} records in the log; waiting for the end")
    last = max(record.arrival for record in log)
    furthest = last + 12  # most deadlines of what arrived are before this
    _until(world, lambda: (_complete(world) or 0) >= furthest, "all is read and closed")
    _until(world, lambda: _undelivered(world) == 0, "all alerts are delivered")
    watch.stop()
    outcome.recovered = watch.recovered
    code = world.driver.end()
    if code != 0:
        outcome.found.wrong.append(f"the run ended with {code} when it was told to end")
    checked(world, log, outcome.found)


def _until(world: World, condition: Callable[[], object], what: str) -> None:
    ends = time.monotonic() + PATIENCE
    while time.monotonic() < ends:
        world.supervise()
        with suppress(psycopg.Error):
            if condition():
                return
        time.sleep(0.1)
    raise _Stuck(f"not in {PATIENCE:.0f} s: {what}")


def _warm(world: World) -> None:
    """Faults are to meet a run at work, not one that loads its classes."""
    producer = world.broker.producer()
    producer.send(world.topics[0], b"to begin with, something that is no fact").get(60)
    producer.close()
    _until(world, lambda: rows(world.postgres.url(), "select 1 from batches"), "a first batch")


def _complete(world: World) -> int | None:
    found = rows(world.postgres.url(), "select max(complete_tau) as tau from runs")
    tau: int | None = found[0]["tau"]
    return tau


def _undelivered(world: World) -> int:
    found = rows(world.postgres.url(), "select count(*) as n from outbox where status = 'waiting'")
    return int(found[0]["n"])


def _last_words(world: World) -> str:
    lines = world.driver.text().strip().splitlines()
    return f"the driver's last words: {' | '.join(lines[-3:])[-600:]}"


class _Producer(threading.Thread):
    """Sends by plan; what the log took is in `acknowledged`."""

    def __init__(self, world: World) -> None:
        super().__init__(name="producer", daemon=True)
        self._world = world
        self.acknowledged: list[tuple[str, str]] = []

    def run(self) -> None:
        world = self._world
        producer = KafkaProducer(
            bootstrap_servers=world.broker.bootstrap,
            acks="all",
            retries=1000,
            request_timeout_ms=5000,
            delivery_timeout_ms=120_000,
            max_block_ms=120_000,
        )
        origin = int(time.time() * 1000) // UNIT + 1
        futures = []
        for send in world.plan.sends:
            ahead = (origin + send.at) * UNIT / 1000 - time.time()
            if ahead > 0:
                time.sleep(ahead)
            stamp = int(time.time() * 1000) + send.moved * UNIT
            futures.append(
                producer.send(
                    world.topics[send.topic],
                    send.value(origin),
                    partition=send.partition,
                    timestamp_ms=stamp,
                )
            )
        for future in futures:
            with suppress(Exception):  # not taken, or not known to be: the log says
                got = future.get(150)
                self.acknowledged.append((got.topic, f"{got.partition}/{got.offset}"))
        producer.close()


class _Watch(threading.Thread):
    """How long after each fault the run had caught up."""

    def __init__(self, world: World) -> None:
        super().__init__(name="watch", daemon=True)
        self._world = world
        self._waiting: list[tuple[Fault, float]] = []
        self._ended = threading.Event()
        self.recovered: dict[str, float] = {}

    def over(self, fault: Fault) -> None:
        self._waiting.append((fault, time.time()))

    def stop(self) -> None:
        self._ended.set()
        self.join()

    def run(self) -> None:
        while not self._ended.wait(0.2):
            self._look()
        self._look()  # all may have come in one batch, the last

    def _look(self) -> None:
        with suppress(psycopg.Error):
            tau = _complete(self._world) or 0
            for entry in list(self._waiting):
                if (tau + 1) * UNIT / 1000 >= entry[1]:
                    self._waiting.remove(entry)
                    self.recovered[entry[0].kind] = time.time() - entry[1]


def terminate_quietly() -> None:
    """SIGTERM ends a campaign as Ctrl-C does: through its own clean-up."""

    def end(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)
