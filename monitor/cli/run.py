"""`whilst run`: the monitor itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command()(run)


def run(
    program: Annotated[Path, typer.Argument(help="The program, a file of rules.")],
    source: Annotated[
        list[str],
        typer.Option("--source", help="A file, a folder or kafka://host:port/topic; may repeat."),
    ],
    once: Annotated[bool, typer.Option("--once", help="Read what is there, then end.")] = False,
    until: Annotated[
        int | None, typer.Option("--until", help="Leave out what arrived after this time point.")
    ] = None,
    store: Annotated[
        str | None, typer.Option("--store", metavar="URL", help="Another Postgres.")
    ] = None,
    master: Annotated[str, typer.Option(help="Spark's master: local[2], spark://…")] = "local[*]",
    fresh: Annotated[bool, typer.Option("--fresh", help="Start anew.")] = False,
) -> None:
    """Read facts as they arrive and keep the answers in the store up to date."""
    from monitor.start import Settings, main

    main(Settings(program, source, once=once, until=until, store=store, master=master, fresh=fresh))
