"""Comparisons: what decides them, and the difference bounds that time comparisons come to.

A comparison between time terms says `x - y <= k` for variables x, y, or the origin in place of one
of them. A closed set of such bounds (all shortest paths) answers every question that is asked of
time comparisons: can they hold, do they imply another, and how late may a time point be.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from resolution.terms import Comparison, Operator, Term, Time, Value, Var

Node: TypeAlias = Var | None
"""A time variable, or None for the origin, time point 0."""

MIRROR: dict[Operator, Operator] = {
    "=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<=",
}  # fmt: skip


def decide(comparison: Comparison) -> bool | None:
    """Whether a comparison holds, None where that is not decided yet."""
    left, operator, right = comparison.left, comparison.operator, comparison.right
    if isinstance(left, Time):
        assert isinstance(right, Time)
        if left.base != right.base:
            return None
        return _holds(left.offset, operator, right.offset)
    assert not isinstance(right, Time)
    if left == right and isinstance(left, Var):
        return operator in ("=", "<=", ">=")
    if isinstance(left, Var) or isinstance(right, Var):
        return None
    return _holds(left, operator, right)


def _holds(left: Value, operator: Operator, right: Value) -> bool:
    if isinstance(left, str) != isinstance(right, str):
        return operator == "!="
    match operator:
        case "=":
            return left == right
        case "!=":
            return left != right
        case "<":
            return left < right  # type: ignore[operator]
        case "<=":
            return left <= right  # type: ignore[operator]
        case ">":
            return left > right  # type: ignore[operator]
        case ">=":
            return left >= right  # type: ignore[operator]


def oriented(comparison: Comparison) -> Comparison:
    """The one writing of an object comparison: variables before constants, then by name."""

    def rank(term: Term | Time) -> tuple[bool, tuple[object, ...]]:
        return (not isinstance(term, Var), _by_name(term) if isinstance(term, Var) else ())

    if rank(comparison.right) < rank(comparison.left):
        return Comparison(comparison.right, MIRROR[comparison.operator], comparison.left)
    return comparison


def _by_name(node: Node) -> tuple[object, ...]:
    """T2 before T10."""
    if node is None:
        return ()
    return tuple(int(p) if p.isdigit() else p for p in re.split(r"(\d+)", node.name))


def edges(comparison: Comparison) -> list[tuple[Node, Node, int]]:
    """A time comparison as bounds (x, y, k): x - y <= k."""
    left, right = comparison.left, comparison.right
    assert isinstance(left, Time)
    assert isinstance(right, Time)
    gap = right.offset - left.offset
    at_most = (left.base, right.base, gap)
    at_least = (right.base, left.base, -gap)
    match comparison.operator:
        case "<":
            return [(left.base, right.base, gap - 1)]
        case "<=":
            return [at_most]
        case ">":
            return [(right.base, left.base, -gap - 1)]
        case ">=":
            return [at_least]
        case "=":
            return [at_most, at_least]
        case "!=":
            raise ValueError("times cannot be compared by !=")


@dataclass(frozen=True)
class Bounds:
    """Time comparisons, closed, together with `every time natural` for the times given."""

    natural: dict[Var, int]
    """For each variable the least value at which all its times are natural."""
    closed: dict[tuple[Node, Node], int]
    """The tightest k of each x - y <= k; a pair that is not there is unbounded."""
    satisfiable: bool

    @classmethod
    def of(cls, comparisons: Iterable[Comparison], times: Iterable[Time]) -> Bounds:
        natural: dict[Var, int] = {}
        ground = True
        for time in times:
            if time.base is None:
                ground = ground and time.offset >= 0
            else:
                natural[time.base] = max(natural.get(time.base, -time.offset), -time.offset)
        bounds: dict[tuple[Node, Node], int] = {(None, v): -least for v, least in natural.items()}
        for comparison in comparisons:
            for x, y, k in edges(comparison):
                bounds[x, y] = min(k, bounds.get((x, y), k))
        _close(bounds)
        consistent = all(k >= 0 for (x, y), k in bounds.items() if x == y)
        return cls(natural, bounds, ground and consistent)

    def implies(self, comparison: Comparison) -> bool:
        """Whether a time comparison holds wherever these bounds do."""
        return all(self.at_most(x, y) <= k for x, y, k in edges(comparison))

    def latest(self, time: Time) -> int | None:
        """The greatest time point that `time` may be, None if there is none."""
        if time.base is None:
            return time.offset
        most = self.at_most(time.base, None)
        return None if most == _INFINITE else int(most) + time.offset

    def earliest(self, time: Time) -> int:
        """The least time point that `time` may be; its variable is one whose times are natural."""
        if time.base is None:
            return time.offset
        return time.offset - int(self.at_most(None, time.base))

    def at_most(self, x: Node, y: Node) -> float:
        """The greatest value of x - y, infinite where there is none."""
        return 0 if x == y else self.closed.get((x, y), _INFINITE)

    @cached_property
    def conditions(self) -> tuple[Comparison, ...]:
        """The same bounds in the one shortest writing, less what every natural time satisfies."""
        nodes: list[Node] = [None, *sorted(self._variables(), key=_by_name)]
        leader: dict[Node, Node] = {}
        found: list[Comparison] = []
        for node in nodes:
            for other in leader.values():
                there, back = self.at_most(node, other), self.at_most(other, node)
                if there + back == 0:
                    assert node is not None
                    leader[node] = other
                    found.append(Comparison(Time(node, 0), "=", Time(other, int(there))))
                    break
            else:
                leader[node] = node
        heads = [node for node in nodes if leader[node] is node]
        free = {v: least for v, least in self.natural.items() if leader[v] is not None}

        def needed(x: Node, y: Node) -> bool:
            """Whether x - y <= k follows neither from two other bounds nor from being natural."""
            k = self.at_most(x, y)
            if k == _INFINITE:
                return False
            if x is None and any(-k <= least - self.at_most(v, y) for v, least in free.items()):
                return False  # y is not below v plus something, and v not below its least
            return not any(
                self.at_most(x, z) + self.at_most(z, y) <= k for z in heads if z not in (x, y)
            )

        for i, x in enumerate(heads):
            for y in heads[:i]:
                assert x is not None
                if needed(y, x):
                    at_least = Time(y, -int(self.closed[y, x]))
                    found.append(Comparison(Time(x, 0), ">=", at_least))
                if needed(x, y):
                    found.append(Comparison(Time(x, 0), "<=", Time(y, int(self.closed[x, y]))))
        return tuple(found)

    def _variables(self) -> set[Var]:
        return {node for pair in self.closed for node in pair if node is not None}


_INFINITE = float("inf")


def _close(bounds: dict[tuple[Node, Node], int]) -> None:
    nodes = {node for pair in bounds for node in pair}
    for via in nodes:
        into = [(x, k) for (x, y), k in bounds.items() if y == via]
        out = [(y, k) for (x, y), k in bounds.items() if x == via]
        for x, k in into:
            for y, more in out:
                if k + more < bounds.get((x, y), _INFINITE):
                    bounds[x, y] = k + more


# --- several comparisons -------------------------------------------------------------------------


def time_comparisons(comparisons: Iterable[Comparison]) -> list[Comparison]:
    return [c for c in comparisons if isinstance(c.left, Time)]


def undecided(comparisons: Iterable[Comparison]) -> tuple[Comparison, ...]:
    """The comparisons that are not true already, each once."""
    return tuple(
        dict.fromkeys(
            c if isinstance(c.left, Time) else oriented(c)
            for c in comparisons
            if decide(c) is not True
        )
    )


def implied(
    comparisons: Iterable[Comparison], bounds: Bounds, objects: frozenset[Comparison]
) -> bool:
    """Whether comparisons follow from time bounds and the object comparisons that are there."""
    return all(
        bounds.implies(c) if isinstance(c.left, Time) else decide(c) or oriented(c) in objects
        for c in comparisons
    )


def object_comparisons(comparisons: Iterable[Comparison]) -> frozenset[Comparison]:
    return frozenset(oriented(c) for c in comparisons if not isinstance(c.left, Time))
