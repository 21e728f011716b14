"""Where a fact goes: to the groups in which the answers that it may take part in are computed.

A group is a query, the values of its *key* and a *block* of answer times. Both are chosen so that
no group needs another:

- The key are the places of the answer that in every premise set hold a constant, or a variable
  that occurs in all its atoms. Whatever has evidence has them bound, and an answer that is an
  instance of another agrees with it there.
- Where every atom's time is bounded against the answer's from both sides, answers are cut into
  blocks of time points, and a fact goes to every block in which an answer with it may lie: one or
  two. A triple whose answer time is open is at home in the block of its earliest; whatever bears on
  it bears on that. Where some distance is not bounded there is one block, and it never closes.

What a fact must be like to match an atom (constants, equal arguments, comparisons that it decides
alone) is kept as data, so that Spark SQL and Python route by the same thing. A route may let more
facts through than match: the kernel decides. It never holds one back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from resolution.bounds import Bounds, decide
from resolution.delays import Delays
from resolution.premises import PremiseSet
from resolution.terms import Atom, Comparison, Operator, Time, Value, Var, show

Texts: TypeAlias = tuple[str, ...]

SEPARATOR = "\x1f"
"""Between the values of a key: no printed constant holds a control character."""

ALTERNATIVES = 8
"""Sets of comparisons on one shape beyond which none of them filters."""

SHORTEST_BLOCK = 16


@dataclass(frozen=True, slots=True)
class Test:
    """A comparison that a fact decides alone: an argument with another one, or with a constant."""

    place: int
    operator: Operator
    other: int | None
    value: Value | None

    def holds(self, args: tuple[Value, ...]) -> bool:
        right = self.value if self.other is None else args[self.other]
        assert right is not None
        return decide(Comparison(args[self.place], self.operator, right)) is True


@dataclass(frozen=True, slots=True)
class Shape:
    """All premise atoms of a query that differ in constants only.

    A fact of `predicate` goes on if its values at `places` are an entry of `table`. Its keys are
    then made of its own values, and for each of the entry's constants one in their places.
    """

    query: int
    predicate: str
    places: tuple[int, ...]
    equal: tuple[tuple[int, int], ...]
    key: tuple[int | None, ...]
    """For each value of the key the place of the argument, None for the entry's next constant."""
    tests: tuple[frozenset[Test], ...]
    """One of these sets must hold; none filters if there are none."""
    table: Mapping[Texts, tuple[Texts, ...]]
    times: frozenset[int] | None
    """The only time points at which an atom stands; None where one stands at any."""
    low: int | None
    """The least of answer time - fact time, …"""
    high: int | None
    """… and the greatest; None where it is not bounded."""

    def keys(self, args: tuple[Value, ...], texts: Texts, time: int) -> Iterator[str]:
        """The keys of the groups that a fact goes to by this shape."""
        found = self.table.get(tuple(texts[p] for p in self.places))
        if (
            found is None
            or (self.times is not None and time not in self.times)
            or any(texts[a] != texts[b] for a, b in self.equal)
            or (self.tests and not any(all(t.holds(args) for t in ts) for ts in self.tests))
        ):
            return
        for constants in found:
            rest = iter(constants)
            yield SEPARATOR.join(next(rest) if p is None else texts[p] for p in self.key)


