"""The premise sets `P_Q` of a query: SLD resolution down to stream atoms, less what is redundant.

    resolve  ->  condense each  ->  drop what another subsumes

A premise set ⟨θ, H, C⟩ says: where all atoms of H hold and the comparisons C are true, the answer
θ holds. Order and names are those of a left-to-right reading of the rules, so they never vary.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from resolution.bounds import Bounds, decide, oriented
from resolution.errors import WhilstError
from resolution.program import Program, Query, Rule
from resolution.substitution import (
    Substitution,
    apply,
    apply_comparison,
    embeddings,
    image,
    instance,
    match,
    unify,
    variables,
)
from resolution.terms import Atom, Comparison, Term, Time, Value, Var

LIMIT = 50_000
"""Leaves of a resolution beyond which a program is refused rather than waited for."""


class TooManyPremiseSets(WhilstError):
    """A query whose rules multiply beyond the limit; `multipliers` says which ones do."""

    def __init__(self, query: str, limit: int, multipliers: list[tuple[str, int]]) -> None:
        self.query, self.limit, self.multipliers = query, limit, multipliers
        super().__init__(query, limit, multipliers)

    def __str__(self) -> str:
        worst = ", ".join(f"{name} in {ways:,} ways" for name, ways in self.multipliers[:5])
        return (
            f"{self.query} has more than {self.limit:,} premise sets: its rules multiply. "
            f"A body holds {worst}.\n"
            "  hint: join fewer predicates that each have several rules or rigid facts in one "
            "body, or query the parts on their own"
        )


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
    """`P_Q`, in order, numbered from 1. Raises TooManyPremiseSets beyond `limit` leaves."""
    leaves: list[PremiseSet] = []
    for leaf in _resolve(program, query):
        if len(leaves) >= limit:
            raise TooManyPremiseSets(query.name, limit, _multipliers(program, query))
        leaves.append(condense(leaf))
    return tuple(
        replace(premises, number=number)
        for number, premises in enumerate(_irredundant(leaves), start=1)
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


def _resolve(program: Program, query: Query) -> Iterator[PremiseSet]:
    """The leaves of the SLD tree, left to right, less those that can never hold."""
    rows = _RigidIndex(program)
    stack = [_Goal(((0, query.atom),), (), {}, ())]
    fresh = 0
    while stack:
        goal = stack.pop()
        at = _selected(program, goal, rows)
        if at is None:
            leaf = _leaf(query, goal)
            if leaf is not None:
                yield leaf
            continue
        node, atom = goal.atoms[at]
        rest = goal.atoms[:at], goal.atoms[at + 1 :]
        further: list[_Goal] = []
        if atom.predicate in program.rigid:
            for row in rows.matching(apply(atom, goal.by)):
                by = unify(atom, Atom(atom.predicate, row, None), goal.by)
                if by is not None:
                    steps = (*goal.steps, (node, atom, None, ()))
                    further.append(_Goal(rest[0] + rest[1], goal.comparisons, by, steps))
        for rule in program.rules_for(atom.predicate):
            fresh += 1
            renamed = _renamed(rule, fresh)
            by = unify(atom, renamed.head, goal.by)
            if by is None:
                continue
            first = 1 + max([node, *(n for n, _ in goal.atoms), *_nodes(goal.steps)])
            body = tuple(enumerate(renamed.body, start=first))
            steps = (*goal.steps, (node, atom, rule, tuple(n for n, _ in body)))
            comparisons = goal.comparisons + renamed.comparisons
            further.append(_Goal(rest[0] + body + rest[1], comparisons, by, steps))
        stack.extend(g for g in reversed(further) if not _contradicted(g))


def _nodes(steps: tuple[Step, ...]) -> Iterator[int]:
    for node, _, _, children in steps:
        yield node
        yield from children


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
    steps = {node: (atom, rule, children) for node, atom, rule, children in goal.steps}
    leaves = dict(goal.atoms)

    def build(node: int) -> Derivation:
        if node in leaves:
            return Derivation(apply(apply(leaves[node], goal.by), names))
        atom, rule, children = steps[node]
        shown = apply(apply(atom, goal.by), names)
        return Derivation(shown, rule, tuple(map(build, children)))

    return build(0)


def _readable_names(atoms: tuple[Atom, ...], query: Query) -> dict[Var, Term | Time]:
    """New names for the variables: the query's own, then the rules', made unique by a number."""
    timed = {a.time.base for a in atoms if a.time is not None}
    own = variables(query.atom)
    taken = {v.name for v in own if "#" not in v.name}
    names: dict[Var, Term | Time] = {}
    for var in _in_order(atoms):
        name = var.name.split("#")[0]
        if var not in own or "#" in var.name:
            stem, number = name, 1
            while name in taken or name == "_":
                name, number = f"{stem.rstrip('_') or '_'}_{number}".replace("__", "_"), number + 1
            taken.add(name)
            names[var] = Time(Var(name), 0) if var in timed else Var(name)
    return names


def _in_order(atoms: Iterable[Atom]) -> list[Var]:
    """The variables in the order in which a reader meets them."""
    met: dict[Var, None] = {}
    for atom in atoms:
        met.update((arg, None) for arg in atom.args if isinstance(arg, Var))
        if atom.time is not None and atom.time.base is not None:
            met[atom.time.base] = None
    return list(met)


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


def _multipliers(program: Program, query: Query) -> list[tuple[str, int]]:
    """For each predicate with several ways to hold, in how many ways; the worst first."""
    ways: dict[str, int] = {}

    def count(predicate: str) -> int:
        if predicate in program.streams:
            return 1
        if predicate not in ways:
            ways[predicate] = len(program.rigid.get(predicate, ()))
            for rule in program.rules_for(predicate):
                product = 1
                for atom in rule.body:
                    product *= count(atom.predicate)
                ways[predicate] += product
        return ways[predicate]

    count(query.name)
    return sorted(((p, n) for p, n in ways.items() if n > 1), key=lambda way: (-way[1], way[0]))


# --- comparisons ---------------------------------------------------------------------------------


def time_comparisons(comparisons: Iterable[Comparison]) -> list[Comparison]:
    return [c for c in comparisons if isinstance(c.left, Time)]


def undecided(comparisons: Iterable[Comparison]) -> tuple[Comparison, ...]:
    """The comparisons that are not true already, each once."""
    return tuple(
        dict.fromkeys(
            c if isinstance(c.left, Time) else oriented(c)
            for c in comparisons
            if decide(c) is not True
        )
    )


def implied(
    comparisons: Iterable[Comparison], bounds: Bounds, objects: frozenset[Comparison]
) -> bool:
    """Whether comparisons follow from time bounds and the object comparisons that are there."""
    return all(
        bounds.implies(c) if isinstance(c.left, Time) else decide(c) or oriented(c) in objects
        for c in comparisons
    )


def object_comparisons(comparisons: Iterable[Comparison]) -> frozenset[Comparison]:
    return frozenset(oriented(c) for c in comparisons if not isinstance(c.left, Time))


# --- redundancy ----------------------------------------------------------------------------------


def condense(premises: PremiseSet) -> PremiseSet:
    """The same premise set without atoms that the others make superfluous."""
    smaller = _folded(premises)
    while smaller is not None:
        premises, smaller = smaller, _folded(smaller)
    return premises


def _folded(premises: PremiseSet) -> PremiseSet | None:
    """An instance on a proper part of the atoms that the premise set implies, if there is one."""
    counts = Counter(a.predicate for a in premises.atoms)
    if max(counts.values(), default=0) < 2:
        return None
    fixed: dict[Var, Term | Time] = _identity(premises.answer)
    objects = object_comparisons(premises.comparisons)
    for atom in premises.atoms:
        others = tuple(a for a in premises.atoms if a != atom)
        if all(match(atom, other, fixed) is None for other in others):
            continue
        for by in embeddings(premises.atoms, others, fixed):
            comparisons = tuple(image(c, by) for c in premises.comparisons)
            if implied(comparisons, premises.bounds, objects):
                kept = {instance(a, by) for a in premises.atoms}
                atoms = tuple(a for a in premises.atoms if a in kept)
                return replace(premises, atoms=atoms, comparisons=undecided(comparisons))
    return None


def _identity(atom: Atom) -> dict[Var, Term | Time]:
    fixed: dict[Var, Term | Time] = {a: a for a in atom.args if isinstance(a, Var)}
    if atom.time is not None and atom.time.base is not None:
        fixed[atom.time.base] = Time(atom.time.base, 0)
    return fixed


def _subsumes(general: PremiseSet, special: PremiseSet) -> bool:
    by = match(general.answer, special.answer, {})
    if by is None:
        return False
    objects = object_comparisons(special.comparisons)
    return any(
        implied((image(c, rho) for c in general.comparisons), special.bounds, objects)
        for rho in embeddings(general.atoms, special.atoms, by)
    )


Feature: TypeAlias = tuple[object, ...]


def _features(premises: PremiseSet) -> set[Feature]:
    """What every set that this one subsumes has too: an index instead of an all-pairs search.

    Under a substitution that maps one answer to the other, constants stay, and so does the
    distance between two times that hang on one variable (or on none).
    """
    found: set[Feature] = set()
    places = (premises.answer, *premises.atoms)
    for at, atom in enumerate(places):
        role = (atom.predicate, at == 0)
        found.add(role)
        found.update((*role, i, a) for i, a in enumerate(atom.args) if not isinstance(a, Var))
        if atom.time is not None and atom.time.base is None:
            found.add((*role, atom.time.offset))
        for other in places[:at]:
            if atom.time and other.time and atom.time.base == other.time.base:
                gap = atom.time.offset - other.time.offset
                if not gap and atom.predicate == other.predicate:
                    continue  # one atom may be the image of both
                pair = sorted([(atom.predicate, gap), (other.predicate, -gap)])
                found.add(("gap", *pair[0], pair[1][0]))
    return found


def _irredundant(leaves: list[PremiseSet]) -> Iterator[PremiseSet]:
    leaves = list({(leaf.answer, frozenset(leaf.atoms), leaf.comparisons): leaf
                   for leaf in reversed(leaves)}.values())[::-1]  # fmt: skip
    features = [_features(leaf) for leaf in leaves]
    frequency = Counter(feature for found in features for feature in found)
    filed: dict[Feature, list[int]] = defaultdict(list)
    for at, found in enumerate(features):
        filed[min(found, key=lambda f: (frequency[f], repr(f)))].append(at)
    for at, leaf in enumerate(leaves):
        rivals = (r for f in features[at] for r in filed.get(f, ()) if r != at)
        if not any(
            features[r] <= features[at]
            and _subsumes(leaves[r], leaf)
            and (r < at or not _subsumes(leaf, leaves[r]))
            for r in rivals
        ):
            yield leaf
