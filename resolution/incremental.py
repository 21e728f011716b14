"""`S_τ` by the incremental step of Definition 6: local mgus of what is awaited and what arrives.

A second way, independent of `reference`: it never looks back at the facts that have arrived, only
at the triples they left. What was smaller once stays smaller as long as the larger one lives, for
a hypothesis that closes or arrives closes or arrives for both; so minimality is settled once,
when a triple appears.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from resolution.bounds import decide
from resolution.delays import Delays
from resolution.premises import PremiseSet
from resolution.reference import one_evidence_each
from resolution.substitution import match, variables
from resolution.terms import Atom, Term, Time, Var
from resolution.triples import Triple, smaller


@dataclass(slots=True, eq=False)
class _Entry:
    """The triples of one identity, which differ in their evidence only."""

    variants: dict[frozenset[Atom], Triple]
    hidden: bool
    """Whether a smaller one is there."""

    @property
    def triple(self) -> Triple:
        return next(iter(self.variants.values()))


class Incremental:
    """The schematic supported answers of one query, kept up to date from one τ to the next."""

    def __init__(self, premise_sets: Iterable[PremiseSet], delays: Delays) -> None:
        self._sets = tuple(premise_sets)
        self._delays = delays
        self._arrived: dict[Atom, int] = {}
        self._entries: dict[str, _Entry] = {}
        self._by_answer: dict[Atom, dict[str, _Entry]] = defaultdict(dict)
        self._awaiting: dict[Atom | str, dict[str, _Entry]] = defaultdict(dict)
        self._deadlines: list[tuple[int, str]] = []
        self._starts: dict[str, list[tuple[PremiseSet, Atom]]] = defaultdict(list)
        for premises in self._sets:
            for atom in premises.atoms:
                self._starts[atom.predicate].append((premises, atom))

    @property
    def next_deadline(self) -> int | None:
        """The next τ at which something closes if nothing arrives."""
        while self._deadlines and self._deadlines[0][1] not in self._entries:
            heapq.heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def step(self, tau: int, slice_: Mapping[Atom, int]) -> bool:
        """Goes on to τ, at which the facts of the slice arrive. Returns whether `S_τ` changed."""
        new = list(self._local_mgus(slice_))
        self._arrived.update(slice_)
        changed = self._close(tau)
        for fact in slice_:
            for identity, entry in list(self._awaiting.get(fact, {}).items()):
                self._remove(identity, entry)
                changed |= not entry.hidden
        for triple in new:
            if all(h not in self._arrived for h in triple.hypotheses) and triple.possible(
                tau, self._delays
            ):
                changed |= self._add(triple)
        return changed

    def answers(self) -> list[Triple]:
        """`S_τ`, one triple for each answer."""
        return one_evidence_each(
            (t for e in self._entries.values() if not e.hidden for t in e.variants.values()),
            self._arrived,
        )

    # --- local mgus ------------------------------------------------------------------------------

    def _local_mgus(self, slice_: Mapping[Atom, int]) -> Iterator[Triple]:
        """What the arriving facts make of the premise sets and of the triples that await them."""
        facts: dict[str, list[Atom]] = defaultdict(list)
        for fact in slice_:
            facts[fact.predicate].append(fact)
        untouched = {
            id(premises): Triple.of(premises, {}, ())
            for predicate in facts
            for premises, _ in self._starts[predicate]
        }
        touched: dict[str, _Entry] = {}
        for fact in slice_:
            touched.update(self._awaiting.get(fact, {}))
            touched.update(self._awaiting.get(fact.predicate, {}))
        waiting = [*untouched.values(), *(t for e in touched.values() for t in e.variants.values())]
        for triple in waiting:
            yield from _matched(triple, facts)

    # --- the set ---------------------------------------------------------------------------------

    def _add(self, triple: Triple) -> bool:
        identity = triple.identity
        entry = self._entries.get(identity)
        if entry is not None:
            entry.variants.setdefault(triple.evidence, triple)
            return False
        rivals = self._rivals(triple)
        entry = _Entry({triple.evidence: triple}, self._hidden(triple, rivals))
        self._entries[identity] = entry
        self._by_answer[_ground(triple.answer)][identity] = entry
        for hypothesis in triple.hypotheses:
            key = hypothesis.predicate if variables(hypothesis) else hypothesis
            self._awaiting[key][identity] = entry
        deadline = triple.deadline(self._delays)
        if deadline is not None:
            heapq.heappush(self._deadlines, (deadline, identity))
        changed = not entry.hidden
        for other in rivals:
            if not other.hidden and smaller(triple, other.triple):
                other.hidden = changed = True
        return changed

    def _rivals(self, triple: Triple) -> list[_Entry]:
        """The triples whose answers may be instances of this one's, or the other way round."""
        answer = _ground(triple.answer)
        if answer is _OPEN:
            return list(self._entries.values())
        return [*self._by_answer[answer].values(), *self._by_answer[_OPEN].values()]

    def _hidden(self, triple: Triple, rivals: list[_Entry]) -> bool:
        return (
            smaller(triple, triple)
            or any(smaller(other.triple, triple) for other in rivals)
            or any(smaller(premises, triple, or_equal=True) for premises in self._sets)
        )

    def _close(self, tau: int) -> bool:
        changed = False
        while (deadline := self.next_deadline) is not None and deadline <= tau:
            identity = heapq.heappop(self._deadlines)[1]
            entry = self._entries[identity]
            self._remove(identity, entry)
            changed |= not entry.hidden
        return changed

    def _remove(self, identity: str, entry: _Entry) -> None:
        if self._entries.pop(identity, None) is None:
            return
        self._by_answer[_ground(entry.triple.answer)].pop(identity)
        for hypothesis in entry.triple.hypotheses:
            key = hypothesis.predicate if variables(hypothesis) else hypothesis
            self._awaiting[key].pop(identity, None)


_OPEN = Atom("", (), None)
"""Stands for every answer with variables in it."""


def _ground(answer: Atom) -> Atom:
    return _OPEN if variables(answer) else answer


def _matched(triple: Triple, facts: Mapping[str, list[Atom]]) -> Iterator[Triple]:
    """The triples that the non-empty local mgus of H and the arriving facts lead to."""
    arriving = {fact for some in facts.values() for fact in some}

    def choose(
        rest: tuple[Atom, ...], by: dict[Var, Term | Time], some: bool
    ) -> Iterator[dict[Var, Term | Time]]:
        if not rest:
            if some:
                yield by
            return
        yield from choose(rest[1:], by, some)
        for fact in facts.get(rest[0].predicate, ()):
            extended = match(rest[0], fact, by)
            if extended is not None:
                yield from choose(rest[1:], extended, True)

    for by in choose(triple.hypotheses, {}, False):
        step = Triple.of(_as_premises(triple), by, arriving)
        if all(decide(c) is not False for c in step.comparisons):
            yield Triple(
                triple.premises,
                step.answer,
                triple.evidence | step.evidence,
                step.hypotheses,
                step.comparisons,
            )


def _as_premises(triple: Triple) -> PremiseSet:
    """A triple's answer, hypotheses and conditions as the premise set that is left of it."""
    origin = triple.premises
    return PremiseSet(
        origin.number,
        origin.query,
        triple.answer,
        triple.hypotheses,
        triple.comparisons,
        origin.derivation,
    )
