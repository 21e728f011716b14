"""Putting a run together: program, checkpoint, store and Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from pyspark.sql import SparkSession

from monitor.checkpoint import open_checkpoint
from monitor.clock import Clock
from monitor.programs import read_program
from monitor.run import Happening, Options, Run
from monitor.sources import Files, Topic, parse_source
from monitor.spark_session import session
from resolution.premises import PremiseSet, premise_sets
from resolution.program import Program, compile_program
from resolution.routing import Routing
from resolution.terms import Var
from storage.programs import ProgramInfo, QueryInfo, StreamInfo, VariableInfo, end_run, register_run
from storage.store import Store, home_folder, open_store


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
class Loaded:
    """A program file, ready to run."""

    name: str
    program: Program
    sets: list[tuple[PremiseSet, ...]]
    routing: Routing

    @classmethod
    def of(cls, name: str, program: Program) -> Loaded:
        sets = [premise_sets(program, query) for query in program.queries]
        return cls(name, program, sets, Routing.of(sets, program.delays))


def make_run(
    spark: SparkSession,
    store: Store,
    home: Path,
    loaded: Loaded,
    sources: list[Files | Topic],
    options: Options,
    *,
    fresh: bool = False,
    watch: Callable[[Happening], None] = lambda _: None,
) -> Run:
    """A run that goes on from its checkpoint in `home`, or begins one. Raises ProgramChanged."""
    names = [str(source) for source in sources]
    settings = {"sources": names, "until": options.until, "arrival": options.arrival_field}
    checkpoint = open_checkpoint(
        home, loaded.name, loaded.program, loaded.sets, settings, fresh=fresh
    )
    info = program_info(loaded.name, checkpoint.text, loaded.program, loaded.sets)
    with store.engine("owner") as engine:
        number = register_run(engine, info, str(checkpoint.folder), names)
    conninfo = store.url("writer")
    complete, latest = known_to_store(conninfo, number)
    clock = Clock(loaded.program.unit, options.grace, not options.once, complete, latest)
    return Run(
        spark,
        loaded.program,
        loaded.routing,
        sources,
        conninfo,
        number,
        checkpoint,
        clock,
        options,
        watch,
    )


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
    program = compile_program(*read_program(settings.program))
    loaded = Loaded.of(settings.program.stem, program)
    sources = [parse_source(text) for text in settings.source]
    home = home_folder().absolute()
    options = Options(once=settings.once, until=settings.until)
    with open_store(settings.store, home) as store:
        spark = session(
            settings.master,
            kafka=any(isinstance(s, Topic) for s in sources),
            log_file=home / "logs" / "spark.log",
        )
        run = make_run(spark, store, home, loaded, sources, options, fresh=settings.fresh)
        run.start().awaitTermination()
        run.finish()
        run.close()
        with store.engine("owner") as engine:
            end_run(engine, run.number)
