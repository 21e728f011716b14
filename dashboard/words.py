"""Sentences: what an answer waits for, what must happen and by when, what did not come."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dashboard.markup import Node, h
from dashboard.queries import Triple
from dashboard.times import Clock

__all__ = ["evidence_of", "must_happen", "time_of", "waits_for"]

_TIME = re.compile(r"[(,]\s*(?:(\d+)|([A-Za-z_]\w*)([+-]\d+)?)\)$")


def time_of(atom: str) -> tuple[str | None, int] | None:
    """The time term of an atom as it is printed: its variable, if it has one, and the number."""
    found = _TIME.search(atom)
    if found is None:
        return None
    number, variable, offset = found.groups()
    return (None, int(number)) if number else (variable, int(offset or 0))


def _listed(texts: Sequence[str], most: int) -> str:
    shown = ", ".join(texts[:most])
    return shown if len(texts) <= most else f"{shown} and {len(texts) - most} more"


def waits_for(hypotheses: Sequence[str], conditions: Sequence[str], most: int = 3) -> str:
    """What a pending answer waits for, in one line."""
    where = f" where {_listed(conditions, most)}" if conditions else ""
    return _listed(hypotheses, most) + where


def evidence_of(evidence: int, hypotheses: int) -> str:
    return f"{evidence} of {evidence + hypotheses}"


def must_happen(triple: Triple, clock: Clock) -> list[Node]:
    """For each hypothesis what must arrive, and by when; then the conditions on them."""
    told: list[Node] = []
    for atom, closes in zip(triple.hypotheses, triple.closes, strict=True):
        if closes is None:
            told.append(h("li", h("code", atom), " must arrive; it may do so at any time"))
            continue
        told.append(
            h("li", h("code", atom), " must arrive by ", clock.at(closes), ": ", clock.left(closes))
        )
    if triple.conditions:
        told.append(h("li", "where ", h("code", ", ".join(triple.conditions))))
    return told
