"""When Spark looks through its state for groups that have closed: not in every batch.

An aggregation with a watermark reads every key of its state at the end of each batch, also where
the watermark stands still. With a million groups that takes longer than a small batch itself. What
has closed takes no part in any answer, so it may stay a while: a look is taken once batches have
saved up for it, as a collector of garbage does. Spark has no setting for that, so the batch's own
operator is told, before its tasks are made, that there is no watermark to evict by.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

A_BATCH = 10_000
"""Keys that each batch pays for: what reading them takes is little beside any batch."""

A_FACT = 4
"""Keys that each fact pays for: so a state that turns over is looked through as it does."""

_OPERATOR = "StateStoreSave"
_WATERMARK = "eventTimeWatermarkForEviction"


class Eviction:
    """Decides for each batch of a stream whether its operator evicts."""

    def __init__(self, jvm: Any) -> None:
        self._nothing = jvm.scala.Option.empty()
        self._saved = 0
        self._evicted_by = 0  # the watermark of the last look; what is at 0 has not begun

    def prepare(self, execution: Any, keys: int | None) -> bool:
        """Before the action of a batch whose state holds so many keys: whether it evicts."""
        watermark = execution.offsetSeqMetadata().batchWatermarkMs()
        self._saved += A_BATCH
        if watermark > self._evicted_by and self._saved >= (keys or 0):
            self._saved, self._evicted_by = 0, watermark
            return True
        for operator in _operators(execution.executedPlan()):
            field = operator.getClass().getDeclaredField(_WATERMARK)
            field.setAccessible(True)
            field.set(operator, self._nothing)
        return False

    def read(self, facts: int) -> None:
        """So many facts came to the state."""
        self._saved += A_FACT * facts


def _operators(plan: Any) -> Iterator[Any]:
    if plan.nodeName() == _OPERATOR:
        yield plan
    children = plan.children()
    for place in range(children.size()):
        yield from _operators(children.apply(place))
