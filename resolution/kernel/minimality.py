"""Rule 4 for whole forms at a time: when a smaller triple put an end to one.

Whether a triple of one form can be smaller than one of another is a question about forms: ρ must
map answer to answer and hypotheses to hypotheses. What it leaves to the values is that some are
equal (a join), and that comparisons follow (checks). So ρ is searched for once for each pair of
forms, and evaluated on columns. A smaller triple outlives the larger one, for what closes or
arrives of the one does of the other: all that counts is when it started.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np

from resolution.bounds import decide
from resolution.kernel.columns import NEVER, Bools, Columns, Ints
from resolution.kernel.forms import Candidates, Form, value
from resolution.kernel.lookup import least, spans
from resolution.kernel.relations import expand, numbered
from resolution.terms import Atom, Comparison, Operator, Term, Time, Var

Own: TypeAlias = Term | Time
"""A term of the larger triple."""


@dataclass(frozen=True, slots=True)
class Foreign:
    """A bound variable of the smaller triple, with an offset where it is a time."""

    var: Var
    offset: int = 0


Side: TypeAlias = Own | Foreign


@dataclass(frozen=True, slots=True)
class AtMost:
    """x - y <= k, for every placement of the larger triple's unbound times."""

    x: Side
    y: Side
    k: int


@dataclass(frozen=True, slots=True)
class Compares:
    """An object comparison of values."""

    left: Side
    operator: Operator
    right: Side


Check: TypeAlias = AtMost | Compares


@dataclass(frozen=True)
class Embedding:
    """A ρ from a smaller form to a larger one, and what it asks of the values."""

    images: frozenset[Atom] = frozenset()
    open: dict[Var, Own] = field(default_factory=dict)
    """Where the unbound variables of the smaller go."""
    joins: dict[Var, Own] = field(default_factory=dict)
    """What the bound variables of the smaller must be equal to."""
    equal: tuple[tuple[Own, Own], ...] = ()
    """Values of the larger that must be equal to each other."""
    checks: tuple[Check, ...] = ()


def embeddings(small: Form, large: Form) -> Iterator[Embedding]:
    """Every ρ by which triples of the one form may be smaller than, or equal to, the other's."""
    search = _Search(small, large)
    for start in search.atom(Embedding(), small.premises.answer, large.premises.answer):
        for found in search.atoms(replace(start, images=frozenset()), small.hypotheses):
            yield from search.comparisons(found, small.undecided)


