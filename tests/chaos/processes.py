"""Processes that a round starts, breaks and ends: these and their children, by id, no others."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path


class Child:
    """A command that is started again when it has ended, as a supervisor would."""

    def __init__(
        self, name: str, command: list[str], folder: Path, environment: Mapping[str, str]
    ) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self.starts = 0
        self.codes: list[int] = []
        self._command, self._folder, self._environment = command, folder, dict(environment)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """None where it does not run."""
        process = self._process
        return None if process is None or process.poll() is not None else process.pid

    def ensure(self) -> None:
        """Start it, if it has not been or has ended."""
        if self.pid is not None:
            return
        self._reap()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.starts += 1

    def kill(self) -> None:
        self.send(signal.SIGKILL)

    def send(self, number: signal.Signals) -> None:
        if self.pid is not None:
            os.kill(self.pid, number)

    def end(self, seconds: float = 120) -> int | None:
        """SIGTERM; its exit code. It is not started again."""
        process = self._process
        if process is None:
            return None
        orphans = list(family(process.pid)) if process.poll() is None else []
        self.send(signal.SIGCONT)
        self.send(signal.SIGTERM)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        code = process.returncode
        self._reap()
        for pid in orphans:
            signalled(pid, signal.SIGKILL)
        return code

    def text(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def _reap(self) -> None:
        if self._process is not None:
            self.codes.append(self._process.wait())
            self._process = None


def signalled(pid: int, number: signal.Signals) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
        return True
    return False


def family(pid: int) -> Iterator[int]:
    """A process's children and theirs, each after its parent."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    todo = list(children.get(pid, []))
    while todo:
        one = todo.pop(0)
        yield one
        todo += children.get(one, [])


def command_line(pid: int) -> str:
    try:
        return (Path("/proc") / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""
