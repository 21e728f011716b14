"""`S_τ` by the incremental step of Definition 6: local mgus of what is awaited and what arrives.

A second way, independent of `reference`: it never looks back at the facts that have arrived, only
at the triples they left. What was smaller once stays smaller as long as the larger one lives, for
a hypothesis that closes or arrives closes or arrives for both; so minimality is settled once,
when a triple appears. So is the evidence that is shown: what completes later was not first.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from resolution.bounds import decide, undecided
from resolution.delays import Delays
from resolution.index import Index
from resolution.premises import PremiseSet
from resolution.reference import first_evidence
from resolution.substitution import Substitution, apply, image, instance, match, unify, variables
from resolution.terms import Atom, Term, Time, Var
from resolution.triples import Triple, smaller


@dataclass(slots=True, eq=False)
class _Entry:
    """The triples of one identity, which differ in their evidence only."""

    variants: dict[tuple[object, ...], Triple]
    hidden: bool
    """Whether a smaller one is there."""

    @property
    def triple(self) -> Triple:
        return next(iter(self.variants.values()))


@dataclass(frozen=True, slots=True)
class Change:
    """What one step did to `S_τ`; false if nothing."""

    appeared: list[Triple]
    vanished: list[Triple]

    def __bool__(self) -> bool:
        return bool(self.appeared or self.vanished)


class Incremental:
    """The schematic supported answers of one query, kept up to date from one τ to the next."""

    def __init__(self, premise_sets: Iterable[PremiseSet], delays: Delays) -> None:
        self._sets = tuple(premise_sets)
        self._inner: dict[int, list[PremiseSet]] = {}
        self._delays = delays
        self._arrived: dict[Atom, int] = {}
        self._entries: dict[str, _Entry] = {}
        self._shown: dict[str, Triple] = {}
        self._by_answer: Index[_Entry] = Index()
        self._awaiting: Index[_Entry] = Index()
        self._deadlines: list[tuple[int, str]] = []
        self._starts: dict[str, list[Triple]] = defaultdict(list)
        for premises in self._sets:
            start = Triple(
                premises, premises.answer, frozenset(), premises.atoms, premises.comparisons
            )
            for predicate in dict.fromkeys(atom.predicate for atom in premises.atoms):
                self._starts[predicate].append(start)

    @property
    def next_deadline(self) -> int | None:
        """The next τ at which something closes if nothing arrives."""
        while self._deadlines and self._deadlines[0][1] not in self._entries:
            heapq.heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def step(self, tau: int, slice_: Mapping[Atom, int]) -> Change:
        """Goes on to τ, at which the facts of the slice arrive."""
        self._arrived.update(slice_)
        new = list(self._local_mgus(slice_, tau))
        vanished = self._end(tau, slice_)
        fresh: dict[str, _Entry] = {}
        for triple in new:
            deadline = triple.deadline(self._delays)
            if triple.bounds.satisfiable and (deadline is None or tau < deadline):
                vanished.extend(self._add(triple, deadline, fresh))
        appeared = {
            identity: first_evidence(entry.variants.values(), self._arrived)
            for identity, entry in fresh.items()
            if not entry.hidden
        }
        self._shown.update(appeared)
        return Change(list(appeared.values()), vanished)

    def answers(self) -> list[Triple]:
        """`S_τ`, one triple for each answer."""
        return list(self._shown.values())

    # --- local mgus ------------------------------------------------------------------------------

    def _local_mgus(self, slice_: Mapping[Atom, int], tau: int) -> Iterator[Triple]:
        """What the arriving facts make of the premise sets and of the triples that await them."""
        arriving: Index[Atom] = Index()
        touched: dict[str, _Entry] = {}
        starts: dict[int, Triple] = {}
        for fact in slice_:
            arriving.file(fact, str(fact), fact)
            touched.update(self._awaiting.covering(fact))
            starts.update((start.premises.number, start) for start in self._starts[fact.predicate])
        for start in starts.values():
            yield from self._matched(start, arriving, tau)
        for entry in touched.values():
            for triple in entry.variants.values():
                yield from self._matched(triple, arriving, tau)

    def _matched(self, triple: Triple, arriving: Index[Atom], tau: int) -> Iterator[Triple]:
        """The triples that the non-empty local mgus of H and the arriving facts lead to."""
        awaited = triple.hypotheses

        def choose(
            at: int, by: dict[Var, Term | Time], some: bool
        ) -> Iterator[dict[Var, Term | Time]]:
            if at == len(awaited):
                if some:
                    yield by
                return
            atom = instance(awaited[at], by)
            if self._may_be_awaited(atom, tau):
                yield from choose(at + 1, by, some)
            for fact in arriving.covered(atom).values():
                extended = match(awaited[at], fact, by)
                if extended is not None:
                    yield from choose(at + 1, extended, True)

        # A triple is here because it awaits one of the facts: if all is ground, nothing is bound.
        known = triple.ground and triple.evidence
        for by in [{}] if known else choose(0, {}, False):
            grown = self._grown(triple, by)
            if all(self._may_be_awaited(h, tau) for h in grown.hypotheses) and all(
                decide(c) is not False for c in grown.comparisons
            ):
                yield grown

    def _may_be_awaited(self, atom: Atom, tau: int) -> bool:
        """Whether an atom has neither arrived nor closed; one with variables may yet be either."""
        if not _known(atom):
            return True
        assert atom.time is not None
        return atom not in self._arrived and tau < atom.time.offset + self._delays.of(atom)

    def _grown(self, triple: Triple, by: Substitution) -> Triple:
        atoms = dict.fromkeys(instance(h, by) for h in triple.hypotheses)
        return Triple(
            triple.premises,
            instance(triple.answer, by),
            triple.evidence.union(a for a in atoms if a in self._arrived),
            tuple(a for a in atoms if a not in self._arrived),
            undecided(image(c, by) for c in triple.comparisons),
        )

    # --- the set ---------------------------------------------------------------------------------

    def _add(
        self, triple: Triple, deadline: int | None, fresh: dict[str, _Entry]
    ) -> Iterator[Triple]:
        """Takes a triple in; what was shown and is not minimal beside it is returned."""
        identity = triple.identity
        entry = self._entries.get(identity)
        if entry is not None:
            entry.variants.setdefault(_variant(triple), triple)
            return
        rivals = self._rivals(triple)
        entry = _Entry({_variant(triple): triple}, self._hidden(triple, rivals))
        fresh[identity] = self._entries[identity] = entry
        self._by_answer.file(triple.answer, identity, entry)
        for hypothesis in triple.hypotheses:
            self._awaiting.file(hypothesis, identity, entry)
        if deadline is not None:
            heapq.heappush(self._deadlines, (deadline, identity))
        for other in rivals:
            if not other.hidden and smaller(triple, other.triple):
                other.hidden = True
                if other.triple.identity in self._shown:
                    yield self._shown.pop(other.triple.identity)

    def _rivals(self, triple: Triple) -> list[_Entry]:
        """The triples whose answers may be instances of this one's, or the other way round."""
        found = {
            **self._by_answer.covering(triple.answer),
            **self._by_answer.covered(triple.answer),
        }
        return list(found.values())

    def _hidden(self, triple: Triple, rivals: list[_Entry]) -> bool:
        return (
            smaller(triple, triple)
            or any(smaller(other.triple, triple) for other in rivals)
            or any(smaller(sets, triple, or_equal=True) for sets in self._within(triple.premises))
        )

    def _within(self, premises: PremiseSet) -> list[PremiseSet]:
        """The premise sets that may map into instances of this one: a few, so worth keeping."""
        if premises.number not in self._inner:
            self._inner[premises.number] = [s for s in self._sets if _may_embed(s, premises)]
        return self._inner[premises.number]

    def _end(self, tau: int, slice_: Mapping[Atom, int]) -> list[Triple]:
        """Takes out what closed and what awaited a fact that arrived; returns what was shown."""
        ended = [identity for fact in slice_ for identity in self._awaiting.covered(fact)]
        while self._deadlines and self._deadlines[0][0] <= tau:
            ended.append(heapq.heappop(self._deadlines)[1])
        for identity in ended:
            entry = self._entries.pop(identity, None)
            if entry is not None:
                self._by_answer.remove(entry.triple.answer, identity)
                for hypothesis in entry.triple.hypotheses:
                    self._awaiting.remove(hypothesis, identity)
        return [self._shown.pop(identity) for identity in ended if identity in self._shown]


