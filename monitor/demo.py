"""`whilst demo`: store, wind farm, monitor and dashboard, from one command to its end.

The parts are those that a person would start by hand, each a process of its own; the farm is a
thread that writes files into the folder that the monitor watches. Whatever ends the demo ends all
of them, by their ids.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

import psycopg

from monitor.windfarm import RULES, Farm
from resolution.errors import WhilstError
from storage import embedded, version
from storage.store import home_folder, open_store

PORT = 8501
_OURS = "select id from runs where started_at >= %(since)s"
"""A demo before this one left its answers in the same store."""
_PATIENCE = 20.0  # seconds for a part to end by itself once it was asked to
_SLOWEST = 300.0  # seconds for a first answer, on a machine that is busy with something else


class DemoFailed(WhilstError):
    """Something that the demo needs did not work, and where to look."""


@dataclass(frozen=True, slots=True)
class Folder:
    """Where a demo keeps its things: apart from a store of the user's own."""

    path: Path

    @property
    def facts(self) -> Path:
        return self.path / "facts"

    @property
    def rules(self) -> Path:
        return self.path / "windfarm.rules"

    def log(self, name: str) -> Path:
        return self.path / "logs" / f"{name}.log"

    def prepare(self) -> None:
        """Everything anew but the database: the run is a fresh one, the tables are the same."""
        shutil.rmtree(self.facts, ignore_errors=True)
        self.facts.mkdir(parents=True)
        (self.path / "logs").mkdir(exist_ok=True)
        self.rules.write_text(RULES)


def run(seconds: float | None, say: Callable[[str], None]) -> None:
    """The whole demo, for so many seconds, or until it is told to end. Raises DemoFailed.

    With a limit it still waits for its first answer: a slow machine has something to sum up too.
    """
    folder = Folder(home_folder().absolute() / "demo")
    if folder.path.exists() and embedded.used(folder.path):
        raise DemoFailed(f"a demo runs already in {folder.path}; end it first, with Ctrl-C there")
    say(f"starting the store, the wind farm, the monitor and the dashboard ({folder.path})")
    folder.prepare()
    began = time.monotonic()
    since = datetime.now(UTC)
    _bring_up(folder.path)
    # The monitor takes longest to start: it does so while the store is made.
    with _told_to_end() as ended, _Parts(folder) as parts, ExitStack() as stack:
        parts.feed()
        parts.start("run", str(folder.rules), "--source", str(folder.facts), "--fresh")
        store = stack.enter_context(open_store(home=folder.path))
        port = _free_port()
        parts.start("dashboard", "--port", str(port))
        with psycopg.connect(store.url("reader"), autocommit=True) as db:
            first = _Greeting(folder, port, began, since, say)
            while not ended.wait(0.5):
                parts.check()
                first.look(db)
                passed = time.monotonic() - began
                if seconds is not None and passed >= (seconds if first.answered else _SLOWEST):
                    break
            say("\nending")
            parts.end()
            summary = _summary(db, since, time.monotonic() - began)
    say(summary)
    if seconds is not None and not first.answered and not ended.is_set():
        raise DemoFailed(f"no answer came up in {_SLOWEST:.0f} s; look into {folder.log('run')}")


def _bring_up(home: Path) -> None:
    """A store that an older demo left behind is this one's too."""
    if not (home / "postgres" / "data").exists():
        return
    with open_store(home=home, prepare=False) as store:
        found = version.of(store.url("owner"))
        if found in version.known()[:-1]:
            from storage import schema

            with store.engine("owner") as engine:
                schema.upgrade(engine)


