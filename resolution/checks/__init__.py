"""Everything that can be wrong with a program that could be read.

Each pass is a module with `run(scope)`, finds one family of mistakes, and looks at the whole
program; no pass stops another. This is their order; what they find is told in that of the text.
"""

from __future__ import annotations

from collections.abc import Mapping

from resolution.checks import (
    declarations,
    predicates,
    recursion,
    repeats,
    safety,
    sorts,
    types,
    unused,
)
from resolution.checks.scope import Scope
from resolution.errors import Diagnostic
from resolution.syntax import Tree
from resolution.terms import Value

PASSES = (
    declarations,  # units, streams, rigid predicates and delays, each by itself and side by side
    predicates,  # every predicate that is used is there, and is used as what it is
    sorts,  # times and objects
    safety,  # every variable has an atom to get its value from
    types,  # constants and variables against the declared types
    recursion,  # no predicate needs itself
    repeats,  # nothing is said twice
    unused,  # everything serves a query
)


def check(
    tree: Tree, rigid: Mapping[str, tuple[tuple[Value, ...], ...]] | None = None
) -> tuple[Diagnostic, ...]:
    """All errors and warnings of a program, in the order of its text.

    `rigid` holds the rows of the rigid predicates that are read from files, where they are known.
    A tree from `parse_partial` will do: names that stand in what could not be read count as known.
    """
    scope = Scope(tree, rigid)
    found = [diagnostic for each in PASSES for diagnostic in each.run(scope)]
    return tuple(sorted(found, key=lambda diagnostic: diagnostic.span.start))


__all__ = ["PASSES", "check"]
