"""Facts as columns of numbers: each constant a code, its text and value kept beside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

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


@dataclass(frozen=True)
class Facts:
    """The facts of one predicate, one row each."""

    group: Ints
    args: tuple[Ints, ...]
    time: Ints
    arrival: Ints

    def __len__(self) -> int:
        return len(self.time)

    def where(self, rows: Bools) -> Facts:
        return Facts(
            self.group[rows],
            tuple(arg[rows] for arg in self.args),
            self.time[rows],
            self.arrival[rows],
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
        groups, rows = np.unique(group, return_index=True)
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
    def of(cls, table: pa.Table, key: tuple[int, ...]) -> Columns:
        """Codes for the constants of a table of facts (see FACTS), grouped by a key."""
        table = table.combine_chunks()
        predicates = table["predicate"].combine_chunks().dictionary_encode()
        lists = table["args"].combine_chunks()
        encoded = lists.flatten().dictionary_encode()
        codes = _numbers(encoded.indices)
        starts = _numbers(lists.offsets)[:-1] - lists.offsets[0].as_py()
        arity = np.diff(_numbers(lists.offsets))
        columns = [_numbers(table[name]) for name in ("group", "time", "arrival")]
        which = _numbers(predicates.indices)
        names = predicates.dictionary.to_pylist()
        found: dict[str, Facts] = {}
        for number, predicate in enumerate(names):
            rows = slice(None) if len(names) == 1 else np.flatnonzero(which == number)
            group, time, arrival = (column[rows] for column in columns)
            first = starts[rows]
            places = range(int(arity[rows][0]))
            args = tuple(codes[first + place] for place in places)
            found[predicate] = Facts(group, args, time, arrival)
        texts = encoded.dictionary.cast(pa.string())
        return cls(found, texts, Homes.of(table, columns[0], key, texts))

    def like(self, atom: Atom) -> Facts:
        """The facts with the atom's constants, with equal arguments where it has equal variables,
        and at its time where it is ground. Atoms that differ in their time only share them."""
        assert atom.time is not None
        wanted = [(p, arg) for p, arg in enumerate(atom.args) if not isinstance(arg, Var)]
        equal = [(p, q) for p, arg in enumerate(atom.args) if isinstance(arg, Var)
                 and (q := atom.args.index(arg)) < p]  # fmt: skip
        ground = atom.time.offset if atom.time.base is None else None
        key = (atom.predicate, tuple((p, show(v)) for p, v in wanted), tuple(equal), ground)
        if key not in self._like:
            facts = self.facts.get(atom.predicate) or _no_facts(len(atom.args))
            tests = [facts.args[p] == self.code(value) for p, value in wanted]
            tests += [facts.args[p] == facts.args[q] for p, q in equal]
            if ground is not None:
                tests.append(facts.time == ground)
            self._like[key] = facts.where(np.logical_and.reduce(tests)) if tests else facts
        return self._like[key]

    @cached_property
    def _codes(self) -> dict[str, int]:
        return {text: code for code, text in enumerate(self.texts.to_pylist())}

    def code(self, value: Value) -> int:
        """The code of a constant, -1 if no fact has it."""
        return self._codes.get(show(value), -1)

    @cached_property
    def _values(self) -> tuple[npt.NDArray[np.float64], Ints, Bools]:
        """For each code its number, its rank among the strings, and whether it is a string.

        Numbers are compared as doubles: exact for every whole number below 2**53.
        """
        values = [parse_value(text) for text in self.texts.to_pylist()]
        strings = np.array([isinstance(value, str) for value in values], dtype=np.bool_)
        numbers = np.array([0.0 if isinstance(v, str) else float(v) for v in values])
        order = {
            text: rank
            for rank, text in enumerate(sorted({v for v in values if isinstance(v, str)}))
        }
        ranks = np.array([order[v] if isinstance(v, str) else 0 for v in values], dtype=np.int64)
        return numbers, ranks, strings

    def compare(self, left: Ints | Value, operator: Operator, right: Ints | Value) -> Bools:
        """An object comparison, row by row; a side is a column of codes or a constant."""
        a, b = self._side(left), self._side(right)
        same_kind = a[2] == b[2]
        both_strings = a[2] & b[2]
        less: Bools = np.where(both_strings, a[1] < b[1], a[0] < b[0]) & same_kind
        equal: Bools = np.where(both_strings, a[1] == b[1], a[0] == b[0]) & same_kind
        outcomes: dict[Operator, Bools] = {
            "=": equal,
            "!=": ~equal,
            "<": less,
            "<=": less | equal,
            ">": same_kind & ~less & ~equal,
            ">=": same_kind & ~less,
        }
        return outcomes[operator]

    def _side(
        self, side: Ints | Value
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], Bools]:
        numbers, ranks, strings = self._values
        if isinstance(side, np.ndarray):
            return numbers[side], ranks[side].astype(np.float64), strings[side]
        if not isinstance(side, str):
            return np.float64(side), np.float64(0), np.bool_(False)  # type: ignore[return-value]
        known = sorted({v for v in map(parse_value, self.texts.to_pylist()) if isinstance(v, str)})
        below = np.searchsorted(np.array(known, dtype=object), side) if known else 0
        exact = bool(known) and below < len(known) and known[below] == side
        rank = below if exact else below - 0.5
        return np.float64(0), np.float64(rank), np.bool_(True)  # type: ignore[return-value]


def _no_facts(arity: int) -> Facts:
    none = np.empty(0, dtype=np.int64)
    return Facts(none, (none,) * arity, none, none)


def _numbers(array: pa.Array | pa.ChunkedArray) -> Ints:
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.int64)


def text_of(numbers: Ints) -> pa.StringArray:
    """Whole numbers as text."""
    return pc.cast(pa.array(numbers), pa.string())
