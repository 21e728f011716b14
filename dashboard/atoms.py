"""Atoms as they are printed: taken apart, matched with each other, and filled with values.

The store keeps what the logic printed. Terms stay text here; only time terms are looked into, as
a variable (or none) and a number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Atom", "Values", "filled", "instance", "parsed", "values_of"]

_TERM = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[^,"]*)\s*(?:,|$)')
_TIME = re.compile(r"(?:([A-Za-z_]\w*)([+-]\d+)?|(\d+))")
_STEPS = 10_000
"""Tries to match before we do without: a picture is not worth a minute."""

Time: TypeAlias = tuple[str | None, int]
Values: TypeAlias = "dict[str, str | Time]"
"""Variable of a premise set -> what stands for it: a term, or a time."""


@dataclass(frozen=True, slots=True)
class Atom:
    predicate: str
    terms: tuple[str, ...]


def parsed(text: str) -> Atom | None:
    """The atom that was printed so."""
    predicate, opened, rest = text.partition("(")
    if not opened or not rest.endswith(")"):
        return None
    terms, place, inner = [], 0, rest[:-1]
    while place < len(inner):
        found = _TERM.match(inner, place)
        if found is None:
            return None
        terms.append(found[1].strip())
        place = found.end()
    return Atom(predicate, tuple(terms))


def _time(term: str) -> Time | None:
    found = _TIME.fullmatch(term)
    if found is None:
        return None
    return (None, int(found[3])) if found[3] else (found[1], int(found[2] or 0))


def _is_variable(term: str) -> bool:
    return term[:1].isupper() or term[:1] == "_"


def _matched(general: Atom, special: Atom, values: Values) -> Values | None:
    """The values under which the general atom is the special one, those given included."""
    if general.predicate != special.predicate or len(general.terms) != len(special.terms):
        return None
    found = dict(values)
    *objects, time = zip(general.terms, special.terms, strict=True)
    for wanted, given in objects:
        if wanted == "_":  # a variable without a name is another one each time
            continue
        if not _is_variable(wanted):
            if wanted != given:
                return None
        elif found.setdefault(wanted, given) != given:
            return None
    wanted_time, given_time = map(_time, time)
    if wanted_time is None or given_time is None:
        return None
    base, offset = wanted_time
    if base is None:
        return found if wanted_time == given_time else None
    if base == "_":
        return found
    shifted = (given_time[0], given_time[1] - offset)
    return found if found.setdefault(base, shifted) == shifted else None


def values_of(premises: Sequence[str], answer: tuple[str, str], atoms: Sequence[str]) -> Values:
    """What stands for the variables of a premise set in an answer of it.

    `answer` is the answer as the premise set has it, and as it is; `atoms` its evidence and its
    hypotheses, each of which is one of the premises. Variables that no answer shows may stay.
    """
    general, special = map(parsed, answer)
    start = _matched(general, special, {}) if general and special else None
    wanted = [one for one in map(parsed, premises) if one]
    given = [one for one in map(parsed, atoms) if one]
    steps = iter(range(_STEPS))

    def search(place: int, values: Values) -> Iterator[Values]:
        if place == len(wanted):
            yield values
            return
        for one in given:
            if next(steps, None) is None:
                return
            found = _matched(wanted[place], one, values)
            if found is not None:
                yield from search(place + 1, found)

    return next(search(0, start or {}), start or {})


def filled(text: str, values: Values) -> str:
    """The atom with the values for its variables."""
    atom = parsed(text)
    if atom is None or not atom.terms:
        return text
    terms = []
    for term in atom.terms:
        known = _time(term)
        value = values.get(known[0]) if known and known[0] else None
        if value is None:
            terms.append(term)
        elif isinstance(value, str):
            terms.append(value)
        else:
            assert known is not None
            terms.append(_printed(value[0], value[1] + known[1]))
    return f"{atom.predicate}({', '.join(terms)})"


def instance(text: str, values: Values, atoms: Sequence[str]) -> str | None:
    """The one of the atoms that this premise is, under the values."""
    wanted = parsed(text)
    for one in atoms:
        given = parsed(one)
        if wanted and given and _matched(wanted, given, values) is not None:
            return one
    return None


def _printed(base: str | None, offset: int) -> str:
    if base is None:
        return str(offset)
    return f"{base}{offset:+d}" if offset else base
