"""One batch: the changed groups through the kernel on the executors, then one transaction.

Spark hands over every group that got a row in this batch, with all the facts it holds. The facts
with this batch's marker are fresh; what they changed is the difference of two pure functions, so
a batch that is computed again gives the same changes, and none is applied twice. A marker is twice
the time of the batch, and one more in all but the first of the groups that a fact went to: that one
counts it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from monitor.doubt import NEVER
from monitor.shipped import Shipped
from resolution.kernel import FACTS
from resolution.routing import SEPARATOR
from resolution.terms import Atom, Time, parse_value
from storage.packing import packed
from storage.staging import stage_changes

BINS = 128
"""Parts of a stream's δ by which delays are told apart: what the store keeps of them is bounded."""

MOST = 250_000
"""Facts that are given to the kernel at once: bounds the memory of a task."""

SUMMARY = (
    "groups bigint, fresh bigint, changes bigint, milliseconds double, same array<string>, "
    "delays array<struct<predicate:int, delay:bigint, facts:bigint>>"
)
_SUMMARY = pa.schema(
    [
        ("groups", pa.int64()),
        ("fresh", pa.int64()),
        ("changes", pa.int64()),
        ("milliseconds", pa.float64()),
        ("same", pa.list_(pa.string())),
        (
            "delays",
            pa.list_(
                pa.struct([("predicate", pa.int32()), ("delay", pa.int64()), ("facts", pa.int64())])
            ),
        ),
    ]
)


@dataclass(frozen=True)
class KernelStep:
    """What a task does with its groups (query, key, closes, facts): stages their changes."""

    shipped: Shipped
    conninfo: str
    run: int
    batch: int
    marker: int
    over: int | None
    """What will be complete with this batch; None: the log has an end, and whatever arrives in it
    will be complete by then."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        part = Part(self.shipped, self.marker, self.over)
        first = next(batches, None)
        if first is None:
            return
        stage_changes(
            self.conninfo, self.run, self.batch, context.partitionId(), part.changes(first, batches)
        )
        yield part.summary()


class Part:
    """The groups of one partition; what it counts, it counts on the way."""

    def __init__(self, shipped: Shipped, marker: int, over: int | None) -> None:
        self._program = shipped.program
        self._kernel = shipped.kernel
        self._routing = shipped.routing
        self._names = pa.array(shipped.streams.names, pa.string())
        self._arity = np.array([len(f) for f in shipped.streams.fields], dtype=np.int64)
        longest = [self._program.delays.largest(name) for name in shipped.streams.names]
        self._widths = np.array([max(1, delay // BINS) for delay in longest], dtype=np.int64)
        self._marker = marker
        self._ends = over is None
        self._over = -1 if over is None else over
        self._groups = 0
        self._fresh = 0
        self._changes = 0
        self._seconds = 0.0
        self._same: list[str] = []
        self._delays: Counter[tuple[int, int]] = Counter()

    def changes(
        self, first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        for table in _chunks(first, rest):
            self._groups += table.num_rows
            for query in pc.unique(table["query"]).to_pylist():
                groups = table.filter(pc.equal(table["query"], query)).combine_chunks()
                began = time.perf_counter()
                facts = self._facts(query, groups)
                changes = self._kernel.changes(query, facts)
                self._seconds += time.perf_counter() - began
                self._changes += len(changes)
                yield packed(changes, self._over)

    def _facts(self, query: int, groups: pa.Table) -> pa.Table:
        """The facts of groups of one query as the kernel takes them."""
        lists = groups["facts"].chunk(0) if groups["facts"].num_chunks else None
        assert lists is not None
        rows = lists.flatten()
        of = np.repeat(np.arange(len(lists)), pc.list_value_length(lists).to_numpy())
        closes = groups["closes"].to_numpy()[of]
        predicate = rows.field("predicate").to_numpy()
        marker = rows.field("marker").to_numpy()
        fresh = marker >> 1 == self._marker
        late = rows.field("late")
        first = fresh & (marker & 1 == 0) & ~late.to_numpy(zero_copy_only=False)
        delay = rows.field("arrival").to_numpy() - rows.field("time").to_numpy()
        self._count(predicate[first], delay[first])
        values = pc.split_pattern(rows.field("args"), SEPARATOR).flatten()
        offsets = np.concatenate([[0], np.cumsum(self._arity[predicate])])
        args = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)
        blocks = self._routing.queries[query].blocks
        never = closes == NEVER
        past = closes - blocks.reach if blocks else closes
        starts = past - blocks.length if blocks else closes
        facts = pa.table(
            {
                "group": pa.array(of, pa.int64()),
                "key": groups["key"].take(pa.array(of)),
                "first": pa.array(starts, pa.int64(), mask=never),
                "past": pa.array(past, pa.int64(), mask=never),
                "predicate": self._names.take(rows.field("predicate")),
                "args": args,
                "time": rows.field("time"),
                "arrival": rows.field("arrival"),
                "fresh": pa.array(fresh),
            },
            schema=FACTS,
        )
        if pc.any(late).as_py():
            self._find_copies(facts, late.to_pylist())
            facts = facts.filter(pc.invert(late))
        if self._ends:
            self._over = max(self._over, pc.max(facts["arrival"]).as_py() or 0)
        return facts

    def _find_copies(self, facts: pa.Table, late: list[bool]) -> None:
        """Late copies of facts that came in time: the same fact, so not late after all."""
        seen: dict[tuple[Any, ...], list[tuple[bool, bool]]] = {}
        for row, is_late in zip(facts.to_pylist(), late, strict=True):
            key = row["group"], row["predicate"], tuple(row["args"]), row["time"]
            seen.setdefault(key, []).append((is_late, row["fresh"]))
        for (_, predicate, args, at), copies in seen.items():
            kinds = {is_late for is_late, _ in copies}
            if kinds == {True, False} and any(fresh for _, fresh in copies):
                atom = Atom(predicate, tuple(map(parse_value, args)), Time(None, at))
                self._same.append(str(atom))

    def _count(self, predicate: Any, delay: Any) -> None:
        self._fresh += len(predicate)
        width = self._widths[predicate]
        pairs = np.stack([predicate, delay // width * width])
        for (stream, binned), facts in zip(*_counted(pairs), strict=True):
            self._delays[stream, binned] += facts

    def summary(self) -> pa.RecordBatch:
        row = {
            "groups": self._groups,
            "fresh": self._fresh,
            "changes": self._changes,
            "milliseconds": self._seconds * 1000,
            "same": self._same,
            "delays": [
                {"predicate": stream, "delay": delay, "facts": facts}
                for (stream, delay), facts in self._delays.items()
            ],
        }
        return pa.RecordBatch.from_pylist([row], schema=_SUMMARY)


def _counted(pairs: Any) -> tuple[list[list[int]], list[int]]:
    found, counts = np.unique(pairs, axis=1, return_counts=True)
    return found.T.tolist(), counts.tolist()


def _chunks(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The groups in tables that hold about MOST facts."""
    held, count = [first], len(first["facts"].flatten())
    for batch in rest:
        if count >= MOST:
            yield pa.Table.from_batches(held)
            held, count = [], 0
        held.append(batch)
        count += len(batch["facts"].flatten())
    yield pa.Table.from_batches(held)
