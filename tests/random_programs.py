"""Random small programs, with facts that fit them: for the laws of every way to compute answers.

A `Case` is a program as text and events as they stand in a log, valid by construction and small
enough for the definition of `S_τ` to be followed literally. Predicates and constants are few, so
that joins hit; `features` says what a case has in it, so that a test can count what was reached.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from hypothesis import strategies as st

from resolution.facts import Arrivals, Fact, read_event
from resolution.premises import PremiseSet, premise_sets
from resolution.program import Program, load
from resolution.terms import Atom, Time, Value, Var

NAMES = ("a", "b")
CONSTANTS = (*NAMES, "1")
LONGEST_DELAY = 4
LAST_TIME = 4

Draw: TypeAlias = Callable[[st.SearchStrategy[Any]], Any]


@dataclass(frozen=True, repr=False)
class Case:
    """A program and the events of a log, in the order in which they are read."""

    text: str
    events: tuple[dict[str, Any], ...] = field(default=())

    @cached_property
    def program(self) -> Program:
        return load(self.text)

    @cached_property
    def facts(self) -> tuple[Fact, ...]:
        return tuple(read_event(json.dumps(event), self.program) for event in self.events)

    @cached_property
    def arrivals(self) -> Arrivals:
        return Arrivals.of(self.facts, self.program.delays)

    @cached_property
    def premise_sets(self) -> tuple[tuple[PremiseSet, ...], ...]:
        """`P_Q` of each query."""
        return tuple(premise_sets(self.program, query) for query in self.program.queries)

    @property
    def times(self) -> range:
        """Every τ from the first arrival until after the last of them can have closed anything."""
        arrivals = [event["arrival"] for event in self.events] or [0]
        return range(min(arrivals), max(arrivals) + 2 * LONGEST_DELAY + 4)

    @property
    def jsonl(self) -> str:
        return "".join(json.dumps(event) + "\n" for event in self.events)

    def __repr__(self) -> str:
        return f"\n{self.text}{self.jsonl}"


@dataclass(frozen=True)
class _Predicate:
    name: str
    arity: int
    delay: int = 0
    rigid: bool = False
    weight: int = 1
    """How many stream atoms it comes to at most."""


# --- programs ------------------------------------------------------------------------------------


@st.composite
def programs(draw: Draw) -> str:
    """The text of a program: streams, perhaps rigid facts, rules to depth 2, one query or two."""
    streams = [
        _Predicate(name, draw(st.integers(0, 2)), draw(st.integers(0, LONGEST_DELAY)))
        for name in ("Ping", "Load", "Mode")[: draw(st.integers(1, 3))]
    ]
    statements = [text for stream in streams for text in _declaration(draw, stream)]
    known = list(streams)
    if draw(_sometimes(3)):
        near = _Predicate("Near", draw(st.integers(1, 2)), rigid=True, weight=0)
        statements += _rigid(draw, near)
        known.append(near)
    low = _Predicate("Low", draw(st.integers(0, 2)), weight=2)
    statements += _rules(draw, low, known, most=2)
    asked = [low]
    if draw(st.booleans()):
        top = _Predicate("Top", draw(st.integers(0, 2)))
        statements += _rules(draw, top, [low, *known], most=4)
        asked.insert(0, top)
    queries = [_query(draw, asked[0])]
    if draw(_sometimes(4)):
        queries.append(_query(draw, draw(st.sampled_from(asked))))
    statements += dict.fromkeys(queries)
    return "".join(f"{statement}\n" for statement in said_once(statements))


def _sometimes(one_in: int) -> st.SearchStrategy[bool]:
    return st.integers(0, one_in - 1).map(lambda number: number == one_in - 1)


def _declaration(draw: Draw, stream: _Predicate) -> list[str]:
    fields = ", ".join(f"f{place}" for place in range(stream.arity))
    patterns = []
    if stream.arity and draw(_sometimes(3)):
        terms = st.lists(
            st.sampled_from(("_", *CONSTANTS)), min_size=stream.arity, max_size=stream.arity
        )
        patterns = draw(st.lists(terms, max_size=3, unique_by=tuple))
    return [
        f"stream {stream.name}({fields}) delay {stream.delay}.",
        *(
            f"delay {stream.name}({', '.join(pattern)}) = {draw(st.integers(0, LONGEST_DELAY))}."
            for pattern in patterns
        ),
    ]


def _rigid(draw: Draw, near: _Predicate) -> list[str]:
    row = st.lists(st.sampled_from(NAMES), min_size=near.arity, max_size=near.arity)
    rows = draw(st.lists(row, min_size=1, max_size=3, unique_by=tuple))
    fields = ", ".join(f"f{place}" for place in range(near.arity))
    return [f"rigid {near.name}({fields}).", *(f"Near({', '.join(row)})." for row in rows)]


def _rules(draw: Draw, head: _Predicate, known: list[_Predicate], most: int) -> list[str]:
    return [_rule(draw, head, known, most) for _ in range(draw(st.integers(1, 2)))]


def _rule(draw: Draw, head: _Predicate, known: list[_Predicate], most: int) -> str:
    timed = [p for p in known if not p.rigid]
    body = [draw(st.sampled_from(timed))]
    for _ in range(draw(st.sampled_from((1, 1, 0, 2, 2)))):
        room = most - sum(p.weight for p in body)
        body.append(draw(st.sampled_from([p for p in known if p.weight <= room] or timed[-1:])))
        if sum(p.weight for p in body) > most:
            body.pop()
    literals = [_atom(draw, predicate) for predicate in body]
    objects = _found(r"\b[XYZ]\b", literals)
    times = _found(r"\b[TSR]\b", literals)
    # What a variable of a derived or rigid atom is may be known, and then a constant must fit it.
    elsewhere = _found(
        r"\b[XYZ]\b", [t for t, p in zip(literals, body, strict=True) if p.weight != 1]
    )
    free = [name for name in objects if name not in elsewhere]
    comparisons = _comparisons(draw, objects, free, times)
    args = [
        draw(st.sampled_from((*objects, *objects, *objects, *NAMES))) for _ in range(head.arity)
    ]
    if times:
        time = _shifted(draw(st.sampled_from(times)), draw(_shifts))
    else:
        time = str(draw(st.integers(0, 2)))
    if draw(_sometimes(8)):
        time = "0"
    return f"{head.name}({', '.join([*args, time])}) <- {', '.join(literals + comparisons)}."


_shifts = st.sampled_from((0, 0, 1, -1, 2, -2))


def _atom(draw: Draw, predicate: _Predicate) -> str:
    constants = ("a", "1") if predicate.weight == 1 else NAMES
    term = st.sampled_from(("X", "X", "Y", "Y", "Z", *constants, "_"))
    args = [draw(term) for _ in range(predicate.arity)]
    if not predicate.rigid:
        base = draw(st.sampled_from(("T", "T", "T", "T", "T", "S", "S", "R", None)))
        args.append(str(draw(st.integers(0, 3))) if base is None else _shifted(base, draw(_shifts)))
    return f"{predicate.name}({', '.join(args)})"


def _comparisons(draw: Draw, objects: list[str], free: list[str], times: list[str]) -> list[str]:
    found = []
    if len(times) > 1 and draw(st.integers(0, 2)):
        left, right, *_ = draw(st.permutations(times))
        lower, upper = sorted((draw(st.integers(-1, 2)), draw(st.integers(0, 5))))
        found += [
            f"{left} {draw(st.sampled_from(('>', '>=', '=')))} {_shifted(right, lower)}",
            f"{left} {draw(st.sampled_from(('<', '<=')))} {_shifted(right, upper)}",
        ][: draw(st.integers(1, 2))]
    elif times and draw(_sometimes(6)):
        operator = draw(st.sampled_from((">=", "<=", "<", ">", "=")))
        found.append(f"{draw(st.sampled_from(times))} {operator} {draw(st.integers(0, 4))}")
    if objects and draw(_sometimes(3)):
        left = draw(st.sampled_from(free or objects))
        others = [name for name in objects if name != left]
        right = draw(st.sampled_from((*others, *(CONSTANTS if left in free else ())) or (left,)))
        left, right = draw(st.permutations((left, right)))
        operator = draw(st.sampled_from(("!=", "!=", "<", "<=", ">", ">=", "=")))
        found.append(f"{left} {operator} {right}")
    return found


def _query(draw: Draw, predicate: _Predicate) -> str:
    term = st.sampled_from(("X", "Y", "Y", "Z", "Z", "Z", "a", "_"))
    args = [draw(term) for _ in range(predicate.arity)]
    time = draw(st.sampled_from(("T", "T", "T", "T", "T", "T", "T", "T", "T", "T+1", "T-1", "2")))
    return f"query {predicate.name}({', '.join([*args, time])})."


def _shifted(base: str, by: int) -> str:
    return f"{base}{by:+d}" if by else base


def _found(pattern: str, literals: list[str]) -> list[str]:
    return sorted({name for literal in literals for name in re.findall(pattern, literal)})


def said_once(statements: list[str]) -> list[str]:
    """Statements of which no two differ in the names of variables only."""
    kept: dict[str, str] = {}
    for statement in statements:
        names: dict[str, str] = {}

        def numbered(name: re.Match[str], names: dict[str, str] = names) -> str:
            key = name[0] if name[0] != "_" else f"_{len(names)}"
            return names.setdefault(key, f"V{len(names)}")

        alike = re.sub(r"\b[A-Z_]\b", numbered, statement)
        kept.setdefault(alike, statement)
    return list(kept.values())


# --- facts ---------------------------------------------------------------------------------------


@st.composite
def cases(draw: Draw, facts: int = 7) -> Case:
    """A program and about so many events: in time and late, out of order, some of them twice.

    Half of them are instances of the atoms of one premise set, so that answers come about.
    """
    case = Case(draw(programs()))
    streams = case.program.streams
    stray = st.sampled_from(sorted(streams)).flatmap(lambda name: _stray(name, len(streams[name])))
    sets = [premises for of_query in case.premise_sets for premises in of_query]
    events: list[dict[str, Any]] = []
    while sets and len(events) < facts and draw(st.integers(0, 3)):
        events += _instances(draw, draw(st.sampled_from(sets)), case.program)
    events += draw(st.lists(stray, max_size=max(0, facts - len(events))))
    return Case(case.text, tuple(draw(st.permutations(events))))


def _stray(name: str, arity: int) -> st.SearchStrategy[dict[str, Any]]:
    """An event that has nothing to do with the others, but may come to."""
    return st.builds(
        _event,
        st.just(name),
        st.lists(_values, min_size=arity, max_size=arity),
        st.integers(0, LAST_TIME),
        st.sampled_from((0, 0, 0, 1, 1, 2, 3, 4, 5)),
    )


def _instances(draw: Draw, premises: PremiseSet, program: Program) -> list[dict[str, Any]]:
    """Events for some atoms of a premise set, joined as it joins them, mostly in time."""
    objects: dict[Var, Value] = {}
    times: dict[Var | None, int] = {None: 0}
    events = []
    for atom in premises.atoms:
        assert atom.time is not None
        for arg in atom.args:
            if isinstance(arg, Var) and arg not in objects:
                objects[arg] = draw(_values)
        if atom.time.base not in times:
            times[atom.time.base] = draw(st.integers(0, 3))
        args = [objects[arg] if isinstance(arg, Var) else arg for arg in atom.args]
        time = times[atom.time.base] + atom.time.offset
        if time >= 0 and draw(st.integers(0, 5)):
            known = Atom(atom.predicate, tuple(args), Time(None, time))
            latest = program.delays.of(known)
            delay = draw(st.sampled_from((0, latest, latest // 2, latest, latest + 1)))
            events.append(_event(atom.predicate, args, time, delay))
    return events


_values = st.sampled_from([int(text) if text.isdigit() else text for text in CONSTANTS])


def _event(name: str, args: list[Value], time: int, delay: int) -> dict[str, Any]:
    return {"fact": name, "args": args, "time": time, "arrival": time + delay}


# --- what was reached ----------------------------------------------------------------------------


def features(case: Case) -> set[str]:
    """What a case has in it that an evaluator may get wrong."""
    sets = [premises for of_query in case.premise_sets for premises in of_query]
    found: set[str] = set()
    for premises in sets:
        bases = {atom.time.base for atom in premises.atoms if atom.time} - {None}
        if len(premises.atoms) > 1:
            found.add("join")
        if len(bases) > 1:
            found.add("several time variables")
        if any(a.time and a.time.base is None for a in premises.atoms):
            found.add("time constant")
        if any(type(c.left).__name__ == "Time" for c in premises.comparisons):
            found.add("time comparison")
        if any(type(c.left).__name__ != "Time" for c in premises.comparisons):
            found.add("object comparison")
        if len({(a.predicate, a.time.base) for a in premises.atoms if a.time}) < len(
            premises.atoms
        ):
            found.add("shift")
    present = {
        "several premise sets": any(len(of_query) > 1 for of_query in case.premise_sets),
        "no premise sets": not sets,
        "several queries": len(case.program.queries) > 1,
        "rigid": "rigid" in case.text,
        "depth 2": "Top(" in case.text and "Low(" in case.text.split("Top(", 1)[1],
        "ground query argument": bool(re.search(r"query \w+\((.*\b[a0-9]\b.*)\)", case.text)),
        "delay pattern": "\ndelay" in case.text,
        "late fact": bool(case.arrivals.late),
        "duplicate fact": len({fact.atom for fact in case.facts}) < len(case.facts),
    }
    return found | {name for name, there in present.items() if there}
