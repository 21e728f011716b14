"""The clock of a run: which time points are complete.

A time point is complete when it has ended and everything that was logged in it has been read. At
the end of a `--once` run that is the last arrival. Live it goes by the wall clock, less a grace for
what is on its way: what was logged before `x` has been read once a batch that was planned after `x`
is done, or once Spark looked after `x` and found nothing new.
"""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(slots=True)
class Clock:
    unit: int
    """Length of a time point, in milliseconds."""
    grace: int
    """Milliseconds after which what was logged can be seen by a reader."""
    live: bool
    complete: int | None = None
    """The last complete time point."""
    latest: int | None = None
    """The latest arrival that the store knows of."""
    _idle_since: float = 0.0

    def __post_init__(self) -> None:
        self.batch_done()

    def batch_done(self) -> None:
        """A batch is done: whatever is planned next is planned after now."""
        self._idle_since = time.time() * 1000

    def complete_now(self, *, limited: bool) -> int | None:
        """The last complete time point once the batch at hand is applied."""
        if self.live and not limited:
            self.read_everything_before(self._idle_since)
        return self.complete

    def read_everything_before(self, milliseconds: float) -> int | None:
        """Everything that was logged before then has been read. The last complete time point."""
        ended = int(milliseconds - self.grace) // self.unit - 1
        if ended >= 0 and (self.complete is None or ended > self.complete):
            self.complete = ended
        return self.complete
