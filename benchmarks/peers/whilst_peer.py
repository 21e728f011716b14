"""Whilst, in three ways: the reference evaluator, the kernel, the whole pipeline into a store."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as paj
from protocol import Answer, Job, arguments, files_of, reply, span_of

from resolution.facts import Arrivals
from resolution.kernel import FACTS, Kernel
from resolution.lives import lives
from resolution.premises import premise_sets
from resolution.program import load

Result = tuple[list[Answer] | None, dict[str, Any]]

_ANSWER = re.compile(r"\w+\((.+), (\d+)\)")


def _answer(text: str, known: int) -> Answer:
    key, at = _ANSWER.fullmatch(text).groups()  # type: ignore[union-attr]
    return Answer(key, int(at), known, known)


def reference(job: Job) -> Result:
    """One incremental step of the definition after another, in plain Python."""
    from monitor.factfiles import read_facts

    began = time.perf_counter()
    program = load(job.program)
    events = read_facts(map(str, files_of(job.events)), program)
    arrived = Arrivals.of((e.fact for e in events if e.fact is not None), program.delays)
    sets = premise_sets(program, program.queries[0])
    found = [
        _answer(str(life.triple.answer), life.start)
        for life in lives(sets, program.delays, arrived.first)
        if life.triple.confirmed
    ]
    seconds = time.perf_counter() - began
    return found, {"seconds": seconds, "count": len(found), "lost": 0, "late": len(arrived.late)}


def kernel(job: Job) -> Result:
    """All lives of all triples, with their text, on one core."""
    began = time.perf_counter()
    events = paj.read_json(job.log)
    count = len(events)
    late = pc.greater(events["arrival"], pc.add(events["time"], job.delay))
    events = events.filter(pc.invert(late))
    size = len(events)
    facts = pa.table(
        {
            "group": pa.array(np.zeros(size, np.int64)),
            "key": pa.nulls(size, pa.string()),
            "first": pa.nulls(size, pa.int64()),
            "past": pa.nulls(size, pa.int64()),
            "predicate": events["fact"],
            "args": events["args"],
            "time": events["time"],
            "arrival": events["arrival"],
            "fresh": pa.array(np.ones(size, np.bool_)),
        },
        schema=FACTS,
    )
    program = load(job.program)
    made = Kernel(program)
    triples = pa.concat_tables(made.triples(q, facts) for q in range(len(program.queries)))
    confirmed = triples.filter(pc.equal(pc.list_value_length(triples["hypotheses"]), 0))
    rows = zip(confirmed["answer"].to_pylist(), confirmed["start"].to_pylist(), strict=True)
    seconds = time.perf_counter() - began
    found = [_answer(text, start) for text, start in rows] if job.paced else None
    told = {"seconds": seconds, "count": len(confirmed), "lost": 0, "late": count - size}
    return found, told


class Pipeline:
    """Spark, the kernel in it, and the embedded Postgres, held up from one job to the next."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._cores = 0
        self._made = 0

    def __call__(self, job: Job) -> Result:
        from monitor.run import BatchDone, Happening, Options
        from monitor.sources import Files
        from monitor.start import Loaded, make_run

        if self._cores != job.cores:
            self._start(job)
        self._made += 1
        loaded = Loaded.of(f"peer{self._made}", load(job.program))
        files = files_of(job.events)
        found: dict[str, Answer] = {}
        late = changes = 0
        kernel_ms = 0.0

        def watch(what: Happening) -> None:
            nonlocal late, changes, kernel_ms
            if not isinstance(what, BatchDone):
                return
            late += what.late
            changes += what.figures.changes
            kernel_ms += what.figures.kernel_ms or 0
            if job.paced:
                read = files[what.batch * job.batch : (what.batch + 1) * job.batch]
                first, last = span_of(read)
                for text in self._confirmed(loaded.name):
                    if text not in found:
                        answer = _answer(text, 0)
                        found[text] = Answer(answer.key, answer.time, first, last)

        began = time.perf_counter()
        options = Options(once=True, most_files=job.batch)
        run = make_run(
            self._spark,
            self._store,
            self._home,
            loaded,
            [Files(Path(job.events))],
            options,
            watch=watch,
        )
        run.start().awaitTermination()
        run.finish()
        seconds = time.perf_counter() - began
        run.close()
        if run.failure is not None:
            raise run.failure
        count = len(self._confirmed(loaded.name))
        told = {"seconds": seconds, "count": count, "lost": 0, "late": late}
        told |= {"changes": changes, "kernel s": kernel_ms / 1000}
        return list(found.values()) if job.paced else None, told

    def _start(self, job: Job) -> None:
        from monitor.spark_session import session
        from storage import embedded
        from storage.store import open_store

        self.close()
        folder = self._open.enter_context(tempfile.TemporaryDirectory(dir=job.scratch))
        self._home = Path(folder) / "home"
        self._open.callback(embedded.remove, self._home)
        partitions = {"spark.sql.shuffle.partitions": str(job.cores)}
        self._spark = session(f"local[{job.cores}]", app="peer", conf=partitions)
        self._open.callback(self._spark.stop)
        self._store = self._open.enter_context(open_store(home=self._home))
        self._cores = job.cores
        print(f"ALSO {embedded.pid(self._home)}", flush=True)

    def _confirmed(self, program: str) -> list[str]:
        import psycopg

        with psycopg.connect(self._store.url("reader")) as db:
            rows = db.execute(
                "select answer from confirmed_answers where program = %s", (program,)
            ).fetchall()
        return [answer for (answer,) in rows]

    def close(self) -> None:
        self._open.close()


def main() -> None:
    options = arguments(ways=("reference", "kernel", "pipeline"))
    pipeline = Pipeline()
    ways: dict[str, Callable[[Job], Result]] = {
        "reference": reference,
        "kernel": kernel,
        "pipeline": pipeline,
    }
    try:
        for job in options.jobs:
            found, told = ways[options.way](job)
            reply(found if job.paced else None, told)
    finally:
        pipeline.close()


if __name__ == "__main__":
    main()
