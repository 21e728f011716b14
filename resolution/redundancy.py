"""Which premise sets are superfluous: those that fold onto a part of themselves, or that another
one subsumes.

Sets that differ in their comparisons only are a *shape*. Whether one shape maps into another is
asked once, by an index and not of all pairs; after that comparisons alone decide, and they are
found by an index too where they are between objects.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from operator import le
from typing import TYPE_CHECKING, TypeAlias

from resolution.bounds import (
    Bounds,
    Node,
    decide,
    edges,
    implied,
    object_comparisons,
    oriented,
    time_comparisons,
    undecided,
)
from resolution.substitution import (
    Substitution,
    embeddings,
    image,
    instance,
    match,
    variables,
    variables_in_order,
)
from resolution.terms import Atom, Comparison, Term, Time, Var

if TYPE_CHECKING:
    from resolution.premises import PremiseSet


# --- condensing ----------------------------------------------------------------------------------


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
    fixed = _identity(premises.answer)
    bounds, objects = premises.bounds, object_comparisons(premises.comparisons)

    def holds(comparison: Comparison) -> bool:
        return implied([comparison], bounds, objects)

    for atom in premises.atoms:
        if variables(atom) <= fixed.keys():
            continue  # it can map to itself only
        others = tuple(a for a in premises.atoms if a != atom)
        if all(match(atom, other, fixed) is None for other in others):
            continue
        for by in embeddings(premises.atoms, others, fixed, premises.comparisons, holds):
            kept = {instance(a, by) for a in premises.atoms}
            atoms = tuple(a for a in premises.atoms if a in kept)
            comparisons = undecided(image(c, by) for c in premises.comparisons)
            return replace(premises, atoms=atoms, comparisons=comparisons)
    return None


def _identity(atom: Atom) -> dict[Var, Term | Time]:
    fixed: dict[Var, Term | Time] = {a: a for a in atom.args if isinstance(a, Var)}
    if atom.time is not None and atom.time.base is not None:
        fixed[atom.time.base] = Time(atom.time.base, 0)
    return fixed


# --- subsumption ---------------------------------------------------------------------------------


class _Member:
    """A premise set, as far as it differs from others of its shape."""

    def __init__(self, number: int, comparisons: list[Comparison], times: list[Time]) -> None:
        self.number = number
        self.comparisons = comparisons
        self.bounds = Bounds.of(time_comparisons(comparisons), times)
        self.objects = object_comparisons(comparisons)
        self.dropped = False

    def implies(self, comparison: Comparison) -> bool:
        return implied([comparison], self.bounds, self.objects)


@dataclass(eq=False)
class _Shape:
    """Premise sets that are equal but for their names and comparisons."""

    answer: Atom
    atoms: tuple[Atom, ...]
    members: list[_Member]

    @cached_property
    def common(self) -> frozenset[Comparison]:
        """The comparisons that all members have."""
        first, *others = (frozenset(member.comparisons) for member in self.members)
        return first.intersection(*others)

    def may_imply(self, comparison: Comparison) -> bool:
        """Whether some member implies a comparison."""
        return any(member.implies(comparison) for member in self.members)


def irredundant(sets: Sequence[PremiseSet]) -> list[PremiseSet]:
    """The premise sets that no other one subsumes; of those that subsume each other the first."""
    shapes: dict[tuple[Atom, ...], _Shape] = {}
    for number, premises in enumerate(sets):
        names = _numbered(premises)
        atoms = tuple(instance(atom, names) for atom in (premises.answer, *premises.atoms))
        comparisons = [image(c, names) for c in premises.comparisons]
        times = [atom.time for atom in atoms if atom.time is not None]
        shape = shapes.setdefault(atoms, _Shape(atoms[0], atoms[1:], []))
        shape.members.append(_Member(number, comparisons, times))
    for general, special in _pairs(list(shapes.values())):
        if general is not special or len(general.members) > 1:
            for rho in _maps(general, special):
                _drop_subsumed(general, special, rho)
    dropped = {m.number for shape in shapes.values() for m in shape.members if m.dropped}
    return [premises for number, premises in enumerate(sets) if number not in dropped]


def _numbered(premises: PremiseSet) -> Substitution:
    """New names for the variables, by the order in which they are met."""
    atoms = (premises.answer, *premises.atoms)
    timed = {atom.time.base for atom in atoms if atom.time is not None}
    new = {var: Var(f"V{n}") for n, var in enumerate(variables_in_order(atoms))}
    return {var: Time(name, 0) if var in timed else name for var, name in new.items()}


def _maps(general: _Shape, special: _Shape) -> Iterator[Substitution]:
    by = match(general.answer, special.answer, {})
    if by is not None:
        holds = cache(special.may_imply)
        yield from embeddings(general.atoms, special.atoms, by, general.common, holds)


Pairs: TypeAlias = tuple[tuple[Node, Node], ...]


@dataclass(frozen=True, slots=True)
class _Need:
    """What another set's comparisons must imply for a member to subsume it by some substitution."""

    member: _Member
    pairs: Pairs
    most: tuple[int, ...]
    """For each pair of times what their difference may be at most."""
    objects: frozenset[Comparison]


