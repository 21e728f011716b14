"""`whilst bench`: where we stand, in figures."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from monitor.bench import BENCHES


def register(app: typer.Typer) -> None:
    app.command()(bench)


def bench(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(BENCHES)}, or all.")],
    format: Annotated[str, typer.Option(help="table or json (one object a line).")] = "table",
    scale: Annotated[float, typer.Option(help="How large, against the usual size.")] = 1.0,
    report: Annotated[
        Path | None,
        typer.Option(
            help="Folder of a report: the figures join its history, and its page is made anew."
        ),
    ] = None,
) -> None:
    """Measure: speed, memory and ratios against other ways, all within one run.

    `peers` compares with what people use instead (Flink, Spark's joins, DuckDB, MeTeoR), each in an
    environment of its own, which is made on first use.

    Examples: `whilst bench kernel`, `whilst bench store --scale 0.1 --format json`,
    `whilst bench all --scale 0.2 --report docs/benchmarks`
    """
    import os
    from datetime import UTC, datetime

    from monitor.setup.places import SetupError

    if name not in (*BENCHES, "all") or format not in ("table", "json"):
        wrong = f"bench: {name}" if format in ("table", "json") else f"--format {format}"
        typer.echo(f"whilst: {wrong} is not known; see whilst bench --help", err=True)
        raise typer.Exit(2)
    began, load = datetime.now(UTC), round(os.getloadavg()[0], 1)
    found = []
    try:
        for figure in _figures(BENCHES if name == "all" else (name,), scale, name == "all"):
            found.append(figure)
            print(_line(figure, format), flush=True)
    except SetupError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None
    if report is not None:
        from monitor.bench.report import write

        typer.echo(f"whilst: the report is {write(report, found, scale, began, load)}", err=True)


def _figures(names: tuple[str, ...], scale: float, going_on: bool) -> Iterator[dict[str, Any]]:
    """The figures of some benches; where there are several, one that fails says so and the next
    goes on."""
    import importlib

    for name in names:
        try:
            yield from importlib.import_module(f"monitor.bench.{name}").figures(scale)
        except Exception as error:
            if not going_on:
                raise
            reason = (str(error) or type(error).__name__).splitlines()[0]
            yield {"bench": name, "task": "", "figure": "cannot", "value": reason}


def _line(figure: dict[str, Any], format: str) -> str:
    if format == "json":
        return json.dumps(figure, ensure_ascii=False)
    of = " ".join(str(figure[key]) for key in ("task", "peer", "order") if figure.get(key))
    value = figure["value"]
    shown = f"{value:>16,}" if isinstance(value, int | float) else f"{value or '-':>16}"
    return f"{figure['bench']:10} {of:40} {figure['figure']:32} {shown}"
