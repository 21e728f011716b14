"""Comparisons, and the difference bounds that time comparisons come to."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resolution.bounds import Bounds, decide, oriented
from resolution.terms import Comparison, Operator, Time, Var

S, T, R = Var("S"), Var("T"), Var("R")
X = Var("X")
TIME_OPERATORS: tuple[Operator, ...] = ("<", "<=", "=", ">", ">=")


def later(left: Var | None, operator: Operator, right: Var | None, by: int = 0) -> Comparison:
    return Comparison(Time(left, 0), operator, Time(right, by))


@pytest.mark.parametrize(
    ("left", "operator", "right", "holds"),
    [
        (1, "=", 1, True),
        (1, "<", 2.5, True),
        (3, ">=", 3, True),
        ("a", "<", "b", True),
        ("B", "<", "a", True),  # by code point
        ("é", ">", "z", True),
        (1, "=", "1", False),
        (1, "!=", "1", True),
        (1, "<", "1", False),
        (1, ">=", "1", False),
        (X, "=", X, True),
        (X, "!=", X, False),
        (X, "<", 3, None),
        (X, "=", Var("Y"), None),
    ],
)
def test_object_comparisons(left: object, operator: str, right: object, holds: bool | None) -> None:
    assert decide(Comparison(left, operator, right)) is holds  # type: ignore[arg-type]


def test_one_writing_of_an_object_comparison() -> None:
    assert str(oriented(Comparison(3, "<", X))) == "X > 3"
    assert str(oriented(Comparison(Var("Y"), "<=", X))) == "X >= Y"
    assert str(oriented(Comparison(Var("T10"), "=", Var("T2")))) == "T2 = T10"


def test_conditions_of_the_worked_example() -> None:
    bounds = Bounds.of([later(T, ">", None, 10), later(T, "<=", None, 70)], [Time(T, 0)])
    assert list(map(str, bounds.conditions)) == ["T >= 11", "T <= 70"]
    assert bounds.latest(Time(T, 0)) == 70
    assert bounds.latest(Time(T, 5)) == 75
    assert bounds.earliest(Time(T, 5)) == 16


def test_what_every_natural_time_satisfies_is_not_told() -> None:
    assert Bounds.of([later(T, ">=", None, 0)], [Time(T, 0)]).conditions == ()
    assert Bounds.of([later(T, ">=", None, 2)], [Time(T, -2)]).conditions == ()
    assert Bounds.of([later(T, ">=", None, 1)], [Time(T, 3)]).conditions != ()
    # S is natural, so T, two later, is not before 2.
    two = Bounds.of([later(T, "=", S, 2)], [Time(T, 0), Time(S, 0)])
    assert list(map(str, two.conditions)) == ["T = S+2"]


def test_equal_bounds_are_written_alike_whichever_variable_leads() -> None:
    """The same bounds with the names exchanged say the same, neither more nor less."""
    one = Bounds.of([later(T, "=", S, 2)], [Time(T, 0), Time(S, 0)])
    other = Bounds.of([later(S, "=", T, 2)], [Time(T, 0), Time(S, 0)])
    assert len(one.conditions) == len(other.conditions) == 1


def test_a_variable_may_be_below_zero_where_its_times_are_not() -> None:
    bounds = Bounds.of([later(T, "<", None, 0)], [Time(T, 1)])
    assert bounds.satisfiable
    assert bounds.earliest(Time(T, 1)) == 0
    assert not Bounds.of([later(T, "<", None, 0)], [Time(T, 0)]).satisfiable


def test_a_negative_time_point_satisfies_nothing() -> None:
    assert not Bounds.of([], [Time(None, -1)]).satisfiable


comparisons = st.lists(
    st.builds(
        later,
        st.sampled_from((S, T, R)),
        st.sampled_from(TIME_OPERATORS),
        st.sampled_from((S, T, R, None)),
        st.integers(-2, 4),
    ),
    max_size=4,
)
RANGE = range(16)


def placements(given: list[Comparison]) -> list[dict[Var, int]]:
    """All that satisfies comparisons, within a range that their small numbers cannot leave."""
    found = []
    for points in itertools.product(RANGE, repeat=3):
        by = dict(zip((S, T, R), points, strict=True))

        def at(side: object, by: dict[Var, int] = by) -> Time:
            assert isinstance(side, Time)
            return Time(None, side.offset + (by[side.base] if side.base else 0))

        if all(decide(Comparison(at(c.left), c.operator, at(c.right))) for c in given):
            found.append(by)
    return found


@settings(deadline=None, max_examples=60)
@given(comparisons, comparisons)
def test_bounds_say_what_trying_says(given: list[Comparison], other: list[Comparison]) -> None:
    bounds = Bounds.of(given, [Time(v, 0) for v in (S, T, R)])
    found = placements(given)
    assert bounds.satisfiable == bool(found)
    if not found:
        return
    again = Bounds.of(bounds.conditions, [Time(v, 0) for v in (S, T, R)])
    for var in (S, T, R):
        latest = bounds.latest(Time(var, 0))
        most = max(by[var] for by in found)
        assert latest == most or (latest is None and most > RANGE[-1] // 3)
        assert bounds.earliest(Time(var, 0)) == min(by[var] for by in found)
        assert again.latest(Time(var, 0)) == latest
        assert again.earliest(Time(var, 0)) == bounds.earliest(Time(var, 0))
    for comparison in other:
        if bounds.implies(comparison):
            assert len(placements([*given, comparison])) == len(found)
    assert placements(list(bounds.conditions)) == found


@given(comparisons)
def test_conditions_are_as_few_as_can_be(given: list[Comparison]) -> None:
    times = [Time(v, 0) for v in (S, T, R)]
    bounds = Bounds.of(given, times)
    if not bounds.satisfiable:
        return
    conditions = list(bounds.conditions)
    for condition in conditions:
        without = [c for c in conditions if c is not condition]
        assert not Bounds.of(without, times).implies(condition)
