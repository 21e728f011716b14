"""The clock of a run: which time points are complete.

A time point is complete when it has ended and everything that was logged in it has been read. At
the end of a `--once` run that is the last arrival. Live it goes by the wall clock, less a grace for
what is on its way: what was logged before `x` has been read once a batch that was planned after `x`
is done, or once Spark looked after `x` and found nothing new.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(slots=True)
class Clock:
    unit: int
    """Length of a time point, in milliseconds."""
    grace: int
    """Milliseconds after which what was logged can be seen by every reader."""
    live: bool
    complete: int | None = None
    """The last complete time point."""
    latest: int | None = None
    """The latest arrival that is known."""
    now: Callable[[], float] = time.time
    _planned: float = 0.0

    def __post_init__(self) -> None:
        self.batch_done()

    def batch_done(self, complete: int | None = None) -> None:
        """A batch is done, and that complete: whatever is planned next is planned after now."""
        self.complete = self.complete if complete is None else complete
        self._planned = self.now() * 1000

    def after_batch(self, *, everything: bool) -> int | None:
        """What is complete once the batch at hand is read, if it was planned to read everything."""
        return self._by(self._planned) if self.live and everything else self.complete

    def read_everything_before(self, milliseconds: float) -> int | None:
        """Everything that was logged before then has been read. The last complete time point."""
        self.complete = self._by(milliseconds)
        return self.complete

    def _by(self, milliseconds: float) -> int | None:
        ended = int(milliseconds - self.grace) // self.unit - 1
        known = self.complete is not None and ended <= self.complete
        return self.complete if known or ended < 0 else ended

    def arrived(self, *arrivals: int | None) -> None:
        known = [a for a in (*arrivals, self.latest) if a is not None]
        self.latest = max(known, default=None)

    def since(self, arrival: int | None) -> float | None:
        """Milliseconds since the time point of an arrival ended; None where time is not live."""
        if not self.live or arrival is None:
            return None
        return max(0.0, self.now() * 1000 - (arrival + 1) * self.unit)

    @property
    def lag(self) -> float | None:
        """Seconds that the end of the last complete time point lies behind now."""
        if self.complete is None:
            return None
        return self.now() - (self.complete + 1) * self.unit / 1000


class Ticks:
    """Tells Spark's state which blocks have closed: a stream of files, each with a time point.

    A tick makes a batch of its own if no other comes, so there is one only after facts were read,
    and only when time has gone on by half a block.
    """

    def __init__(self, folder: Path, step: int) -> None:
        self._folder = folder
        self._step = max(1, step)
        self._last = max((int(p.name) for p in folder.glob("[0-9]*")), default=None)

    def tell(self, complete: int | None) -> None:
        if complete is None or (self._last is not None and complete < self._last + self._step):
            return
        name = f"{complete:019d}"
        unfinished = self._folder / f".{name}"
        unfinished.write_text(f"{complete}\n")
        unfinished.rename(self._folder / name)
        self._last = complete
        for old in sorted(self._folder.glob("[0-9]*"))[:-_KEPT]:
            old.unlink()


_KEPT = 16
"""Ticks that are kept: Spark reads the newest, and again after a crash."""
