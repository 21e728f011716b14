"""What the cost depends on: one thing grows, all else stays, and an exponent is fitted."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from monitor.bench.peers_logs import Event, delayed, write_log
from monitor.bench.peers_run import PEERS, running
from monitor.bench.peers_score import exponent

Made = tuple[str, int, list[Event], int]
"""A program, its δ, events without arrivals, and the number of cores."""

FACTS = 300_000
"""Facts of a point of a curve at scale 1."""
LIMIT = 300.0


@dataclass(frozen=True)
class Curve:
    name: str
    values: tuple[int, ...]
    make: Callable[[int, int], Made]
    """From a value and the number of facts."""
    ways: tuple[str, ...] = ("kernel", "pipeline")
    sized: bool = False
    """The values are numbers of facts: they grow with the scale."""


def _window(window: int, facts: int) -> Made:
    chance = random.Random(4)
    program = (
        "stream Login(user, result) delay 5.\nBrute(U, T2) <- Login(U, fail, T1), "
        f"Login(U, success, T2), T1 < T2, T2 <= T1+{window}.\nquery Brute(U, T)."
    )
    events = [
        _event("Login", [f"u{n // 60}", chance.choice(("fail", "fail", "fail", "success"))], time)
        for n in range(facts)
        for time in [chance.randrange(4_000)]
    ]
    return program, 5, events, 2


def _turbines(delay: int) -> str:
    return (
        f"stream Temp(device, level) delay {delay}.\n"
        "Malf(X, T) <- Temp(X, high, T), Temp(X, high, T+1), Temp(X, high, T+2).\n"
        "query Malf(X, T)."
    )


def _readings(facts: int, keys: int) -> list[Event]:
    chance = random.Random(5)
    return [
        _event("Temp", [f"wt{n % keys}", "high" if chance.random() < 0.35 else "low"], n // keys)
        for n in range(facts)
    ]


def _keys(keys: int, facts: int) -> Made:
    return _turbines(4), 4, _readings(facts, keys), 2


def _delay(delay: int, facts: int) -> Made:
    return _turbines(delay), delay, _readings(facts, 300), 2


def _pending(pending: int, facts: int) -> Made:
    program = (
        "stream Ordered(order) delay 1000000.\nstream Paid(order) delay 1000000.\n"
        "Done(X, T) <- Ordered(X, T), Paid(X, T).\nquery Done(X, T)."
    )
    return program, 0, [_event("Ordered", [f"o{n}"], n // 1000) for n in range(pending)], 2


def _rules(rules: int, facts: int) -> Made:
    heads = "\n".join(
        f"Again{i}(X, T) <- Temp(X, high, T), Temp(X, high, T+{i})." for i in range(1, rules + 1)
    )
    queries = "\n".join(f"query Again{i}(X, T)." for i in range(1, rules + 1))
    program = f"stream Temp(device, level) delay 4.\n{heads}\n{queries}"
    return program, 4, _readings(facts // 2, 300), 2


def _cores(cores: int, facts: int) -> Made:
    program, delay, events, _ = _keys(300, facts)
    return program, delay, events, cores


def _event(fact: str, args: list[str], time: int) -> Event:
    return {"fact": fact, "args": args, "time": time}


CURVES = (
    Curve("window", (15, 60, 240, 960), _window),
    Curve("keys", (10, 100, 1_000, 10_000), _keys),
    Curve("pending answers", (50_000, 200_000, 800_000), _pending, sized=True),
    Curve("rules", (1, 2, 4, 8), _rules),
    Curve("delay bound", (1, 4, 16, 64), _delay),
    Curve("cores", (1, 2), _cores, ("pipeline",)),
)


def curves(scale: float, scratch: Path, ways: tuple[str, ...] = ()) -> Iterator[dict[str, Any]]:
    """Seconds at each value and the exponent, of the kernel alone and of the whole way."""
    facts = max(2_000, round(FACTS * scale))
    logs = {}
    for curve in CURVES:
        for value in curve.values:
            value = max(100, round(value * scale)) if curve.sized else value
            program, delay, events, cores = curve.make(value, facts)
            order = "within δ" if delay else "in order"
            folder = scratch / f"{curve.name.replace(' ', '-')}-{value}"
            log = write_log(delayed(events, delay, order), folder, 1)
            logs[curve.name, value] = {
                "task": curve.name,
                "window": 0,
                "delay": max(delay, 1_000_000 if curve.name == "pending answers" else 0),
                "program": program,
                "events": str(log.folder),
                "log": str(log.whole),
                "scratch": str(scratch),
                "paced": False,
                "cores": cores,
                "batch": 1,
            }
    for peer in PEERS:
        mine = [c for c in CURVES if peer.name in c.ways and (not ways or peer.name in ways)]
        if not mine:
            continue
        with running(peer, scratch) as one:
            for curve in mine:
                jobs = {value: job for (name, value), job in logs.items() if name == curve.name}
                one.do(next(iter(jobs.values())), LIMIT)  # compiled, and Spark's classes loaded
                costs = {}
                for value, job in jobs.items():
                    tries = [one.do(job, LIMIT)["seconds"] for _ in range(2)]
                    costs[value] = min(tries)
                    yield _figure(curve, peer.name, f"seconds at {value:,}", round(min(tries), 3))
                slope = exponent(costs.keys(), costs.values())
                yield _figure(curve, peer.name, "exponent", slope)


def _figure(curve: Curve, peer: str, figure: str, value: float) -> dict[str, Any]:
    return {
        "bench": "peers",
        "task": f"cost by {curve.name}",
        "peer": peer,
        "figure": figure,
        "value": value,
    }
