"""The kernel: from facts, with their arrivals, to the lives of triples and to what a batch changed.

Stateless and pure: everything it needs to know stands in its input, so any cut of a stream into
batches, and any split into groups, gives the same answers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from resolution.changes import CHANGES, TRIPLES
from resolution.kernel.board import Board, lay_out
from resolution.kernel.cells import CellPlan, NotCells, at_home, evaluate, plan_cells, tables
from resolution.kernel.columns import Columns, Ints
from resolution.kernel.openly import OpenPlan, evaluate_open, open_at_home, open_blocks
from resolution.kernel.render import Renderer
from resolution.premises import PremiseSet, premise_sets
from resolution.program import Program
from resolution.routing import key_of
from resolution.substitution import apart, unify
from resolution.terms import Atom, Term, Var

__all__ = ["FACTS", "Kernel"]

FACTS = pa.schema(
    [
        pa.field("group", pa.int64(), nullable=False),  # facts of one group meet no others
        pa.field("key", pa.string()),  # the values of the group's key (null: any) …
        pa.field("first", pa.int64()),  # … its answers begin at this time point (null: 0) …
        pa.field("past", pa.int64()),  # … and before this one (null: any)
        pa.field("predicate", pa.string(), nullable=False),
        pa.field("args", pa.list_(pa.string()), nullable=False),  # constants as they are printed
        pa.field("time", pa.int64(), nullable=False),
        pa.field("arrival", pa.int64(), nullable=False),  # in time; the least counts
        pa.field("fresh", pa.bool_(), nullable=False),  # read in this batch, not in one before
    ]
)

_TEXTS = 2_000_000
"""Texts of atoms that are held at a time."""

_Told: TypeAlias = tuple[pa.Table, bool]
"""Triples, and whether all those of their answers are in the group: none is in another block."""


class Kernel:
    """The premise sets of a program, ready to be matched with tables of facts."""

    def __init__(self, program: Program) -> None:
        self._delays = program.delays
        sets = [premise_sets(program, query) for query in program.queries]
        self.plans = [plan(some) for some in sets]
        self._keys = [key_of(some) for some in sets]
        self._atoms = [[atom for premises in some for atom in premises.atoms] for some in sets]

    def triples(self, query: int, facts: pa.Table) -> pa.Table:
        """The life of every triple of a query that is at home in its group (see TRIPLES).

        A triple is at home where its key and its earliest possible answer time are, so that no two
        groups report the same one.
        """
        columns = self._columns(query, facts)
        return _together(t for part in self.plans[query] for t, _ in self._triples(part, columns))

    def lives(self, query: int, facts: pa.Table) -> int:
        """The same lives as numbers, without their text: returns the bytes that they take."""
        columns = self._columns(query, facts)
        return sum(self._size(part, columns) for part in self.plans[query])

    def changes(self, query: int, facts: pa.Table) -> pa.Table:
        """What the fresh facts changed: the triples with them against the triples without."""
        columns = self._columns(query, facts)
        before = columns.before()
        old: list[_Told] = []
        new: list[_Told] = []
        for part in self.plans[query]:
            if isinstance(part, OpenPlan):
                old.extend(self._triples(part, before))
                new.extend(self._triples(part, columns))
            elif board := lay_out(part, columns, self._delays):
                touched = board.touched()
                old.extend(_tables(part, board.before(), touched, columns))
                new.extend(_tables(part, board, touched, columns))
        alone = [pa.repeat(alone, len(table)) for table, alone in new]
        return difference(
            _together(table for table, _ in old),
            _together(table for table, _ in new),
            pa.chunked_array(alone, pa.bool_()),
        )

    def _columns(self, query: int, facts: pa.Table) -> Columns:
        return Columns.of(facts, self._keys[query], self._atoms[query])

    def _triples(self, part: CellPlan | OpenPlan, columns: Columns) -> Iterator[_Told]:
        if isinstance(part, OpenPlan):
            found = open_at_home(evaluate_open(part, columns, self._delays), columns)
            renderer = Renderer(columns)
            for block in open_blocks(found, renderer):
                yield renderer.table(block), columns.homes.whole or block.says_when
        elif board := lay_out(part, columns, self._delays):
            yield from _tables(part, board, board.cells, columns)

    def _size(self, part: CellPlan | OpenPlan, columns: Columns) -> int:
        if isinstance(part, OpenPlan):
            return sum(found.size for found in evaluate_open(part, columns, self._delays))
        board = lay_out(part, columns, self._delays)
        if board is None:
            return 0
        return sum(lives.size for lives in evaluate(part, board, board.cells, columns))


def _tables(part: CellPlan, board: Board, cells: Ints, columns: Columns) -> Iterator[_Told]:
    """The triples of some cells."""
    renderer = Renderer(columns)
    for lives in evaluate(part, board, cells, columns, max(1, _TEXTS // len(part.atoms))):
        for table in tables(at_home(lives, columns), renderer):
            yield table, True


def _together(found: Iterable[pa.Table]) -> pa.Table:
    return pa.concat_tables([TRIPLES.empty_table(), *found])


def plan(sets: tuple[PremiseSet, ...]) -> list[CellPlan | OpenPlan]:
    """How each part of the premise sets is evaluated; parts have no answer in common."""
    found: list[CellPlan | OpenPlan] = []
    for part in _apart(sets):
        try:
            found.append(plan_cells(part))
        except NotCells as reason:
            found.append(OpenPlan(part, str(reason)))
    return found


def _apart(sets: tuple[PremiseSet, ...]) -> list[tuple[PremiseSet, ...]]:
    """The premise sets in parts such that no answer of one is an answer of another."""
    alike: dict[Atom, list[PremiseSet]] = {}
    for premises in sets:
        alike.setdefault(premises.answer, []).append(premises)
    # Where all answers have a constant in one place, those with another one there never meet.
    width = len(sets[0].answer.args) if sets else 0
    fixed = [p for p in range(width) if not any(isinstance(a.args[p], Var) for a in alike)]
    parts: dict[tuple[Term, ...], list[list[PremiseSet]]] = {}
    for answer, members in alike.items():
        near: list[list[PremiseSet]] = []
        others: list[list[PremiseSet]] = []
        for part in parts.get(key := tuple(answer.args[p] for p in fixed), []):
            meets = any(unify(answer, apart(p.answer), {}) is not None for p in part)
            (near if meets else others).append(part)
        parts[key] = [*others, [*itertools.chain(*near), *members]]
    whole = [sorted(part, key=lambda p: p.number) for part in itertools.chain(*parts.values())]
    return [tuple(part) for part in sorted(whole, key=lambda part: part[0].number)]


def difference(old: pa.Table, new: pa.Table, alone: pa.ChunkedArray) -> pa.Table:
    """The changes that make the one table of triples the other.

    The id of a triple stands for its answer, hypotheses and conditions; what else there is to say
    of it is when it came, when it went, and by what evidence. `alone`: which of the new ones have
    answers that no other table speaks of.
    """
    at = pc.index_in(new["triple"], value_set=old["triple"])
    said = [pc.take(column, at) for column in _sayings(old)]
    known = pc.is_valid(at)
    same = known
    for before, after in zip(said, _sayings(new), strict=True):
        same = pc.and_kleene(same, pc.equal(before, after))
    first = pc.and_(alone, pc.invert(pc.is_in(new["answer_id"], value_set=old["answer_id"])))
    op = pc.if_else(known, "put", pc.if_else(first, "first", "new"))
    gone = old.filter(pc.is_null(pc.index_in(old["triple"], value_set=new["triple"])))
    return pa.concat_tables(
        [
            new.add_column(0, CHANGES.field("op"), op).filter(pc.invert(same)),
            gone.add_column(0, CHANGES.field("op"), pa.repeat("drop", len(gone))),
        ]
    )


def _sayings(table: pa.Table) -> Iterator[pa.ChunkedArray]:
    """The columns in which two rows of one triple may differ, none of them null."""
    yield pc.binary_join(table["evidence"], "\x00")
    yield pc.binary_join(pc.cast(table["arrivals"], pa.list_(pa.string())), " ")
    yield table["premise"]
    yield table["start"]
    yield pc.fill_null(table["end"], -1)