@dataclass(frozen=True, slots=True)
class Blocks:
    """The cut of a query's answer times: block b holds answers from b·length to before the next."""

    length: int
    reach: int
    """How long after its end a block may still get facts."""

    def range(self, time: int, shape: Shape) -> range:
        """The blocks that a fact goes to."""
        assert shape.low is not None
        assert shape.high is not None
        first, last = max(time + shape.low, 0), time + shape.high
        return range(first // self.length, last // self.length + 1)

    def closes(self, block: int) -> int:
        """The τ after which, once it is complete, no fact can come to the block."""
        return (block + 1) * self.length + self.reach

    def bounds(self, closes: int) -> tuple[int, int]:
        """First and past of the answers in the block that closes then."""
        past = closes - self.reach
        return past - self.length, past


@dataclass(frozen=True, slots=True)
class QueryRouting:
    """How the facts of one query are grouped; without `blocks` in one that never closes."""

    key: tuple[int, ...]
    """The places of the answer that are the key."""
    blocks: Blocks | None
    shapes: tuple[Shape, ...]


@dataclass(frozen=True, slots=True)
class Target:
    """A group: a query, its key, and when its block closes (None: never)."""

    query: int
    key: str
    closes: int | None


@dataclass(frozen=True, slots=True)
class Routing:
    queries: tuple[QueryRouting, ...]

    @classmethod
    def of(cls, premise_sets: Iterable[tuple[PremiseSet, ...]], delays: Delays) -> Routing:
        """The routing of a program, from the premise sets of each of its queries."""
        return cls(tuple(_query(q, sets, delays) for q, sets in enumerate(premise_sets)))

    @property
    def shapes(self) -> Iterator[Shape]:
        for query in self.queries:
            yield from query.shapes

    def targets(self, fact: Atom) -> set[Target]:
        """The groups that a ground atom goes to."""
        assert fact.time is not None
        args = tuple(arg for arg in fact.args if not isinstance(arg, Var))
        texts, time = tuple(map(show, args)), fact.time.offset
        found: set[Target] = set()
        for shape in self.shapes:
            if shape.predicate != fact.predicate:
                continue
            blocks = self.queries[shape.query].blocks
            for key in shape.keys(args, texts, time):
                if blocks is None:
                    found.add(Target(shape.query, key, None))
                else:
                    found.update(
                        Target(shape.query, key, blocks.closes(b))
                        for b in blocks.range(time, shape)
                    )
        return found


def _query(number: int, sets: tuple[PremiseSet, ...], delays: Delays) -> QueryRouting:
    key = key_of(sets)
    routes: dict[tuple[object, ...], list[_Route]] = {}
    for premises in sets:
        bounds = premises.bounds
        for atom in premises.atoms:
            route = _route(premises, atom, key, bounds)
            shape = (route.predicate, route.places, route.equal, route.key)
            routes.setdefault(shape, []).append(route)
    shapes = tuple(_shape(number, members) for members in routes.values())
    return QueryRouting(key, _blocks(shapes, delays), shapes)


def key_of(sets: tuple[PremiseSet, ...]) -> tuple[int, ...]:
    """The places of the answer that are a query's key."""
    if not sets:
        return ()

    def fixed(premises: PremiseSet, place: int) -> bool:
        term = premises.answer.args[place]
        return not isinstance(term, Var) or all(term in atom.args for atom in premises.atoms)

    places = range(len(sets[0].answer.args))
    return tuple(p for p in places if all(fixed(premises, p) for premises in sets))


@dataclass(frozen=True, slots=True)
class _Route:
    """One premise atom as its shape sees it."""

    predicate: str
    places: tuple[int, ...]
    equal: tuple[tuple[int, int], ...]
    key: tuple[int | None, ...]
    wanted: Texts
    constants: Texts
    tests: frozenset[Test]
    time: int | None
    low: int | None
    high: int | None


def _route(premises: PremiseSet, atom: Atom, key: tuple[int, ...], bounds: Bounds) -> _Route:
    assert atom.time is not None
    assert premises.answer.time is not None
    first: dict[Var, int] = {}
    equal: list[tuple[int, int]] = []
    wanted: dict[int, str] = {}
    for place, arg in enumerate(atom.args):
        if not isinstance(arg, Var):
            wanted[place] = show(arg)
        elif arg in first:
            equal.append((first[arg], place))
        else:
            first[arg] = place
    terms = [premises.answer.args[p] for p in key]
    return _Route(
        atom.predicate,
        tuple(wanted),
        tuple(equal),
        tuple(first[t] if isinstance(t, Var) else None for t in terms),
        tuple(wanted.values()),
        tuple(show(t) for t in terms if not isinstance(t, Var)),
        frozenset(_tests(premises.comparisons, first)),
        atom.time.offset if atom.time.base is None else None,
        _negative(_difference(bounds, atom.time, premises.answer.time)),
        _difference(bounds, premises.answer.time, atom.time),
    )


def _tests(comparisons: Iterable[Comparison], places: Mapping[Var, int]) -> Iterator[Test]:
    for comparison in comparisons:
        left, right = comparison.left, comparison.right
        if not isinstance(left, Var) or left not in places:
            continue  # of two object terms the first is a variable, see `oriented`
        if isinstance(right, Var):
            if right in places:
                yield Test(places[left], comparison.operator, places[right], None)
        elif not isinstance(right, Time):
            yield Test(places[left], comparison.operator, None, right)


def _difference(bounds: Bounds, one: Time, other: Time) -> int | None:
    """The greatest value of one - other."""
    if one.base == other.base:
        return one.offset - other.offset
    most = bounds.closed.get((one.base, other.base))
    return None if most is None else most + one.offset - other.offset


def _negative(value: int | None) -> int | None:
    return None if value is None else -value


def _shape(query: int, members: list[_Route]) -> Shape:
    table: dict[Texts, dict[Texts, None]] = {}
    for route in members:
        table.setdefault(route.wanted, {})[route.constants] = None
    tests = {route.tests for route in members}
    times = {route.time for route in members if route.time is not None}
    lows = [route.low for route in members if route.low is not None]
    highs = [route.high for route in members if route.high is not None]
    first = members[0]
    return Shape(
        query,
        first.predicate,
        first.places,
        first.equal,
        first.key,
        # An atom without tests lets everything through; so do too many different ones.
        () if frozenset() in tests or len(tests) > ALTERNATIVES else tuple(sorted(tests, key=repr)),
        {wanted: tuple(constants) for wanted, constants in table.items()},
        frozenset(times) if all(route.time is not None for route in members) else None,
        min(lows) if len(lows) == len(members) else None,
        max(highs) if len(highs) == len(members) else None,
    )


def _blocks(shapes: tuple[Shape, ...], delays: Delays) -> Blocks | None:
    window = 0
    reach = 0
    for shape in shapes:
        if shape.low is None or shape.high is None:
            return None
        window = max(window, shape.high - shape.low + 1)
        reach = max(reach, delays.largest(shape.predicate) - shape.low - 1)
    return Blocks(max(4 * window, SHORTEST_BLOCK), reach)
