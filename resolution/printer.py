"""Syntax tree to text, in one layout.

`show` prints a tree; reading it again gives the same tree. `format` prints the tree of a text with
its comments: one on a line of its own stays before the statement or literal that it precedes, one
behind something stays behind it, and one in the middle of something goes before it. None is lost.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import assert_never

from resolution import terms
from resolution.parser import parse
from resolution.syntax import (
    Amount,
    Atom,
    Comment,
    Comparison,
    Constant,
    Delay,
    Duration,
    Field,
    Literal_,
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

WIDTH = 100  # a longer rule has one literal a line
_ALIGNED = 60  # comments behind neighbouring lines stand in one column, if it is not beyond this
_INDENT = "    "


def show(tree: Tree) -> str:
    """The text of a tree, without comments; a blank line between kinds of statement."""
    lines: list[str] = []
    before: Statement | None = None
    for statement in tree.statements:
        if before is not None and _group(before) != _group(statement):
            lines.append("")
        lines.extend(line.text for line in _lay_out(statement, _Asides()))
        before = statement
    return _joined(lines)


def format(text: str, name: str = "program") -> str:
    """A program text in the one layout. Raises `ProgramErrors` if it cannot be read."""
    return _Format(parse(text, name)).text()


@dataclass(slots=True)
class _Line:
    text: str
    comment: str | None = None


@dataclass(slots=True)
class _Asides:
    """The comments that belong to one statement."""

    before: list[str] = field(default_factory=list)
    arrow: str | None = None  # behind the arrow of a rule
    over: dict[int, list[str]] = field(default_factory=dict)  # on lines before a literal
    behind: dict[int, str] = field(default_factory=dict)  # behind a literal that is not the last
    end: str | None = None  # behind the statement

    @property
    def in_body(self) -> bool:
        return bool(self.arrow or self.over or self.behind)


class _Format:
    """One walk over the statements and comments of a text, in their order."""

    def __init__(self, tree: Tree) -> None:
        self._statements = tree.statements
        self._comments = deque(tree.comments)
        self._source = tree.source.text
        self._lines: list[_Line] = []
        self._at = 0  # everything before this place of the source is printed

    def text(self) -> str:
        for statement in self._statements:
            for comment in self._comments_before(statement.span.start):
                self._own_line(comment)
            self._gap(statement.span.start)
            inner = self._comments_before(statement.span.end)
            self._at = statement.span.end
            asides = _Asides()
            if self._comments and not self._breaks(self._at, self._comments[0].span.start):
                last = self._comments.popleft()
                asides.end, self._at = last.text, last.span.end
            if isinstance(statement, Rule):
                self._place(statement, inner, asides)
            else:
                asides.before = [comment.text for comment in inner]
            self._lines.extend(_lay_out(statement, asides))
        for comment in self._comments:
            self._own_line(comment)
        return _joined(_aligned(self._lines))

    def _comments_before(self, place: int) -> list[Comment]:
        found = []
        while self._comments and self._comments[0].span.start < place:
            found.append(self._comments.popleft())
        return found

    def _own_line(self, comment: Comment) -> None:
        self._gap(comment.span.start)
        self._lines.append(_Line(comment.text))
        self._at = comment.span.end

    def _gap(self, until: int) -> None:
        """One blank line where the source has some."""
        if self._lines and self._source.count("\n", self._at, until) > 1:
            self._lines.append(_Line(""))

    def _breaks(self, start: int, end: int) -> bool:
        return self._source.find("\n", start, end) >= 0

    def _place(self, rule: Rule, inner: Sequence[Comment], asides: _Asides) -> None:
        """Comments in the body of a rule stay with its literals."""
        last = len(rule.body) - 1
        following = 0  # the first literal behind the comment
        for comment in inner:
            at, text = comment.span.start, comment.text
            while following <= last and rule.body[following].span.start < at:
                following += 1
            literal = following - 1
            end = rule.body[literal].span.end if literal >= 0 else rule.head.span.end
            if last < 0 or at < rule.head.span.end:
                asides.before.append(text)
            elif at < end:  # in the middle of a literal
                asides.over.setdefault(literal, []).append(text)
            elif self._breaks(end, at):
                asides.over.setdefault(min(following, last), []).append(text)
            elif literal < 0:
                asides.arrow = text
            elif literal < last:
                asides.behind[literal] = text
            elif asides.end is None:
                asides.end = text
            else:
                asides.over.setdefault(last, []).append(text)


def _lay_out(statement: Statement, asides: _Asides) -> Iterator[_Line]:
    for comment in asides.before:
        yield _Line(comment)
    text = _statement(statement)
    if not (isinstance(statement, Rule) and statement.body) or (
        len(text) <= WIDTH and not asides.in_body
    ):
        yield _Line(text, asides.end)
        return
    yield _Line(f"{_atom(statement.head)} <-", asides.arrow)
    last = len(statement.body) - 1
    for place, literal in enumerate(statement.body):
        for comment in asides.over.get(place, ()):
            yield _Line(_INDENT + comment)
        if place < last:
            yield _Line(f"{_INDENT}{_literal(literal)},", asides.behind.get(place))
        else:
            yield _Line(f"{_INDENT}{_literal(literal)}.", asides.end)


def _aligned(lines: Sequence[_Line]) -> Iterator[str]:
    """Lines with what is behind them, in one column for neighbours."""
    for commented, run in groupby(lines, key=lambda line: line.comment is not None):
        neighbours = list(run)
        if not commented:
            yield from (line.text for line in neighbours)
            continue
        column = max((len(n.text) for n in neighbours if len(n.text) <= _ALIGNED), default=0)
        yield from (f"{line.text:<{column}}  {line.comment}" for line in neighbours)


def _joined(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _group(statement: Statement) -> str:
    """Statements of one group stand together."""
    match statement:
        case Rule(body=()):
            return "facts"
        case Rule():
            return "rules"
        case Query():
            return "queries"
        case _:
            return "declarations"


def _statement(statement: Statement) -> str:
    match statement:
        case Unit():
            return f"unit {_amount(statement.duration)}."
        case Stream():
            fields = _fields(statement.fields)
            return f"stream {statement.name}({fields}) delay {_amount(statement.delay)}."
        case Delay():
            return f"delay {_atom(statement.pattern)} = {_amount(statement.delay)}."
        case Rigid():
            text = f"rigid {statement.name}({_fields(statement.fields)})"
            if statement.source is not None:
                text += f" from {json.dumps(statement.source, ensure_ascii=False)}"
            return f"{text}."
        case Rule(body=()):
            return f"{_atom(statement.head)}."
        case Rule():
            return f"{_atom(statement.head)} <- {', '.join(map(_literal, statement.body))}."
        case Query():
            return f"query {_atom(statement.atom)}."
        case _:
            assert_never(statement)


def _fields(fields: Sequence[Field]) -> str:
    return ", ".join(f.name if f.type is None else f"{f.name}: {f.type}" for f in fields)


def _literal(literal: Literal_) -> str:
    match literal:
        case Atom():
            return _atom(literal)
        case Comparison():
            return f"{_term(literal.left)} {literal.operator} {_term(literal.right)}"
        case _:
            assert_never(literal)


def _atom(atom: Atom) -> str:
    return f"{atom.predicate}({', '.join(map(_term, atom.terms))})"


def _term(term: Term) -> str:
    match term:
        case Variable():
            return term.name
        case Constant():
            return terms.show(term.value)
        case Shifted():
            return f"{term.variable.name}{term.sign}{_amount(term.amount)}"
        case _:
            assert_never(term)


def _amount(amount: Amount) -> str:
    match amount:
        case Number():
            return str(amount.value)
        case Duration():
            return f"{amount.value}{amount.unit}"
        case _:
            assert_never(amount)
