"""Orders of the variables of a triple that do not depend on their names.

A few variables that look alike are named in every order, and the least text is taken. That is not
to be done with a dozen events in a row: there, what is known about each variable tells them apart
first, and only those that still look alike are tried one after another, each kind of them once.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from resolution.bounds import MIRROR, Bounds, Node, object_comparisons, oriented, time_comparisons
from resolution.substitution import Substitution, image, instance, variables
from resolution.terms import Atom, Comparison, Term, Time, Var, show

Groups: TypeAlias = list[list[Var]]
"""Variables in order, those that look alike in one group."""

TRIED = 24
"""Orders that are all tried: telling variables apart costs more."""


def orders(
    groups: Groups,
    answer: Atom,
    hypotheses: tuple[Atom, ...],
    conditions: tuple[Comparison, ...],
) -> Iterator[list[Var]]:
    """Enough orders that the least text over them is the same whatever the names are."""
    if math.prod(math.factorial(len(group)) for group in groups) <= TRIED:
        for order in itertools.product(*(itertools.permutations(group) for group in groups)):
            yield list(itertools.chain.from_iterable(order))
    else:
        yield from _Structure(answer, hypotheses, conditions).orders(groups)


def origins(atoms: Iterable[Atom]) -> dict[Var, int]:
    """The least offset of each time variable: times are counted from there, however written."""
    origin: dict[Var, int] = {}
    for atom in atoms:
        if atom.time is not None and atom.time.base is not None:
            least = origin.get(atom.time.base, atom.time.offset)
            origin[atom.time.base] = min(least, atom.time.offset)
    return origin


class _Structure:
    """What is known about each variable: the atoms and comparisons that it stands in."""

    def __init__(
        self, answer: Atom, hypotheses: tuple[Atom, ...], conditions: tuple[Comparison, ...]
    ) -> None:
        self._answer = answer
        self._hypotheses = frozenset(hypotheses)
        self._objects = object_comparisons(conditions)
        self._bounds = Bounds.of(time_comparisons(conditions), ())
        self._bounded: set[Node] = {node for pair in self._bounds.closed for node in pair}
        self._origin = origins((answer, *hypotheses))

    def orders(self, groups: Groups) -> Iterator[list[Var]]:
        groups = self._told_apart(groups)
        at = next((n for n, group in enumerate(groups) if len(group) > 1), None)
        if at is None:
            yield list(itertools.chain.from_iterable(groups))
            return
        tried: list[Var] = []
        for var in groups[at]:
            if not any(self._interchangeable(var, other) for other in tried):
                tried.append(var)
                others = [other for other in groups[at] if other != var]
                yield from self.orders([*groups[:at], [var], others, *groups[at + 1 :]])

    def _told_apart(self, groups: Groups) -> Groups:
        """The groups, split by what their variables stand with, until nothing more splits."""
        while True:
            rank = {var: n for n, group in enumerate(groups) for var in group}
            finer: Groups = []
            for group in groups:
                if len(group) == 1:
                    finer.append(group)
                    continue
                kinds: dict[str, list[Var]] = {}
                for var in group:
                    kinds.setdefault(self._outline(var, rank), []).append(var)
                finer.extend(kinds[kind] for kind in sorted(kinds))
            if len(finer) == len(groups):
                return groups
            groups = finer

    def _outline(self, var: Var, rank: dict[Var, int]) -> str:
        """All that is known about a variable, the others being known by their groups alone."""

        def shown(term: Term) -> str:
            if isinstance(term, Var):
                return "V" if term == var else f"#{rank[term]}"
            return show(term)

        def outline(atom: Atom) -> tuple[str, ...]:
            assert atom.time is not None
            base = atom.time.base
            time = "" if base is None else shown(base)
            offset = atom.time.offset - self._from(base)
            return (atom.predicate, *map(shown, atom.args), time, f"{offset:+d}")

        atoms = sorted(outline(atom) for atom in self._hypotheses if var in variables(atom))
        compared = []
        for comparison in self._objects:
            left, operator, right = comparison.left, comparison.operator, comparison.right
            if right == var:
                left, operator, right = right, MIRROR[operator], left
            if left == var and not isinstance(right, Time):
                compared.append((operator, shown(right)))
        between = []
        if var in self._bounded:
            for other in self._bounded - {var}:
                gaps = self._at_most(var, other), self._at_most(other, var)
                between.append((shown(other) if other is not None else "", *gaps))
        return repr((outline(self._answer), atoms, sorted(compared), sorted(between)))

    def _interchangeable(self, one: Var, other: Var) -> bool:
        """Whether nothing changes when two variables change places."""
        swapped: Substitution = {one: other, other: one}
        if one in self._origin:
            shift = self._from(other) - self._from(one)
            swapped = {one: Time(other, shift), other: Time(one, -shift)}
        places: dict[Node, Node] = {one: other, other: one}
        return (
            instance(self._answer, swapped) == self._answer
            and {instance(atom, swapped) for atom in self._hypotheses} == self._hypotheses
            and {oriented(image(c, swapped)) for c in self._objects} == self._objects
            and all(
                self._at_most(places.get(x, x), places.get(y, y)) == self._at_most(x, y)
                for x, y in self._bounds.closed
            )
        )

    def _at_most(self, x: Node, y: Node) -> float:
        """The greatest difference of two times, each counted from its origin."""
        return self._bounds.at_most(x, y) + self._from(x) - self._from(y)

    def _from(self, base: Node) -> int:
        return 0 if base is None else self._origin.get(base, 0)
