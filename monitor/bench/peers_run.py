"""Peers as processes: an environment for each, jobs in, results out, and the memory they take.

The scripts are in `benchmarks/peers`; `protocol.py` there says how they are spoken with.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from monitor.setup import java
from monitor.setup.places import ROOT, cache

SCRIPTS = ROOT / "benchmarks" / "peers"
_MARK = "RESULT "
_ALSO = "ALSO "
_SAMPLE = 0.25
"""Seconds between two looks at the memory."""
PATIENCE = 20.0
"""Seconds that a peer is given to end by itself once there are no more jobs."""


class PeerFailed(Exception):
    """A peer that cannot be had, or cannot do a task: why, in one line."""


@dataclass(frozen=True)
class Peer:
    name: str
    script: str
    way: str | None = None
    needs: tuple[str, ...] = ()
    """What its own environment holds; one without runs in ours."""
    most: int | None = None
    """Events beyond which it is not asked to go: it would take minutes."""
    cannot: tuple[tuple[str, str], ...] = ()
    """Tasks that it is not asked, each with the reason."""


PEERS = (
    Peer("pipeline", "whilst_peer.py", "pipeline"),
    Peer("kernel", "whilst_peer.py", "kernel"),
    Peer("reference", "whilst_peer.py", "reference", most=2_000),
    Peer("flink", "flink_peer.py", "match", ("apache-flink==2.3.0",)),
    Peer(
        "flink join",
        "flink_peer.py",
        "join",
        ("apache-flink==2.3.0",),
        cannot=(
            ("shortstop", "its joins in a chain did not end in 240 s"),
            ("turbines", "its joins in a chain did not end in 240 s"),
        ),
    ),
    Peer("spark join", "spark_peer.py"),
    Peer("duckdb", "duckdb_peer.py", None, ("duckdb",)),
    Peer("meteor", "meteor_peer.py", None, ("meteor-reasoner==2.0.0",), most=20_000),
)


def interpreter(peer: Peer) -> Path:
    """The Python of a peer's environment, which is made if it is not there. Raises PeerFailed."""
    if not peer.needs:
        return Path(sys.executable)
    folder = cache() / "bench" / peer.script.removesuffix("_peer.py")
    python = folder / "bin" / "python"
    stamp = folder / "needs.txt"
    wanted = "\n".join(peer.needs)
    if stamp.is_file() and stamp.read_text() == wanted and python.exists():
        return python
    folder.parent.mkdir(parents=True, exist_ok=True)
    _quietly([sys.executable, "-m", "venv", "--clear", "--without-pip", str(folder)], peer)
    uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", str(python)]
    _quietly([*uv, *peer.needs], peer)
    stamp.write_text(wanted)
    return python


def _quietly(command: list[str], peer: Peer) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["no reason given"]
        raise PeerFailed(f"does not install: {said[-1].strip()}")


class Running:
    """A peer that waits for jobs."""

    def __init__(self, peer: Peer, scratch: Path) -> None:
        self._errors = scratch / f"{peer.name.replace(' ', '-')}.err"
        environment = os.environ | {"JAVA_HOME": str(java.home_for_spark())}
        environment["PYTHONPATH"] = "" if peer.needs else str(ROOT)
        command = [str(interpreter(peer)), str(SCRIPTS / peer.script)]
        if peer.way is not None:
            command += ["--way", peer.way]
        self._lines: queue.Queue[str | None] = queue.Queue()
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors.open("w"),
            text=True,
            env=environment,
            cwd=scratch,
        )
        self._memory = Memory(self.process.pid)
        assert self.process.stdout is not None
        threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True).start()

    def _read(self, out: IO[str]) -> None:
        for line in out:
            if line.startswith(_ALSO):
                self._memory.also(line.removeprefix(_ALSO).strip())
            else:
                self._lines.put(line)
        self._lines.put(None)

    def do(self, job: dict[str, Any], limit: float) -> dict[str, Any]:
        """The result of a job, with `peak MB` while it ran. Raises PeerFailed."""
        assert self.process.stdin is not None
        self._memory.forget()
        try:
            self.process.stdin.write(json.dumps(job) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise PeerFailed(self._reason()) from None
        until = time.monotonic() + limit
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                raise PeerFailed(f"took more than {limit:.0f} s") from None
            if line is None:
                raise PeerFailed(self._reason())
            if line.startswith(_MARK):
                result: dict[str, Any] = json.loads(line.removeprefix(_MARK))
                return result | {"peak MB": self._memory.look()}

    def _reason(self) -> str:
        """The last line of its errors that names one."""
        self.process.wait(10)
        lines = [line.strip() for line in self._errors.read_text().splitlines()]
        named = [line for line in lines if "Error" in line or "Exception" in line]
        return (named or lines or ["ended without a word"])[-1][:200]

    def close(self) -> None:
        self._memory.stop()
        if self.process.stdin is not None:
            with suppress(BrokenPipeError):
                self.process.stdin.close()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            for pid in sorted(tree(self.process.pid, _processes()), reverse=True):
                _end(pid)
            self.process.wait()


@contextmanager
def running(peer: Peer, scratch: Path) -> Iterator[Running]:
    peer_process = Running(peer, scratch)
    try:
        yield peer_process
    finally:
        peer_process.close()


def _end(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, 9)


class Memory:
    """The most that a process and all that come from it had resident at one time, together."""

    def __init__(self, pid: int) -> None:
        self._roots = [pid]
        self._over = threading.Event()
        self.peak = 0
        threading.Thread(target=self._watch, daemon=True).start()

    def also(self, pid: str) -> None:
        """Another that belongs to it, though it does not come from it: a server it uses."""
        if pid.isdigit():
            self._roots.append(int(pid))

    def forget(self) -> None:
        self.peak = 0

    def stop(self) -> None:
        self._over.set()

    def _watch(self) -> None:
        while not self._over.wait(_SAMPLE):
            self.look()

    def look(self) -> int:
        """The peak so far, now included."""
        processes = _processes()
        wanted = {pid for root in self._roots for pid in tree(root, processes)}
        resident = sum(processes[pid][1] for pid in wanted if pid in processes)
        self.peak = max(self.peak, round(resident / 1024))
        return self.peak


def _processes() -> dict[int, tuple[int, int]]:
    """By process id: its parent, and its resident memory in KB."""
    out = subprocess.run(
        ["ps", "-axo", "pid=,ppid=,rss="], capture_output=True, text=True, check=True
    ).stdout
    rows = (map(int, line.split()) for line in out.splitlines())
    return {pid: (parent, size) for pid, parent, size in rows}


def tree(root: int, processes: dict[int, tuple[int, int]]) -> set[int]:
    """A process and all that come from it."""
    children: dict[int, list[int]] = defaultdict(list)
    for pid, (parent, _) in processes.items():
        children[parent].append(pid)
    found: set[int] = set()
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found.add(pid)
            waiting += children[pid]
    return found
