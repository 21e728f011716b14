"""Facts as columns of numbers: each constant a code, its text and value kept beside."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from resolution.routing import SEPARATOR
from resolution.terms import Atom, Operator, Value, Var, parse_value, show

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

NEVER = np.int64(2**62)
"""Later than every time point."""


Constants: TypeAlias = tuple[tuple[int, str], ...]
"""The constants of an atom as they are printed, each with its place."""


def _constants(atom: Atom) -> Constants:
    return tuple((p, show(arg)) for p, arg in enumerate(atom.args) if not isinstance(arg, Var))


@dataclass(frozen=True)
class Facts:
    """The facts of one predicate that some atom may match, one row each."""

    group: Ints
    args: dict[int, Ints]
    """The codes in each place in which some atom has a variable."""
    time: Ints
    arrival: Ints
    having: dict[Constants, Bools]
    """Which of them have the constants of an atom."""

    def __len__(self) -> int:
        return len(self.time)

    def where(self, rows: Bools) -> Facts:
        return Facts(
            self.group[rows],
            {place: codes[rows] for place, codes in self.args.items()},
            self.time[rows],
            self.arrival[rows],
            {},
        )


@dataclass(frozen=True)
class Homes:
    """The groups, in order, and which answers are at home in each."""

    group: Ints
    first: Ints
    past: Ints
    """Those from the one time point to before the other …"""
    key: dict[int, pa.StringArray]
    """… that have in these places these values, as they are printed; null where any will do …"""
    codes: dict[int, Ints]
    """… and their codes, -1 where no fact has the value."""

    @classmethod
    def of(
        cls, table: pa.Table, group: Ints, places: tuple[int, ...], texts: pa.StringArray
    ) -> Homes:
        _, rows = distinct(group)
        groups = group[rows]
        first = _numbers(pc.fill_null(table["first"], 0))[rows]
        past = _numbers(pc.fill_null(table["past"], int(NEVER)))[rows]
        values = pc.split_pattern(pc.take(table["key"], pa.array(rows)), SEPARATOR)
        key = {
            place: pc.list_element(values, number).combine_chunks()
            for number, place in enumerate(places)
        }
        codes = {
            place: _numbers(pc.fill_null(pc.index_in(column, value_set=texts), -1))
            for place, column in key.items()
        }
        return cls(groups, first, past, key, codes)

    def have(self, answer: Atom, bound: Mapping[Var, Ints], group: Ints, time: Ints) -> Bools:
        """Which answers, given by the values of their variables, are at home in their groups.

        A fact may be in a group for another premise set than the one it matches. The answer is then
        not the group's to tell: other facts for it may be missing there.
        """
        at = np.searchsorted(self.group, group)
        found: Bools = (self.first[at] <= time) & (time < self.past[at])
        for place, key in self.key.items():
            value = answer.args[place]
            if isinstance(value, Var):
                any_ = pc.is_null(key).to_numpy(zero_copy_only=False)
                found &= (self.codes[place][at] == bound[value]) | any_[at]
            else:
                same = pc.fill_null(pc.equal(key, show(value)), True)
                found &= same.to_numpy(zero_copy_only=False)[at]
        return found


@dataclass(frozen=True)
class Columns:
    """All facts of a table, by predicate, and the constants that their codes stand for."""

    facts: dict[str, Facts]
    texts: pa.StringArray
    """The constants as they are printed, by code."""
    homes: Homes
    _like: dict[object, Facts] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, table: pa.Table, key: tuple[int, ...], atoms: Iterable[Atom]) -> Columns:
        """The facts of a table (see FACTS), grouped by a key, that some of the atoms may match.

        Constants of the atoms are looked for in the text: facts that match none need no codes.
        """
        table = table.combine_chunks()
        group, time, arrival = (_numbers(table[name]) for name in ("group", "time", "arrival"))
        read = _Table(table)
        patterns: dict[str, list[Atom]] = {}
        for atom in atoms:
            patterns.setdefault(atom.predicate, []).append(atom)
        found: dict[str, Facts] = {}
        written: list[pa.StringArray] = []
        for predicate, alike in patterns.items():
            rows, having = read.rows(predicate, alike)
            if not len(rows):
                continue
            places = sorted({p for a in alike for p, v in enumerate(a.args) if isinstance(v, Var)})
            texts = [read.texts(rows, place) for place in places]
            args = {place: np.empty(0, dtype=np.int64) for place in places}
            found[predicate] = Facts(group[rows], args, time[rows], arrival[rows], having)
            written.extend(texts)
        encoded = pa.concat_arrays(written or [pa.array([], pa.string())]).dictionary_encode()
        codes = np.split(_numbers(encoded.indices), np.cumsum([len(t) for t in written])[:-1])
        columns = iter(codes)
        for facts in found.values():
            facts.args.update({place: next(columns) for place in facts.args})
        return cls(found, encoded.dictionary, Homes.of(table, group, key, encoded.dictionary))

    def like(self, atom: Atom) -> Facts:
        """The facts with the atom's constants, with equal arguments where it has equal variables,
        and at its time where it is ground. Atoms that differ in their time only share them."""
        assert atom.time is not None
        wanted = _constants(atom)
        equal = [(p, q) for p, arg in enumerate(atom.args) if isinstance(arg, Var)
                 and (q := atom.args.index(arg)) < p]  # fmt: skip
        ground = atom.time.offset if atom.time.base is None else None
        key = (atom.predicate, wanted, tuple(equal), ground)
        if key not in self._like:
            facts = self.facts.get(atom.predicate) or _no_facts(len(atom.args))
            tests = [facts.having[wanted]] if wanted in facts.having else []
            tests += [facts.args[p] == facts.args[q] for p, q in equal]
            if ground is not None:
                tests.append(facts.time == ground)
            self._like[key] = facts.where(np.logical_and.reduce(tests)) if tests else facts
        return self._like[key]

    def code(self, value: Value) -> int:
        """The code of a constant, -1 if no fact has it."""
        found: int = pc.index(self.texts, show(value)).as_py()
        return found

    @cached_property
    def _ranks(self) -> tuple[npt.NDArray[np.float64], Bools, dict[bool, list[Any]]]:
        """For each code its rank among the numbers or the strings, and whether it is a string.

        Python orders numbers of any size by their values, which doubles do not.
        """
        values = [parse_value(text) for text in self.texts.to_pylist()]
        strings = np.array([isinstance(value, str) for value in values], dtype=np.bool_)
        known: dict[bool, list[Any]] = {
            kind: sorted({v for v in values if isinstance(v, str) == kind})
            for kind in (True, False)
        }
        rank = {v: float(n) for ordered in known.values() for n, v in enumerate(ordered)}
        return np.array([rank[v] for v in values], dtype=np.float64), strings, known

    def compare(self, left: Ints | Value, operator: Operator, right: Ints | Value) -> Bools:
        """An object comparison, row by row; a side is a column of codes or a constant."""
        (a, text), (b, other_text) = self._side(left), self._side(right)
        same_kind: Bools = np.asarray(text == other_text)
        outcomes: dict[Operator, Bools] = {
            "=": same_kind & (a == b),
            "!=": ~(same_kind & (a == b)),
            "<": same_kind & (a < b),
            "<=": same_kind & (a <= b),
            ">": same_kind & (a > b),
            ">=": same_kind & (a >= b),
        }
        return outcomes[operator]

    def _side(self, side: Ints | Value) -> tuple[npt.NDArray[np.float64], Bools]:
        ranks, strings, known = self._ranks
        if isinstance(side, np.ndarray):
            return ranks[side], strings[side]
        kind = isinstance(side, str)
        below = bisect_left(known[kind], side)
        there = below < len(known[kind]) and known[kind][below] == side
        return np.float64(below if there else below - 0.5), np.bool_(kind)  # type: ignore[return-value]


class _Table:
    """The text of a table of facts."""

    def __init__(self, table: pa.Table) -> None:
        self._predicate = table["predicate"].combine_chunks()
        lists = table["args"].combine_chunks()
        self._values = lists.flatten()
        self._start = _numbers(lists.offsets)[:-1] - lists.offsets[0].as_py()
        self._equal: dict[str, Bools] = {}

    def rows(self, predicate: str, atoms: list[Atom]) -> tuple[Ints, dict[Constants, Bools]]:
        """The rows that may match one of the atoms, and which of them each atom's constants fit."""
        rows = np.flatnonzero(_truths(pc.equal(self._predicate, predicate)))
        patterns = {_constants(atom) for atom in atoms} - {()}
        having = {
            wanted: np.logical_and.reduce([self._has(rows, p, text) for p, text in wanted])
            for wanted in patterns
        }
        if any(not _constants(atom) for atom in atoms) or not having:
            return rows, having
        fits = np.logical_or.reduce(list(having.values()))
        return rows[fits], {wanted: fit[fits] for wanted, fit in having.items()}

    def texts(self, rows: Ints, place: int) -> pa.StringArray:
        if len(rows) == len(self._values):
            return self._values
        return self._values.take(pa.array(self._start[rows] + place))

    def _has(self, rows: Ints, place: int, text: str) -> Bools:
        if text not in self._equal:
            self._equal[text] = _truths(pc.equal(self._values, text))
        found: Bools = self._equal[text][self._start[rows] + place]
        return found


def _truths(array: pa.BooleanArray) -> Bools:
    return np.asarray(array.to_numpy(zero_copy_only=False))


def _no_facts(arity: int) -> Facts:
    none = np.empty(0, dtype=np.int64)
    return Facts(none, dict.fromkeys(range(arity), none), none, none, {})


def _numbers(array: pa.Array | pa.ChunkedArray) -> Ints:
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.int64)


def distinct(code: Ints) -> tuple[Ints, Ints]:
    """For each row the number of its code among the distinct ones, and where each first stands."""
    low, high = int(code.min(initial=0)), int(code.max(initial=0))
    if high - low >= 16 * len(code) + 1024:
        _, first, number = np.unique(code, return_index=True, return_inverse=True)
        return number.astype(np.int64), first
    # Codes that lie close together are numbered by a table, without sorting.
    place = np.full(high - low + 1, -1, dtype=np.int64)
    place[(code - low)[::-1]] = np.arange(len(code))[::-1]
    first = place[place >= 0]
    place[place >= 0] = np.arange(len(first))
    return place[code - low], first


def text_of(numbers: Ints) -> pa.StringArray:
    """Whole numbers as text."""
    return pc.cast(pa.array(numbers), pa.string())
