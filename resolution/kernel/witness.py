"""Which fact stands as evidence where several would do: the first complete set, the least text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from resolution.kernel.columns import Ints


@dataclass(frozen=True)
class Witnesses:
    """Facts by place, in the order of their texts, so that the least one known at a time is found.

    Within a place the least arrival so far never grows, so the first fact in the order of texts
    that had arrived by some τ is found by halving.
    """

    order: Ints
    """The facts, by place and then by text."""
    starts: Ints
    """For each place where its facts begin; one more for the end."""
    earliest: Ints
    """The least arrival of the facts of the same place up to here."""

    @classmethod
    def of(cls, place: Ints, places: int, texts: pa.StringArray, arrival: Ints) -> Witnesses:
        by_text = pc.sort_indices(texts).to_numpy().astype(np.int64)
        order = by_text[np.argsort(place[by_text], kind="stable")]
        starts = np.searchsorted(place[order], np.arange(places + 1))
        # Each place counts from below the one before it, so that one pass keeps them apart.
        span = int(arrival.max(initial=0)) + 1
        lowered = arrival[order] - place[order] * span
        earliest = np.minimum.accumulate(lowered) + place[order] * span
        return cls(order, starts, earliest)

    def known(self, place: Ints, tau: Ints) -> Ints:
        """For each place the fact with the least text that had arrived by τ; there must be one."""
        low, high = self.starts[place], self.starts[place + 1] - 1
        while (low < high).any():
            middle = (low + high) // 2
            there = self.earliest[middle] <= tau
            low, high = np.where(there, low, middle + 1), np.where(there, middle, high)
        return self.order[low]
