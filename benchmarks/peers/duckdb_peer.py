"""DuckDB in batch: the whole log is there, and one query is asked of it."""

from __future__ import annotations

import time
from typing import Any

import duckdb
from protocol import Answer, Job, arguments, known_at_the_end, reply

_READ = (
    "create table facts as select fact, args[1] as k, args[2] as level, time as t from read_json("
    "'{log}', format = 'newline_delimited', columns = {{fact: 'varchar', args: 'varchar[]', "
    "time: 'bigint', arrival: 'bigint'}})"
)


def _chain(kinds: list[str], step: int) -> str:
    text = f"select a0.k, a0.t from {kinds[0]} a0"
    for number, kind in enumerate(kinds[1:], start=1):
        text += (
            f" join {kind} a{number} on a{number}.k = a0.k and a{number}.t = a0.t + {number * step}"
        )
    return text


def query(task: str, window: int) -> str:
    if task == "turbines":
        high = "with high as materialized (select distinct k, t from facts where level = 'high') "
        return f"{high} select distinct * from ({_chain(['high'] * 3, 1)})"
    if task == "shortstop":
        chains = (_chain(["away", *["there"] * k, "away"], -1) for k in (1, 2, 3, 4))
        return (
            "with away as materialized (select distinct k, t from facts where fact <> 'Pos'), "
            "there as materialized (select distinct k, t from facts where fact = 'Pos') "
            f"select distinct * from ({' union all '.join(chains)})"
        )
    return (
        "select distinct s.k, s.t from facts s join facts f on f.k = s.k and f.t < s.t "
        f"and s.t <= f.t + {window} where s.level = 'success' and f.level = 'fail'"
    )


def run(job: Job) -> tuple[list[Answer] | None, dict[str, Any]]:
    began = time.perf_counter()
    with duckdb.connect(config={"threads": job.cores}) as db:
        db.execute(_READ.format(log=job.log))
        rows = db.execute(query(job.task, job.window)).fetchall()
    seconds = time.perf_counter() - began
    return known_at_the_end(job, rows, seconds)


def main() -> None:
    for job in arguments().jobs:
        reply(*run(job))


if __name__ == "__main__":
    main()
