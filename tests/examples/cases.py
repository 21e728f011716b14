"""The examples, and their answers as `whilst trace` prints them, by each way of computing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from monitor.programs import read_program
from resolution.facts import Arrivals, Fact, read_event
from resolution.kernel import FACTS, Kernel
from resolution.lives import lives, row
from resolution.premises import premise_sets
from resolution.program import Program, compile_program
from resolution.terms import show

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

Line = dict[str, Any]


@dataclass(frozen=True)
class Example:
    folder: Path

    @property
    def rules(self) -> Path:
        return next(self.folder.glob("*.rules"))

    @property
    def facts(self) -> Path:
        return self.folder / "facts.jsonl"

    @cached_property
    def program(self) -> Program:
        return compile_program(*read_program(self.rules))

    @cached_property
    def log(self) -> list[Fact]:
        return [read_event(line, self.program) for line in self.facts.read_text().splitlines()]

    @cached_property
    def arrivals(self) -> Arrivals:
        return Arrivals.of(self.log, self.program.delays)

    @property
    def tau(self) -> int:
        """The end of a run: the last arrival, in time or not."""
        return max(fact.arrival for fact in self.log)

    def expected(self) -> list[Line]:
        return ordered(map(json.loads, (self.folder / "expected.jsonl").read_text().splitlines()))

    def by_reference(self) -> list[Line]:
        program, arrived = self.program, self.arrivals.first
        return self._at_end(
            row(life, program.delays, arrived)
            for query in program.queries
            for life in lives(premise_sets(program, query), program.delays, arrived)
        )

    def by_kernel(self) -> list[Line]:
        table = pa.Table.from_pylist(
            [
                {
                    "group": 0,
                    "predicate": atom.predicate,
                    "args": list(map(show, atom.args)),
                    "time": atom.time.offset if atom.time else 0,
                    "arrival": arrival,
                    "fresh": True,
                }
                for atom, arrival in self.arrivals.first.items()
            ],
            schema=FACTS,
        )
        kernel = Kernel(self.program)
        return self._at_end(
            line
            for query in range(len(self.program.queries))
            for line in kernel.triples(query, table).to_pylist()
        )

    def _at_end(self, rows: Iterable[Line]) -> list[Line]:
        return ordered(_traced(rows, self.tau))


def _traced(rows: Iterable[Line], tau: int) -> Iterator[Line]:
    for found in rows:
        ends = [e for e in (found["end"], found["deadline"]) if e is not None]
        if found["start"] <= tau and all(tau < end for end in ends):
            yield {
                "tau": tau,
                "query": found["query"],
                "answer": found["answer"],
                "status": "pending" if found["hypotheses"] else "confirmed",
                "evidence": found["evidence"],
                "hypotheses": found["hypotheses"],
                "conditions": found["conditions"],
                "deadline": found["deadline"],
            }


def ordered(lines: Iterable[Line]) -> list[Line]:
    return sorted(lines, key=lambda line: json.dumps(line, ensure_ascii=False, sort_keys=True))


ALL = [Example(folder) for folder in sorted(EXAMPLES.iterdir()) if folder.is_dir()]
