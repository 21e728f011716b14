"""How a query is answered, in data: premise sets, keys, windows, delays, and what decides when.

`explain` gives one JSON object a query; `as_text` and `as_tree` put such an object into words. Its
keys are stable:

    query         the query as text
    name          its predicate
    unit_ms       the length of a time point, in milliseconds
    group         what is computed together: `key`, terms of the query, and `block`, a number of
                  time points, with `reach`, for how many more a block gets facts; null: one block
    window        `from` and `to`: where premises lie against the answer's time; null: not bounded
    decided       how many time points after an answer's own it is decided at the latest; null: that
                  is not bounded
    evaluation    which premise sets the kernel evaluates in which way, and why
    warnings      what may surprise, in words
    premise_sets  a list, each with
        number, answer     as `trace` and the store name them
        atoms              each with its `atom`, `delay` (the largest of its instances),
                           `least_delay`, `from`, `to` against the answer's time, and `closes`,
                           the time point at which it is closed at the latest; null: never
        conditions         comparisons
        key                variables that stand in every atom and in the answer
        window             as above, of this set alone
        decided            `at` which time, `by` the closing of which atoms, and how long `after`
                           the answer's time (null: not counted from it); null: perhaps never
        rigid              the rigid facts that were used
        derivation         the rules that led to it, top down: `depth`, `atom`, `kind` (derived,
                           rigid or stream), and the number of the `rule` and its `line`
        says               what decides an answer and when, in words
        warnings           as above, of this set alone
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from resolution.bounds import Bounds
from resolution.delays import Delays
from resolution.errors import Lines
from resolution.premises import Derivation, PremiseSet, premise_sets
from resolution.program import Program, Query
from resolution.routing import QueryRouting, Routing
from resolution.substitution import variables, variables_in_order
from resolution.terms import Atom, Term, Time, Var, show

Object: TypeAlias = dict[str, Any]


def explain(program: Program, sets: Sequence[tuple[PremiseSet, ...]] | None = None) -> list[Object]:
    """An object for each query. Raises TooManyPremiseSets; `sets` may be given where known."""
    if sets is None:
        sets = [premise_sets(program, query) for query in program.queries]
    routings = Routing.of(sets, program.delays).queries
    lines = _rule_lines(program)
    return [
        _query(program, query, found, [_premise_set(program, lines, p) for p in found], routing)
        for query, found, routing in zip(program.queries, sets, routings, strict=True)
    ]


def rules(program: Program) -> list[Object]:
    """The rules of a program as they are numbered: `number`, `line`, `text`."""
    lines = _rule_lines(program)
    text = program.source.text
    return [
        {"number": r.number, "line": lines[r.number], "text": text[r.span.start : r.span.end]}
        for r in program.rules
    ]


def _rule_lines(program: Program) -> dict[int, int]:
    lines = Lines(program.source.text)
    return {rule.number: lines.place(rule.span.start)[0] for rule in program.rules}


# --- a query -------------------------------------------------------------------------------------


def _query(
    program: Program,
    query: Query,
    sets: tuple[PremiseSet, ...],
    found: list[Object],
    routing: QueryRouting,
) -> Object:
    blocks = routing.blocks if found else None
    return {
        "query": _text(query.atom),
        "name": query.name,
        "unit_ms": program.unit,
        "group": {
            "key": [_term(query.atom.args[place]) for place in routing.key],
            "block": blocks.length if blocks else None,
            "reach": blocks.reach if blocks else None,
        },
        "window": _span([premises["window"] for premises in found]),
        "decided": _most([(premises["decided"] or {}).get("after") for premises in found]),
        "evaluation": _evaluation(sets),
        "warnings": [] if found else ["it has no premise sets, so it never has an answer"],
        "premise_sets": found,
    }


def _evaluation(sets: tuple[PremiseSet, ...]) -> list[Object]:
    from resolution.kernel import plan

    return [
        {
            "premise_sets": [premises.number for premises in part.premise_sets],
            "way": "forms" if hasattr(part, "reason") else "cells",
            "reason": getattr(part, "reason", "every premise alone says which answer it is for"),
        }
        for part in plan(sets)
    ]


# --- a premise set -------------------------------------------------------------------------------


def _premise_set(program: Program, lines: dict[int, int], premises: PremiseSet) -> Object:
    bounds = premises.bounds
    atoms = [_atom(atom, premises.answer, bounds, program.delays) for atom in premises.atoms]
    closings = [_closes(atom, premises.answer, bounds, program.delays) for atom in premises.atoms]
    key = _key(premises)
    decided = _decided(premises, closings)
    derivation = list(_derivation(premises.derivation, program, lines))
    return {
        "number": premises.number,
        "answer": _text(premises.answer),
        "atoms": atoms,
        "conditions": [str(comparison) for comparison in premises.comparisons],
        "key": [var.name for var in key],
        "window": _span(atoms),
        "decided": decided,
        "rigid": list(dict.fromkeys(d["atom"] for d in derivation if d["kind"] == "rigid")),
        "derivation": derivation,
        "says": _says(premises, decided, closings),
        "warnings": list(_warnings(premises, key, closings)),
    }


def _atom(atom: Atom, answer: Atom, bounds: Bounds, delays: Delays) -> Object:
    assert atom.time is not None
    assert answer.time is not None
    closes = _closes(atom, answer, bounds, delays)
    earliest = _gap(bounds, answer.time, atom.time)
    return {
        "atom": _text(atom),
        "delay": delays.of(atom),
        "least_delay": delays.least(atom),
        "from": None if earliest is None else -earliest,
        "to": _gap(bounds, atom.time, answer.time),
        "closes": None if closes is None else str(closes),
    }


def _gap(bounds: Bounds, one: Time, other: Time) -> int | None:
    """The greatest value of one - other."""
    most = bounds.at_most(one.base, other.base)
    return None if most == float("inf") else int(most) + one.offset - other.offset


def _closes(atom: Atom, answer: Atom, bounds: Bounds, delays: Delays) -> Time | None:
    """When an atom is closed at the latest: counted from the answer's time, or a time point."""
    assert atom.time is not None
    assert answer.time is not None
    latest = _gap(bounds, atom.time, answer.time)
    if latest is not None and atom.time.base is not None:
        return answer.time.shifted(latest + delays.of(atom))
    point = bounds.latest(atom.time)
    return None if point is None else Time(None, point + delays.of(atom))


