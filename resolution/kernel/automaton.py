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

States = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Support:
    """A premise set that leaves the same hypotheses, with the evidence it has for it, as bits."""

    premises: int
    evidence: int


State: TypeAlias = tuple[int, frozenset[int]]
"""The atoms that are there, as bits, and the premise sets of which none is closed.

Nothing else matters any more: an atom that only closed premise sets have is left out.
"""


@dataclass(slots=True)
class Automaton:
    """States of cells with `size` atoms, for premise sets given as bits."""

    masks: tuple[int, ...]
    size: int
    answers: list[dict[int, tuple[Support, ...]]] = field(default_factory=list)
    """For each state the triples of `S_τ`: their hypotheses as bits, and what supports them."""
    visible: States = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    """For each state a number that is the same where the hypotheses of `S_τ` are."""
    _states: list[State] = field(default_factory=list)
    _ids: dict[State, int] = field(default_factory=dict)
    _sights: dict[frozenset[int], int] = field(default_factory=dict)
    _next: States = field(default_factory=lambda: np.empty(0, dtype=np.int32))

    def start(self, applicable: frozenset[int]) -> int:
        """The state of a cell in which nothing has happened."""
        return self._state(0, applicable)

    def step(self, states: States, symbols: States) -> States:
        """The states after one event each: symbol 2·u is atom u arriving, 2·u+1 is it closing."""
        edges = states * np.int32(2 * self.size) + symbols
        after: States = self._next[edges]
        if len(after) and after.min() < 0:
            for edge in np.unique(edges[after < 0]).tolist():
                self._meet(edge)
            after = self._next[edges]
        return after

    def _meet(self, edge: int) -> None:
        state, symbol = divmod(edge, 2 * self.size)
        there, live = self._states[state]
        bit = 1 << (symbol >> 1)
        if symbol & 1:
            live = frozenset(n for n in live if not self.masks[n] & bit)
        else:
            there |= bit
        self._next[edge] = self._state(there, live)

    def _state(self, there: int, live: frozenset[int]) -> int:
        used = 0
        for number in live:
            used |= self.masks[number]
        key = there & used, live
        if key not in self._ids:
            number = self._ids[key] = len(self._states)
            self._states.append(key)
            self.answers.append(self._answers(*key))
            sight = self._sights.setdefault(frozenset(self.answers[-1]), len(self._sights))
            if number >= len(self.visible):
                spare = max(64, number)
                self.visible = np.append(self.visible, np.full(spare, -1, np.int32))
                unknown = np.full(spare * 2 * self.size, -1, np.int32)
                self._next = np.append(self._next, unknown)
            self.visible[number] = sight
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
            for hypotheses, supports in left.items()
            if not any(h & ~hypotheses == 0 and h != hypotheses for h in left)
            and not any(self.masks[n] & ~hypotheses == 0 for n in live)
        }

    def changes(self, before: int, after: int) -> tuple[list[int], list[int]]:
        """The hypotheses of the triples that come and of those that go; before -1 is nothing."""
        was = self.answers[before] if before >= 0 else {}
        now = self.answers[after]
        return [h for h in now if h not in was], [h for h in was if h not in now]


def _minimal(supports: list[Support]) -> tuple[Support, ...]:
    return tuple(
        s
        for s in sorted(supports, key=lambda s: s.premises)
        if not any(o.evidence != s.evidence and o.evidence & ~s.evidence == 0 for o in supports)
    )
