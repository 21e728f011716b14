"""Joins of facts on the variables of premise atoms: rows that bind variables, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from resolution.bounds import Bounds
from resolution.kernel.columns import Bools, Columns, Ints
from resolution.kernel.lookup import least, spans
from resolution.kernel.ranges import place
from resolution.substitution import variables
from resolution.terms import Atom, Comparison, Time, Var

_FAR = np.int64(2**61)


@dataclass(frozen=True)
class Relation:
    """Rows of one group each that bind some variables, with when each row is there."""

    group: Ints
    bound: dict[Var, Ints]
    """Codes of object variables, values of time variables."""
    arrival: Ints
    fresh: Bools | None = None
    """Which facts were read in this batch, where rows are facts."""

    def __len__(self) -> int:
        return len(self.group)

    def take(self, rows: Ints | Bools) -> Relation:
        bound = {var: column[rows] for var, column in self.bound.items()}
        fresh = None if self.fresh is None else self.fresh[rows]
        return Relation(self.group[rows], bound, self.arrival[rows], fresh)


def matching(atom: Atom, comparisons: Sequence[Comparison], columns: Columns) -> Relation:
    """The facts that match an atom and satisfy the comparisons on its variables alone."""
    assert atom.time is not None
    facts = columns.like(atom)
    bound: dict[Var, Ints] = {
        arg: facts.args[place] for place, arg in enumerate(atom.args) if isinstance(arg, Var)
    }
    if atom.time.base is not None:
        bound[atom.time.base] = facts.time - atom.time.offset
    found = Relation(facts.group, bound, facts.arrival, facts.fresh)
    tests = [
        holds(comparison, bound, columns)
        for comparison in comparisons
        if variables(comparison) <= bound.keys()
    ]
    return found.take(np.logical_and.reduce(tests)) if tests else found


def holds(comparison: Comparison, bound: dict[Var, Ints], columns: Columns) -> Bools:
    """A comparison whose variables are all bound, row by row."""
    left, operator, right = comparison.left, comparison.operator, comparison.right
    if isinstance(left, Time):
        assert isinstance(right, Time)
        a, b = (t.offset + (bound[t.base] if t.base else 0) for t in (left, right))
        compare = {"=": np.equal, "<": np.less, "<=": np.less_equal,
                   ">": np.greater, ">=": np.greater_equal}[operator]  # fmt: skip
        return np.asarray(compare(a, b))
    sides = [bound[t] if isinstance(t, Var) else t for t in (left, right)]
    return columns.compare(sides[0], operator, sides[1])  # type: ignore[arg-type]


def join(left: Relation, right: Relation, time: Var | None, bounds: Bounds) -> Relation:
    """Rows of both that agree on what both bind.

    Where `time`, the time variable of the right side, is new, only the range that the bounds leave
    it is looked at: the right side is sorted by key and time, so a range is two searches.
    """
    shared = [var for var in right.bound if var in left.bound]
    keys, other = numbered(
        [left.group, *(left.bound[v] for v in shared)],
        [right.group, *(right.bound[v] for v in shared)],
    )
    moments = right.bound[time] if time is not None else np.zeros(len(right), dtype=np.int64)
    low, high = _range(left, None if time in shared else time, bounds)
    order = np.lexsort((moments, other))
    ours, theirs = expand(*between(other[order], moments[order], keys, low, high))
    theirs = order[theirs]
    bound = {var: column[ours] for var, column in left.bound.items()}
    bound.update((var, right.bound[var][theirs]) for var in right.bound if var not in bound)
    arrival = np.maximum(left.arrival[ours], right.arrival[theirs])
    return Relation(left.group[ours], bound, arrival)


def between(keys: Ints, moments: Ints, key: Ints, low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """Where in rows sorted by key and moment those of a key from low to high begin and end."""
    first, past = spans(key, keys)
    start = place(moments, first, past, low)
    return start, place(moments, start, past, high + 1)


def _range(left: Relation, time: Var | None, bounds: Bounds) -> tuple[Ints, Ints]:
    """Between which values a new time variable lies, row by row."""
    low = np.full(len(left), -_FAR, dtype=np.int64)
    high = np.full(len(left), _FAR, dtype=np.int64)
    if time is not None:
        for (x, y), k in bounds.closed.items():
            if x == time and y in left.bound:
                high = np.minimum(high, left.bound[y] + k)
            elif y == time and x in left.bound:
                low = np.maximum(low, left.bound[x] - k)
    return low, high


def expand(start: Ints, stop: Ints) -> tuple[Ints, Ints]:
    """All members of ranges, and the row whose range each is of."""
    counts = stop - start
    row = np.repeat(np.arange(len(counts)), counts)
    inside = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    return row, start[row] + inside


def numbered(*tables: list[Ints]) -> list[Ints]:
    """For rows of several columns in several tables, a number that equal rows share."""
    sizes = np.cumsum([len(table[0]) for table in tables])[:-1]
    code = np.zeros(sum(len(table[0]) for table in tables), dtype=np.int64)
    for parts in zip(*tables, strict=True):
        column = np.concatenate(parts)
        if not len(column):
            continue
        low = int(column.min())
        size = int(column.max()) - low + 1
        if size == 1:
            continue
        if int(code.max()) + 1 > 2**62 // size:
            code = np.unique(code, return_inverse=True)[1].astype(np.int64)
            values, column = np.unique(column, return_inverse=True)
            low, size = 0, len(values)
        code = code * size + (column - low)
    return np.split(code, sizes)


def first_arrival(rows: Relation, atom: Atom, facts: Relation) -> Ints:
    """When the instance of an atom that each row makes ground was first there, NEVER if not."""
    shared = [var for var in facts.bound if var in rows.bound]
    wanted, known = numbered(
        [rows.group, *(rows.bound[v] for v in shared)],
        [facts.group, *(facts.bound[v] for v in shared)],
    )
    return least(wanted, known, facts.arrival)
