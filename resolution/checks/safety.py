"""Every variable has an atom of the body to get its value from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from resolution.checks.scope import Scope, body_atoms, body_comparisons, variable_of
from resolution.errors import Diagnostic, quote
from resolution.syntax import Rule, Term, Variable


def run(scope: Scope) -> Iterator[Diagnostic]:
    for rule in scope.rules:
        if rule.body:
            yield from _rule(rule)
        elif scope.kind(rule.head.predicate) == "rigid":
            for variable in _variables(rule.head.terms):
                message = f"{quote(variable.name)} is a variable, and a fact has none"
                hint = "a constant begins with a lower-case letter, or stands in quotes"
                yield Diagnostic(variable.span, message, hint)


def _rule(rule: Rule) -> Iterator[Diagnostic]:
    if not any(body_atoms(rule)):
        message = "the body has no atom: nothing can support an answer"
        yield Diagnostic(rule.span, message)
        return
    bound = {v.name for atom in body_atoms(rule) for v in _variables(atom.terms)}
    told: set[str] = set()
    for variable in _variables(rule.head.terms):
        if variable.name == "_":
            message = "`_` cannot stand in a head: an answer has a value there"
            yield Diagnostic(variable.span, message)
        elif variable.name not in bound and variable.name not in told:
            told.add(variable.name)
            message = f"{quote(variable.name)} is in the head, but in no atom of the body"
            hint = "nothing gives it a value; a comparison does not"
            yield Diagnostic(variable.span, message, hint)
    for comparison in body_comparisons(rule):
        for variable in _variables((comparison.left, comparison.right)):
            if variable.name == "_":
                message = "`_` cannot stand in a comparison: it is another variable each time"
                yield Diagnostic(variable.span, message)
            elif variable.name not in bound and variable.name not in told:
                told.add(variable.name)
                message = f"{quote(variable.name)} is compared, but is in no atom of the body"
                yield Diagnostic(variable.span, message)


def _variables(terms: Iterable[Term]) -> Iterator[Variable]:
    return (v for v in map(variable_of, terms) if v is not None)
