"""`whilst send` and `whilst simulate`: facts on their way to a log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from monitor.cli.programs import ProgramFile, failing, program_of

if TYPE_CHECKING:
    from monitor.sources import Topic

KafkaOption = Annotated[
    list[str] | None,
    typer.Option(
        "--kafka",
        envvar="WHILST_KAFKA",
        metavar="KEY=VALUE",
        help="An option of Kafka's client, such as security.protocol=SASL_SSL; may repeat.",
    ),
]


def register(app: typer.Typer) -> None:
    app.command()(send)
    app.command()(simulate)


def send(
    facts: Annotated[
        list[str],
        typer.Argument(help="Files of JSON Lines, plain or gzip; `-` is standard input."),
    ],
    to: Annotated[str, typer.Option(help="kafka://host:port/topic, a folder or a file.")],
    rate: Annotated[
        float | None, typer.Option(min=0.001, help="At most so many events a second.")
    ] = None,
    pace: Annotated[
        str | None,
        typer.Option(
            help="Honour the arrivals: a time point takes so long (1s). Without it and --rate, "
            "as fast as it goes."
        ),
    ] = None,
    kafka: KafkaOption = None,
) -> None:
    """Put the events of files into a log, as they are.

    Example: `whilst send facts.jsonl --to kafka://localhost:9092/facts --rate 1000`
    """
    with failing():
        from monitor.config import ConfigError, milliseconds
        from monitor.send import at_rate, outlet, when_due

        if rate is not None and pace is not None:
            raise ConfigError("--rate and --pace exclude each other")
        with outlet(_target(to, kafka)) as into:
            if pace is None:
                sent = at_rate(_lines(facts), into, rate)
            else:
                unit = milliseconds(pace, "--pace")
                sent = when_due(_arriving(facts, unit), into, unit / 1000)
        typer.echo(f"{sent:,} events sent")


def simulate(
    program_file: ProgramFile,
    to: Annotated[
        str | None,
        typer.Option(help="kafka://host:port/topic, a folder or a file; else standard output."),
    ] = None,
    rate: Annotated[float, typer.Option(min=0.001, help="Facts a second.")] = 10.0,
    count: Annotated[
        int | None, typer.Option(min=1, help="So many facts, at once and not in real time.")
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(metavar="τ", help="The first time point or instant; now if not given."),
    ] = None,
    names: Annotated[int, typer.Option(min=1, help="Made-up names for each field.")] = 10,
    late: Annotated[float, typer.Option(min=0, max=1, help="Share of late facts.")] = 0.01,
    lost: Annotated[float, typer.Option(min=0, max=1, help="Share that never arrives.")] = 0.02,
    seed: Annotated[int, typer.Option(help="The same seed, the same facts.")] = 0,
    kafka: KafkaOption = None,
) -> None:
    """Make up facts that fit a program, with delays, for ever or so many.

    Examples: `whilst simulate turbines.rules --count 1000 --start 0 > facts.jsonl`,
    `whilst simulate turbines.rules --rate 50 --to kafka://localhost:9092/facts`
    """
    program = program_of(program_file)
    with failing():
        import itertools
        import time

        from monitor.config import point
        from monitor.send import at_rate, outlet, when_due
        from monitor.simulate import Simulation, Weather

        now = int(time.time() * 1000) // program.unit
        first = now if start is None else point(start, program.unit, "start")
        weather = Weather(rate * program.unit / 1000, names, late, lost)
        made = Simulation(program, first, seed, weather)
        lines = ((arrival, line.encode()) for arrival, line in made)
        with outlet(_target(to, kafka)) as into:
            try:
                if count is not None:
                    at_rate((line for _, line in itertools.islice(lines, count)), into, None)
                else:
                    when_due(lines, into, program.unit / 1000)
            except KeyboardInterrupt:
                raise typer.Exit(0) from None


def _target(to: str | None, kafka: list[str] | None) -> Topic | Path | None:
    from monitor.config import pairs
    from monitor.sources import SourceError, Topic, parse_source

    if to is None:
        return None
    if "://" not in to:
        if to.endswith("/") and not Path(to).is_dir():
            raise SourceError(f"{to}: no such folder: make it first")
        return Path(to)
    found = parse_source(to, pairs(kafka or [], "--kafka"))
    assert isinstance(found, Topic)
    return found


def _lines(files: list[str]) -> Iterator[bytes]:
    import gzip
    import sys
    import zlib

    from monitor.sources import SourceError, is_csv

    if csv := next(filter(is_csv, files), None):
        raise SourceError(
            f"{csv}: a line of CSV says nothing without its header, and an event in a log is "
            "alone: send JSON Lines, or name the file as --source of a run"
        )
    for name in files:
        if name == "-":
            yield from (line.rstrip(b"\r\n") for line in sys.stdin.buffer if line.strip())
            continue
        try:
            with gzip.open(name) if name.endswith(".gz") else open(name, "rb") as file:
                yield from (line.rstrip(b"\r\n") for line in file if line.strip())
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise SourceError(f"{name}: the gzip data is cut short or damaged") from None
        except OSError as error:
            raise SourceError(f"{name}: cannot be read: {error.strerror or error}") from None


def _arriving(files: list[str], unit: int) -> Iterator[tuple[int, bytes]]:
    """Lines with their arrivals; one that does not say comes right after the one before."""
    import json

    from resolution.facts import RejectedEvent, time_point

    latest = 0
    for line in _lines(files):
        try:
            event = json.loads(line)
            told = event["arrival"] if "arrival" in event else event["time"]
            latest = max(latest, time_point(told, unit))
        except (ValueError, KeyError, TypeError, RejectedEvent):
            pass  # the log takes what is no fact as well
        yield latest, line
