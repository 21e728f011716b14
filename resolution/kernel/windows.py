"""The times that are still open in a block of triples: the range of each, row by row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from resolution.bounds import Bounds
from resolution.kernel.columns import NEVER, Ints
from resolution.kernel.text import Text, chosen, joined, numbers
from resolution.premises import PremiseSet, time_comparisons
from resolution.substitution import apply_comparison, apply_time
from resolution.terms import Comparison, Term, Time, Var

if TYPE_CHECKING:
    from resolution.kernel.render import Block


@dataclass(frozen=True)
class Windows:
    """The unbound times of some triples of one premise set, given the times that are bound."""

    premises: PremiseSet
    times: dict[Var, Ints]
    """The bound time variables."""
    size: int

    @classmethod
    def of(cls, block: Block) -> Windows:
        names = _time_variables(block.premises)
        times = {var: column for var, column in block.bound.items() if var in names}
        return cls(block.premises, times, len(block))

    @cached_property
    def open(self) -> list[Var]:
        return [v for v in _time_variables(self.premises) if v not in self.times]

    @cached_property
    def _bounds(self) -> Bounds:
        return self.premises.bounds

    def latest(self, time: Time) -> Ints:
        """The greatest time point that a time may be, NEVER where there is none."""
        if time.base is None:
            return np.full(self.size, time.offset, dtype=np.int64)
        if time.base in self.times:
            return self.times[time.base] + time.offset
        found = np.full(self.size, NEVER, dtype=np.int64)
        for (x, y), k in self._bounds.closed.items():
            if x == time.base and y is None:
                found = np.minimum(found, k)
            elif x == time.base and y in self.times:
                found = np.minimum(found, self.times[y] + k)
        return np.where(found >= NEVER, NEVER, found + time.offset)

    def earliest(self, time: Time) -> Ints:
        """The least time point that a time may be."""
        if time.base is None:
            return np.full(self.size, time.offset, dtype=np.int64)
        if time.base in self.times:
            return self.times[time.base] + time.offset
        found = np.full(self.size, self._bounds.natural.get(time.base, 0), dtype=np.int64)
        for (x, y), k in self._bounds.closed.items():
            if y == time.base and x is None:
                found = np.maximum(found, -k)
            elif y == time.base and x in self.times:
                found = np.maximum(found, self.times[x] - k)
        return found + time.offset

    @cached_property
    def satisfiable(self) -> npt.NDArray[np.bool_]:
        """Whether the bound times leave room for the others, every time natural."""
        ok = np.ones(self.size, dtype=np.bool_)
        for (x, y), k in self._bounds.closed.items():
            if (x is None or x in self.times) and (y is None or y in self.times) and x != y:
                a = self.times[x] if x is not None else 0
                b = self.times[y] if y is not None else 0
                ok &= a - b <= k
        return ok

    def texts(self, names: dict[Var, Term | Time] | None = None) -> list[Text]:
        """The conditions on open times in their one writing; an empty text is none."""
        if not self.open or not self._comparisons:
            return []
        if len(self.open) == 1:
            return self._single(self.open[0], names or {})
        return self._several(names or {})

    @cached_property
    def _comparisons(self) -> list[Comparison]:
        return time_comparisons(self.premises.comparisons)

    def _single(self, var: Var, names: dict[Var, Term | Time]) -> list[Text]:
        named = names.get(var, Time(var, 0))
        assert isinstance(named, Time)
        name, shift = str(named.base), named.offset
        low, high = self.earliest(Time(var, 0)), self.latest(Time(var, 0))
        fixed, bounded = low == high, high < NEVER
        shown = fixed | (low > self._bounds.natural.get(var, 0))
        operator = chosen(fixed, f"{name} = ", f"{name} >= ")
        lower = joined([operator, numbers(low - shift)])
        upper = joined([f"{name} <= ", numbers(np.where(bounded, high, 0) - shift)])
        return [chosen(shown, lower, ""), chosen(~fixed & bounded, upper, "")]

    def _several(self, names: dict[Var, Term | Time]) -> list[Text]:
        """Which bounds are needed depends on the bound times alone: asked once for each of them."""
        rows = np.stack([np.zeros(self.size, dtype=np.int64), *self.times.values()])
        distinct, which = np.unique(rows, axis=1, return_inverse=True)
        lists = [self._written(column[1:], names) for column in distinct.T.tolist()]
        width = max(map(len, lists), default=0)
        at = pa.array(which.ravel())
        return [
            pa.array([texts[n] if n < len(texts) else "" for texts in lists]).take(at)
            for n in range(width)
        ]

    def _written(self, values: list[int], names: dict[Var, Term | Time]) -> list[str]:
        by: dict[Var, Term | Time] = {
            var: Time(None, value) for var, value in zip(self.times, values, strict=True)
        }
        comparisons = [apply_comparison(c, by) for c in self._comparisons]
        found = Bounds.of(comparisons, [apply_time(t, by) for t in self.premises.times]).conditions
        if names:
            found = Bounds.of([apply_comparison(c, names) for c in found], ()).conditions
        return [str(condition) for condition in found]


def _time_variables(premises: PremiseSet) -> list[Var]:
    return list(dict.fromkeys(t.base for t in premises.times if t.base is not None))
