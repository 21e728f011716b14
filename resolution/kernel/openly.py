"""Queries whose answers may have variables in them while they are pending: by joins of forms.

The general way: it takes every premise set apart into its forms, joins facts into each, lets
smaller triples put an end to larger ones, and shows one evidence set for each triple.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from resolution.delays import Delays
from resolution.kernel.columns import NEVER, Bools, Columns, Ints
from resolution.kernel.forms import Candidates, Form, candidates
from resolution.kernel.lookup import least
from resolution.kernel.minimality import Embedding, embeddings, ended_by, entailed
from resolution.kernel.relations import numbered
from resolution.kernel.render import Block, Renderer
from resolution.kernel.text import SEPARATOR
from resolution.premises import PremiseSet
from resolution.substitution import variables


@dataclass
class OpenPlan:
    """The premise sets of a query, and what has been found out about pairs of their forms."""

    premise_sets: tuple[PremiseSet, ...]
    reason: str
    """Why its answers are not cells."""
    known: dict[tuple[object, ...], list[Embedding]] = field(default_factory=dict)

    def embeddings(self, small: Form, large: Form) -> list[Embedding]:
        key = (_key(small), _key(large))
        if key not in self.known:
            self.known[key] = list(embeddings(small, large))
        return self.known[key]


def _key(form: Form) -> tuple[object, ...]:
    return form.premises.number, form.bound, form.evidence, form.hypotheses


def evaluate_open(plan: OpenPlan, columns: Columns, delays: Delays) -> list[Candidates]:
    """The triples of `S_τ`, for all τ; those that differ in E only are all there."""
    found = [c for p in plan.premise_sets for c in candidates(p, columns, delays)]
    whole = [Form(p, frozenset(), (), p.atoms) for p in plan.premise_sets]
    return [c for large in found if len(c := _minimal(plan, large, found, whole, columns))]


def _minimal(
    plan: OpenPlan,
    large: Candidates,
    found: list[Candidates],
    whole: list[Form],
    columns: Columns,
) -> Candidates:
    for form in whole:
        hit = entailed(large, plan.embeddings(form, large.form), columns)
        if hit.any():
            large = large.take(~hit)
    for small in found:
        known = plan.embeddings(small.form, large.form)
        if known and len(large):
            large = large.until(ended_by(large, small, known, columns))
            large = large.take(large.end > large.start)
    return large


def open_at_home(found: list[Candidates], columns: Columns) -> list[Candidates]:
    """The triples whose answers, at their earliest, are those of their groups."""
    kept = []
    for some in found:
        answer = some.form.premises.answer
        assert answer.time is not None
        earliest = some.windows.earliest(answer.time)
        kept.append(
            some.take(columns.homes.have(answer, some.rows.bound, some.rows.group, earliest))
        )
    return [some for some in kept if len(some)]


def open_blocks(found: list[Candidates], renderer: Renderer) -> Iterator[Block]:
    """One row for each triple, with the evidence that was complete first, the least if tied."""
    blocks = [_block(_soonest(c)) for c in found]
    if not blocks:
        return
    identity = pa.concat_arrays([renderer.identity(block) for block in blocks])
    number = identity.dictionary_encode().indices.to_numpy().astype(np.int64)
    start = np.concatenate([block.start for block in blocks])
    text = pa.concat_arrays([renderer.evidence_text(block) for block in blocks])
    form = np.repeat(_ranks(blocks), [len(b) for b in blocks])
    chosen = _first(number, start, text, form)
    for block, rows in zip(
        blocks, np.split(chosen, np.cumsum([len(b) for b in blocks])[:-1]), strict=True
    ):
        if rows.any():
            yield block.take(rows)


def _ranks(blocks: list[Block]) -> list[int]:
    """Blocks by premise set, then by how their hypotheses read: the last word between equals."""
    keys = [(b.premises.number, [str(h) for h in b.hypotheses]) for b in blocks]
    return [sorted(keys).index(key) for key in keys]


def _soonest(found: Candidates) -> Candidates:
    """Of rows that differ in their evidence only, those whose evidence was complete first."""
    form = found.form
    seen = variables(form.premises.answer, *form.hypotheses, *form.undecided) & form.bound
    if seen == form.bound:
        return found
    key = numbered([found.rows.group, *(found.rows.bound[v] for v in sorted(seen))])[0]
    return found.take(found.start == least(key, key, found.start))


def _block(found: Candidates) -> Block:
    form = found.form
    deadline = np.minimum.reduce([np.full(len(found), NEVER, dtype=np.int64), *found.closes])
    # What closes at the very τ at which something smaller comes has closed; what arrives has not.
    ended = (found.end < deadline) | ((found.end == deadline) & (found.met == deadline))
    end = np.where(ended, found.end, NEVER)
    return Block(
        form.premises,
        found.rows.bound,
        form.evidence,
        found.arrivals,
        form.hypotheses,
        found.closes,
        found.start,
        end,
    )


def _first(number: Ints, start: Ints, text: pa.StringArray, form: Ints) -> Bools:
    """Which row stands for each number: the first, minimal, with the least text."""
    order = np.lexsort((start, number))
    heads = np.flatnonzero(np.diff(number[order], prepend=-1))
    chosen = np.zeros(len(number), dtype=np.bool_)
    sizes = np.diff(heads, append=len(order))
    chosen[order[heads[sizes == 1]]] = True
    for head, size in zip(heads[sizes > 1].tolist(), sizes[sizes > 1].tolist(), strict=True):
        rows = order[head : head + size]
        tied = rows[start[rows] == start[rows[0]]].tolist()
        chosen[_least(tied, text, form)] = True
    return chosen


def _least(rows: list[int], text: pa.StringArray, form: Ints) -> int:
    if len(rows) == 1:
        return rows[0]
    said = {row: text[row].as_py() for row in rows}
    sets = {row: frozenset(said[row].split(SEPARATOR)) for row in rows}
    minimal = [row for row in rows if not any(sets[other] < sets[row] for other in rows)]
    return min(minimal, key=lambda row: (said[row], form[row]))
