"""What the store costs: merging a batch, closing by deadline, and the questions that pages ask.

At scale 1 the store holds 10 million pending answers. Ratios `vs copy` are against a plain COPY of
the same rows, in the same run, into a table with the columns and the indexes of `triples` and as
many rows in it; the one against a bare table without any index is given too, so that both can be
read: a share of the difference is what indexes cost, whoever fills them.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg

from storage import embedded
from storage.packing import packed
from storage.programs import ProgramInfo, QueryInfo, VariableInfo, register_run
from storage.staging import stage_changes
from storage.store import Store, open_store
from storage.writer import Writer

_MILLIONS = 10_000_000
_DEVICES = 20_000
_ROWS = 100_000
_COLUMNS = (
    "run, batch, op, id, answer_id, query, answer, bindings, premise, evidence, arrivals, "
    "hypotheses, closes, conditions, deadline, reason, start_tau, end_tau"
)


def figures(scale: float = 1.0) -> Iterator[dict[str, Any]]:
    """One figure after another, as `whilst bench` prints them."""
    pending = max(round(_MILLIONS * scale), 3000)
    rows = max(round(_ROWS * min(scale * 10, 1)), 1000)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        try:
            with open_store(home=home) as store:
                yield from _merging(store, rows)
                run = _filled(store, "big", pending)
                yield from _closing(store, rows, pending, run)
                yield from _pages(store, run)
        finally:
            embedded.remove(home)


def _figure(task: str, figure: str, value: float | str) -> dict[str, Any]:
    return {"bench": "store", "task": task, "figure": figure, "value": value}


def _run(store: Store, name: str) -> int:
    query = QueryInfo("Malf", "Malf(X, T)", (VariableInfo("X"), VariableInfo("T", "time")))
    with store.engine("owner") as engine:
        return register_run(engine, ProgramInfo(name, "% bench", 1000, (query,)), name)


def _rows(first: int, count: int, left: int, op: str = "first") -> Any:
    """Changes as the kernel gives them: answers that wait for `left` of three facts."""
    import pyarrow as pa

    from resolution.changes import CHANGES

    numbers = range(first, first + count)
    facts = [f"Temp(wt{n % _DEVICES}, high, {n // _DEVICES})" for n in numbers]
    columns = {
        "op": [op] * count,
        "triple": [f"{n * 3 + left:032x}"[::-1] for n in numbers],
        "answer_id": [f"{n:032x}"[::-1] for n in numbers],  # as far from each other as hashes are
        "query": ["Malf"] * count,
        "answer": [f"Malf(wt{n % _DEVICES}, {n // _DEVICES})" for n in numbers],
        "bindings": [f'{{"X": "wt{n % _DEVICES}", "T": {n // _DEVICES}}}' for n in numbers],
        "premise": [0] * count,
        "evidence": [[fact] * (3 - left) for fact in facts],
        "arrivals": [[1] * (3 - left)] * count,
        "hypotheses": [[fact] * left for fact in facts],
        "closes": [[9] * left] * count,
        "conditions": [[]] * count,
        "deadline": [n // _DEVICES + 9 if left else None for n in numbers],
        "reason": [fact if left else None for fact in facts],
        "start": [3 - left] * count,
        "end": [None] * count,
    }
    return pa.Table.from_pydict(columns, schema=CHANGES)


# --- merging -----------------------------------------------------------------------------------


def _merging(store: Store, rows: int) -> Iterator[dict[str, Any]]:
    """Five batches of new answers into a run; COPY of the same into an equal and a bare table."""
    import pyarrow as pa

    run = _run(store, "merge")
    batches = [_rows(number * rows, rows, 2) for number in range(5)]
    url = store.url("writer")
    with psycopg.connect(store.url("owner"), autocommit=True) as db:
        db.execute("create table bare (like staged_changes)")
        db.execute("create table equal (like staged_changes)")
        db.execute("alter table equal add primary key (answer_id, id, run)")
        db.execute("create index on equal (deadline, query) where live")
        db.execute("create index on equal (answer_id) where shown")
        db.execute("create index on equal using spgist ((bindings ->> 'X')) where shown")
        spent: dict[str, list[float]] = {"bare": [], "equal": [], "stage": [], "merge": []}
        with Writer(url) as writer:
            for number, batch in enumerate(batches):
                for table in ("bare", "equal"):
                    spent[table].append(_copied(db, table, batch))
                began = time.perf_counter()
                stage_changes(url, run, number, 0, [packed(batch, 0)])
                staged = time.perf_counter()
                writer.commit_batch(run, number, None)
                spent["stage"].append(staged - began)
                spent["merge"].append(time.perf_counter() - staged)
            ended, grown = _rows(0, rows, 2, "put"), _rows(0, rows, 1, "new")
            place = ended.schema.get_field_index("end")
            ended = ended.set_column(place, ended.schema.field(place), pa.array([2] * rows))
            began = time.perf_counter()
            stage_changes(url, run, 5, 0, [packed(pa.concat_tables([ended, grown]), 0)])
            writer.commit_batch(run, 5, None)
            progress = time.perf_counter() - began
        db.execute("drop table bare, equal")
    best = {name: min(values[1:]) for name, values in spent.items()}
    ours = best["stage"] + best["merge"]
    yield _figure("new answers", "changes/s", round(rows / ours))
    yield _figure("new answers", "merge changes/s", round(rows / best["merge"]))
    yield _figure("new answers", "copy rows/s", round(rows / best["equal"]))
    yield _figure("new answers", "vs copy", round(best["equal"] / ours, 2))
    yield _figure("new answers", "vs copy without indexes", round(best["bare"] / ours, 2))
    yield _figure("progress", "changes/s", round(2 * rows / progress))


def _copied(db: psycopg.Connection[Any], table: str, batch: Any) -> float:
    """Seconds to COPY the rows, the making of the text included as it is for ours."""
    from storage.staging import _changes, _csv, _pieces

    began = time.perf_counter()
    [changes] = map(_changes, _pieces(packed(batch, 0), len(batch)))
    named = ", ".join(("run", "batch", "part", *changes.schema.names))
    with (
        db.cursor() as cursor,
        cursor.copy(f"copy {table} ({named}) from stdin (format csv)") as to,
    ):
        to.write(_csv(changes, (1, 1, 1)))
    return time.perf_counter() - began


# --- ten million -------------------------------------------------------------------------------


def _filled(store: Store, name: str, pending: int) -> int:
    """A run with that many pending answers, and a tenth as many confirmed ones."""
    run = _run(store, name)
    with psycopg.connect(store.url("owner"), autocommit=True) as db:
        db.execute("set maintenance_work_mem = '1GB'")
        like = f"like triples_{run} including defaults including constraints"
        db.execute(f"create table filled ({like})")
        db.execute(
            f"""
            insert into filled (answer_id, id, run, query, answer, bindings, premise, evidence,
                arrivals, hypotheses, closes, conditions, deadline, reason, start_tau, first_tau,
                batch, live, shown, status, since, decided_at, changed_at)
            select md5(n::text)::uuid, md5('t' || n)::uuid, {run}, 'Malf',
                   format('Malf(wt%s, %s)', n %% {_DEVICES}, n / {_DEVICES}),
                   jsonb_build_object('X', 'wt' || n %% {_DEVICES}, 'T', n / {_DEVICES}), 0,
                   jsonb_build_array(format('Temp(wt%s, high, %s)', n %% {_DEVICES}, 1)), '{{1}}',
                   case when n > {pending} then '[]' else jsonb_build_array(fact) end,
                   case when n > {pending} then '{{}}'::bigint[] else '{{9}}' end, '[]',
                   case when n <= {pending} then n + 9 end, case when n <= {pending} then fact end,
                   1, 1, 0, n <= {pending}, true,
                   case when n <= {pending} then 'pending' else 'confirmed' end, 1,
                   case when n > {pending} then n end, now()
            from generate_series(1, {pending} + {pending} / 10) n,
                 lateral (select format('Temp(wt%s, high, 2)', n %% {_DEVICES}) as fact) f
            """.replace("%%", "%")
        )
        db.execute(f"alter table triples detach partition triples_{run}")
        db.execute(f"drop table triples_{run}")
        db.execute(f"alter table filled rename to triples_{run}")
        db.execute(f"create index on triples_{run} using spgist ((bindings ->> 'X')) where shown")
        db.execute(f"alter table triples attach partition triples_{run} for values in ({run})")
        db.execute(
            "update counts set pending = %s, confirmed = %s where run = %s",
            (pending, pending // 10, run),
        )
        db.execute(f"vacuum analyze triples_{run}")
    return run


def _closing(store: Store, rows: int, pending: int, run: int) -> Iterator[dict[str, Any]]:
    """Close as many in a run that has ten times as many as in one that has all of them."""
    few = _filled(store, "few", rows * 3)
    with Writer(store.url("writer")) as writer:
        for task, number, total in (
            ("closing", few, rows * 3),
            ("closing", run, pending),
        ):
            began = time.perf_counter()
            done = writer.complete(number, rows + 9)
            seconds = time.perf_counter() - began
            assert done.refuted == rows, done
            yield _figure(task, f"seconds for {rows} of {total}", round(seconds, 3))
            plain = _plainly_closed(store, number, rows)
            yield _figure(task, f"vs plain update, of {total}", round(plain / seconds, 2))
        tau = 3 * rows + 9
        new = _rows(0, rows, 1, "first")
        place = new.schema.get_field_index("deadline")
        new = new.set_column(place, new.schema.field(place), [[2 * tau] * rows])
        stage_changes(store.url("writer"), few, 1, 0, [packed(new, tau)])
        began = time.perf_counter()
        done = writer.commit_batch(few, 1, tau, over=tau)
        seconds = time.perf_counter() - began
        assert (done.pending, done.refuted) == (rows, 2 * rows), done
        yield _figure("closing", "seconds beside as many new answers", round(seconds, 3))
        writer.complete(run, 2 * rows + 9)
        began = time.perf_counter()
        writer.complete(run, 2 * rows + 10)
        seconds = time.perf_counter() - began
        yield _figure("closing", f"milliseconds for 1 of {pending}", round(seconds * 1000, 1))


def _plainly_closed(store: Store, run: int, rows: int) -> float:
    """Seconds to change as many rows of the same table by the plainest of updates."""
    with psycopg.connect(store.url("writer"), autocommit=True) as db:
        began = time.perf_counter()
        changed = db.execute(
            f"update triples_{run} set live = false, status = 'refuted', decided_at = deadline, "
            "changed_at = now() where live and deadline > %s and deadline <= %s",
            (rows + 9, 2 * rows + 9),
        ).rowcount
        assert changed == rows, changed
        return time.perf_counter() - began


def _pages(store: Store, run: int) -> Iterator[dict[str, Any]]:
    """The questions that pages ask, with how the server goes about each."""
    with psycopg.connect(store.url("reader"), autocommit=True) as db:
        (one,) = _one(db, f"select id from answers where run = {run} limit 1")
        for task, select in (
            ("pending by deadline", f"select * from all_pending_answers where run = {run} "
             "order by deadline limit 50"),
            ("pending, a later page", f"select * from all_pending_answers where run = {run} "
             "and deadline > 300000 order by deadline limit 50"),
            ("pending of all programs", "select * from pending_answers order by deadline limit 50"),
            ("one answer", f"select * from answers where run = {run} and id = '{one}'"),
            ("history of one answer", f"select * from history where run = {run} "
             f"and answer_id = '{one}'"),
            ("by binding", f"select * from answers where run = {run} and bindings ->> 'X' = 'wt7' "
             "limit 50"),
            ("by column of the typed view", "select * from big.malf where x = 'wt7' limit 50"),
            ("newest confirmed", f"select * from all_confirmed_answers where run = {run} "
             "order by decided_at desc limit 50"),
            ("counts", f"select * from counts where run = {run}"),
        ):  # fmt: skip
            spent = []
            for _ in range(6):
                began = time.perf_counter()
                db.execute(select).fetchall()
                spent.append((time.perf_counter() - began) * 1000)
            yield _figure(task, "milliseconds", round(statistics.median(spent[1:]), 1))
            yield _figure(task, "first milliseconds", round(spent[0], 1))
            yield _figure(task, "plan", _plan(db, select))


def _one(db: psycopg.Connection[Any], select: str) -> tuple[Any, ...]:
    row: tuple[Any, ...] | None = db.execute(select).fetchone()
    assert row is not None
    return row


def _plan(db: psycopg.Connection[Any], select: str) -> str:
    """How tables are read: the scans of the plan, in order."""
    lines = [line for (line,) in db.execute(f"explain (costs off) {select}")]
    return ", ".join(line.strip(" ->") for line in lines if " Scan" in line)
