"""The automaton of a cell: from the three values of its atoms to its part of `S_τ`.

A state says which atoms are there and which premise sets may still hold. It is computed when it is
first met, straight from the rules of SEMANTICS on sets of bits, and looked up ever after; how many
there are depends on the program, not on the facts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from resolution.kernel.columns import Bools, Ints


@dataclass(frozen=True, slots=True)
class Support:
    """A premise set that leaves the same hypotheses, with the evidence it has for it, as bits."""

    premises: int
    evidence: int


State: TypeAlias = tuple[int, frozenset[int]]
"""The atoms that are there, as bits, and the premise sets of which none is closed.

Nothing else matters any more: an atom that only closed premise sets have is left out.
"""


Tables: TypeAlias = tuple[npt.NDArray[np.int32], Ints, Ints, Bools]


@dataclass(slots=True)
class Automaton:
    """States of cells with `size` atoms, for premise sets given as bits."""

    masks: tuple[int, ...]
    size: int
    answers: list[dict[int, tuple[Support, ...]]] = field(default_factory=list)
    """For each state the triples of `S_τ`: their hypotheses as bits, and what supports them."""
    _states: list[State] = field(default_factory=list)
    _ids: dict[State, int] = field(default_factory=dict)
    _next: dict[int, int] = field(default_factory=dict)
    _tables: Tables | None = None

    def start(self, applicable: frozenset[int]) -> int:
        """The state of a cell in which nothing has happened."""
        return self._state(0, applicable)

    def tables(self) -> Tables:
        """The next state by edge (-1: not met yet), the hypotheses of each state's triples, and
        which states are over: confirmed, or without a premise set that may still hold.

        Edge 2·size·s + 2·u leads from state s where atom u arrives, the one after it where u
        closes. The hypotheses of state s stand between offsets s and s+1 of the table after that.
        What stands there once stays, however many states are met later.
        """
        if self._tables is None:
            self._tables = self._tabled()
        return self._tables

    def _tabled(self) -> Tables:
        edges = np.full(len(self._states) * 2 * self.size, -1, dtype=np.int32)
        edges[list(self._next)] = list(self._next.values())
        offsets = np.cumsum([0, *map(len, self.answers)]).astype(np.int64)
        visible = np.array([mask for found in self.answers for mask in found], dtype=np.int64)
        over = [
            not live or 0 in found
            for (_, live), found in zip(self._states, self.answers, strict=True)
        ]
        return edges, offsets, visible, np.array(over, dtype=np.bool_)

    def meet(self, edge: int) -> None:
        """Finds out where an edge leads."""
        state, symbol = divmod(edge, 2 * self.size)
        there, live = self._states[state]
        bit = 1 << (symbol >> 1)
        if symbol & 1:
            live = frozenset(n for n in live if not self.masks[n] & bit)
        else:
            there |= bit
        self._next[edge] = self._state(there, live)
        self._tables = None

    def _state(self, there: int, live: frozenset[int]) -> int:
        used = 0
        for number in live:
            used |= self.masks[number]
        key = there & used, live
        if key not in self._ids:
            self._tables = None
            self._ids[key] = len(self._states)
            self._states.append(key)
            self.answers.append(self._answers(*key))
        return self._ids[key]

    def _answers(self, there: int, live: frozenset[int]) -> dict[int, tuple[Support, ...]]:
        """Rules 1 to 4, where hypotheses are bits and one part of another a matter of `&`."""
        left: dict[int, list[Support]] = {}
        for number in live:
            evidence = self.masks[number] & there
            if evidence:
                hypotheses = self.masks[number] & ~there
                left.setdefault(hypotheses, []).append(Support(number, evidence))
        return {
            hypotheses: _minimal(supports)
            for hypotheses, supports in sorted(left.items())
            if not any(h & ~hypotheses == 0 and h != hypotheses for h in left)
            and not any(self.masks[n] & ~hypotheses == 0 for n in live)
        }


def _minimal(supports: list[Support]) -> tuple[Support, ...]:
    return tuple(
        s
        for s in sorted(supports, key=lambda s: s.premises)
        if not any(o.evidence != s.evidence and o.evidence & ~s.evidence == 0 for o in supports)
    )