class _Search:
    def __init__(self, small: Form, large: Form) -> None:
        self._small, self._large = small, large

    def atoms(self, e: Embedding, rest: tuple[Atom, ...]) -> Iterator[Embedding]:
        if not rest:
            yield e
            return
        for target in self._large.hypotheses:
            for further in self.atom(e, rest[0], target):
                images = further.images | {target}
                yield from self.atoms(replace(further, images=images), rest[1:])

    def atom(self, e: Embedding, pattern: Atom, target: Atom) -> Iterator[Embedding]:
        if pattern.predicate != target.predicate:
            return
        assert pattern.time is not None
        assert target.time is not None
        found: Embedding | None = e
        for mine, theirs in zip(pattern.args, target.args, strict=True):
            found = self._object(found, mine, theirs) if found is not None else None
        found = self._time(found, pattern.time, target.time) if found is not None else None
        if found is not None:
            yield found

    def _object(self, e: Embedding, pattern: Term, target: Term) -> Embedding | None:
        if not isinstance(pattern, Var):
            return self._same(e, pattern, target)
        return self._variable(e, pattern, target)

    def _time(self, e: Embedding, pattern: Time, target: Time) -> Embedding | None:
        if pattern.base is None:
            return self._same(e, pattern, target)
        return self._variable(e, pattern.base, target.shifted(-pattern.offset))

    def _variable(self, e: Embedding, var: Var, target: Own) -> Embedding | None:
        if var in self._small.bound:
            if self._is_open(target):
                return None
            if var in e.joins:
                return self._same(e, e.joins[var], target)
            return replace(e, joins={**e.joins, var: target})
        if var in e.open:
            return self._same(e, e.open[var], target)
        return replace(e, open={**e.open, var: target})

    def _same(self, e: Embedding, a: Own, b: Own) -> Embedding | None:
        """Two terms of the larger that must be the same."""
        if a == b:
            return e
        if self._is_open(a) or self._is_open(b):
            return None
        if _base(a) is None and _base(b) is None:
            return None
        return replace(e, equal=(*e.equal, (a, b)))

    def _is_open(self, side: Side) -> bool:
        if isinstance(side, Foreign):
            return False
        base = _base(side)
        return base is not None and base not in self._large.bound

    # --- comparisons -----------------------------------------------------------------------------

    def comparisons(self, e: Embedding, rest: tuple[Comparison, ...]) -> Iterator[Embedding]:
        if not rest:
            yield e
            return
        comparison = rest[0]
        left, right = (self._image(e, side) for side in (comparison.left, comparison.right))
        operator = comparison.operator
        if isinstance(comparison.left, Time):
            checks: tuple[Check, ...] = tuple(_at_most(left, operator, right))
            yield from self.comparisons(replace(e, checks=e.checks + checks), rest[1:])
        elif not self._is_open(left) and not self._is_open(right):
            checks = (Compares(left, operator, right),)
            yield from self.comparisons(replace(e, checks=e.checks + checks), rest[1:])
        else:
            for further in self._among_conditions(e, left, operator, right):
                yield from self.comparisons(further, rest[1:])

    def _image(self, e: Embedding, term: Term | Time) -> Side:
        """Where a side of a comparison goes."""
        var = _base(term)
        shift = term.offset if isinstance(term, Time) else 0
        if var is None:
            return term
        if var in e.open or var in e.joins:
            target = e.open[var] if var in e.open else e.joins[var]
            return target.shifted(shift) if isinstance(target, Time) else target
        return Foreign(var, shift)

    def _among_conditions(
        self, e: Embedding, left: Side, operator: Operator, right: Side
    ) -> Iterator[Embedding]:
        """An undecided object comparison follows if it is there itself, in either orientation."""
        ours = not isinstance(left, Foreign) and not isinstance(right, Foreign)
        if ours and decide(Comparison(left, operator, right)):  # type: ignore[arg-type]
            yield e
            return
        for known in self._large.undecided:
            if isinstance(known.left, Time):
                continue
            for there in {known, _mirrored(known)}:
                if there.operator != operator:
                    continue
                found = self._meets(e, left, there.left)
                found = self._meets(found, right, there.right) if found is not None else None
                if found is not None:
                    yield found

    def _meets(self, e: Embedding, side: Side, target: Own) -> Embedding | None:
        if isinstance(side, Foreign):
            return self._variable(e, side.var, target)
        return self._same(e, side, target)


def _base(side: Term | Time) -> Var | None:
    if isinstance(side, Time):
        return side.base
    return side if isinstance(side, Var) else None


def _mirrored(comparison: Comparison) -> Comparison:
    mirror: dict[Operator, Operator] = {
        "=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<=",
    }  # fmt: skip
    return Comparison(comparison.right, mirror[comparison.operator], comparison.left)


def _at_most(left: Side, operator: Operator, right: Side) -> Iterator[AtMost]:
    if operator in ("<", "<=", "="):
        yield AtMost(left, right, -1 if operator == "<" else 0)
    if operator in (">", ">=", "="):
        yield AtMost(right, left, -1 if operator == ">" else 0)


# --- on columns ----------------------------------------------------------------------------------


def ended_by(
    large: Candidates, small: Candidates, found: Iterable[Embedding], columns: Columns
) -> Ints:
    """When the first triple of the smaller form, by some ρ, put an end to each of the larger."""
    end = np.full(len(large), NEVER, dtype=np.int64)
    for embedding in found:
        if embedding.images == frozenset(large.form.hypotheses):
            continue
        rows = _where(large, embedding, columns)
        if not len(rows):
            continue
        ours = [large.rows.group[rows]]
        theirs = [small.rows.group]
        for var, term in embedding.joins.items():
            column = value(term, large.rows.bound, columns)
            assert column is not None
            ours.append(np.broadcast_to(column, (len(large),))[rows])
            theirs.append(small.rows.bound[var])
        wanted, known = numbered(ours, theirs)
        across = [c for c in embedding.checks if _has_foreign(c)]
        if across:
            met = _least_across(large, small, rows, wanted, known, across, columns)
        else:
            met = least(wanted, known, small.start)
        end[rows] = np.minimum(end[rows], met)
    return end


