"""The premise sets `P_Q` of a query: SLD resolution down to stream atoms, less what is redundant.

    resolve  ->  condense each  ->  drop what another subsumes

A premise set ⟨θ, H, C⟩ says: where all atoms of H hold and the comparisons C are true, the answer
θ holds. Order and names are those of a left-to-right reading of the rules, so they never vary.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from resolution.bounds import Bounds, decide, time_comparisons, undecided
from resolution.limits import (
    LARGEST,
    LIMIT,
    STEPS_A_LEAF,
    UNRESOLVED,
    Multiplier,
    TooLargePremiseSet,
    TooManyPremiseSets,
    growing_rules,
    multiplying_rules,
)
from resolution.program import Program, Query, Rule
from resolution.redundancy import condense, irredundant
from resolution.substitution import (
    Substitution,
    apply,
    apply_comparison,
    unify,
    variables,
    variables_in_order,
)
from resolution.terms import Atom, Comparison, Term, Time, Value, Var

__all__ = [
    "LIMIT",
    "Derivation",
    "Multiplier",
    "PremiseSet",
    "TooLargePremiseSet",
    "TooManyPremiseSets",
    "premise_sets",
    "time_comparisons",
    "undecided",
]


@dataclass(frozen=True, slots=True)
class Derivation:
    """How an atom was resolved: by a rule (or, without one, a rigid fact), into its children.

    A stream atom is a leaf: it was not resolved, it is awaited.
    """

    atom: Atom
    rule: Rule | None = None
    children: tuple[Derivation, ...] = ()


@dataclass(frozen=True, slots=True)
class PremiseSet:
    """⟨θ, H, C⟩, with θ given by the answer it makes of the query."""

    number: int
    query: Query
    answer: Atom
    atoms: tuple[Atom, ...]
    comparisons: tuple[Comparison, ...]
    derivation: Derivation

    def __str__(self) -> str:
        premises = ", ".join(map(str, (*self.atoms, *self.comparisons)))
        return f"{self.answer} <- {premises}"

    @property
    def times(self) -> list[Time]:
        """The time terms that must be natural."""
        return [a.time for a in (self.answer, *self.atoms) if a.time is not None]

    @property
    def bounds(self) -> Bounds:
        return Bounds.of(time_comparisons(self.comparisons), self.times)


def premise_sets(program: Program, query: Query, limit: int = LIMIT) -> tuple[PremiseSet, ...]:
    """`P_Q`, in order, numbered from 1.

    Raises TooManyPremiseSets beyond `limit` leaves, and TooLargePremiseSet where one has too many
    atoms to go on with.
    """
    goals = list(itertools.islice(_resolve(program, query, limit * STEPS_A_LEAF), limit + 1))
    if len(goals) > limit or goals[-1:] == [None]:
        raise TooManyPremiseSets(query.name, limit, multiplying_rules(program, query))
    leaves = [_leaf(query, goal) for goal in goals if goal is not None]
    if any(leaf is not None and len(leaf.atoms) > LARGEST for leaf in leaves):
        raise TooLargePremiseSet(query.name, LARGEST, growing_rules(program, query))
    condensed = [condense(leaf) for leaf in leaves if leaf is not None]
    return tuple(
        replace(premises, number=number)
        for number, premises in enumerate(irredundant(condensed), start=1)
    )


# --- resolution ----------------------------------------------------------------------------------

Step: TypeAlias = tuple[int, Atom, Rule | None, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class _Goal:
    atoms: tuple[tuple[int, Atom], ...]
    """What is left to resolve, stream atoms included, each with the number of its node."""
    comparisons: tuple[Comparison, ...]
    by: Substitution
    steps: tuple[Step, ...]
    nodes: int
    """How many nodes there are: atoms that were resolved, and atoms that are left."""


def _resolve(program: Program, query: Query, limit: int) -> Iterator[_Goal | None]:
    """The leaves of the SLD tree, left to right; None where the steps come to the limit."""
    rows = _RigidIndex(program)
    stack = [_Goal(((0, query.atom),), (), {}, (), 1)]
    renamings = itertools.count(1)
    for _ in range(limit):
        if not stack:
            return
        goal = stack.pop()
        at = _selected(program, goal, rows)
        if at is None:
            yield goal
            continue
        node, atom = goal.atoms[at]
        before, after = goal.atoms[:at], goal.atoms[at + 1 :]
        further: list[_Goal] = []
        if atom.predicate in program.rigid:
            steps = (*goal.steps, (node, atom, None, ()))
            for row in rows.matching(apply(atom, goal.by)):
                by = unify(atom, Atom(atom.predicate, row, None), goal.by)
                if by is not None:
                    rest = before + after
                    further.append(_Goal(rest, goal.comparisons, by, steps, goal.nodes))
        for rule in program.rules_for(atom.predicate):
            renamed = _renamed(rule, next(renamings))
            by = unify(atom, renamed.head, goal.by)
            if by is None:
                continue
            body = tuple(enumerate(renamed.body, start=goal.nodes))
            if len(body) > 1 and len(goal.atoms) + len(body) > UNRESOLVED:
                raise TooLargePremiseSet(query.name, UNRESOLVED, growing_rules(program, query))
            steps = (*goal.steps, (node, atom, rule, tuple(n for n, _ in body)))
            comparisons = goal.comparisons + renamed.comparisons
            nodes = goal.nodes + len(body)
            further.append(_Goal(before + body + after, comparisons, by, steps, nodes))
        stack.extend(g for g in reversed(further) if not _contradicted(g))
    yield None


def _selected(program: Program, goal: _Goal, rows: _RigidIndex) -> int | None:
    """The leftmost derived atom; when none is left, the rigid one with the fewest facts."""
    rigid: list[tuple[int, int]] = []
    for at, (_, atom) in enumerate(goal.atoms):
        if atom.predicate in program.rigid:
            rigid.append((len(rows.matching(apply(atom, goal.by))), at))
        elif atom.predicate not in program.streams:
            return at
    return min(rigid)[1] if rigid else None


def _contradicted(goal: _Goal) -> bool:
    return any(decide(apply_comparison(c, goal.by)) is False for c in goal.comparisons)


def _renamed(rule: Rule, number: int) -> Rule:
    by: dict[Var, Term | Time] = {}
    timed = {a.time.base for a in (rule.head, *rule.body) if a.time is not None}
    for var in variables(rule.head, *rule.body, *rule.comparisons):
        new = Var(f"{var.name}#{number}")
        by[var] = Time(new, 0) if var in timed else new
    return Rule(
        rule.number,
        apply(rule.head, by),
        tuple(apply(a, by) for a in rule.body),
        tuple(apply_comparison(c, by) for c in rule.comparisons),
        rule.span,
    )


def _leaf(query: Query, goal: _Goal) -> PremiseSet | None:
    answer = apply(query.atom, goal.by)
    atoms = tuple(dict.fromkeys(apply(a, goal.by) for _, a in goal.atoms))
    comparisons = undecided(apply_comparison(c, goal.by) for c in goal.comparisons)
    names = _readable_names((answer, *atoms), query)
    leaf = PremiseSet(
        0,
        query,
        apply(answer, names),
        tuple(apply(a, names) for a in atoms),
        tuple(apply_comparison(c, names) for c in comparisons),
        _derivation(goal, names),
    )
    return leaf if leaf.bounds.satisfiable else None


def _derivation(goal: _Goal, names: Substitution) -> Derivation:
    built = {n: Derivation(apply(apply(atom, goal.by), names)) for n, atom in goal.atoms}
    for node, atom, rule, children in reversed(goal.steps):  # a child is resolved after its parent
        shown = apply(apply(atom, goal.by), names)
        built[node] = Derivation(shown, rule, tuple(built[child] for child in children))
    return built[0]


def _readable_names(atoms: tuple[Atom, ...], query: Query) -> dict[Var, Term | Time]:
    """New names for the variables: the query's own, then the rules', made unique by a number."""
    timed = {a.time.base for a in atoms if a.time is not None}
    own = variables(query.atom)
    taken = {v.name for v in own if "#" not in v.name}
    names: dict[Var, Term | Time] = {}
    for var in variables_in_order(atoms):
        name = var.name.split("#")[0]
        if var not in own or "#" in var.name:
            stem, number = name, 1
            while name in taken or name == "_":
                name, number = f"{stem.rstrip('_') or '_'}_{number}".replace("__", "_"), number + 1
            taken.add(name)
            names[var] = Time(Var(name), 0) if var in timed else Var(name)
    return names


class _RigidIndex:
    """The rigid facts by their values, so that a bound argument finds its few rows."""

    def __init__(self, program: Program) -> None:
        self._rows = program.rigid
        self._by_value: dict[tuple[str, int], dict[Value, list[tuple[Value, ...]]]] = {}

    def matching(self, atom: Atom) -> list[tuple[Value, ...]]:
        """The rows that have the constants of the atom in one of its places, the fewest."""
        found: list[tuple[Value, ...]] | None = None
        for place, arg in enumerate(atom.args):
            if not isinstance(arg, Var):
                rows = self._at(atom.predicate, place).get(arg, [])
                found = rows if found is None or len(rows) < len(found) else found
        return list(self._rows[atom.predicate]) if found is None else found

    def _at(self, predicate: str, place: int) -> dict[Value, list[tuple[Value, ...]]]:
        key = predicate, place
        if key not in self._by_value:
            index: dict[Value, list[tuple[Value, ...]]] = defaultdict(list)
            for row in self._rows[predicate]:
                index[row[place]].append(row)
            self._by_value[key] = index
        return self._by_value[key]
