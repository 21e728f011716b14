"""Every predicate that is used is there, and is used as what it is."""

from __future__ import annotations

from collections.abc import Iterator

from resolution.checks.scope import Scope, body_atoms
from resolution.errors import Diagnostic, count, quote
from resolution.syntax import Atom, Rule, Stream

_SHOWN = 12  # names that a hint lists


def run(scope: Scope) -> Iterator[Diagnostic]:
    for rule in scope.rules:
        yield from _head(scope, rule)
        yield from _arity(scope, rule.head)
        for atom in body_atoms(rule):
            yield from _defined(scope, atom, "is not declared, and no rule derives it")
            yield from _arity(scope, atom)
    for query in scope.queries:
        atom = query.atom
        yield from _defined(scope, atom, "cannot be asked for: nothing defines it")
        if scope.kind(atom.predicate) == "rigid":
            message = f"{quote(atom.predicate)} is rigid: its facts are known, and have no time"
            hint = "ask for a predicate that a rule derives, or for a stream"
            yield Diagnostic(atom.name_span, message, hint)
        else:
            yield from _arity(scope, atom)


def _defined(scope: Scope, atom: Atom, reason: str) -> Iterator[Diagnostic]:
    name = atom.predicate
    if scope.kind(name) is None and name not in scope.unread:
        yield Diagnostic(atom.name_span, f"{quote(name)} {reason}", scope.similar.hint(name))


def _head(scope: Scope, rule: Rule) -> Iterator[Diagnostic]:
    name = rule.head.predicate
    shown = quote(name)
    match scope.kind(name), bool(rule.body):
        case "stream", True:
            message = f"{shown} is a stream: its facts arrive, and no rule derives them"
            yield Diagnostic(rule.head.name_span, message, "give the head another name")
        case "stream", False:
            message = f"{shown} is a stream: its facts arrive, and are not written in a program"
            yield Diagnostic(rule.span, message, "put the fact into a file of facts")
        case "rigid", True:
            message = f"{shown} is rigid: its facts are listed, and no rule derives them"
            yield Diagnostic(rule.head.name_span, message, "give the head another name")
        case "derived", False:
            message = f"{shown} is not rigid, so it has no facts in a program"
            hint = None
            if not any(other.body for other in scope.heads[name]):
                fields = ", ".join("abcdefgh"[: len(rule.head.terms)])
                hint = (
                    f"declare it: `rigid {name}({fields}).`" if name not in scope.unread else None
                )
            yield Diagnostic(rule.span, message, hint)


def _arity(scope: Scope, atom: Atom) -> Iterator[Diagnostic]:
    """The number of terms, against the declaration or else the first rule."""
    name, shown = atom.predicate, quote(atom.predicate)
    kind, expected, found = scope.kind(name), scope.arity(name), len(atom.terms)
    if kind == "derived" and expected == 0:
        message = f"{shown} has no time: the last argument of every predicate is its time"
        yield Diagnostic(atom.span, message)
        return
    if expected is None or expected == found:
        return
    message = f"{shown} has {count(expected, 'argument')}, not {found}"
    if kind == "rigid" and found == expected + 1:
        message = f"{shown} is rigid: it has {count(expected, 'argument')}, and no time"
        yield Diagnostic(atom.span, message)
        return
    declaration = scope.declared.get(name)
    hint: str | None = "the first rule for it says how many"
    if declaration is not None:
        names = [field.name for field in declaration.fields]
        if isinstance(declaration, Stream):
            names.append("the time")
        hint = f"{'it is' if len(names) == 1 else 'they are'} {_listed(names)}" if names else None
    yield Diagnostic(atom.span, message, hint)


def _listed(names: list[str]) -> str:
    """Names in a sentence, the middle of many left out."""
    if len(names) > _SHOWN:
        names = [*names[: _SHOWN - 2], "…", names[-1]]
    return ", ".join([*names[:-2], " and ".join(names[-2:])])
