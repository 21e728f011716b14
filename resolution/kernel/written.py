"""Triples of cells written out together, whatever their forms.

Most cells have no variable of an atom's own, and atoms of different predicates or times: then every
atom of a cell has one text, and the order in which a form shows its atoms is known beforehand. So
the text of each atom is put together once for each cell, and the lists of all triples are places in
that text. A batch of few facts costs little, however many forms there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from resolution.changes import TRIPLES
from resolution.kernel.automaton import Support
from resolution.kernel.columns import NEVER, Int32s, Ints, distinct
from resolution.kernel.compiled import compiled
from resolution.kernel.ids import identifiers
from resolution.kernel.text import column, or_null
from resolution.substitution import variables
from resolution.terms import Atom

if TYPE_CHECKING:
    from resolution.kernel.cells import CellLives, CellPlan
    from resolution.kernel.render import Renderer


@dataclass(frozen=True, slots=True)
class Form:
    """How the triples that one premise set supports in one way are shown."""

    premises: int
    evidence: tuple[int, ...]
    """Atoms, by their bits, in the order in which they are shown."""
    hypotheses: tuple[int, ...]


class Forms:
    """The forms of triples by the places that they have in the automaton of a plan."""

    def __init__(self, plan: CellPlan) -> None:
        self.known: dict[Form, int] = {}
        self._plan = plan
        self._states = 0
        self._of_place: list[int] = []

    def of(self, places: Int32s) -> Int32s:
        """The number of the form in each place; -1 where rows differ in more than their values,
        or where several supports are to choose from."""
        answers = self._plan.automaton.answers
        for found in answers[self._states :]:
            for supports in found.values():
                form = _form(self._plan, supports[0]) if len(supports) == 1 else None
                number = -1 if form is None else self.known.setdefault(form, len(self.known))
                self._of_place.append(number)
        self._states = len(answers)
        return np.array(self._of_place, dtype=np.int32)[places]


def _form(plan: CellPlan, support: Support) -> Form | None:
    """The form of a support; None where its rows differ in more than their values."""
    bits = plan.bits[support.premises]
    atoms = {bit: plan.atoms[bit].atom for bit in bits}
    shown = variables(plan.answer)
    args: dict[str, object] = {}
    for atom in atoms.values():
        if not variables(atom) <= shown or args.setdefault(atom.predicate, atom.args) != atom.args:
            return None
    moments = {bit: atom.time for bit, atom in atoms.items() if atom.time is not None}
    places = {(time.offset, atoms[bit].predicate) for bit, time in moments.items()}
    if len({time.base for time in moments.values()}) > 1 or len(places) < len(bits):
        return None
    order = sorted(bits, key=lambda bit: (moments[bit].offset, _start(atoms[bit])))
    there = [bool(support.evidence >> bit & 1) for bit in order]
    return Form(
        support.premises,
        tuple(bit for bit, is_there in zip(order, there, strict=True) if is_there),
        tuple(bit for bit, is_there in zip(order, there, strict=True) if not is_there),
    )


def _start(atom: Atom) -> str:
    """What the texts of atoms of different predicates differ in."""
    return f"{atom.predicate}("


def written(lives: CellLives, rows: Ints, form: Int32s, renderer: Renderer) -> Iterator[pa.Table]:
    """Some rows, given the numbers of their forms, as tables of TRIPLES."""
    if len(rows):
        yield _Part(lives, renderer, rows).table(list(lives.plan.forms.known), form[rows], rows)


class _Part:
    """The cells of some rows."""

    def __init__(self, lives: CellLives, renderer: Renderer, rows: Ints) -> None:
        board = lives.board
        self._cell, first = distinct(lives.cell[rows])
        cells = lives.cell[rows[first]].astype(np.int64)
        self._lives = lives
        self._renderer = renderer
        self._bound = board.bound(lives.plan.base, cells)
        self._size = len(cells)
        self._arrivals = np.stack([board.arrival(n, cells) for n in range(len(board.row))])
        self._closes = np.stack([board.closing(n, cells) for n in range(len(board.row))])
        shown = variables(lives.plan.answer)
        atoms = [cell.atom for cell in lives.plan.atoms]
        self._answer = self._text(lives.plan.answer)
        self._texts = pa.concat_arrays(
            [
                *(
                    self._text(a) if variables(a) <= shown else pa.nulls(self._size, pa.string())
                    for a in atoms
                ),
                self._answer,
            ]
        )
        by_text = sorted(range(len(atoms)), key=lambda bit: _start(atoms[bit]))
        self._rank = np.argsort(by_text)

    def table(self, forms: list[Form], form: Int32s, rows: Ints) -> pa.Table:
        lives, size = self._lives, len(rows)
        cell = self._cell
        evidence = _Lists([f.evidence for f in forms], form, cell, self._size)
        hypotheses = _Lists([f.hypotheses for f in forms], form, cell, self._size)
        answer = len(lives.plan.atoms)  # its texts come after those of the atoms
        said = _Lists([(answer, *f.hypotheses) for f in forms], form, cell, self._size)
        sets = [lives.plan.premise_sets[f.premises] for f in forms]
        query = sets[0].query
        asked = str(query.atom)
        places = pa.array(cell)
        deadline, reason, end = self._ends(hypotheses, lives.end[rows])
        numbers = np.array([premises.number for premises in sets], dtype=np.int32)
        return pa.table(
            {
                "triple": identifiers(asked, pc.binary_join(self._shown(said), " | ")),
                "answer_id": identifiers(asked, self._answer).take(places),
                "query": pa.repeat(query.name, size),
                "answer": self._answer.take(places),
                "bindings": self._renderer.bindings(sets[0], self._bound, self._size).take(places),
                "premise": pa.array(numbers[form]),
                "evidence": self._shown(evidence),
                "arrivals": evidence.moments(self._arrivals),
                "hypotheses": self._shown(hypotheses),
                "closes": hypotheses.moments(self._closes),
                "conditions": pa.ListArray.from_arrays(
                    pa.array(np.zeros(size + 1, np.int32)), pa.array([], pa.string())
                ),
                "deadline": or_null(deadline),
                "reason": reason,
                "start": pa.array(lives.start[rows]),
                "end": or_null(end),
            },
            schema=TRIPLES,
        )

    def _shown(self, atoms: _Lists) -> pa.ListArray:
        """The texts of each row's atoms."""
        return atoms.of(self._texts.take(pa.array(atoms.places)))

    def _text(self, atom: Atom) -> pa.StringArray:
        return column(self._renderer.atom(atom, self._bound), self._size)

    def _ends(self, hypotheses: _Lists, end: Ints) -> tuple[Ints, pa.StringArray, Ints]:
        """The deadline, the hypothesis that closes then (the least text of several), and when an
        arrival put an end to the triple, NEVER if none did."""
        deadline, met = np.full((2, len(end)), NEVER)
        reason = np.zeros(len(end), dtype=np.int64)
        _ends(
            hypotheses.bounds, hypotheses.places, self._closes.ravel(), self._arrivals.ravel(),
            np.repeat(self._rank, self._size), deadline, reason, met,
        )  # fmt: skip
        texts = self._texts.take(pa.array(reason, mask=deadline >= NEVER))
        # What closes at the very τ at which something smaller comes has closed; what arrives has
        # not.
        return deadline, texts, np.where((end == deadline) & (met != end), NEVER, end)


