"""Forms: all the ways in which some atoms of a premise set may be matched, each as one table.

A substitution of rule 2 binds the variables of the atoms it matches, all and only those. So for
each set of variables that some atoms have together there is one table of rows that bind it; of the
other atoms, those which the row makes ground may be there as well, and the rest stay open. As facts
arrive, a row goes through stages: each has one atom more as evidence.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from resolution.bounds import decide
from resolution.delays import Delays
from resolution.kernel.columns import NEVER, Bools, Columns, Ints, distinct
from resolution.kernel.lookup import first_of_each
from resolution.kernel.patterns import delays_of
from resolution.kernel.ranges import Minima, least_text
from resolution.kernel.relations import (
    Relation,
    between,
    first_arrival,
    holds,
    join,
    matching,
    numbered,
)
from resolution.kernel.windows import Windows
from resolution.premises import PremiseSet
from resolution.substitution import apart, unify, variables
from resolution.terms import Atom, Comparison, Term, Time, Var


@dataclass(frozen=True)
class Form:
    """Triples of one premise set: which variables are bound, which atoms are evidence."""

    premises: PremiseSet
    bound: frozenset[Var]
    evidence: tuple[Atom, ...]
    hypotheses: tuple[Atom, ...]
    """The other atoms; one that is equal to an earlier one in all rows is left out."""

    @property
    def undecided(self) -> tuple[Comparison, ...]:
        return tuple(
            c
            for c in self.premises.comparisons
            if not variables(c) <= self.bound and decide(c) is None
        )


@dataclass(frozen=True)
class Candidates:
    """The triples of one form that satisfy rules 1 to 3, each while it does."""

    form: Form
    rows: Relation
    arrivals: tuple[Ints, ...]
    closes: tuple[Ints, ...]
    start: Ints
    met: Ints
    """When a hypothesis arrived, NEVER if none did."""
    end: Ints
    """When one arrived or something smaller came, NEVER if neither."""

    def __len__(self) -> int:
        return len(self.start)

    @property
    def windows(self) -> Windows:
        times = {
            v: c for v, c in self.rows.bound.items() if v in _time_variables(self.form.premises)
        }
        return Windows(self.form.premises, times, len(self))

    @property
    def size(self) -> int:
        """Bytes of the triples themselves."""
        bound = self.rows.bound.values()
        return sum(c.nbytes for c in (*bound, *self.arrivals, self.start, self.end))

    def take(self, rows: Ints | Bools) -> Candidates:
        return Candidates(
            self.form,
            self.rows.take(rows),
            tuple(column[rows] for column in self.arrivals),
            tuple(column[rows] for column in self.closes),
            self.start[rows],
            self.met[rows],
            self.end[rows],
        )

    def until(self, end: Ints) -> Candidates:
        return replace(self, end=np.minimum(self.end, end))


def candidates(premises: PremiseSet, columns: Columns, delays: Delays) -> Iterator[Candidates]:
    """Every form of a premise set that some facts have."""
    facts = [matching(atom, premises.comparisons, columns) for atom in premises.atoms]
    for bound in bindable(premises.atoms):
        chosen = witnesses(premises, bound)
        times = {_own_time(premises.atoms[n]) for n in chosen}
        rows = _rows(premises, bound - times, facts, columns, chosen)
        if rows is not None and len(rows):
            found = {n: Witness.of(premises, n, rows, facts[n]) for n in chosen}
            yield from _stages(premises, bound, rows, facts, columns, delays, found)


def bindable(atoms: tuple[Atom, ...]) -> list[frozenset[Var]]:
    """The sets of variables that some of the atoms have together, the small ones first."""
    found: set[frozenset[Var]] = set()
    for atom in atoms:
        own = frozenset(variables(atom))
        found |= {own} | {own | other for other in found}
    return sorted(found, key=lambda s: (len(s), sorted(s)))


def witnesses(premises: PremiseSet, bound: frozenset[Var]) -> list[int]:
    """Atoms of which a form needs one fact, whichever: their time is seen nowhere else.

    That is so where all the times it is compared with are bound by other atoms, and no fact can
    stand for it and for another. Rows are then not multiplied by the facts in its window.
    """
    atoms = premises.atoms
    found: list[int] = []
    for number, atom in enumerate(atoms):
        time = _own_time(atom)
        others = [a for n, a in enumerate(atoms) if n != number]
        if time is None or time not in bound or time in variables(premises.answer, *others):
            continue
        linked = set().union(*(variables(c) for c in premises.comparisons if time in variables(c)))
        open_times = {_own_time(atoms[n]) for n in found} | {time}
        rest = bound - open_times
        inside = [variables(a) for n, a in enumerate(atoms) if n not in (*found, number)]
        inside = [own for own in inside if own <= rest]
        if (
            (linked | variables(atom)) - {time} <= rest
            and _bound_without(variables(atom), rest, inside)
            and all(unify(atom, apart(a, rest), {}) is None for a in others)
        ):
            found.append(number)
    return found


def _bound_without(own: set[Var], rest: frozenset[Var], others: list[set[Var]]) -> bool:
    """Whether other atoms that bind what an atom does not bind the rest in any case."""
    foreign = rest - own
    return (
        bool(foreign)
        and rest <= set().union(*others)
        and not any(
            foreign <= set().union(*(other for other in others if var not in other))
            for var in own & rest
        )
    )


def _own_time(atom: Atom) -> Var | None:
    return atom.time.base if atom.time is not None else None


@dataclass(frozen=True)
class Witness:
    """For each row the range of facts that would do for an atom, in order of key and time."""

    facts: Relation
    time: Var
    low: Ints
    high: Ints
    minima: Minima

    @classmethod
    def of(cls, premises: PremiseSet, number: int, rows: Relation, facts: Relation) -> Witness:
        time = _own_time(premises.atoms[number])
        assert time is not None
        shared = [var for var in facts.bound if var in rows.bound]
        wanted, known = numbered(
            [rows.group, *(rows.bound[v] for v in shared)],
            [facts.group, *(facts.bound[v] for v in shared)],
        )
        order = np.lexsort((facts.bound[time], known))
        facts = facts.take(order)
        windows = Windows(premises, _times(premises, rows.bound), len(rows))
        at = Time(time, 0)
        low, high = between(
            known[order], facts.bound[time], wanted, windows.earliest(at), windows.latest(at)
        )
        minima = Minima(facts.arrival, int((high - low).max(initial=1)))
        return cls(facts, time, low, high, minima)

    def first_arrival(self) -> Ints:
        return self.minima.least(self.low, self.high)

    def shown(self, rows: Ints, tau: Ints, atom: Atom) -> tuple[Ints, Ints]:
        """The time and the arrival of the fact that reads least of those that were there at τ."""
        assert atom.time is not None
        moments = self.facts.bound[self.time]
        stands = moments + atom.time.offset
        at = least_text(self.minima, stands, self.low[rows], self.high[rows], tau)
        return moments[at], self.facts.arrival[at]


def _rows(
    premises: PremiseSet,
    bound: frozenset[Var],
    facts: list[Relation],
    columns: Columns,
    witnesses: list[int],
) -> Relation | None:
    """The rows that bind these variables by facts: by every least choice of atoms that has them."""
    inside = [
        n
        for n, atom in enumerate(premises.atoms)
        if variables(atom) <= bound and n not in witnesses
    ]
    tables = [
        table
        for cover in covers(bound, {n: variables(premises.atoms[n]) for n in inside})
        if (table := _joined(premises, cover, facts, columns)) is not None
    ]
    if not tables:
        return None
    order = sorted(bound)
    group = np.concatenate([t.group for t in tables])
    merged = {v: np.concatenate([t.bound[v] for t in tables]) for v in order}
    whole = Relation(group, merged, np.zeros(len(group), dtype=np.int64))
    code = numbered([group, *merged.values()])[0]
    whole = whole.take(first_of_each(code))
    ok = Windows(premises, _times(premises, whole.bound), len(whole)).satisfiable
    for comparison in premises.comparisons:
        if variables(comparison) <= bound:
            ok = ok & holds(comparison, whole.bound, columns)
        elif decide(comparison) is False:
            return None
    return whole.take(ok)


def covers(bound: frozenset[Var], having: dict[int, set[Var]]) -> Iterator[tuple[int, ...]]:
    """The least sets of atoms that have all these variables; where there are none, one atom."""
    found: list[set[int]] = []
    for size in range(1, len(having) + 1):
        for some in itertools.combinations(having, size):
            if any(smaller <= set(some) for smaller in found):
                continue
            if set().union(*(having[n] for n in some)) == bound:
                found.append(set(some))
                yield some


def _joined(
    premises: PremiseSet, cover: tuple[int, ...], facts: list[Relation], columns: Columns
) -> Relation | None:
    rest = list(cover)
    at = min(rest, key=lambda n: len(facts[n]))
    rest.remove(at)
    rows = facts[at]
    while rest and len(rows):
        known = rows.bound.keys()
        at = max(rest, key=lambda n: (len(facts[n].bound.keys() & known), -len(facts[n])))
        rest.remove(at)
        time = premises.atoms[at].time
        rows = join(rows, facts[at], time.base if time else None, premises.bounds)
        for comparison in premises.comparisons:
            if variables(comparison) <= rows.bound.keys():
                rows = rows.take(holds(comparison, rows.bound, columns))
    return None if rest else rows


def _stages(
    premises: PremiseSet,
    bound: frozenset[Var],
    rows: Relation,
    facts: list[Relation],
    columns: Columns,
    delays: Delays,
    witnesses: dict[int, Witness],
) -> Iterator[Candidates]:
    ground = [n for n, atom in enumerate(premises.atoms) if variables(atom) <= bound]
    arrived = {
        n: witnesses[n].first_arrival()
        if n in witnesses
        else first_arrival(rows, premises.atoms[n], facts[n])
        for n in ground
    }
    windows = Windows(premises, _times(premises, rows.bound), len(rows))
    closes = {
        n: _closes(atom, windows, rows, columns, delays) for n, atom in enumerate(premises.atoms)
    }
    for last in ground:
        start = arrived[last]
        there = {n: arrived[n] <= start for n in ground}
        # Of several that arrive together one leads, so that a stage is met once.
        leads = start < NEVER
        for n in ground:
            leads = leads & ~((arrived[n] == start) & (n < last))
        code = sum((there[n].astype(np.int64) << n for n in ground), np.zeros(len(rows), np.int64))
        for mask in present(code[leads]):
            evidence = [n for n in ground if mask >> n & 1]
            if set().union(*(variables(premises.atoms[n]) for n in evidence)) != bound:
                continue
            chosen = np.flatnonzero(leads & (code == mask))
            some = rows.take(chosen)
            moments = {n: column[chosen] for n, column in arrived.items()}
            for n, witness in witnesses.items():
                time, arrival = witness.shown(chosen, start[chosen], premises.atoms[n])
                some.bound[witness.time], moments[n] = time, arrival
            yield from _distinct(premises, bound, evidence, some, {
                "arrived": moments,
                "closes": {n: column[chosen] for n, column in closes.items()},
            }, start[chosen], columns)  # fmt: skip


def present(masks: Ints) -> list[int]:
    """The different ones, in order."""
    found: list[int] = masks[distinct(masks)[1]].tolist()
    return found


def _distinct(
    premises: PremiseSet,
    bound: frozenset[Var],
    evidence: list[int],
    rows: Relation,
    moments: dict[str, dict[int, Ints]],
    start: Ints,
    columns: Columns,
) -> Iterator[Candidates]:
    """Evidence and hypotheses are sets: atoms that are equal in a row count once there."""
    missing = [n for n in range(len(premises.atoms)) if n not in evidence]
    repeated = np.zeros(len(rows), dtype=np.int64)
    for part in (evidence, missing):
        for a, b in itertools.combinations(part, 2):
            same = equal(premises.atoms[a], premises.atoms[b], rows.bound, columns, len(rows))
            if same is not None:
                repeated |= same.astype(np.int64) << b
    for mask in present(repeated):
        chosen = np.flatnonzero(repeated == mask)
        shown = [n for n in evidence if not mask >> n & 1]
        awaited = [n for n in missing if not mask >> n & 1]
        closes = tuple(moments["closes"][n][chosen] for n in awaited)
        never = np.full(len(chosen), NEVER, dtype=np.int64)
        met = np.minimum.reduce(
            [never, *(moments["arrived"][n][chosen] for n in awaited if n in moments["arrived"])]
        )
        found = Candidates(
            Form(
                premises,
                bound,
                tuple(premises.atoms[n] for n in shown),
                tuple(premises.atoms[n] for n in awaited),
            ),
            rows.take(chosen),
            tuple(moments["arrived"][n][chosen] for n in shown),
            closes,
            start[chosen],
            met,
            met,
        )
        possible = np.minimum.reduce([never, *closes]) > start[chosen]
        if possible.any():
            yield found.take(possible)


def equal(a: Atom, b: Atom, bound: dict[Var, Ints], columns: Columns, size: int) -> Bools | None:
    """In which rows two atoms are one, None if in none."""
    if a.predicate != b.predicate or a.time is None or b.time is None:
        return None
    same = np.ones(size, dtype=np.bool_)
    pairs: list[tuple[Term | Time, Term | Time]] = [
        *zip(a.args, b.args, strict=True),
        (a.time, b.time),
    ]
    for left, right in pairs:
        if left == right:
            continue
        sides = [value(side, bound, columns) for side in (left, right)]
        if sides[0] is None or sides[1] is None or not variables(left, right):
            return None
        same &= sides[0] == sides[1]
    return same if same.any() else None


def value(term: Term | Time, bound: dict[Var, Ints], columns: Columns) -> Ints | None:
    """A term as a column (or one number for all rows), None where it is not bound."""
    if isinstance(term, Time):
        if term.base is None:
            return np.asarray(term.offset, dtype=np.int64)
        return bound[term.base] + term.offset if term.base in bound else None
    if isinstance(term, Var):
        return bound.get(term)
    return np.asarray(columns.code(term), dtype=np.int64)


def _closes(atom: Atom, windows: Windows, rows: Relation, columns: Columns, delays: Delays) -> Ints:
    assert atom.time is not None
    latest = windows.latest(atom.time)
    delay = delays_of(atom, rows.bound, columns, delays, len(rows))
    return np.where(latest >= NEVER, NEVER, latest + delay)


def _times(premises: PremiseSet, bound: dict[Var, Ints]) -> dict[Var, Ints]:
    names = _time_variables(premises)
    return {var: column for var, column in bound.items() if var in names}


def _time_variables(premises: PremiseSet) -> set[Var]:
    return {t.base for t in premises.times if t.base is not None}
