"""Whilst beside what people use instead: the same logs, the answers compared, then the speed.

For each task, the answers of every peer are compared with the definition on three small logs: in
order, out of order within δ, and with one event in a hundred beyond δ. Speed is taken on a larger
log, out of order within δ, several times; what a peer needs to start, measured on a thousand
events, is taken off everyone alike.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from monitor.bench.peers_curves import curves
from monitor.bench.peers_logs import ORDERS, TASKS, Log, Task, delayed, write_log
from monitor.bench.peers_run import PEERS, SCRIPTS, Peer, PeerFailed, Running, running
from monitor.bench.peers_score import Truth, confirmed, score, truth

Figure = dict[str, Any]

SIZE = 1_000_000
"""Events of a log for speed at scale 1."""
TINY = 1_000
REPEATS = 3
LIMIT = 400.0
"""Seconds that a job may take."""
_BATCHES = 3
"""Files of a log for speed: a system with micro-batches reads them one by one."""
_PACED_BATCHES = 4
"""Batches of a log for answers, for a system that has batches."""


def figures(scale: float = 1.0) -> Iterator[Figure]:
    """One figure after another, as `whilst bench` prints them."""
    yield from compared(scale, PEERS)
    with tempfile.TemporaryDirectory() as folder:
        yield from curves(scale, Path(folder))


def compared(scale: float, peers: tuple[Peer, ...]) -> Iterator[Figure]:
    if not SCRIPTS.is_dir():
        raise RuntimeError("the peers are in the folder benchmarks of a clone: run it from there")
    for task in TASKS:
        with tempfile.TemporaryDirectory() as folder:
            logs = _Logs.of(task, Path(folder), max(2 * TINY, round(SIZE * scale)))
            rates: dict[str, float] = {}
            for peer in peers:
                yield from _peer(peer, task, logs, Path(folder), rates)
            yield from _ratios(task, rates)


@dataclass(frozen=True)
class _Logs:
    paced: dict[str, tuple[Log, Truth]]
    fast: dict[int | None, tuple[Log, int]]
    """By the most events that a peer takes: a log for speed, and the number of its answers."""
    tiny: Log

    @classmethod
    def of(cls, task: Task, folder: Path, size: int) -> _Logs:
        paced = {}
        for order in ORDERS:
            events = delayed(task.make(0), task.delay, order)
            log = write_log(events, folder / f"paced-{ORDERS.index(order)}", None)
            paced[order] = (log, truth(task.program, events, task.delay))
        fast = {}
        for most in {peer.most for peer in PEERS}:
            events = delayed(task.make(min(size, most or size)), task.delay, "within δ")
            events = events[: most or None]
            log = write_log(events, folder / f"fast-{most}", _BATCHES)
            fast[most] = (log, confirmed(task.program, events))
        events = delayed(task.make(0), task.delay, "within δ")[:TINY]
        return cls(paced, fast, write_log(events, folder / "tiny", 1))


def job(task: Task, log: Log, scratch: Path, *, paced: bool, cores: int = 2) -> dict[str, Any]:
    return {
        "task": task.name,
        "window": task.window,
        "delay": task.delay,
        "program": task.program,
        "events": str(log.folder),
        "log": str(log.whole),
        "scratch": str(scratch),
        "paced": paced,
        "cores": cores,
        "batch": -(-log.files // _PACED_BATCHES) if paced else 1,
    }


def _peer(
    peer: Peer, task: Task, logs: _Logs, scratch: Path, rates: dict[str, float]
) -> Iterator[Figure]:
    """The figures of one peer in one task. Its answers first, which also warms it."""

    def figure(name: str, value: object, order: str | None = None) -> Figure:
        made = {"bench": "peers", "task": task.name, "peer": peer.name}
        return made | ({"order": order} if order else {}) | {"figure": name, "value": value}

    reason = dict(peer.cannot).get(task.name)
    if reason is not None:
        yield figure("cannot", reason)
        return
    try:
        with running(peer, scratch) as one:
            for order, (log, true) in logs.paced.items():
                done = one.do(job(task, log, scratch, paced=True), LIMIT)
                scored = score(true, done["answers"])
                yield figure("found", scored.found, order)
                yield figure("missed", scored.missed, order)
                yield figure("wrong", scored.wrong, order)
                yield figure("latency", scored.latency, order)
                yield figure("latency most", scored.latest, order)
                yield figure("lost", done.get("lost"), order)
                if "late" in done:
                    yield figure("late", done["late"], order)
                if "late" in done and scored.exact and true.lead:
                    yield figure("lead", statistics.median(true.lead), order)
                    yield figure("lead most", max(true.lead), order)
            for name, value in _speed(one, task, logs, peer, scratch):
                if name == "events/s":
                    rates[peer.name] = value
                yield figure(name, value)
    except PeerFailed as failed:
        yield figure("cannot", str(failed))


def _speed(
    one: Running, task: Task, logs: _Logs, peer: Peer, scratch: Path
) -> Iterator[tuple[str, float]]:
    log, answers = logs.fast[peer.most]
    start = one.do(job(task, logs.tiny, scratch, paced=False), LIMIT)["seconds"]
    done = [one.do(job(task, log, scratch, paced=False), LIMIT) for _ in range(REPEATS)]
    seconds = [result["seconds"] for result in done]
    each = rates_of(log.events, seconds, start)
    yield "start s", round(start, 2)
    yield "events", log.events
    yield "events/s", round(statistics.median(each))
    if start_weighs(seconds, start):
        yield "events/s is at least", 1
    yield "events/s least", round(each[0])
    yield "events/s most", round(each[-1])
    yield "peak MB", max(result["peak MB"] for result in done)
    if "changes" in done[-1]:
        yield "changes an event", round(done[-1]["changes"] / log.events, 2)
        yield "kernel s", round(done[-1]["kernel s"], 2)
        yield "seconds", round(done[-1]["seconds"], 2)
    yield "answers", done[-1]["count"]
    yield "answers there are", answers


def rates_of(events: int, seconds: list[float], start: float) -> list[float]:
    """Events a second of each run, rising, without the start; where that is all, with it."""
    if start_weighs(seconds, start):
        return sorted(events / each for each in seconds)
    return sorted((events - TINY) / (each - start) for each in seconds)


def start_weighs(seconds: list[float], start: float) -> bool:
    """Whether a log was too short for a peer: what its events took is lost in its start."""
    return min(seconds) < 1.3 * start


def _ratios(task: Task, rates: dict[str, float]) -> Iterator[Figure]:
    for ours in ("pipeline", "kernel"):
        for other, value in rates.items():
            if ours in rates and other not in ("pipeline", "kernel"):
                ratio = round(rates[ours] / value, 2)
                made = {"bench": "peers", "task": task.name, "peer": ours}
                yield made | {"figure": f"vs {other}", "value": ratio}
