"""Cells: queries in which every premise, once it is there, says which answer it is for.

Then each answer θ is a *cell* of its own, and all that matters of the facts is, for each premise
atom of the cell, which of three values it has: there, still possible, or closed. So a query is an
automaton over those values. An atom arrives or closes once; the events of a cell, in order, drive
its state; a state determines `S_τ` of the cell, by rule 4 on sets of bits. States are computed when
first met, by the definition, and looked up ever after: all cells go on together, one event of each
at a time, as vectors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from resolution.bounds import Bounds
from resolution.delays import Delays
from resolution.kernel.automaton import Automaton, Support
from resolution.kernel.columns import NEVER, Bools, Columns, Ints
from resolution.kernel.patterns import delays_of
from resolution.kernel.relations import distinct, holds, matching, numbered
from resolution.kernel.render import Block, Renderer
from resolution.kernel.text import chosen, less
from resolution.kernel.witness import Witnesses
from resolution.kernel.written import Form, form_of, written
from resolution.premises import PremiseSet, time_comparisons
from resolution.substitution import apart, apply, apply_comparison, unify, variables
from resolution.terms import Atom, Comparison, Term, Time, Var

MOST_ATOMS = 62
"""The atoms of a cell are bits of one integer."""
_ROWS = 1_000_000
"""Rows that are written at a time: what a cache can follow."""
_MARGIN = 100_000
"""Room for the rows of one cell more."""


@dataclass(frozen=True)
class CellAtom:
    """A premise atom of every cell: its place among the bits, and what is private to it."""

    atom: Atom
    comparisons: tuple[Comparison, ...]
    """Those on its private variables."""


@dataclass(frozen=True)
class CellPlan:
    """A query as cells: the atoms, and each premise set as a set of them."""

    premise_sets: tuple[PremiseSet, ...]
    answer: Atom
    """The answer of a cell, in the variables that all premise sets are written in."""
    atoms: tuple[CellAtom, ...]
    bits: tuple[tuple[int, ...], ...]
    """For each premise set the place of each of its atoms."""
    guards: tuple[tuple[Comparison, ...], ...]
    """For each premise set the comparisons on the answer's variables."""
    least: tuple[int, ...]
    """For each premise set the least answer time at which all its times are natural."""

    @cached_property
    def automaton(self) -> Automaton:
        """What has been found out about the states of a cell: it stays for the next call."""
        masks = tuple(sum(1 << bit for bit in bits) for bits in self.bits)
        return Automaton(masks, len(self.atoms))


class NotCells(Exception):
    """Why the answers of a query are not cells."""


def plan_cells(premise_sets: tuple[PremiseSet, ...]) -> CellPlan:
    """The plan, or NotCells with the reason why every answer is not a cell of its own."""
    answer = premise_sets[0].answer
    shown = variables(answer)
    atoms: dict[tuple[Atom, tuple[Comparison, ...]], int] = {}
    places, guards, least = [], [], []
    for premises in premise_sets:
        if premises.answer != answer:
            raise NotCells(f"some answers are {answer}, some {premises.answer}")
        bits: list[int] = []
        for atom in premises.atoms:
            if not shown <= variables(atom):
                raise NotCells(f"{atom} alone does not say which answer it is for")
            private = variables(atom) - shown
            if any(private & variables(other) for other in premises.atoms if other is not atom):
                raise NotCells(f"{atom} shares a variable that the answer does not show")
            own = [c for c in premises.comparisons if variables(c) & private]
            if any(not variables(c) <= shown | private for c in own):
                raise NotCells(f"{atom} is compared with another atom")
            bit = atoms.setdefault(_anonymous(atom, tuple(own), shown), len(atoms))
            if bit in bits:
                raise NotCells(f"{atom} stands twice in premise set {premises.number}")
            bits.append(bit)
        places.append(tuple(bits))
        guards.append(tuple(c for c in premises.comparisons if variables(c) <= shown))
        times = [t.offset for t in premises.times if t.base == _base(answer) and t.base]
        least.append(max((-offset for offset in times), default=0))
    if len(atoms) > MOST_ATOMS:
        raise NotCells(f"{len(atoms)} premise atoms are more than {MOST_ATOMS}")
    found = tuple(CellAtom(atom, comparisons) for atom, comparisons in atoms)
    _require_distinct(found, shown)
    return CellPlan(premise_sets, answer, found, tuple(places), tuple(guards), tuple(least))


def _base(answer: Atom) -> Var | None:
    assert answer.time is not None
    return answer.time.base


