"""What the store keeps of a program, and what it knows of a run."""

from __future__ import annotations

from typing import Any

import psycopg

from resolution.explain import explain
from resolution.premises import PremiseSet
from resolution.program import Program
from resolution.terms import Var
from storage.programs import ProgramInfo, QueryInfo, StreamInfo, VariableInfo


def program_info(
    name: str, text: str, program: Program, sets: list[tuple[PremiseSet, ...]]
) -> ProgramInfo:
    """What the store keeps of a program."""
    queries = tuple(
        QueryInfo(query.name, str(query.atom), tuple(_variables(program, found)), explained)
        for query, found, explained in zip(
            program.queries, sets, explain(program, sets), strict=True
        )
    )
    streams = tuple(
        StreamInfo(
            stream,
            tuple((f.name, f.type) for f in fields),
            program.delays.bounds[stream][(None,) * len(fields)],
            program.delays.largest(stream),
        )
        for stream, fields in program.streams.items()
    )
    return ProgramInfo(name, text, program.unit, queries, streams)


def _variables(program: Program, sets: tuple[PremiseSet, ...]) -> list[VariableInfo]:
    if not sets:
        return []
    query = sets[0].query.atom
    found: dict[str, VariableInfo] = {}
    for place, term in enumerate(query.args):
        if isinstance(term, Var) and "#" not in term.name:
            numeric = all(_numeric(program, premises, place) for premises in sets)
            kind = "number" if numeric else "text"
            found[term.name] = VariableInfo(term.name, kind, _column(program, sets, place))
    base = query.time.base if query.time is not None else None
    if base is not None and "#" not in base.name:
        found[base.name] = VariableInfo(base.name, "time")
    return list(found.values())


def _column(program: Program, sets: tuple[PremiseSet, ...], place: int) -> str | None:
    """The field that a value of the answer comes from, where all premise sets agree."""
    names = {
        program.streams[atom.predicate][at].name
        for premises in sets
        for atom in premises.atoms
        for at, arg in enumerate(atom.args)
        if isinstance(arg, Var) and arg == premises.answer.args[place]
    }
    return names.pop() if len(names) == 1 else None


def _numeric(program: Program, premises: PremiseSet, place: int) -> bool:
    """Whether a value of the answer can be a number only."""
    term = premises.answer.args[place]
    if not isinstance(term, Var):
        return not isinstance(term, str)
    return any(
        program.streams[atom.predicate][at].type in ("int", "float")
        for atom in premises.atoms
        for at, arg in enumerate(atom.args)
        if arg == term
    )


def known_to_store(conninfo: str, run: int) -> tuple[int | None, int | None]:
    """The last complete time point and the latest arrival of a run, as the store has them."""
    with psycopg.connect(conninfo) as db:
        row: Any = db.execute(
            "select complete_tau, (select max(latest_arrival) from batches b where b.run = r.id) "
            "from runs r where id = %s",
            (run,),
        ).fetchone()
    return row
