"""Laws of `S_τ` on random programs, and that each of them can fail."""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from resolution import incremental, premises, redundancy, reference, triples
from resolution.bounds import Bounds, decide, implied, time_comparisons
from resolution.delays import Delays
from resolution.incremental import Incremental
from resolution.lives import lives, steps
from resolution.substitution import embeddings, image, instance, match, variables
from resolution.terms import Atom, Comparison, Time, Var
from resolution.triples import Triple
from tests.random_programs import Case, cases, features, said_once
from tests.resolution.naive import derived

law = settings(deadline=None, max_examples=120, suppress_health_check=[HealthCheck.too_slow])


def shown(case: Case, found: Iterable[Triple]) -> set[tuple[object, ...]]:
    """Triples up to the names of variables, with everything that is told of them."""
    return {
        (t.identity, tuple(sorted(map(str, t.evidence))), t.deadline(case.program.delays))
        for t in found
    }


def by_definition(case: Case, tau: int) -> list[list[Triple]]:
    """`S_τ` of each query."""
    arrived = case.arrivals.by(tau)
    return [
        reference.answers(sets, case.program.delays, arrived, tau) for sets in case.premise_sets
    ]


def by_steps(case: Case) -> dict[int, list[list[Triple]]]:
    """`S_τ` of each query at every τ of the case."""
    states = [Incremental(sets, case.program.delays) for sets in case.premise_sets]
    changed = {
        tau: [state.answers() for state in states] for tau, _ in steps(states, case.arrivals.first)
    }
    now: list[list[Triple]] = [[] for _ in states]
    return {tau: (now := changed.get(tau, now)) for tau in case.times}


# --- the definition and the steps ----------------------------------------------------------------


def check_definition_is_steps(case: Case) -> None:
    stepped = by_steps(case)
    for tau in case.times:
        for defined, found in zip(by_definition(case, tau), stepped[tau], strict=True):
            assert shown(case, found) == shown(case, defined), f"at {tau}"


def check_lives(case: Case) -> None:
    """A triple is in `S_τ` exactly within its life."""
    every = [lives(sets, case.program.delays, case.arrivals.first) for sets in case.premise_sets]
    for tau in case.times:
        for defined, of_query in zip(by_definition(case, tau), every, strict=True):
            living = [life.triple for life in of_query if life.at(tau)]
            assert shown(case, living) == shown(case, defined), f"at {tau}"
    for life in (life for of_query in every for life in of_query):
        assert life.start == max(case.arrivals.first[fact] for fact in life.triple.evidence)


# --- the answers and plain Datalog ---------------------------------------------------------------


def check_confirmed_is_derived(case: Case) -> None:
    """What is confirmed at τ is what the rules derive from the facts in time by τ."""
    for tau, of_queries in by_steps(case).items():
        confirmed = {t.answer for found in of_queries for t in found if t.confirmed}
        assert confirmed == derived(case.program, case.arrivals.by(tau)), f"at {tau}"


def check_evidence_and_hypotheses_suffice(case: Case) -> None:
    """With its hypotheses come true at times that fit, an answer is derived."""
    for tau, of_queries in by_steps(case).items():
        for triple in (t for found in of_queries for t in found if not t.objects):
            by = _placed(triple)
            facts = [*triple.evidence, *(instance(h, by) for h in triple.hypotheses)]
            assert instance(triple.answer, by) in derived(case.program, facts), f"{triple} at {tau}"


def _placed(triple: Triple) -> dict[Var, Any]:
    """New constants for the objects, and for the times one after another the earliest there is."""
    atoms = (triple.answer, *triple.hypotheses)
    by: dict[Var, Any] = {
        arg: f"new {arg}" for atom in atoms for arg in atom.args if isinstance(arg, Var)
    }
    times = [atom.time for atom in atoms if atom.time]
    comparisons = list(time_comparisons(triple.comparisons))
    for base in sorted({time.base for time in times if time.base}):
        earliest = Bounds.of(comparisons, times).earliest(Time(base, 0))
        by[base] = Time(None, earliest)
        comparisons.append(Comparison(Time(base, 0), "=", by[base]))
    return by


def check_nothing_out_of_the_blue(case: Case) -> None:
    """What is derived in the end with the help of what is there now is foreseen now."""
    final = derived(case.program, case.arrivals.first)
    for tau, of_queries in by_steps(case).items():
        now = case.arrivals.by(tau)
        later = {atom for atom in case.arrivals.first if atom not in now}
        found = [*itertools.chain.from_iterable(of_queries), *_folding(case, now)]
        for answer in final - derived(case.program, later):
            assert any(_foresees(t, answer, later) for t in found), f"{answer} at {tau}"


