"""The syntax tree of a program, as written: data only.

Nodes compare by what they say, not by where they stand: a span takes no part in equality, so that
`parse(print(tree)) == tree` can be asked. Meaning (sorts, time points, delays) is given to a tree
by `resolution.program`, after `resolution.checks` has found no mistake in it.
"""

# ruff: noqa: RUF009  (a field specifier, not a default that is shared)
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Operator: TypeAlias = Literal["=", "!=", "<", "<=", ">", ">="]


@dataclass(frozen=True, slots=True)
class Span:
    """Offsets into the program text, end exclusive. Line and column are computed when shown."""

    start: int
    end: int


NOWHERE = Span(0, 0)


def _span() -> Span:
    return field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Number:
    """A whole number of time points."""

    value: int
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Duration:
    """A length of time, `90s`: the number as written, and one of ms, s, m, h, d, w."""

    value: int
    unit: str
    span: Span = _span()


Amount: TypeAlias = Number | Duration


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable; `_` is anonymous, and each occurrence of it another variable."""

    name: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Constant:
    """A name, string or number. `high` and `"high"` are one, so are `1` and `1.0`."""

    value: str | int | float
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Shifted:
    """A time term `T+k` or `T-k`."""

    variable: Variable
    sign: Literal["+", "-"]
    amount: Amount
    span: Span = _span()


Term: TypeAlias = Variable | Constant | Shifted


@dataclass(frozen=True, slots=True)
class Atom:
    """`Temp(X, high, T+1)`, all its terms in order, the time among them."""

    predicate: str
    terms: tuple[Term, ...]
    span: Span = _span()
    name_span: Span = _span()


@dataclass(frozen=True, slots=True)
class Comparison:
    left: Term
    operator: Operator
    right: Term
    span: Span = _span()


Literal_: TypeAlias = Atom | Comparison
"""What may stand in a body. Negation, metric operators and aggregates will join this union."""


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    type: str | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Unit:
    duration: Duration
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Stream:
    """`stream Temp(device, level) delay 1.`"""

    name: str
    fields: tuple[Field, ...]
    delay: Amount
    span: Span = _span()
    name_span: Span = _span()


@dataclass(frozen=True, slots=True)
class Delay:
    """`delay Temp(wt7, _) = 4.` The pattern's terms are the object fields only."""

    pattern: Atom
    delay: Amount
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Rigid:
    """`rigid Near(a, b).`, or with `from "near.csv"`."""

    name: str
    fields: tuple[Field, ...]
    source: str | None = None
    span: Span = _span()
    name_span: Span = _span()


@dataclass(frozen=True, slots=True)
class Rule:
    """`head <- body.`; an empty body is a fact, which only a rigid predicate may have."""

    head: Atom
    body: tuple[Literal_, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Query:
    atom: Atom
    span: Span = _span()


Statement: TypeAlias = Unit | Stream | Delay | Rigid | Rule | Query


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment as written, its mark included."""

    text: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Source:
    """A program text and the name that messages give it."""

    text: str
    name: str = "program"


@dataclass(frozen=True, slots=True)
class Tree:
    """A parsed program: its statements in order, and the text they came from."""

    statements: tuple[Statement, ...]
    comments: tuple[Comment, ...] = field(default=(), compare=False)
    source: Source = field(default=Source(""), compare=False, repr=False)
