"""What SQL cannot decide: doubtful, late and contradictory events, one at a time, in Python.

Runs on the executors, in the same task that parses. An event comes out as a fact with its groups,
or goes to the store's staging area as a late fact or a rejected event, with its place and reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc

from monitor import factfiles
from monitor.places import numbered
from monitor.shipped import Shipped
from monitor.sources import UNSTAMPED, SourceError, header_of, is_csv
from resolution.facts import Fact, RejectedEvent, fact_of, read_event
from resolution.program import Program
from resolution.routing import SEPARATOR, Target
from resolution.terms import show
from storage.staging import EVENTS, stage_events

COMPLETE = "whilst.complete"
"""Job property: the last time point that was complete before the batch was read."""

BATCH = "streaming.sql.batchId"
"""Job property that Spark sets for every job of a micro-batch."""

NEVER = 9_000_000_000_000_000
"""`closes` of a block that never does: beyond what Spark's watermark can reach."""

TARGET = "struct<query:int, key:string, closes:bigint>"
FACT = (
    "struct<predicate:int, args:string, time:bigint, arrival:bigint, late:boolean, "
    f"targets:array<{TARGET}>>"
)
_TARGET = pa.struct([("query", pa.int32()), ("key", pa.string()), ("closes", pa.int64())])
_FACT = pa.struct(
    [
        ("predicate", pa.int32()),
        ("args", pa.string()),
        ("time", pa.int64()),
        ("arrival", pa.int64()),
        ("late", pa.bool_()),
        ("targets", pa.list_(_TARGET)),
    ]
)
COLUMNS = ("value", "source", "place", "start", "length", "stamp", "now", "suspect", "arrival")
"""What is asked about an event: its bytes; the file or topic; the partition and offset, or else
the part of the file it stands in; when the log and when Spark took it up, in milliseconds; whether
nothing is doubtful but its arrival, and that."""


_NOTHING: dict[str, Any] = {"targets": []}


@dataclass(frozen=True, slots=True)
class Rules:
    """What an event is judged by, beside the program."""

    arrival_field: str | None
    """The field that holds the arrival, where the log does not stamp it."""
    until: int | None
    """What arrives later takes no part."""
    skew: int | None
    """Milliseconds that an arrival may lie in the future; None: any."""