def _known(atom: Atom) -> bool:
    """Whether an atom is ground."""
    time = atom.time is None or atom.time.base is None
    return time and not any(isinstance(arg, Var) for arg in atom.args)


def _may_embed(inner: PremiseSet, outer: PremiseSet) -> bool:
    """Whether some instances give one answer, and each atom of the inner is one of the outer."""
    if inner is outer and variables(*inner.atoms) <= variables(inner.answer):
        return False  # the answer fixes all its atoms, and one of them is evidence
    apart = _renamed_apart(inner)
    by = unify(outer.answer, apply(inner.answer, apart), {})
    if by is None:
        return False
    inside = (apply(atom, apart) for atom in inner.atoms)
    return all(any(unify(o, i, by) is not None for o in outer.atoms) for i in inside)


def _renamed_apart(premises: PremiseSet) -> Substitution:
    atoms = (premises.answer, *premises.atoms)
    timed = {atom.time.base for atom in atoms if atom.time is not None}
    new = {var: Var(f"{var.name}'") for var in variables(*atoms)}
    return {var: Time(name, 0) if var in timed else name for var, name in new.items()}


def _variant(triple: Triple) -> tuple[object, ...]:
    """What may differ between triples of one identity, names included."""
    return triple.evidence, triple.premises.number, triple.hypotheses
