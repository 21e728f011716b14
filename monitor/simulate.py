"""Endless facts that fit a program: plausible values, and delays that mostly keep their bounds.

The same seed gives the same facts. Values come from what the program itself speaks of: constants
of its rules, numbers on both sides of its comparisons, and a few made-up names for the rest.
"""

from __future__ import annotations

import heapq
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from resolution.premises import premise_sets
from resolution.program import Program
from resolution.terms import Time, Value, Var

_CONSTANT = 0.7  # of values are constants of the rules, where there are any
_PROMPT = 0.7  # of facts arrive in their own time point


@dataclass(frozen=True, slots=True)
class Weather:
    """How much, how varied and how orderly."""

    rate: float = 10.0
    """Facts a time point."""
    names: int = 10
    """Made-up names for a field."""
    late: float = 0.01
    lost: float = 0.02


class Simulation:
    """The events of a program from a time point on, in the order of their arrivals."""

    def __init__(self, program: Program, start: int, seed: int, weather: Weather) -> None:
        self._program = program
        self._time = start
        self._random = random.Random(seed)
        self._weather = weather
        self._values = _values(program, weather.names)
        self._streams = sorted(program.streams)
        self._number = 0
        self._travelling: list[tuple[int, int, str]] = []

    def __iter__(self) -> Iterator[tuple[int, str]]:
        """Arrival and event, for ever."""
        while True:
            self._happen()
            while self._travelling and self._travelling[0][0] < self._time:
                arrival, _, line = heapq.heappop(self._travelling)
                yield arrival, line

    def _happen(self) -> None:
        """Everything of one time point, sent on its way."""
        whole, part = divmod(self._weather.rate, 1)
        for _ in range(int(whole) + (self._random.random() < part)):
            stream = self._random.choice(self._streams)
            args = [self._random.choice(pool) for pool in self._values[stream]]
            if self._random.random() >= self._weather.lost:
                self._send(stream, args)
        self._time += 1

    def _send(self, stream: str, args: list[Value]) -> None:
        bound = self._program.delays.largest(stream)
        if self._random.random() < self._weather.late:
            delay = bound + self._random.randint(1, 3)
        elif self._random.random() < _PROMPT:
            delay = 0
        else:
            delay = self._random.randint(0, bound)
        arrival = self._time + delay
        event: dict[str, Any] = {"fact": stream, "args": args, "time": self._time}
        line = json.dumps(event | {"arrival": arrival}, ensure_ascii=False)
        heapq.heappush(self._travelling, (arrival, self._number, line))
        self._number += 1


def _values(program: Program, names: int) -> dict[str, list[list[Value]]]:
    """For each field of each stream values to choose from, the frequent ones often."""
    pools: dict[str, list[list[Value]]] = {}
    said = _said(program)
    for stream, fields in program.streams.items():
        pools[stream] = []
        for place, field in enumerate(fields):
            constants, numbers = said.get((stream, place), (set(), set()))
            if numbers or field.type in ("int", "float"):
                made = _numbers(numbers or {0}, field.type == "int")
            else:
                made = [f"{field.name}{n}" for n in range(1, names + 1)]
            known = sorted(constants, key=str)
            often = round(_CONSTANT / (1 - _CONSTANT) * len(made) / len(known)) if known else 0
            pools[stream].append(made + known * max(1, often) if known else made)
    return pools


def _said(program: Program) -> dict[tuple[str, int], tuple[set[Value], set[float]]]:
    """The constants that premises have at a place, and the numbers that they compare it with."""
    found: dict[tuple[str, int], tuple[set[Value], set[float]]] = {}
    for query in program.queries:
        for premises in premise_sets(program, query):
            compared: dict[Var, set[float]] = {}
            for c in premises.comparisons:
                if isinstance(c.left, Var) and isinstance(c.right, int | float):
                    compared.setdefault(c.left, set()).add(c.right)
            for atom in premises.atoms:
                for place, arg in enumerate(atom.args):
                    constants, numbers = found.setdefault((atom.predicate, place), (set(), set()))
                    if isinstance(arg, Var):
                        numbers |= compared.get(arg, set())
                    elif not isinstance(arg, Time):
                        constants.add(arg)
    return found


def _numbers(near: set[float], whole: bool) -> list[Value]:
    """Numbers on both sides of each."""
    found: list[Value] = []
    for number in sorted(near):
        spread = max(abs(number) / 4, 10)
        steps = [number + spread * step / 5 for step in range(-5, 6)]
        found += [round(step) if whole else round(step, 1) for step in steps]
    return found
