"""Times and objects: a variable is of one sort, and a term stands where its sort belongs."""

from __future__ import annotations

from collections.abc import Iterator

from resolution.checks.declarations import too_large
from resolution.checks.scope import LARGEST, Scope, Sort, body_atoms, body_comparisons, variable_of
from resolution.errors import Diagnostic, quote
from resolution.syntax import Atom, Comparison, Constant, Shifted, Term
from resolution.terms import show


def run(scope: Scope) -> Iterator[Diagnostic]:
    for rule in scope.rules:
        sorts: dict[str, Sort] = {}
        if not rule.body and scope.kind(rule.head.predicate) != "rigid":
            continue  # a fact that should not be there: nobody knows what was meant
        for atom in (rule.head, *body_atoms(rule)):
            yield from _atom(scope, atom, sorts)
        for comparison in body_comparisons(rule):
            yield from _comparison(comparison, sorts)
    for query in scope.queries:
        yield from _atom(scope, query.atom, {})


def _atom(scope: Scope, atom: Atom, sorts: dict[str, Sort]) -> Iterator[Diagnostic]:
    for term, sort in scope.placed(atom):
        if sort == "time":
            yield from _time(term)
        elif isinstance(term, Shifted):
            message = f"an object cannot be shifted, and {quote(atom.predicate)} has one here"
            yield Diagnostic(term.span, message, "only the last argument is a time")
            continue
        variable = variable_of(term)
        if variable is not None and variable.name != "_":
            first = sorts.setdefault(variable.name, sort)
            if first != sort:
                message = f"{quote(variable.name)} is {_a(first)}, and stands here as {_a(sort)}"
                hint = "the last argument of a predicate is its time, the others are objects"
                yield Diagnostic(variable.span, message, hint)


def _time(term: Term) -> Iterator[Diagnostic]:
    """A term in the place of a time."""
    if isinstance(term, Shifted):
        yield from too_large(term.amount)
    if not isinstance(term, Constant):
        return
    hint = "a time is a natural number, `T`, `T+k` or `T-k`"
    match term.value:
        case str() as text:
            hint = f"{hint}; a variable begins with an upper-case letter"
            yield Diagnostic(term.span, f"{quote(show(text))} is no time", hint)
        case float() as value:
            yield Diagnostic(term.span, f"{value} is no time", hint)
        case int() as value if value < 0:
            yield Diagnostic(term.span, f"{value} is no time: there is none before 0", hint)
        case int() as value if value > LARGEST:
            yield Diagnostic(term.span, f"too large a time: the largest is {LARGEST}")


def _comparison(comparison: Comparison, sorts: dict[str, Sort]) -> Iterator[Diagnostic]:
    left, right = _side(comparison.left, sorts), _side(comparison.right, sorts)
    for term in (comparison.left, comparison.right):
        if isinstance(term, Shifted) and sorts.get(term.variable.name) == "object":
            message = f"{quote(term.variable.name)} is an object: only a time can be shifted"
            yield Diagnostic(term.span, message)
            return
    if {left, right} == {"time", "object"}:
        message = "a time and an object cannot be compared"
        named = [t for t in (comparison.left, comparison.right) if variable_of(t)]
        told = [f"{quote(_name(t))} is {_a(_side(t, sorts) or 'object')}" for t in named]
        yield Diagnostic(comparison.span, message, ", ".join(told) or None)
    elif "time" in (left, right):
        yield from _time(comparison.left)
        yield from _time(comparison.right)
        if comparison.operator == "!=":
            message = "`!=` does not stand between times"
            hint = "write two rules, one with `<` and one with `>`"
            yield Diagnostic(comparison.span, message, hint)


def _side(term: Term, sorts: dict[str, Sort]) -> Sort | None:
    """The sort of one side of a comparison; None for a constant, which may be either."""
    if isinstance(term, Shifted):
        return "time"
    variable = variable_of(term)
    return None if variable is None else sorts.get(variable.name)


def _name(term: Term) -> str:
    variable = variable_of(term)
    return "" if variable is None else variable.name


def _a(sort: Sort) -> str:
    return "a time" if sort == "time" else "an object"
