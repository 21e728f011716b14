"""How good a peer's answers are: against the definition, and in the time of the log.

What an answer is, is what the kernel says; the tests hold it equal to the reference evaluator.
"""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from monitor.bench.peers_logs import Event
from resolution.kernel import FACTS, Kernel
from resolution.program import load

Key = tuple[str, int]
"""An answer, as far as peers tell them apart: the key and the time point."""

_ANSWER = re.compile(r"\w+\((.+), (\d+)\)")


@dataclass(frozen=True)
class Truth:
    confirmed: dict[Key, int]
    """When the last fact that each answer needs arrived: the τ at which it is confirmed."""
    lead: list[int]
    """How many time points before its confirmation each was to be seen as pending."""
    late: int
    """Facts that broke their bound, and take no part."""


@dataclass(frozen=True)
class Score:
    found: int
    missed: int
    wrong: int
    latency: float | None
    """Median of the time points between the arrival of the last needed fact and the answer."""
    latest: int | None

    @property
    def exact(self) -> bool:
        return not self.missed and not self.wrong


def truth(program: str, events: list[Event], delay: int) -> Truth:
    """The confirmed answers of a program with one query and one δ."""
    in_time = [e for e in events if e["arrival"] <= e["time"] + delay]
    rows = Kernel(load(program)).triples(0, facts_table(in_time)).to_pylist()
    confirmed = {_key(r["answer"]): r["start"] for r in rows if not r["hypotheses"]}
    pending = defaultdict(list)
    for row in rows:
        if row["hypotheses"]:
            pending[row["evidence"][0]].append(row)
    lead = []
    for row in rows:
        if row["hypotheses"]:
            continue
        evidence = set(row["evidence"])
        seen = [
            before["start"]
            for atom in evidence
            for before in pending[atom]
            if evidence.issuperset(before["evidence"])
            and (before["answer"] == row["answer"] or not _ANSWER.fullmatch(before["answer"]))
        ]
        lead.append(row["start"] - min(seen, default=row["start"]))
    return Truth(confirmed, lead, len(events) - len(in_time))


def confirmed(program: str, events: list[Event]) -> int:
    """The number of confirmed answers, where all events came in time."""
    triples = Kernel(load(program)).triples(0, facts_table(events))
    return int(pc.sum(pc.equal(pc.list_value_length(triples["hypotheses"]), 0)).as_py() or 0)


def _key(text: str) -> Key:
    found = _ANSWER.fullmatch(text)
    assert found is not None, text
    return found[1], int(found[2])


def facts_table(events: list[Event]) -> pa.Table:
    size = len(events)
    columns = {
        "group": np.zeros(size, np.int64),
        "key": pa.nulls(size, pa.string()),
        "first": pa.nulls(size, pa.int64()),
        "past": pa.nulls(size, pa.int64()),
        "predicate": [e["fact"] for e in events],
        "args": [e["args"] for e in events],
        "time": [e["time"] for e in events],
        "arrival": [e["arrival"] for e in events],
        "fresh": np.ones(size, np.bool_),
    }
    return pa.table(columns, schema=FACTS)


def score(true: Truth, answers: Iterable[tuple[str, int, int, int]]) -> Score:
    """Answers as peers tell them: key, time, and the first and last arrival read in that batch.

    An answer that came in the batch which read its last fact was known at once. In one that read
    only later arrivals, it came at the first of them at the earliest, and that is what counts.
    """
    known: dict[Key, int] = {}
    for key, time, first, _ in answers:
        known[key, time] = min(first, known.get((key, time), first))
    found = known.keys() & true.confirmed.keys()
    latencies = [max(0, known[answer] - true.confirmed[answer]) for answer in found]
    return Score(
        found=len(found),
        missed=len(true.confirmed) - len(found),
        wrong=len(known) - len(found),
        latency=statistics.median(latencies) if latencies else None,
        latest=max(latencies, default=None),
    )


def exponent(sizes: Iterable[float], costs: Iterable[float]) -> float:
    """How cost grows with size: 0 not at all, 1 linearly."""
    return round(float(np.polyfit(np.log(list(sizes)), np.log(list(costs)), 1)[0]), 2)
