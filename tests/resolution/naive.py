"""The ground atoms that a program derives from facts, by its rules alone.

No premise sets, no resolution, no minimality: plain Datalog, bottom up. The programs do not
recurse, so it ends.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from resolution.bounds import decide
from resolution.program import Program, Rule
from resolution.substitution import apply, apply_comparison, match
from resolution.terms import Atom, Term, Time, Var


def derived(program: Program, facts: Iterable[Atom]) -> set[Atom]:
    """The answers of all queries of a program over ground facts."""
    known: dict[str, set[Atom]] = defaultdict(set)
    for fact in facts:
        known[fact.predicate].add(fact)
    for predicate, rows in program.rigid.items():
        known[predicate] = {Atom(predicate, row, None) for row in rows}
    size = -1
    while size < (size := sum(map(len, known.values()))):
        for rule in program.rules:
            known[rule.head.predicate] |= set(_heads(rule, known))
    return {
        atom
        for query in program.queries
        for atom in known[query.name]
        if match(query.atom, atom, {}) is not None
        and atom.time is not None
        and atom.time.offset >= 0
    }


def _heads(rule: Rule, known: dict[str, set[Atom]]) -> Iterator[Atom]:
    def extend(rest: tuple[Atom, ...], by: dict[Var, Term | Time]) -> Iterator[Atom]:
        if not rest:
            if all(decide(apply_comparison(c, by)) for c in rule.comparisons):
                yield apply(rule.head, by)
            return
        for fact in list(known[rest[0].predicate]):
            extended = match(rest[0], fact, by)
            if extended is not None:
                yield from extend(rest[1:], extended)

    return extend(rule.body, {})
