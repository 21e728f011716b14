"""Faults that pass: a store, a broker or an executor that is away ends the stream, but not the run.

The stream is started again from its checkpoint, where it computes the batch at hand anew. Live that
goes on until it works; a replay gives up after a while, so that whoever waits for it is told.
"""

from __future__ import annotations

import re
import time

from pyspark.errors import PySparkException

from resolution.errors import WhilstError
from storage.errors import StagingLost, StoreError

_FIRST, _LONGEST = 1.0, 30.0
_REPLAY = 120.0
"""Seconds without a batch after which a replay gives up."""


class ExecutorLost(WhilstError):
    """An executor went away under a batch. Spark does its work again, in part or in whole, and adds
    what it counts then to what it had counted: only a batch without such a loss counts right."""


_PASSING = [k for k in StoreError.__subclasses__() if k.retry or k is StagingLost]
_PASSES = re.compile(
    rf"storage\.errors\.({'|'.join(kind.__name__ for kind in _PASSING)})\b"
    rf"|{ExecutorLost.__module__}\.{ExecutorLost.__name__}\b"
    r"|org\.apache\.spark\.shuffle\.\w*FetchFailedException"
    r"|org\.apache\.kafka\.common\.errors\."
    r"(\w*Timeout|Disconnect|Network|Retriable|NotLeaderOrFollower|LeaderNotAvailable"
    r"|BrokerNotAvailable|UnknownTopicOrPartition|CoordinatorNotAvailable)Exception"
)


class Patience:
    """How long to wait before the next try."""

    def __init__(self, live: bool) -> None:
        self._live = live
        self.worked()

    def worked(self) -> None:
        """A batch is done, so the next fault is a new one."""
        self._pause = _FIRST
        self._since: float | None = None

    def has(self, failed: Exception) -> bool:
        """Whether to try again after a failure."""
        if not passes(failed):
            return False
        now = time.monotonic()
        self._since = self._since or now
        return self._live or now - self._since < _REPLAY

    def pause(self) -> float:
        """Seconds to wait: twice as many each time."""
        pause, self._pause = self._pause, min(2 * self._pause, _LONGEST)
        return pause


def passes(failed: Exception) -> bool:
    """Whether the same may succeed later without anybody changing it."""
    if isinstance(failed, (StoreError, WhilstError)):
        return isinstance(failed, (*_PASSING, ExecutorLost))
    return isinstance(failed, PySparkException) and _PASSES.search(str(failed)) is not None
