"""The rules of `S_τ`, one by one, on the definition."""

from __future__ import annotations

from typing import Any

from resolution import answers as answers_by_steps
from resolution import trace
from resolution.reference import answers
from tests.random_programs import Case


def held(case: Case, tau: int) -> list[str]:
    """The answers of the first query, evidence, hypotheses and conditions apart."""
    found = answers(case.premise_sets[0], case.program.delays, case.arrivals.by(tau), tau)
    return sorted(map(str, found))


def case(rules: str, *events: tuple[Any, ...]) -> Case:
    """Events are given as predicate, arguments…, time, arrival."""
    return Case(
        rules,
        tuple(
            {"fact": name, "args": args, "time": time, "arrival": arrival}
            for name, *args, time, arrival in events
        ),
    )


PAIR = """\
stream A(x) delay 2.
stream B(x) delay 2.
P(X, T) <- A(X, T), B(X, T).
query P(X, T).
"""


def test_rule_1_some_evidence_is_needed() -> None:
    assert held(case(PAIR), 0) == []
    assert held(case(PAIR, ("A", "a", 0, 0)), 0) == ["P(a, 0) <- A(a, 0) | B(a, 0) | "]


def test_rule_2_nothing_is_guessed() -> None:
    rules = PAIR.replace("B(X, T)", "B(Y, T)")
    found = held(case(rules, ("B", "b", 0, 0), ("A", "a", 1, 1)), 1)
    assert found == ["P(X, 0) <- B(b, 0) | A(X, 0) | ", "P(a, 1) <- A(a, 1) | B(Y, 1) | "]


def test_rule_3_a_closed_hypothesis_ends_it() -> None:
    log = case(PAIR, ("A", "a", 0, 0))
    assert [bool(held(log, tau)) for tau in range(4)] == [True, True, False, False]


def test_rule_3_what_arrived_is_no_hypothesis() -> None:
    log = case(PAIR, ("A", "a", 0, 0), ("B", "a", 0, 1))
    assert held(log, 1) == ["P(a, 0) <- A(a, 0), B(a, 0) |  | "]


def test_rule_3_comparisons_filter_and_are_told_while_undecided() -> None:
    rules = PAIR.replace("B(X, T).", "B(Y, S), X != Y, S > T, S <= T+3.")
    found = held(case(rules, ("A", "a", 4, 4)), 4)
    assert found == ["P(a, 4) <- A(a, 4) | B(Y, S) | S >= 5, S <= 7, Y != a"]
    assert held(case(rules, ("A", "a", 4, 4), ("B", "a", 5, 5)), 5)[0].startswith("P(X, T)")


def test_rule_3_placements_are_looked_for_together() -> None:
    """S alone might be late enough, and T early enough, but not both."""
    rules = """\
stream A(x) delay 0.
stream B(x) delay 0.
stream G() delay 9.
P(X, 0) <- G(U), A(X, S), B(X, T), S <= 3, T = S+1.
query P(X, T).
"""
    log = case(rules, ("G", 0, 0))
    assert held(log, 2) == ["P(X, 0) <- G(0) | A(X, S), B(X, T_1) | T_1 = S+1, S <= 3"]
    assert held(log, 3) == []


def test_rule_4_fewer_hypotheses_win() -> None:
    rules = (
        f"{PAIR.splitlines()[0]}\n{PAIR.splitlines()[1]}\nstream D(x) delay 2.\n"
        + """\
P(X, T) <- A(X, T), B(X, T).
P(X, T) <- D(X, T), A(X, T).
query P(X, T).
"""
    )
    log = case(rules, ("A", "a", 0, 0), ("B", "a", 0, 1), ("D", "b", 0, 0))
    assert held(log, 0) == [
        "P(a, 0) <- A(a, 0) | B(a, 0) | ",
        "P(a, 0) <- A(a, 0) | D(a, 0) | ",
        "P(b, 0) <- D(b, 0) | A(b, 0) | ",
    ]
    assert held(log, 1)[0] == "P(a, 0) <- A(a, 0), B(a, 0) |  | "
    assert len(held(log, 1)) == 2


def test_rule_4_hypotheses_that_entail_the_answer_alone_support_nothing() -> None:
    rules = """\
stream A(x) delay 2.
stream B(x) delay 2.
P(X, T) <- A(X, T).
P(X, T) <- B(X, T), A(X, T+1), A(X, T).
Q(X, T) <- B(X, T), A(X, T-1).
Q(X, T-1) <- A(X, T-1).
query Q(X, T).
"""
    # B(a, 1) with A(a, 0) would give Q(a, 1); nothing entails that but both.
    assert held(case(rules, ("B", "a", 1, 1)), 1) == ["Q(a, 1) <- B(a, 1) | A(a, 0) | "]
    same = rules.replace("Q(X, T-1) <- A(X, T-1).", "Q(X, T+1) <- A(X, T).")
    assert held(case(same, ("B", "a", 1, 1)), 1) == []


def test_the_evidence_that_was_complete_first_is_shown() -> None:
    rules = PAIR.replace("A(X, T), B(X, T)", "A(Y, T), B(X, T)")
    log = case(rules, ("A", "z", 0, 0), ("A", "a", 0, 1), ("B", "b", 0, 1))
    assert held(log, 0) == ["P(X, 0) <- A(z, 0) | B(X, 0) | "]
    # Complete at the same time: the smaller text.
    assert held(log, 1)[1] == "P(b, 0) <- A(a, 0), B(b, 0) |  | "
    assert held(log, 1)[0] == "P(X, 0) <- A(z, 0) | B(X, 0) | "


def test_answers_that_differ_in_names_only_are_one() -> None:
    rules = """\
stream C(x) delay 1.
stream A() delay 1.
stream B() delay 1.
P(0) <- C(a, T0), A(T1), B(T2), T2 = T1+2.
P(0) <- C(b, T0), A(S9), B(S1), S1 = S9+2.
query P(T).
"""
    assert len(held(case(rules, ("C", "a", 0, 0), ("C", "b", 0, 0)), 0)) == 1


def test_a_fact_that_is_late_takes_no_part() -> None:
    log = case(PAIR, ("A", "a", 0, 0), ("B", "a", 0, 3))
    assert [held(log, tau) for tau in (2, 3, 4)] == [[], [], []]


def test_the_library_gives_the_same() -> None:
    """`trace` and `answers`, as a user of the library calls them."""
    log = case(PAIR, ("A", "a", 0, 0), ("B", "a", 0, 1), ("A", "b", 1, 1))
    found = dict(trace(log.program, log.arrivals.first))
    assert list(found) == [0, 1, 3]
    for tau, triples in found.items():
        assert sorted(map(str, triples)) == held(log, tau)
        assert triples == answers_by_steps(log.program, log.arrivals.first, tau)
    assert list(dict(trace(log.program, log.arrivals.first, end=1))) == [0, 1]
