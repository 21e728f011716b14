"""The kernel against the reference evaluator, and against DuckDB on the confirmed answers alone.

Times are of one core, by processor time, so that other work on the machine has no part in them.
"""

from __future__ import annotations

import math
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from monitor.bench.tasks import TASKS, Task
from resolution.kernel import Kernel
from resolution.lives import lives
from resolution.premises import premise_sets
from resolution.program import Program, load
from resolution.terms import Atom, Time, parse_value

Figure = dict[str, Any]

SIZE = 200_000
"""Facts of one run at scale 1."""
SLOW_SIZE = 2_000
"""Facts that the reference evaluator is given."""
GROWTH = (0.05, 0.2, 1.0, 5.0)
"""Sizes, as parts of the main one, that the exponent is fitted to …"""
FURTHER = {"shortstop": (*GROWTH, 50.0), "turbines": (*GROWTH, 50.0)}
"""… and up to 10 million facts for the tasks that the targets are set for."""


def figures(scale: float = 1.0) -> Iterator[Figure]:
    """One figure after another, as `whilst bench` prints them."""
    rates: dict[str, float] = {}
    for task in TASKS:
        for figure, value in _task(task, max(1_000, int(SIZE * scale))):
            if figure == "facts/s":
                rates[task.name] = value
            yield {"bench": "kernel", "task": task.name, "figure": figure, "value": value}
    yield {
        "bench": "kernel",
        "task": "login window 3600",
        "figure": "times the cost of window 60",
        "value": round(rates["login window 60"] / rates["login window 3600"], 2),
    }


def _task(task: Task, size: int) -> Iterator[tuple[str, float]]:
    program = load(task.program)
    kernel = Kernel(program)
    kernel.lives(0, task.facts(1_000))  # compiled, and its automaton known
    facts = task.facts(size)
    seconds, found = _timed(lambda: kernel.lives(0, facts))
    rate = len(facts) / seconds
    yield "facts/s", round(rate)
    written, table = _timed(lambda: kernel.triples(0, facts))
    yield "facts/s with text", round(len(facts) / written)
    touched = _touched(facts)
    fresh, _ = _timed(lambda: kernel.changes(0, touched))
    yield (
        "batch on 1 % of keys vs 1 % of all",
        round(fresh / written * len(facts) / len(touched), 2),
    )
    confirmed = pa.compute.sum(
        pa.compute.equal(pa.compute.list_value_length(table["hypotheses"]), 0)
    )
    yield "confirmed", confirmed.as_py() or 0
    yield "pending at some time", len(table) - (confirmed.as_py() or 0)
    yield "bytes a pending answer", round(found / max(1, len(table)))
    yield "peak MB", round(_peak(lambda: kernel.lives(0, facts)) / 2**20, 1)
    yield "vs reference", round(rate * _reference(program, task.facts(SLOW_SIZE)), 1)
    slow, counted = _duckdb(task.sql, facts)
    yield "duckdb confirmed", counted
    yield "vs duckdb", round(slow / seconds, 2)
    yield "vs duckdb on arrow", round(_duckdb(task.sql, facts, loaded=False)[0] / seconds, 2)
    yield "exponent", _exponent(kernel, task, size)


def _touched(facts: pa.Table) -> pa.Table:
    """The facts of every hundredth key, the newest tenth of them fresh: what a batch is given."""
    keys = pa.compute.list_element(facts["args"], 0).combine_chunks().dictionary_encode()
    mine = facts.filter(pa.array(keys.indices.to_numpy() % 100 == 0))
    newest = np.arange(len(mine)) >= len(mine) * 9 // 10
    place = mine.schema.get_field_index("fresh")
    return mine.set_column(place, mine.schema.field(place), pa.array(newest))


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """The least processor time of three runs, and what the work gave."""
    best, result = math.inf, None
    for _ in range(3):
        start = time.process_time()
        result = work()
        best = min(best, time.process_time() - start)
    return best, result


def _peak(work: Callable[[], Any]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _reference(program: Program, facts: pa.Table) -> float:
    """Seconds a fact of the reference evaluator."""
    arrived = {
        Atom(f["predicate"], tuple(map(parse_value, f["args"])), Time(None, f["time"])): f[
            "arrival"
        ]
        for f in facts.to_pylist()
    }
    sets = premise_sets(program, program.queries[0])
    start = time.process_time()
    lives(sets, program.delays, arrived)
    return (time.process_time() - start) / len(facts)


def _duckdb(sql: str, facts: pa.Table, *, loaded: bool = True) -> tuple[float, int]:
    """DuckDB on a table of its own, or on the same Arrow columns that the kernel is given."""
    import duckdb

    arity = len(facts["args"][0])
    columns = {
        f"a{place}": pa.compute.list_element(facts["args"], place).combine_chunks()
        for place in range(arity)
    }
    table = pa.table({**columns, "predicate": facts["predicate"], "time": facts["time"]})
    connection = duckdb.connect(config={"threads": 1, "disabled_optimizers": "join_order"})
    connection.register("given", table)
    kind = "table" if loaded else "view"
    connection.execute(f"create {kind} facts as select * from given")
    seconds, counted = _timed(lambda: connection.execute(sql).fetchone()[0])
    return seconds, counted


def _exponent(kernel: Kernel, task: Task, size: int) -> float:
    """How cost grows with the number of facts: 1 is linear."""
    sizes, costs = [], []
    for part in FURTHER.get(task.name, GROWTH):
        facts = task.facts(max(1_000, int(size * part)))
        sizes.append(len(facts))
        costs.append(_timed(lambda facts=facts: kernel.lives(0, facts))[0])
    return round(float(np.polyfit(np.log(sizes), np.log(costs), 1)[0]), 3)
