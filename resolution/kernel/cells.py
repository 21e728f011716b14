"""Cells: queries in which every premise, once it is there, says which answer it is for.

Then each answer θ is a *cell* of its own, and all that matters of the facts is, for each premise
atom of the cell, which of three values it has: there, still possible, or closed. So a query is an
automaton over those values. An atom arrives or closes once; the events of a cell, in order, drive
its state; a state determines `S_τ` of the cell, by rule 4 on sets of bits. States are computed when
first met, by the definition, and looked up ever after.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from resolution.kernel.automaton import Automaton, Support
from resolution.kernel.board import Board, CellAtom, Matched, object_variables
from resolution.kernel.columns import NEVER, Bools, Columns, Int32s, Ints, distinct
from resolution.kernel.drive import Events, drive
from resolution.kernel.relations import holds
from resolution.kernel.render import Block, Renderer
from resolution.kernel.text import chosen, less
from resolution.kernel.witness import Witnesses
from resolution.kernel.written import Forms, written
from resolution.premises import PremiseSet
from resolution.substitution import apart, apply, apply_comparison, unify, variables
from resolution.terms import Atom, Comparison, Term, Time, Var

MOST_ATOMS = 62
"""The atoms of a cell are bits of one integer."""
_STEP = 2**14
"""Cells that are driven together: their rows stay in the cache."""
_ROWS = 16
"""Rows a cell for which there is room."""


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

    @property
    def base(self) -> Var | None:
        """The time variable of the answer, if it has one."""
        assert self.answer.time is not None
        return self.answer.time.base

    @cached_property
    def _moved(self) -> list[tuple[CellAtom, int]]:
        return [atom.moved(self.base) for atom in self.atoms]

    @cached_property
    def tracks(self) -> tuple[CellAtom, ...]:
        """The atoms at the answer's time itself: several may be one."""
        return tuple(dict.fromkeys(track for track, _ in self._moved))

    @cached_property
    def rows(self) -> tuple[int, ...]:
        """For each atom its track …"""
        return tuple(self.tracks.index(track) for track, _ in self._moved)

    @cached_property
    def shifts(self) -> tuple[int, ...]:
        """… and how far it is from the answer's time."""
        return tuple(shift for _, shift in self._moved)

    @cached_property
    def forms(self) -> Forms:
        """How triples are shown, as far as the automaton is known: it stays for the next call."""
        return Forms(self)

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
    found = [CellAtom(atom, comparisons) for atom, comparisons in atoms]
    _require_distinct(tuple(found), shown)
    order = sorted(range(len(found)), key=lambda bit: _offset(found[bit].atom))
    bit_of = {old: new for new, old in enumerate(order)}
    return CellPlan(
        premise_sets,
        answer,
        tuple(found[old] for old in order),
        tuple(tuple(bit_of[bit] for bit in bits) for bits in places),
        tuple(guards),
        tuple(least),
    )


def _offset(atom: Atom) -> int:
    assert atom.time is not None
    return atom.time.offset


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


def _require_distinct(atoms: tuple[CellAtom, ...], shown: set[Var]) -> None:
    """No fact may stand for two atoms of a cell, nor one atom be an instance of another."""
    for at, cell in enumerate(atoms):
        for other in atoms[:at]:
            if unify(cell.atom, apart(other.atom, shown), {}) is not None:
                raise NotCells(f"one fact may be both {cell.atom} and {other.atom}")


# --- evaluation ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class CellLives:
    """The lives of the triples of some cells, one row each."""

    plan: CellPlan
    board: Board
    automaton: Automaton
    cell: Int32s
    """The place of the cell."""
    place: Int32s
    """Where the hypotheses stand among those of all states, in the state in which it appeared."""
    since: Events
    until: Events
    """From when to when it is in `S_τ`, counted as the cell counts; `until` the greatest number
    where it stays."""

    @property
    def size(self) -> int:
        """Bytes of the triples themselves."""
        rows = (self.cell, self.place, self.since, self.until)
        return sum(column.nbytes for column in rows)

    @cached_property
    def _zero(self) -> Ints:
        return self.board.grid.time(self.cell.astype(np.int64)) + self.board.zero

    @cached_property
    def start(self) -> Ints:
        return self._zero + self.since

    @cached_property
    def end(self) -> Ints:
        """When it left `S_τ`, NEVER if it did not."""
        stays = self.until == np.iinfo(self.until.dtype).max
        return np.where(stays, NEVER, self._zero + self.until)

    def take(self, rows: Bools) -> CellLives:
        found = {n: getattr(self, n)[rows] for n in ("cell", "place", "since", "until")}
        return replace(self, **found)


def evaluate(
    plan: CellPlan, board: Board, cells: Ints, columns: Columns, step: int = _STEP
) -> Iterator[CellLives]:
    """Drives cells through their events: the life of every triple, for `step` cells at a time.

    The columns of one part are written over by the next.
    """
    automaton = plan.automaton
    step = max(1, min(step, len(cells)))
    which = np.empty((2, _ROWS * step), dtype=np.int32)
    when = np.empty((2, _ROWS * step), dtype=board.events.dtype)
    for begin in range(0, len(cells), step):
        rest = cells[begin : begin + step].copy()
        states = _applicable(plan, board, rest, columns)
        unknown = np.empty(len(rest), dtype=np.int64)
        least, weight, size = board.combinations(int(states.max()) + 1)
        alike = np.full((size, 2), -1, dtype=np.int32)
        rows = 0
        while len(rest):
            known = automaton.tables()
            if 2 * known.most > which.shape[1]:
                more = 2, 2 * known.most
                which = np.concatenate([which, np.empty(more, which.dtype)], axis=1)
                when = np.concatenate([when, np.empty(more, when.dtype)], axis=1)
            done, rows, again = drive(
                rest, states, board.events, board.row, board.shift,
                known.states, automaton.width, known.moves, known.number, known.most,
                least, weight, alike, rows, which, when, unknown,
            )  # fmt: skip
            for edge in set(unknown[:again].tolist()):
                automaton.meet(edge)
            full = done < len(rest)
            rest, states = (np.concatenate([c[:again], c[done:]]) for c in (rest, states))
            if rows and (full or not len(rest)):
                yield CellLives(plan, board, automaton, *which[:, :rows], *when[:, :rows])
                rows = 0
                alike.fill(-1)


