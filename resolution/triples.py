"""Triples ⟨θ, E, H, C⟩: a partly matched premise set, when it ends, and which one is smaller."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from resolution.bounds import Bounds
from resolution.delays import Delays
from resolution.premises import (
    PremiseSet,
    implied,
    object_comparisons,
    time_comparisons,
    undecided,
)
from resolution.substitution import (
    Substitution,
    apply,
    apply_comparison,
    embeddings,
    image,
    instance,
    match,
    variables,
)
from resolution.terms import Atom, Comparison, Term, Time, Value, Var


@dataclass(frozen=True)
class Triple:
    """⟨θ, E, H, C⟩; conditions are the comparisons that are not decided yet."""

    premises: PremiseSet
    answer: Atom
    evidence: frozenset[Atom]
    hypotheses: tuple[Atom, ...]
    comparisons: tuple[Comparison, ...]

    @classmethod
    def of(cls, premises: PremiseSet, by: Substitution, facts: Container[Atom]) -> Triple:
        """The triple that a substitution makes of a premise set, given the facts that arrived."""
        atoms = tuple(dict.fromkeys(apply(a, by) for a in premises.atoms))
        return cls(
            premises,
            apply(premises.answer, by),
            frozenset(a for a in atoms if a in facts),
            tuple(a for a in atoms if a not in facts),
            undecided(apply_comparison(c, by) for c in premises.comparisons),
        )

    @property
    def confirmed(self) -> bool:
        return not self.hypotheses

    @cached_property
    def bounds(self) -> Bounds:
        times = [a.time for a in (self.answer, *self.hypotheses) if a.time is not None]
        return Bounds.of(time_comparisons(self.comparisons), times)

    @cached_property
    def objects(self) -> frozenset[Comparison]:
        return object_comparisons(self.comparisons)

    @cached_property
    def conditions(self) -> tuple[Comparison, ...]:
        """The undecided comparisons in their one writing: time bounds, then objects."""
        return (*self.bounds.conditions, *sorted(self.objects, key=str))

    def closes(self, hypothesis: Atom, delays: Delays) -> int | None:
        """The first τ at which a hypothesis is closed, None if it stays possible for ever."""
        assert hypothesis.time is not None
        latest = self.bounds.latest(hypothesis.time)
        return None if latest is None else latest + delays.of(hypothesis)

    def closing(self, delays: Delays) -> tuple[int, str] | None:
        """The deadline and the hypothesis that closes then: the first to close, by text if several.

        Times are bounded by differences alone, and that a hypothesis is still possible bounds its
        time from below: so each can be placed at its latest, and no two of them get in the way of
        each other.
        """
        ends = ((self.closes(h, delays), str(h)) for h in self.hypotheses)
        return min(((end, text) for end, text in ends if end is not None), default=None)

    def deadline(self, delays: Delays) -> int | None:
        closing = self.closing(delays)
        return closing[0] if closing else None

    def possible(self, tau: int, delays: Delays) -> bool:
        """Whether some placement of the unbound times leaves every hypothesis possible at τ."""
        deadline = self.deadline(delays)
        return self.bounds.satisfiable and (deadline is None or tau < deadline)

    @cached_property
    def identity(self) -> str:
        """A text that triples share which differ in E or in the names of variables only."""
        return _canonical(self.answer, self.hypotheses, self.conditions)

    @cached_property
    def answer_identity(self) -> str:
        return _canonical(self.answer, (), ())

    @property
    def bindings(self) -> dict[str, Value | None]:
        """What the variables of the query are bound to; None for one that is not bound yet."""
        return dict(_bindings(self.premises.query.atom, self.answer))


def smaller(other: PremiseSet | Triple, than: Triple, *, or_equal: bool = False) -> bool:
    """Rule 4: whether ρ maps `other` to the same answer with fewer hypotheses and C implying C′ρ.

    With `or_equal`, as for premise sets, the same hypotheses will do.
    """
    hypotheses = other.hypotheses if isinstance(other, Triple) else other.atoms
    by = match(other.answer, than.answer, {})
    if by is None:
        return False
    targets = set(than.hypotheses)
    for rho in embeddings(hypotheses, than.hypotheses, by):
        covered = {instance(h, rho) for h in hypotheses}
        if (or_equal or covered < targets) and implied(
            (image(c, rho) for c in other.comparisons), than.bounds, than.objects
        ):
            return True
    return False


def by_time(atoms: Iterable[Atom]) -> list[Atom]:
    """Atoms as they are shown: by time point, those without a known one last, then by text."""

    def key(atom: Atom) -> tuple[bool, int, str]:
        assert atom.time is not None
        return (atom.time.base is not None, atom.time.offset, str(atom))

    return sorted(atoms, key=key)


def identifier(*texts: str) -> str:
    """32 hex digits that stand for texts."""
    return hashlib.blake2b("\x00".join(texts).encode(), digest_size=16).hexdigest()


def _bindings(query: Atom, answer: Atom) -> Iterator[tuple[str, Value | None]]:
    for asked, found in zip(query.args, answer.args, strict=True):
        if isinstance(asked, Var) and "#" not in asked.name:
            yield asked.name, None if isinstance(found, Var) else found
    base = query.time.base if query.time is not None else None
    if base is not None and "#" not in base.name:
        assert query.time is not None
        assert answer.time is not None
        known = answer.time.base is None
        yield base.name, answer.time.offset - query.time.offset if known else None


# --- one text for all variants -------------------------------------------------------------------


def _canonical(
    answer: Atom, hypotheses: tuple[Atom, ...], conditions: tuple[Comparison, ...]
) -> str:
    """The least text over all namings of the variables, offsets counted from each one's least."""
    atoms = (answer, *hypotheses)
    unbound = sorted(variables(*atoms, *conditions))
    if not unbound:
        return _text(answer, hypotheses, conditions, {})
    origin: dict[Var, int] = {}
    for atom in atoms:
        if atom.time is not None and atom.time.base is not None:
            least = origin.get(atom.time.base, atom.time.offset)
            origin[atom.time.base] = min(least, atom.time.offset)
    kinds: dict[tuple[str, ...], list[Var]] = {}
    for var in unbound:
        kinds.setdefault(_surroundings(var, atoms, conditions, origin), []).append(var)
    groups = [kinds[kind] for kind in sorted(kinds)]
    texts = []
    for order in itertools.product(*(itertools.permutations(group) for group in groups)):
        names: dict[Var, Term | Time] = {}
        for number, var in enumerate(itertools.chain.from_iterable(order)):
            new = Var(f"V{number}")
            names[var] = Time(new, -origin[var]) if var in origin else new
        texts.append(_text(answer, hypotheses, conditions, names))
    return min(texts)


