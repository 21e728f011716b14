"""A store for all tests of this folder, and runs on the shared session that say what they wrote."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession

from monitor.run import Happening, Options, Run
from monitor.sources import Files, Topic, parse_source
from monitor.start import Loaded, make_run
from resolution.lives import lives, row
from resolution.program import Program, load
from resolution.terms import Atom
from storage.store import Store, open_store

Line = dict[str, Any]
COLUMNS = "query, answer, evidence, hypotheses, conditions, deadline, since, decided_at, reason"


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with open_store(home=tmp_path_factory.mktemp("store")) as opened:
        yield opened


@dataclass
class Monitor:
    """One program and its sources; every `once` goes on from where the last one ended."""

    spark: SparkSession
    store: Store
    home: Path
    loaded: Loaded
    sources: list[Files | Topic]
    happened: list[Happening] = field(default_factory=list)

    def run(self, options: Options, **more: Any) -> Run:
        return make_run(
            self.spark, self.store, self.home, self.loaded, self.sources, options,
            watch=self.happened.append, **more,
        )  # fmt: skip

    def once(self, options: Options | None = None, **more: Any) -> Run:
        run = self.run(options or Options(once=True), **more)
        run.start().awaitTermination()
        run.finish()
        run.close()
        return run

    def read(self, select: str) -> list[Line]:
        with psycopg.connect(self.store.url("reader")) as db:
            cursor = db.execute(select.replace(":name", f"'{self.loaded.name}'"))
            assert cursor.description
            names = [column.name for column in cursor.description]
            return [dict(zip(names, values, strict=True)) for values in cursor]

    def answers(self) -> list[Line]:
        """Everything that the store says about answers, in one order."""
        found = [
            {"status": status, **line}
            for status in ("pending", "confirmed", "refuted")
            for line in self.read(f"select {COLUMNS} from {status}_answers where program = :name")
        ]
        return ordered(found)

    def late(self) -> list[Line]:
        return self.read(
            "select fact, arrival, source, place from late_facts where program = :name "
            "order by source, length(place), place"
        )

    def rejected(self) -> list[Line]:
        return self.read(
            "select event, source, place, reason from rejected_events where program = :name "
            "order by source, length(place), place"
        )


@pytest.fixture
def monitor(spark: SparkSession, store: Store, tmp_path: Path) -> Callable[..., Monitor]:
    def make(program: Program | str, *sources: Path | str) -> Monitor:
        if isinstance(program, str):
            program = load(program)
        name = f"p{uuid.uuid4().hex[:12]}"  # tests share the store without mixing
        return Monitor(
            spark,
            store,
            tmp_path,
            Loaded.of(name, program),
            [parse_source(str(s)) for s in sources],
        )

    return make


def ordered(lines: Sequence[Line]) -> list[Line]:
    return sorted(lines, key=lambda line: json.dumps(line, sort_keys=True))


def expected(program: Program, arrived: dict[Atom, int], tau: int) -> list[Line]:
    """What the store must say at τ, by the lives of triples alone."""
    found: list[Line] = []
    for premises in Loaded.of("expected", program).sets:
        answers: dict[str, list[Line]] = {}
        for life in lives(premises, program.delays, arrived):
            if life.start <= tau:
                line = row(life, program.delays, arrived)
                answers.setdefault(line["answer_id"], []).append(line)  # type: ignore[arg-type]
        for rows in answers.values():
            found += _answer(rows, tau)
    return ordered(found)


def _answer(rows: list[Line], tau: int) -> list[Line]:
    since = min(r["start"] for r in rows)
    confirmed = [r for r in rows if not r["hypotheses"]]
    if confirmed:
        first = min(confirmed, key=lambda r: r["start"])
        return [_line("confirmed", first, since, first["start"], None, None)]
    pending = [r for r in rows if tau < min(_ends(r), default=tau + 1)]
    if pending:
        return [_line("pending", r, since, None, None, r["deadline"]) for r in pending]
    last = max(min(_ends(r)) for r in rows)
    closed = [r for r in rows if r["deadline"] == last and (r["end"] is None or r["end"] >= last)]
    reason = min((r["reason"] for r in closed), default=None)
    return [{"status": "refuted", "answer": rows[0]["answer"], "query": rows[0]["query"],
             "since": since, "decided_at": last, "reason": reason}]  # fmt: skip


def _ends(row: Line) -> list[int]:
    return [end for end in (row["end"], row["deadline"]) if end is not None]


def _line(
    status: str, row: Line, since: int, decided_at: int | None, reason: str | None,
    deadline: int | None,
) -> Line:  # fmt: skip
    kept = {name: row[name] for name in ("query", "answer", "evidence", "hypotheses", "conditions")}
    return {"status": status, **kept, "deadline": deadline, "since": since,
            "decided_at": decided_at, "reason": reason}  # fmt: skip


def comparable(lines: Sequence[Line]) -> list[Line]:
    """Of a refuted answer the store shows one of its triples; any will do."""
    shown = ("evidence", "hypotheses", "conditions", "deadline")
    return ordered(
        [
            {k: v for k, v in line.items() if line["status"] != "refuted" or k not in shown}
            for line in lines
        ]
    )
