"""`S_τ` straight from its definition: slow, and meant to be read beside SEMANTICS.

Every other way of computing answers is checked against this one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from resolution.bounds import decide
from resolution.delays import Delays
from resolution.premises import PremiseSet
from resolution.substitution import apply, match
from resolution.terms import Atom, Term, Time, Var
from resolution.triples import Triple, by_time, smaller


def answers(
    premise_sets: Iterable[PremiseSet], delays: Delays, arrived: Mapping[Atom, int], tau: int
) -> list[Triple]:
    """`S_τ` of one query, one triple for each answer, given what arrived in time by τ."""
    sets = tuple(premise_sets)
    candidates = [
        triple
        for premises in sets
        for triple in _supported(premises, arrived)
        if _may_hold(triple) and triple.possible(tau, delays)
    ]
    minimal = [
        triple
        for triple in candidates
        if not any(smaller(other, triple) for other in candidates)
        and not any(smaller(premises, triple, or_equal=True) for premises in sets)
    ]
    return one_evidence_each(minimal, arrived)


def _supported(premises: PremiseSet, arrived: Mapping[Atom, int]) -> Iterator[Triple]:
    """Rules 1 and 2: some atoms are matched with facts; nothing but their variables is bound."""

    def choose(rest: tuple[Atom, ...], by: dict[Var, Term | Time], some: bool) -> Iterator[Triple]:
        if not rest:
            if some:
                yield Triple.of(premises, by, arrived)
            return
        atom, *others = rest
        yield from choose(tuple(others), by, some)
        for fact in arrived:
            extended = match(apply(atom, by), fact, {})
            if extended is not None:
                yield from choose(tuple(others), {**by, **extended}, True)

    yield from choose(premises.atoms, {}, False)


def _may_hold(triple: Triple) -> bool:
    """The part of rule 3 that time does not change.

    That no ground hypothesis has arrived already holds of every triple as it is made.
    """
    return all(decide(c) is not False for c in triple.comparisons)


def one_evidence_each(triples: Iterable[Triple], arrived: Mapping[Atom, int]) -> list[Triple]:
    """One triple for each identity."""
    alike: dict[str, list[Triple]] = defaultdict(list)
    for triple in triples:
        alike[triple.identity].append(triple)
    return [first_evidence(group, arrived) for group in alike.values()]


def first_evidence(alike: Iterable[Triple], arrived: Mapping[Atom, int]) -> Triple:
    """Of triples that differ only in E, the one whose evidence is minimal and came first."""
    group = list(alike)
    minimal = [t for t in group if not any(other.evidence < t.evidence for other in group)]
    return min(
        minimal,
        key=lambda t: (
            max(arrived[fact] for fact in t.evidence),
            sorted(map(str, t.evidence)),
            t.premises.number,
            list(map(str, by_time(t.hypotheses))),
        ),
    )
