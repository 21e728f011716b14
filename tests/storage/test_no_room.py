"""A disk that is full and a server that takes no writes: said in a line, and nothing is lost."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from typer.testing import CliRunner

from storage import embedded
from storage.errors import StagingLost, StoreDown, StoreError, StoreFull, StoreReadOnly
from storage.store import open_store
from tests.storage.changes import Running, a_program, triple

_MEGABYTES = 160
_CONFIRMED = "select count(*), count(distinct answer) from all_confirmed_answers where run = :run"


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A file system of its own, as only root can make one."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        disk = Path(name)
        disk.chmod(0o755)
        size = f"size={_MEGABYTES}m,mode=0755"
        made = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", size, "whilst-test", name],
            capture_output=True,
            text=True,
            check=False,
        )
        assert made.returncode == 0, f"this test mounts a small disk: {made.stderr.strip()}"
        try:
            yield disk
        finally:
            with contextlib.suppress(Exception):
                embedded.stop(disk / "home")
            subprocess.run(["umount", "--lazy", name], check=True)


@contextlib.contextmanager
def full(disk: Path) -> Iterator[None]:
    """Not a byte left."""
    ballast = disk / "ballast"
    try:
        with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
            for block in (1 << 20, 4096):
                with contextlib.suppress(OSError):
                    while file.write(bytes(block)):
                        pass
        yield
    finally:
        ballast.unlink()


def tried_until_done(running: Running, rows: list[dict[str, Any]]) -> None:
    """As a run does it: the same batch again, and computed again where it was lost."""
    end = time.monotonic() + 300
    while True:
        try:
            running.apply(*rows, tau=1, batch=1)
            return
        except StoreError as error:
            if time.monotonic() > end or not (error.retry or isinstance(error, StagingLost)):
                raise
            time.sleep(0.2)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a small disk")
def test_a_full_disk_loses_no_batch(small_disk: Path) -> None:
    rows = [triple(f"answer {n} {'x' * 500}", start=1) for n in range(20_000)]
    with open_store(home=small_disk / "home") as store:
        assert small_disk in embedded._folder(small_disk / "home").resolve().parents
        running = Running(store, a_program())
        running.apply(triple("before", start=0), tau=0)
        with full(small_disk):
            for _ in range(3):
                with pytest.raises(StoreError) as refused:
                    running.apply(*rows, tau=1, batch=1)
                assert isinstance(refused.value, StoreFull | StoreDown | StagingLost)
                assert "\n" not in str(refused.value)
        rows = rows[:2000]
        tried_until_done(running, rows)
        assert running.read(_CONFIRMED) == [(2001, 2001)]
        running.apply(*rows, tau=1, batch=1)  # a replay
        assert running.read(_CONFIRMED) == [(2001, 2001)]
        running.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a small disk")
def test_a_server_that_falls_over_a_full_disk_comes_back(small_disk: Path) -> None:
    """No room for its log ends a server, and each one that is started after it."""
    with open_store(home=small_disk / "home") as store:
        running = Running(store, a_program())
        running.apply(triple("before", start=0), tau=0)
        messages = (
            "select pg_logical_emit_message(false, '', repeat('x', 1000000)) "
            f"from generate_series(1, {2 * _MEGABYTES})"
        )
        with full(small_disk):
            with (
                pytest.raises(psycopg.OperationalError),
                psycopg.connect(store.url("owner"), autocommit=True) as db,
            ):
                db.execute(messages)
            with pytest.raises(StoreDown) as refused:
                running.apply(triple("after", start=1), tau=1, batch=1)
            assert "\n" not in str(refused.value)
        tried_until_done(running, [triple("after", start=1)])
        assert running.read(_CONFIRMED) == [(2, 2)]
        running.close()


def test_a_server_that_takes_no_writes_for_a_while(new_database: Callable[[str], str]) -> None:
    """As a standby, or a managed database whose disk is nearly full, does."""
    from monitor.cli import app

    url = new_database("set_read_only")
    with open_store(url) as store, psycopg.connect(url, autocommit=True) as db:
        running = Running(store, a_program())
        running.apply(triple("before", start=0), tau=0)
        db.execute("alter database set_read_only set default_transaction_read_only = on")
        running.writer.close()
        with pytest.raises(StoreReadOnly, match="takes no writes") as refused:
            running.apply(triple("after", start=1), tau=1)
        assert refused.value.retry
        with pytest.raises(StoreReadOnly):
            running.complete(1)
        assert running.read(_CONFIRMED) == [(1, 1)]  # who only reads goes on
        told = CliRunner().invoke(app, ["db", "prune", "--store", url, "--keep", "batches=3"])
        assert told.exit_code == 1
        assert len(told.stderr.splitlines()) == 1
        assert "takes no writes" in told.stderr
        db.execute("set default_transaction_read_only = off")
        db.execute("alter database set_read_only reset default_transaction_read_only")
        running.apply(triple("after", start=1), tau=1, batch=1)
        assert running.read(_CONFIRMED) == [(2, 2)]
        running.close()
