"""Facts: the one way from an event, as it stands in a log, to a ground atom with its arrival."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from resolution.delays import Delays
from resolution.errors import WhilstError, count
from resolution.program import Field, Program
from resolution.terms import Atom, Time, Value, constant

RESERVED = ("fact", "args", "time", "arrival")
LONGEST_LINE = 1_000_000
"""Characters of an event beyond which it is rejected unread."""

_UNKEPT = re.compile("[\x00\ud800-\udfff]")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST_POINT = 2**61
"""Far below what the kernel takes for never: what comes after the last fact closes before that."""


class RejectedEvent(WhilstError):
    """An event that states no fact of the program; its text is the reason."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A ground stream atom and the time point of its arrival."""

    atom: Atom
    arrival: int

    @property
    def time(self) -> int:
        assert self.atom.time is not None
        return self.atom.time.offset


@dataclass(slots=True)
class Arrivals:
    """The facts of a log: each that came in time with its first arrival, and those that did not."""

    first: dict[Atom, int] = field(default_factory=dict)
    late: list[Fact] = field(default_factory=list)

    @classmethod
    def of(cls, facts: Iterable[Fact], delays: Delays) -> Arrivals:
        found = cls()
        everything: dict[Atom, int] = {}
        for fact in facts:
            everything[fact.atom] = min(fact.arrival, everything.get(fact.atom, fact.arrival))
        for atom, arrival in everything.items():
            assert atom.time is not None
            if arrival <= atom.time.offset + delays.of(atom):
                found.first[atom] = arrival
            else:
                found.late.append(Fact(atom, arrival))
        return found

    def by(self, tau: int) -> dict[Atom, int]:
        """The facts that arrived in time by τ."""
        return {atom: arrival for atom, arrival in self.first.items() if arrival <= tau}


def read_event(line: str, program: Program) -> Fact:
    """The fact that a line of JSON states. Raises RejectedEvent with the reason where none does."""
    if len(line) > LONGEST_LINE:
        raise RejectedEvent(f"the event is longer than {LONGEST_LINE:,} characters")
    try:
        event = json.loads(line, object_pairs_hook=_unique, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        what = error.msg.removesuffix(" at")  # some messages of Python's end with it
        raise RejectedEvent(f"not JSON: {what} at character {error.pos + 1}") from None
    except RecursionError:
        raise RejectedEvent("not JSON: nested too deeply") from None
    except ValueError as error:  # an integer of more digits than Python converts
        raise RejectedEvent(f"not JSON: {error}") from None
    if not isinstance(event, dict):
        raise RejectedEvent('not a fact: an event is an object such as {"fact": "Temp", …}')
    return fact_of(event, program)


def fact_of(event: Mapping[str, Any], program: Program) -> Fact:
    """The fact that an event states. Raises RejectedEvent with the reason where it states none."""
    predicate = event.get("fact")
    if not isinstance(predicate, str):
        raise RejectedEvent('"fact" must name a stream predicate')
    if predicate not in program.streams:
        raise RejectedEvent(f"{predicate} is not a stream predicate of the program")
    fields = program.streams[predicate]
    args = tuple(_arguments(event, predicate, fields))
    if "time" not in event:
        raise RejectedEvent('"time" is missing')
    time = time_point(event["time"], program.unit, "time")
    arrival = time_point(event["arrival"], program.unit, "arrival") if "arrival" in event else time
    if arrival < time:
        raise RejectedEvent(f"it arrived at {arrival}, before its own time point {time}")
    return Fact(Atom(predicate, args, Time(None, time)), arrival)


def _arguments(
    event: Mapping[str, Any], predicate: str, fields: tuple[Field, ...]
) -> Iterator[Value]:
    if "args" in event:
        values = event["args"]
        if not isinstance(values, list):
            raise RejectedEvent('"args" must be a list')
        if len(values) != len(fields):
            raise RejectedEvent(
                f"{predicate} has {count(len(fields), 'field')}, the event {len(values)}"
            )
    else:
        missing = [f.name for f in fields if f.name not in event]
        if missing:
            raise RejectedEvent(f"{predicate} lacks {', '.join(missing)}")
        values = [event[f.name] for f in fields]
    for declared, value in zip(fields, values, strict=True):
        yield typed(value, declared)


def typed(value: object, declared: Field) -> Value:
    """A value of a field, checked against its type."""
    if value is None or isinstance(value, list | dict):
        kind = {type(None): "null", list: "a list", dict: "an object"}[type(value)]
        raise RejectedEvent(f"{declared.name} is {kind}; a name, string or number is wanted")
    assert isinstance(value, str | int | float)
    if isinstance(value, str) and _UNKEPT.search(value):
        raise RejectedEvent(f"{declared.name} has a character that no text can keep")
    try:
        known = constant(value)
    except ValueError as error:
        raise RejectedEvent(f"{declared.name}: {error}") from None
    fits = {
        None: True,
        "string": isinstance(known, str),
        "float": not isinstance(known, str),
        "int": isinstance(known, int),
    }[declared.type]
    if not fits:
        raise RejectedEvent(f"{declared.name} is of type {declared.type}, {value!r} is not")
    return known


def time_point(value: object, unit: int, name: str = "time") -> int:
    """A time point given as a whole number, or as an ISO 8601 instant, floored to the unit."""
    if isinstance(value, str):
        point = _instant(value, name) // timedelta(milliseconds=unit)
    elif isinstance(value, bool) or not isinstance(value, int | float) or value % 1:
        raise RejectedEvent(
            f'"{name}" must be a whole number of time points or an ISO 8601 instant'
        )
    else:
        point = int(value)
    if point < 0:
        raise RejectedEvent(f'"{name}" {point} is not a time point: they count from 0')
    if point > LAST_POINT:
        raise RejectedEvent(f'"{name}" is beyond the last time point, {LAST_POINT}')
    return point


def _instant(text: str, name: str) -> timedelta:
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise RejectedEvent(f'"{name}" {text!r} is not an ISO 8601 instant') from None
    if instant.tzinfo is None:
        instant = instant.replace(tzinfo=UTC)
    return instant - _EPOCH


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise RejectedEvent(f"the key {json.dumps(twice, ensure_ascii=False)} stands twice")
    return found


def _no_number(text: str) -> float:
    raise RejectedEvent(f"{text} is not JSON")
