"""What a program declares and defines, looked up by name: made once, used by every pass."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Literal, TypeAlias

from resolution.checks.similar import Similar
from resolution.syntax import (
    Atom,
    Comparison,
    Delay,
    Query,
    Rigid,
    Rule,
    Shifted,
    Stream,
    Term,
    Tree,
    Unit,
    Variable,
)
from resolution.terms import Value

Kind: TypeAlias = Literal["stream", "rigid", "derived"]
Sort: TypeAlias = Literal["time", "object"]

LARGEST = 2**53
"""The largest time point, delay or shift: JSON keeps it exact, and sums of many fit 64 bits."""

_PIECE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[^\s\ufeff]")


class Scope:
    """The statements of a tree by kind, and its predicates by name.

    Where something is declared twice the first declaration counts; the other is a mistake.
    """

    def __init__(
        self, tree: Tree, rows: Mapping[str, tuple[tuple[Value, ...], ...]] | None = None
    ) -> None:
        self.tree = tree
        self.rows = rows
        self.units: list[Unit] = []
        self.declarations: list[Stream | Rigid] = []
        self.delays: list[Delay] = []
        self.rules: list[Rule] = []  # facts among them: rules without a body
        self.queries: list[Query] = []
        for statement in tree.statements:
            match statement:
                case Unit():
                    self.units.append(statement)
                case Stream() | Rigid():
                    self.declarations.append(statement)
                case Delay():
                    self.delays.append(statement)
                case Rule():
                    self.rules.append(statement)
                case Query():
                    self.queries.append(statement)
        self.declared: dict[str, Stream | Rigid] = {}
        for declaration in self.declarations:
            self.declared.setdefault(declaration.name, declaration)
        self.heads: dict[str, list[Rule]] = {}  # of the derived predicates
        for rule in self.rules:
            if rule.head.predicate not in self.declared:
                self.heads.setdefault(rule.head.predicate, []).append(rule)
        self.unread = _unread(tree)
        self.similar = Similar([*self.declared, *self.heads])

    def kind(self, predicate: str) -> Kind | None:
        match self.declared.get(predicate):
            case Stream():
                return "stream"
            case Rigid():
                return "rigid"
        return "derived" if predicate in self.heads else None

    def arity(self, predicate: str) -> int | None:
        """How many terms an atom of the predicate has, the time among them."""
        declaration = self.declared.get(predicate)
        if declaration is not None:
            return len(declaration.fields) + isinstance(declaration, Stream)
        rules = self.heads.get(predicate)
        return len(rules[0].head.terms) if rules else None

    def placed(self, atom: Atom) -> Iterator[tuple[Term, Sort]]:
        """The terms of an atom with the sort of their place; none if the atom itself is wrong."""
        if self.arity(atom.predicate) != len(atom.terms):
            return
        last = -1 if self.kind(atom.predicate) == "rigid" else len(atom.terms) - 1
        for place, term in enumerate(atom.terms):
            yield term, "time" if place == last else "object"

    def atoms(self) -> Iterator[Atom]:
        """Every atom of rules and queries."""
        for rule in self.rules:
            yield rule.head
            yield from body_atoms(rule)
        for query in self.queries:
            yield query.atom


def body_atoms(rule: Rule) -> Iterator[Atom]:
    return (literal for literal in rule.body if isinstance(literal, Atom))


def body_comparisons(rule: Rule) -> Iterator[Comparison]:
    return (literal for literal in rule.body if isinstance(literal, Comparison))


def variable_of(term: Term) -> Variable | None:
    """The variable in a term, shifted or not."""
    if isinstance(term, Shifted):
        return term.variable
    return term if isinstance(term, Variable) else None


def _unread(tree: Tree) -> frozenset[str]:
    """The names and signs between the statements: parts of the text that could not be read."""
    text = tree.source.text
    pieces: set[str] = set()
    at = 0
    read = sorted(
        [node.span for node in (*tree.statements, *tree.comments)], key=lambda span: span.start
    )
    for span in read:
        if span.start > at and not text[at : span.start].isspace():
            pieces.update(_PIECE.findall(text, at, span.start))
        at = max(at, span.end)
    pieces.update(_PIECE.findall(text, at))
    return frozenset(pieces)
