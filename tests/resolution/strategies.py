"""Random syntax trees, for the laws of parser, printer and checks."""

from __future__ import annotations

from functools import cache

from hypothesis import strategies as st

from resolution.syntax import (
    Amount,
    Atom,
    Comparison,
    Constant,
    Delay,
    Duration,
    Field,
    Number,
    Query,
    Rigid,
    Rule,
    Shifted,
    Statement,
    Stream,
    Term,
    Tree,
    Unit,
    Variable,
)
from resolution.terms import constant

KEYWORDS = ["unit", "stream", "delay", "rigid", "query", "from"]
_UNITS = ["ms", "s", "m", "h", "d", "w"]
_OPERATORS = ["=", "!=", "<", "<=", ">", ">="]

lower = st.sampled_from([*KEYWORDS, "not", "temp", "wt7"]) | st.from_regex(
    r"[a-z][A-Za-z0-9_]{0,6}", fullmatch=True
)
upper = st.from_regex(r"[A-Z][A-Za-z0-9_]{0,6}", fullmatch=True)
names = lower | upper

strings = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ['"', "\\", "% no comment", "a\nb", "n/a", "1", "X", "_", "", "\0", "é", "日本", "\u2028"]
)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)


def variables() -> st.SearchStrategy[Variable]:
    return st.builds(Variable, st.just("_") | upper | upper.map(lambda name: f"_{name}"))


def constants() -> st.SearchStrategy[Constant]:
    return st.builds(Constant, lower | strings | numbers.map(constant))


def amounts(least: int = 0) -> st.SearchStrategy[Amount]:
    value = st.integers(least, 10**6)
    return st.builds(Number, value) | st.builds(Duration, value, st.sampled_from(_UNITS))


def terms() -> st.SearchStrategy[Term]:
    shifted = st.builds(Shifted, variables(), st.sampled_from("+-"), amounts())
    return variables() | constants() | shifted


def atoms() -> st.SearchStrategy[Atom]:
    return st.builds(Atom, names, st.lists(terms(), max_size=4).map(tuple))


def statements() -> st.SearchStrategy[Statement]:
    """Every kind of statement: each can be read, few make sense."""
    comparisons = st.builds(Comparison, terms(), st.sampled_from(_OPERATORS), terms())
    body = st.lists(atoms() | comparisons, max_size=6).map(tuple)
    fields = st.lists(st.builds(Field, names, st.none() | names), max_size=4).map(tuple)
    durations = st.builds(Duration, st.integers(0, 10**6), st.sampled_from(_UNITS))
    return st.one_of(
        st.builds(Unit, durations),
        st.builds(Stream, names, fields, amounts(least=-5)),
        st.builds(Delay, atoms(), amounts(least=-5)),
        st.builds(Rigid, names, fields, st.none() | strings),
        st.builds(Rule, atoms(), body),
        st.builds(Query, atoms()),
    )


@cache  # a strategy made anew for each draw takes most of its time
def trees() -> st.SearchStrategy[Tree]:
    return st.builds(Tree, st.lists(statements(), max_size=8).map(tuple))
