"""From columns of numbers to the rows that people read: atoms as text, lists in order, ids.

A block holds triples of one form: the same premise set, with the same atoms as evidence. Only the
values differ from row to row, so text is put together for a whole block at a time.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from resolution.bounds import decide, oriented
from resolution.changes import TRIPLES
from resolution.kernel.columns import NEVER, Bools, Columns, Ints
from resolution.kernel.ids import identifiers
from resolution.kernel.text import (
    SEPARATOR,
    Entry,
    Text,
    chosen,
    column,
    in_order,
    joined,
    joined_present,
    less,
    lists,
    numbers,
    or_null,
)
from resolution.kernel.windows import Windows
from resolution.premises import PremiseSet, undecided
from resolution.substitution import apply, apply_comparison, variables
from resolution.terms import Atom, Comparison, Term, Time, Var, parse_value, show
from resolution.triples import Triple, alike, canonical_names

_BOUND = "\x00"
"""Stands for a value that differs from row to row."""


@dataclass(frozen=True)
class Block:
    """Triples of one form; every column has a value for each of them."""

    premises: PremiseSet
    bound: dict[Var, Ints]
    """Codes of object variables, values of time variables."""
    evidence: tuple[Atom, ...]
    arrivals: tuple[Ints, ...]
    hypotheses: tuple[Atom, ...]
    closes: tuple[Ints, ...]
    start: Ints
    end: Ints
    """When it left `S_τ` because of something that arrived, NEVER if nothing did."""

    def __len__(self) -> int:
        return len(self.start)

    @property
    def says_when(self) -> bool:
        """Whether the times of the answers are known."""
        assert self.premises.answer.time is not None
        base = self.premises.answer.time.base
        return base is None or base in self.bound

    def take(self, rows: Ints | Bools) -> Block:
        return Block(
            self.premises,
            {var: column[rows] for var, column in self.bound.items()},
            self.evidence,
            tuple(column[rows] for column in self.arrivals),
            self.hypotheses,
            tuple(column[rows] for column in self.closes),
            self.start[rows],
            self.end[rows],
        )


class Renderer:
    """Writes blocks out as rows of TRIPLES."""

    def __init__(self, columns: Columns) -> None:
        self._constants = columns.texts

    def table(self, block: Block) -> pa.Table:
        size = len(block)
        evidence = self._sorted(block, block.evidence, block.arrivals)
        hypotheses = self._sorted(block, block.hypotheses, block.closes)
        windows = Windows.of(block)
        conditions = [*windows.texts(), *self._object_conditions(block)]
        query = str(block.premises.query.atom)
        deadline, reason = _closing(hypotheses, size)
        return pa.table(
            {
                "triple": identifiers(query, self.identity(block, windows)),
                "answer_id": identifiers(query, self._answer_identity(block)),
                "query": pa.repeat(block.premises.query.name, size),
                "answer": column(self.atom(block.premises.answer, block.bound), size),
                "bindings": self.bindings(block.premises, block.bound, size),
                "premise": pa.array(np.full(size, block.premises.number, np.int32)),
                "evidence": lists([e.text for e in evidence], pa.string(), size),
                "arrivals": lists([or_null(e.moment) for e in evidence], pa.int64(), size),
                "hypotheses": lists([h.text for h in hypotheses], pa.string(), size),
                "closes": lists([or_null(h.moment) for h in hypotheses], pa.int64(), size),
                "conditions": lists([column(c, size) for c in conditions], pa.string(), size),
                "deadline": or_null(deadline),
                "reason": reason,
                "start": pa.array(block.start),
                "end": or_null(block.end),
            },
            schema=TRIPLES,
        )

    def atom(self, atom: Atom, bound: dict[Var, Ints]) -> Text:
        """An atom as text, row by row."""
        terms = [self._term(arg, bound) for arg in atom.args]
        if atom.time is not None:
            terms.append(_time(atom.time, bound))
        return joined([f"{atom.predicate}(", joined(terms, ", "), ")"])

    def evidence_text(self, block: Block) -> pa.StringArray:
        """What decides between evidence sets that were complete at the same time."""
        none = np.zeros(len(block), np.int64)
        texts = [column(self.atom(a, block.bound), len(block)) for a in block.evidence]
        entries = in_order([Entry(none, text, none) for text in texts])
        return column(joined([entry.text for entry in entries], SEPARATOR), len(block))

    def identity(self, block: Block, windows: Windows | None = None) -> pa.StringArray:
        """`Triple.identity`, row by row."""
        answer = block.premises.answer
        groups = alike(answer, block.hypotheses, block.bound)
        if any(len(group) > 1 for group in groups):
            return pa.array([triple.identity for triple in self._triples(block)], pa.string())
        names = canonical_names(answer, block.hypotheses, itertools.chain.from_iterable(groups))
        entries = [self._entry(apply(h, names), block, block.start) for h in block.hypotheses]
        parts = [
            self.atom(apply(answer, names), block.bound),
            *(entry.text for entry in in_order(entries)),
        ]
        conditions = [
            *(windows or Windows.of(block)).texts(names),
            *self._object_conditions(block, names),
        ]
        if not conditions:
            return column(joined(parts, " | "), len(block))
        return joined_present([joined(parts, " | "), *conditions], " | ", len(block))

    def _answer_identity(self, block: Block) -> pa.StringArray:
        answer = block.premises.answer
        groups = alike(answer, (), block.bound)
        if any(len(group) > 1 for group in groups):
            return pa.array([t.answer_identity for t in self._triples(block)], pa.string())
        names = canonical_names(answer, (), itertools.chain.from_iterable(groups))
        return column(self.atom(apply(answer, names), block.bound), len(block))

    def _triples(self, block: Block) -> Iterator[Triple]:
        """The triples themselves: unbound variables that only constants tell apart are searched."""
        objects = {v for a in block.premises.atoms for v in a.args if isinstance(v, Var)}
        for row in range(len(block)):
            by: dict[Var, Term | Time] = {
                var: parse_value(self._constants[values[row]].as_py())
                if var in objects
                else Time(None, int(values[row]))
                for var, values in block.bound.items()
            }
            yield Triple(
                block.premises,
                apply(block.premises.answer, by),
                frozenset(),
                tuple(dict.fromkeys(apply(h, by) for h in block.hypotheses)),
                undecided(apply_comparison(c, by) for c in block.premises.comparisons),
            )

    def _term(self, term: Term, bound: dict[Var, Ints]) -> Text:
        if isinstance(term, Var) and term in bound:
            return self._constants.take(pa.array(bound[term]))
        return show(term)

    def _entry(self, atom: Atom, block: Block, moment: Ints) -> Entry:
        assert atom.time is not None
        base, offset = atom.time.base, atom.time.offset
        if base is not None and base in block.bound:
            order = block.bound[base] + offset
        else:
            order = np.full(len(block), offset if base is None else NEVER + offset, dtype=np.int64)
        return Entry(order, column(self.atom(atom, block.bound), len(block)), moment)

    def _sorted(
        self, block: Block, atoms: tuple[Atom, ...], moments: tuple[Ints, ...]
    ) -> list[Entry]:
        pairs = zip(atoms, moments, strict=True)
        return in_order([self._entry(atom, block, moment) for atom, moment in pairs])

    def _object_conditions(
        self, block: Block, names: dict[Var, Term | Time] | None = None
    ) -> list[Text]:
        """The undecided object comparisons as text, in order; an empty text is none."""
        none = np.zeros(len(block), np.int64)
        found: list[Entry] = []
        for comparison in block.premises.comparisons:
            open_ = variables(comparison) - set(block.bound)
            if isinstance(comparison.left, Time) or not open_ or decide(comparison):
                continue
            text = self._comparison(apply_comparison(comparison, names or {}), block)
            found.append(Entry(none, column(text, len(block)), none))
        texts: list[Text] = [entry.text for entry in in_order(found)]
        for at in range(len(texts) - 1, 0, -1):
            same = pc.equal(texts[at], texts[at - 1]).to_numpy(zero_copy_only=False)
            texts[at] = chosen(same, "", texts[at])
        return texts

    def _comparison(self, comparison: Comparison, block: Block) -> Text:
        """An object comparison as text, its variables before its constants."""
        left, right = comparison.left, comparison.right
        ours = oriented(
            Comparison(
                _BOUND if left in block.bound else left,
                comparison.operator,
                _BOUND if right in block.bound else right,
            )
        )
        value = next((self._term(s, block.bound) for s in (left, right) if s in block.bound), "")
        sides = [value if s == _BOUND else show(s) for s in (ours.left, ours.right)]
        return joined([sides[0], f" {ours.operator} ", sides[1]])

    def bindings(self, premises: PremiseSet, values: dict[Var, Ints], size: int) -> pa.StringArray:
        """The values of the query's variables as JSON, null for those that are open."""
        query, answer = premises.query.atom, premises.answer
        places = dict(zip(query.args, answer.args, strict=True))
        parts = [
            joined([f'"{asked.name}": ', self._json(found, values)])
            for asked, found in places.items()
            if isinstance(asked, Var) and "#" not in asked.name
        ]
        base = query.time.base if query.time is not None else None
        if base is not None and "#" not in base.name:
            assert query.time is not None
            assert answer.time is not None
            shifted = answer.time.shifted(-query.time.offset)
            unbound = shifted.base is not None and shifted.base not in values
            value = "null" if unbound else _time(shifted, values)
            parts.append(joined([f'"{base.name}": ', value]))
        return column(joined(["{", joined(parts, ", "), "}"]), size)

    def _json(self, term: Term, values: dict[Var, Ints]) -> Text:
        if isinstance(term, Var):
            bound = values.get(term)
            return "null" if bound is None else self._quoted.take(pa.array(bound))
        return json.dumps(term, ensure_ascii=False)

    @functools.cached_property
    def _quoted(self) -> pa.StringArray:
        """The constants as JSON: a bare name gets its quotes, all else is JSON as it is printed."""
        bare = pc.match_substring_regex(self._constants, "^[a-z]")
        quoted = pc.binary_join_element_wise('"', self._constants, '"', "")
        return pc.if_else(bare, quoted, self._constants)


def _closing(hypotheses: list[Entry], size: int) -> tuple[Ints, pa.StringArray]:
    """The deadline and the hypothesis that closes then, the least text if several do."""
    deadline = np.full(size, NEVER, dtype=np.int64)
    reason = pa.nulls(size, pa.string())
    for entry in hypotheses:
        tied = (entry.moment == deadline) & (entry.moment < NEVER)
        sooner = entry.moment < deadline
        if tied.any():
            sooner = sooner | (tied & less(entry.text, pc.fill_null(reason, "")))
        deadline = np.where(sooner, entry.moment, deadline)
        reason = chosen(sooner, entry.text, reason)
    return deadline, reason


def _time(time: Time, bound: dict[Var, Ints]) -> Text:
    if time.base is None or time.base not in bound:
        return str(time)
    return numbers(bound[time.base] + time.offset)