def _surroundings(
    var: Var,
    atoms: tuple[Atom, ...],
    conditions: tuple[Comparison, ...],
    origin: dict[Var, int],
) -> tuple[str, ...]:
    """Where a variable stands, whatever its name: what no renaming can change."""
    blank: dict[Var, Term | Time] = {
        v: Time(Var("_"), -origin[v]) if v in origin else Var("_")
        for v in variables(*atoms, *conditions)
        if v != var
    }
    blank[var] = Time(Var("V"), -origin[var]) if var in origin else Var("V")
    mine = [str(apply(a, blank)) for a in atoms if var in variables(a)]
    rest = [str(apply_comparison(c, blank)) for c in conditions if var in variables(c)]
    return (str(var in variables(atoms[0])), *sorted(mine), *sorted(rest))


def _text(
    answer: Atom,
    hypotheses: tuple[Atom, ...],
    conditions: tuple[Comparison, ...],
    names: Substitution,
) -> str:
    awaited = sorted(str(apply(h, names)) for h in hypotheses)
    renamed = [apply_comparison(c, names) for c in conditions]
    times = {t for c in renamed for t in (c.left, c.right) if isinstance(t, Time)}
    bounds = Bounds.of(time_comparisons(renamed), ()).conditions if times else ()
    others = sorted(str(c) for c in object_comparisons(renamed))
    return " | ".join([str(apply(answer, names)), *awaited, *map(str, bounds), *others])
