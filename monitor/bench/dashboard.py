"""What the dashboard costs, with a million pending answers at scale 1.

A browser looks at the dashboard of an embedded store as people do: `first paint` is the browser's
own figure, `first rows` until the table is there, `commit to screen` from the end of a batch's
transaction until its answer can be read. A viewer's share of a core is that of the dashboard's
process, and of the store's, over ten seconds with viewers less as long without.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

from storage import embedded
from storage.packing import packed
from storage.programs import ProgramInfo, QueryInfo, VariableInfo, register_run
from storage.staging import stage_changes
from storage.store import Store, open_store
from storage.writer import Writer

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

__all__ = ["crowd", "figures"]

_PENDING = 1_000_000
_VIEWERS = 4
_SECONDS = 10
_TRIES = 7


def figures(scale: float = 1.0) -> Iterator[dict[str, Any]]:
    """One figure after another, as `whilst bench` prints them."""
    pending = max(round(_PENDING * scale), 100)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        with open_store(home=home) as store:
            run = _run(store)
            crowd(store, run, pending)
            with _serving(home) as (url, process), _browser() as browser:
                yield from _first(browser, url)
                yield from _screen(browser, url, store, run)
                for name in ("", "pending"):
                    yield from _viewers(browser, url, name, process, home)
        embedded.remove(home)


def _figure(task: str, figure: str, value: float) -> dict[str, Any]:
    return {"bench": "dashboard", "task": task, "figure": figure, "value": value}


def _run(store: Store) -> int:
    query = QueryInfo("Malf", "Malf(X, T)", (VariableInfo("X"), VariableInfo("T", "time")))
    with store.engine("owner") as engine:
        return register_run(engine, ProgramInfo("turbines", "% bench", 1000, (query,)), "bench")


_CROWD = """
with made as (
    select md5('a' || n)::uuid as answer_id, md5('t' || n)::uuid as id,
           'wt' || (n % 50000) as device, %(now)s - 60 + n / 500 as at,
           case when n % 10 = 0 then null else %(now)s + 120 + n / 300 end as deadline
    from generate_series(1, %(rows)s) n
)
insert into triples (run, answer_id, id, query, answer, bindings, premise, evidence, arrivals,
                     hypotheses, closes, conditions, deadline, reason, start_tau, first_tau, batch,
                     live, shown, status, since, changed_at)
select %(run)s, answer_id, id, 'Malf', format('Malf(%s, %s)', device, at),
       jsonb_build_object('X', device, 'T', at), 1,
       jsonb_build_array(format('Temp(%s, high, %s)', device, at)), array[at],
       jsonb_build_array(format('Temp(%s, high, %s)', device, at + 10),
                         format('Temp(%s, high, %s)', device, at + 20)),
       array[deadline, deadline + 10], '[]', deadline,
       format('Temp(%s, high, %s)', device, at + 10),
       at, at, 0, true, true, 'pending', at, now()