def _anonymous(
    atom: Atom, comparisons: tuple[Comparison, ...], shown: set[Var]
) -> tuple[Atom, tuple[Comparison, ...]]:
    """An atom with its private variables numbered, so that the same one is met again."""
    timed = {atom.time.base} if atom.time is not None else set()
    names: dict[Var, Term | Time] = {}
    private = [a for a in atom.args if isinstance(a, Var) and a not in shown]
    private += [b for b in timed if b is not None and b not in shown]
    for var in private:
        new = Var(f"{len(names)}")
        names.setdefault(var, Time(new, 0) if var in timed else new)
    renamed = tuple(sorted((apply_comparison(c, names) for c in comparisons), key=str))
    return apply(atom, names), renamed


def _is_private(var: Var) -> bool:
    return var.name.isdigit()


def _require_distinct(atoms: tuple[CellAtom, ...], shown: set[Var]) -> None:
    """No fact may stand for two atoms of a cell, nor one atom be an instance of another."""
    for at, cell in enumerate(atoms):
        for other in atoms[:at]:
            if unify(cell.atom, apart(other.atom, shown), {}) is not None:
                raise NotCells(f"one fact may be both {cell.atom} and {other.atom}")


# --- evaluation ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class CellLives:
    """The lives of the triples of all cells, one row each."""

    plan: CellPlan
    matches: list[_Match]
    cells: _Cells
    keys: tuple[Ints, ...]
    """For each cell the codes of the answer's object variables."""
    group: Ints
    time: Ints
    """For each cell the value of the answer's time variable (0 where there is none)."""
    arrivals: Ints
    """When each atom of each cell was first there, NEVER where it was not: atoms × cells."""
    closes: Ints
    """When each atom of each cell closes: atoms × cells."""
    automaton: Automaton
    cell: npt.NDArray[np.int32]
    place: npt.NDArray[np.int32]
    """Where the hypotheses stand among those of all states, in the state in which it appeared."""
    start: Ints
    end: Ints
    """When it left `S_τ`, NEVER if it did not."""

    @cached_property
    def bound(self) -> dict[Var, Ints]:
        """For each cell the values of the answer's variables."""
        found = dict(zip(_object_variables(self.plan.answer), self.keys, strict=True))
        base = _base(self.plan.answer)
        return found if base is None else {**found, base: self.time}

    @property
    def size(self) -> int:
        """Bytes of the triples themselves."""
        rows = (self.cell, self.place, self.start, self.end)
        return sum(column.nbytes for column in rows)


def evaluate(plan: CellPlan, columns: Columns, delays: Delays) -> CellLives | None:
    """The life of every triple, None if no fact matches."""
    shown = _object_variables(plan.answer)
    matched = [_matching(cell, shown, columns) for cell in plan.atoms]
    cells = _Cells.of(plan, matched)
    if cells is None:
        return None
    arrivals = cells.first_arrivals(matched)
    closes = np.stack([_closing(cell, shown, cells, columns, delays) for cell in plan.atoms])
    automaton = plan.automaton
    rows = _run(automaton, _applicable(plan, cells, shown, columns, automaton), arrivals, closes)
    return CellLives(
        plan,
        matched,
        cells,
        cells.keys,
        cells.group,
        cells.time,
        arrivals,
        closes,
        automaton,
        *rows,
    )


@dataclass(frozen=True)
class _Match:
    """The facts that match an atom, with the coordinates of the cell each belongs to."""

    group: Ints
    keys: tuple[Ints, ...]
    time: Ints
    arrival: Ints
    private: tuple[Ints, ...]
    """Codes and time of the atom's private variables, in the order in which they stand."""


def _object_variables(answer: Atom) -> tuple[Var, ...]:
    return tuple(dict.fromkeys(a for a in answer.args if isinstance(a, Var)))


def _matching(cell: CellAtom, shown: tuple[Var, ...], columns: Columns) -> _Match:
    found = matching(cell.atom, cell.comparisons, columns)
    assert cell.atom.time is not None
    base = cell.atom.time.base
    none = np.zeros(len(found), dtype=np.int64)
    return _Match(
        found.group,
        tuple(found.bound[v] for v in shown),
        none if base is None else found.bound[base],
        found.arrival,
        tuple(found.bound[v] for v in found.bound if _is_private(v)),
    )


@dataclass(frozen=True)
class _Cells:
    """The cells that some fact belongs to."""

    group: Ints
    keys: tuple[Ints, ...]
    time: Ints
    of_match: tuple[Ints, ...]
    """For each atom, the cell of each fact that matches it."""

    @classmethod
    def of(cls, plan: CellPlan, matched: list[_Match]) -> _Cells | None:
        timed = plan.answer.time is not None and plan.answer.time.base is not None
        sizes = [len(m.time) for m in matched]
        if not sum(sizes):
            return None
        columns = [np.concatenate([m.group for m in matched])]
        columns += [np.concatenate(part) for part in zip(*(m.keys for m in matched), strict=True)]
        if timed:
            columns.append(np.concatenate([m.time for m in matched]))
        number, first = distinct(numbered(columns)[0])
        group, *keys = (column[first] for column in columns)
        time = keys.pop() if timed else np.zeros(len(first), dtype=np.int64)
        parts = np.split(number, np.cumsum(sizes)[:-1])
        return cls(group, tuple(keys), time, tuple(parts))

    def first_arrivals(self, matched: list[_Match]) -> Ints:
        found = np.full((len(matched), len(self.time)), NEVER, dtype=np.int64)
        for row, match, cell in zip(found, matched, self.of_match, strict=True):
            np.minimum.at(row, cell, match.arrival)
        return found