def _folding(case: Case, arrived: dict[Atom, int]) -> Iterator[Triple]:
    """What would be foreseen, were it not that it maps onto a part of itself."""
    for premise_set in itertools.chain.from_iterable(case.premise_sets):
        for triple in reference._supported(premise_set, arrived):
            if triples.smaller(triple, triple):
                yield triple


def _foresees(triple: Triple, answer: Atom, later: set[Atom]) -> bool:
    by = match(triple.answer, answer, {})
    return by is not None and any(True for _ in embeddings(triple.hypotheses, later, by))


def check_confirmed_stays(case: Case) -> None:
    before: list[set[tuple[object, ...]]] = [set() for _ in case.premise_sets]
    for tau, of_queries in by_steps(case).items():
        now = [shown(case, [t for t in found if t.confirmed]) for found in of_queries]
        for earlier, later in zip(before, now, strict=True):
            assert earlier <= later, f"at {tau}"
        before = now


# --- time ----------------------------------------------------------------------------------------


def check_possible_by_trying(case: Case) -> None:
    """Rule 3 literally: some placement of the times leaves every hypothesis possible at τ."""
    delays = case.program.delays
    for sets in case.premise_sets:
        candidates = {
            triple.identity: triple
            for premise_set in sets
            for triple in reference._supported(premise_set, case.arrivals.first)
            if reference._may_hold(triple)
        }
        for triple in (t for t in candidates.values() if len(_bases(t)) < 3):
            ends = _last_possible(triple, delays)
            for tau in range(2 * _FAR):
                wanted = tau < ends
                assert triple.possible(tau, delays) == wanted or tau > _FAR, f"{triple} at {tau}"


_FAR = 16
"""Later than all that the small numbers of a case can bound."""


def _last_possible(triple: Triple, delays: Delays) -> int:
    """The first τ at which no placement within reach is possible any more."""
    atoms = (triple.answer, *triple.hypotheses)
    bases = _bases(triple)
    best = 0
    for points in itertools.product(range(-8, 2 * _FAR), repeat=len(bases)):
        by = {base: Time(None, point) for base, point in zip(bases, points, strict=True)}
        times = [instance(atom, by).time for atom in atoms]
        if all(time.offset >= 0 for time in times if time) and all(
            decide(image(c, by)) for c in time_comparisons(triple.comparisons)
        ):
            closing = [
                time.offset + delays.of(atom)
                for time, atom in zip(times[1:], triple.hypotheses, strict=True)
                if time
            ]
            best = max(best, min(closing, default=2 * _FAR))
    return best


def _bases(triple: Triple) -> list[Var]:
    times = [atom.time for atom in (triple.answer, *triple.hypotheses) if atom.time]
    return sorted({time.base for time in times if time.base})


