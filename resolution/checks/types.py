"""Constants and variables against the declared types.

A place of a derived predicate has the types that its rules can put there, so that a constant in a
query is checked against the streams below it. Whatever is not declared is not known, and passes: so
does a place where a rule puts a constant, or a program without types would have some all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from resolution.checks.recursion import dependencies
from resolution.checks.scope import Scope, body_atoms, body_comparisons
from resolution.errors import Diagnostic, count, quote
from resolution.syntax import Atom, Comparison, Constant, Rigid, Rule, Term, Variable
from resolution.terms import Value, show

Kinds: TypeAlias = frozenset[str]
"""What a value may be: `string`, `whole`, `decimal`; a float may be whole."""

_KINDS: Mapping[str, Kinds] = {
    "string": frozenset({"string"}),
    "int": frozenset({"whole"}),
    "float": frozenset({"whole", "decimal"}),
}
_STRING = _KINDS["string"]


def run(scope: Scope) -> Iterator[Diagnostic]:
    types = _Types(scope)
    for rule in scope.rules:
        if rule.body:
            yield from _rule(types, rule)
        else:
            yield from _constants(types, rule.head)
    for query in scope.queries:
        yield from _constants(types, query.atom)
    for delay in scope.delays:
        yield from _constants(types, delay.pattern)
    yield from _rows(types, scope)


class _Types:
    """The kinds of every object place of every predicate; None where they are not known."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self._places: dict[str, tuple[Kinds | None, ...]] = {
            name: tuple(_KINDS.get(field.type or "") for field in declaration.fields)
            for name, declaration in scope.declared.items()
        }
        for name in _bottom_up(scope):
            self._places[name] = self._derived(name)

    def of(self, atom: Atom) -> Iterator[tuple[int, Term, Kinds]]:
        """The object terms of an atom whose kinds are known, with their places from 0."""
        places = self._places.get(atom.predicate, ())
        for place, (term, kinds) in enumerate(zip(atom.terms, places, strict=False)):
            if kinds is not None:
                yield place, term, kinds

    def variables(self, rule: Rule) -> dict[str, Kinds]:
        """What the variables of a rule may be, by the atoms of its body; empty: nothing at all."""
        known: dict[str, Kinds] = {}
        for atom in body_atoms(rule):
            for _, term, kinds in self.of(atom):
                if isinstance(term, Variable) and term.name != "_":
                    known[term.name] = known.get(term.name, kinds) & kinds
        return known

    def _derived(self, name: str) -> tuple[Kinds | None, ...]:
        rules = self.scope.heads[name]
        places: list[Kinds | None] = [frozenset()] * (len(rules[0].head.terms) - 1)
        for rule in rules:
            variables = self.variables(rule)
            for place, term in zip(range(len(places)), rule.head.terms, strict=False):
                before, kinds = places[place], None
                if isinstance(term, Variable):
                    kinds = variables.get(term.name) or None
                places[place] = None if before is None or kinds is None else before | kinds
        return tuple(places)


def _bottom_up(scope: Scope) -> Iterator[str]:
    """The derived predicates, each after those it needs; without recursion in either sense."""
    needs = dependencies(scope)
    entered: set[str] = set()
    for root in needs:
        if root in entered:
            continue
        entered.add(root)
        path = [(root, iter(needs[root]))]
        while path:
            name, rest = path[-1]
            below = next((other for other in rest if other not in entered), None)
            if below is None:
                path.pop()
                yield name
            else:
                entered.add(below)
                path.append((below, iter(needs[below])))


def _rule(types: _Types, rule: Rule) -> Iterator[Diagnostic]:
    known: dict[str, tuple[Kinds, str]] = {}
    for atom in body_atoms(rule):
        yield from _constants(types, atom)
        for _, term, kinds in types.of(atom):
            if not isinstance(term, Variable) or term.name == "_":
                continue
            before, where = known.get(term.name, (kinds, atom.predicate))
            if kinds and before and not kinds & before:
                message = (
                    f"{quote(term.name)} is {_words(before)} in {quote(where)} and "
                    f"{_words(kinds)} in {quote(atom.predicate)}: these are never equal"
                )
                yield Diagnostic(term.span, message, None, "warning")
            known[term.name] = (before & kinds or before, where)
    for comparison in body_comparisons(rule):
        yield from _comparison(comparison, {name: kinds for name, (kinds, _) in known.items()})