def entailed(large: Candidates, found: Iterable[Embedding], columns: Columns) -> Bools:
    """Which triples a premise set makes superfluous: their hypotheses alone entail the answer."""
    hit = np.zeros(len(large), dtype=np.bool_)
    for embedding in found:
        hit[_where(large, embedding, columns)] = True
    return hit


def _where(large: Candidates, embedding: Embedding, columns: Columns) -> Ints:
    """The rows of the larger form in which its own values are as ρ asks."""
    ok = np.ones(len(large), dtype=np.bool_)
    for a, b in embedding.equal:
        ok &= value(a, large.rows.bound, columns) == value(b, large.rows.bound, columns)
    rows = np.flatnonzero(ok)
    for check in embedding.checks:
        if not _has_foreign(check) and len(rows):
            rows = rows[_holds(check, large, rows, None, None, columns)]
    return rows


def _least_across(
    large: Candidates,
    small: Candidates,
    rows: Ints,
    wanted: Ints,
    known: Ints,
    checks: list[Check],
    columns: Columns,
) -> Ints:
    """The least start among the smaller rows that join and pass the checks on both."""
    order = np.argsort(known, kind="stable")
    mine, theirs = expand(*spans(wanted, known[order]))
    theirs = order[theirs]
    ok = np.ones(len(mine), dtype=np.bool_)
    for check in checks:
        ok &= _holds(check, large, rows[mine], small, theirs, columns)
    first = np.full(len(rows), NEVER, dtype=np.int64)
    np.minimum.at(first, mine[ok], small.start[theirs[ok]])
    return first


def _has_foreign(check: Check) -> bool:
    sides = (check.x, check.y) if isinstance(check, AtMost) else (check.left, check.right)
    return any(isinstance(side, Foreign) for side in sides)


def _holds(
    check: Check,
    large: Candidates,
    rows: Ints,
    small: Candidates | None,
    others: Ints | None,
    columns: Columns,
) -> Bools:
    if isinstance(check, Compares):
        sides: list[Ints | str | int | float] = []
        for side in (check.left, check.right):
            if isinstance(side, Foreign):
                assert small is not None
                assert others is not None
                sides.append(small.rows.bound[side.var][others])
            elif isinstance(side, Var):
                sides.append(large.rows.bound[side][rows])
            else:
                assert not isinstance(side, Time)
                sides.append(side)
        return np.broadcast_to(
            np.asarray(columns.compare(sides[0], check.operator, sides[1])), (len(rows),)
        )
    high = _extreme(check.x, "latest", large, rows, small, others)
    low = _extreme(check.y, "earliest", large, rows, small, others)
    holds = (high < NEVER) & (high - low <= check.k)
    x, y = check.x, check.y
    if isinstance(x, Time) and isinstance(y, Time):
        gap = x.offset - y.offset
        if x.base == y.base:
            return np.full(len(rows), gap <= check.k)
        bound = large.form.premises.bounds.closed.get((x.base, y.base))
        if bound is not None and bound + gap <= check.k:
            return np.ones(len(rows), dtype=np.bool_)
    return np.asarray(holds)


def _extreme(
    side: Side,
    which: Literal["latest", "earliest"],
    large: Candidates,
    rows: Ints,
    small: Candidates | None,
    others: Ints | None,
) -> Ints:
    if isinstance(side, Foreign):
        assert small is not None
        assert others is not None
        return small.rows.bound[side.var][others] + side.offset
    assert isinstance(side, Time)
    windows = large.windows
    found = windows.latest(side) if which == "latest" else windows.earliest(side)
    return found[rows]
