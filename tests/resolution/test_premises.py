"""Premise sets: resolution, condensing, subsumption, names and order."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from resolution import premises as module
from resolution.bounds import implied, object_comparisons
from resolution.limits import LARGEST, TooLargePremiseSet, TooManyPremiseSets
from resolution.premises import PremiseSet, premise_sets
from resolution.program import Program, load
from resolution.redundancy import condense
from resolution.substitution import Entangled, embeddings, image, instance, match
from resolution.terms import Time
from tests.random_programs import programs

STREAMS = """\
stream A(x) delay 1.
stream B(x) delay 1.
stream C(x, y) delay 1.
"""


def texts(rules: str, query: str = "query P(X, T).") -> list[str]:
    program = load(f"{STREAMS}{rules}\n{query}\n")
    return [str(premises) for premises in premise_sets(program, program.queries[0])]


def test_the_turbines() -> None:
    rules = """\
Flag(X, T)   <- C(X, high, T).
Cool(X, T+1) <- Flag(X, T), Flag(X, T+1).
Shdn(X, T+1) <- Cool(X, T), Flag(X, T+1).
P(X, T-2) <- Shdn(X, T)."""
    assert texts(rules) == ["P(X, T) <- C(X, high, T), C(X, high, T+1), C(X, high, T+2)"]


def test_each_choice_of_rules_is_a_premise_set_in_the_order_of_the_text() -> None:
    rules = "O(X, T) <- A(X, T). O(X, T) <- B(X, T). P(X, T) <- O(X, T), O(X, T+1)."
    assert texts(rules) == [
        "P(X, T) <- A(X, T), A(X, T+1)",
        "P(X, T) <- A(X, T), B(X, T+1)",
        "P(X, T) <- B(X, T), A(X, T+1)",
        "P(X, T) <- B(X, T), B(X, T+1)",
    ]


def test_constants_of_the_query_go_down() -> None:
    rules = "P(X, T) <- A(X, T-1). P(b, T) <- B(X, T)."
    assert texts(rules, "query P(a, T).") == ["P(a, T) <- A(a, T-1)"]
    assert texts(rules, "query P(X, 0).") == ["P(b, 0) <- B(X_1, 0)"]


def test_what_can_never_hold_is_left_out() -> None:
    assert texts("P(X, T) <- A(X, T), 1 > 2, X != X.".replace("1 > 2, ", "")) == []
    assert texts("P(X, T) <- A(X, T), B(X, S), S < T, T < S.") == []
    assert texts("P(X, T) <- A(X, T), T < 0.") == []
    assert texts("P(X, 0) <- A(X, T), T <= 0.") == ["P(X, 0) <- A(X, T_1), T_1 <= 0"]


def test_rigid_facts_are_resolved_away() -> None:
    rules = """\
