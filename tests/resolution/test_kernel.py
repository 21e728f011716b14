"""The kernel gives what the reference gives: every triple, its life, its evidence, its words."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import resolution.kernel
from resolution.facts import LAST_POINT
from resolution.kernel import FACTS, Kernel, board
from resolution.kernel.cells import CellPlan
from resolution.kernel.minimality import AtMost, Compares, Foreign
from resolution.lives import lives, row
from resolution.premises import premise_sets
from resolution.program import load
from resolution.terms import Atom, Time, show
from tests.random_programs import Case, cases

Row = dict[str, Any]


def table(arrived: dict[Atom, int], fresh: bool = True) -> pa.Table:
    """Facts as the kernel takes them, all of one group."""
    rows = [
        {
            "group": 0,
            "first": None,
            "past": None,
            "predicate": atom.predicate,
            "args": [show(arg) for arg in atom.args],
            "time": atom.time.offset if atom.time else 0,
            "arrival": arrival,
            "fresh": fresh,
        }
        for atom, arrival in arrived.items()
    ]
    return pa.Table.from_pylist(rows, schema=FACTS)


def by_id(triples: pa.Table) -> dict[str, Row]:
    rows = triples.to_pylist()
    found = {row["triple"]: row for row in rows}
    assert len(found) == len(rows), "a triple is reported once"
    return found


def expected(case: Case, query: int) -> dict[str, Row]:
    delays, arrived = case.program.delays, case.arrivals.first
    found = lives(case.premise_sets[query], delays, arrived)
    return {said["triple"]: said for said in (row(life, delays, arrived) for life in found)}


@settings(max_examples=150)
@given(cases())
def test_kernel_is_the_reference(case: Case) -> None:
    kernel = Kernel(case.program)
    for query in range(len(case.program.queries)):
        found = by_id(kernel.triples(query, table(case.arrivals.first)))
        assert found == expected(case, query)


@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        pytest.param(board, "_close_together", lambda *_: False, id="facts far apart"),
        pytest.param(board, "_COMBINATIONS", 0, id="no two cells alike"),
        pytest.param(board, "_SMALL", 0, id="moments of 64 bits"),
        pytest.param(resolution.kernel, "_TEXTS", 1, id="one cell at a time"),
    ],
)
def test_every_way_through_the_cells_says_the_same(module: Any, name: str, value: Any) -> None:
    @settings(max_examples=60)
    @given(cases())
    def same(case: Case) -> None:
        test_kernel_is_the_reference.hypothesis.inner_test(case)

    with patch.object(module, name, value):
        same()


@pytest.mark.parametrize("delay", [3, 10**12])
def test_cells_whose_events_are_equal_have_equal_triples(delay: int) -> None:
    """What is kept of one cell serves the next; a long delay leaves too many combinations."""
    program = load(f"stream p(x) delay {delay}. q(X, T) <- p(X, T), p(X, T+1). query q(X, T).")
    arrived = {
        Atom("p", (name,), Time(None, time)): time + late
        for number, name in enumerate("abcdefgh")
        for time in range(9)
        if (late := (number * 3 + time * time) % 5) < 4
    }
    sets = premise_sets(program, program.queries[0])
    said = [row(life, program.delays, arrived) for life in lives(sets, program.delays, arrived)]
    found = by_id(Kernel(program).triples(0, table(arrived)))
    assert found == {triple["triple"]: triple for triple in said}


def test_facts_far_apart_need_no_place_for_the_time_between() -> None:
    program = load("stream p(x) delay 1. q(X, T) <- p(X, T), p(X, T+1). query q(X, T).")
    times = (0, 1, 10**15, 10**15 + 1)
    arrived = {Atom("p", ("a",), Time(None, time)): time for time in times}
    found = Kernel(program).triples(0, table(arrived)).to_pylist()
    confirmed = {said["answer"] for said in found if not said["hypotheses"]}
    assert confirmed == {"q(a, 0)", f"q(a, {10**15})"}


@pytest.mark.parametrize("form", ["p(X, T+1)", "p(Y, T+1)", "p(Y, S), S <= T+1"])
def test_a_fact_of_the_last_time_point_counts(form: str) -> None:
    longest = 2**53
    program = load(
        f"stream p(x) delay {longest}. q(X, T) <- p(X, T), {form}. query q(X, T). query p(X, T)."
    )
    last = Atom("p", ("a",), Time(None, LAST_POINT))
    arrived = {last: LAST_POINT, Atom("p", ("b",), Time(None, 0)): longest}
    for query, asked in enumerate(program.queries):
        sets = premise_sets(program, asked)
        said = [row(life, program.delays, arrived) for life in lives(sets, program.delays, arrived)]
        found = by_id(Kernel(program).triples(query, table(arrived)))
        assert found == {triple["triple"]: triple for triple in said}


@pytest.mark.parametrize("large", [2**53, 10**310])
@pytest.mark.parametrize("comparison", ["A < B", "A != B", "A <= {0}", "B > {0}", "A = {0}"])
def test_numbers_that_no_double_holds_are_compared_by_value(large: int, comparison: str) -> None:
    program = load(
        "stream p(x) delay 1. stream r(x) delay 1. "
        f"q(A, B, T) <- p(A, T), r(B, T), {comparison.format(large)}. query q(A, B, T)."
    )
    arrived = {
        Atom(name, (value,), Time(None, 0)): 0 for name in "pr" for value in (large, large + 1)
    }
    sets = premise_sets(program, program.queries[0])
    said = [row(life, program.delays, arrived) for life in lives(sets, program.delays, arrived)]
    found = by_id(Kernel(program).triples(0, table(arrived)))
    assert found == {triple["triple"]: triple for triple in said}


@pytest.mark.parametrize("condition", ["X <= b", "X < m", "X = b", "X != m", "X >= b"])
def test_constants_that_no_fact_holds_are_compared_with_one_another(condition: str) -> None:
    program = load(
        "stream r() delay 3. stream s(x) delay 4. "
        f"q(T) <- r(T), s(X, T), s(m, T), {condition}. query q(T)."
    )
    arrived = {Atom("r", (), Time(None, 5)): 6}
    sets = premise_sets(program, program.queries[0])
    said = [row(life, program.delays, arrived) for life in lives(sets, program.delays, arrived)]
    found = by_id(Kernel(program).triples(0, table(arrived)))
    assert found == {triple["triple"]: triple for triple in said}


@settings(max_examples=60)
@given(cases(facts=9), st.randoms(use_true_random=False))
def test_any_cut_into_batches_adds_up_to_the_same(case: Case, chance: random.Random) -> None:
    kernel = Kernel(case.program)
    facts = list(case.arrivals.first.items())
    chance.shuffle(facts)
    for query in range(len(case.program.queries)):
        kept: dict[str, Row] = {}
        read: dict[Atom, int] = {}
        rest = list(facts)
        while rest:
            size = chance.randint(1, len(rest))
            batch, rest = dict(rest[:size]), rest[size:]
            known = pa.concat_tables([table(read, fresh=False), table(batch)])
            for change in kernel.changes(query, known).to_pylist():
                said = {name: value for name, value in change.items() if name != "op"}
                if change["op"] == "drop":
                    assert kept.pop(said["triple"]) == said
                else:
                    assert kept.get(said["triple"]) != said, "a put must change something"
                    assert (change["op"] == "put") == (said["triple"] in kept)
                    kept[said["triple"]] = said
            read.update(batch)
        assert kept == expected(case, query)


def test_groups_do_not_meet() -> None:
    program = load(
        "stream p(x) delay 2. stream r(x) delay 0. q(X, T) <- p(X, T), r(Y, T). query q(X, T)."
    )
    rows = [
        {"group": group, "predicate": name, "args": [arg], "time": 0, "arrival": 0, "fresh": True}
        for group, name, arg in [(1, "p", "a"), (2, "r", "b"), (3, "p", "c"), (3, "r", "d")]
    ]
    found = Kernel(program).triples(0, pa.Table.from_pylist(rows, schema=FACTS)).to_pylist()
    confirmed = [said["answer"] for said in found if not said["hypotheses"]]
    assert confirmed == ["q(c, 0)"]
    # The same open answer is pending in two groups: routing sees to it that this does not happen.
    assert [said["answer"] for said in found if said["hypotheses"]] == ["q(X, 0)"]


@pytest.mark.parametrize(("first", "past", "at_home"), [(0, 3, 1), (3, 6, 0), (2, 3, 1), (0, 2, 0)])
def test_a_triple_is_reported_where_its_earliest_answer_is(
    first: int, past: int, at_home: int
) -> None:
    program = load(
        "stream p(x) delay 1. stream r(x) delay 1. "
        "q(X, S) <- p(X, T), r(X, S), T < S, S <= T+9. query q(X, S)."
    )
    fact = {"group": 7, "predicate": "p", "args": ["a"], "time": 1, "arrival": 1, "fresh": True}
    facts = pa.Table.from_pylist([{**fact, "first": first, "past": past}], schema=FACTS)
    assert len(Kernel(program).triples(0, facts)) == at_home


def test_no_facts_are_no_triples() -> None:
    program = load("stream p() delay 1. q(T) <- p(T). query q(T).")
    assert len(Kernel(program).triples(0, FACTS.empty_table())) == 0


def test_the_random_programs_reach_every_path() -> None:
    """Counts what the property tests above go through: a path nobody walks is not tested."""
    reached: Counter[str] = Counter()

    @settings(max_examples=200, database=None, derandomize=True)
    @given(cases())
    def walk(case: Case) -> None:
        kernel = Kernel(case.program)
        for query, parts in enumerate(kernel.plans):
            kernel.triples(query, table(case.arrivals.first))
            for part in parts:
                if isinstance(part, CellPlan):
                    reached["cells"] += 1
                    reached["cells with a private variable"] += any(
                        cell.comparisons or any(a.name.isdigit() for a in _vars(cell.atom))
                        for cell in part.atoms
                    )
                    reached["cells with several premise sets"] += len(part.premise_sets) > 1
                    continue
                reached["forms"] += 1
                for embedding in (e for es in part.known.values() for e in es):
                    reached["embedding"] += 1
                    reached["a join"] += bool(embedding.joins)
                    reached["equal values"] += bool(embedding.equal)
                    reached["a time check"] += any(isinstance(c, AtMost) for c in embedding.checks)
                    reached["an object check"] += any(
                        isinstance(c, Compares) for c in embedding.checks
                    )
                    reached["a check across"] += any(
                        isinstance(side, Foreign)
                        for c in embedding.checks
                        for side in ((c.x, c.y) if isinstance(c, AtMost) else (c.left, c.right))
                    )

    walk()
    missed = [name for name in _PATHS if not reached[name]]
    assert not missed, f"never reached: {missed}; reached: {dict(reached)}"


_PATHS = (
    "cells",
    "cells with a private variable",
    "cells with several premise sets",
    "forms",
    "embedding",
    "a join",
    "equal values",
    "a time check",
    "an object check",
)


def _vars(atom: Atom) -> list[Any]:
    from resolution.substitution import variables

    return list(variables(atom))
