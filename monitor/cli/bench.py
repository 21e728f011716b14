"""`whilst bench`: where we stand, in figures."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from monitor.bench import BENCHES


def register(app: typer.Typer) -> None:
    app.command()(bench)


def bench(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(BENCHES)}, or all.")],
    format: Annotated[str, typer.Option(help="table or json (one object a line).")] = "table",
    scale: Annotated[float, typer.Option(help="How large, against the usual size.")] = 1.0,
) -> None:
    """Measure: speed, memory and ratios against other ways, all within one run.

    Examples: `whilst bench kernel`, `whilst bench store --scale 0.1 --format json`
    """
    import importlib

    if name not in (*BENCHES, "all") or format not in ("table", "json"):
        wrong = f"bench: {name}" if format in ("table", "json") else f"--format {format}"
        typer.echo(f"whilst: {wrong} is not known; see whilst bench --help", err=True)
        raise typer.Exit(2)
    for chosen in BENCHES if name == "all" else (name,):
        for figure in importlib.import_module(f"monitor.bench.{chosen}").figures(scale):
            if format == "json":
                print(json.dumps(figure, ensure_ascii=False), flush=True)
            else:
                print(
                    f"{figure['bench']:10} {figure['task']:24} {figure['figure']:32} "
                    f"{figure['value']:>16,}",
                    flush=True,
                )
    sys.stdout.flush()
