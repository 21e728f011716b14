"""The dashboard as people start it: `whilst dashboard`, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.services.ports import free

WHILST = [sys.executable, "-c", "from monitor.cli import main; main()"]
ROOT = Path(__file__).parents[2]


@contextmanager
def serving(home: Path, *options: str, port: int | None = None) -> Iterator[str]:
    """A dashboard of the embedded store in that folder; its URL."""
    port = port or free(1)[0]
    log = home / f"dashboard-{port}.log"
    environment = os.environ | {"WHILST_HOME": str(home), "PYTHONPATH": str(ROOT)}
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*WHILST, "dashboard", "--port", str(port), *options],
            cwd=home,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        url = f"http://localhost:{port}"
        _wait(process, f"{url}/_stcore/health", log)
        yield url
    finally:
        process.terminate()
        process.wait(30)


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        try:
            if httpx.get(url, timeout=2).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    raise RuntimeError(f"the dashboard does not start: {log.read_text()}")
