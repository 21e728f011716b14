"""Finding atoms that may match another one, without trying them all."""

from __future__ import annotations

from collections import defaultdict
from typing import Generic, TypeAlias, TypeVar

from resolution.terms import Atom, Value, Var

Item = TypeVar("Item")
Pattern: TypeAlias = tuple[Value | None, ...]
"""The predicate of an atom and its arguments, the time last; None where a variable stands."""
Mask: TypeAlias = tuple[bool, ...]
"""Which places of a pattern are known."""


class Index(Generic[Item]):
    """Items filed under atoms, each by a key of its own.

    Only constants are looked at: what is found may still differ in variables that occur twice.
    """

    def __init__(self) -> None:
        self._filed: dict[Mask, dict[Pattern, dict[str, Item]]] = {}
        """What is filed, by the places that its own atom knows."""
        self._projected: dict[Mask, dict[Pattern, dict[str, Item]]] = {}
        """What knows some places at least, by these; made when first asked for."""

    def file(self, atom: Atom, key: str, item: Item) -> None:
        pattern = _pattern(atom)
        mask = _mask(pattern)
        self._filed.setdefault(mask, defaultdict(dict))[pattern][key] = item
        for known, projection in self._projected.items():
            if _within(known, mask):
                projection[_masked(pattern, known)][key] = item

    def remove(self, atom: Atom, key: str) -> None:
        pattern = _pattern(atom)
        mask = _mask(pattern)
        _drop(self._filed[mask], pattern, key)
        for known, projection in self._projected.items():
            if _within(known, mask):
                _drop(projection, _masked(pattern, known), key)

    def covering(self, atom: Atom) -> dict[str, Item]:
        """What is filed under atoms of which this one may be an instance."""
        pattern = _pattern(atom)
        mask = _mask(pattern)
        found: dict[str, Item] = {}
        for known, filed in self._filed.items():
            if _within(known, mask):
                found.update(filed.get(_masked(pattern, known), {}))
        return found

    def covered(self, atom: Atom) -> dict[str, Item]:
        """What is filed under atoms that may be instances of this one."""
        pattern = _pattern(atom)
        mask = _mask(pattern)
        if all(mask):
            return self._filed.get(mask, {}).get(pattern, {})
        if mask not in self._projected:
            self._projected[mask] = self._projection(mask)
        return self._projected[mask].get(pattern, {})

    def _projection(self, known: Mask) -> dict[Pattern, dict[str, Item]]:
        found: dict[Pattern, dict[str, Item]] = defaultdict(dict)
        for mask, filed in self._filed.items():
            if _within(known, mask):
                for pattern, items in filed.items():
                    found[_masked(pattern, known)].update(items)
        return found


def _pattern(atom: Atom) -> Pattern:
    args = [None if isinstance(arg, Var) else arg for arg in atom.args]
    assert atom.time is not None
    return (atom.predicate, *args, atom.time.offset if atom.time.base is None else None)


def _mask(pattern: Pattern) -> Mask:
    return tuple(place is not None for place in pattern)


def _within(known: Mask, mask: Mask) -> bool:
    return len(known) == len(mask) and not any(k > m for k, m in zip(known, mask, strict=True))


def _masked(pattern: Pattern, known: Mask) -> Pattern:
    return tuple(p if k else None for p, k in zip(pattern, known, strict=True))


def _drop(filed: dict[Pattern, dict[str, Item]], pattern: Pattern, key: str) -> None:
    items = filed.get(pattern)
    if items is not None:
        items.pop(key, None)
        if not items:
            del filed[pattern]
