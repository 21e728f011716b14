"""Load and limits: what a run costs in memory when it goes on for long, or is given far too much.

`python -m tests.chaos.soak NAME --events N` for steady, backlog, malformed, keys, hot; or all. Each
starts a broker, a Postgres and `whilst run`, watches them, prints figures as JSON lines, and leaves
what it sampled as CSV and, for people, as a plot.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg

from tests.chaos.check import rows
from tests.chaos.processes import Child, command_line, family
from tests.chaos.round import terminate_quietly
from tests.services.kafka import Broker
from tests.services.postgres import Postgres

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """\
unit 1s.
stream Temp(device, level) delay {delay}.
Flag(X, T) <- Temp(X, high, T).
Cool(X, T+1) <- Flag(X, T), Flag(X, T+1).
Shdn(X, T+1) <- Cool(X, T), Flag(X, T+1).
Malf(X, T-2) <- Shdn(X, T).
query Malf(X, T).
"""
DEVICES = 2000
PARTS = ("driver MB", "JVM MB", "workers MB", "store MB")
"""Memory of processes; beside it Spark's state and the size of the database are sampled."""
PATIENCE = 1800.0


class Bed:
    """A topic of three partitions, a store and a run, watched once a second."""

    def __init__(self, name: str, out: Path, delay: str = "5s", *arguments: str) -> None:
        self.name, self.out = name, out
        self._delay, self._arguments = delay, arguments
        self._stack = ExitStack()
        self._ended = threading.Event()
        self.samples: list[dict[str, float]] = []
        self.sent = 0

    def __enter__(self) -> Self:
        stack = self._stack
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="whilst-soak-")))
        folder.chmod(0o711)
        self.broker = stack.enter_context(Broker(folder / "kafka"))
        self.topic = self.broker.create_topic("facts", 3)
        self.postgres = stack.enter_context(Postgres(folder / "postgres"))
        (folder / "soak.rules").write_text(PROGRAM.format(delay=self._delay))
        command = [
            *(sys.executable, "-c", "from monitor.cli import main; main()", "run", "soak.rules"),
            *("--source", f"kafka://{self.broker.bootstrap}/{self.topic}"),
            *("--store", self.postgres.url(password=False), "--master", "local[2]"),
            *self._arguments,
        ]
        environment = os.environ | {
            "PGPASSWORD": self.postgres.password,
            "WHILST_HOME": str(folder / "home"),
            "PYTHONPATH": str(ROOT),
        }
        self.run = Child("run", command, folder, environment)
        stack.callback(self.run.end)
        self.producer = self.broker.producer()
        stack.callback(self.producer.close)
        self._began = time.monotonic()
        self._watch = threading.Thread(target=self._sample, daemon=True)
        self._watch.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._watch.join()
        if kind is not None:
            print(self.run.text()[-2000:], file=sys.stderr)
        self._stack.close()
        self._written()

    # --- what is sent and read -------------------------------------------------------------------

    def send(self, value: bytes) -> None:
        self.producer.send(self.topic, value, partition=self.sent % 3)
        self.sent += 1

    def fact(self, device: str, level: str, back: int = 0) -> None:
        at = int(time.time()) - back
        self.send(b'{"fact":"Temp","args":["%s","%s"],"time":%d}'
                  % (device.encode(), level.encode(), at))  # fmt: skip

    def read(self) -> int:
        with suppress(psycopg.Error):
            select = "select coalesce(sum(facts + late + rejected), 0)::bigint as n from batches"
            return int(rows(self.postgres.url(), select)[0]["n"])
        return 0

    def caught_up(self) -> float:
        """Waits until all that was sent is read; seconds."""
        began = time.monotonic()
        self.producer.flush()
        self.until(lambda: self.read() >= self.sent, "all is read")
        return time.monotonic() - began

    def until(self, condition: Callable[[], object], what: str) -> None:
        ends = time.monotonic() + PATIENCE
        while time.monotonic() < ends:
            if self.run.pid is None and self.run.starts:
                raise RuntimeError(f"the run ended: {self.run.text()[-500:]}")
            with suppress(psycopg.Error):
                if condition():
                    return
            time.sleep(0.2)
        raise RuntimeError(f"not in {PATIENCE:.0f} s: {what}")

    def warm(self) -> None:
        self.run.ensure()
        self.fact("warm", "low")
        self.caught_up()

    def say(self, figure: str, value: float) -> None:
        line = {"soak": self.name, "figure": figure, "value": round(value, 1)}
        print(json.dumps(line), flush=True)

    def most(self, part: str) -> float:
        return max((sample[part] for sample in self.samples), default=0.0)

    def say_memory(self) -> None:
        for part in (*PARTS, "state rows", "state MB"):
            self.say(f"most {part}", self.most(part))

    # --- samples ---------------------------------------------------------------------------------

    def _sample(self) -> None:
        while not self._ended.wait(1.0):
            found = dict.fromkeys(PARTS, 0.0)
            if (pid := self.run.pid) is not None:
                found["driver MB"] = _memory(pid)
                for one in family(pid):
                    java = "java" in command_line(one).split(" ")[0]
                    found["JVM MB" if java else "workers MB"] += _memory(one)
            for one in (self.postgres.pid, *family(self.postgres.pid)):
                found["store MB"] += _memory(one)
            with suppress(psycopg.Error, IndexError):
                last = rows(
                    self.postgres.url(),
                    "select coalesce(state_rows, 0) as n, coalesce(state_bytes, 0) as bytes, "
                    "pg_database_size(current_database()) as size from batches "
                    "order by batch desc limit 1",
                )[0]
                found["state rows"] = float(last["n"])
                found["state MB"] = last["bytes"] / 1e6
                found["database MB"] = last["size"] / 1e6
            for name in ("state rows", "state MB", "database MB"):
                found.setdefault(name, 0.0)
            found["seconds"] = time.monotonic() - self._began
            found["read"] = float(self.read())
            self.samples.append(found)

    def _written(self) -> None:
        if not self.samples:
            return
        self.out.mkdir(parents=True, exist_ok=True)
        with (self.out / f"{self.name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(self.samples[0]))
            writer.writeheader()
            writer.writerows(self.samples)
        _plot(self.name, self.samples, self.out / f"{self.name}.svg")


def _memory(pid: int) -> float:
    """Megabytes of a process; what it shares with others in proportion."""
    with suppress(OSError, StopIteration):
        lines = (Path("/proc") / str(pid) / "smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
    return 0.0


def _plot(name: str, samples: list[dict[str, float]], path: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "whilst"
    from matplotlib import pyplot

    figure, (memory, state) = pyplot.subplots(2, 1, figsize=(8, 6), sharex=True)
    seconds = [sample["seconds"] for sample in samples]
    for part in PARTS:
        memory.plot(seconds, [sample[part] for sample in samples], label=part.removesuffix(" MB"))
    memory.set(ylabel="memory, MB", title=name, ylim=(0, None))
    memory.legend(loc="upper left")
    state.plot(seconds, [sample["state rows"] for sample in samples], label="groups in the state")
    state.set(xlabel="seconds", ylabel="groups", ylim=(0, None))
    size = state.twinx()
    size.plot(seconds, [s["database MB"] for s in samples], color="tab:red", label="database")
    size.set(ylabel="database, MB", ylim=(0, None))
    state.legend(loc="upper left")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


# --- the tasks -----------------------------------------------------------------------------------


def _events(rng: random.Random, bed: Bed, count: int) -> None:
    """Facts of many devices, a third of them of use."""
    for _ in range(count):
        bed.fact(f"wt{rng.randrange(DEVICES)}", "high" if rng.random() < 0.3 else "low")


def steady(out: Path, events: int, seconds: float) -> None:
    """The same load all the time: memory must not grow."""
    rng = random.Random(1)
    with Bed("steady", out) as bed:
        bed.warm()
        _events(rng, bed, 1000)  # the first batches with facts load what they need
        bed.caught_up()
        cold = len(bed.samples)
        began, sent = time.monotonic(), bed.sent
        rate = events / seconds
        while (passed := time.monotonic() - began) < seconds:
            _events(rng, bed, round(rate * passed) + sent - bed.sent)
            bed.producer.flush()
            time.sleep(0.1)
        bed.say("events/s", rate)
        bed.say("seconds behind at the end", bed.caught_up())
        bed.say_memory()
        for part in (*PARTS, "state rows"):
            middle, last = (_mean(bed.samples[cold:], part, at) for at in (0.45, 0.95))
            bed.say(f"{part}, end against middle, %", 100 * last / middle if middle else 100)


def _mean(samples: list[dict[str, float]], part: str, at: float) -> float:
    """Over a tenth of the time around there."""
    first, past = (round(len(samples) * (at + by)) for by in (-0.05, 0.05))
    found = [sample[part] for sample in samples[first:past]] or [0.0]
    return sum(found) / len(found)


def backlog(out: Path, events: int, _: float) -> None:
    """A run that was down finds a long log."""
    rng = random.Random(2)
    with Bed("backlog", out, "1h") as bed:
        bed.warm()
        bed.run.end()
        _events(rng, bed, events)
        bed.producer.flush()
        bed.run.ensure()
        took = bed.caught_up()
        bed.say("events", events)
        bed.say("seconds until caught up, with the start", took)
        bed.say("events/s", events / took)
        bed.say_memory()


def malformed(out: Path, events: int, _: float) -> None:
    """Events that are none, each kept with its reason; a fact after them is answered."""
    from tests.chaos.plan import POISON

    rng = random.Random(3)
    small = [body for body in POISON if len(body) < 1000 and b'"TIME"' not in body]
    with Bed("malformed", out) as bed:
        bed.warm()
        for _number in range(events):
            bed.send(rng.choice(small))
        took = bed.caught_up()
        [kept] = rows(
            bed.postgres.url(),
            "select count(*) as n, count(distinct place) as places, "
            "count(*) filter (where reason = '') as silent from rejected_events",
        )
        for back in (2, 1, 0):
            bed.fact("wt1", "high", back)
        bed.caught_up()
        bed.until(lambda: rows(bed.postgres.url(), "select 1 from confirmed_answers"), "an answer")
        bed.say("events/s", events / took)
        bed.say("kept", kept["n"])
        bed.say("kept without a reason, or twice", kept["silent"] + kept["n"] - kept["places"])
        bed.say_memory()
        if kept["n"] != events or kept["places"] != events or kept["silent"]:
            raise RuntimeError(f"{events} malformed events, but kept are {kept}")


def keys(out: Path, events: int, _: float) -> None:
    """Keys that are seen for a moment and never again: the state gives them back."""
    with Bed("keys", out) as bed:
        bed.warm()
        for number in range(events):
            bed.fact(f"key{number}", "high")
            if number % 5000 == 4999:
                bed.producer.flush()
        bed.caught_up()
        bed.until(lambda: bed.most("state rows") > 0, "state is seen")
        ends = time.monotonic() + 300
        while bed.samples[-1]["state rows"] > 100 and time.monotonic() < ends:
            bed.fact("last", "high")  # eviction goes with batches, and those with facts
            bed.producer.flush()
            time.sleep(1)
        bed.say("keys", events)
        bed.say("groups in the end", bed.samples[-1]["state rows"])
        bed.say_memory()
        if bed.samples[-1]["state rows"] > 100:
            raise RuntimeError("the state keeps keys that are over")


def hot(out: Path, events: int, _: float) -> None:
    """Half of all facts have one key, so one task has half the work."""
    rng = random.Random(4)
    for name, share in (("even", 0.0), ("hot", 0.5)):
        with Bed(name, out) as bed:
            bed.warm()
            for _number in range(events):
                device = "hot" if rng.random() < share else f"wt{rng.randrange(DEVICES)}"
                bed.fact(device, "high" if rng.random() < 0.3 else "low", rng.randrange(3))
            took = bed.caught_up()
            bed.say("events/s after the last was sent", events / max(took, 0.1))
            bed.say("longest batch, s", _longest(bed))
            bed.say_memory()


def _longest(bed: Bed) -> float:
    [found] = rows(bed.postgres.url(), "select max(total_ms) as ms from batches where batch > 0")
    return float(found["ms"] or 0) / 1000


TASKS: dict[str, tuple[Callable[[Path, int, float], None], int]] = {
    "steady": (steady, 1_200_000),
    "backlog": (backlog, 5_000_000),
    "malformed": (malformed, 1_000_000),
    "keys": (keys, 100_000),
    "hot": (hot, 500_000),
}


def main() -> int:
    terminate_quietly()
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("task", choices=[*TASKS, "all"])
    options.add_argument("--events", type=int, help="how many; else as many as the promise names")
    options.add_argument("--seconds", type=float, default=600.0, help="of the steady load")
    options.add_argument("--out", type=Path, default=Path("build/soak"))
    given: Any = options.parse_args()
    for name in _chosen(given.task):
        task, events = TASKS[name]
        task(given.out, given.events or events, given.seconds)
    return 0


def _chosen(task: str) -> Iterator[str]:
    yield from TASKS if task == "all" else [task]


if __name__ == "__main__":
    sys.exit(main())