class _Lists:
    """For each row the atoms of its form."""

    def __init__(self, forms: list[tuple[int, ...]], form: Int32s, cell: Ints, size: int) -> None:
        begin = np.cumsum([0, *map(len, forms)])
        bits = np.array([bit for bits in forms for bit in bits], dtype=np.int64)
        self.bounds = np.concatenate([[0], np.cumsum(np.diff(begin)[form])])
        self.places = np.empty(self.bounds[-1], dtype=np.int64)
        """Where each stands in a column that holds, atom by atom, `size` cells."""
        _list(begin, bits, form, cell, size, self.places)

    def of(self, values: pa.Array) -> pa.ListArray:
        return pa.ListArray.from_arrays(pa.array(self.bounds.astype(np.int32)), values)

    def moments(self, table: Ints) -> pa.ListArray:
        return self.of(or_null(table.ravel()[self.places]))


@compiled
def _list(begin: Ints, bits: Ints, form: Int32s, cell: Ints, size: int, places: Ints) -> None:
    at = 0
    for row in range(len(form)):
        for bit in range(begin[form[row]], begin[form[row] + 1]):
            places[at] = bits[bit] * size + cell[row]
            at += 1


@compiled
def _ends(
    bounds: Ints,
    places: Ints,
    closes: Ints,
    arrivals: Ints,
    rank: Ints,
    deadline: Ints,
    reason: Ints,
    met: Ints,
) -> None:
    """For each row the least closing and, of those that close then, the place of the least rank;
    and the least arrival."""
    for row in range(len(deadline)):
        for at in range(bounds[row], bounds[row + 1]):
            place = places[at]
            met[row] = min(met[row], arrivals[place])
            tied = closes[place] == deadline[row] and rank[place] < rank[reason[row]]
            if closes[place] < deadline[row] or tied:
                deadline[row], reason[row] = closes[place], place
