"""Nothing is said twice: rules, facts and queries that are equal up to the names of variables."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import assert_never

from resolution.checks.scope import Scope
from resolution.errors import Diagnostic, Lines
from resolution.syntax import Atom, Constant, Query, Rule, Shifted, Term, Variable


def run(scope: Scope) -> Iterator[Diagnostic]:
    lines = Lines(scope.tree.source.text)
    seen: dict[Hashable, Rule | Query] = {}
    statements: list[Rule | Query] = [*scope.rules, *scope.queries]
    for statement in statements:
        first = seen.setdefault(_key(statement), statement)
        if first is not statement:
            line, _ = lines.place(first.span.start)
            what = _what(statement)
            message = f"this {what} stands in line {line} already"
            # A rule or a fact that is there already says nothing new, and does no harm.
            yield Diagnostic(
                statement.span, message, None, "error" if what == "query" else "warning"
            )


def _what(statement: Rule | Query) -> str:
    if isinstance(statement, Query):
        return "query"
    return "rule" if statement.body else "fact"


def _key(statement: Rule | Query) -> Hashable:
    """The same for two statements that differ in nothing but the names of their variables."""
    names: dict[str, int] = {}
    if isinstance(statement, Query):
        return ("query", _atom(statement.atom, names))
    literals = (statement.head, *statement.body)
    return tuple(
        _atom(part, names)
        if isinstance(part, Atom)
        else (_term(part.left, names), part.operator, _term(part.right, names))
        for part in literals
    )


def _atom(atom: Atom, names: dict[str, int]) -> Hashable:
    return (atom.predicate, *(_term(term, names) for term in atom.terms))


def _term(term: Term, names: dict[str, int]) -> Hashable:
    match term:
        case Variable(name="_"):
            return names.setdefault(f"_ {len(names)}", len(names)), "variable"
        case Variable():
            return names.setdefault(term.name, len(names)), "variable"
        case Shifted():
            return _term(term.variable, names), term.sign, term.amount
        case Constant():
            return (term.value,)
        case _:
            assert_never(term)