def _decided(premises: PremiseSet, closings: list[Time | None]) -> Object | None:
    """The last closing, after which every atom is there or closed."""
    known = [time for time in closings if time is not None]
    if not known or len(known) < len(closings):
        return None
    answer = premises.answer.time
    assert answer is not None
    last = [max((t for t in known if t.base == base), key=lambda t: t.offset)
            for base in dict.fromkeys(t.base for t in known)]  # fmt: skip
    relative = all(time.base == answer.base for time in last)
    return {
        "at": " or ".join(map(str, last)),
        "after": last[0].offset - answer.offset if relative else None,
        "by": [_text(a) for a, time in zip(premises.atoms, closings, strict=True) if time in last],
    }


def _says(premises: PremiseSet, decided: Object | None, closings: list[Time | None]) -> str:
    answer = f"an answer at {premises.answer.time}"
    if decided is None:
        never = [_text(a) for a, t in zip(premises.atoms, closings, strict=True) if t is None]
        closes = "closes" if len(never) == 1 else "close"
        waits = f": {_and(never)} never {closes}" if never else ""
        return f"{answer} may stay pending for ever{waits}"
    later = ", whichever is later" if " or " in decided["at"] else ""
    closes = "closes" if len(decided["by"]) == 1 else "close"
    return (
        f"{answer} is decided at the latest at {decided['at']}{later}: "
        f"when {_and(decided['by'])} {closes}"
    )


def _key(premises: PremiseSet) -> list[Var]:
    common = [variables(atom) for atom in premises.atoms]
    return [v for v in variables_in_order([premises.answer]) if all(v in some for some in common)]


def _warnings(premises: PremiseSet, key: list[Var], closings: list[Time | None]) -> Iterator[str]:
    if not premises.atoms:
        yield (
            "it has no stream atom: it holds without evidence, so it never is an answer, and what "
            "else may support the same answer is not minimal"
        )
    if len(premises.atoms) > 1 and not key and variables(*premises.atoms):
        yield (
            "no variable stands in all its atoms and in the answer: nothing but time divides its "
            "facts, which are computed in one group"
        )
    for atom, closing in zip(premises.atoms, closings, strict=True):
        if closing is None:
            yield (
                f"the time of {_text(atom)} has no bound against the answer: it never closes, and "
                "a pending answer that awaits it has no deadline"
            )


def _derivation(top: Derivation, program: Program, lines: dict[int, int]) -> Iterator[Object]:
    stack = [(0, top)]
    while stack:
        depth, node = stack.pop()
        if node.rule is not None:
            kind = "derived"
        else:
            kind = "rigid" if node.atom.predicate in program.rigid else "stream"
        yield {
            "depth": depth,
            "atom": _text(node.atom),
            "kind": kind,
            "rule": node.rule.number if node.rule else None,
            "line": lines[node.rule.number] if node.rule else None,
        }
        stack.extend((depth + 1, child) for child in reversed(node.children))


