"""What a program comes to: premise sets, keys, windows, delays, and what decides an answer, when.

`explain` gives plain data, the same that `whilst explain --format json` prints and that a run keeps
in the store; `sentences` says it for people.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from resolution.bounds import Bounds
from resolution.errors import Lines
from resolution.premises import Derivation, PremiseSet, premise_sets
from resolution.program import Program, Query
from resolution.routing import Routing
from resolution.terms import Atom, Time

Explanation = dict[str, Any]


def explain(program: Program) -> list[Explanation]:
    """An explanation of each query, in order."""
    sets = [premise_sets(program, query) for query in program.queries]
    routing = Routing.of(sets, program.delays)
    lines = Lines(program.source.text)
    return [
        _query(program, query, found, routing, number, lines)
        for number, (query, found) in enumerate(zip(program.queries, sets, strict=True))
    ]


def _query(
    program: Program,
    query: Query,
    sets: tuple[PremiseSet, ...],
    routing: Routing,
    number: int,
    lines: Lines,
) -> Explanation:
    from resolution.kernel import plan

    routed = routing.queries[number]
    explained = [_premise_set(program, premises, lines) for premises in sets]
    latest = [e["decided_after"] for e in explained]
    return {
        "query": str(query.atom),
        "name": query.name,
        "unit_ms": program.unit,
        "key": [str(query.atom.args[place]) for place in routed.key],
        "block": routed.blocks.length if routed.blocks is not None else None,
        "decided_after": max(latest) if latest and None not in latest else None,
        "evaluation": [
            {
                "premise_sets": [p.number for p in part.premise_sets],
                "way": "forms" if hasattr(part, "reason") else "cells",
                "reason": getattr(
                    part, "reason", "every premise alone says which answer it is for"
                ),
            }
            for part in plan(sets)
        ],
        "notes": list(_notes(sets, routed.key, routed.blocks is None)),
        "premise_sets": explained,
    }


def _notes(sets: tuple[PremiseSet, ...], key: tuple[int, ...], unbounded: bool) -> Iterator[str]:
    if not sets:
        yield "no premise set is left: nothing can ever be an answer"
    elif not key:
        yield "its premises have no variable in common that the answer shows: one group takes all"
    if sets and unbounded:
        yield "some premise may come at any distance from the answer: its facts are kept for ever"
    for premises in sets:
        if not premises.atoms:
            yield f"premise set {premises.number} awaits no stream: it holds without evidence"


def _premise_set(program: Program, premises: PremiseSet, lines: Lines) -> Explanation:
    bounds = premises.bounds
    atoms = [_atom(program, premises, atom, bounds) for atom in premises.atoms]
    ends = [atom["closes_after"] for atom in atoms]
    starts = [atom["from"] for atom in atoms]
    stops = [atom["to"] for atom in atoms]
    return {
        "number": premises.number,
        "answer": str(premises.answer),
        "atoms": atoms,
        "conditions": [str(c) for c in premises.comparisons],
        "window": {
            "from": None if None in starts else min(starts, default=0),
            "to": None if None in stops else max(stops, default=0),
        },
        "decided_after": None if None in ends else max(ends, default=0),
        "derivation": _derivation(premises.derivation, lines),
    }


def _atom(program: Program, premises: PremiseSet, atom: Atom, bounds: Bounds) -> Explanation:
    """An atom with its time points relative to the answer's, None where nothing bounds them."""
    assert atom.time is not None
    assert premises.answer.time is not None
    delay = program.delays.of(atom)
    latest = _after(bounds, atom.time, premises.answer.time)
    earliest = _after(bounds, premises.answer.time, atom.time)
    return {
        "atom": str(atom),
        "delay": delay,
        "from": None if earliest is None else -earliest,
        "to": latest,
        "closes_after": None if latest is None else latest + delay,
    }


def _after(bounds: Bounds, one: Time, other: Time) -> int | None:
    """By how much one time may be after another at most."""
    if one.base == other.base:
        return one.offset - other.offset
    most = bounds.closed.get((one.base, other.base))
    return None if most is None else most + one.offset - other.offset


def _derivation(derivation: Derivation, lines: Lines) -> Explanation:
    rule = derivation.rule
    return {
        "atom": str(derivation.atom),
        "rule": None if rule is None else str(rule),
        "line": None if rule is None else lines.place(rule.span.start)[0],
        "from": [_derivation(child, lines) for child in derivation.children],
    }


def sentences(explained: Explanation) -> Iterator[str]:
    """An explanation in words, a line at a time."""
    yield explained["query"]
    key = ", ".join(explained["key"]) or "none"
    yield f"  key         {key}"
    if explained["block"] is not None:
        yield f"  block       {explained['block']} time points of answers"
    yield f"  decided     {_decided(explained['decided_after'])}"
    for way in explained["evaluation"]:
        numbers = ", ".join(map(str, way["premise_sets"][:5]))
        more = ", …" if len(way["premise_sets"]) > 5 else ""
        yield f"  evaluated   as {way['way']} (premise sets {numbers}{more}): {way['reason']}"
    for note in explained["notes"]:
        yield f"  note        {note}"
    for premises in explained["premise_sets"]:
        yield ""
        yield f"  premise set {premises['number']}: {premises['answer']} holds where"
        for atom in premises["atoms"]:
            yield f"    {atom['atom']}{_when(atom)}"
        for condition in premises["conditions"]:
            yield f"    {condition}"
        yield f"    {_decided(premises['decided_after'])}"


def _decided(after: int | None) -> str:
    if after is None:
        return "perhaps never: nothing bounds how late some premise may come"
    return f"at the latest {_points(after)} after the answer's own, when the last premise closes"


def _when(atom: Explanation) -> str:
    closes = atom["closes_after"]
    arrives = f"arrives within {_points(atom['delay'])}"
    if closes is None:
        return f"   {arrives}; never closes"
    return f"   {arrives}; closes at {closes:+d}"


def _points(count: int) -> str:
    return "1 time point" if count == 1 else f"{count} time points"


def tree(derivation: Explanation, indent: str = "") -> Iterator[str]:
    """A derivation as lines: what follows from what, and by which rule."""
    by = f"   by line {derivation['line']}" if derivation["line"] is not None else ""
    yield f"{indent}{derivation['atom']}{by}"
    for child in derivation["from"]:
        yield from tree(child, indent + "  ")
