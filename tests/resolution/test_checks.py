"""Every mistake that is told, word for word.

Each `errors/NAME.rules` says in its first line what it shows; `errors/NAME.errors` is what is told
about it, empty if nothing is wrong.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from resolution.checks import PASSES, check
from resolution.checks.scope import Scope
from resolution.errors import Diagnostic, report
from resolution.parser import parse, parse_partial
from resolution.syntax import Tree
from tests.resolution.strategies import trees

CASES = sorted((Path(__file__).parent / "errors").glob("*.rules"))


def found(path: Path) -> tuple[Tree, list[Diagnostic]]:
    tree, mistakes = parse_partial(path.read_text(encoding="utf-8"), path.name)
    return tree, sorted((*mistakes, *check(tree)), key=lambda mistake: mistake.span.start)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_golden(path: Path) -> None:
    tree, mistakes = found(path)
    told = report(mistakes, tree.source)
    expected = path.with_suffix(".errors").read_text(encoding="utf-8")
    assert told == expected.removesuffix("\n")


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_golden_says_what_it_shows(path: Path) -> None:
    assert path.read_text(encoding="utf-8").startswith("% Shows: ")


@pytest.mark.parametrize("each", PASSES, ids=lambda each: each.__name__.rpartition(".")[2])
def test_some_golden_needs_each_pass(each: object) -> None:
    trees = [parse_partial(path.read_text(encoding="utf-8"))[0] for path in CASES]
    assert any(list(each.run(Scope(tree))) for tree in trees)  # type: ignore[attr-defined]


@given(trees())
def test_no_tree_upsets_the_checks(tree: Tree) -> None:
    for mistake in check(tree):
        assert mistake.message
        assert report([mistake], tree.source)


RIGID = 'rigid Near(a, n: int) from "near.csv". A(X, T) <- S(X, T), Near(X, _). query A(X, T).'


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ((("wt1", 1),), []),
        ((), ["`Near` has no facts: what needs it has no answers"]),
        ((("wt1", 1), ("wt2",)), ["row 2 of `Near` has 1 value"]),
        ((("wt1", 1), ("wt2", "x")), ["row 2 of `Near` is not of its types"]),
        ((("wt1", 1.5),), ["row 1 of `Near` is not of its types"]),
    ],
)
def test_rows_from_files(rows: tuple[tuple[str | int, ...], ...], told: list[str]) -> None:
    tree = parse(f"stream S(x) delay 0. {RIGID}")
    assert [mistake.message for mistake in check(tree, {"Near": rows})] == told


def test_a_cycle_of_many_predicates_is_shortened() -> None:
    rules = "".join(f"p{i}(T) <- p{(i + 1) % 2000}(T).\n" for i in range(2000))
    (mistake,) = check(parse(f"{rules}query p0(T)."))
    assert mistake.message.endswith("p8 -> p9 -> … -> p0")


def test_a_long_chain_is_no_recursion() -> None:
    rules = "".join(f"p{i}(X, T) <- p{i + 1}(X, T).\n" for i in range(3000))
    tree = parse(f"stream p3000(x: int) delay 0.\n{rules}query p0(X, T).\nquery p0(high, T).")
    assert [mistake.message for mistake in check(tree)] == [
        "`high` is a string; argument 1 of `p0` is a whole number"
    ]
