"""`whilst trace`: the answers of `S_τ` over files of facts, without Spark or a database."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from monitor.cli.programs import ProgramFile, failing, program_of

if TYPE_CHECKING:
    from rich.text import Text

    from resolution.facts import Arrivals, Fact
    from resolution.program import Program
    from resolution.triples import Triple


class Form(StrEnum):
    table = "table"
    json = "json"


def register(app: typer.Typer) -> None:
    app.command()(trace)


def trace(
    program_file: ProgramFile,
    facts: Annotated[
        list[str],
        typer.Argument(
            help="Files of facts: JSON Lines or CSV with a header, plain or gzip; `-` is "
            "standard input.",
            metavar="FACTS",
        ),
    ],
    at: Annotated[
        str | None,
        typer.Option(metavar="τ", help="Only this time point: a number or an ISO 8601 instant."),
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="τ", help="No time point beyond this one.")
    ] = None,
    form: Annotated[
        Form, typer.Option("--format", help="A table for people, or a JSON object a line.")
    ] = Form.table,
    strict: Annotated[
        bool, typer.Option("--strict", help="Trace nothing, and exit with 1, if a fact is bad.")
    ] = False,
) -> None:
    """Show the answers at every time point at which they changed, or at one.

    Bad and late facts are named on standard error; they take no part in any answer.

    Example: `whilst trace turbines.rules facts.jsonl --at 4`
    """
    import resolution

    if at is not None and until is not None:
        raise typer.BadParameter("give one of --at and --until")
    program = program_of(program_file)
    end = _time_point(until, "--until", program) if at is None else _time_point(at, "--at", program)
    with failing():
        arrived = _arrivals(facts, program, strict).first
        if at is None:
            moments = resolution.trace(program, arrived, end)
        else:
            assert end is not None
            moments = iter([(end, resolution.answers(program, arrived, end))])
        print_moment = _print_json if form is Form.json else _Tables().print
        lines = _Lines(program)
        for tau, triples in moments:
            print_moment(tau, lines.of(triples))


def _time_point(text: str | None, option: str, program: Program) -> int | None:
    from monitor.config import ConfigError, point

    if text is None:
        return None
    try:
        return point(text, program.unit, option)
    except ConfigError as error:
        raise typer.BadParameter(str(error)) from None


def _arrivals(files: list[str], program: Program, strict: bool) -> Arrivals:
    """The facts of the files; what is bad or late about them is told."""
    from monitor.factfiles import read_facts
    from resolution.facts import Arrivals

    facts: list[Fact] = []
    places: dict[Fact, str] = {}
    bad = 0
    for event in read_facts(files, program):
        if event.fact is None:
            bad += 1
            typer.echo(f"{event.place}: {event.reason}", err=True)
        else:
            facts.append(event.fact)
            places.setdefault(event.fact, event.place)
    arrivals = Arrivals.of(facts, program.delays)
    for fact in arrivals.late:
        latest = fact.time + program.delays.of(fact.atom)
        told = f"{fact.atom} is late: it arrived at {fact.arrival}, its bound was {latest}"
        typer.echo(f"{places[fact]}: {told}", err=True)
    if bad or arrivals.late:
        typer.echo(f"rejected events: {bad}, late facts: {len(arrivals.late)}", err=True)
    if bad and strict:
        raise typer.Exit(1)
    return arrivals


@dataclass(frozen=True, slots=True)
class _Line:
    """An answer as it is shown, which is the same at every τ."""

    order: tuple[object, ...]
    shown: dict[str, object]
    text: str
    """Its JSON object, from the second key on."""


class _Lines:
    """The lines of answers, each made once."""

    def __init__(self, program: Program) -> None:
        self._delays = program.delays
        self._queries = {query.atom: at for at, query in enumerate(program.queries)}
        self._known: dict[tuple[int, str], _Line] = {}

    def of(self, triples: list[Triple]) -> list[_Line]:
        return sorted(map(self._line, triples), key=lambda line: line.order)

    def _line(self, triple: Triple) -> _Line:
        key = self._queries[triple.premises.query.atom], triple.identity
        if key not in self._known:
            self._known[key] = self._made(triple, key[0])
        return self._known[key]

    def _made(self, triple: Triple, query: int) -> _Line:
        from resolution.triples import texts

        deadline = triple.deadline(self._delays)
        shown: dict[str, object] = {
            "query": triple.premises.query.name,
            "answer": str(triple.answer),
            "status": "confirmed" if triple.confirmed else "pending",
            "evidence": texts(triple.evidence),
            "hypotheses": texts(triple.hypotheses),
            "conditions": [str(condition) for condition in triple.conditions],
            "deadline": deadline,
        }
        time = triple.answer.time
        assert time is not None
        known = time.base is None
        order = query, not triple.confirmed, not known, time.offset if known else 0
        then = shown["answer"], shown["hypotheses"], shown["conditions"]
        return _Line((*order, *then), shown, json.dumps(shown, ensure_ascii=False)[1:])


def _print_json(tau: int, lines: list[_Line]) -> None:
    sys.stdout.writelines(f'{{"tau": {tau}, {line.text}\n' for line in lines)


class _Tables:
    """A table for each τ, in a terminal as wide as that; in a pipe as wide as its text, no colour.

    Lines of a terminal are short: an atom has one of its own, and what all answers lack has no
    column. In a pipe an answer is a line, and every table has the same columns.
    """

    def __init__(self) -> None:
        from rich.console import Console

        terminal = Console(highlight=False)
        self._short = terminal.is_terminal
        self._console = terminal if self._short else Console(width=_UNLIMITED)

    def print(self, tau: int, lines: list[_Line]) -> None:
        from rich import box
        from rich.table import Table

        if not lines:
            self._console.print(f"τ = {tau}: no answers\n", highlight=False)
            return
        title = f"τ = {tau}"
        table = Table(
            title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=not self._short
        )
        shown = [
            name
            for name in _COLUMNS
            if not self._short or any(line.shown[name] not in (None, []) for line in lines)
        ]
        for name in shown:
            table.add_column(
                name, overflow="fold", justify="right" if name == "deadline" else "left"
            )
        for line in lines:
            table.add_row(*(self._cell(name, line.shown[name]) for name in shown))
        self._console.print(table)

    def _cell(self, column: str, value: object) -> Text:
        from rich.text import Text

        if isinstance(value, list):
            return Text(("\n" if self._short else ", ").join(value))
        text = "" if value is None else str(value)
        return Text(text, style=_STYLES.get(text if column == "status" else column, ""))


_UNLIMITED = 10_000
_COLUMNS = ("status", "answer", "evidence", "hypotheses", "conditions", "deadline")
_STYLES = {"confirmed": "green", "pending": "yellow", "answer": "bold"}