def _closing(
    cell: CellAtom, shown: tuple[Var, ...], cells: _Cells, columns: Columns, delays: Delays
) -> Ints:
    """When an atom closes in each cell."""
    atom = cell.atom
    assert atom.time is not None
    delay = delays_of(
        atom, dict(zip(shown, cells.keys, strict=True)), columns, delays, len(cells.time)
    )
    if atom.time.base is None:
        return atom.time.offset + delay
    if not _is_private(atom.time.base):
        return cells.time + atom.time.offset + delay
    latest = Bounds.of(time_comparisons(cell.comparisons), [atom.time]).latest(atom.time)
    return np.full(len(delay), NEVER) if latest is None else latest + delay


def _applicable(
    plan: CellPlan, cells: _Cells, shown: tuple[Var, ...], columns: Columns, automaton: Automaton
) -> npt.NDArray[np.int32]:
    """The state in which each cell begins: which premise sets its answer leaves possible."""
    bound = dict(zip(shown, cells.keys, strict=True))
    base = _base(plan.answer)
    if base is not None:
        bound[base] = cells.time
    tests: dict[object, Bools] = {}
    needs: list[list[object]] = []
    for guard, least in zip(plan.guards, plan.least, strict=True):
        for comparison in guard:
            tests.setdefault(comparison, holds(comparison, bound, columns))
        tests.setdefault(least, cells.time >= least)
        needs.append([*guard, least])
    order = list(tests)
    code = np.zeros(len(cells.time), dtype=np.int64)
    for place, test in enumerate(order):
        code |= tests[test].astype(np.int64) << place
    which, first = distinct(code)
    states = []
    for outcome in code[first].tolist():
        passed = {test for place, test in enumerate(order) if outcome >> place & 1}
        applicable = frozenset(n for n, need in enumerate(needs) if passed.issuperset(need))
        states.append(automaton.start(applicable))
    return np.array(states, dtype=np.int32)[which]


def _run(
    automaton: Automaton, states: npt.NDArray[np.int32], arrivals: Ints, closes: Ints
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], Ints, Ints]:
    """Drives every cell through its events and notes when each triple appears and goes."""
    from resolution.kernel.drive import drive

    cells = np.arange(len(states))
    unknown = np.empty(len(states), dtype=np.int64)
    which: list[npt.NDArray[np.int32]] = []
    when: list[Ints] = []
    while len(cells):
        tables = automaton.tables()
        room = min(4 * len(cells), _ROWS) + _MARGIN
        out = np.empty((2, room), dtype=np.int32), np.empty((2, room), dtype=np.int64)
        done, rows, again = drive(cells, states, arrivals, closes, NEVER, *tables, *out, unknown)
        which.append(out[0][:, :rows])
        when.append(out[1][:, :rows])
        for edge in set(unknown[:again].tolist()):
            automaton.meet(edge)
        cells = np.concatenate([cells[:again], cells[done:]])
    cell, place = np.concatenate(which, axis=1)
    start, end = np.concatenate(when, axis=1)
    return cell, place, start, end


# --- blocks --------------------------------------------------------------------------------------


def at_home(lives: CellLives, columns: Columns) -> CellLives:
    """The triples whose answers are those of their groups."""
    assert lives.plan.answer.time is not None
    times = lives.time + lives.plan.answer.time.offset
    rows = columns.homes.have(lives.plan.answer, lives.bound, lives.group, times)[lives.cell]
    found = {n: getattr(lives, n)[rows] for n in ("cell", "place", "start", "end")}
    return replace(lives, **found)


def tables(lives: CellLives, renderer: Renderer) -> Iterator[pa.Table]:
    """The triples of all cells, each with the evidence it shows, as tables of TRIPLES."""
    together: list[tuple[Form, Ints]] = []
    witnesses = _Witnesses(lives, renderer)
    for supports, rows in _choices(lives):
        form = form_of(lives.plan, supports[0]) if len(supports) == 1 else None
        if form is not None:
            together.append((form, rows))
            continue
        offers = [_block(lives, support, rows, witnesses) for support in supports]
        chosen = _least_text(offers, renderer)
        for number, offer in enumerate(offers):
            part = offer if len(offers) == 1 else offer.take(chosen == number)
            if len(part):
                yield renderer.table(part)
    yield from written(lives, together, renderer)


