"""The tasks that all peers are given, and their logs: one generator writes them, all read the same.

A log is a folder of JSON Lines in the order of arrival, and beside it the same events in one file.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from monitor.setup.places import ROOT

Event = dict[str, Any]
"""`fact`, `args` and `time`, and once it has been delayed its `arrival`."""

S1 = ROOT / "tests" / "golden" / "short-stops"
FIRST = 100
"""The first time point of what is made here: no system is given the trouble of time point 0."""
ORDERS = ("in order", "within δ", "1 % beyond δ")


@dataclass(frozen=True)
class Task:
    name: str
    program: str
    delay: int
    make: Callable[[int], list[Event]]
    """About so many events, without arrivals; 0 is the size at which answers are compared."""
    window: int = 0


def _short_stops(size: int) -> list[Event]:
    """S1 itself, or as many copies of it as it takes, each with vehicles of its own."""
    with gzip.open(S1 / "facts.jsonl.gz", "rt") as file:
        events = [{**json.loads(line)} for line in file]
    copies = max(1, round(size / len(events)))
    return [
        {"fact": e["fact"], "args": [f"{e['args'][0]}{_copy(n)}"], "time": e["time"]}
        for n in range(copies)
        for e in events
    ]


def _copy(number: int) -> str:
    return f"x{number}" if number else ""


def _readings(size: int) -> list[Event]:
    """Turbines that report a level at each of 200 points, high in a third of them."""
    chance = random.Random(2)
    return [
        {"fact": "Temp", "args": [f"wt{device}", level], "time": time}
        for device in range(max(1, (size or 8_000) // 200))
        for time in range(FIRST, FIRST + 200)
        for level in ["high" if chance.random() < 0.35 else "normal"]
    ]


def _logins(size: int) -> list[Event]:
    """Users who try 30 times within 400 points, three of four times in vain, once a point."""
    chance = random.Random(3)
    return [
        {
            "fact": "Login",
            "args": [f"u{user}", "success" if chance.random() < 0.25 else "fail"],
            "time": time,
        }
        for user in range(max(1, (size or 3_000) // 30))
        for time in sorted(chance.sample(range(FIRST, FIRST + 400), 30))
    ]


def _program(text: str) -> str:
    return re.sub(r"(?m)^ +", "", text).strip() + "\n"


WINDOW = 60
TASKS = (
    Task("shortstop", (S1 / "program.rules").read_text() if S1.is_dir() else "", 3, _short_stops),
    Task(
        "turbines",
        _program(
            """
            stream Temp(device, level) delay 4.
            Flag(X, T) <- Temp(X, high, T).
            Cool(X, T+1) <- Flag(X, T), Flag(X, T+1).
            Shdn(X, T+1) <- Cool(X, T), Flag(X, T+1).
            Malf(X, T-2) <- Shdn(X, T).
            query Malf(X, T).
            """
        ),
        4,
        _readings,
    ),
    Task(
        "login",
        _program(
            f"""
            stream Login(user, result) delay 5.
            Brute(U, T2) <- Login(U, fail, T1), Login(U, success, T2), T1 < T2, T2 <= T1+{WINDOW}.
            query Brute(U, T).
            """
        ),
        5,
        _logins,
        WINDOW,
    ),
)


def delayed(events: list[Event], delay: int, order: str, seed: int = 1) -> list[Event]:
    """The events with arrivals, in the order of arrival; within a time point in any order."""
    chance = random.Random(seed)
    arrived = []
    for event in events:
        late = 0 if order == "in order" else chance.randint(0, delay)
        if order == "1 % beyond δ" and chance.random() < 0.01:
            late = delay + chance.randint(1, 2 * delay + 10)
        arrived.append({**event, "arrival": event["time"] + late})
    chance.shuffle(arrived)
    return sorted(arrived, key=lambda event: event["arrival"])


@dataclass(frozen=True)
class Log:
    folder: Path
    """`0000.jsonl`, `0001.jsonl`, …"""
    whole: Path
    events: int
    files: int


def write_log(events: list[Event], folder: Path, files: int | None) -> Log:
    """A log of so many files of one size, or of a file for each time point of arrival."""
    folder.mkdir(parents=True)
    parts = _by_arrival(events) if files is None else _equal(events, files)
    count = 0
    whole = folder.with_suffix(".jsonl")
    with whole.open("w") as all_of_it:
        for part in parts:
            path = folder / f"{count:04}.jsonl"
            text = "".join(json.dumps(event) + "\n" for event in part)
            path.write_text(text)
            all_of_it.write(text)
            # Spark reads the files by age, and those of one second in any order.
            os.utime(path, (1_700_000_000 + count, 1_700_000_000 + count))
            count += 1
    return Log(folder, whole, len(events), count)


def _by_arrival(events: list[Event]) -> Iterator[Iterable[Event]]:
    return (part for _, part in groupby(events, key=lambda event: event["arrival"]))


def _equal(events: list[Event], files: int) -> Iterator[Iterable[Event]]:
    size = -(-len(events) // files)
    return (events[first : first + size] for first in range(0, len(events), size))
