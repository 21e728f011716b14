"""δ of atoms: the most specific pattern, the larger of equals, the largest of the instances."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolution.delays import Delays, Pattern
from resolution.program import load
from resolution.terms import Atom, Term, Time, Var

X, Y = Var("X"), Var("Y")


def atom(*args: Term) -> Atom:
    return Atom("S", args, Time(Var("T"), 0))


def delays(patterns: dict[Pattern, int]) -> Delays:
    return Delays({"S": patterns})


BOUNDS: dict[Pattern, int] = {
    (None, None): 1,
    ("a", None): 4,
    (None, "low"): 3,
    ("a", "low"): 0,
    ("b", None): 2,
    (None, "high"): 2,
}


@pytest.mark.parametrize(
    ("args", "bound"),
    [
        (("c", "mid"), 1),
        (("a", "mid"), 4),
        (("c", "low"), 3),
        (("a", "low"), 0),
        (("b", "low"), 3),  # two equally specific patterns: the larger
        (("b", "high"), 2),
        ((X, Y), 4),
        (("a", X), 4),
        (("b", X), 3),
        ((X, "low"), 3),
        ((X, "mid"), 4),
        ((X, X), 4),
    ],
)
def test_delta(args: tuple[Term, ...], bound: int) -> None:
    assert delays(BOUNDS).of(atom(*args)) == bound


def test_a_more_specific_pattern_may_be_smaller() -> None:
    every: dict[Pattern, int] = {(None,): 5, ("a",): 1}
    assert delays(every).of(atom("a")) == 1
    assert delays(every).of(atom(X)) == 5
    assert delays(every).least(atom(X)) == 1


def test_a_variable_that_occurs_twice_meets_equal_constants_only() -> None:
    both: dict[Pattern, int] = {(None, None): 0, ("a", "b"): 9, ("a", "a"): 5}
    assert delays(both).of(atom(X, Y)) == 9
    assert delays(both).of(atom(X, X)) == 5


def test_durations_are_rounded_up_to_time_points() -> None:
    program = load(
        "unit 10s. stream S(x) delay 25s. delay S(a) = 1m. delay S(b) = 7.\n"
        "P(X, T) <- S(X, T). query P(X, T)."
    )
    assert [program.delays.of(atom(value)) for value in ("c", "a", "b")] == [3, 6, 7]
    assert program.delays.largest("S") == 7


CONSTANTS = ("a", "b", 1)
fields = st.sampled_from((None, *CONSTANTS))


@given(
    st.dictionaries(st.tuples(fields, fields), st.integers(0, 9), max_size=6),
    st.tuples(*[st.sampled_from((*CONSTANTS, X, Y))] * 2),
)
def test_the_largest_of_the_instances(
    patterns: dict[Pattern, int], args: tuple[Term, Term]
) -> None:
    """As the definition has it, over all instances: one more constant stands for all others."""
    bounds: dict[Pattern, int] = {(None, None): 3, **patterns}
    found = []
    for x, y in itertools.product((*CONSTANTS, "other", "another"), repeat=2):
        values = {X: x, Y: y}
        ground = tuple(values[a] if isinstance(a, Var) else a for a in args)
        matching = [
            (sum(p is not None for p in pattern), bound)
            for pattern, bound in bounds.items()
            if all(p is None or p == v for p, v in zip(pattern, ground, strict=True))
        ]
        found.append(max(matching)[1])
        assert delays(bounds).of(atom(*ground)) == found[-1]
    assert delays(bounds).of(atom(*args)) == max(found)
    assert delays(bounds).least(atom(*args)) == min(found)


def test_many_patterns_take_no_search() -> None:
    """Ten thousand facts against ten thousand patterns: each is one look-up."""
    bounds: dict[Pattern, int] = {(None,): 1, **{(f"d{n}",): n % 7 for n in range(10_000)}}
    known = delays(bounds)
    assert sum(known.of(atom(f"d{n}")) for n in range(10_000)) == sum(n % 7 for n in range(10_000))
    assert known.of(atom(X)) == 6


@pytest.mark.parametrize(("fields", "pattern"), [("x", "_"), ("", "")])
def test_a_pattern_without_constants_takes_the_place_of_the_bound_of_its_stream(
    fields: str, pattern: str
) -> None:
    program = load(
        f"delay S({pattern}) = 2. stream S({fields}) delay 4.\n"
        f"P(T) <- S({'X, ' if fields else ''}T). query P(T)."
    )
    assert program.delays.largest("S") == 2
