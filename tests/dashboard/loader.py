"""Fills a store as a run does, without Spark: program and facts in, one batch a time point."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from monitor.store_info import program_info
from resolution.changes import CHANGES
from resolution.facts import RejectedEvent, read_event
from resolution.lives import lives, row
from resolution.premises import premise_sets
from resolution.program import load
from storage.packing import packed
from storage.programs import register_run
from storage.staging import EVENTS, stage_changes, stage_events
from storage.store import Store
from storage.writer import BatchFigures, Writer


@dataclass
class Loader:
    """A run that reads what it is given. `read` is a batch; `complete` is the clock."""

    store: Store
    name: str
    text: str
    checkpoint: str = "test"
    _arrived: dict[Any, int] = field(default_factory=dict)
    _batch: int = -1

    def __post_init__(self) -> None:
        self.program = load(self.text, self.name)
        self._sets = [premise_sets(self.program, query) for query in self.program.queries]
        with self.store.engine("owner") as engine:
            self.run = register_run(
                engine,
                program_info(self.name, self.text, self.program, self._sets),
                self.checkpoint,
                ["facts.jsonl"],
            )
        self.writer = Writer(self.store.url("writer"))

    def read(self, lines: Iterable[str], complete: int | None = None, **figures: Any) -> None:
        self._batch += 1
        events, delays, fresh, facts = [], Counter(), {}, 0
        for number, line in enumerate(lines, start=1):
            facts += 1
            place = f"facts.jsonl:{self._batch}:{number}"
            try:
                fact = read_event(line, self.program)
            except RejectedEvent as error:
                events.append(_event("rejected", line, place, str(error)))
                continue
            delays[fact.atom.predicate, fact.arrival - fact.time] += 1
            delta = self.program.delays.of(fact.atom)
            if fact.arrival > fact.time + delta:
                late = fact.arrival - fact.time - delta
                events.append(
                    _event(
                        "late",
                        line,
                        place,
                        f"arrived {late} time points after its delay bound",
                        arrival=fact.arrival,
                        fact=str(fact.atom),
                        stream=fact.atom.predicate,
                        time=fact.time,
                        delay=delta,
                    )
                )
            elif fact.atom not in self._arrived:
                fresh.setdefault(fact.atom, fact.arrival)
        self._stage(fresh, events)
        self._arrived |= fresh
        self.writer.commit_batch(
            self.run,
            self._batch,
            complete,
            BatchFigures(facts=facts, matched=len(fresh), delays=dict(delays), **figures),
        )

    def program_now(self) -> int:
        """A time point that is not complete yet: what arrives in it counts."""
        return int(time.time() * 1000 // self.program.unit)

    def forget(self, before: int) -> None:
        """Let go of facts that no answer can need any more."""
        self._arrived = {a: t for a, t in self._arrived.items() if a.time.offset >= before}

    def complete(self, tau: int) -> None:
        self.writer.complete(self.run, tau)

    def _stage(self, fresh: dict[Any, int], events: list[dict[str, Any]]) -> None:
        url = self.store.url("writer")
        for number, sets in enumerate(self._sets):
            old, new = self._rows(sets, self._arrived), self._rows(sets, self._arrived | fresh)
            changes = [{"op": "put", **row} for key, row in new.items() if old.get(key) != row]
            changes += [{"op": "drop", **row} for key, row in old.items() if key not in new]
            table = packed(pa.Table.from_pylist(changes, schema=CHANGES), -1)
            stage_changes(url, self.run, self._batch, number, [table])
        if events:
            table = pa.Table.from_pylist(events, schema=EVENTS)
            stage_events(url, self.run, self._batch, 0, table.to_batches())

    def _rows(self, sets: Any, arrived: dict[Any, int]) -> dict[str, dict[str, Any]]:
        delays = self.program.delays
        rows = [row(life, delays, arrived) for life in lives(sets, delays, arrived)]
        return {one["triple"]: one for one in rows}


def _event(kind: str, line: str, place: str, reason: str, **more: Any) -> dict[str, Any]:
    return {
        "kind": kind,
        "event": line.encode(),
        "source": "facts.jsonl",
        "place": place,
        "arrival": None,
        "reason": reason,
        "fact": None,
        "stream": None,
        "time": None,
        "delay": None,
        **more,
    }
