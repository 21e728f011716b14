"""The kernel: from facts, with their arrivals, to the lives of triples and to what a batch changed.

Stateless and pure: everything it needs to know stands in its input, so any cut of a stream into
batches, and any split into groups, gives the same answers.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from resolution.changes import CHANGES, TRIPLES
from resolution.kernel.cells import CellPlan, NotCells, blocks, evaluate, plan_cells
from resolution.kernel.columns import Columns
from resolution.kernel.render import Renderer
from resolution.lives import lives, row
from resolution.premises import PremiseSet, premise_sets
from resolution.program import Program
from resolution.terms import Atom, Time, parse_value

__all__ = ["FACTS", "Kernel"]

FACTS = pa.schema(
    [
        pa.field("group", pa.int64(), nullable=False),  # facts of one group meet no others
        pa.field("first", pa.int64()),  # the group's answers begin at this time point (null: 0) …
        pa.field("past", pa.int64()),  # … and before this one (null: any)
        pa.field("predicate", pa.string(), nullable=False),
        pa.field("args", pa.list_(pa.string()), nullable=False),  # constants as they are printed
        pa.field("time", pa.int64(), nullable=False),
        pa.field("arrival", pa.int64(), nullable=False),  # in time; the least counts
        pa.field("fresh", pa.bool_(), nullable=False),  # read in this batch, not in one before
    ]
)


class Kernel:
    """The premise sets of a program, ready to be matched with tables of facts."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._sets = [premise_sets(program, query) for query in program.queries]
        self._plans: list[CellPlan | None] = [_plan(sets) for sets in self._sets]

    def triples(self, query: int, facts: pa.Table) -> pa.Table:
        """The life of every triple of a query that is at home in its group (see TRIPLES).

        A triple is at home where its earliest possible answer time is, so that no two groups
        report the same one.
        """
        plan = self._plans[query]
        if plan is None:
            return self._slowly(query, facts)
        columns = Columns.of(facts)
        found = evaluate(plan, columns, self._program.delays)
        if found is None:
            return TRIPLES.empty_table()
        renderer = Renderer(columns)
        return pa.concat_tables([renderer.table(block) for block in blocks(found, renderer)])

    def _slowly(self, query: int, facts: pa.Table) -> pa.Table:
        rows: list[dict[str, object]] = []
        for group in pc.unique(facts["group"]).to_pylist():
            rows.extend(self._group(query, facts.filter(pc.equal(facts["group"], group))))
        return pa.Table.from_pylist(rows, schema=TRIPLES)

    def changes(self, query: int, facts: pa.Table) -> pa.Table:
        """What the fresh facts changed: the triples with them against the triples without."""
        new = self.triples(query, facts)
        old = self.triples(query, facts.filter(pc.invert(facts["fresh"])))
        before = {r["triple"]: r for r in old.to_pylist()}
        after = {r["triple"]: r for r in new.to_pylist()}
        puts = [{"op": "put", **r} for key, r in after.items() if before.get(key) != r]
        drops = [{"op": "drop", **r} for key, r in before.items() if key not in after]
        return pa.Table.from_pylist(puts + drops, schema=CHANGES)

    def _group(self, query: int, facts: pa.Table) -> list[dict[str, object]]:
        arrived: dict[Atom, int] = {}
        first, past = 0, None
        for fact in facts.to_pylist():
            args = tuple(map(parse_value, fact["args"]))
            atom = Atom(fact["predicate"], args, Time(None, fact["time"]))
            arrived[atom] = min(fact["arrival"], arrived.get(atom, fact["arrival"]))
            first, past = fact["first"] or 0, fact["past"]
        found = []
        for life in lives(self._sets[query], self._program.delays, arrived):
            assert life.triple.answer.time is not None
            home = life.triple.bounds.earliest(life.triple.answer.time)
            if first <= home and (past is None or home < past):
                found.append(row(life, self._program.delays, arrived))
        return found


def _plan(sets: tuple[PremiseSet, ...]) -> CellPlan | None:
    try:
        return plan_cells(sets)
    except NotCells:
        return None