def check_deadline(case: Case) -> None:
    """If nothing arrives any more, a triple is there until its deadline, and not from then on."""
    delays = case.program.delays
    for tau in case.times[:: max(1, len(case.times) // 4)]:
        arrived = case.arrivals.by(tau)
        for sets, found in zip(case.premise_sets, by_definition(case, tau), strict=True):
            deadlines = {t.identity: t.deadline(delays) for t in found}
            ends = {end + by for end in deadlines.values() if end is not None for by in (-1, 0)}
            for later in sorted(end for end in {*ends, tau + 99} if end >= tau):
                there = {t.identity for t in reference.answers(sets, delays, arrived, later)}
                wanted = {i for i, end in deadlines.items() if end is None or later < end}
                assert there == wanted, f"of {tau} at {later}"


# --- what may not matter -------------------------------------------------------------------------


def check_order_and_duplicates(case: Case) -> None:
    """Neither the order in which a log is read nor events that come again later matter."""
    rng = random.Random(case.text)
    again = [{**event, "arrival": event["arrival"] + rng.randint(0, 3)} for event in case.events]
    events = [*case.events, *again[: rng.randint(0, len(again))]]
    rng.shuffle(events)
    _same(case, Case(case.text, tuple(events)))


def check_names_and_order_of_rules(case: Case) -> None:
    """Neither the names of variables nor the order of rules and of atoms in a body matter."""
    rng = random.Random(case.jsonl)
    lines = [_renamed(line, rng) for line in case.text.splitlines()]
    queries = [line for line in lines if line.startswith("query")]
    others = [line for line in lines if not line.startswith("query")]
    rng.shuffle(others)
    statements = said_once([*others, *queries])
    _same(case, Case("".join(f"{statement}\n" for statement in statements), case.events))


def _renamed(statement: str, rng: random.Random) -> str:
    names = dict(zip("XYZ", rng.sample("XYZUVW", 3), strict=True))
    names |= dict(zip("TSR", rng.sample("TSRMNO", 3), strict=True))
    head, arrow, body = statement.rstrip(".").partition(" <- ")
    literals = re.findall(r"\w+\([^)]*\)|[^,( ]+ [<>=!]+ [^,]+", body)
    rng.shuffle(literals)
    text = f"{head}{arrow}{', '.join(literals)}."
    return re.sub(r"\b[XYZTSR]\b", lambda name: names[name[0]], text)


def check_batches(case: Case) -> None:
    """What was read by some τ gives the same answers until then as the whole log does."""
    stepped = by_steps(case)
    for cut in case.times[::3]:
        some = Case(case.text, tuple(e for e in case.events if e["arrival"] <= cut))
        for tau, of_queries in by_steps(some).items():
            if tau <= cut:
                for whole, part in zip(stepped[tau], of_queries, strict=True):
                    assert shown(case, whole) == shown(some, part), f"cut at {cut}, at {tau}"


def _same(case: Case, other: Case) -> None:
    stepped = by_steps(other)
    for tau, of_queries in by_steps(case).items():
        for ours, theirs in zip(of_queries, stepped[tau], strict=True):
            assert shown(case, ours) == shown(other, theirs), f"at {tau}"


def check_no_two_alike(case: Case) -> None:
    """No two answers of `S_τ` are the same up to the names of variables."""
    for tau, of_queries in by_steps(case).items():
        for found in of_queries:
            for one, other in itertools.combinations(found, 2):
                assert not (_covers(one, other) and _covers(other, one)), f"at {tau}"


def _covers(one: Triple, other: Triple) -> bool:
    by = match(one.answer, other.answer, {})
    return by is not None and any(
        {instance(h, rho) for h in one.hypotheses} == other.awaited
        and implied((image(c, rho) for c in one.comparisons), other.bounds, other.objects)
        for rho in embeddings(one.hypotheses, other.hypotheses, by)
    )


# --- the laws hold -------------------------------------------------------------------------------

LAWS = (
    check_definition_is_steps,
    check_lives,
    check_confirmed_is_derived,
    check_evidence_and_hypotheses_suffice,
    check_nothing_out_of_the_blue,
    check_confirmed_stays,
    check_possible_by_trying,
    check_deadline,
    check_order_and_duplicates,
    check_names_and_order_of_rules,
    check_batches,
    check_no_two_alike,
)


@pytest.mark.parametrize("check", LAWS, ids=lambda check: check.__name__)
def test_law(check: Callable[[Case], None]) -> None:
    @law
    @given(cases())
    def holds(case: Case) -> None:
        check(case)

    holds()


# --- the laws can fail ---------------------------------------------------------------------------


def _possible_a_point_too_long(patch: pytest.MonkeyPatch) -> None:
    def possible(self: Triple, tau: int, delays: Delays) -> bool:
        deadline = self.deadline(delays)
        return self.bounds.satisfiable and (deadline is None or tau <= deadline)

    patch.setattr(Triple, "possible", possible)


def _no_minimality(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reference, "smaller", lambda *_, **__: False)


def _no_minimality_against_premise_sets(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(incremental, "_may_embed", lambda *_: False)


def _all_or_nothing(patch: pytest.MonkeyPatch) -> None:
    """Local mgus that leave an atom with variables unmatched are forgotten."""
    may_be_awaited = Incremental._may_be_awaited

    def known_ones_only(self: Incremental, atom: Atom, tau: int) -> bool:
        return not variables(atom) and may_be_awaited(self, atom, tau)

    patch.setattr(Incremental, "_may_be_awaited", known_ones_only)


def _one_evidence_is_enough(patch: pytest.MonkeyPatch) -> None:
    """The evidence that is shown first is the only one that is carried on."""
    add = Incremental._add

    def once(self: Incremental, triple: Triple, *rest: Any) -> list[Triple]:
        return [] if triple.identity in self._entries else list(add(self, triple, *rest))

    patch.setattr(Incremental, "_add", once)


def _smallest_delay_of_the_instances(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Delays, "of", lambda self, atom: min(self._instances(atom)))


def _conditions_are_always_implied(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(triples, "implied", lambda *_: True)


def _condensed_without_conditions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(redundancy, "implied", lambda *_: True)


def _bounds_a_point_too_early(patch: pytest.MonkeyPatch) -> None:
    latest = Bounds.latest

    def earlier(self: Bounds, time: Time) -> int | None:
        found = latest(self, time)
        return found if found is None or time.base is None else found - 1

    patch.setattr(Bounds, "latest", earlier)


def _negative_times(patch: pytest.MonkeyPatch) -> None:
    of = Bounds.of.__func__  # type: ignore[attr-defined]
    patch.setattr(Bounds, "of", classmethod(lambda cls, comparisons, _: of(cls, comparisons, ())))


def _names_matter(patch: pytest.MonkeyPatch) -> None:
    def as_written(answer: Atom, hypotheses: tuple[Atom, ...], conditions: Iterable[object]) -> str:
        return f"{answer} {sorted(map(str, hypotheses))} {sorted(map(str, conditions))}"

    patch.setattr(triples, "_canonical", as_written)


def _last_evidence(patch: pytest.MonkeyPatch) -> None:
    def last(group: Iterable[Triple], arrived: dict[Atom, int]) -> Triple:
        return max(group, key=lambda t: max(arrived[fact] for fact in t.evidence))

    patch.setattr(reference, "first_evidence", last)


def _a_rule_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(premises, "irredundant", lambda leaves: leaves[:1])


def _comparisons_filter_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(incremental, "decide", lambda _: None)
    patch.setattr(incremental, "undecided", lambda _: ())


@pytest.mark.parametrize(
    ("mutation", "check"),
    [
        (_possible_a_point_too_long, check_definition_is_steps),
        (_possible_a_point_too_long, check_possible_by_trying),
        (_no_minimality, check_definition_is_steps),
        (_no_minimality_against_premise_sets, check_definition_is_steps),
        (_all_or_nothing, check_definition_is_steps),
        (_all_or_nothing, check_nothing_out_of_the_blue),
        (_one_evidence_is_enough, check_definition_is_steps),
        (_smallest_delay_of_the_instances, check_nothing_out_of_the_blue),
        (_conditions_are_always_implied, check_nothing_out_of_the_blue),
        (_condensed_without_conditions, check_confirmed_is_derived),
        (_bounds_a_point_too_early, check_possible_by_trying),
        (_negative_times, check_possible_by_trying),
        (_names_matter, check_names_and_order_of_rules),
        (_last_evidence, check_definition_is_steps),
        (_a_rule_is_forgotten, check_confirmed_is_derived),
        (_comparisons_filter_nothing, check_confirmed_is_derived),
    ],
    ids=lambda part: part.__name__.strip("_"),
)
def test_the_law_finds_what_is_broken(
    mutation: Callable[[pytest.MonkeyPatch], None],
    check: Callable[[Case], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @settings(
        deadline=None,
        max_examples=3_000,
        phases=[Phase.generate],
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(cases())
    def holds(case: Case) -> None:
        check(case)

    mutation(monkeypatch)
    with pytest.raises(AssertionError):
        holds()


# --- the cases reach what they are for -----------------------------------------------------------


def test_the_cases_reach_every_feature() -> None:
    """Each feature, and each kind of answer, is met often enough for a law to be tried on it."""
    met: Counter[str] = Counter()

    @settings(deadline=None, max_examples=300, derandomize=True, database=None,
              phases=[Phase.generate], suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(cases())
    def count(case: Case) -> None:
        met.update(features(case))
        met.update(_kinds(case))

    count()
    rare = {name: met[name] for name in FEATURES if met[name] < 6}
    assert not rare, met


FEATURES = (
    "join",
    "several time variables",
    "time constant",
    "time comparison",
    "object comparison",
    "shift",
    "several premise sets",
    "several queries",
    "rigid",
    "depth 2",
    "ground query argument",
    "delay pattern",
    "late fact",
    "duplicate fact",
    "confirmed",
    "pending",
    "pending without a deadline",
    "pending with an open answer",
    "pending with a time condition",
    "pending with an object condition",
    "pending, then confirmed",
    "pending, then closed",
)


def _kinds(case: Case) -> set[str]:
    found: set[str] = set()
    for sets in case.premise_sets:
        every = lives(sets, case.program.delays, case.arrivals.first)
        confirmed = {life.triple.answer for life in every if life.triple.confirmed}
        for life in every:
            triple = life.triple
            kinds = {
                "pending without a deadline": life.deadline is None,
                "pending with an open answer": variables(triple.answer),
                "pending with a time condition": triple.bounds.conditions,
                "pending with an object condition": triple.objects,
                "pending, then confirmed": triple.answer in confirmed,
                "pending, then closed": life.end is None and life.deadline is not None,
            }
            found.add("confirmed" if triple.confirmed else "pending")
            if not triple.confirmed:
                found |= {kind for kind, there in kinds.items() if there}
    return found