@contextlib.contextmanager
def _told_to_end() -> Iterator[threading.Event]:
    """Set by Ctrl-C and by whatever else asks a process to end."""
    ended = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        ended.set()

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, end) for number in numbers}
    try:
        yield ended
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Parts:
    """What the demo started: processes, and the thread that is the wind farm."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._over = threading.Event()
        self._farm = threading.Thread(target=self._feed, name="wind farm", daemon=True)

    def __enter__(self) -> _Parts:
        return self

    def __exit__(self, *error: object) -> None:
        self.end()

    def start(self, command: str, *arguments: str) -> None:
        """A command of whilst, in a session of its own: Ctrl-C at the terminal reaches us alone."""
        with self._folder.log(command).open("wb") as log:
            self._processes[command] = subprocess.Popen(
                [sys.executable, "-c", "from monitor.cli import main; main()", command, *arguments],
                cwd=self._folder.path,  # settings of a project that we stand in are not the demo's
                env=_environment() | {"WHILST_HOME": str(self._folder.path)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def check(self) -> None:
        for name, process in self._processes.items():
            if process.poll() is not None:
                log = self._folder.log(name)
                last = log.read_text(errors="replace").strip().splitlines()[-1:]
                raise DemoFailed(
                    f"`whilst {name}` ended with {process.returncode}: "
                    f"{last[0] if last else 'no word'} (all of it in {log})"
                )

    def end(self) -> None:
        """Ask each part to end, and end by its id what does not, with what it started itself."""
        self._over.set()
        if self._farm.is_alive():
            self._farm.join()
        for process in self._processes.values():
            if process.poll() is None:
                process.terminate()
        patient_until = time.monotonic() + _PATIENCE
        for process in self._processes.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.1, patient_until - time.monotonic()))
            with contextlib.suppress(ProcessLookupError):  # Spark's Java, where Python left it
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._processes.clear()

    def feed(self) -> None:
        self._farm.start()

    def _feed(self) -> None:
        farm = Farm(int(time.time()))
        while not self._over.wait(1 - time.time() % 1):
            now = int(time.time())
            lines = list(farm.arriving(now))
            if lines:
                hidden = self._folder.facts / f".{now}"
                hidden.write_text("\n".join(lines) + "\n")
                hidden.replace(self._folder.facts / f"{now}.jsonl")


def _environment() -> dict[str, str]:
    """The environment without settings of whilst, but for the place of its jars.

    Java compiles once and lightly: a few readings a second never repay the rest, which would take
    as much of a small machine again until the first answer.
    """
    kept = {k: v for k, v in os.environ.items() if k[:7] != "WHILST_" or k == "WHILST_JARS"}
    java = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {kept.get('JAVA_TOOL_OPTIONS', '')}"
    return {**kept, "JAVA_TOOL_OPTIONS": java.strip()}


class _Greeting:
    """What is said once: the address when somebody answers there, then the first answer."""

    def __init__(
        self,
        folder: Folder,
        port: int,
        began: float,
        since: datetime,
        say: Callable[[str], None],
    ) -> None:
        self._folder, self._port, self._began, self._say = folder, port, began, say
        self._since = since
        self._served = False
        self.answered = False

    def look(self, db: psycopg.Connection[Any]) -> None:
        if not self._served and _serves(self._port):
            self._served = True
            self._say(f"the dashboard is at http://127.0.0.1:{self._port}")
        if not self.answered:
            self._first_answer(db)

    def _first_answer(self, db: psycopg.Connection[Any]) -> None:
        found = db.execute(
            "select answer, hypotheses->>0, deadline from pending_answers "
            f"where run in ({_OURS}) order by deadline limit 1",
            {"since": self._since},
        ).fetchone()
        if found is None:
            return
        self.answered = True
        answer, awaited, deadline = found
        by = datetime.fromtimestamp(deadline, UTC).strftime("%H:%M:%S UTC")
        after = time.monotonic() - self._began
        self._say(f"first pending answer after {after:.0f} s: {answer}")
        self._say(f"  it waits for {awaited}, until {by} at the latest")
        self._say(
            _TRY.format(
                port=self._port,
                home=shlex.quote(str(self._folder.path)),
                whilst=_command(),
                facts=shlex.quote(str(self._folder.facts)),
            )
        )


_TRY = """
Three things to try
  1. Open http://127.0.0.1:{port}, choose a pending answer, and watch what becomes of it.
  2. Ask what closes next, in another terminal:
       WHILST_HOME={home} {whilst} sql \\
         "select answer, hypotheses, deadline from pending_answers order by deadline limit 5"
  3. Make a turbine of your own fail, with three readings in a row:
       for i in 1 2 3; do
         printf '{{"fact": "Temp", "args": ["mine", "high"], "time": %s}}\\n' $(date +%s) \\
           > {facts}/mine-$i-$$.jsonl; sleep 1; done

Ctrl-C ends all of it."""


def _command() -> str:
    """How a person calls whilst in another terminal: by its place where it is not on the path."""
    here = shutil.which(sys.argv[0])
    if here is None or shutil.which("whilst") == here:
        return "whilst"
    return shlex.quote(os.path.abspath(here))


def _serves(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=1) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False


def _free_port() -> int:
    for port in (PORT, 0):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return int(probe.getsockname()[1])
    raise DemoFailed("there is no free port for the dashboard")


def _summary(db: psycopg.Connection[Any], since: datetime, seconds: float) -> str:
    views = (
        "pending_answers",
        "confirmed_answers",
        "refuted_answers",
        "late_facts",
        "rejected_events",
    )
    counts = ", ".join(f"(select count(*) from {view} where run in ({_OURS}))" for view in views)
    read = f"select coalesce(sum(facts), 0) from batches where run in ({_OURS})"
    found = db.execute(f"select {counts}, ({read})", {"since": since}).fetchone()
    assert found is not None
    pending, confirmed, refuted, late, rejected, facts = found
    return (
        f"in {seconds:.0f} s: {facts} readings in time, {late} late, {rejected} rejected; "
        f"answers: {confirmed} confirmed, {pending} pending, {refuted} refuted"
    )
