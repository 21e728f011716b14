"""Triples of cells written out together, whatever their forms.

Most cells have no variable of an atom's own, and atoms of different predicates or times: then every
atom of a cell has one text, and the order in which a form shows its atoms is known beforehand. So
the text of each atom is put together once for each cell, and the lists of all triples are places in
that text. A batch of few facts costs little, however many forms there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from resolution.changes import TRIPLES
from resolution.kernel.automaton import Support
from resolution.kernel.columns import NEVER, Ints, distinct
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


def form_of(plan: CellPlan, support: Support) -> Form | None:
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


def written(
    lives: CellLives, found: Sequence[tuple[Form, Ints]], renderer: Renderer
) -> Iterator[pa.Table]:
    """The rows of each form as tables of TRIPLES."""
    if not found:
        return
    rows = np.concatenate([rows for _, rows in found])
    form = np.repeat(np.arange(len(found)), [len(rows) for _, rows in found])
    forms = [form for form, _ in found]
    yield _Part(lives, renderer, rows).table(forms, form, rows)


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

    def table(self, forms: list[Form], form: Ints, rows: Ints) -> pa.Table:
        lives, size = self._lives, len(rows)
        cell = self._cell
        evidence = _Lists([f.evidence for f in forms], form, cell)
        hypotheses = _Lists([f.hypotheses for f in forms], form, cell)
        answer = len(lives.plan.atoms)  # its texts come after those of the atoms
        said = _Lists([(answer, *f.hypotheses) for f in forms], form, cell)
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
        return pa.ListArray.from_arrays(atoms.offsets, self._texts.take(atoms.places(self._size)))

    def _text(self, atom: Atom) -> pa.StringArray:
        return column(self._renderer.atom(atom, self._bound), self._size)

    def _ends(self, hypotheses: _Lists, end: Ints) -> tuple[Ints, pa.StringArray, Ints]:
        """The deadline, the hypothesis that closes then (the least text of several), and when an
        arrival put an end to the triple, NEVER if none did."""
        if not hypotheses.bits.shape[1]:
            return np.full(len(end), NEVER), pa.nulls(len(end), pa.string()), end
        closes = hypotheses.values(self._closes)
        met = hypotheses.values(self._arrivals).min(axis=1)
        deadline = closes.min(axis=1)
        ranks = np.where(closes == deadline[:, None], self._rank[hypotheses.bits], len(self._rank))
        ranks[hypotheses.bits < 0] = len(self._rank)
        which = hypotheses.bits[np.arange(len(end)), ranks.argmin(axis=1)]
        at = np.where(deadline < NEVER, which * self._size + hypotheses.cell, 0)
        reason = self._texts.take(pa.array(at, mask=deadline >= NEVER))
        # What closes at the very τ at which something smaller comes has closed; what arrives has
        # not.
        return deadline, reason, np.where((end == deadline) & (met != end), NEVER, end)


class _Lists:
    """For each row the atoms of its form, by their bits; -1 where a form has fewer."""

    def __init__(self, forms: list[tuple[int, ...]], form: Ints, cell: Ints) -> None:
        width = max(map(len, forms))
        table = np.full((len(forms), width), -1, dtype=np.int64)
        for number, bits in enumerate(forms):
            table[number, : len(bits)] = bits
        self.bits = table[form]
        self.cell = cell
        self._there = self.bits >= 0
        counts = self._there.sum(axis=1)
        self.offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))

    def places(self, size: int) -> pa.Int64Array:
        """Where the atoms of all rows stand in a column that holds, atom by atom, `size` cells."""
        return pa.array((self.bits * size + self.cell[:, None])[self._there])

    def moments(self, table: Ints) -> pa.ListArray:
        return pa.ListArray.from_arrays(self.offsets, or_null(self.values(table)[self._there]))

    def values(self, table: Ints) -> Ints:
        """What a table of atoms and cells says, NEVER where a form has fewer atoms."""
        found = table[np.maximum(self.bits, 0), self.cell[:, None]]
        return np.where(self._there, found, NEVER)
