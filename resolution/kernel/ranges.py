"""Questions about ranges of a column, for many ranges at once and without expanding any."""

from __future__ import annotations

import numpy as np

from resolution.kernel.columns import NEVER, Ints
from resolution.kernel.compiled import compiled


class Minima:
    """Minima of all stretches whose length is a power of two, so that any range is two of them."""

    def __init__(self, values: Ints, longest: int) -> None:
        self._levels = [values]
        while 2 ** len(self._levels) <= min(longest, len(values)):
            last, half = self._levels[-1], 2 ** (len(self._levels) - 1)
            self._levels.append(np.minimum(last[:-half], last[half:]))

    def least(self, low: Ints, high: Ints) -> Ints:
        """The least value between low and before high, NEVER where there is none."""
        found = np.full(len(low), NEVER, dtype=np.int64)
        length = high - low
        for number, level in enumerate(self._levels):
            here = np.flatnonzero((length >= 2**number) & (length < 2 ** (number + 1)))
            if len(here):
                left, right = low[here], high[here] - 2**number
                found[here] = np.minimum(level[left], level[right])
        return found

    def first(self, low: Ints, high: Ints, most: Ints) -> Ints:
        """The first place between low and before high with a value of at most `most`, else high."""
        at = low.copy()
        for number in reversed(range(len(self._levels))):
            level = self._levels[number]
            fits = at + 2**number <= high
            stretch = level[np.minimum(at, len(level) - 1)]
            at = np.where(fits & (stretch > most), at + 2**number, at)
        return at


def place(values: Ints, low: Ints, high: Ints, least: Ints) -> Ints:
    """In each range of ascending values, the first place of one that is at least `least`."""
    found = np.empty(len(low), dtype=np.int64)
    _place(values, low, high, least, found)
    return found


@compiled
def _place(values: Ints, low: Ints, high: Ints, least: Ints, found: Ints) -> None:
    for row in range(len(low)):
        first, past = low[row], high[row]
        while first < past:
            middle = (first + past) // 2
            if values[middle] < least[row]:
                first = middle + 1
            else:
                past = middle
        found[row] = first


def least_text(minima: Minima, times: Ints, low: Ints, high: Ints, most: Ints) -> Ints:
    """In each range of ascending times, the place with a value of at most `most` that reads least.

    Among numbers of one length the smaller reads less. So a range is cut by length, the first of
    each part is found, and they are compared as if all had been written equally long.
    """
    best = np.full(len(low), -1, dtype=np.int64)
    reading = np.full(len(low), np.iinfo(np.uint64).max, dtype=np.uint64)
    longest = len(str(int(times.max(initial=0))))
    past = low
    for digits in range(1, longest + 1):
        first, past = past, place(times, past, high, np.full(len(low), 10**digits))
        at = minima.first(first, past, most)
        there = np.flatnonzero(at < past)
        read = times[at[there]].astype(np.uint64) * np.uint64(10 ** (longest - digits))
        better = read < reading[there]  # of equals the shorter, which came before, reads less
        best[there[better]], reading[there[better]] = at[there[better]], read[better]
    return best
