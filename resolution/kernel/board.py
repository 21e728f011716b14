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

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from resolution.bounds import Bounds
from resolution.delays import Delays
from resolution.kernel.columns import NEVER, Columns, Ints, distinct
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
_NO_EVENT = np.iinfo(np.int64).max


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
    private: tuple[Ints, ...]
    """Codes and time of the atom's private variables, in the order in which they stand."""

    @classmethod
    def of(
        cls, track: CellAtom, shown: tuple[Var, ...], base: Var | None, columns: Columns
    ) -> Matched:
        found = matching(track.atom, track.comparisons, columns)
        return cls(
            found.group,
            tuple(found.bound[v] for v in shown),
            np.zeros(len(found), dtype=np.int64) if base is None else found.bound[base],
            found.arrival,
            tuple(found.bound[v] for v in found.bound if is_private(v)),
        )


@dataclass(frozen=True)
class Board:
    """Cells, and what happens to each of their atoms."""

    groups: Ints
    """The group of each lane …"""
    keys: dict[Var, Ints]
    """… and its codes of the answer's object variables."""
    cells: Ints
    """The places of the cells."""
    lane: Ints
    """The lane of each place …"""
    time: Ints
    """… and the value of the answer's time variable there (0 where it has none)."""
    closes: Ints
    """When what stands in each row and place closes: NEVER if it does not."""
    events: Ints
    """2·τ where it arrives at τ, 2·τ+1 where it closes, the greatest number where neither."""
    row: Ints
    shift: Ints
    """Where each atom of a cell is read: in which row, how far from the place of the cell."""
    tracks: tuple[CellAtom, ...]
    """For each row the atom that its facts match …"""
    matched: tuple[Matched, ...]
    """… those facts …"""
    places: tuple[Ints, ...]
    """… and the place of each of them."""

    def bound(self, base: Var | None, places: Ints | slice) -> dict[Var, Ints]:
        """The values of the answer's variables in some places."""
        lane = self.lane[places]
        found = {var: codes[lane] for var, codes in self.keys.items()}
        return found if base is None else {**found, base: self.time[places]}

    def arrival(self, atom: int, cells: Ints) -> Ints:
        """When an atom was first there, NEVER where it was not."""
        event = self.events[self.row[atom], self.place(atom, cells)]
        return np.where(event & 1, NEVER, event >> 1)

    def closing(self, atom: int, cells: Ints) -> Ints:
        """When an atom closes, whether or not it arrives before."""
        found: Ints = self.closes[self.row[atom], self.place(atom, cells)]
        return found

    def place(self, atom: int, cells: Ints) -> Ints:
        """Where an atom of cells is read; anywhere for places at the edge, which are no cells."""
        found: Ints = np.clip(cells + self.shift[atom], 0, len(self.time) - 1)
        return found


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
    delay = [_delay(track, facts.keys, columns, delays, len(groups)) for track in plan.tracks]
    return _dense(facts, delay) if _close_together(facts, sum(sizes)) else _sparse(facts, delay)


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


def _dense(facts: _Facts, delay: list[_Delay]) -> Board:
    """A row for each track, a place for each time point of each lane."""
    lanes, wide = len(facts.groups), facts.last - facts.first + 1
    lane = np.repeat(np.arange(lanes), wide)
    time = np.tile(np.arange(facts.first, facts.last + 1), lanes)
    closes = np.stack([d.closing(time, lane) for d in delay])
    places = tuple(
        lane * wide + (m.time - facts.first)
        for lane, m in zip(facts.lanes, facts.matched, strict=True)
    )
    inner = np.arange(facts.cells[0] - facts.first, facts.cells[1] - facts.first + 1)
    return Board(
        facts.groups,
        facts.keys,
        (np.arange(lanes)[:, None] * wide + inner).ravel(),
        lane,
        time,
        closes,
        _events(closes, places, facts.matched),
        np.array(facts.plan.rows),
        np.array(facts.plan.shifts),
        facts.plan.tracks,
        tuple(facts.matched),
        places,
    )


def _sparse(facts: _Facts, delay: list[_Delay]) -> Board:
    """A row for each atom, a place for each cell that a fact belongs to."""
    plan = facts.plan
    matched = tuple(facts.matched[row] for row in plan.rows)
    lanes = np.concatenate([facts.lanes[row] for row in plan.rows])
    times = [m.time - shift for m, shift in zip(matched, plan.shifts, strict=True)]
    moments = np.concatenate(times)
    number, first = distinct(numbered([lanes, moments])[0])
    lane, time = lanes[first], moments[first]
    closes = np.stack(
        [
            delay[row].closing(time + shift, lane)
            for row, shift in zip(plan.rows, plan.shifts, strict=True)
        ]
    )
    places = tuple(np.split(number, np.cumsum([len(t) for t in times])[:-1]))
    atoms = len(plan.rows)
    return Board(
        facts.groups,
        facts.keys,
        np.arange(len(first)),
        lane,
        time,
        closes,
        _events(closes, places, matched),
        np.arange(atoms),
        np.zeros(atoms, dtype=np.int64),
        tuple(plan.tracks[row] for row in plan.rows),
        matched,
        places,
    )


def _events(closes: Ints, places: Sequence[Ints], matched: Sequence[Matched]) -> Ints:
    events = np.where(closes < NEVER, 2 * closes + 1, _NO_EVENT)
    for row, place, match in zip(events, places, matched, strict=True):
        np.minimum.at(row, place, 2 * match.arrival)
    return events


@dataclass(frozen=True)
class _Delay:
    """What says when the atoms of a track close."""

    of_lane: Ints
    latest: int | None
    """The latest time point of one whose time the answer does not show, NEVER if there is none."""

    def closing(self, time: Ints, lane: Ints) -> Ints:
        """When the atom of a track closes at some times in some lanes."""
        if self.latest is None:
            return time + self.of_lane[lane]
        if self.latest >= NEVER:
            return np.full(len(time), NEVER)
        return self.latest + self.of_lane[lane]


def _delay(
    track: CellAtom, keys: dict[Var, Ints], columns: Columns, delays: Delays, lanes: int
) -> _Delay:
    of_lane = delays_of(track.atom, keys, columns, delays, lanes)
    time = track.atom.time
    assert time is not None
    if time.base is None:
        return _Delay(of_lane, time.offset)
    if not is_private(time.base):
        return _Delay(of_lane, None)
    latest = Bounds.of(time_comparisons(track.comparisons), [time]).latest(time)
    return _Delay(of_lane, int(NEVER) if latest is None else latest)
