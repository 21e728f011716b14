"""The life of every triple: the interval of time points in which it is in `S_τ`.

`S_τ` is a function of what arrived by τ, so the whole stream of answers is known from the facts
alone, once for all τ. This is the slow way to it, by one incremental step after another; the
kernel goes the fast one and is checked against this.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from resolution.delays import Delays
from resolution.incremental import Change, Incremental
from resolution.premises import PremiseSet, premise_sets
from resolution.program import Program
from resolution.terms import Atom
from resolution.triples import Triple, by_time, identifiers


@dataclass(frozen=True, slots=True)
class Life:
    """A triple is in `S_τ` for start <= τ < min(end, deadline), where None is never."""

    triple: Triple
    start: int
    end: int | None
    """The τ at which something that arrived put an end to it, None if nothing did."""
    deadline: int | None
    reason: str | None
    """The hypothesis that closes at the deadline."""

    def at(self, tau: int) -> bool:
        ends = [e for e in (self.end, self.deadline) if e is not None]
        return self.start <= tau and all(tau < e for e in ends)


def steps(
    states: Sequence[Incremental], arrived: Mapping[Atom, int], end: int | None = None
) -> Iterator[tuple[int, list[Change]]]:
    """Takes states on through every τ at which something arrives or closes, to the end if given.

    What it yields is what changed in each; where nothing did in any, the τ is passed over.
    """
    slices: dict[int, dict[Atom, int]] = defaultdict(dict)
    for fact, arrival in arrived.items():
        slices[arrival][fact] = arrival
    coming = sorted(slices, reverse=True)
    while True:
        due = [state.next_deadline for state in states] + coming[-1:]
        tau = min((tau for tau in due if tau is not None), default=None)
        if tau is None or (end is not None and tau > end):
            return
        if coming and coming[-1] == tau:
            coming.pop()
        changes = [state.step(tau, slices.get(tau, {})) for state in states]
        if any(changes):
            yield tau, changes


def trace(
    program: Program, arrived: Mapping[Atom, int], end: int | None = None
) -> Iterator[tuple[int, list[Triple]]]:
    """Each τ at which an answer of any query changed, to the end if given, with those of all."""
    states = _states(program)
    for tau, _ in steps(states, arrived, end):
        yield tau, [triple for state in states for triple in state.answers()]


def answers(program: Program, arrived: Mapping[Atom, int], tau: int) -> list[Triple]:
    """`S_τ` of all queries at one τ; what arrives later does not matter."""
    states = _states(program)
    for _ in steps(states, {fact: at for fact, at in arrived.items() if at <= tau}, tau):
        pass
    return [triple for state in states for triple in state.answers()]


def _states(program: Program) -> list[Incremental]:
    return [Incremental(premise_sets(program, q), program.delays) for q in program.queries]


def lives(sets: Iterable[PremiseSet], delays: Delays, arrived: Mapping[Atom, int]) -> list[Life]:
    """Every triple that is ever in `S_τ`, with the interval in which it is."""
    started: dict[str, tuple[int, Triple]] = {}
    ended: dict[str, int] = {}
    for tau, (change,) in steps([Incremental(sets, delays)], arrived):
        started.update((triple.identity, (tau, triple)) for triple in change.appeared)
        ended.update((triple.identity, tau) for triple in change.vanished)
    found = []
    for identity, (start, triple) in started.items():
        deadline, reason = triple.closing(delays) or (None, None)
        end = ended.get(identity)
        if end == deadline and all(arrived.get(h) != end for h in triple.hypotheses):
            end = None
        found.append(Life(triple, start, end, deadline, reason))
    return found


def row(life: Life, delays: Delays, arrived: Mapping[Atom, int]) -> dict[str, object]:
    """A life as a row of `resolution.changes.TRIPLES`."""
    triple = life.triple
    query = str(triple.premises.query.atom)
    evidence = by_time(triple.evidence)
    hypotheses = by_time(triple.hypotheses)
    return {
        "triple": identifiers(query, [triple.identity])[0],
        "answer_id": identifiers(query, [triple.answer_identity])[0],
        "query": triple.premises.query.name,
        "answer": str(triple.answer),
        "bindings": json.dumps(triple.bindings, ensure_ascii=False),
        "premise": triple.premises.number,
        "evidence": [str(atom) for atom in evidence],
        "arrivals": [arrived[atom] for atom in evidence],
        "hypotheses": [str(atom) for atom in hypotheses],
        "closes": [triple.closes(atom, delays) for atom in hypotheses],
        "conditions": [str(condition) for condition in triple.conditions],
        "deadline": life.deadline,
        "reason": life.reason,
        "start": life.start,
        "end": life.end,
    }
