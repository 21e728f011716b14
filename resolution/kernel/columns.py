"""Facts as columns of numbers: each constant a code, its text and value kept beside."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from resolution.bounds import decide
from resolution.kernel.compiled import compiled
from resolution.kernel.strings import Strings
from resolution.routing import SEPARATOR
from resolution.terms import Atom, Comparison, Operator, Value, Var, parse_value, show

Ints = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
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
    fresh: Bools
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
            self.fresh[rows],
            {},
        )

    def before(self) -> Facts:
        """Those that are not fresh."""
        old = ~self.fresh
        having = {wanted: fits[old] for wanted, fits in self.having.items()}
        return replace(self.where(old), having=having)


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
        table = table.select(["first", "past", "key"]).take(pa.array(rows))
        first = _numbers(pc.fill_null(table["first"], 0))
        past = _numbers(pc.fill_null(table["past"], int(NEVER)))
        values = pc.split_pattern(table["key"], SEPARATOR)
        key = {
            place: pc.list_element(values, number).combine_chunks()
            for number, place in enumerate(places)
        }
        codes = {
            place: _numbers(pc.fill_null(pc.index_in(column, value_set=texts), -1))
            for place, column in key.items()
        }
        return cls(groups, first, past, key, codes)

    @property
    def whole(self) -> bool:
        """Whether answers are not cut into blocks of time."""
        return bool((self.past == NEVER).all())

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
        fresh = _truths(table["fresh"])
        read = _Table(table)
        patterns: dict[str, list[Atom]] = {}
        for atom in atoms:
            patterns.setdefault(atom.predicate, []).append(atom)
        found: dict[str, Facts] = {}
        written = [np.empty(0, dtype=np.int64)]
        for predicate, alike in patterns.items():
            rows, having = read.rows(predicate, alike)
            if not len(rows):
                continue
            places = sorted({p for a in alike for p, v in enumerate(a.args) if isinstance(v, Var)})
            args = {place: read.places(rows, place) for place in places}
            found[predicate] = Facts(
                group[rows], args, time[rows], arrival[rows], fresh[rows], having
            )
            written.extend(args.values())
        encoded, texts = read.values.encoded(np.concatenate(written))
        codes = iter(np.split(encoded, np.cumsum([len(part) for part in written])[:-1])[1:])
        for facts in found.values():
            facts.args.update({place: next(codes) for place in facts.args})
        return cls(found, texts, Homes.of(table, group, key, texts))

    def before(self) -> Columns:
        """The columns without the fresh facts."""
        facts = {predicate: facts.before() for predicate, facts in self.facts.items()}
        return replace(self, facts=facts, _like={})

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
        if not isinstance(left, np.ndarray) and not isinstance(right, np.ndarray):
            # A rank is a place among the values of the facts: two others may have the same.
            return np.asarray(decide(Comparison(left, operator, right)))
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
        self._predicate = Strings.of(_whole(table["predicate"]))
        lists = _whole(table["args"])
        self.values = Strings.of(lists.flatten())
        self._start = _numbers(lists.offsets)[:-1] - lists.offsets[0].as_py()

    def rows(self, predicate: str, atoms: list[Atom]) -> tuple[Ints, dict[Constants, Bools]]:
        """The rows that may match one of the atoms, and which of them each atom's constants fit."""
        rows = self._predicate.equal(predicate)
        patterns = {_constants(atom) for atom in atoms} - {()}
        single = {constant for wanted in patterns for constant in wanted}
        has = {(p, text): self.values.are(self.places(rows, p), text) for p, text in single}
        having = {
            wanted: np.logical_and.reduce([has[constant] for constant in wanted])
            for wanted in patterns
        }
        if any(not _constants(atom) for atom in atoms) or not having:
            return rows, having
        fits = np.logical_or.reduce(list(having.values()))
        return rows[fits], {wanted: fit[fits] for wanted, fit in having.items()}

    def places(self, rows: Ints, place: int) -> Ints:
        """Where the arguments of some rows stand among the values."""
        found: Ints = self._start[rows] + place
        return found


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _truths(array: pa.BooleanArray | pa.ChunkedArray) -> Bools:
    return np.asarray(array.to_numpy(zero_copy_only=False))


def _no_facts(arity: int) -> Facts:
    none = np.empty(0, dtype=np.int64)
    return Facts(none, dict.fromkeys(range(arity), none), none, none, none != none, {})


def _numbers(array: pa.Array | pa.ChunkedArray) -> Ints:
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.int64)


def distinct(code: Ints | Int32s) -> tuple[Ints, Ints]:
    """For each row the number of its code among the distinct ones, and where each first stands."""
    low, high = (int(code.min()), int(code.max())) if len(code) else (0, 0)
    if high - low >= 16 * len(code) + 1024:
        _, first, number = np.unique(code, return_index=True, return_inverse=True)
        return number.astype(np.int64), first
    # Codes that lie close together are numbered by a table, without sorting.
    number, first = _by_table(code, low, np.full(high - low + 1, -1, dtype=np.int64))
    return number, first


@compiled
def _by_table(code: Ints, low: int, table: Ints) -> tuple[Ints, Ints]:
    for at in range(len(code) - 1, -1, -1):
        table[code[at] - low] = at
    first = np.empty(min(len(code), len(table)), np.int64)
    count = 0
    for at in range(len(table)):
        if table[at] >= 0:
            first[count], table[at] = table[at], count
            count += 1
    number = np.empty(len(code), np.int64)
    for at in range(len(code)):
        number[at] = table[code[at] - low]
    return number, first[:count]


def text_of(numbers: Ints) -> pa.StringArray:
    """Whole numbers as text."""
    return pc.cast(pa.array(numbers), pa.string())
