"""What a run shows: a bar on a replay, one line live, log lines where nobody sits at a terminal."""

from __future__ import annotations

import json
import logging
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime

from monitor.run import BatchDone, Clocked, Happening, Progress

log = logging.getLogger("whilst")

_PAUSE = 10.0
"""Seconds between two log lines about batches."""


@dataclass(slots=True)
class Totals:
    """What was read and written so far."""

    facts: int = 0
    late: int = 0
    rejected: int = 0
    changes: int = 0
    batches: int = 0
    tau: int | None = None

    def add(self, what: Happening) -> None:
        match what:
            case BatchDone():
                self.facts += what.figures.facts
                self.late += what.late
                self.rejected += what.rejected
                self.changes += what.figures.changes
                self.batches += 1
                self.tau = what.complete if what.complete is not None else self.tau
            case Clocked():
                self.tau = what.complete
            case Progress():
                pass

    def text(self, answers: dict[str, int]) -> str:
        told = [f"{self.facts:,} facts"]
        told += [
            f"{n:,} {what}" for n, what in ((self.late, "late"), (self.rejected, "rejected")) if n
        ]
        said = ", ".join(f"{answers.get(s, 0):,} {s}" for s in ("pending", "confirmed", "refuted"))
        return f"{', '.join(told)} · {said}" + ("" if self.tau is None else f" · τ {self.tau}")


class Bar:
    """A replay on a terminal: how far Spark is with the batch, and what came of it so far."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bars

        self._bars = Bars(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[told]}"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bars.add_task("reading", total=None, told="")
        self._began = time.monotonic()
        self._bars.start()

    def show(self, totals: Totals, answers: dict[str, int], done: tuple[int, int] | None) -> None:
        rate = totals.facts / max(time.monotonic() - self._began, 0.001)
        told = f"{totals.text(answers)} · {rate:,.0f} facts/s" if totals.batches else ""
        self._bars.update(
            self._task,
            description=f"batch {totals.batches + 1}",
            completed=done[0] if done else 0,
            total=done[1] if done else None,
            told=told,
        )

    def close(self) -> None:
        self._bars.stop()


class StatusLine:
    """Live on a terminal: one line that is written over."""

    def __init__(self) -> None:
        self._width = 0

    def show(self, totals: Totals, answers: dict[str, int], done: tuple[int, int] | None) -> None:
        text = f"{datetime.now():%H:%M:%S} {totals.text(answers)}"
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = len(text)

    def close(self) -> None:
        sys.stderr.write("\n")


class LogLines:
    """No terminal: a line now and then, if there was something to tell."""

    def __init__(self) -> None:
        self._next = 0.0
        self._told: tuple[int, ...] = ()

    def show(self, totals: Totals, answers: dict[str, int], done: tuple[int, int] | None) -> None:
        state = totals.facts, totals.late, totals.rejected, totals.changes
        if state != self._told and time.monotonic() >= self._next and totals.batches:
            self._told, self._next = state, time.monotonic() + _PAUSE
            log.info(totals.text(answers))

    def close(self) -> None:
        pass


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        told = {"time": at, "level": record.levelname.lower(), "message": record.getMessage()}
        return json.dumps(told | getattr(record, "told", {}), ensure_ascii=False)


def log_to_stderr(as_json: bool) -> None:
    handler = logging.StreamHandler(sys.stderr)
    text = logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S")
    handler.setFormatter(_Json() if as_json else text)
    log.handlers = [handler]
    log.setLevel(logging.INFO)
    log.propagate = False


def display(once: bool, as_json: bool) -> Bar | StatusLine | LogLines:
    if as_json or not sys.stderr.isatty():
        return LogLines()
    return Bar() if once else StatusLine()
