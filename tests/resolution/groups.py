"""Facts as the kernel takes them, by the groups that routing sends them to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

from resolution.premises import premise_sets
from resolution.program import Program
from resolution.routing import Routing, Target
from resolution.terms import Atom, show


def routing_of(program: Program) -> Routing:
    return Routing.of((premise_sets(program, q) for q in program.queries), program.delays)


def grouped(
    routing: Routing,
    number: int,
    arrived: Mapping[Atom, int],
    fresh: Collection[Atom] | None = None,
) -> list[dict[str, object]]:
    """The facts of a query by groups; with `fresh` of those groups alone that have such facts."""
    query = routing.queries[number]
    groups: dict[Target, list[Atom]] = defaultdict(list)
    for atom in arrived:
        for target in routing.targets(atom):
            if target.query == number:
                groups[target].append(atom)
    rows = []
    for at, (target, atoms) in enumerate(groups.items()):
        if fresh is not None and not any(atom in fresh for atom in atoms):
            continue
        blocks = query.blocks
        first, past = (None, None)
        if blocks is not None and target.closes is not None:
            first, past = blocks.bounds(target.closes)
            # Whatever comes to a block comes before it closes.
            assert all(arrived[a] <= target.closes for a in atoms)
        for atom in atoms:
            row = fact_row(at, target.key, first, past, atom, arrived[atom])
            rows.append({**row, "fresh": fresh is None or atom in fresh})
    return rows


def fact_row(
    group: int, key: str | None, first: int | None, past: int | None, atom: Atom, arrival: int
) -> dict[str, object]:
    assert atom.time is not None
    return {
        "group": group, "key": key, "first": first, "past": past, "predicate": atom.predicate,
        "args": list(map(show, atom.args)), "time": atom.time.offset, "arrival": arrival,
        "fresh": True,
    }  # fmt: skip
