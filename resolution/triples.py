"""Triples ⟨θ, E, H, C⟩: a partly matched premise set, when it ends, and which one is smaller."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from resolution.bounds import (
    Bounds,
    implied,
    object_comparisons,
    time_comparisons,
    undecided,
)
from resolution.delays import Delays
from resolution.naming import orders, origins
from resolution.premises import PremiseSet
from resolution.substitution import (
    Substitution,
    apply,
    apply_comparison,
    embeddings,
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

    def __str__(self) -> str:
        parts = texts(self.evidence), texts(self.hypotheses), map(str, self.conditions)
        return f"{self.answer} <- {' | '.join(map(', '.join, parts))}"

    @property
    def confirmed(self) -> bool:
        return not self.hypotheses

    @cached_property
    def awaited(self) -> frozenset[Atom]:
        return frozenset(self.hypotheses)

    @cached_property
    def ground(self) -> bool:
        return not variables(*self.hypotheses)

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
        if hypothesis.time.base is None:
            return hypothesis.time.offset + delays.of(hypothesis)
        latest = self.bounds.latest(hypothesis.time)
        return None if latest is None else latest + delays.of(hypothesis)

    def closing(self, delays: Delays) -> tuple[int, str] | None:
        """The deadline and the hypothesis that closes then: the first to close, by text if several.

        Times are bounded by differences alone, and that a hypothesis is still possible bounds its
        time from below: so each can be placed at its latest, and no two of them get in the way of
        each other.
        """
        deadline = self.deadline(delays)
        if deadline is None:
            return None
        first = (str(h) for h in self.hypotheses if self.closes(h, delays) == deadline)
        return deadline, min(first)

    def deadline(self, delays: Delays) -> int | None:
        ends = (self.closes(h, delays) for h in self.hypotheses)
        return min((end for end in ends if end is not None), default=None)

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
    targets = than.awaited
    if isinstance(other, Triple) and other.ground:  # ρ has nothing to map
        return other.answer == than.answer and other.awaited < targets
    hypotheses = other.hypotheses if isinstance(other, Triple) else other.atoms
    by = match(other.answer, than.answer, {})
    if by is None:
        return False

    def holds(comparison: Comparison) -> bool:
        return implied([comparison], than.bounds, than.objects)

    found = embeddings(hypotheses, than.hypotheses, by, other.comparisons, holds)
    return any(or_equal or {instance(h, rho) for h in hypotheses} < targets for rho in found)


def by_time(atoms: Iterable[Atom]) -> list[Atom]:
    """Atoms as they are shown: by time point, those without a known one last, then by text."""
    return sorted(atoms, key=_when)


def texts(atoms: Iterable[Atom]) -> list[str]:
    """The texts of atoms, in the order in which they are shown."""
    return [text for _, _, text in sorted(map(_when, atoms))]


def _when(atom: Atom) -> tuple[bool, int, str]:
    assert atom.time is not None
    return (atom.time.base is not None, atom.time.offset, str(atom))


def identifiers(query: str, texts: Sequence[str]) -> list[str]:
    """32 hex digits for each text, the same for the same query and text wherever it is computed."""
    import numpy as np
    from pandas.util import hash_array

    full = np.array([query + "\x00"], dtype=object) + np.asarray(texts, dtype=object)
    if not len(full):
        return []
    halves = [hash_array(full, hash_key=key, categorize=False) for key in HASH_KEYS]
    shifts = np.arange(60, -1, -4, dtype=np.uint64)
    nibbles = np.stack(halves, axis=1)[:, :, None] >> shifts & np.uint64(15)
    digits = np.frombuffer(b"0123456789abcdef", dtype="S1")[nibbles].reshape(len(full), 32)
    found: list[str] = np.ascontiguousarray(digits).view("S32").ravel().astype(str).tolist()
    return found


HASH_KEYS = ("whilst answer 01", "whilst answer 02")
"""Sixteen bytes each: together 128 bits, so that no two answers meet."""


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
    """The least text over the orders of the variables that `alike` leaves open."""
    groups = alike(answer, hypotheses)
    return min(
        _text(answer, hypotheses, conditions, canonical_names(answer, hypotheses, order))
        for order in orders(groups, answer, hypotheses, conditions)
    )


def alike(
    answer: Atom, hypotheses: tuple[Atom, ...], bound: Container[Var] = ()
) -> list[list[Var]]:
    """The unbound variables in an order that neither names nor constants have a part in.

    Variables that stand in one group cannot be told apart without looking at constants.
    """
    atoms = (answer, *hypotheses)
    origin = origins(atoms)
    kinds: dict[tuple[str, ...], list[Var]] = {}
    for var in sorted(v for v in variables(*atoms) if v not in bound):
        places = [_outline(atom, var, bound, origin) for atom in atoms if var in variables(atom)]
        kind = (str(var not in variables(answer)), *sorted(places))
        kinds.setdefault(kind, []).append(var)
    return [kinds[kind] for kind in sorted(kinds)]


def canonical_names(
    answer: Atom, hypotheses: tuple[Atom, ...], order: Iterable[Var]
) -> dict[Var, Term | Time]:
    """Variables renamed ?0, ?1, …, the offsets of a time counted from its least one."""
    origin = origins((answer, *hypotheses))
    names: dict[Var, Term | Time] = {}
    for number, var in enumerate(order):
        new = Var(f"?{number}")  # no variable of a program has such a name
        names[var] = Time(new, -origin[var]) if var in origin else new
    return names


def _outline(atom: Atom, var: Var, bound: Container[Var], origin: dict[Var, int]) -> str:
    """An atom in which only one variable has a name, and constants have none."""
    marks = []
    for arg in atom.args:
        if isinstance(arg, Var) and arg not in bound:
            marks.append("V" if arg == var else "_")
        else:
            marks.append("c")
    base = atom.time.base if atom.time is not None else None
    if atom.time is not None and base is not None and base not in bound:
        marks.append(f"{'V' if base == var else '_'}{atom.time.offset - origin[base]:+d}")
    return f"{atom.predicate}({', '.join(marks)})"


def _text(
    answer: Atom,
    hypotheses: tuple[Atom, ...],
    conditions: tuple[Comparison, ...],
    names: Substitution,
) -> str:
    awaited = texts(apply(h, names) for h in hypotheses)
    if not conditions:
        return " | ".join([str(apply(answer, names)), *awaited])
    renamed = [apply_comparison(c, names) for c in conditions]
    bounds = Bounds.of(time_comparisons(renamed), ()).conditions
    others = sorted(str(c) for c in object_comparisons(renamed))
    return " | ".join(map(str, [apply(answer, names), *awaited, *bounds, *others]))
