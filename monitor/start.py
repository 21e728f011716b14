"""Putting a run together: program, checkpoint, store and Spark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from monitor.checkpoint import open_checkpoint
from monitor.clock import Clock
from monitor.programs import read_program
from monitor.run import Options, Run
from monitor.sources import Topic, parse_source
from monitor.spark_session import session
from resolution.premises import PremiseSet, premise_sets
from resolution.program import Program, compile_program
from resolution.routing import Routing
from resolution.terms import Var
from storage.programs import ProgramInfo, QueryInfo, StreamInfo, VariableInfo, end_run, register_run
from storage.store import home_folder, open_store


def program_info(
    name: str, text: str, program: Program, sets: list[tuple[PremiseSet, ...]]
) -> ProgramInfo:
    """What the store keeps of a program."""
    queries = tuple(
        QueryInfo(query.name, str(query.atom), tuple(_variables(program, found)))
        for query, found in zip(program.queries, sets, strict=True)
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
            found[term.name] = VariableInfo(term.name, "number" if numeric else "text")
    base = query.time.base if query.time is not None else None
    if base is not None and "#" not in base.name:
        found[base.name] = VariableInfo(base.name, "time")
    return list(found.values())


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


@dataclass(frozen=True, slots=True)
class Settings:
    program: Path
    source: list[str]
    once: bool = False
    until: int | None = None
    store: str | None = None
    master: str = "local[*]"
    fresh: bool = False


def main(settings: Settings) -> None:
    tree, rigid = read_program(settings.program)
    program = compile_program(tree, rigid)
    sets = [premise_sets(program, query) for query in program.queries]
    sources = [parse_source(text) for text in settings.source]
    name = settings.program.stem
    home = home_folder().absolute()
    identity = {"sources": [str(s) for s in sources], "until": settings.until}
    checkpoint = open_checkpoint(home, name, program, sets, identity, fresh=settings.fresh)
    with open_store(settings.store, home) as store:
        info = program_info(name, checkpoint.text, program, sets)
        with store.engine("owner") as engine:
            number = register_run(engine, info, str(checkpoint.folder), [str(s) for s in sources])
        conninfo = store.url("writer")
        complete, latest = known_to_store(conninfo, number)
        spark = session(
            settings.master,
            kafka=any(isinstance(s, Topic) for s in sources),
            log_file=home / "logs" / "spark.log",
        )
        clock = Clock(program.unit, 2000, not settings.once, complete, latest)
        run = Run(
            spark,
            program,
            Routing.of(sets, program.delays),
            sources,
            conninfo,
            number,
            checkpoint,
            clock,
            Options(once=settings.once, until=settings.until),
            print,
        )
        query = run.start()
        query.awaitTermination()
        run.finish()
        run.close()
        with store.engine("owner") as engine:
            end_run(engine, number)
