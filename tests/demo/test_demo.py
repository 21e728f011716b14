"""`whilst demo` from its start to its end: what it says, and that nothing of it stays behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from storage.store import open_store
from tests.storage.changes import Running, a_program, triple

pytestmark = [pytest.mark.spark, pytest.mark.postgres]


@contextmanager
def demo(home: Path, **environment: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", "from monitor.cli import main; main()", "demo"],
        env=os.environ | {"WHILST_HOME": str(home)} | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            process.communicate()


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.1)


def parts_of(home: Path) -> list[str]:
    """The processes that were told of this folder, by their command lines."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            text = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
        except OSError:
            continue
        if str(home).encode() in text and int(folder.name) != os.getpid():
            found.append(text.split(b"\0\0")[0].decode(errors="replace")[:200])
    return found


def _leave_an_answer(home: Path) -> None:
    """What a demo before this one waited for when it ended."""
    with open_store(home=home) as store:
        before = Running(store, a_program())
        before.apply(triple("Malf(older, 0)", hypotheses=["Temp"], start=0, deadline=1), tau=0)
        before.close()


def test_it_runs_for_a_while_and_sums_up(tmp_path: Path) -> None:
    home = tmp_path / "a home"
    _leave_an_answer(home / "demo")
    kept = tmp_path / "machine code"
    compiling = {"NUMBA_CACHE_DIR": str(kept)}
    subprocess.run(
        [sys.executable, "-m", "monitor.setup.warm"], env=os.environ | compiling, check=True
    )
    warmed = set(kept.rglob("*.nbc"))
    with demo(home, DEMO_SECONDS="45", **compiling) as process:
        said, _ = process.communicate()
    assert process.returncode == 0, said
    assert set(kept.rglob("*.nbc")) == warmed  # `make setup` has compiled all that it needs
    assert re.search(r"the dashboard is at http://127\.0\.0\.1:\d+", said)
    assert "Three things to try" in said
    first = re.search(r"first pending answer after (\d+) s: Malf\(\w+, \d+\)", said)
    assert first, said
    assert "Malf(older, 0)" not in said
    found = re.search(
        r"(\d+) readings in time, (\d+) late, (\d+) rejected; "
        r"answers: (\d+) confirmed, (\d+) pending, (\d+) refuted",
        said,
    )
    assert found, said
    facts, _, rejected, confirmed, pending, refuted = map(int, found.groups())
    assert facts > 50
    assert rejected == 0
    assert confirmed + pending + refuted > 0
    wait_for(lambda: parts_of(home) == [])


def test_ctrl_c_ends_all_of_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with demo(home, DEMO_SECONDS="600") as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("first pending answer"):
                break
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
        assert process.wait() == 0, rest
    assert "readings in time" in rest
    wait_for(lambda: parts_of(home) == [])


def test_a_second_demo_is_refused_while_one_runs(tmp_path: Path) -> None:
    with open_store(home=tmp_path / "demo"), demo(tmp_path, DEMO_SECONDS="5") as process:
        said, _ = process.communicate()
    assert process.returncode == 1
    assert "a demo runs already" in said


def test_a_store_of_an_older_demo_is_brought_up(tmp_path: Path) -> None:
    from monitor.demo import _bring_up
    from storage import embedded, schema, version

    _bring_up(tmp_path)  # there is none yet
    assert not any(tmp_path.iterdir())
    with open_store(home=tmp_path) as store, store.engine("owner") as engine:
        schema.downgrade(engine, version.known()[0])
    _bring_up(tmp_path)
    with open_store(home=tmp_path) as store:
        assert version.of(store.url("owner")) == version.head()
    embedded.remove(tmp_path)
