"""Apache Flink, by its SQL: MATCH_RECOGNIZE with a watermark, or interval joins (`--way join`).

Runs in an environment of its own and knows nothing of Whilst but the protocol (see `protocol.py`).
"""

from __future__ import annotations

import shutil
import socket
import threading
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from protocol import Answer, Job, arguments, lines_of, reply
from pyflink.datastream import DataStream, StreamExecutionEnvironment
from pyflink.table import Schema, StreamTableEnvironment

_PAUSE = 0.05
"""Seconds between two time points of a paced run; Flink answers one in a few milliseconds."""

_CHAIN = """
SELECT k, t FROM ({rows}) MATCH_RECOGNIZE (
  PARTITION BY k ORDER BY ts MEASURES {answer} AS t
  ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW
  PATTERN ({pattern}) WITHIN INTERVAL '{within}' SECOND DEFINE {define})
"""
_ROWS = "SELECT args[1] AS k, {kind} AS kind, `time` AS t, ts FROM events{where}"


def _match(task: str, window: int) -> str:
    if task == "shortstop":
        # One row a time point, so the length of the whole says that none is missing between.
        return _CHAIN.format(
            rows=_ROWS.format(kind="fact", where=""),
            answer="E.t",
            pattern="O P{1,4} E",
            within=6,
            define="O AS O.kind <> 'Pos', P AS P.kind = 'Pos', "
            "E AS E.kind <> 'Pos' AND E.t = O.t + COUNT(P.t) + 1",
        )
    if task == "turbines":
        return _CHAIN.format(
            rows=_ROWS.format(kind="args[2]", where=" WHERE args[2] = 'high'"),
            answer="A.t",
            pattern="A B C",
            within=3,
            define="B AS B.t = A.t + 1, C AS C.t = B.t + 1",
        )
    return _CHAIN.format(
        rows=_ROWS.format(kind="args[2]", where=""),
        answer="S.t",
        pattern="F X*? S",
        within=window + 1,
        define="F AS F.kind = 'fail', "
        f"S AS S.kind = 'success' AND S.t > F.t AND S.t <= F.t + {window}",
    )


def _join(task: str, window: int) -> str:
    """What MATCH_RECOGNIZE cannot say: from one failure, *every* success within the window."""
    assert task == "login", task
    rows = {
        kind: "(" + _ROWS.format(kind="''", where=f" WHERE args[2] = '{kind}'") + ")"
        for kind in ("fail", "success")
    }
    pairs = (
        f"SELECT s.k, s.t, PROCTIME() AS p FROM {rows['success']} s JOIN {rows['fail']} f "
        "ON s.k = f.k AND s.ts BETWEEN f.ts + INTERVAL '1' SECOND "
        f"AND f.ts + INTERVAL '{window}' SECOND"
    )
    numbered = f"SELECT k, t, ROW_NUMBER() OVER (PARTITION BY k, t ORDER BY p) n FROM ({pairs})"
    return f"SELECT k, t FROM ({numbered}) WHERE n = 1"


_WAYS = {"match": _match, "join": _join}


def _environment(
    cores: int, buffer: int = 100
) -> tuple[StreamExecutionEnvironment, StreamTableEnvironment]:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(cores)
    env.set_buffer_timeout(buffer)
    tables = StreamTableEnvironment.create(env)
    conf = tables.get_config()
    conf.set("table.local-time-zone", "UTC")
    conf.set("table.exec.source.idle-timeout", "0 ms")
    conf.set("taskmanager.memory.network.fraction", "0.2")
    return env, tables


def _watermark(delay: int) -> str:
    # A row is late if it is not *after* the watermark, so one at the bound needs a little more.
    return f"ts - INTERVAL '{delay}.001' SECOND"