def _choices(lives: CellLives) -> Iterator[tuple[tuple[Support, ...], Ints]]:
    """The rows of triples that have the same supports."""
    if not len(lives.cell):
        return
    _, offsets, visible, _ = lives.automaton.tables()
    order = np.argsort(lives.place, kind="stable")
    places, first = np.unique(lives.place[order], return_index=True)
    states = np.searchsorted(offsets, places, "right") - 1
    choices: dict[tuple[int, tuple[Support, ...]], list[Ints]] = {}
    for state, hypotheses, rows in zip(
        states.tolist(), visible[places].tolist(), np.split(order, first[1:]), strict=True
    ):
        supports = lives.automaton.answers[state][hypotheses]
        choices.setdefault((hypotheses, supports), []).append(rows)
    for (_, supports), parts in choices.items():
        yield supports, np.concatenate(parts)


def _least_text(offers: list[Block], renderer: Renderer) -> Ints:
    """For each row the offer whose evidence has the least text: all were complete at once."""
    best = np.zeros(len(offers[0]), dtype=np.int64)
    if len(offers) == 1:
        return best
    texts = [renderer.evidence_text(offer) for offer in offers]
    least = texts[0]
    for number, text in enumerate(texts[1:], start=1):
        better = less(text, least)
        best, least = np.where(better, number, best), chosen(better, text, least)
    return best


def _block(lives: CellLives, support: Support, rows: Ints, witnesses: _Witnesses) -> Block:
    """Triples with the evidence that one premise set has for them."""
    premises = lives.plan.premise_sets[support.premises]
    cell, start = lives.cell[rows].astype(np.int64), lives.start[rows]
    bound = {var: values[cell] for var, values in lives.bound.items()}
    evidence, arrivals, hypotheses, closes = [], [], [], []
    met = np.full(len(rows), NEVER, dtype=np.int64)
    for atom, bit in zip(premises.atoms, lives.plan.bits[support.premises], strict=True):
        if support.evidence >> bit & 1:
            names = _private(atom, variables(premises.answer))
            values, arrival = witnesses.of(bit, cell, start)
            bound.update(zip(names, values, strict=True))
            evidence.append(atom)
            arrivals.append(arrival)
        else:
            hypotheses.append(atom)
            closes.append(lives.closes[bit][cell])
            if not _private(atom, variables(premises.answer)):
                met = np.minimum(met, lives.arrivals[bit][cell])
    # What closes at the very τ at which something smaller comes has closed; what arrives has not.
    closed = np.minimum.reduce([np.full(len(rows), NEVER, dtype=np.int64), *closes])
    end = lives.end[rows]
    end = np.where((end == closed) & (met != end), NEVER, end)
    return Block(
        premises,
        bound,
        tuple(evidence),
        tuple(arrivals),
        tuple(hypotheses),
        tuple(closes),
        start,
        end,
    )


class _Witnesses:
    """The fact that stands for an atom in a cell."""

    def __init__(self, lives: CellLives, renderer: Renderer) -> None:
        self._lives = lives
        self._renderer = renderer
        self._found: dict[int, Witnesses] = {}

    def of(self, bit: int, cell: Ints, tau: Ints) -> tuple[list[Ints], Ints]:
        """The values of the atom's private variables, and when it arrived, for cells at τ."""
        match = self._lives.matches[bit]
        if not match.private:
            return [], self._lives.arrivals[bit][cell]
        if bit not in self._found:
            self._found[bit] = self._sorted(bit, match)
        fact = self._found[bit].known(cell, tau)
        return [column[fact] for column in match.private], match.arrival[fact]

    def _sorted(self, bit: int, match: _Match) -> Witnesses:
        plan, atom = self._lives.plan, self._lives.plan.atoms[bit].atom
        bound = dict(zip(_object_variables(plan.answer), match.keys, strict=True))
        bound.update(zip(_private(atom, variables(plan.answer)), match.private, strict=True))
        base = _base(plan.answer)
        if base is not None:
            bound[base] = match.time
        texts = self._renderer.atom(atom, bound)
        places = self._lives.cells.of_match[bit]
        return Witnesses.of(places, len(self._lives.time), texts, match.arrival)


def _private(atom: Atom, shown: set[Var]) -> list[Var]:
    """The private variables of an atom in the order in which they stand."""
    found = [a for a in dict.fromkeys(atom.args) if isinstance(a, Var) and a not in shown]
    if atom.time is not None and atom.time.base is not None and atom.time.base not in shown:
        found.append(atom.time.base)
    return found
