"""The automaton of a cell: from the three values of its atoms to its part of `S_τ`.

A state says which atoms are there and which premise sets may still hold. It is computed when it is
first met, straight from the rules of SEMANTICS on sets of bits, and looked up ever after; how many
there are depends on the program, not on the facts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np

from resolution.kernel.columns import Int32s, Ints


@dataclass(frozen=True, slots=True)
class Support:
    """A premise set that leaves the same hypotheses, with the evidence it has for it, as bits."""

    premises: int
    evidence: int


State: TypeAlias = tuple[int, frozenset[int]]
"""The atoms that are there, as bits, and the premise sets of which none is closed.

Nothing else matters any more: an atom that only closed premise sets have is left out.
"""


HEAD = 4
"""Numbers that stand before the edges of a state: whether it is over (confirmed, or without a
premise set that may still hold), the place of its first triple, and two that bring the rest in
line."""
EDGE = 4
"""Numbers of an edge: where the next state begins (-1: not met yet), and three bounds among the
moves. From the first on stand the triples that go, by number, from the second to before the third
those that come, each by its place and its number."""


class Tables(NamedTuple):
    """The automaton as far as it is known; what stands there once stays when more is met."""

    states: Int32s
    """For each state its head and then its edges: where an atom arrives, where it closes, and so on
    for each atom. All in one, so that a step is one look-up."""
    moves: Int32s
    """The triples that go and come."""
    offsets: Ints
    """The triples of state s have the places from offsets[s] to before offsets[s+1] …"""
    hypotheses: Ints
    """… with these hypotheses in each place …"""
    number: Int32s
    """… and the same number wherever the hypotheses are the same."""
    most: int
    """Rows that one cell may need room for at a time."""


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

    @property
    def width(self) -> int:
        """Numbers that a state takes in the tables."""
        return HEAD + 2 * EDGE * self.size

    def start(self, applicable: frozenset[int]) -> int:
        """The state of a cell in which nothing has happened."""
        return self._state(0, applicable)

    def tables(self) -> Tables:
        """What is known, for the loop over the events of cells."""
        if self._tables is None:
            self._tables = self._tabled()
        return self._tables

    def _tabled(self) -> Tables:
        offsets = np.cumsum([0, *map(len, self.answers)]).astype(np.int64)
        numbers: dict[int, int] = {}
        for found in self.answers:
            for hypotheses in found:
                numbers.setdefault(hypotheses, len(numbers))
        states = np.full((len(self._states), self.width), -1, dtype=np.int32)
        for state, (_, live) in enumerate(self._states):
            states[state, :2] = not live or 0 in self.answers[state], offsets[state]
        edges = states[:, HEAD:].reshape(-1, EDGE).copy()
        moves: list[int] = []
        for edge, after in self._next.items():
            old, new = self.answers[edge // (2 * self.size)], self.answers[after]
            start = len(moves)
            moves.extend(numbers[h] for h in old if h not in new)
            middle = len(moves)
            for place, hypotheses in enumerate(new, start=int(offsets[after])):
                if hypotheses not in old:
                    moves += place, numbers[hypotheses]
            edges[edge] = after * self.width, start, middle, len(moves)
        states[:, HEAD:] = edges.reshape(len(states), -1)
        every = [h for found in self.answers for h in found]
        return Tables(
            states.ravel(),
            np.array(moves, dtype=np.int32),
            offsets,
            np.array(every, dtype=np.int64),
            np.array([numbers[h] for h in every], dtype=np.int32),
            max(map(len, self.answers)) * self.size,
        )

    def meet(self, place: int) -> None:
        """Finds out where an edge leads, given by its place in the tables."""
        state, inside = divmod(place, self.width)
        symbol = (inside - HEAD) // EDGE
        there, live = self._states[state]
        bit = 1 << (symbol >> 1)
        if symbol & 1:
            live = frozenset(n for n in live if not self.masks[n] & bit)
        else:
            there |= bit
        self._next[state * 2 * self.size + symbol] = self._state(there, live)
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
