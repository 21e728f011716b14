"""Everything serves a query; and there is one."""

from __future__ import annotations

from collections.abc import Iterator

from resolution.checks.scope import Scope, body_atoms
from resolution.errors import Diagnostic, quote
from resolution.syntax import Rigid, Span, Stream


def run(scope: Scope) -> Iterator[Diagnostic]:
    if scope.unread:
        return  # what could not be read may hold the query, or the use
    if not scope.queries:
        yield _no_query(scope)
        return
    used = _used(scope)
    listed = {rule.head.predicate for rule in scope.rules}
    for declaration in scope.declared.values():
        name = declaration.name
        if name not in used:
            what = "stream" if isinstance(declaration, Stream) else "rigid predicate"
            message = f"no query uses the {what} {quote(name)}"
            yield Diagnostic(declaration.name_span, message, None, "warning")
        elif isinstance(declaration, Rigid) and name not in listed and _empty(scope, declaration):
            message = f"{quote(name)} has no facts: what needs it has no answers"
            hint = f'list them, as `{name}(…).`, or name a file: `from "….csv"`'
            yield Diagnostic(declaration.name_span, message, hint, "warning")
    for name, rules in scope.heads.items():
        if name not in used:
            rule = "the rule" if len(rules) == 1 else f"the {len(rules)} rules"
            message = f"no query uses {rule} for {quote(name)}"
            yield Diagnostic(rules[0].head.name_span, message, None, "warning")


def _no_query(scope: Scope) -> Diagnostic:
    end = scope.tree.statements[-1].span.end if scope.tree.statements else 0
    hint = None
    if scope.heads:
        atom = next(reversed(scope.heads.values()))[0].head
        terms = [f"X{place}" for place in range(1, len(atom.terms))]
        hint = f"add one, such as `query {atom.predicate}({', '.join([*terms, 'T'])}).`"
    return Diagnostic(Span(end, end), "there is no query, so there is nothing to answer", hint)


def _used(scope: Scope) -> set[str]:
    """Every predicate that some query needs, or means where its name is misspelt."""
    used: set[str] = set()
    waiting = [query.atom.predicate for query in scope.queries]
    while waiting:
        name = waiting.pop()
        if scope.kind(name) is None:
            name = scope.similar.closest(name) or name
        if name not in used:
            used.add(name)
            rules = scope.heads.get(name, ())
            waiting.extend(atom.predicate for rule in rules for atom in body_atoms(rule))
    return used


def _empty(scope: Scope, rigid: Rigid) -> bool:
    """Whether no file brings facts; one that is not read yet may."""
    return rigid.source is None or (scope.rows is not None and not scope.rows.get(rigid.name))