rigid Near(a, b).
Near(w1, w2). Near(w1, w3). Near(w2, w2).
P(X, T) <- A(X, T), Near(X, Y), B(Y, T), Y != w3."""
    assert texts(rules) == [
        "P(w1, T) <- A(w1, T), B(w2, T)",
        "P(w2, T) <- A(w2, T), B(w2, T)",
    ]


def test_decided_comparisons_are_gone_and_others_stay() -> None:
    rules = "P(X, T) <- C(X, V, T), V > 3, X != V, T >= 2."
    assert texts(rules, "query P(7, T).") == ["P(7, T) <- C(7, V, T), V > 3, V != 7, T >= 2"]


def test_condensing() -> None:
    assert texts("P(X, T) <- A(X, T), A(Y, T).") == ["P(X, T) <- A(X, T)"]
    assert texts("P(X, T) <- C(X, Y, T), C(X, Z, T), Z > 3.") == ["P(X, T) <- C(X, Z, T), Z > 3"]
    # Neither comparison implies the other, so both atoms are needed.
    both = "P(X, T) <- C(X, Y, T), C(X, Z, T), Y < 3, Z > 3"
    assert texts(f"{both}.") == [both]
    # Time comparisons are implied by bounds: the one that is nearer does for both.
    rules = "P(X, T) <- A(X, T), B(X, U), B(X, W), U <= T+9, W <= T+5."
    assert texts(rules) == ["P(X, T) <- A(X, T), B(X, W), W <= T+9, W <= T+5"]


def test_subsumption() -> None:
    wide = "P(X, T) <- A(X, T), B(X, U), U <= T+9."
    near = "P(X, T) <- A(X, T), B(X, W), W <= T+5."
    assert texts(f"{wide}\n{near}") == texts(f"{near}\n{wide}") == [wide[:-1]]
    assert texts("P(X, T) <- A(X, T), B(Y, T).\nP(X, T) <- A(X, T).") == ["P(X, T) <- A(X, T)"]
    # A constant that makes a comparison true: the special set needs nothing to be said.
    rules = "P(X, T) <- C(X, V, T), V > 3.\nP(X, T) <- C(X, 4, T).\nP(X, T) <- C(X, 2, T)."
    assert texts(rules) == ["P(X, T) <- C(X, V, T), V > 3", "P(X, T) <- C(X, 2, T)"]
    # An object comparison is there itself, in either orientation; nothing else is concluded.
    same = "P(X, T) <- C(X, V, T), V > X.\nP(X, T) <- C(X, W, T), X < W, W != 1."
    assert texts(same) == ["P(X, T) <- C(X, V, T), V > X"]
    assert len(texts("P(X, T) <- C(X, V, T), V > 3.\nP(X, T) <- C(X, V, T), V > 4.")) == 2


def test_of_two_that_say_the_same_the_first_stays() -> None:
    rules = "P(X, T) <- A(X, T), B(X, T+1).\nP(Y, S+1) <- B(Y, S+2), A(Y, S+1)."
    assert texts(rules) == ["P(X, T) <- A(X, T), B(X, T+1)"]


def test_names_are_those_of_the_query_then_of_the_rules() -> None:
    rules = "O(Y, S) <- C(Y, X, S), A(X, T), T <= S.\nP(X, T) <- O(X, T), C(_, _, T)."
    (found,) = texts(rules, "query P(Who, When).")
    assert found.startswith("P(Who, When) <- C(Who, X, When), A(X, T)")


def test_rules_that_multiply_are_refused_and_named() -> None:
    text = "O(X, T) <- A(X, T). O(X, T) <- B(X, T).\nP(X, T) <- O(X, T), O(X, T+1), O(X, T+2)."
    program = load(f"{STREAMS}{text}\nquery P(X, T).")
    with pytest.raises(TooManyPremiseSets) as refused:
        premise_sets(program, program.queries[0], limit=7)
    (multiplier,) = refused.value.multipliers
    assert (multiplier.line, multiplier.ways, multiplier.factors) == (5, 8, (("O", 2, 3),))
    assert len(premise_sets(program, program.queries[0], limit=8)) == 8


def test_steps_that_multiply_and_lead_nowhere_are_refused_too() -> None:
    """No leaf is ever reached, for the last atom fits none of the choices made before it."""
    choices = "".join(f"O(a{n}, T) <- C(a{n}, {n}, T).\n" for n in range(30))
    text = "P(X, T) <- O(X1, T), O(X2, T), O(X3, T), O(X4, T), Never(X1, X2, X3, X4, T)."
    never = "Never(b, b, b, b, T) <- A(b, T).\n"
    program = load(f"{STREAMS}{choices}{never}{text.replace('P(X', 'P(X1')}\nquery P(X, T).")
    with pytest.raises(TooManyPremiseSets):
        premise_sets(program, program.queries[0], limit=1_000)


def test_atoms_that_multiply_are_refused_and_the_rules_named() -> None:
    rules = "".join(f"P{n}(X, T) <- P{n + 1}(X, T), P{n + 1}(X, T+1).\n" for n in range(30))
    program = load(f"{STREAMS}{rules}P30(X, T) <- A(X, T).\nquery P0(X, T).")
    with pytest.raises(TooLargePremiseSet) as refused:
        premise_sets(program, program.queries[0])
    worst = refused.value.multipliers[0]
    assert (worst.line, worst.ways, worst.factors) == (4, 2**30, (("P1", 2**29, 2),))
    assert "line 4: P1 in 536,870,912 atoms, 2 times: P0 in" in str(refused.value)


def test_a_body_that_is_too_long_is_refused() -> None:
    def program(atoms: int) -> Program:
        body = ", ".join(f"A(X, T+{n})" for n in range(atoms))
        return load(f"{STREAMS}P(X, T) <- {body}.\nquery P(X, T).")

    long = program(LARGEST)
    (premises,) = premise_sets(long, long.queries[0])
    assert len(premises.atoms) == LARGEST
    longer = program(LARGEST + 1)
    with pytest.raises(TooLargePremiseSet, match="line 4: A 501 times: P in 501 atoms"):
        premise_sets(longer, longer.queries[0])


@pytest.mark.parametrize("window", ["T12 <= T1+60", "T12 <= T1+60, T3 <= 7"])
def test_many_events_in_a_row_are_condensed_without_trying_all_mappings(window: str) -> None:
    """There are 11 ** 11 ways to map the atoms; the order in time leaves one."""
    atoms = ", ".join(f"A(X, T{n})" for n in range(1, 13))
    order = ", ".join(f"T{n} < T{n + 1}" for n in range(1, 12))
    rules = f"P(X, T1) <- {atoms}, {order}, T12 <= T1+60.\n"
    other = f"P(X, T1) <- {atoms}, {order}, {window}, T12 <= T1+90.\n"
    program = load(f"{STREAMS}{rules}{other}query P(X, T).")
    (premises,) = premise_sets(program, program.queries[0])
    assert len(premises.atoms) == 12


def test_atoms_that_map_in_too_many_ways_are_refused() -> None:
    """Whether a graph has so many colours is such a question."""
    one = [f"C(X{i}, X{j}, T)" for i in range(14) for j in range(i)]
    other = [f"C(Y{i}, Y{j}, T)" for i in range(13) for j in range(13) if i != j]
    program = load(f"{STREAMS}P(T) <- {', '.join(one + other)}.\nquery P(T).")
    with pytest.raises(Entangled, match="atoms of C stand together"):
        premise_sets(program, program.queries[0])


# --- the definition, literally -------------------------------------------------------------------


def subsumes(general: PremiseSet, special: PremiseSet) -> bool:
    by = match(general.answer, special.answer, {})
    return by is not None and any(
        implied(
            (image(c, rho) for c in general.comparisons),
            special.bounds,
            object_comparisons(special.comparisons),
        )
        for rho in embeddings(general.atoms, special.atoms, by)
    )


@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(programs())
def test_no_set_subsumes_another_and_none_is_lost(text: str) -> None:
    program = load(text)
    for query in program.queries:
        goals = [goal for goal in module._resolve(program, query, 10_000) if goal is not None]
        leaves = [leaf for goal in goals if (leaf := module._leaf(query, goal)) is not None]
        kept = premise_sets(program, query)
        for one in kept:
            assert not any(subsumes(other, one) for other in kept if other is not one)
        for leaf in leaves:
            assert any(subsumes(one, leaf) for one in kept)


@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(programs())
def test_condensed_sets_are_equivalent_and_do_not_fold(text: str) -> None:
    program = load(text)
    for query in program.queries:
        for goal in module._resolve(program, query, 10_000):
            leaf = module._leaf(query, goal) if goal is not None else None
            if leaf is None:
                continue
            small = condense(leaf)
            assert subsumes(small, leaf)
            assert subsumes(leaf, small)
            assert not folds(small)


def folds(premises: PremiseSet) -> bool:
    """Whether a substitution that fixes the answer maps H onto a proper part of itself."""
    answer = premises.answer
    by = match(answer, answer, {})
    assert by is not None
    return any(
        len({instance(atom, rho) for atom in premises.atoms}) < len(premises.atoms)
        and implied(
            (image(c, rho) for c in premises.comparisons),
            premises.bounds,
            object_comparisons(premises.comparisons),
        )
        for rho in embeddings(premises.atoms, premises.atoms, by)
    )


def test_the_derivation_ends_in_the_atoms() -> None:
    program = load(f"{STREAMS}O(X, T) <- A(X, T+1).\nP(X, T) <- O(X, T), B(X, T).\nquery P(X, T).")
    (premises,) = premise_sets(program, program.queries[0])
    top = premises.derivation
    assert (str(top.atom), top.rule) == ("P(X, T)", program.rules[1])
    below, leaf = top.children
    assert (str(below.atom), below.rule, leaf.rule) == ("O(X, T)", program.rules[0], None)
    assert [below.children[0].atom, leaf.atom] == list(premises.atoms)
    assert premises.times == [Time(leaf.atom.time.base, n) for n in (0, 1, 0)]  # type: ignore[union-attr]
