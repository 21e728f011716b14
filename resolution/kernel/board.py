"""The board of a query in cells: for each atom of each cell the one event that it has.

An atom arrives, or it closes; whichever is first is all that its cell needs to know, and an arrival
in time is never after the closing. Atoms that differ in how far they are from the answer's time
only are one *track*: what is an atom at `T+2` for one cell is an atom at `T` for the cell two time
points on. So where facts lie close together the board has a row for each track and a place for each
time point of each *lane* (a group and the values of the answer's object variables), and an atom is
read off at a shift. Where they lie far apart, it has a row for each atom and a place for each cell
that some fact belongs to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from resolution.bounds import Bounds
from resolution.delays import Delays
from resolution.kernel.columns import NEVER, Bools, Columns, Ints, distinct
from resolution.kernel.compiled import compiled
from resolution.kernel.drive import Events
from resolution.kernel.patterns import delays_of
from resolution.kernel.relations import matching, numbered
from resolution.premises import time_comparisons
from resolution.substitution import image, instance
from resolution.terms import Atom, Comparison, Time, Var

if TYPE_CHECKING:
    from resolution.kernel.cells import CellPlan

_DENSE = 4
"""Places for each fact up to which every time point of a lane gets one."""
_FEW = 1024
"""Places that cost nothing."""
_SMALL = 2**29
"""Moments up to here are held in 32 bits, twice and one more."""
_COMBINATIONS = 2**16
"""Combinations of events in a cell that are few enough to keep the rows of each."""


@dataclass(frozen=True)
class CellAtom:
    """A premise atom of every cell, and what is private to it."""

    atom: Atom
    comparisons: tuple[Comparison, ...]
    """Those on its private variables."""

    def moved(self, base: Var | None) -> tuple[CellAtom, int]:
        """The same atom at the answer's time itself, and how far from it this one is."""
        assert self.atom.time is not None
        if base is None:
            return self, 0
        shift = self.atom.time.offset
        by = {base: Time(base, -shift)}
        return CellAtom(
            instance(self.atom, by), tuple(image(c, by) for c in self.comparisons)
        ), shift


def object_variables(answer: Atom) -> tuple[Var, ...]:
    return tuple(dict.fromkeys(a for a in answer.args if isinstance(a, Var)))


def is_private(var: Var) -> bool:
    return var.name.isdigit()


@dataclass(frozen=True)
class Matched:
    """The facts that match the atom of a track, with the coordinates of their cells."""

    group: Ints
    keys: tuple[Ints, ...]
    time: Ints
    arrival: Ints
    fresh: Bools
    private: tuple[Ints, ...]
    """Codes and time of the atom's private variables, in the order in which they stand."""

    @classmethod
    def of(
        cls, track: CellAtom, shown: tuple[Var, ...], base: Var | None, columns: Columns
    ) -> Matched:
        found = matching(track.atom, track.comparisons, columns)
        assert found.fresh is not None
        return cls(
            found.group,
            tuple(found.bound[v] for v in shown),
            np.zeros(len(found), dtype=np.int64) if base is None else found.bound[base],
            found.arrival,
            found.fresh,
            tuple(found.bound[v] for v in found.bound if is_private(v)),
        )

    def where(self, rows: Bools) -> Matched:
        return Matched(
            self.group[rows],
            tuple(codes[rows] for codes in self.keys),
            self.time[rows],
            self.arrival[rows],
            self.fresh[rows],
            tuple(column[rows] for column in self.private),
        )


@dataclass(frozen=True)
class Dense:
    """A place for each time point of each lane."""

    lanes: int
    first: int
    wide: int

    @property
    def size(self) -> int:
        return self.lanes * self.wide

    def lane(self, places: Ints) -> Ints:
        return places // self.wide

    def time(self, places: Ints) -> Ints:
        return places % self.wide + self.first


@dataclass(frozen=True)
class Sparse:
    """A place for each cell that a fact belongs to."""

    lanes: Ints
    times: Ints

    @property
    def size(self) -> int:
        return len(self.times)

    def lane(self, places: Ints) -> Ints:
        return self.lanes[places]

    def time(self, places: Ints) -> Ints:
        return self.times[places]


