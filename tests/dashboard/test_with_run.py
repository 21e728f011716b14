"""The dashboard of a store that a real run fills: the program of `whilst init`, on Spark."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from monitor.setup.project import TEMPLATE
from tests.dashboard.serving import ROOT, WHILST, serving
from tests.services.ports import free

pytestmark = [pytest.mark.spark, pytest.mark.postgres, pytest.mark.service]

View = Callable[..., Page]
RULES = TEMPLATE / "turbines.rules"


@contextmanager
def running(home: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    log = home / "run.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*WHILST, "run", str(RULES), *options],
            cwd=home,
            env=os.environ | {"WHILST_HOME": str(home), "PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


def test_a_run_over_a_file_is_shown_to_its_end(view: View, new_home: Path) -> None:
    with running(new_home, "--source", str(TEMPLATE / "facts.jsonl"), "--once") as run:
        assert run.wait(300) == 0, (new_home / "run.log").read_text()
    with serving(new_home) as site:
        now = view(site)
        card = now.locator(".card", has_text="Malf(X, T)")
        expect(card.locator(".pending a")).to_have_text("2")
        expect(now.locator(".pill.finished")).to_be_visible()
        expect(now.locator(".figure", has_text="τ").locator("b")).to_have_text("τ 11")
        pending = view(f"{site}/pending")
        row = pending.locator("tr.opens", has_text="Malf(wt2, 9)")
        expect(row).to_contain_text("Temp(wt2, high, 11)")
        expect(row).to_contain_text("2 of 3")
        expect(row.locator("td.time").first).to_have_text("τ 13")
        row.click()
        expect(pending.locator(".tree")).to_contain_text("Shdn(wt2, 11)")
        expect(pending.locator(".tree .leaf.hypothesis")).to_have_count(1)
        refuted = view(f"{site}/refuted")
        expect(refuted.locator("tr.opens", has_text="Malf(wt5, 1)")).to_be_visible()
        health = view(f"{site}/health")
        expect(health.locator("tr", has_text="wt5")).to_have_count(1)
        rules = view(f"{site}/rules")
        expect(rules.locator(".premises", has_text="Malf(X, T)").first).to_contain_text(
            "Temp(X, high, T+2) 2 time points after it"
        )


def test_a_dashboard_beside_a_run_shows_what_arrives_and_ends_with_it(
    view: View, new_home: Path
) -> None:
    facts, port = new_home / "facts", free(1)[0]
    facts.mkdir()
    site = f"http://127.0.0.1:{port}"
    with running(new_home, "--source", str(facts), "--dashboard", str(port)) as run:
        _until(lambda: _up(site) or run.poll() is not None)
        page = view(site)
        expect(page.locator(".card")).to_be_visible(timeout=120_000)
        now = int(time.time())
        event = {"fact": "Temp", "args": ["wt1", "high"], "time": now + 60, "arrival": now + 60}
        new = new_home / "new"
        new.write_text(json.dumps(event) + "\n")
        new.rename(facts / "one.jsonl")
        pending = view(f"{site}/pending")
        expect(pending.locator("tr.opens", has_text="wt1").first).to_be_visible(timeout=120_000)
        os.kill(run.pid, signal.SIGKILL)
        run.wait(60)
        _until(lambda: not _up(site))


def _up(site: str) -> bool:
    try:
        return httpx.get(f"{site}/_stcore/health", timeout=5).status_code == 200
    except httpx.TransportError:
        return False


def _until(true: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.05)
