"""How fast alerts go to a receiver on this machine, and what a burst of them costs.

A store of its own, a receiver and a deliverer, each in a process of its own, as they are in life.
The receiver replies 204 to whatever comes.
"""

from __future__ import annotations

import asyncio
import multiprocessing as mp
import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psycopg

from monitor.alerts import outbox
from monitor.alerts.declarations import Alert
from monitor.alerts.deliverer import Deliverer
from storage.store import open_store

_SECRET = "WHILST_BENCH_SECRET"


def figures(scale: float = 1.0) -> Iterator[dict[str, Any]]:
    """One figure after another, as `whilst bench` prints them."""
    burst, steady = int(100_000 * scale), int(10_000 * scale)
    os.environ[_SECRET] = "whsec_" + "A" * 43 + "="
    context = mp.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder, open_store(home=Path(folder)) as store:
        url = store.url("writer")
        receiver, told = _started(context, _receive)
        try:
            port = told.recv()
            for task, count, endpoints in (
                ("one endpoint", steady, 1),
                ("ten endpoints", steady, 10),
                ("burst", burst, 1),
            ):
                _fill(url, port, count, endpoints)
                deliverer, said = _started(context, _deliver, url)
                seconds, base, peak = said.recv()
                deliverer.join()
                _check(url, count)
                yield _figure(task, "alerts/s", round(count / seconds))
                if task == "burst":
                    yield _figure(task, "alerts", count)
                    yield _figure(task, "seconds", round(seconds, 2))
                    yield _figure(task, "peak MB above start", round(peak - base, 1))
                if task == "one endpoint":
                    yield _figure(task, "latency p50 ms", _latency(url, 0.5))
                    yield _figure(task, "latency p99 ms", _latency(url, 0.99))
        finally:
            receiver.terminate()
            receiver.join()


def _figure(task: str, figure: str, value: float) -> dict[str, Any]:
    return {"bench": "alerts", "task": task, "figure": figure, "value": value}


def _started(context: Any, target: Any, *arguments: Any) -> tuple[Any, Connection]:
    ours, theirs = context.Pipe()
    process = context.Process(target=target, args=(*arguments, theirs), daemon=True)
    process.start()
    return process, ours


# --- the outbox --------------------------------------------------------------------------------


def _fill(url: str, port: int, count: int, endpoints: int) -> None:
    """As the writer fills it, without the answers."""
    alerts = [
        Alert(f"bench {n}", f"http://127.0.0.1:{port}/", f"env:{_SECRET}", allow_private=True)
        for n in range(endpoints)
    ]
    with psycopg.connect(url) as db:
        db.execute("truncate endpoints, outbox, delivery_attempts")
    outbox.register(url, alerts, "bench")
    with psycopg.connect(url) as db:
        db.execute(
            """
            insert into outbox (endpoint, webhook_id, event, run, program, query, answer_id, tau,
                                body)
            select e.ids[1 + n %% array_length(e.ids, 1)], 'msg_' || md5(n::text), 'confirmed', 0,
                   'bench', 'Malf', md5(n::text)::uuid, n,
                   jsonb_build_object(
                       'answer', 'Malf(wt' || n || ', 0)', 'bindings',
                       jsonb_build_object('X', 'wt' || n, 'T', 0), 'evidence',
                       jsonb_build_array('Temp(wt' || n || ', high, 0)',
                                         'Temp(wt' || n || ', high, 1)',
                                         'Temp(wt' || n || ', high, 2)'),
                       'arrivals', '[0, 2, 2]'::jsonb, 'hypotheses', '[]'::jsonb, 'closes',
                       '[]'::jsonb, 'conditions', '[]'::jsonb, 'deadline', null, 'since', 0,
                       'decided_at', 2, 'reason', null, 'unit_ms', 1000)
            from (select array_agg(id) as ids from endpoints) e, generate_series(1, %s) n
            """,
            (count,),
        )


def _check(url: str, count: int) -> None:
    with psycopg.connect(url) as db:
        row = db.execute("select count(*) from outbox where status = 'delivered'").fetchone()
    if row != (count,):
        raise RuntimeError(f"{row} of {count} alerts were delivered: the figure means nothing")


def _latency(url: str, part: float) -> float:
    with psycopg.connect(url) as db:
        row = db.execute(
            "select percentile_cont(%s) within group (order by latency_ms) from delivery_attempts",
            (part,),
        ).fetchone()
    assert row is not None
    return round(float(row[0]), 1)


# --- processes ---------------------------------------------------------------------------------


def _deliver(url: str, said: Connection) -> None:
    async def run() -> float:
        began = time.monotonic()
        await Deliverer(url, once=True).run()
        return time.monotonic() - began

    base = _peak()
    seconds = asyncio.run(run())
    said.send((seconds, base, _peak()))


def _peak() -> float:
    """The most memory this process ever had, in MB. (`getrusage` counts its parent's too.)"""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(one for one in status.read_text().splitlines() if one.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    scale = 1024 * 1024 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / scale


class _Receiver(asyncio.Protocol):
    """Just enough of HTTP to take a POST with a length."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._held = b""

    def data_received(self, data: bytes) -> None:
        self._held += data
        while (end := self._held.find(b"\r\n\r\n")) >= 0:
            head = self._held[:end].lower()
            length = int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
            if len(self._held) < end + 4 + length:
                return
            self._held = self._held[end + 4 + length :]
            self._transport.write(b"HTTP/1.1 204 No Content\r\n\r\n")


def _receive(said: Connection) -> None:
    async def serve() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(_Receiver, "127.0.0.1", 0)
        said.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(serve())
