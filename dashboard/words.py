"""Sentences: what an answer waits for, what must happen and by when, what did not come."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dashboard.markup import Node, h, joined
from dashboard.queries import Triple
from dashboard.times import Clock

__all__ = ["conditions_of", "evidence_of", "must_happen", "time_of", "waits_for"]

_TIME = re.compile(r"[(,]\s*(?:(\d+)|([A-Za-z_]\w*)([+-]\d+)?)\)$")


def time_of(atom: str) -> tuple[str | None, int] | None:
    """The time term of an atom as it is printed: its variable, if it has one, and the number."""
    found = _TIME.search(atom)
    if found is None:
        return None
    number, variable, offset = found.groups()
    return (None, int(number)) if number else (variable, int(offset or 0))


def times_in(atoms: Sequence[str]) -> set[str]:
    """The variables that stand as time arguments of these atoms."""
    return {found[0] for atom in atoms if (found := time_of(atom)) and found[0]}


def conditions_of(atoms: Sequence[str], conditions: Sequence[str], clock: Clock) -> list[Node]:
    times = times_in(atoms)
    return joined(clock.condition(one, times) for one in conditions)


def waits_for(
    hypotheses: Sequence[str], conditions: Sequence[str], clock: Clock, most: int = 3
) -> list[Node]:
    """What a pending answer waits for, in one line."""
    told = joined(map(clock.atom, hypotheses[:most]))
    if len(hypotheses) > most:
        told.append(f" and {len(hypotheses) - most} more")
    if conditions:
        told += [" where ", *conditions_of(hypotheses, conditions[:most], clock)]
    return told


def evidence_of(evidence: int, hypotheses: int) -> str:
    return f"{evidence} of {evidence + hypotheses}"


def must_happen(triple: Triple, clock: Clock) -> list[Node]:
    """For each hypothesis what must arrive, and by when; then the conditions on them."""
    told: list[Node] = []
    for atom, closes in zip(triple.hypotheses, triple.closes, strict=True):
        shown = h("code", clock.atom(atom))
        if closes is None:
            told.append(h("li", shown, " must arrive; it may do so at any time"))
            continue
        told.append(h("li", shown, " must arrive by ", clock.at(closes), ": ", clock.left(closes)))
    if triple.conditions:
        said = conditions_of(triple.hypotheses, triple.conditions, clock)
        told.append(h("li", "where ", h("code", *said)))
    return told
