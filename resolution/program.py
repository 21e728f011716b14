"""A checked program as the logic sees it: sorts known, durations in time points, rigid facts in.

`compile_program` gives a syntax tree its meaning. It trusts `resolution.checks`: a tree with
mistakes in it is refused by `load`, never half understood.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from resolution import syntax
from resolution.delays import Delays, Pattern
from resolution.errors import ProgramErrors
from resolution.terms import Atom, Comparison, Term, Time, Value, Var

Rows: TypeAlias = Mapping[str, tuple[tuple[Value, ...], ...]]
"""The facts of each rigid predicate that has a file."""

MILLISECONDS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    type: str | None


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule; `number` counts the rules of the program from 1."""

    number: int
    head: Atom
    body: tuple[Atom, ...]
    comparisons: tuple[Comparison, ...]
    span: syntax.Span

    def __str__(self) -> str:
        return f"{self.head} <- {', '.join(map(str, (*self.body, *self.comparisons)))}"


@dataclass(frozen=True, slots=True)
class Query:
    atom: Atom

    @property
    def name(self) -> str:
        return self.atom.predicate


@dataclass(frozen=True)
class Program:
    unit: int
    """The length of one time point, in milliseconds."""
    streams: Mapping[str, tuple[Field, ...]]
    delays: Delays
    rigid: Mapping[str, tuple[tuple[Value, ...], ...]]
    rules: tuple[Rule, ...]
    queries: tuple[Query, ...]
    source: syntax.Source

    def rules_for(self, predicate: str) -> tuple[Rule, ...]:
        return self._by_head.get(predicate, ())

    @cached_property
    def _by_head(self) -> Mapping[str, tuple[Rule, ...]]:
        heads: dict[str, list[Rule]] = {}
        for rule in self.rules:
            heads.setdefault(rule.head.predicate, []).append(rule)
        return {predicate: tuple(rules) for predicate, rules in heads.items()}


def load(text: str, name: str = "program", rigid: Rows | None = None) -> Program:
    """A program from its text. Raises ProgramErrors, with all mistakes, where there are any."""
    from resolution.checks import check
    from resolution.parser import parse_partial

    tree, mistakes = parse_partial(text, name)
    found = (*mistakes, *check(tree, rigid))
    errors = tuple(d for d in found if d.severity == "error")
    if errors:
        raise ProgramErrors(errors, tree.source)
    return compile_program(tree, rigid)


def compile_program(tree: syntax.Tree, rigid: Rows | None = None) -> Program:
    """The meaning of a tree in which `check` found no error."""
    return _Compiler(tree, rigid or {}).program()


class _Compiler:
    def __init__(self, tree: syntax.Tree, rigid: Rows) -> None:
        self._tree = tree
        self._rows = rigid
        self._unit = next(
            (_milliseconds(s.duration) for s in tree.statements if isinstance(s, syntax.Unit)),
            MILLISECONDS["s"],
        )
        self._rigid = {s.name for s in tree.statements if isinstance(s, syntax.Rigid)}

    def program(self) -> Program:
        streams: dict[str, tuple[Field, ...]] = {}
        own: dict[str, int] = {}
        delays: dict[str, dict[Pattern, int]] = {}
        rigid: dict[str, list[tuple[Value, ...]]] = {}
        rules: list[Rule] = []
        queries: list[Query] = []
        statements = sorted(self._tree.statements, key=lambda s: not isinstance(s, syntax.Stream))
        for statement in statements:
            match statement:
                case syntax.Stream():
                    fields = tuple(Field(f.name, f.type) for f in statement.fields)
                    streams[statement.name] = fields
                    own[statement.name] = self._points(statement.delay)
                    delays[statement.name] = {}
                case syntax.Delay():
                    pattern = tuple(
                        t.value if isinstance(t, syntax.Constant) else None
                        for t in statement.pattern.terms
                    )
                    known = delays[statement.pattern.predicate]
                    bound = self._points(statement.delay)
                    known[pattern] = max(bound, known.get(pattern, bound))
                case syntax.Rigid():
                    rows = rigid.setdefault(statement.name, [])
                    rows.extend(self._rows.get(statement.name, ()))
                case syntax.Rule(body=()):
                    rigid.setdefault(statement.head.predicate, []).append(_values(statement.head))
                case syntax.Rule():
                    rules.append(self._rule(len(rules) + 1, statement))
                case syntax.Query():
                    queries.append(Query(self._atom(statement.atom, _Names())))
                case syntax.Unit():
                    pass
        for name, fields in streams.items():  # where no pattern says otherwise
            delays[name].setdefault((None,) * len(fields), own[name])
        return Program(
            self._unit,
            streams,
            Delays(delays),
            {name: tuple(dict.fromkeys(rows)) for name, rows in rigid.items()},
            tuple(rules),
            tuple(queries),
            self._tree.source,
        )

    def _rule(self, number: int, rule: syntax.Rule) -> Rule:
        names = _Names()
        head = self._atom(rule.head, names)
        body = tuple(self._atom(a, names) for a in rule.body if isinstance(a, syntax.Atom))
        times = {a.time.base for a in (head, *body) if a.time is not None}
        comparisons = tuple(
            self._comparison(c, times) for c in rule.body if isinstance(c, syntax.Comparison)
        )
        return Rule(number, head, body, comparisons, rule.span)

    def _atom(self, atom: syntax.Atom, names: _Names) -> Atom:
        if atom.predicate in self._rigid:
            return Atom(atom.predicate, tuple(_object(t, names) for t in atom.terms), None)
        *objects, time = atom.terms
        args = tuple(_object(t, names) for t in objects)
        return Atom(atom.predicate, args, self._time(time, names))

    def _comparison(self, comparison: syntax.Comparison, times: set[Var | None]) -> Comparison:
        names = _Names()
        sides = comparison.left, comparison.right
        bases = {
            Var(v.name)
            for side in sides
            for v in (side.variable if isinstance(side, syntax.Shifted) else side,)
            if isinstance(v, syntax.Variable)
        }
        if bases & times:
            left, right = (self._time(side, names) for side in sides)
            return Comparison(left, comparison.operator, right)
        a, b = (_object(side, names) for side in sides)
        return Comparison(a, comparison.operator, b)

    def _time(self, term: syntax.Term, names: _Names) -> Time:
        match term:
            case syntax.Variable():
                return Time(names.var(term), 0)
            case syntax.Constant(value=int() as value):
                return Time(None, value)
            case syntax.Shifted():
                by = self._points(term.amount)
                return Time(names.var(term.variable), by if term.sign == "+" else -by)
        raise AssertionError(f"{term} is no time term")

    def _points(self, amount: syntax.Amount) -> int:
        if isinstance(amount, syntax.Number):
            return amount.value
        return -(-_milliseconds(amount) // self._unit)


class _Names:
    """The variables of one statement: each `_` is another one."""

    def __init__(self) -> None:
        self._anonymous = 0

    def var(self, variable: syntax.Variable) -> Var:
        if variable.name != "_":
            return Var(variable.name)
        self._anonymous += 1
        return Var(f"_#{self._anonymous}")


def _object(term: syntax.Term, names: _Names) -> Term:
    match term:
        case syntax.Variable():
            return names.var(term)
        case syntax.Constant():
            return term.value
    raise AssertionError(f"{term} is no object term")


def _values(fact: syntax.Atom) -> tuple[Value, ...]:
    return tuple(t.value for t in fact.terms if isinstance(t, syntax.Constant))


def _milliseconds(duration: syntax.Duration) -> int:
    return duration.value * MILLISECONDS[duration.unit]