def run_fast(job: Job, way: str) -> dict[str, Any]:
    """All files as fast as they are read; the answers go to files, as everyone's do."""
    _, tables = _environment(job.cores)
    tables.execute_sql(
        f"""CREATE TABLE events (fact STRING, args ARRAY<STRING>, `time` BIGINT, arrival BIGINT,
        ts AS TO_TIMESTAMP_LTZ(`time` * 1000, 3), WATERMARK FOR ts AS {_watermark(job.delay)})
        WITH ('connector' = 'filesystem', 'path' = 'file://{job.log}', 'format' = 'json')"""
    )
    out = Path(job.scratch) / f"flink-{time.time_ns()}"
    tables.execute_sql(
        f"""CREATE TABLE answers (k STRING, t BIGINT)
        WITH ('connector' = 'filesystem', 'path' = 'file://{out}', 'format' = 'csv')"""
    )
    began = time.perf_counter()
    tables.execute_sql(f"INSERT INTO answers {_WAYS[way](job.task, job.window)}").wait()
    seconds = time.perf_counter() - began
    rows = {
        tuple(line.split(","))
        for file in out.rglob("*")
        if file.is_file()
        for line in file.read_text().splitlines()
    }
    shutil.rmtree(out)
    return {"seconds": seconds, "count": len(rows)}


def run_paced(job: Job, way: str) -> tuple[list[Answer], dict[str, Any]]:
    """A time point after the other through a socket; each answer with the one that it came in."""
    env, tables = _environment(1, buffer=0)  # nothing waits for company on its way
    fed: list[tuple[float, int]] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        feeder = threading.Thread(target=_feed, args=(server, job, fed), daemon=True)
        feeder.start()
        port = server.getsockname()[1]
        opened = env._j_stream_execution_environment.socketTextStream("127.0.0.1", port, "\n", 0)
        raw = DataStream(opened)
        schema = (
            Schema.new_builder()
            .column("f0", "STRING")
            .column_by_expression("fact", "JSON_VALUE(f0, '$.fact')")
            .column_by_expression(
                "args", "ARRAY[JSON_VALUE(f0, '$.args[0]'), JSON_VALUE(f0, '$.args[1]')]"
            )
            .column_by_expression("time", "CAST(JSON_VALUE(f0, '$.time') AS BIGINT)")
            .column_by_expression(
                "ts", "TO_TIMESTAMP_LTZ(CAST(JSON_VALUE(f0, '$.time') AS BIGINT) * 1000, 3)"
            )
            .watermark("ts", _watermark(job.delay))
            .build()
        )
        tables.create_temporary_view("events", tables.from_data_stream(raw, schema))
        sql = (
            "SELECT 'a' AS what, k, t, CAST(CURRENT_ROW_TIMESTAMP() AS STRING) AS known "
            f"FROM ({_WAYS[way](job.task, job.window)}) UNION ALL "
            "SELECT 'late', args[1], `time`, '' FROM events WHERE ts <= CURRENT_WATERMARK(ts)"
        )
        found: list[Answer] = []
        lost = 0
        with tables.execute_sql(sql).collect() as rows:
            for what, key, at, known in rows:
                if what == "late":
                    lost += 1
                    continue
                moment = datetime.fromisoformat(known + "+00:00").timestamp()
                tau = max((tau for began, tau in fed if began <= moment), default=fed[0][1])
                found.append(Answer(key, at, tau, tau))
        feeder.join()
    return found, {"lost": lost}


def _feed(server: socket.socket, job: Job, fed: list[tuple[float, int]]) -> None:
    connection, _ = server.accept()
    with connection:
        time.sleep(1)  # the operators behind the source are up
        for tau, lines in lines_of(job.events):
            fed.append((time.time(), tau))
            connection.sendall("".join(lines).encode())
            time.sleep(_PAUSE)


def main() -> None:
    options = arguments(ways=tuple(_WAYS))
    for job in options.jobs:
        if job.paced:
            reply(*run_paced(job, options.way))
        else:
            reply(None, run_fast(job, options.way))


if __name__ == "__main__":
    main()