def _applicable(plan: CellPlan, board: Board, cells: Ints, columns: Columns) -> Int32s:
    """The state in which each cell begins: which premise sets its answer leaves possible."""
    if any(plan.guards):
        return _tested(plan, board, cells, columns)
    # Nearly all are late enough for every premise set.
    every = plan.automaton.start(frozenset(range(len(plan.premise_sets))))
    states = np.full(len(cells), every, dtype=np.int32)
    early = np.flatnonzero(board.grid.time(cells) < max(plan.least))
    if len(early):
        states[early] = _tested(plan, board, cells[early], columns)
    return states


def _tested(plan: CellPlan, board: Board, cells: Ints, columns: Columns) -> Int32s:
    time = board.grid.time(cells)
    bound = board.bound(plan.base, cells) if any(plan.guards) else {}
    tests: dict[object, Bools] = {}
    needs: list[list[object]] = []
    for guard, least in zip(plan.guards, plan.least, strict=True):
        for comparison in guard:
            tests.setdefault(comparison, holds(comparison, bound, columns))
        tests.setdefault(least, time >= least)
        needs.append([*guard, least])
    order = list(tests)
    code = np.zeros(len(cells), dtype=np.int64)
    for place, test in enumerate(order):
        code |= tests[test].astype(np.int64) << place
    which, first = distinct(code)
    states = []
    for outcome in code[first].tolist():
        passed = {test for place, test in enumerate(order) if outcome >> place & 1}
        applicable = frozenset(n for n, need in enumerate(needs) if passed.issuperset(need))
        states.append(plan.automaton.start(applicable))
    return np.array(states, dtype=np.int32)[which]


# --- blocks --------------------------------------------------------------------------------------


def at_home(lives: CellLives, columns: Columns) -> CellLives:
    """The triples whose answers are those of their groups."""
    assert lives.plan.answer.time is not None
    which, first = distinct(lives.cell)
    cells = lives.cell[first].astype(np.int64)
    board = lives.board
    bound = board.bound(lives.plan.base, cells)
    times = board.grid.time(cells) + lives.plan.answer.time.offset
    group = board.groups[board.grid.lane(cells)]
    return lives.take(columns.homes.have(lives.plan.answer, bound, group, times)[which])


def tables(lives: CellLives, renderer: Renderer) -> Iterator[pa.Table]:
    """The triples of cells, each with the evidence it shows, as tables of TRIPLES."""
    witnesses = _Witnesses(lives, renderer)
    form = lives.plan.forms.of(lives.place)
    for supports, rows in _choices(lives, np.flatnonzero(form < 0)):
        offers = [_block(lives, support, rows, witnesses) for support in supports]
        chosen = _least_text(offers, renderer)
        for number, offer in enumerate(offers):
            part = offer if len(offers) == 1 else offer.take(chosen == number)
            if len(part):
                yield renderer.table(part)
    yield from written(lives, np.flatnonzero(form >= 0), form, renderer)


def _choices(lives: CellLives, rows: Ints) -> Iterator[tuple[tuple[Support, ...], Ints]]:
    """Of some rows of triples those that have the same supports."""
    if not len(rows):
        return
    known = lives.automaton.tables()
    rows = rows[np.argsort(lives.place[rows], kind="stable")]
    places, first = np.unique(lives.place[rows], return_index=True)
    states = np.searchsorted(known.offsets, places, "right") - 1
    choices: dict[tuple[int, tuple[Support, ...]], list[Ints]] = {}
    for state, hypotheses, some in zip(
        states.tolist(), known.hypotheses[places].tolist(), np.split(rows, first[1:]), strict=True
    ):
        supports = lives.automaton.answers[state][hypotheses]
        choices.setdefault((hypotheses, supports), []).append(some)
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
    bound = lives.board.bound(lives.plan.base, cell)
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
            closes.append(lives.board.closing(bit, cell))
            if not _private(atom, variables(premises.answer)):
                met = np.minimum(met, lives.board.arrival(bit, cell))
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
        board = self._lives.board
        row = int(board.row[bit])
        match = board.matched[row]
        if not match.private:
            return [], board.arrival(bit, cell)
        if row not in self._found:
            self._found[row] = self._sorted(row, match)
        fact = self._found[row].known(board.place(bit, cell), tau)
        return [column[fact] for column in match.private], match.arrival[fact]

    def _sorted(self, row: int, match: Matched) -> Witnesses:
        plan, board = self._lives.plan, self._lives.board
        atom = board.tracks[row].atom
        bound = dict(zip(object_variables(plan.answer), match.keys, strict=True))
        bound.update(zip(_private(atom, variables(plan.answer)), match.private, strict=True))
        if plan.base is not None:
            bound[plan.base] = match.time
        texts = self._renderer.atom(atom, bound)
        return Witnesses.of(board.places[row], board.grid.size, texts, match.arrival)


def _private(atom: Atom, shown: set[Var]) -> list[Var]:
    """The private variables of an atom in the order in which they stand."""
    found = [a for a in dict.fromkeys(atom.args) if isinstance(a, Var) and a not in shown]
    if atom.time is not None and atom.time.base is not None and atom.time.base not in shown:
        found.append(atom.time.base)
    return found