def _constants(types: _Types, atom: Atom) -> Iterator[Diagnostic]:
    for place, term, kinds in types.of(atom):
        if isinstance(term, Constant) and kinds and _kind(term.value) not in kinds:
            declaration = types.scope.declared.get(atom.predicate)
            if declaration is None:
                where = f"argument {place + 1} of {quote(atom.predicate)}"
            else:
                where = (
                    f"the field {quote(declaration.fields[place].name)} of {quote(atom.predicate)}"
                )
            message = f"{quote(show(term.value))} is {_a(term.value)}; {where} is {_words(kinds)}"
            yield Diagnostic(term.span, message, _quoting(term.value, kinds))


def _comparison(comparison: Comparison, known: Mapping[str, Kinds]) -> Iterator[Diagnostic]:
    left, right = _side(comparison.left, known), _side(comparison.right, known)
    if not left or not right or left & right:
        return
    ordered = comparison.operator not in ("=", "!=")
    if ordered and (left <= _STRING) == (right <= _STRING):
        return  # numbers are in an order, whole or not
    variables = isinstance(comparison.left, Variable), isinstance(comparison.right, Variable)
    if not any(variables):
        return
    relation = "in no order" if ordered else "never equal"
    first, second = (
        f"{quote(t.name if isinstance(t, Variable) else show(t.value))} is {_words(kinds)}"
        for t, kinds in ((comparison.left, left), (comparison.right, right))
        if isinstance(t, Variable | Constant)
    )
    message = f"{first}, {second}: they are {relation}"
    yield Diagnostic(comparison.span, message, None, "warning" if all(variables) else "error")


def _side(term: Term, known: Mapping[str, Kinds]) -> Kinds | None:
    if isinstance(term, Constant):
        return frozenset({_kind(term.value)})
    return known.get(term.name) if isinstance(term, Variable) else None


def _rows(types: _Types, scope: Scope) -> Iterator[Diagnostic]:
    """The first wrong row of each rigid predicate that is read from a file."""
    for declaration in scope.declared.values():
        if not isinstance(declaration, Rigid):
            continue
        kinds = [_KINDS.get(field.type or "") for field in declaration.fields]
        for number, row in enumerate((scope.rows or {}).get(declaration.name, ()), 1):
            if len(row) != len(kinds):
                message = (
                    f"row {number} of {quote(declaration.name)} has {count(len(row), 'value')}"
                )
                yield Diagnostic(declaration.span, message, f"it has {count(len(kinds), 'field')}")
                break
            wrong = [v for v, k in zip(row, kinds, strict=True) if k and _kind(v) not in k]
            if wrong:
                message = f"row {number} of {quote(declaration.name)} is not of its types"
                hint = f"{quote(show(wrong[0]))} is {_a(wrong[0])}"
                yield Diagnostic(declaration.span, message, hint)
                break


def _kind(value: Value) -> str:
    match value:
        case str():
            return "string"
        case int():
            return "whole"
        case _:
            return "decimal"


def _a(value: Value) -> str:
    return _words(frozenset({_kind(value)}))


def _words(kinds: Kinds) -> str:
    words = ["a string"] if "string" in kinds else []
    if kinds >= _KINDS["float"]:
        words.append("a number")
    elif "decimal" in kinds:
        words.append("a decimal number")
    elif "whole" in kinds:
        words.append("a whole number")
    return " or ".join(words)


def _quoting(value: Value, kinds: Kinds) -> str | None:
    if isinstance(value, str):
        return None
    return f'a string of digits stands in quotes: `"{show(value)}"`' if kinds <= _STRING else None