# --- parts ---------------------------------------------------------------------------------------


def _text(atom: Atom) -> str:
    """An atom as text, in which a variable without a name is `_`."""
    return re.sub(r"_#\d+", "_", str(atom))


def _term(term: Term) -> str:
    return show(term).split("#")[0]


def _and(texts: list[str]) -> str:
    return " and ".join([", ".join(texts[:-1]), texts[-1]]) if len(texts) > 1 else "".join(texts)


def _span(parts: list[Object]) -> Object:
    starts = [part["from"] for part in parts]
    return {
        "from": None if None in starts else min(starts, default=None),
        "to": _most([part["to"] for part in parts]),
    }


def _most(values: list[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return max(known) if known and len(known) == len(values) else None


# --- in words ------------------------------------------------------------------------------------


def as_text(explained: Object) -> str:
    """What `explain` says of a query, for people."""
    return "\n".join(_lines(explained)) + "\n"


def _lines(explained: Object) -> Iterator[str]:
    sets, group = explained["premise_sets"], explained["group"]
    count = "1 premise set" if len(sets) == 1 else f"{len(sets):,} premise sets"
    yield f"query {explained['query']}: {count}"
    if sets:
        key = f"by {', '.join(group['key'])}" if group["key"] else "together"
        if group["block"] is None:
            yield f"  facts are kept {key}, for ever: some time has no bound"
        else:
            block = f"in blocks of {group['block']} time points"
            yield f"  facts are kept {key}, {block}, each for {group['reach']} more after its end"
        if explained["decided"] is None:
            yield "  some answers have no bound on when they are decided"
        else:
            yield f"  an answer is decided at most {explained['decided']} time points after its own"
    for part in explained["evaluation"]:
        numbers = ", ".join(map(str, part["premise_sets"][:5]))
        more = ", …" if len(part["premise_sets"]) > 5 else ""
        yield f"  evaluated as {part['way']} ({numbers}{more}): {part['reason']}"
    yield from (f"  warning: {warning}" for warning in explained["warnings"])
    for premises in sets:
        yield ""
        yield from _set_lines(premises)


def _set_lines(premises: Object) -> Iterator[str]:
    yield f"  {premises['number']}. {premises['answer']}"
    width = max((len(atom["atom"]) for atom in premises["atoms"]), default=0)
    for atom in premises["atoms"]:
        least, most = atom["least_delay"], atom["delay"]
        delay = f"{most}" if least == most else f"{least} to {most}"
        closes = "never closes" if atom["closes"] is None else f"closes at {atom['closes']}"
        yield f"       {atom['atom']:{width}}  delay {delay}, {closes}"
    if premises["conditions"]:
        yield f"     where {', '.join(premises['conditions'])}"
    if premises["rigid"]:
        yield f"     with {', '.join(premises['rigid'])}"
    window = premises["window"]
    start, end = ("unbounded" if window[end] is None else window[end] for end in ("from", "to"))
    key = ", ".join(premises["key"]) or "none"
    yield f"     key: {key}; window: {start} to {end}; lines: {', '.join(_rule_names(premises))}"
    yield f"     {premises['says']}"
    yield from (f"     warning: {warning}" for warning in premises["warnings"])


def _rule_names(premises: Object) -> list[str]:
    used = (node["line"] for node in premises["derivation"] if node["line"] is not None)
    return [str(line) for line in dict.fromkeys(used)]


def as_tree(explained: Object) -> str:
    """Which rules led to each premise set of a query."""
    told = [f"query {explained['query']}"]
    for premises in explained["premise_sets"]:
        told += ["", f"  {premises['number']}. {premises['answer']}"]
        told += [f"     {line}" for line in _branches(premises["derivation"])]
        told += [f"     where {condition}" for condition in premises["conditions"]]
    return "\n".join(told) + "\n"


def _branches(nodes: list[Object]) -> list[str]:
    lines: list[str] = []
    open_: set[int] = set()
    """The depths at which a later line has a sibling of this one's ancestor."""
    for node in reversed(nodes):
        depth = node["depth"]
        open_ = {other for other in open_ if other <= depth}
        stem = "".join("│  " if level in open_ else "   " for level in range(1, depth))
        twig = "" if not depth else "├─ " if depth in open_ else "└─ "
        origin = f"rule {node['rule']}, line {node['line']}" if node["rule"] else node["kind"]
        lines.append(f"{stem}{twig}{node['atom']}  ({origin})")
        open_.add(depth)
    return lines[::-1]
