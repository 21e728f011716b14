"""Routing: no group needs another, and no fact is held back from one that needs it."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from resolution.kernel import FACTS, Kernel
from resolution.program import load
from resolution.routing import Target
from resolution.terms import Atom, Time
from tests.random_programs import Case, cases
from tests.resolution.groups import fact_row, grouped, routing_of


def fact(predicate: str, *args: str | int, time: int) -> Atom:
    return Atom(predicate, args, Time(None, time))


TURBINES = """
    stream Temp(device, level) delay 1.
    delay Temp(wt7, _) = 4.
    Malf(X, T) <- Temp(X, high, T), Temp(X, high, T+1), Temp(X, high, T+2).
    query Malf(X, T).
"""


def test_the_key_is_what_all_atoms_share() -> None:
    routing = routing_of(load(TURBINES))
    [query] = routing.queries
    assert query.key == (0,)
    assert query.blocks is not None
    assert (query.blocks.length, query.blocks.reach) == (16, 4 + 2 - 1)
    assert routing.targets(fact("Temp", "wt2", "low", time=5)) == set()
    assert routing.targets(fact("Temp", "wt2", "high", time=5)) == {Target(0, "wt2", 16 + 5)}
    both = {Target(0, "wt2", 16 + 5), Target(0, "wt2", 32 + 5)}
    assert routing.targets(fact("Temp", "wt2", "high", time=17)) == both


def test_a_variable_of_some_atoms_only_is_no_key() -> None:
    program = (
        "stream p(x) delay 2. stream r(x) delay 0. q(X, T) <- p(X, T), r(Y, T). query q(X, T)."
    )
    routing = routing_of(load(program))
    assert routing.queries[0].key == ()
    assert routing.targets(fact("p", "a", time=0)) == routing.targets(fact("r", "b", time=0))


def test_an_unbounded_distance_makes_one_block_that_never_closes() -> None:
    program = """
        stream Temp(x, l) delay 1.
        Defective(X, 0) <- Temp(X, high, T1), Temp(X, "n/a", T2).
        query Defective(X, T).
    """
    routing = routing_of(load(program))
    assert routing.queries[0].blocks is None
    assert routing.targets(fact("Temp", "a", "n/a", time=9)) == {Target(0, "a", None)}


def test_premise_sets_that_differ_in_constants_are_one_shape() -> None:
    near = "".join(f"Near(a{n}, a{n + 1})." for n in range(1000))
    program = f"""
        stream Hot(x) delay 1.
        rigid Near(a, b).
        {near}
        q(X, T) <- Hot(X, T), Near(X, Y), Hot(Y, T).
        query q(X, T).
    """
    routing = routing_of(load(program))
    [shape] = routing.queries[0].shapes
    assert len(shape.table) == 1001
    assert {t.key for t in routing.targets(fact("Hot", "a7", time=3))} == {"a6", "a7"}
    assert {t.key for t in routing.targets(fact("Hot", "a0", time=3))} == {"a0"}
    assert routing.targets(fact("Hot", "b", time=3)) == set()


def test_comparisons_that_a_fact_decides_alone() -> None:
    program = """
        stream V(x, v) delay 1.
        q(X, T) <- V(X, A, T), V(X, B, T+1), A > 80, B != 3.
        q(X, T) <- V(X, A, T), A < 10.
        query q(X, T).
    """
    routing = routing_of(load(program))
    sent = {v for v in (3, 50, 80, 81, 9) if routing.targets(fact("V", "a", v, time=1))}
    assert sent == {3, 50, 80, 81, 9}  # B != 3 lets most of them pass
    routing = routing_of(load(program.replace("B != 3", "B > 80")))
    sent = {v for v in (3, 50, 80, 81, 9) if routing.targets(fact("V", "a", v, time=1))}
    assert sent == {3, 81, 9}


def _event(predicate: str, *args: str) -> dict[str, Any]:
    return {"fact": predicate, "args": list(args), "time": 0, "arrival": 0}


# One fact goes to the groups of two answers, and one of those gets another that the other lacks.
CONSTANTS = """
    stream Ping() delay 0.
    stream Load() delay 0.
    Low(a, T) <- Ping(T).
    Low(b, T) <- Ping(T), Load(T).
    query Low(X, T).
"""
# Mode(b, b) is in the group of a for the first rule, and there matches the second one too.
TWO_WAYS = """
    stream Load(f0, f1) delay 1.
    stream Mode(f0, f1) delay 0.
    Low(a, T) <- Mode(X, _, T).
    Low(Y, T) <- Load(_, Y, T), Mode(Y, Y, T).
    query Low(X, T).
"""


@settings(max_examples=150, deadline=None)
@given(case=cases(facts=10))
@example(Case(CONSTANTS, (_event("Ping"), _event("Load"))))
@example(Case(TWO_WAYS, (_event("Load", "a", "b"), _event("Mode", "b", "b"))))
def test_groups_alone_give_what_all_facts_together_give(case: Case) -> None:
    """The kernel by groups, each with its own facts and block, against the kernel on everything."""
    routing, kernel = routing_of(case.program), Kernel(case.program)
    arrived = case.arrivals.first
    for number in range(len(routing.queries)):
        rows = grouped(routing, number, arrived)
        whole = [fact_row(0, None, None, None, a, at) for a, at in arrived.items()]
        assert _triples(kernel, number, rows) == _triples(kernel, number, whole)


# The same open answer is pending in two blocks.
TWO_BLOCKS = """
    stream Load(f0, f1) delay 1.
    stream Ping() delay 1.
    Low(X, S) <- Load(X, X, T), Ping(S), T < S, S <= T+2.
    query Low(X, S).
"""
FAR_APART = Case(TWO_BLOCKS, tuple(
    _event("Load", "a", "a") | {"time": time, "arrival": time} for time in (0, 40, 80, 120)
))  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(case=cases(facts=10), chance=st.randoms(use_true_random=False))
@example(FAR_APART, random.Random(1))
@example(FAR_APART, random.Random(2))
def test_what_is_told_first_nobody_has_told_before(case: Case, chance: random.Random) -> None:
    """Batch by batch, each on the groups that it changed: what the store relies on."""
    routing, kernel = routing_of(case.program), Kernel(case.program)
    facts = list(case.arrivals.first.items())
    chance.shuffle(facts)
    for number in range(len(routing.queries)):
        told: dict[str, str] = {}
        read: dict[Atom, int] = {}
        rest = list(facts)
        while rest:
            size = chance.randint(1, len(rest))
            batch, rest = dict(rest[:size]), rest[size:]
            read.update(batch)
            rows = grouped(routing, number, read, batch)
            changes = kernel.changes(number, pa.Table.from_pylist(rows, schema=FACTS)).to_pylist()
            before = set(told.values())
            for change in changes:
                triple, answer, op = change["triple"], change["answer_id"], change["op"]
                assert (triple in told) == (op in ("put", "drop"))
                assert op != "first" or answer not in before
                told[triple] = answer
            # Nor does it tell first what another group speaks of at the same time.
            first = Counter(c["answer_id"] for c in changes if c["op"] == "first")
            assert all(first[c["answer_id"]] == 0 for c in changes if c["op"] != "first")
            for change in changes:
                if change["op"] == "drop":
                    del told[change["triple"]]


def _triples(kernel: Kernel, query: int, rows: list[dict[str, object]]) -> list[dict[str, Any]]:
    found = kernel.triples(query, pa.Table.from_pylist(rows, schema=FACTS)).to_pylist()
    return sorted(found, key=lambda row: row["triple"])
