"""From columns of numbers to the rows that people read: atoms as text, lists in order, ids.

A block holds triples of one form: the same premise set, with the same atoms as evidence. Only the
values differ from row to row, so text is put together for a whole block at a time.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from resolution.bounds import decide, oriented
from resolution.changes import TRIPLES
from resolution.kernel.columns import NEVER, Bools, Columns, Ints
from resolution.kernel.windows import Windows
from resolution.premises import PremiseSet, undecided
from resolution.substitution import apply, apply_comparison, variables
from resolution.terms import Atom, Comparison, Term, Time, Var, parse_value, show
from resolution.triples import Triple, alike, canonical_names, identifiers

Texts = npt.NDArray[np.object_]
SEPARATOR = "\x01"
"""Between the atoms of an evidence set: below all that can stand in one (NumPy drops a NUL)."""
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
        self._constants = np.array(columns.texts.to_pylist(), dtype=object)

    def table(self, block: Block) -> pa.Table:
        size = len(block)
        evidence = self._sorted(block, block.evidence, block.arrivals, size)
        hypotheses = self._sorted(block, block.hypotheses, block.closes, size)
        windows = Windows.of(block)
        answer = self.atom(block.premises.answer, block.bound, size)
        conditions = [*windows.texts(), *self._object_conditions(block, size)]
        query = str(block.premises.query.atom)
        deadline, reason = _closing(hypotheses, size)
        return pa.table(
            {
                "triple": identifiers(query, self.identity(block, windows)),
                "answer_id": identifiers(query, self._answer_identity(block)),
                "query": pa.repeat(block.premises.query.name, size),
                "answer": pa.array(answer, pa.string()),
                "bindings": self._bindings(block, size),
                "premise": pa.array(np.full(size, block.premises.number, np.int32)),
                "evidence": _lists([e.text for e in evidence], pa.string(), size),
                "arrivals": _lists([e.moment for e in evidence], pa.int64(), size),
                "hypotheses": _lists([h.text for h in hypotheses], pa.string(), size),
                "closes": _lists([h.moment for h in hypotheses], pa.int64(), size),
                "conditions": _lists(conditions, pa.string(), size),
                "deadline": _or_null(deadline),
                "reason": pa.array(reason, pa.string()),
                "start": pa.array(block.start),
                "end": _or_null(block.end),
            },
            schema=TRIPLES,
        )

    def atom(self, atom: Atom, bound: dict[Var, Ints], size: int) -> Texts:
        """An atom as text, row by row."""
        terms = [self._term(arg, bound) for arg in atom.args]
        if atom.time is not None:
            terms.append(_time(atom.time, bound))
        return _joined([f"{atom.predicate}(", *_between(terms, ", "), ")"], size)

    def evidence_text(self, block: Block) -> Texts:
        """What decides between evidence sets that were complete at the same time."""
        size = len(block)
        texts = [self.atom(a, block.bound, size) for a in block.evidence]
        entries = [_Entry(np.zeros(size, np.int64), text, text) for text in texts]
        return _joined(_between([e.text for e in _in_order(entries)], SEPARATOR), size)

    def identity(self, block: Block, windows: Windows | None = None) -> Texts:
        """`Triple.identity`, row by row."""
        size = len(block)
        windows = windows or Windows.of(block)
        answer = block.premises.answer
        groups = alike(answer, block.hypotheses, block.bound)
        if any(len(group) > 1 for group in groups):
            return self._searched_identity(block)
        names = canonical_names(answer, block.hypotheses, itertools.chain.from_iterable(groups))
        renamed = [apply(h, names) for h in block.hypotheses]
        entries = [self._entry(a, block.bound, block.start, size) for a in renamed]
        parts = [
            self.atom(apply(answer, names), block.bound, size),
            *(e.text for e in _in_order(entries)),
            *windows.texts(names),
            *self._object_conditions(block, size, names),
        ]
        return _joined(_between(parts, " | ", skip_empty=True), size)

    def _answer_identity(self, block: Block) -> Texts:
        answer = block.premises.answer
        groups = alike(answer, (), block.bound)
        if any(len(group) > 1 for group in groups):
            return np.array([t.answer_identity for t in self._triples(block)], dtype=object)
        names = canonical_names(answer, (), itertools.chain.from_iterable(groups))
        return self.atom(apply(answer, names), block.bound, len(block))

    def _searched_identity(self, block: Block) -> Texts:
        """Where unbound variables can only be told apart by constants: searched for, row by row."""
        return np.array([t.identity for t in self._triples(block)], dtype=object)

    def _triples(self, block: Block) -> Iterator[Triple]:
        objects = {v for a in block.premises.atoms for v in a.args if isinstance(v, Var)}
        for row in range(len(block)):
            by: dict[Var, Term | Time] = {
                var: parse_value(self._constants[column[row]])
                if var in objects
                else Time(None, int(column[row]))
                for var, column in block.bound.items()
            }
            yield Triple(
                block.premises,
                apply(block.premises.answer, by),
                frozenset(),
                tuple(dict.fromkeys(apply(h, by) for h in block.hypotheses)),
                undecided(apply_comparison(c, by) for c in block.premises.comparisons),
            )

    def _term(self, term: Term, bound: dict[Var, Ints]) -> Texts | str:
        if isinstance(term, Var) and term in bound:
            return self._constants[bound[term]]
        return show(term)

    def _entry(self, atom: Atom, bound: dict[Var, Ints], moment: Ints, size: int) -> _Entry:
        assert atom.time is not None
        text = self.atom(atom, bound, size)
        base = atom.time.base
        if base is None:
            order = np.full(size, atom.time.offset, dtype=np.int64)
        elif base in bound:
            order = bound[base] + atom.time.offset
        else:
            order = np.full(size, NEVER + atom.time.offset, dtype=np.int64)
        return _Entry(order, text, moment)

    def _sorted(
        self, block: Block, atoms: tuple[Atom, ...], moments: tuple[Ints, ...], size: int
    ) -> list[_Entry]:
        entries = [
            self._entry(atom, block.bound, moment, size)
            for atom, moment in zip(atoms, moments, strict=True)
        ]
        return _in_order(entries)

    def _object_conditions(
        self, block: Block, size: int, names: dict[Var, Term | Time] | None = None
    ) -> list[Texts]:
        """The undecided object comparisons as text, in order; an empty text is none."""
        found: list[_Entry] = []
        for comparison in block.premises.comparisons:
            open_ = variables(comparison) - set(block.bound)
            if isinstance(comparison.left, Time) or not open_ or decide(comparison):
                continue
            text = self._comparison(apply_comparison(comparison, names or {}), block, size)
            found.append(_Entry(np.zeros(size, np.int64), text, text))
        texts = [entry.text for entry in _in_order(found)]
        for at in range(1, len(texts)):
            texts[at] = np.where(texts[at] == texts[at - 1], "", texts[at])
        return texts

    def _comparison(self, comparison: Comparison, block: Block, size: int) -> Texts:
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
        return _joined([sides[0], f" {ours.operator} ", sides[1]], size)

    def _bindings(self, block: Block, size: int) -> pa.Array:
        query, answer = block.premises.query.atom, block.premises.answer
        places = dict(zip(query.args, answer.args, strict=True))
        parts: list[Texts | str] = [
            _joined([f'"{asked.name}": ', self._json(found, block)], size)
            for asked, found in places.items()
            if isinstance(asked, Var) and "#" not in asked.name
        ]
        base = query.time.base if query.time is not None else None
        if base is not None and "#" not in base.name:
            assert query.time is not None
            assert answer.time is not None
            shifted = answer.time.shifted(-query.time.offset)
            unbound = shifted.base is not None and shifted.base not in block.bound
            value = "null" if unbound else _time(shifted, block.bound)
            parts.append(_joined([f'"{base.name}": ', value], size))
        return pa.array(_joined(["{", *_between(parts, ", "), "}"], size), pa.string())

    def _json(self, term: Term, block: Block) -> Texts | str:
        if isinstance(term, Var):
            return self._quoted[block.bound[term]] if term in block.bound else "null"
        return json.dumps(term, ensure_ascii=False)

    @functools.cached_property
    def _quoted(self) -> Texts:
        """The constants as JSON: a bare name gets its quotes, all else is JSON as it is printed."""
        names = pc.match_substring_regex(pa.array(self._constants, pa.string()), r"^[a-z]")
        bare = names.to_numpy(zero_copy_only=False).astype(np.bool_)
        return np.where(bare, '"' + self._constants + '"', self._constants)


@dataclass(frozen=True, slots=True)
class _Entry:
    """An atom in a list: where it is sorted, its text, and the moment that goes with it."""

    order: Ints
    text: Texts
    moment: npt.NDArray[Any]


def _in_order(entries: list[_Entry]) -> list[_Entry]:
    """Sorted row by row, by order and then by text: an insertion of each among those before it."""
    found = list(entries)
    for last in range(1, len(found)):
        for at in range(last, 0, -1):
            left, right = found[at - 1], found[at]
            tied = left.order == right.order
            swap = left.order > right.order
            if tied.any():
                swap = swap | (tied & (left.text > right.text))
            if not swap.any():
                break
            if swap.all():
                found[at - 1], found[at] = right, left
                continue
            found[at - 1], found[at] = (
                _Entry(*(np.where(swap, b, a) for a, b in pairs))
                for pairs in (
                    (
                        (left.order, right.order),
                        (left.text, right.text),
                        (left.moment, right.moment),
                    ),
                    (
                        (right.order, left.order),
                        (right.text, left.text),
                        (right.moment, left.moment),
                    ),
                )
            )
    return found


def _closing(hypotheses: list[_Entry], size: int) -> tuple[Ints, Texts]:
    """The deadline and the hypothesis that closes then, the least text if several do."""
    deadline = np.full(size, NEVER, dtype=np.int64)
    reason = np.full(size, None, dtype=object)
    for entry in hypotheses:
        moment = np.asarray(entry.moment, dtype=np.int64)
        sooner = moment < deadline
        tied = (moment == deadline) & (moment < NEVER)
        if tied.any():
            rows = np.flatnonzero(tied)
            sooner[rows[entry.text[rows] < reason[rows]]] = True
        deadline = np.where(sooner, moment, deadline)
        reason = np.where(sooner, entry.text, reason)
    return deadline, reason


def _time(time: Time, bound: dict[Var, Ints]) -> Texts | str:
    if time.base is None or time.base not in bound:
        return str(time)
    return (bound[time.base] + time.offset).astype(str).astype(object)


def _between(
    parts: Sequence[Texts | str], separator: str, *, skip_empty: bool = False
) -> list[Texts | str]:
    found: list[Texts | str] = []
    for at, part in enumerate(parts):
        if at and skip_empty and not isinstance(part, str):
            found.append(np.where(part == "", "", separator))
        elif at:
            found.append(separator)
        found.append(part)
    return found


def _joined(parts: list[Texts | str], size: int) -> Texts:
    """Texts and columns of texts side by side."""
    text: Texts | str = ""
    for part in parts:
        text = text + part
    return np.full(size, text, dtype=object) if isinstance(text, str) else text


def _lists(columns: Sequence[npt.NDArray[Any]], type_: pa.DataType, size: int) -> pa.Array:
    """A list for each row, of what the columns have there; NEVER is null, an empty text nothing."""
    if not columns:
        return pa.array([[]] * size, pa.list_(type_))
    table = np.stack(columns, axis=1)
    keep = table != ("" if pa.types.is_string(type_) else None)
    counts = np.broadcast_to(keep, table.shape).sum(axis=1)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    flat = table[np.broadcast_to(keep, table.shape)]
    values = pa.array(flat, type_) if pa.types.is_string(type_) else _or_null(flat)
    return pa.ListArray.from_arrays(pa.array(offsets), values)


def _or_null(numbers: Ints) -> pa.Array:
    numbers = numbers.astype(np.int64)
    return pa.array(numbers, pa.int64(), mask=numbers >= NEVER)
