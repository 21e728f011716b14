"""The plan of a round: program, events and faults, all of it from a seed.

The plan says what is sent and broken, and when, counted from the start of the stream. What the log
makes of it (arrivals, order, copies) is the machine's: the log itself says what has to come out.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from resolution.premises import PremiseSet, premise_sets
from resolution.program import Program, load
from resolution.terms import Time, Value, Var
from tests.random_programs import CONSTANTS, NAMES, Case, features, programs

UNIT = 500
"""Milliseconds of a time point: a stream of seconds has time points enough to close things."""
TOPICS = 2
PARTITIONS = 3
KEYS = 12

_WRITTEN = (
    """
    stream Temp(device, level) delay 2.
    delay Temp(k1, _) = 4.
    Flag(X, T) <- Temp(X, high, T).
    Cool(X, T+1) <- Flag(X, T), Flag(X, T+1).
    Shdn(X, T+1) <- Cool(X, T), Flag(X, T+1).
    Malf(X, T-2) <- Shdn(X, T).
    query Malf(X, T).
    """,
    """
    stream Login(user, result) delay 3.
    Brute(U, T2) <- Login(U, fail, T1), Login(U, success, T2), T1 < T2, T2 <= T1+8.
    query Brute(U, T).
    """,
    """
    stream Order(shop, item) delay 2.
    stream Parcel(item) delay 4.
    rigid Near(a, b).
    Near(a, b). Near(b, a). Near(k1, k2).
    Sent(S, I, T) <- Order(S, I, T), Parcel(I, U), T <= U, U <= T+6.
    Close(S, R, T) <- Sent(S, I, T), Near(S, R).
    query Sent(S, I, T).
    query Close(S, R, T).
    """,
    """
    stream p(x) delay 2.
    stream r(x) delay 0.
    q(X, T) <- p(X, T), r(Y, T).
    query q(X, T).
    """,
)


@dataclass(frozen=True, slots=True)
class Send:
    """A record: its body says `TIME` where the time point goes, that many points after the start.

    It is sent when the point `at` begins, by a producer whose clock is wrong by `moved` points.
    """

    at: int
    topic: int
    partition: int
    body: bytes
    time: int = 0
    moved: int = 0

    def value(self, origin: int) -> bytes:
        return self.body.replace(b'"TIME"', str(max(origin + self.time + self.moved, 0)).encode())


@dataclass(frozen=True, slots=True)
class Fault:
    """Begins after so many seconds, and lasts as long (where it is something that lasts)."""

    after: float
    kind: str
    lasts: float

    def __str__(self) -> str:
        return f"{self.kind} at {self.after:.1f} s"


PROMPT = (
    "driver killed", "driver's JVM killed", "driver restarted", "Python worker killed",
    "broker killed", "broker restarted", "store killed", "store's backend killed",
    "store restarted", "deliverer killed", "deliverer restarted", "receiver killed",
    "log cut off", "store cut off",
)  # fmt: skip
LASTING = (
    "driver paused", "broker paused", "store paused", "deliverer paused", "receiver paused",
    "receiver fails", "log refused", "store refused", "log silent", "store silent", "disk full",
)  # fmt: skip
KINDS = PROMPT + LASTING


@dataclass(frozen=True, slots=True)
class Plan:
    seed: int
    text: str
    seconds: float
    sends: tuple[Send, ...]
    faults: tuple[Fault, ...]
    executors: bool
    """Whether Spark has real executors, each a process of its own."""

    @property
    def program(self) -> Program:
        return load(self.text)

    @classmethod
    def of(cls, number: int, seconds: float = 30.0, events: int = 400, faults: int = 5) -> Plan:
        rng = random.Random(f"chaos {number}")
        text = _program(rng, number)
        sends = sorted(
            _sends(rng, load(text), round(seconds * 1000 / UNIT), events), key=lambda s: s.at
        )
        # In turn, so that a few rounds reach every kind; when each comes is left to chance.
        kinds = random.Random("kinds").sample(KINDS, len(KINDS))
        chosen = [kinds[(number * faults + place) % len(kinds)] for place in range(faults)]
        executors = number % 4 == 3
        if executors:
            chosen[0] = "executor killed"
        when = sorted(rng.uniform(2, seconds) for _ in chosen)
        rng.shuffle(chosen)
        found = tuple(
            Fault(round(at, 1), kind, round(rng.uniform(1, 4), 1))
            for at, kind in zip(when, chosen, strict=True)
        )
        return cls(number, text, seconds, tuple(sends), found, executors)


# --- programs ------------------------------------------------------------------------------------


def _program(rng: random.Random, number: int) -> str:
    body = rng.choice(_WRITTEN) if number % 2 else _random_program(rng.randrange(1 << 30))
    lines = [line.strip() for line in body.strip().splitlines()]
    return "\n".join([f"unit {UNIT}ms.", *lines]) + "\n"


def _random_program(number: int) -> str:
    """Of some that are drawn, the one with the most in it that has answers to wait for."""
    drawn: list[str] = []

    @seed(number)
    @settings(
        max_examples=60,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(programs())
    def draw(text: str) -> None:
        drawn.append(text)

    draw()
    worth = [text for text in dict.fromkeys(drawn) if _joins(load(text))]
    return max(worth, key=lambda text: (len(features(Case(text))), text), default=_WRITTEN[0])


def _joins(program: Program) -> bool:
    """Whether something can be pending for a while, and every premise set has bounds in time.

    Where times are not bound to each other, every fact joins every other for ever: one round would
    take hours to compare, by the definition.
    """
    sets = [premises for query in program.queries for premises in premise_sets(program, query)]
    return any(len(p.atoms) > 1 for p in sets) and all(
        len({a.time.base for a in p.atoms if a.time is not None}) == 1
        and all(a.time is not None and a.time.base is not None for a in p.atoms)
        and not any(isinstance(c.left, Time) for c in p.comparisons)
        for p in sets
    )


# --- events --------------------------------------------------------------------------------------


def _sends(rng: random.Random, program: Program, points: int, events: int) -> Iterator[Send]:
    sets = [p for query in program.queries for p in premise_sets(program, query)]
    wrong_clock = range(points // 3, points // 3 + max(points // 6, 2))
    shift = rng.choice((-200, -20, 20, 7200))
    sent = 0
    while sent < events:
        for name, args, time in _instances(rng, rng.choice(sets), points):
            delay = rng.choice((0, 0, 1, 1, 2, 3, 5, 9))
            body = json.dumps(_shaped(rng, program, name, args)).encode()
            # One producer in four has a clock that is moved for a while.
            moved = shift if time in wrong_clock and rng.random() < 0.25 else 0
            yield Send(time + delay, *_place(rng, name), body, time, moved)
            sent += 1
            if rng.random() < 0.08:  # twice, the second perhaps late
                again = time + delay + rng.choice((0, 1, 6))
                yield Send(again, *_place(rng, name), body, time, moved)
                sent += 1
    for _ in range(max(events // 25, 4)):
        yield Send(
            rng.randrange(points), rng.randrange(TOPICS), rng.randrange(PARTITIONS),
            rng.choice(POISON),
        )  # fmt: skip


def _instances(
    rng: random.Random, premises: PremiseSet, points: int
) -> Iterator[tuple[str, list[Value], int]]:
    """Facts for most atoms of a premise set, joined as it joins them."""
    objects: dict[Var, Value] = {}
    times: dict[Var | None, int] = {None: 0}
    first = rng.randrange(2, points)
    for atom in premises.atoms:
        assert atom.time is not None
        args = [
            objects.setdefault(arg, _value(rng)) if isinstance(arg, Var) else arg
            for arg in atom.args
        ]
        base = times.setdefault(atom.time.base, first + rng.choice((0, 0, 1, 2, 4)))
        if rng.random() < 0.8:
            yield atom.predicate, args, max(base + atom.time.offset, 0)


def _value(rng: random.Random) -> Value:
    if rng.random() < 0.3:
        text = rng.choice(CONSTANTS)
        return int(text) if text.isdigit() else text
    return rng.choice((f"k{rng.randrange(KEYS)}", f"k{rng.randrange(KEYS)}", *NAMES))


def _shaped(rng: random.Random, program: Program, name: str, args: list[Value]) -> dict[str, Any]:
    """An event in one of the forms that say the same."""
    fields = [field.name for field in program.streams[name]]
    if rng.random() < 0.5:
        return {"fact": name, "args": args, "time": "TIME"}
    return {"fact": name, **dict(zip(fields, args, strict=True)), "time": "TIME", "note": "é ✓"}


def _place(rng: random.Random, name: str) -> tuple[int, int]:
    """A stream keeps to a topic, mostly; its partitions are any."""
    topic = sum(name.encode()) % TOPICS if rng.random() < 0.8 else rng.randrange(TOPICS)
    return topic, rng.randrange(PARTITIONS)


POISON = (
    b"",
    b" ",
    b"{",
    b"null",
    b"[]",
    b'"text"',
    b"\xff\xfe\x00",
    b"\x00",
    b'{"fact": "Temp"}',
    b'{"fact": "Unknown", "args": [], "time": 1}',
    b'{"fact": 3, "args": [], "time": 1}',
    b'{"fact": "Temp", "args": ["a", null], "time": 1}',
    b'{"fact": "Temp", "args": ["a", {"b": []}], "time": 1}',
    b'{"fact": "Temp", "args": ["a", "high"], "time": -1}',
    b'{"fact": "Temp", "args": ["a", "high"], "time": 1e400}',
    b'{"fact": "Temp", "args": ["a", "high"], "time": "yesterday"}',
    b'{"fact": "Temp", "args": ["a", "high"], "time": 99999999999999999999}',
    b'{"fact": "Temp", "args": ["a", "high"], "time": "TIME", "time": "TIME"}',
    b'{"fact": "Temp", "args": ["a\\u0000b", "high"], "time": "TIME"}',
    b'{"fact": "p", "args": ["\\ud800"], "time": "TIME"}',
    b"[" * 5000,
    b'{"fact": "p", "args": ["' + b"x" * 100_000 + b'"], "time": "TIME"}',
)