from made
"""


def crowd(store: Store, run: int, rows: int) -> None:
    """That many pending answers of `Malf` for a run, one in ten of them without a deadline."""
    values = {"run": run, "rows": rows, "now": int(time.time())}
    # The statement is full of `%`: only the names in it are places.
    statement = _CROWD.replace("%", "%%")
    for name in values:
        statement = statement.replace(f"%%({name})s", f"%({name})s")
    with psycopg.connect(store.url("owner")) as db:
        db.execute(statement, values)
        db.execute(
            "update counts set pending = pending + %(rows)s where run = %(run)s and query = 'Malf'",
            values,
        )
        db.execute("analyze triples")


@contextmanager
def _serving(home: Path) -> Iterator[tuple[str, int]]:
    """The dashboard in a process of its own, as `whilst dashboard` starts it."""
    import socket

    import httpx

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from monitor.cli import main; main()",
            "dashboard",
            f"--port={port}",
        ],
        env=os.environ | {"WHILST_HOME": str(home)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    url = f"http://localhost:{port}"
    try:
        while process.poll() is None:
            try:
                httpx.get(f"{url}/_stcore/health", timeout=5).raise_for_status()
                break
            except httpx.HTTPError:
                time.sleep(0.05)
        yield url, process.pid
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def _browser() -> Iterator[Browser]:
    from monitor.setup.doctor import chromium
    from monitor.setup.places import SetupError

    path = chromium()
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        path = None
    if path is None:
        raise SetupError(
            "the dashboard is measured in a browser, and there is no Chromium",
            "make bench gets it, or: apt-get install chromium",
        )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"]
        )
        try:
            yield browser
        finally:
            browser.close()


def _opened(browser: Browser, url: str) -> Page:
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.goto(url)
    page.locator(".opens").first.wait_for(timeout=120_000)
    return page


def _first(browser: Browser, url: str) -> Iterator[dict[str, Any]]:
    """Coming to the page for the first time, and opening an answer on it."""
    painted, rows, opened = [], [], []
    for _ in range(_TRIES):
        began = time.perf_counter()
        page = _opened(browser, f"{url}/pending")
        rows.append(time.perf_counter() - began)
        entry = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
        painted.append(page.evaluate(entry) / 1000)
        began = time.perf_counter()
        page.locator("tr.opens").nth(3).click()
        page.locator("h1.title").wait_for()
        opened.append(time.perf_counter() - began)
        page.context.close()
    yield _figure("open Pending", "first paint ms", _ms(painted[1:]))
    yield _figure("open Pending", "first rows ms", _ms(rows[1:]))
    yield _figure("open an answer", "click to answer ms", _ms(opened[1:]))


def _screen(browser: Browser, url: str, store: Store, run: int) -> Iterator[dict[str, Any]]:
    """From the end of a transaction until its answer is on the screen of who waits for it."""
    page = _opened(browser, f"{url}/pending")
    spent = []
    with Writer(store.url("writer")) as writer:
        for number in range(2 * _TRIES):
            name = f"new{number}"
            stage_changes(store.url("writer"), run, number, 0, [_change(name, number)])
            writer.commit_batch(run, number, None)
            began = time.perf_counter()
            page.locator("tr.opens", has_text=name).wait_for(timeout=60_000)
            spent.append(time.perf_counter() - began)
            time.sleep(0.37)  # so that commits fall anywhere between two looks at the store
    page.context.close()
    yield _figure("a new answer", "commit to screen ms", _ms(spent))
    yield _figure("a new answer", "commit to screen, longest ms", round(max(spent) * 1000))


def _change(name: str, number: int) -> Any:
    """One pending answer that decides before all others."""
    import pyarrow as pa

    from resolution.changes import CHANGES

    now = int(time.time())
    row = {
        "op": "put",
        "triple": f"{2 * number + 1:032x}",
        "answer_id": f"{2 * number + 2:032x}",
        "query": "Malf",
        "answer": f"Malf({name}, {now})",
        "bindings": f'{{"X": "{name}", "T": {now}}}',
        "premise": 1,
        "evidence": [f"Temp({name}, high, {now})"],
        "arrivals": [now],
        "hypotheses": [f"Temp({name}, high, {now + 1})"],
        "closes": [now],
        "conditions": [],
        "deadline": 1000 - number,
        "reason": f"Temp({name}, high, {now + 1})",
        "start": now,
        "end": None,
    }
    return packed(pa.Table.from_pylist([row], schema=CHANGES), -1)


def _viewers(
    browser: Browser, url: str, name: str, process: int, home: Path
) -> Iterator[dict[str, Any]]:
    """What viewers who only look cost the dashboard and the store, each."""
    task = f"watch {name.capitalize() or 'Now'}"
    server = embedded.pid(home)
    assert server is not None
    idle = _spent(process, server)
    pages = [_opened(browser, f"{url}/{name}") for _ in range(_VIEWERS)]
    time.sleep(2)  # coming is measured elsewhere
    busy = _spent(process, server)
    for page in pages:
        page.context.close()
    for part, before, after in zip(("dashboard", "store"), idle, busy, strict=True):
        share = max(0.0, after - before) / _SECONDS / _VIEWERS
        yield _figure(task, f"{part} cores a viewer", round(share, 4))


def _spent(process: int, server: int) -> tuple[float, float]:
    """Seconds of CPU that the dashboard, and the server with its children, take in ten seconds."""
    before = _cpu(process), sum(map(_cpu, _family(server)))
    time.sleep(_SECONDS)
    after = _cpu(process), sum(map(_cpu, _family(server)))
    return after[0] - before[0], after[1] - before[1]


def _cpu(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except FileNotFoundError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _family(server: int) -> list[int]:
    children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    return [server, *map(int, children)]


def _ms(seconds: list[float]) -> int:
    return round(statistics.median(seconds) * 1000)
