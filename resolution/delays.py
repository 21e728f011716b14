"""δ: how long after its time point a fact may arrive.

The δ of a ground atom is that of the most specific `delay` pattern it matches, where a pattern is
the more specific the more constants it has; among equally specific ones the larger counts. The δ
of an atom with variables is the largest of its instances.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from resolution.terms import Atom, Term, Value, Var

Pattern: TypeAlias = tuple[Value | None, ...]
"""The object fields of a `delay` declaration; None stands for `_`."""


@dataclass(frozen=True)
class Delays:
    """The delay bounds of a program, in time points."""

    bounds: Mapping[str, Mapping[Pattern, int]]
    """For each stream its patterns, the stream's own bound being one without constants."""
    _known: dict[tuple[str, tuple[Term, ...]], int] = field(
        default_factory=dict, compare=False, repr=False
    )

    def of(self, atom: Atom) -> int:
        key = atom.predicate, tuple(map(_unnamed(atom.args), atom.args))
        if key not in self._known:
            self._known[key] = max(self._instances(atom))
        return self._known[key]

    def least(self, atom: Atom) -> int:
        """The smallest δ of the instances of an atom."""
        return min(self._instances(atom))

    def largest(self, predicate: str) -> int:
        return max(self.bounds[predicate].values())

    def _instances(self, atom: Atom) -> Iterable[int]:
        """δ of enough instances of an atom to meet every one that there is.

        The instances that a pattern decides are all decided by it in its most general one too,
        which has fresh constants wherever neither pattern nor atom has one.
        """
        patterns = self.bounds[atom.predicate]
        if not any(isinstance(arg, Var) for arg in atom.args):
            yield self._most_specific(atom.predicate, atom.args)  # type: ignore[arg-type]
            return
        for pattern in patterns:
            instance = _meet(atom.args, pattern)
            if instance is not None:
                yield self._most_specific(atom.predicate, instance)

    def _most_specific(self, predicate: str, instance: Pattern) -> int:
        patterns = self.bounds[predicate]
        general = (
            tuple(v if m else None for v, m in zip(instance, mask, strict=True))
            for mask in self._masks[predicate]
        )
        return max((len(g) - g.count(None), patterns[g]) for g in general if g in patterns)[1]

    @cached_property
    def _masks(self) -> Mapping[str, set[tuple[bool, ...]]]:
        """Where the patterns of each stream have constants: few masks stand for many patterns."""
        return {
            predicate: {tuple(place is not None for place in pattern) for pattern in patterns}
            for predicate, patterns in self.bounds.items()
        }


def _unnamed(args: tuple[Term, ...]):  # type: ignore[no-untyped-def]
    """Numbers the variables by their first place, so that atoms alike in shape share an entry."""
    numbers: dict[Var, Var] = {}
    return lambda arg: (
        numbers.setdefault(arg, Var(str(len(numbers)))) if isinstance(arg, Var) else arg
    )


def _meet(args: tuple[Term, ...], pattern: Pattern) -> Pattern | None:
    bound: dict[Var, Value] = {}
    for arg, wanted in zip(args, pattern, strict=True):
        if wanted is None:
            continue
        if isinstance(arg, Var):
            arg = bound.setdefault(arg, wanted)
        if arg != wanted:
            return None
    return tuple(bound.get(arg) if isinstance(arg, Var) else arg for arg in args)
