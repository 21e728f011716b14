"""`whilst demo`: everything at once, to look at."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command()(demo)


def demo(
    seconds: Annotated[
        float | None,
        typer.Option(
            envvar="DEMO_SECONDS",
            min=1,
            help="End by itself after so long; 60 where there is no terminal.",
        ),
    ] = None,
) -> None:
    """Show a simulated wind farm, the monitor and the dashboard, all on this machine.

    Readings come late and out of order, as they would. Ctrl-C ends all of it; at the end a summary
    is read from the store.

    Example: `DEMO_SECONDS=60 whilst demo`
    """
    if seconds is None and not (sys.stdin.isatty() and sys.stdout.isatty()):
        seconds = 60.0
    from monitor.demo import run
    from monitor.setup.places import SetupError
    from resolution.errors import WhilstError
    from storage.errors import StoreError

    try:
        run(seconds, lambda text: print(text, flush=True))
    except (WhilstError, StoreError, SetupError, OSError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None
