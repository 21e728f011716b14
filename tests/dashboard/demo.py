"""A store with something on every page: turbines that go by the wall clock, and a small replay."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator

from storage.store import Store
from tests.dashboard.loader import Loader

TURBINES = """\
% When is a wind turbine about to fail?
unit 1s.

% A reading is in time if it arrives at most 40 seconds after it was taken; wt7 has a poor line.
stream Temp(device, level) delay 40.
delay Temp(wt7, _) = 90.
stream Brake(device) delay 10.

Flag(X, T) <- Temp(X, high, T).            % too hot
Cool(X, T+10) <- Flag(X, T), Flag(X, T+10).  % twice in a row: cool it
Shdn(X, T+10) <- Cool(X, T), Flag(X, T+10).  % still hot: shut it down
Malf(X, T-20) <- Shdn(X, T).               % it began to fail twenty seconds before
Halt(X, T2) <- Brake(X, T1), Temp(X, low, T2), T1 < T2, T2 <= T1 + 2m.

query Malf(X, T).
query Halt(X, T).
"""


def temp(device: str, level: str, at: int, arrival: int) -> str:
    event = {"fact": "Temp", "args": [device, level], "time": at, "arrival": arrival}
    return json.dumps(event, ensure_ascii=False)


def brake(device: str, at: int, arrival: int) -> str:
    return json.dumps({"fact": "Brake", "args": [device], "time": at, "arrival": arrival})


def readings(now: int, seed: int = 7) -> Iterator[str]:
    """Readings every ten seconds for ten minutes to now, some late, some of them nonsense."""
    chance = random.Random(seed)
    start = now - now % 10 - 300
    for number in range(1, 10):
        device = f"wt{number}"
        hot = 0
        for at in range(start, now, 10):
            hot = hot - 1 if hot else chance.choice((0, 0, 0, 0, 0, 2, 3, 4))
            arrival = at + chance.choice((0, 1, 1, 2, 2, 3, 5, 12, 25))
            if chance.random() < 0.02:
                arrival = at + 60
            if arrival <= now:
                yield temp(device, "high" if hot else "low", at, arrival)
        if number % 3 == 0:
            yield brake(device, now - 8 * number, now - 8 * number + 1)
    yield temp("wt2", "high", now - now % 10, now)
    yield '{"fact": "Wind", "args": ["wt1"], "time": 0}'
    yield '{"fact": "Temp", "args": ["wt1"], "time": 0}'
    yield "no JSON at all"


def fill(store: Store) -> Loader:
    now = int(time.time())
    run = Loader(store, "turbines", TURBINES)
    lines = sorted(
        readings(now), key=lambda line: json.loads(line).get("arrival", 0) if line[0] == "{" else 0
    )
    third = len(lines) // 3
    for part in (lines[:third], lines[third : 2 * third], lines[2 * third :]):
        run.read(part, lag_ms=430.0, behind=0, state_rows=27, state_bytes=40_000)
    run.complete(now - 1)
    return run


def go_on(run: Loader, now: int) -> None:
    """One more second: its readings, if there are any, and then it is complete."""
    chance = random.Random(now)
    lines = [
        temp(f"wt{number}", chance.choice(("high", "high", "low")), now - now % 10, now)
        for number in range(1, 10)
        if now % 10 == number and chance.random() < 0.8
    ]
    if now % 60 == 30:
        lines.append(brake("wt6", now, now))
    run.forget(now - 300)
    run.read(lines, now, lag_ms=600 * chance.random() + 200, behind=0, state_rows=27)