@dataclass(frozen=True)
class Board:
    """Cells, and what happens to each of their atoms."""

    groups: Ints
    """The group of each lane …"""
    keys: dict[Var, Ints]
    """… and its codes of the answer's object variables."""
    grid: Dense | Sparse
    """The lane of each place, and the value of the answer's time variable there (0 if none)."""
    cells: Ints
    """The places of the cells."""
    zero: int
    """The moment from which a place counts, after its time."""
    closes: Ints
    """When what stands in each row and lane closes, counted so: NEVER if it does not."""
    row: Ints
    shift: Ints
    """Where each atom of a cell is read: in which row, how far from the place of the cell."""
    tracks: tuple[CellAtom, ...]
    """For each row the atom that its facts match …"""
    matched: tuple[Matched, ...]
    """… those facts …"""
    places: tuple[Ints, ...]
    """… and the place of each of them."""

    @cached_property
    def events(self) -> Events:
        """What happens first in each row and place: 2·τ where it arrives at τ, 2·τ+1 where it
        closes, the greatest number where neither. τ is counted from the place's own moment."""
        arrivals = [
            match.arrival - self.grid.time(place) - self.zero
            for match, place in zip(self.matched, self.places, strict=True)
        ]
        kind = np.int32 if self._small(arrivals) else np.int64
        closing = np.where(self.closes < NEVER, 2 * self.closes + 1, np.iinfo(kind).max)
        closing = closing.astype(kind)
        if isinstance(self.grid, Dense):
            events = np.repeat(closing, self.grid.wide, axis=1)
        else:
            events = closing[:, self.grid.lanes]
        for line, place, arrival in zip(events, self.places, arrivals, strict=True):
            keep_least(line, place, arrival)
        return events

    def _small(self, arrivals: list[Ints]) -> bool:
        known = self.closes[self.closes < NEVER]
        spread = [*arrivals, known, self.shift]
        return all(len(s) == 0 or (s.min() > -_SMALL and s.max() < _SMALL) for s in spread)

    def combinations(self, states: int) -> tuple[Ints, Ints, int]:
        """A number for each combination of a state and the events of a cell's atoms: what to take
        off each event, by how much to multiply it, and how many there are; 0 if too many."""
        least, spans = self._spans
        size, weight = states, []
        for span in spans:
            weight.append(min(size, _COMBINATIONS))
            size *= span
        return least, np.array(weight), size if size <= _COMBINATIONS else 0

    @cached_property
    def _spans(self) -> tuple[Ints, list[int]]:
        """The least event of each atom, and how many there may be from it on."""
        least, most = (of(self.events, axis=1).astype(np.int64) for of in (np.min, np.max))
        return least[self.row], (most - least + 1)[self.row].tolist()

    def before(self) -> Board:
        """The board without the fresh facts."""
        old = [~match.fresh for match in self.matched]
        return replace(
            self,
            matched=tuple(m.where(rows) for m, rows in zip(self.matched, old, strict=True)),
            places=tuple(p[rows] for p, rows in zip(self.places, old, strict=True)),
        )

    def touched(self) -> Ints:
        """The cells of which some atom is a fresh fact."""
        found = [
            self.places[row][self.matched[row].fresh] - shift
            for row, shift in zip(self.row.tolist(), self.shift.tolist(), strict=True)
        ]
        return np.unique(np.concatenate(found))

    def bound(self, base: Var | None, places: Ints) -> dict[Var, Ints]:
        """The values of the answer's variables in some places."""
        lane = self.grid.lane(places)
        found = {var: codes[lane] for var, codes in self.keys.items()}
        return found if base is None else {**found, base: self.grid.time(places)}

    def arrival(self, atom: int, cells: Ints) -> Ints:
        """When an atom was first there, NEVER where it was not."""
        place = self.place(atom, cells)
        event = self.events[self.row[atom], place]
        return np.where(event & 1, NEVER, self.grid.time(place) + self.zero + (event >> 1))

    def closing(self, atom: int, cells: Ints) -> Ints:
        """When an atom closes, whether or not it arrives before."""
        place = self.place(atom, cells)
        closes = self.closes[self.row[atom], self.grid.lane(place)]
        return np.where(closes < NEVER, self.grid.time(place) + self.zero + closes, NEVER)

    def place(self, atom: int, cells: Ints) -> Ints:
        """Where an atom of cells is read; anywhere for places at the edge, which are no cells."""
        found: Ints = np.clip(cells + self.shift[atom], 0, self.grid.size - 1)
        return found


@compiled
def keep_least(line: Events, places: Ints, arrivals: Ints) -> None:
    """Puts arrivals in their places, where they are before what is there."""
    for at in range(len(places)):
        line[places[at]] = min(line[places[at]], 2 * arrivals[at])