def _need(member: _Member, rho: Substitution) -> _Need | None:
    """None where a comparison would have to hold that does not."""
    bounds: dict[tuple[Node, Node], int] = {}
    objects: set[Comparison] = set()
    for comparison in (image(c, rho) for c in member.comparisons):
        holds = decide(comparison)
        if holds is False:
            return None
        if holds is None and isinstance(comparison.left, Time):
            for x, y, most in edges(comparison):
                bounds[x, y] = min(most, bounds.get((x, y), most))
        elif holds is None:
            objects.add(oriented(comparison))
    pairs = tuple(sorted(bounds, key=str))
    return _Need(member, pairs, tuple(bounds[p] for p in pairs), frozenset(objects))


def _drop_subsumed(general: _Shape, special: _Shape, rho: Substitution) -> None:
    """Drops the members of the special shape that one of the general shape subsumes by ρ."""
    filed: _Needs = defaultdict(lambda: defaultdict(list))
    for member in general.members:
        need = None if member.dropped else _need(member, rho)
        if need is not None:
            filed[need.pairs][min(need.objects, key=str, default=None)].append(need)
    for member in special.members:
        member.dropped = member.dropped or any(
            need.member is not member
            and not need.member.dropped
            and (
                need.member.number < member.number
                or not _subsumes(special, member, general, need.member)
            )
            for need in _met(filed, member)
        )


_Needs: TypeAlias = dict[Pairs, dict[Comparison | None, list[_Need]]]
"""Needs by the times they bound, and by one of the object comparisons they have, if any."""


def _met(filed: _Needs, by: _Member) -> Iterator[_Need]:
    """The needs that the comparisons of a member imply."""
    for pairs, of_times in filed.items():
        bounds = [by.bounds.at_most(x, y) for x, y in pairs]
        for known in (None, *by.objects):
            for need in of_times.get(known, ()):
                if all(map(le, bounds, need.most)) and need.objects <= by.objects:
                    yield need


def _subsumes(general: _Shape, one: _Member, special: _Shape, other: _Member) -> bool:
    return any(
        implied((image(c, rho) for c in one.comparisons), other.bounds, other.objects)
        for rho in _maps(general, special)
    )


Feature: TypeAlias = tuple[object, ...]


def _features(shape: _Shape) -> set[Feature]:
    """What every shape that this one maps into has too: an index instead of an all-pairs search.

    Under a substitution that maps one answer to the other, constants stay, and so does the
    distance between two times that hang on one variable (or on none).
    """
    found: set[Feature] = set()
    places = (shape.answer, *shape.atoms)
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


def _pairs(shapes: list[_Shape]) -> Iterator[tuple[_Shape, _Shape]]:
    """Every shape with each that it may map into, itself among them."""
    features = [_features(shape) for shape in shapes]
    frequency = Counter(feature for found in features for feature in found)
    filed: dict[Feature, list[int]] = defaultdict(list)
    for at, found in enumerate(features):
        filed[min(found, key=lambda f: (frequency[f], repr(f)))].append(at)
    for at, special in enumerate(shapes):
        for rival in (r for feature in features[at] for r in filed.get(feature, ())):
            if features[rival] <= features[at]:
                yield shapes[rival], special
