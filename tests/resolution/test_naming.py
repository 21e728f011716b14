"""The identity of a triple, where many of its variables look alike."""

from __future__ import annotations

import random

import pytest

from resolution.premises import premise_sets
from resolution.program import load
from resolution.substitution import image, instance
from resolution.terms import Atom, Comparison, Term, Time, Var
from resolution.triples import Triple

Pairs = list[tuple[int, int]]

ROW = [(n, n + 1) for n in range(7)]
CYCLE = [(n, (n + 1) % 8) for n in range(8)]
TWO_CYCLES = [(n, (n + 1) % 4) for n in range(4)] + [(4 + n, 4 + (n + 1) % 4) for n in range(4)]
UNEQUAL_CYCLES = [(n, (n + 1) % 3) for n in range(3)] + [(3 + n, 3 + (n + 1) % 5) for n in range(5)]
ALL = [(n, m) for n in range(8) for m in range(n)]
CASES: list[Pairs] = [ROW, CYCLE, TWO_CYCLES, UNEQUAL_CYCLES, ALL, []]


def of_objects(pairs: Pairs) -> Triple:
    """Eight objects, of which some pairs differ."""
    atoms = tuple(Atom("S", ("a", Var(f"Y{n}")), Time(None, 3)) for n in range(8))
    differ = tuple(Comparison(Var(f"Y{n}"), "!=", Var(f"Y{m}")) for n, m in pairs)
    return triple(atoms, differ)


def of_times(pairs: Pairs) -> Triple:
    """Eight times, of which some pairs are at most 5 apart."""
    atoms = tuple(Atom("S", ("a", "b"), Time(Var(f"T{n}"), 0)) for n in range(8))
    near = tuple(Comparison(Time(Var(f"T{n}"), 0), "<=", Time(Var(f"T{m}"), 5)) for n, m in pairs)
    return triple(atoms, near)


def triple(atoms: tuple[Atom, ...], comparisons: tuple[Comparison, ...]) -> Triple:
    program = load("stream S(x, y) delay 1. query S(X, Y, T).")
    (premises,) = premise_sets(program, program.queries[0])
    answer = Atom("S", ("a", "b"), Time(None, 0))
    return Triple(premises, answer, frozenset(), atoms, comparisons)


def written_otherwise(one: Triple, pick: random.Random, shift: int = 0) -> Triple:
    """The same triple with other names, in another order, its times counted from elsewhere."""
    names = [f"N{n}" for n in pick.sample(range(100), 8)]
    old = [a.args[1] if a.time == Time(None, 3) else a.time for a in one.hypotheses]
    by: dict[Var, Term | Time] = {}
    for var, name in zip(old, names, strict=True):
        if isinstance(var, Time):
            assert var.base is not None
            by[var.base] = Time(Var(name), pick.randrange(shift + 1))
        else:
            assert isinstance(var, Var)
            by[var] = Var(name)
    atoms = [instance(atom, by) for atom in one.hypotheses]
    comparisons = [image(c, by) for c in one.comparisons]
    pick.shuffle(atoms)
    pick.shuffle(comparisons)
    return triple(tuple(atoms), tuple(comparisons))


@pytest.mark.parametrize("pairs", CASES)
def test_names_and_order_are_no_part_of_it(pairs: Pairs) -> None:
    pick = random.Random(len(pairs))
    for one in (of_objects(pairs), of_times(pairs)):
        others = [written_otherwise(one, pick, shift=3) for _ in range(20)]
        assert {other.identity for other in others} == {one.identity}


def test_what_differs_in_its_comparisons_has_another() -> None:
    """A cycle of eight and two of four look alike from every single variable."""
    for make in (of_objects, of_times):
        found = [make(pairs).identity for pairs in CASES]
        assert len(set(found)) == len(found)