def lay_out(plan: CellPlan, columns: Columns, delays: Delays) -> Board | None:
    """The board of all facts that match, None if there is none."""
    shown, base = object_variables(plan.answer), plan.base
    matched = [Matched.of(track, shown, base, columns) for track in plan.tracks]
    sizes = [len(m.time) for m in matched]
    if not sum(sizes):
        return None
    coordinates = [np.concatenate([m.group for m in matched])]
    coordinates += [np.concatenate(part) for part in zip(*(m.keys for m in matched), strict=True)]
    lane, first = distinct(numbered(coordinates)[0])
    groups, *keys = (column[first] for column in coordinates)
    facts = _Facts(
        plan,
        matched,
        np.split(lane, np.cumsum(sizes)[:-1]),
        groups,
        dict(zip(shown, keys, strict=True)),
    )
    closes = np.stack(
        [_closing(track, facts.keys, columns, delays, len(groups)) for track in plan.tracks]
    )
    closes = np.where(closes < NEVER, closes - facts.zero, NEVER)
    return _dense(facts, closes) if _close_together(facts, sum(sizes)) else _sparse(facts, closes)


def _close_together(facts: _Facts, count: int) -> bool:
    places = len(facts.groups) * (facts.last - facts.first + 1)
    return places <= _DENSE * count + _FEW


@dataclass(frozen=True)
class _Facts:
    """What the tracks matched, by lane."""

    plan: CellPlan
    matched: list[Matched]
    lanes: list[Ints]
    """For each track the lane of each fact."""
    groups: Ints
    keys: dict[Var, Ints]

    @cached_property
    def zero(self) -> int:
        """The moment that cells count from: their time, or the first arrival if they have none."""
        if self.plan.base is not None:
            return 0
        return min(int(m.arrival.min()) for m in self.matched if len(m.arrival))

    @cached_property
    def cells(self) -> tuple[int, int]:
        """The first and the last time point that a cell may be at."""
        moments = [m.time for m in self.matched if len(m.time)]
        first, last = min(int(m.min()) for m in moments), max(int(m.max()) for m in moments)
        return first - max(self.plan.shifts), last - min(self.plan.shifts)

    @cached_property
    def first(self) -> int:
        """The first time point that a cell or one of its atoms may be at …"""
        return self.cells[0] + min(0, *self.plan.shifts)

    @cached_property
    def last(self) -> int:
        """… and the last."""
        return self.cells[1] + max(0, *self.plan.shifts)


def _dense(facts: _Facts, closes: Ints) -> Board:
    """A row for each track, a place for each time point of each lane."""
    grid = Dense(len(facts.groups), facts.first, facts.last - facts.first + 1)
    inner = np.arange(facts.cells[0] - facts.first, facts.cells[1] - facts.first + 1)
    return Board(
        facts.groups,
        facts.keys,
        grid,
        (np.arange(grid.lanes)[:, None] * grid.wide + inner).ravel(),
        facts.zero,
        closes,
        np.array(facts.plan.rows),
        np.array(facts.plan.shifts),
        facts.plan.tracks,
        tuple(facts.matched),
        tuple(
            lane * grid.wide + (match.time - facts.first)
            for lane, match in zip(facts.lanes, facts.matched, strict=True)
        ),
    )


def _sparse(facts: _Facts, closes: Ints) -> Board:
    """A row for each atom, a place for each cell that a fact belongs to."""
    plan = facts.plan
    matched = tuple(facts.matched[row] for row in plan.rows)
    lanes = np.concatenate([facts.lanes[row] for row in plan.rows])
    times = [m.time - shift for m, shift in zip(matched, plan.shifts, strict=True)]
    moments = np.concatenate(times)
    number, first = distinct(numbered([lanes, moments])[0])
    shifts = np.array(plan.shifts)
    closes = closes[list(plan.rows)]
    return Board(
        facts.groups,
        facts.keys,
        Sparse(lanes[first], moments[first]),
        np.arange(len(first)),
        facts.zero,
        np.where(closes < NEVER, closes + shifts[:, None], NEVER),
        np.arange(len(shifts)),
        np.zeros(len(shifts), dtype=np.int64),
        tuple(plan.tracks[row] for row in plan.rows),
        matched,
        tuple(np.split(number, np.cumsum([len(t) for t in times])[:-1])),
    )


def _closing(
    track: CellAtom, keys: dict[Var, Ints], columns: Columns, delays: Delays, lanes: int
) -> Ints:
    """For each lane when the atom of a track closes, counted from its time if the answer shows it,
    else from 0; NEVER if it does not."""
    delay = delays_of(track.atom, keys, columns, delays, lanes)
    time = track.atom.time
    assert time is not None
    if time.base is None:
        return time.offset + delay
    if not is_private(time.base):
        return delay
    latest = Bounds.of(time_comparisons(track.comparisons), [time]).latest(time)
    return np.full(lanes, NEVER) if latest is None else latest + delay