@dataclass(frozen=True)
class Doubt:
    """The function that Spark calls with columns of events, null where it does not ask."""

    shipped: Shipped
    rules: Rules
    conninfo: str
    run: int

    def __call__(self, columns: Iterator[tuple[Any, ...]]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        complete = context.getLocalProperty(COMPLETE)
        judge = Judge(self.shipped, self.rules, int(complete) if complete else None)
        for arrays in columns:
            yield judge.judged(arrays)
        if judge.events:
            batch = context.getLocalProperty(BATCH)
            assert batch is not None
            rows = pa.RecordBatch.from_pylist(numbered(judge.events), schema=EVENTS)
            stage_events(self.conninfo, self.run, int(batch), context.partitionId(), [rows])


class Judge:
    """Judges events; `events` gathers the late and the rejected ones."""

    def __init__(self, shipped: Shipped, rules: Rules, complete: int | None) -> None:
        self._program = shipped.program
        self._streams = {name: at for at, name in enumerate(shipped.streams.names)}
        self._routing = shipped.routing
        self._rules = rules
        self._complete = -1 if complete is None else complete
        self._headers: dict[str, tuple[bytes, tuple[str, ...]] | str] = {}
        self._passed: set[str] = set()
        self.events: list[dict[str, Any]] = []

    def judged(self, arrays: tuple[Any, ...]) -> Any:
        """For each event its fact, with no targets if it is none; null where SQL is right."""
        values, suspect, arrival = arrays[0], arrays[-2], arrays[-1]
        asked = pc.is_valid(values)
        cleared = pc.and_(suspect, pc.greater(arrival, self._complete))
        asked = pc.and_(asked, pc.invert(pc.fill_null(cleared, False)))
        if not pc.any(asked).as_py():
            return pa.nulls(len(values), _FACT)
        found: list[dict[str, Any] | None] = [None] * len(values)
        places = pc.indices_nonzero(asked)
        rows = zip(*(array.take(places).to_pylist() for array in arrays), strict=True)
        for place, row in zip(places.to_pylist(), rows, strict=True):
            found[place] = self._event(dict(zip(COLUMNS, row, strict=True)))
        return pa.array(found, _FACT)

    def _event(self, event: dict[str, Any]) -> dict[str, Any]:
        try:
            fact = self._fact(event)
            self._refuse_contradictions(fact, event)
        except _Header:
            return _NOTHING
        except RejectedEvent as rejected:
            stamp = event["stamp"]
            arrival = None if stamp in (None, UNSTAMPED) else stamp // self._program.unit
            self._keep(event, "rejected", arrival, str(rejected))
            return _NOTHING
        if self._rules.until is not None and fact.arrival > self._rules.until:
            return _NOTHING
        delay = self._program.delays.of(fact.atom)
        late = fact.arrival > fact.time + delay
        found = self._routing.targets(fact.atom)
        if late:
            self._keep(
                event,
                "late",
                fact.arrival,
                f"it arrived at {fact.arrival}, its bound was {fact.time + delay}",
                fact=str(fact.atom),
                stream=fact.atom.predicate,
                time=fact.time,
                delay=delay,
                matched=bool(found),
            )
        return self._row(fact, late, found)

    def _fact(self, event: dict[str, Any]) -> Fact:
        try:
            line = bytes(event["value"]).decode("utf-8-sig").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise RejectedEvent(f"not UTF-8 at byte {error.start + 1}") from None
        stamp = event["stamp"]
        if stamp == UNSTAMPED:
            raise RejectedEvent("its time stamp is its producer's, not the log's")
        arrival = None if stamp is None else stamp // self._program.unit
        if event["place"] is None and is_csv(event["source"]):
            return self._fact_of_csv(event, line)
        return fact_with_arrival(line, self._program, self._rules.arrival_field, arrival)

    def _fact_of_csv(self, event: dict[str, Any], line: str) -> Fact:
        source = event["source"]
        if source not in self._headers:
            try:
                self._headers[source] = header_of(Path(unquote(urlsplit(source).path)))
            except (SourceError, OSError, EOFError) as error:
                self._headers[source] = str(error)
        found = self._headers[source]
        if isinstance(found, str):
            raise RejectedEvent(found)
        text, header = found
        if event["start"] == 0 and source not in self._passed and bytes(event["value"]) == text:
            self._passed.add(source)
            raise _Header
        row = factfiles._event(list(header), factfiles._cells(line), self._program)
        return fact_of(_renamed(row, self._rules.arrival_field), self._program)

    def _refuse_contradictions(self, fact: Fact, event: dict[str, Any]) -> None:
        if fact.arrival <= self._complete:
            raise RejectedEvent(
                f"it claims to have arrived at {fact.arrival}, but everything up to "
                f"{self._complete} had been read before"
            )
        if self._rules.skew is not None:
            newest = (event["now"] + self._rules.skew) // self._program.unit
            if fact.arrival > newest:
                raise RejectedEvent(
                    f"it claims to have arrived at {fact.arrival}, which is in the future: "
                    f"the clock allowed {newest} at most"
                )

    def _row(self, fact: Fact, late: bool, found: set[Target]) -> dict[str, Any]:
        if late:  # where its group is open still, it may turn out to be a copy of one in time
            found = {t for t in found if t.closes is None or t.closes >= fact.arrival}
        targets = [
            {"query": t.query, "key": t.key, "closes": NEVER if t.closes is None else t.closes}
            for t in found
        ]
        args = [show(arg) for arg in fact.atom.args]
        return {
            "predicate": self._streams[fact.atom.predicate],
            "args": SEPARATOR.join(args) if args else None,
            "time": fact.time,
            "arrival": fact.arrival,
            "late": late,
            "targets": targets,
        }

    def _keep(
        self, event: dict[str, Any], kind: str, arrival: int | None, reason: str, **more: Any
    ) -> None:
        kept = {"kind": kind, "event": event["value"], "arrival": arrival, "reason": reason}
        self.events.append({**event, **kept, **more})


def fact_with_arrival(
    line: str, program: Program, arrival_field: str | None, arrival: int | None
) -> Fact:
    """The fact of a line whose arrival is in another field than `arrival`, or known to the log."""
    if arrival_field == "arrival" and arrival is None:
        return read_event(line, program)
    try:
        read_event(line, program)
    except RejectedEvent as rejected:
        # All else is checked before the field `arrival`, which is only one of many here.
        if not str(rejected).startswith(('"arrival"', "it arrived at")):
            raise
    event = _renamed(json.loads(line), arrival_field)
    return fact_of(event if arrival is None else {**event, "arrival": arrival}, program)


def _renamed(event: Mapping[str, Any], arrival_field: str | None) -> dict[str, Any]:
    """The event with the arrival in the field of that name, and no other in it."""
    found = {name: value for name, value in event.items() if name != "arrival"}
    if arrival_field in event:
        found["arrival"] = event[arrival_field]
    return found


class _Header(Exception):
    """The line is the header of a CSV file: no event."""
