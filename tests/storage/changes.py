"""Changes made by hand, and a store to put them into."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import psycopg
import pyarrow as pa

from resolution.changes import CHANGES
from storage.packing import packed
from storage.programs import ProgramInfo, QueryInfo, StreamInfo, VariableInfo, register_run
from storage.staging import stage_changes
from storage.store import Store
from storage.writer import Applied, BatchFigures, Writer

MALF = QueryInfo(
    "Malf", "Malf(X, T)", (VariableInfo("X", column="device"), VariableInfo("T", "time"))
)
TEMP = StreamInfo("Temp", (("device", None), ("level", None)), 1)


def digest(*parts: object) -> str:
    return hashlib.md5(repr(parts).encode()).hexdigest()


def triple(
    answer: str,
    evidence: Sequence[str] = ("e",),
    hypotheses: Sequence[str] = (),
    *,
    start: int,
    end: int | None = None,
    deadline: int | None = None,
    reason: str | None = None,
    conditions: Sequence[str] = (),
    bindings: dict[str, Any] | None = None,
    op: str = "put",
    query: str = "Malf",
) -> dict[str, Any]:
    """A row of CHANGES; by default the first hypothesis is the one that closes."""
    if reason is None and deadline is not None and hypotheses:
        reason = hypotheses[0]
    return {
        "op": op,
        "triple": digest(query, answer, sorted(hypotheses), sorted(conditions)),
        "answer_id": digest(query, answer),
        "query": query,
        "answer": answer,
        "bindings": json.dumps(bindings if bindings is not None else {"X": answer, "T": start}),
        "premise": 0,
        "evidence": list(evidence),
        "arrivals": [start] * len(evidence),
        "hypotheses": list(hypotheses),
        "closes": [deadline] * len(hypotheses),
        "conditions": list(conditions),
        "deadline": deadline,
        "reason": reason,
        "start": start,
        "end": end,
    }


def dropped(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "op": "drop"}


def table(rows: Sequence[dict[str, Any]], over: int = -1) -> pa.Table:
    return packed(pa.Table.from_pylist(list(rows), schema=CHANGES), over)


def a_program(name: str | None = None, **changes: Any) -> ProgramInfo:
    """A program with a name of its own, so that tests share a store without mixing."""
    made = ProgramInfo(name or f"p{uuid.uuid4().hex[:12]}", "% a program", 1000, (MALF,), (TEMP,))
    return replace(made, **changes)


@dataclass
class Running:
    """A run in a store: stage and commit in one call, and read what the store says of it."""

    store: Store
    program: ProgramInfo = field(default_factory=a_program)
    checkpoint: str = field(default_factory=lambda: uuid.uuid4().hex)

    def __post_init__(self) -> None:
        with self.store.engine("owner") as engine:
            self.run = register_run(engine, self.program, self.checkpoint, ["facts.jsonl"])
        self.batch = -1
        self.writer = Writer(self.store.url("writer"))

    def apply(
        self,
        *rows: dict[str, Any],
        tau: int | None = None,
        batch: int | None = None,
        figures: BatchFigures | None = None,
        over: int = -1,
    ) -> Applied:
        """One batch, staged as two partitions: all of an answer that is told first in one."""
        self.batch = self.batch + 1 if batch is None else batch
        parts: tuple[list[dict[str, Any]], ...] = ([], [])
        for number, row in enumerate(rows):
            parts[number % 2 if row["op"] != "first" else 0].append(row)
        for part, mine in enumerate(parts):
            staged = table(mine, over)
            stage_changes(self.store.url("writer"), self.run, self.batch, part, [staged])
        return self.writer.commit_batch(self.run, self.batch, tau, figures, over)

    def complete(self, tau: int) -> Applied:
        return self.writer.complete(self.run, tau)

    def read(self, select: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Rows by the reader's role; `:run` stands for the run."""
        with psycopg.connect(self.store.url("reader")) as db:
            return db.execute(select.replace(":run", str(self.run)), parameters or None).fetchall()

    def close(self) -> None:
        self.writer.close()
