"""Substitutions: applying them, unification of two atoms, and matching of one onto another.

Unification makes two atoms equal; matching makes a pattern equal to a target whose variables stand
for themselves. Both work on time terms by integer arithmetic: `T+2` and `S-1` unify by `S := T+3`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from resolution.errors import WhilstError
from resolution.terms import Atom, Comparison, Term, Time, Var

Substitution: TypeAlias = Mapping[Var, Term | Time]


def apply_term(term: Term, by: Substitution) -> Term:
    while isinstance(term, Var) and term in by:
        bound = by[term]
        assert not isinstance(bound, Time), f"time bound to object variable {term}"
        term = bound
    return term


def apply_time(time: Time, by: Substitution) -> Time:
    while time.base is not None and time.base in by:
        bound = by[time.base]
        assert isinstance(bound, Time), f"object bound to time variable {time.base}"
        time = bound.shifted(time.offset)
    return time


def apply(atom: Atom, by: Substitution) -> Atom:
    if not by:
        return atom
    return Atom(
        atom.predicate,
        tuple(apply_term(arg, by) for arg in atom.args),
        None if atom.time is None else apply_time(atom.time, by),
    )


def apply_comparison(comparison: Comparison, by: Substitution) -> Comparison:
    if not by:
        return comparison
    left, right = (
        apply_time(side, by) if isinstance(side, Time) else apply_term(side, by)
        for side in (comparison.left, comparison.right)
    )
    return Comparison(left, comparison.operator, right)


def unify(goal: Atom, head: Atom, by: Substitution) -> dict[Var, Term | Time] | None:
    """Extends `by` to a most general unifier, or None.

    Between two variables, the head's is bound to the goal's: the names of the query survive.
    """
    if goal.predicate != head.predicate or len(goal.args) != len(head.args):
        return None
    unifier = dict(by)
    for ours, theirs in zip(goal.args, head.args, strict=True):
        a, b = apply_term(ours, unifier), apply_term(theirs, unifier)
        if a == b:
            continue
        if isinstance(b, Var):
            unifier[b] = a
        elif isinstance(a, Var):
            unifier[a] = b
        else:
            return None
    if goal.time is None or head.time is None:
        return unifier if goal.time is head.time else None
    here, there = apply_time(goal.time, unifier), apply_time(head.time, unifier)
    if here.base == there.base:
        return unifier if here.offset == there.offset else None
    if there.base is not None:
        unifier[there.base] = here.shifted(-there.offset)
    else:
        assert here.base is not None
        unifier[here.base] = there.shifted(-here.offset)
    return unifier


def match(pattern: Atom, target: Atom, by: Substitution) -> dict[Var, Term | Time] | None:
    """Extends `by` so that it maps `pattern` to `target` exactly, or None.

    `by` binds variables of the pattern only, in one step: those of the target are left alone,
    even where they have the same names.
    """
    if pattern.predicate != target.predicate or len(pattern.args) != len(target.args):
        return None
    matcher = dict(by)
    for mine, theirs in zip(pattern.args, target.args, strict=True):
        if isinstance(mine, Var):
            if matcher.setdefault(mine, theirs) != theirs:
                return None
        elif mine != theirs:
            return None
    return _match_time(pattern.time, target.time, matcher)


def _match_time(
    pattern: Time | None, target: Time | None, matcher: dict[Var, Term | Time]
) -> dict[Var, Term | Time] | None:
    if pattern is None or target is None:
        return matcher if pattern is target else None
    if pattern.base is None:
        return matcher if pattern == target else None
    wanted = target.shifted(-pattern.offset)
    return matcher if matcher.setdefault(pattern.base, wanted) == wanted else None


def instance(atom: Atom, by: Substitution) -> Atom:
    """The image of an atom under a matcher, which replaces in one step."""
    args = tuple(by.get(arg, arg) if isinstance(arg, Var) else arg for arg in atom.args)
    time = None if atom.time is None else _moved(atom.time, by)
    return Atom(atom.predicate, args, time)  # type: ignore[arg-type]


def image(comparison: Comparison, by: Substitution) -> Comparison:
    """The image of a comparison under a matcher, which replaces in one step."""
    left, right = (
        _moved(side, by) if isinstance(side, Time) else by.get(side, side)  # type: ignore[arg-type]
        for side in (comparison.left, comparison.right)
    )
    return Comparison(left, comparison.operator, right)


def _moved(time: Time, by: Substitution) -> Time:
    base = by.get(time.base) if time.base is not None else None
    if base is None:
        return time
    assert isinstance(base, Time)
    return base.shifted(time.offset)


SEARCHED = 300_000
"""Tries to map atoms onto atoms beyond which a search is given up."""


class Entangled(WhilstError):
    """Atoms that map onto one another in too many ways to try them all."""

    def __init__(self, patterns: tuple[Atom, ...]) -> None:
        self.patterns = patterns
        super().__init__(patterns)

    def __str__(self) -> str:
        predicate, often = Counter(atom.predicate for atom in self.patterns).most_common(1)[0]
        return (
            f"{often} atoms of {predicate} stand together, and can be mapped onto one another in "
            "too many ways to see which are superfluous\n"
            f"  hint: let fewer atoms of {predicate} share one body, or tell them apart by "
            "constants or comparisons"
        )


def embeddings(
    patterns: tuple[Atom, ...],
    targets: Collection[Atom],
    by: Substitution,
    comparisons: Iterable[Comparison] = (),
    holds: Callable[[Comparison], bool] = bool,
) -> Iterator[dict[Var, Term | Time]]:
    """Every extension of `by` that maps each of `patterns` to one of `targets`.

    Where comparisons are given, it maps each to one that holds. They are asked as soon as their
    variables are known: of atoms in a row in time nearly all mappings end early.
    """
    choices: list[tuple[Atom, list[Atom]]] = []
    for pattern in patterns:
        found = [target for target in targets if match(pattern, target, by) is not None]
        if not found:
            return
        choices.append((pattern, found))
    choices.sort(key=lambda choice: len(choice[1]))
    due = _due(comparisons, [by.keys(), *(variables(pattern) for pattern, _ in choices)])
    if not all(holds(image(c, by)) for c in due[0]):
        return
    if not choices:
        yield dict(by)
        return
    tried = 0
    reached: list[Substitution] = [by]
    waiting = [iter(choices[0][1])]
    while waiting:
        at = len(waiting)
        pattern, _ = choices[at - 1]
        for target in waiting[-1]:
            tried += 1
            if tried > SEARCHED:
                raise Entangled(patterns)
            extended = match(pattern, target, reached[-1])
            if extended is None or not all(holds(image(c, extended)) for c in due[at]):
                continue
            if at == len(choices):
                yield extended
                continue
            reached.append(extended)
            waiting.append(iter(choices[at][1]))
            break
        else:
            waiting.pop()
            reached.pop()


def _due(
    comparisons: Iterable[Comparison], steps: Sequence[Collection[Var]]
) -> list[list[Comparison]]:
    """For each step the comparisons whose variables are known from it on, and not before."""
    first = {var: at for at, found in reversed(list(enumerate(steps))) for var in found}
    due: list[list[Comparison]] = [[] for _ in steps]
    for comparison in comparisons:
        due[max((first.get(var, 0) for var in variables(comparison)), default=0)].append(comparison)
    return due


def variables(*parts: Atom | Comparison | Time | Term) -> set[Var]:
    """The variables that occur in atoms, comparisons or terms."""
    found: set[Var] = set()
    for part in parts:
        match part:
            case Var():
                found.add(part)
            case Time(base=Var() as base):
                found.add(base)
            case Atom():
                found.update(arg for arg in part.args if isinstance(arg, Var))
                if part.time is not None and part.time.base is not None:
                    found.add(part.time.base)
            case Comparison():
                found |= variables(part.left, part.right)
            case _:
                pass
    return found


def apart(atom: Atom, keep: Container[Var] = ()) -> Atom:
    """An atom with other names for its variables, but for those to keep."""
    names: dict[Var, Term | Time] = {
        var: Var(f"{var.name}'") for var in atom.args if isinstance(var, Var) and var not in keep
    }
    base = atom.time.base if atom.time is not None else None
    if base is not None and base not in keep:
        names[base] = Time(Var(f"{base.name}'"), 0)
    return apply(atom, names)


def variables_in_order(atoms: Iterable[Atom]) -> list[Var]:
    """The variables of atoms in the order in which a reader meets them."""
    met: dict[Var, None] = {}
    for atom in atoms:
        met.update((arg, None) for arg in atom.args if isinstance(arg, Var))
        if atom.time is not None and atom.time.base is not None:
            met[atom.time.base] = None
    return list(met)
